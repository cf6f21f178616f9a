/* operand.h: what an instruction reads and writes, by type. */
#ifndef MODEL_OPERAND_H
#define MODEL_OPERAND_H

#include "wave.h"

#include <math.h>

__extension__ typedef _Float16 half;

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline half half_of(uint32_t bits)
{
    const uint16_t low = (uint16_t)bits;
    half value;
    memcpy(&value, &low, sizeof value);
    return value;
}

static inline uint32_t half_bits(half value)
{
    uint16_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- reading ---- */

static inline uint32_t part_of(uint32_t value, const struct operand *o)
{
    switch (o->part) {
    case PART_ALL:
        return value;
    case PART_WORD0:
    case PART_WORD1:
        value = value >> 16 * (o->part - PART_WORD0) & 0xffff;
        return o->sign_extended ? (uint32_t)(int16_t)value : value;
    default:
        value = value >> 8 * (o->part - PART_BYTE0) & 0xff;
        return o->sign_extended ? (uint32_t)(int8_t)value : value;
    }
}

static inline uint32_t register_read(const struct wave *w, const struct operand *o, int word,
                                     int lane)
{
    return o->kind == OPERAND_SCALAR ? w->scalar[o->index + word] : w->vector[o->index + word][lane];
}

static inline bool operand_is_register(const struct operand *o)
{
    return o->kind == OPERAND_SCALAR || o->kind == OPERAND_VECTOR;
}

static inline uint32_t read_u32(const struct wave *w, const struct instruction *i, int n, int lane)
{
    const struct operand *o = &i->operand[n];
    if (operand_is_register(o))
        return part_of(register_read(w, o, 0, lane), o);
    return o->kind == OPERAND_FLOAT ? bits_of((float)o->number) : (uint32_t)o->bits;
}

static inline uint64_t read_u64(const struct wave *w, const struct instruction *i, int n, int lane)
{
    const struct operand *o = &i->operand[n];
    if (operand_is_register(o)) {
        const uint64_t high = o->words > 1 ? register_read(w, o, 1, lane) : 0;
        return register_read(w, o, 0, lane) | high << 32;
    }
    return o->kind == OPERAND_FLOAT ? double_bits(o->number) : o->bits;
}

static inline uint32_t read_u16(const struct wave *w, const struct instruction *i, int n, int lane)
{
    const struct operand *o = &i->operand[n];
    if (o->kind == OPERAND_FLOAT)
        return half_bits((half)o->number);
    return read_u32(w, i, n, lane) & 0xffff;
}

static inline int32_t read_i32(const struct wave *w, const struct instruction *i, int n, int lane)
{
    return (int32_t)read_u32(w, i, n, lane);
}

static inline int64_t read_i64(const struct wave *w, const struct instruction *i, int n, int lane)
{
    return (int64_t)read_u64(w, i, n, lane);
}

static inline int32_t read_i16(const struct wave *w, const struct instruction *i, int n, int lane)
{
    return (int16_t)read_u16(w, i, n, lane);
}

static inline float read_f32(const struct wave *w, const struct instruction *i, int n, int lane)
{
    const struct operand *o = &i->operand[n];
    float value = float_of(read_u32(w, i, n, lane));
    value = o->absolute ? fabsf(value) : value;
    return o->negative ? -value : value;
}

static inline half read_f16(const struct wave *w, const struct instruction *i, int n, int lane)
{
    const struct operand *o = &i->operand[n];
    half value = half_of(read_u16(w, i, n, lane));
    value = o->absolute && value < 0 ? -value : value;
    return o->negative ? -value : value;
}

/* A literal has the high half of a double. */
static inline double read_f64(const struct wave *w, const struct instruction *i, int n, int lane)
{
    const struct operand *o = &i->operand[n];
    const uint64_t bits = read_u64(w, i, n, lane);
    double value = double_of(o->kind == OPERAND_LITERAL ? bits << 32 : bits);
    value = o->absolute ? fabs(value) : value;
    return o->negative ? -value : value;
}

/* ---- writing ---- */

static inline uint32_t *register_of(struct wave *w, const struct operand *o, int word, int lane)
{
    return o->kind == OPERAND_SCALAR ? &w->scalar[o->index + word]
                                     : &w->vector[o->index + word][lane];
}

/* Of a destination that is part of a register. */
static inline uint32_t part_put(uint32_t old, uint32_t value, const struct operand *o,
                                enum unused unused)
{
    const bool word = o->part >= PART_WORD0;
    const unsigned shift = word ? 16u * (o->part - PART_WORD0) : 8u * (o->part - PART_BYTE0);
    const uint32_t mask = word ? 0xffffu : 0xffu;
    uint32_t sign = word ? (uint32_t)(int16_t)value : (uint32_t)(int8_t)value;
    if (unused == UNUSED_KEPT)
        return (old & ~(mask << shift)) | (value & mask) << shift;
    return unused == UNUSED_SIGN ? sign << shift : (value & mask) << shift;
}

static inline void write_u32(struct wave *w, const struct instruction *i, int lane, uint32_t value)
{
    const struct operand *o = &i->operand[0];
    uint32_t *at = register_of(w, o, 0, lane);
    *at = o->part == PART_ALL ? value : part_put(*at, value, o, i->unused);
}

static inline void write_i32(struct wave *w, const struct instruction *i, int lane, int32_t value)
{
    write_u32(w, i, lane, (uint32_t)value);
}

static inline void write_u16(struct wave *w, const struct instruction *i, int lane, uint32_t value)
{
    write_u32(w, i, lane, value & 0xffff);
}

static inline void write_i16(struct wave *w, const struct instruction *i, int lane, int32_t value)
{
    write_u32(w, i, lane, (uint32_t)value & 0xffff);
}

static inline void write_u64(struct wave *w, const struct instruction *i, int lane, uint64_t value)
{
    const struct operand *o = &i->operand[0];
    *register_of(w, o, 0, lane) = (uint32_t)value;
    *register_of(w, o, 1, lane) = (uint32_t)(value >> 32);
}

static inline void write_i64(struct wave *w, const struct instruction *i, int lane, int64_t value)
{
    write_u64(w, i, lane, (uint64_t)value);
}

static inline double output_modified(const struct instruction *i, double value)
{
    static const double scale[] = {1, 2, 4, 0.5};
    value *= scale[i->output_scale];
    return !i->clamps ? value : value > 1 ? 1 : value > 0 ? value : 0;
}

static inline void write_f32(struct wave *w, const struct instruction *i, int lane, float value)
{
    if (i->clamps || i->output_scale)
        value = (float)output_modified(i, (double)value);
    write_u32(w, i, lane, bits_of(value));
}

static inline void write_f64(struct wave *w, const struct instruction *i, int lane, double value)
{
    if (i->clamps || i->output_scale)
        value = output_modified(i, value);
    write_u64(w, i, lane, double_bits(value));
}

static inline void write_f16(struct wave *w, const struct instruction *i, int lane, half value)
{
    if (i->clamps || i->output_scale)
        value = (half)output_modified(i, (double)value);
    write_u32(w, i, lane, half_bits(value));
}

#endif
