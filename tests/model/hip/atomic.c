/* atomic.c: atomic operations, and those on global, generic and private memory. */
#include "atomic.h"
#include "memory.h"

/* ---- the operations ---- */

static int64_t as_signed(uint64_t value, int bytes)
{
    return bytes == 4 ? (int32_t)value : (int64_t)value;
}

static double as_float(uint64_t value, int bytes)
{
    return bytes == 4 ? (double)float_of((uint32_t)value) : double_of(value);
}

static uint64_t float_as_bits(double value, int bytes)
{
    return bytes == 4 ? bits_of((float)value) : double_bits(value);
}

static uint64_t halves_added(uint64_t old, uint64_t value)
{
    const half low = half_of((uint32_t)old) + half_of((uint32_t)value);
    const half high = half_of((uint32_t)(old >> 16)) + half_of((uint32_t)(value >> 16));
    return half_bits(low) | (uint64_t)half_bits(high) << 16;
}

static uint64_t bfloats_added(uint64_t old, uint64_t value)
{
    const float low = float_of((uint32_t)old << 16) + float_of((uint32_t)value << 16);
    const float high = float_of((uint32_t)old & 0xffff0000) + float_of((uint32_t)value & 0xffff0000);
    return bits_of(low) >> 16 | (bits_of(high) & 0xffff0000);
}

#define SIGNED(x) as_signed(x, bytes)
#define NUMBER(x) as_float(x, bytes)
#define COMBINE(name, result)                                                       \
    static uint64_t name(uint64_t old, uint64_t value, uint64_t compare, int bytes) \
    {                                                                               \
        (void)old;                                                                  \
        (void)value;                                                                \
        (void)compare;                                                              \
        (void)bytes;                                                                \
        return result;                                                              \
    }
COMBINE(combine_add, old + value)
COMBINE(combine_sub, old - value)
COMBINE(combine_rsub, value - old)
COMBINE(combine_swap, value)
COMBINE(combine_cmpswap, old == compare ? value : old)
COMBINE(combine_and, old &value)
COMBINE(combine_or, old | value)
COMBINE(combine_xor, old ^ value)
COMBINE(combine_inc, old >= value ? 0 : old + 1)
COMBINE(combine_dec, old == 0 || old > value ? value : old - 1)
COMBINE(combine_umin, old < value ? old : value)
COMBINE(combine_umax, old > value ? old : value)
COMBINE(combine_smin, SIGNED(old) < SIGNED(value) ? old : value)
COMBINE(combine_smax, SIGNED(old) > SIGNED(value) ? old : value)
COMBINE(combine_fadd, float_as_bits(bytes == 4 ? (double)((float)NUMBER(old) + (float)NUMBER(value))
                                               : NUMBER(old) + NUMBER(value),
                                    bytes))
COMBINE(combine_fmin, float_as_bits(fmin(NUMBER(old), NUMBER(value)), bytes))
COMBINE(combine_fmax, float_as_bits(fmax(NUMBER(old), NUMBER(value)), bytes))
COMBINE(combine_pk_add_f16, halves_added(old, value))
COMBINE(combine_pk_add_bf16, bfloats_added(old, value))

/* Longer names first, where one begins with another. The names of LDS instructions are the second of a line. */
static const struct atomic_row atomic_rows[] = {
    {"pk_add_f16", combine_pk_add_f16},
    {"pk_add_bf16", combine_pk_add_bf16},
    {"add_f", combine_fadd},
    {"min_f", combine_fmin},
    {"max_f", combine_fmax},
    {"add", combine_add},
    {"sub", combine_sub},
    {"rsub", combine_rsub},
    {"swap", combine_swap},
    {"wrxchg", combine_swap},
    {"cmpswap", combine_cmpswap},
    {"cmpst", combine_cmpswap},
    {"and", combine_and},
    {"or", combine_or},
    {"xor", combine_xor},
    {"inc", combine_inc},
    {"dec", combine_dec},
    {"umin", combine_umin},
    {"min_u", combine_umin},
    {"umax", combine_umax},
    {"max_u", combine_umax},
    {"smin", combine_smin},
    {"min_i", combine_smin},
    {"smax", combine_smax},
    {"max_i", combine_smax},
};

const struct atomic_row *atomic_row(const char *name)
{
    for (size_t k = 0; k < sizeof atomic_rows / sizeof atomic_rows[0]; k++)
        if (!strncmp(name, atomic_rows[k].name, strlen(atomic_rows[k].name)))
            return &atomic_rows[k];
    return NULL;
}

/* ---- global_atomic_add_x2 v[0:1], v[2:3], v[4:5], off sc0: the first operand exists only with sc0 ---- */

static void atomic_prepare(struct instruction *i)
{
    const char *how = strstr(i->name, "_atomic_") + strlen("_atomic_");
    const size_t length = strlen(how);
    const bool wide = (length > 3 && !strcmp(how + length - 3, "_x2")) ||
                      (length > 2 && !strcmp(how + length - 2, "64"));
    i->atomic = atomic_row(how);
    i->access_bytes = wide ? 8 : 4;
    if (!i->atomic)
        instruction_fail(i, "an atomic operation that the model does not know");
}

static uint64_t data_word(const struct wave *w, const struct instruction *i, int operand, int n,
                          int lane)
{
    const uint32_t(*from)[LANES] = &w->vector[i->operand[operand].index];
    if (i->access_bytes == 4)
        return from[n][lane];
    return from[2 * n][lane] | (uint64_t)from[2 * n + 1][lane] << 32;
}

static uint64_t replace_32(uint32_t *at, const struct instruction *i, uint64_t value,
                           uint64_t compare)
{
    uint32_t old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(at, &old,
                                        (uint32_t)i->atomic->combine(old, value, compare, 4), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    return old;
}

static uint64_t replace_64(uint64_t *at, const struct instruction *i, uint64_t value,
                           uint64_t compare)
{
    uint64_t old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(at, &old, i->atomic->combine(old, value, compare, 8), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
    return old;
}

static void atomic(struct wave *w, const struct instruction *i)
{
    const int at = i->returns ? 1 : 0, data = at + 1;
    const bool compares = i->operand[data].words * 4 > i->access_bytes;
    EACH_LANE(w, lane)
    {
        void *memory = lane_memory(w, i, at, at + 2, lane, (size_t)i->access_bytes);
        const uint64_t value = data_word(w, i, data, 0, lane);
        const uint64_t compare = compares ? data_word(w, i, data, 1, lane) : 0;
        const uint64_t old = i->access_bytes == 4 ? replace_32(memory, i, value, compare)
                                                  : replace_64(memory, i, value, compare);
        if (i->returns && i->access_bytes == 4)
            write_u32(w, i, lane, (uint32_t)old);
        else if (i->returns)
            write_u64(w, i, lane, old);
    }
}

const struct instruction_row atomic_family_rows[] = {{"global_atomic_", atomic, atomic_prepare},
                                                     {"flat_atomic_", atomic, atomic_prepare},
                                                     {NULL, NULL, NULL}};
