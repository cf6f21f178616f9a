/* scalar.c: scalar instructions: those of scalar.def, carries, and loads. */
#include "operand.h"

#include <stdlib.h>

/* ---- bits ---- */

static uint64_t reversed(uint64_t value)
{
    uint64_t result = 0;
    for (int bit = 0; bit < 64; bit++)
        result |= (value >> bit & 1) << (63 - bit);
    return result;
}

static uint32_t leading_signs(int64_t value, uint32_t width)
{
    const uint64_t bits = (uint64_t)(value < 0 ? ~value : value);
    return bits ? (uint32_t)__builtin_clzll(bits) - (64 - width) : ~0u;
}

static uint64_t field(uint64_t value, uint64_t offset, uint64_t width)
{
    value >>= offset;
    return width < 64 ? value & ((1ull << width) - 1) : value;
}

static int64_t signed_field(uint64_t value, uint64_t offset, uint64_t width)
{
    const uint64_t bits = field(value, offset, width);
    const uint64_t sign = width && width <= 64 ? 1ull << (width - 1) : 0;
    return (int64_t)((bits ^ sign) - sign);
}

/* ---- the instructions of scalar.def ---- */

#define SOURCE(type, n) read_##type(w, i, n, 0)
#define OP(name, written, read, value)                                              \
    static void name(struct wave *w, const struct instruction *i)                   \
    {                                                                               \
        const __typeof__(SOURCE(read, 1)) a = SOURCE(read, 1), b = SOURCE(read, 2); \
        (void)a;                                                                    \
        (void)b;                                                                    \
        write_##written(w, i, 0, value);                                            \
    }
#define FLAG(name, written, read, value)                                            \
    static void name(struct wave *w, const struct instruction *i)                   \
    {                                                                               \
        const __typeof__(SOURCE(read, 1)) a = SOURCE(read, 1), b = SOURCE(read, 2); \
        (void)b;                                                                    \
        const __typeof__(SOURCE(written, 1)) result = value;                        \
        write_##written(w, i, 0, result);                                           \
        w->scc = result != 0;                                                       \
    }
#include "scalar.def"
#undef OP
#undef FLAG

/* ---- sums ---- */

static void sum(struct wave *w, const struct instruction *i, uint32_t b, bool carry)
{
    const uint64_t result = (uint64_t)read_u32(w, i, 1, 0) + b + (carry ? 1 : 0);
    write_u32(w, i, 0, (uint32_t)result);
    w->scc = result >> 32 != 0;
}

static void s_add_u32(struct wave *w, const struct instruction *i)
{
    sum(w, i, read_u32(w, i, 2, 0), false);
}

static void s_addc_u32(struct wave *w, const struct instruction *i)
{
    sum(w, i, read_u32(w, i, 2, 0), w->scc);
}

/* SCC is the borrow. */
static void s_sub_u32(struct wave *w, const struct instruction *i)
{
    sum(w, i, ~read_u32(w, i, 2, 0), true);
    w->scc = !w->scc;
}

static void s_subb_u32(struct wave *w, const struct instruction *i)
{
    sum(w, i, ~read_u32(w, i, 2, 0), !w->scc);
    w->scc = !w->scc;
}

static void s_add_i32(struct wave *w, const struct instruction *i)
{
    int32_t result;
    w->scc = __builtin_add_overflow(read_i32(w, i, 1, 0), read_i32(w, i, 2, 0), &result);
    write_i32(w, i, 0, result);
}

static void s_sub_i32(struct wave *w, const struct instruction *i)
{
    int32_t result;
    w->scc = __builtin_sub_overflow(read_i32(w, i, 1, 0), read_i32(w, i, 2, 0), &result);
    write_i32(w, i, 0, result);
}

static void s_addk_i32(struct wave *w, const struct instruction *i)
{
    int32_t result;
    w->scc = __builtin_add_overflow(read_i32(w, i, 0, 0), (int32_t)i->immediate, &result);
    write_i32(w, i, 0, result);
}

static void s_mulk_i32(struct wave *w, const struct instruction *i)
{
    const uint32_t by = (uint32_t)i->immediate;
    write_u32(w, i, 0, read_u32(w, i, 0, 0) * by);
}

/* s_lshl1_add_u32 … s_lshl4_add_u32 */
static void s_lshl_add(struct wave *w, const struct instruction *i)
{
    const uint64_t result =
        ((uint64_t)read_u32(w, i, 1, 0) << (i->name[6] - '0')) + read_u32(w, i, 2, 0);
    write_u32(w, i, 0, (uint32_t)result);
    w->scc = result >> 32 != 0;
}

/* ---- minimum and maximum: SCC is set if the result is the first operand ---- */

static void choose(struct wave *w, const struct instruction *i, bool first)
{
    const uint32_t value = read_u32(w, i, first ? 1 : 2, 0);
    w->scc = first;
    write_u32(w, i, 0, value);
}

static void s_min_u32(struct wave *w, const struct instruction *i)
{
    choose(w, i, read_u32(w, i, 1, 0) < read_u32(w, i, 2, 0));
}

static void s_max_u32(struct wave *w, const struct instruction *i)
{
    choose(w, i, read_u32(w, i, 1, 0) > read_u32(w, i, 2, 0));
}

static void s_min_i32(struct wave *w, const struct instruction *i)
{
    choose(w, i, read_i32(w, i, 1, 0) < read_i32(w, i, 2, 0));
}

static void s_max_i32(struct wave *w, const struct instruction *i)
{
    choose(w, i, read_i32(w, i, 1, 0) > read_i32(w, i, 2, 0));
}

/* ---- bits of a register ---- */

static void s_bitcmp0_b32(struct wave *w, const struct instruction *i)
{
    w->scc = !(read_u32(w, i, 0, 0) >> (read_u32(w, i, 1, 0) & 31) & 1);
}

static void s_bitcmp1_b32(struct wave *w, const struct instruction *i)
{
    w->scc = read_u32(w, i, 0, 0) >> (read_u32(w, i, 1, 0) & 31) & 1;
}

/* ---- loads: s_load_dwordx4 s[0:3], s[4:5], 0x10 ---- */

static void s_load_prepare(struct instruction *i)
{
    const char *count = strstr(i->name, "_dword") + strlen("_dword");
    i->access_words = *count == 'x' ? atoi(count + 1) : 1;
}

static void s_load(struct wave *w, const struct instruction *i)
{
    const uint64_t base = read_u64(w, i, 1, 0) + (uint64_t)i->offset;
    const struct operand *o = &i->operand[2];
    const int64_t offset =
        operand_is_register(o) ? (int64_t)read_u32(w, i, 2, 0) : (int64_t)(int32_t)o->bits;
    const uint64_t address = (base + (uint64_t)offset) & ~3ull;
    memcpy(&w->scalar[i->operand[0].index], gpu_memory(w->group->gpu, address),
           4 * (size_t)i->access_words);
}

/* Rounding and similar modes stay as at the kernel's start. The counter of cycles has 20 bits. */
static void s_getreg_b32(struct wave *w, const struct instruction *i)
{
    const bool cycles = strstr(i->text, "SHADER_CYCLES");
    write_u32(w, i, 0, cycles ? (uint32_t)model_clock() & 0xfffff : 0);
}

#define OP(name, ...) {#name, name, NULL},
#define FLAG(name, ...) {#name, name, NULL},
#define ROW(name)         \
    {                     \
#name, name, NULL \
    }
const struct instruction_row scalar_rows[] = {
#include "scalar.def"
    ROW(s_add_u32),
    ROW(s_addc_u32),
    ROW(s_sub_u32),
    ROW(s_subb_u32),
    ROW(s_add_i32),
    ROW(s_sub_i32),
    ROW(s_addk_i32),
    ROW(s_mulk_i32),
    {"s_lshl1_add_u32", s_lshl_add, NULL},
    {"s_lshl2_add_u32", s_lshl_add, NULL},
    {"s_lshl3_add_u32", s_lshl_add, NULL},
    {"s_lshl4_add_u32", s_lshl_add, NULL},
    ROW(s_min_u32),
    ROW(s_max_u32),
    ROW(s_min_i32),
    ROW(s_max_i32),
    ROW(s_bitcmp0_b32),
    ROW(s_bitcmp1_b32),
    ROW(s_getreg_b32),
    {NULL, NULL, NULL}};

const struct instruction_row scalar_family_rows[] = {{"s_load_dword", s_load, s_load_prepare},
                                                     {NULL, NULL, NULL}};
