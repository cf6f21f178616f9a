/* reduce.c: the arithmetic of reductions. */
#include "comm/comm.h"

#include <string.h>

/* Combine @p count elements of @p in into those of @p out. */
typedef void reduce_step(void *out, const void *in, size_t count);

#define REDUCE_LOOP(name, type, expression)                                        \
    static void reduce_##name(void *out_bytes, const void *in_bytes, size_t count) \
    {                                                                              \
        type *out = out_bytes;                                                     \
        const type *in = in_bytes;                                                 \
        for (size_t i = 0; i < count; i++)                                         \
            out[i] = (type)(expression);                                           \
    }

/* Sums, the usual reduction, in vectors: compilers build none in a loop of unknown length unless asked for much longer code. */
#define REDUCE_SUM(name, type)                                                                  \
    static void reduce_sum_##name(void *out_bytes, const void *in_bytes, size_t count)          \
    {                                                                                           \
        typedef type vector __attribute__((vector_size(16), aligned(sizeof(type)), may_alias)); \
        type *out = out_bytes;                                                                  \
        const type *in = in_bytes;                                                              \
        size_t i = 0;                                                                           \
        for (; count - i >= 16 / sizeof(type); i += 16 / sizeof(type))                          \
            *(vector *)(out + i) += *(const vector *)(in + i);                                  \
        for (; i < count; i++)                                                                  \
            out[i] = (type)(out[i] + in[i]);                                                    \
    }
REDUCE_SUM(uint8, uint8_t)
REDUCE_SUM(uint16, uint16_t)
REDUCE_SUM(uint32, uint32_t)
REDUCE_SUM(uint64, uint64_t)
REDUCE_SUM(float32, float)
REDUCE_SUM(float64, double)
#define reduce_sum_int8 reduce_sum_uint8
#define reduce_sum_int16 reduce_sum_uint16
#define reduce_sum_int32 reduce_sum_uint32
#define reduce_sum_int64 reduce_sum_uint64

#define INTEGER(id, name, type, wide)                              \
    REDUCE_LOOP(prod_##name, type, (wide)out[i] * (wide)in[i])     \
    REDUCE_LOOP(min_##name, type, in[i] < out[i] ? in[i] : out[i]) \
    REDUCE_LOOP(max_##name, type, in[i] > out[i] ? in[i] : out[i])
/* A NaN is unequal to itself, and no comparison with one is true: it stays once it is in out. */
#define REAL(id, name, type)                                                         \
    REDUCE_LOOP(prod_##name, type, out[i] * in[i])                                   \
    REDUCE_LOOP(min_##name, type, in[i] < out[i] || in[i] != in[i] ? in[i] : out[i]) \
    REDUCE_LOOP(max_##name, type, in[i] > out[i] || in[i] != in[i] ? in[i] : out[i])
/* In two parts; the sum is that of twice as many real numbers. */
#define COMPLEX(id, name, type)                                                         \
    static void reduce_sum_##name(void *out, const void *in, size_t count)              \
    {                                                                                   \
        reduce_sum_of_##type(out, in, 2 * count);                                       \
    }                                                                                   \
    static void reduce_prod_##name(void *out_bytes, const void *in_bytes, size_t count) \
    {                                                                                   \
        type *out = out_bytes;                                                          \
        const type *in = in_bytes;                                                      \
        for (size_t i = 0; i < 2 * count; i += 2) {                                     \
            const type real = out[i] * in[i] - out[i + 1] * in[i + 1];                  \
            out[i + 1] = out[i] * in[i + 1] + out[i + 1] * in[i];                       \
            out[i] = real;                                                              \
        }                                                                               \
    }
#define HALF(id, name)
#define reduce_sum_of_float reduce_sum_float32
#define reduce_sum_of_double reduce_sum_float64
#include "comm/reduce.def"
#undef INTEGER
#undef REAL
#undef COMPLEX
#undef HALF

/* Halves are calculated as float, so their rows are those of float. */
#define REDUCE_ROW(id, name, more)               \
    [id] = {[GG_COMM_SUM] = reduce_sum_##name,   \
            [GG_COMM_PROD] = reduce_prod_##name, \
            [GG_COMM_MIN] = reduce_min_##name,   \
            [GG_COMM_MAX] = reduce_max_##name,   \
            more},
#define REDUCE_AVG(name) [GG_COMM_AVG] = reduce_sum_##name /* then divided */
#define INTEGER(id, name, type, wide) REDUCE_ROW(id, name, )
#define REAL(id, name, type) REDUCE_ROW(id, name, REDUCE_AVG(name))
#define HALF(id, name) REDUCE_ROW(id, float32, REDUCE_AVG(float32))
#define COMPLEX(id, name, type) \
    [id] = {                    \
        [GG_COMM_SUM] = reduce_sum_##name, [GG_COMM_PROD] = reduce_prod_##name, REDUCE_AVG(name)},
static reduce_step *const reduce_steps[COMM_TYPES][COMM_REDUCTIONS] = {
#include "comm/reduce.def"
};
#undef INTEGER
#undef REAL
#undef COMPLEX
#undef HALF

#define INTEGER(id, name, type, wide) [id] = sizeof(type),
#define REAL(id, name, type) [id] = sizeof(type),
#define HALF(id, name) [id] = 2,
#define COMPLEX(id, name, type) [id] = 2 * sizeof(type),
const uint8_t ggi_comm_type_sizes[COMM_TYPES] = {
#include "comm/reduce.def"
};
#undef INTEGER
#undef REAL
#undef COMPLEX
#undef HALF

#define INTEGER(id, name, type, wide) [id] = #name,
#define REAL(id, name, type) [id] = #name,
#define HALF(id, name) [id] = #name,
#define COMPLEX(id, name, type) [id] = #name,
const char *ggi_comm_type_name(uint32_t type)
{
    static const char names[][12] = {
#include "comm/reduce.def"
        [GG_COMM_FLOAT8_E4M3] = "float8_e4m3", [GG_COMM_FLOAT8_E5M2] = "float8_e5m2"};
    return type < sizeof names / sizeof *names ? names[type] : "an unknown type";
}
#undef INTEGER
#undef REAL
#undef COMPLEX
#undef HALF

const char *ggi_comm_reduction_name(uint32_t reduction)
{
    static const char names[][5] = {"sum", "prod", "min", "max", "avg"};
    return reduction < COMM_REDUCTIONS ? names[reduction] : "unknown";
}

bool ggi_comm_can_reduce(uint32_t type, uint32_t reduction)
{
    return type < COMM_TYPES && reduction < COMM_REDUCTIONS && reduce_steps[type][reduction];
}

/* ---- 16-bit floating point ---- */

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static uint32_t bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The lowest @p dropped bits rounded off, to the nearest, or to even. */
static uint32_t bits_round(uint32_t bits, uint32_t dropped)
{
    const uint32_t half = 1u << (dropped - 1), odd = bits >> dropped & 1;
    return (bits + half - 1 + odd) >> dropped;
}

static float bfloat16_widen(uint16_t half)
{
    return float_of_bits((uint32_t)half << 16);
}
static uint16_t bfloat16_narrow(float value)
{
    const uint32_t bits = bits_of_float(value);
    return value != value ? (uint16_t)(bits >> 16 | 0x40) : (uint16_t)bits_round(bits, 16);
}

/* A subnormal half is a multiple of 2^-24, which float represents exactly. */
static float float16_widen(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31,
                   fraction = half & 1023;
    if (exponent == 0)
        return float_of_bits(bits_of_float((float)fraction * 0x1p-24f) | sign);
    if (exponent == 31)
        return float_of_bits(sign | 0x7f800000 | fraction << 13);
    return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

/* A carry out of the fraction increases the exponent, as it should; 65520 and more become infinity. */
static uint16_t float16_narrow(float value)
{
    const uint32_t bits = bits_of_float(value), size = bits & 0x7fffffff;
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (value != value)
        return sign | 0x7e00;
    if (size >= 0x477ff000) /* 65520 */
        return sign | 0x7c00;
    if (size < 0x38800000) { /* 2^-14: in a float near 0.5 the last bit is 2^-24 */
        const float shifted = float_of_bits(size) + 0.5f;
        return (uint16_t)(sign | (bits_of_float(shifted) - 0x3f000000));
    }
    return (uint16_t)(sign | bits_round(size - (112u << 23), 13));
}

static void halves_widen(float *out, const char *in, size_t count, bool brain)
{
    uint16_t half;
    for (size_t i = 0; i < count; i++) {
        memcpy(&half, in + 2 * i, 2);
        out[i] = brain ? bfloat16_widen(half) : float16_widen(half);
    }
}

static void halves_narrow(char *out, const float *in, size_t count, bool brain)
{
    for (size_t i = 0; i < count; i++) {
        const uint16_t half = brain ? bfloat16_narrow(in[i]) : float16_narrow(in[i]);
        memcpy(out + 2 * i, &half, 2);
    }
}

#define HALVES 256
static void halves_combine(char *out, const char *const *in, int32_t inputs, size_t count,
                           reduce_step *step, bool brain, bool mean)
{
    float sum[HALVES], next[HALVES];
    for (size_t at = 0; at < count; at += HALVES) {
        const size_t some = count - at < HALVES ? count - at : HALVES;
        halves_widen(sum, in[0] + 2 * at, some, brain);
        for (int32_t i = 1; i < inputs; i++) {
            halves_widen(next, in[i] + 2 * at, some, brain);
            step(sum, next, some);
        }
        for (size_t i = 0; mean && i < some; i++)
            sum[i] /= (float)inputs;
        halves_narrow(out + 2 * at, sum, some, brain);
    }
}

/* ---- all types ---- */

/* In blocks that stay in the cache, since each is read once for each rank. */
static void wholes_combine(char *out, const char *const *in, int32_t inputs, size_t count,
                           reduce_step *step, size_t size)
{
    const size_t block = 16384 / size;
    for (size_t at = 0; at < count; at += block) {
        const size_t some = count - at < block ? count - at : block;
        memcpy(out + at * size, in[0] + at * size, some * size);
        for (int32_t i = 1; i < inputs; i++)
            step(out + at * size, in[i] + at * size, some);
    }
}

static void floats_divide(float *out, size_t count, int32_t divisor)
{
    for (size_t i = 0; i < count; i++)
        out[i] /= (float)divisor;
}
static void doubles_divide(double *out, size_t count, int32_t divisor)
{
    for (size_t i = 0; i < count; i++)
        out[i] /= divisor;
}

void ggi_comm_combine(void *out, const char *const *in, int32_t inputs, size_t count, uint32_t type,
                      uint32_t reduction)
{
    reduce_step *step = reduce_steps[type][reduction];
    const bool mean = reduction == GG_COMM_AVG;
    if (type == GG_COMM_FLOAT16 || type == GG_COMM_BFLOAT16)
        halves_combine(out, in, inputs, count, step, type == GG_COMM_BFLOAT16, mean);
    else
        wholes_combine(out, in, inputs, count, step, ggi_comm_type_sizes[type]);
    if (mean && (type == GG_COMM_FLOAT32 || type == GG_COMM_COMPLEX64))
        floats_divide(out, type == GG_COMM_COMPLEX64 ? 2 * count : count, inputs);
    else if (mean && (type == GG_COMM_FLOAT64 || type == GG_COMM_COMPLEX128))
        doubles_divide(out, type == GG_COMM_COMPLEX128 ? 2 * count : count, inputs);
}
