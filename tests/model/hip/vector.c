/* vector.c: vector instructions with one formula per lane (vector.def). */
#include "operand.h"

#define TURN 6.283185307179586
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
#define MOST(a, b) ((a) > (b) ? (a) : (b))
#define MIDDLE(a, b, c) MOST(LEAST(a, b), LEAST(MOST(a, b), c))

/* ---- bits ---- */

static uint32_t reversed(uint32_t value)
{
    uint32_t result = 0;
    for (int bit = 0; bit < 32; bit++)
        result |= (value >> bit & 1) << (31 - bit);
    return result;
}

static int32_t field_i32(uint32_t value, uint32_t offset, uint32_t width)
{
    const uint32_t field = value >> offset & ((1u << width) - 1);
    const uint32_t sign = width ? 1u << (width - 1) : 0;
    return (int32_t)((field ^ sign) - sign);
}

/* Each byte of `picks` selects one of eight bytes, or a constant. */
static uint32_t permuted(uint32_t high, uint32_t low, uint32_t picks)
{
    const uint64_t bytes = (uint64_t)high << 32 | low;
    uint32_t result = 0;
    for (int n = 0; n < 4; n++) {
        const unsigned pick = picks >> 8 * n & 0xff;
        uint32_t byte = pick == 12 ? 0 : 0xff;
        if (pick < 8)
            byte = bytes >> 8 * pick & 0xff;
        else if (pick < 12)
            byte = bytes >> (16 * (pick - 8) + 15) & 1 ? 0xff : 0;
        result |= byte << 8 * n;
    }
    return result;
}

static uint32_t leading_signs(int32_t value)
{
    const uint32_t bits = value < 0 ? ~(uint32_t)value : (uint32_t)value;
    return bits ? (uint32_t)__builtin_clz(bits) : ~0u;
}

static uint64_t lanes_below(int lane)
{
    return (1ull << lane) - 1;
}

static uint32_t low24(uint32_t value)
{
    return value & 0xffffff;
}

static int32_t signed24(uint32_t value)
{
    return (int32_t)(value << 8) >> 8;
}

static int32_t saturated(int64_t value)
{
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

/* ---- numbers ---- */

static double within(double value, double least, double most)
{
    if (isnan(value))
        return 0;
    return value < least ? least : value > most ? most : value;
}

static float middle_f32(float a, float b, float c)
{
    if (isnan(a) || isnan(b) || isnan(c))
        return fminf(fminf(a, b), c);
    return MIDDLE(a, b, c);
}

static double mantissa_of(double value)
{
    int exponent;
    return isfinite(value) ? frexp(value, &exponent) : value;
}

static int32_t exponent_of(double value)
{
    int exponent = 0;
    if (isfinite(value))
        frexp(value, &exponent);
    return exponent;
}

#define mantissa(a) (__typeof__(a))mantissa_of((double)(a))
#define exponent(a) exponent_of((double)(a))

static uint32_t half_toward_zero(float value)
{
    const half nearest = (half)value;
    const uint32_t bits = half_bits(nearest);
    if (isfinite(value) && fabsf((float)nearest) > fabsf(value))
        return bits - 1;
    return bits;
}

/* 53 bits of 2/pi from the position that the exponent of a large angle selects; sine and cosine use three such pieces. */
static double two_over_pi(uint64_t angle, uint32_t piece)
{
    static const uint64_t digits[19] = {
        0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
        0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
        0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
        0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
        0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};
    const int power = (int)(angle >> 52 & 0x7ff);
    int shift = 53 * (int)(piece & 31);
    if (power > 1077)
        shift += power - 1077;
    if (shift / 64 > 17)
        return 0;
    const uint64_t high = digits[shift / 64], low = digits[shift / 64 + 1];
    const int by = shift % 64;
    const uint64_t bits = (by ? high << by | low >> (64 - by) : high) >> 11;
    return ldexp((double)bits, -53 - shift + (power >= 1968 ? 128 : 0));
}

/* ---- the instructions ---- */

#define SOURCE(type, n) read_##type(w, i, n, lane)
#define OP(name, written, read, value)                                                             \
    static void name(struct wave *w, const struct instruction *i)                                  \
    {                                                                                              \
        EACH_LANE(w, lane)                                                                         \
        {                                                                                          \
            const __typeof__(read_##read(w, i, 1, lane)) a = SOURCE(read, 1), b = SOURCE(read, 2), \
                                                         c = SOURCE(read, 3);                      \
            (void)a;                                                                               \
            (void)b;                                                                               \
            (void)c;                                                                               \
            write_##written(w, i, lane, value);                                                    \
        }                                                                                          \
    }
#include "vector.def"
#undef OP

#define OP(name, written, read, value) {#name, name, NULL},
const struct instruction_row vector_rows[] = {
#include "vector.def"
    {NULL, NULL, NULL}};
