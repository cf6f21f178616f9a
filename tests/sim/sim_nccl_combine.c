/* sim_nccl_combine.c: the arithmetic of the simulated NCCL and RCCL, in the order of the ranks. */
#include "sim_nccl.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static double half_to(uint16_t half)
{
    const int exponent = half >> 10 & 31;
    const double fraction = half & 1023, sign = half & 0x8000 ? -1 : 1;
    if (exponent == 31)
        return half & 1023 ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

/* Exact for the values that tests use. */
static uint16_t half_of(double value)
{
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    int exponent;
    if (isnan(value))
        return 0x7e00;
    value = fabs(value);
    if (value >= 65520)
        return sign | 0x7c00;
    if (value < ldexp(1, -14))
        return sign | (uint16_t)nearbyint(ldexp(value, 24));
    const double fraction = frexp(value, &exponent);
    const unsigned bits = (unsigned)nearbyint(ldexp(fraction, 11)); /* 1024 to 2048 */
    return (uint16_t)(sign | ((unsigned)(exponent + 14) * 1024 + bits - 1024));
}

static double brain_to(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, 4);
    return (double)value;
}

static uint16_t brain_of(double wide)
{
    const float value = (float)wide;
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return isnan(wide) ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* 8 bits: e4m3 has no infinity, e5m2 is the upper half of a half. */
static double eight_to(uint8_t byte, int type)
{
    if (type == 11)
        return half_to((uint16_t)(byte << 8));
    const int exponent = byte >> 3 & 15;
    const double fraction = byte & 7, sign = byte & 0x80 ? -1 : 1;
    if ((byte & 0x7f) == 0x7f)
        return (double)NAN;
    return sign * (exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9));
}

/* The nearest by trying all. */
static uint8_t eight_of(double value, int type)
{
    uint8_t best = 0;
    double distance = (double)INFINITY;
    for (int byte = 0; byte < 256; byte++) {
        const double d = fabs(eight_to((uint8_t)byte, type) - value);
        if (d < distance) {
            distance = d;
            best = (uint8_t)byte;
        }
    }
    return best;
}

size_t sim_nccl_size(int type)
{
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return sizes[type];
}

static double apply(double a, double b, int op)
{
    switch (op) {
    case ncclProd:
        return a * b;
    case ncclMax:
        return fmax(a, b); /* as there (src/device/reduce_kernel.h): a NaN is ignored */
    case ncclMin:
        return fmin(a, b);
    default:
        return a + b;
    }
}

static uint64_t apply_integer(uint64_t a, uint64_t b, int op, bool is_signed)
{
    const bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;
    switch (op) {
    case ncclProd:
        return a * b;
    case ncclMax:
        return less ? b : a;
    case ncclMin:
        return less ? a : b;
    default:
        return a + b;
    }
}

static uint64_t integer_read(const char *at, size_t size, bool is_signed)
{
    uint64_t value = 0;
    memcpy(&value, at, size);
    const unsigned unused = 64 - 8 * (unsigned)size;
    return is_signed ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

static double real_read(const char *at, int type)
{
    uint16_t half;
    float narrow;
    double wide;
    if (type == 10 || type == 11)
        return eight_to((uint8_t)*at, type);
    if (type == 7) {
        memcpy(&narrow, at, 4);
        return (double)narrow;
    }
    if (type == 8) {
        memcpy(&wide, at, 8);
        return wide;
    }
    memcpy(&half, at, 2);
    return type == 6 ? half_to(half) : brain_to(half);
}

static void real_write(char *at, double value, int type)
{
    const float narrow = (float)value;
    uint16_t half;
    if (type == 10 || type == 11) {
        *at = (char)eight_of(value, type);
    } else if (type == 7) {
        memcpy(at, &narrow, 4);
    } else if (type == 8) {
        memcpy(at, &value, 8);
    } else {
        half = type == 6 ? half_of(value) : brain_of(value);
        memcpy(at, &half, 2);
    }
}

static void combine_real(char *out, const char *in, int inputs, size_t step, int type, int op)
{
    double value = real_read(in, type);
    for (int i = 1; i < inputs; i++)
        value = apply(value, real_read(in + (size_t)i * step, type), op);
    real_write(out, op == ncclAvg ? value / inputs : value, type);
}

static void combine_integer(char *out, const char *in, int inputs, size_t step, int type, int op)
{
    const size_t size = sim_nccl_size(type);
    const bool is_signed = type % 2 == 0;
    uint64_t value = integer_read(in, size, is_signed);
    for (int i = 1; i < inputs; i++)
        value = apply_integer(value, integer_read(in + (size_t)i * step, size, is_signed), op,
                              is_signed);
    memcpy(out, &value, size);
}

void sim_nccl_combine(void *out, const void *in, int inputs, size_t count, int type, int op)
{
    const size_t size = sim_nccl_size(type);
    for (size_t i = 0; i < count; i++)
        (type < 6 ? combine_integer : combine_real)(
            (char *)out + i * size, (const char *)in + i * size, inputs, count * size, type, op);
}
