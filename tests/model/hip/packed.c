/* packed.c: instructions on two values in a register, or two floats in a pair: op_sel selects the half of each
 * source for the low result, op_sel_hi that for the high one. */
#include "operand.h"

/* ---- 16 bits ---- */

static uint32_t half_word(const struct wave *w, const struct instruction *i, int n, int lane,
                          bool high)
{
    const struct operand *o = &i->operand[n];
    const bool upper = (high ? i->op_sel_hi : i->op_sel) >> (n - 1) & 1;
    if (!operand_is_register(o)) /* a constant is in the low half */
        return upper && o->kind != OPERAND_FLOAT ? read_u32(w, i, n, lane) >> 16
                                                 : read_u16(w, i, n, lane);
    return read_u32(w, i, n, lane) >> (upper ? 16 : 0) & 0xffff;
}

static half half_value(const struct wave *w, const struct instruction *i, int n, int lane, bool high)
{
    const half value = half_of(half_word(w, i, n, lane, high));
    return (high ? i->neg_hi : i->neg_lo) >> (n - 1) & 1 ? -value : value;
}

#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define MOST(a, b) ((a) > (b) ? (a) : (b))

#define PACKED(name, type, read, bits, value)                                            \
    static void name(struct wave *w, const struct instruction *i)                        \
    {                                                                                    \
        EACH_LANE(w, lane)                                                               \
        {                                                                                \
            uint32_t result = 0;                                                         \
            for (int high = 0; high < 2; high++) {                                       \
                const type a = (type)read(w, i, 1, lane, high),                          \
                           b = (type)read(w, i, 2, lane, high);                          \
                const type c = i->count > 3 ? (type)read(w, i, 3, lane, high) : (type)0; \
                (void)c;                                                                 \
                result |= (bits(value) & 0xffffu) << 16 * high;                          \
            }                                                                            \
            write_u32(w, i, lane, result);                                               \
        }                                                                                \
    }
#define PACKED_U16(name, value) PACKED(name, uint32_t, half_word, (uint32_t), value)
#define PACKED_I16(name, value) PACKED(name, int16_t, half_word, (uint32_t), value)
#define PACKED_F16(name, value) PACKED(name, half, half_value, half_bits, value)

#define PACKED_ROWS(U16, I16, F16)                                  \
    U16(v_pk_add_u16, (a + b))                                      \
    U16(v_pk_sub_u16, (a - b))                                      \
    U16(v_pk_mul_lo_u16, (a * b))                                   \
    U16(v_pk_mad_u16, (a * b + c))                                  \
    U16(v_pk_lshlrev_b16, (b << (a & 15)))                          \
    U16(v_pk_lshrrev_b16, (b >> (a & 15)))                          \
    U16(v_pk_min_u16, LEAST(a, b))                                  \
    U16(v_pk_max_u16, MOST(a, b))                                   \
    I16(v_pk_add_i16, (a + b))                                      \
    I16(v_pk_sub_i16, (a - b))                                      \
    I16(v_pk_mad_i16, (a * b + c))                                  \
    I16(v_pk_ashrrev_i16, (b >> (a & 15)))                          \
    I16(v_pk_min_i16, LEAST(a, b))                                  \
    I16(v_pk_max_i16, MOST(a, b))                                   \
    F16(v_pk_add_f16, (a + b))                                      \
    F16(v_pk_mul_f16, (a * b))                                      \
    F16(v_pk_fma_f16, ((half)fma((double)a, (double)b, (double)c))) \
    F16(v_pk_min_f16, ((half)fminf((float)a, (float)b)))            \
    F16(v_pk_max_f16, ((half)fmaxf((float)a, (float)b)))

PACKED_ROWS(PACKED_U16, PACKED_I16, PACKED_F16)

/* ---- two floats ---- */

static uint32_t pair_word(const struct wave *w, const struct instruction *i, int n, int lane,
                          bool high)
{
    const struct operand *o = &i->operand[n];
    const bool upper = (high ? i->op_sel_hi : i->op_sel) >> (n - 1) & 1;
    if (!operand_is_register(o))
        return read_u32(w, i, n, lane);
    return register_read(w, o, upper && o->words > 1, lane);
}

static float pair_float(const struct wave *w, const struct instruction *i, int n, int lane,
                        bool high)
{
    const float value = float_of(pair_word(w, i, n, lane, high));
    return (high ? i->neg_hi : i->neg_lo) >> (n - 1) & 1 ? -value : value;
}

#define PAIR(name, value)                                                           \
    static void name(struct wave *w, const struct instruction *i)                   \
    {                                                                               \
        EACH_LANE(w, lane)                                                          \
        {                                                                           \
            uint32_t result[2];                                                     \
            for (int high = 0; high < 2; high++) {                                  \
                const float a = pair_float(w, i, 1, lane, high),                    \
                            b = pair_float(w, i, 2, lane, high);                    \
                const float c = i->count > 3 ? pair_float(w, i, 3, lane, high) : 0; \
                (void)c;                                                            \
                result[high] = bits_of(value);                                      \
            }                                                                       \
            write_u64(w, i, lane, result[0] | (uint64_t)result[1] << 32);           \
        }                                                                           \
    }
#define PAIR_ROWS(P)       \
    P(v_pk_add_f32, a + b) \
    P(v_pk_mul_f32, a *b)  \
    P(v_pk_fma_f32, fmaf(a, b, c))

PAIR_ROWS(PAIR)

/* The low word comes from the first source, the high word from the second: op_sel says which word of each. */
static void v_pk_mov_b32(struct wave *w, const struct instruction *i)
{
    EACH_LANE(w, lane)
    {
        const uint64_t high = pair_word(w, i, 2, lane, false);
        write_u64(w, i, lane, pair_word(w, i, 1, lane, false) | high << 32);
    }
}

#define ROW(name, ...) {#name, name, NULL},
const struct instruction_row packed_rows[] = {PACKED_ROWS(ROW, ROW, ROW)
                                                  PAIR_ROWS(ROW){"v_pk_mov_b32", v_pk_mov_b32, NULL},
                                              {NULL, NULL, NULL}};
