/* vector_other.c: vector instructions that write more than one register, or to a scalar register. */
#include "operand.h"

static void write_word(struct wave *w, const struct operand *o, int lane, uint32_t value)
{
    *register_of(w, o, 0, lane) = value;
}

/* ---- carries: destination, carry out, a, b, and and an optional carry in ---- */

static void carry(struct wave *w, const struct instruction *i, int a, int b, bool subtracts)
{
    const uint64_t in = i->count > 4 ? read_u64(w, i, 4, 0) : 0;
    uint64_t out = 0;
    EACH_LANE(w, lane)
    {
        const uint64_t x = read_u32(w, i, a, lane), y = read_u32(w, i, b, lane), c = in >> lane & 1;
        const uint64_t sum = subtracts ? x - y - c : x + y + c;
        write_u32(w, i, lane, (uint32_t)sum);
        out |= (sum >> 32 & 1) << lane;
    }
    mask_write(w, &i->operand[1], out);
}

static void v_add_co_u32(struct wave *w, const struct instruction *i)
{
    carry(w, i, 2, 3, false);
}

static void v_sub_co_u32(struct wave *w, const struct instruction *i)
{
    carry(w, i, 2, 3, true);
}

static void v_subrev_co_u32(struct wave *w, const struct instruction *i)
{
    carry(w, i, 3, 2, true);
}

/* ---- wide products: destination, carry out, a, b, c ---- */

static void v_mad_u64_u32(struct wave *w, const struct instruction *i)
{
    uint64_t out = 0;
    EACH_LANE(w, lane)
    {
        uint64_t sum;
        const uint64_t product = (uint64_t)read_u32(w, i, 2, lane) * read_u32(w, i, 3, lane);
        const bool over = __builtin_add_overflow(product, read_u64(w, i, 4, lane), &sum);
        write_u64(w, i, lane, sum);
        out |= (uint64_t)over << lane;
    }
    mask_write(w, &i->operand[1], out);
}

static void v_mad_i64_i32(struct wave *w, const struct instruction *i)
{
    EACH_LANE(w, lane)
    {
        const int64_t product = (int64_t)read_i32(w, i, 2, lane) * read_i32(w, i, 3, lane);
        write_u64(w, i, lane, (uint64_t)product + read_u64(w, i, 4, lane));
    }
    mask_write(w, &i->operand[1], 0);
}

/* ---- division: nothing is scaled, because v_div_fixup divides exactly ---- */

static void v_div_scale_f32(struct wave *w, const struct instruction *i)
{
    EACH_LANE(w, lane) write_f32(w, i, lane, read_f32(w, i, 2, lane));
    mask_write(w, &i->operand[1], 0);
}

static void v_div_scale_f64(struct wave *w, const struct instruction *i)
{
    EACH_LANE(w, lane) write_f64(w, i, lane, read_f64(w, i, 2, lane));
    mask_write(w, &i->operand[1], 0);
}

/* ---- single lanes ---- */

static void v_readfirstlane_b32(struct wave *w, const struct instruction *i)
{
    const uint64_t exec = wave_exec(w);
    write_word(w, &i->operand[0], 0, read_u32(w, i, 1, exec ? __builtin_ctzll(exec) : 0));
}

static void v_readlane_b32(struct wave *w, const struct instruction *i)
{
    const int lane = (int)(read_u32(w, i, 2, 0) % w->lanes);
    write_word(w, &i->operand[0], 0, read_u32(w, i, 1, lane));
}

static void v_writelane_b32(struct wave *w, const struct instruction *i)
{
    const int lane = (int)(read_u32(w, i, 2, 0) % w->lanes);
    write_word(w, &i->operand[0], lane, read_u32(w, i, 1, 0));
}

static void v_swap_b32(struct wave *w, const struct instruction *i)
{
    EACH_LANE(w, lane)
    {
        const uint32_t first = read_u32(w, i, 0, lane), second = read_u32(w, i, 1, lane);
        write_word(w, &i->operand[0], lane, second);
        write_word(w, &i->operand[1], lane, first);
    }
}

/* ---- half and single precision mixed: op_sel_hi selects the sources that are halves, op_sel the half ---- */

static float mixed(const struct wave *w, const struct instruction *i, int n, int lane)
{
    const struct operand *o = &i->operand[n];
    if (!(i->op_sel_hi >> (n - 1) & 1) || i->op_sel_hi == 0xff)
        return read_f32(w, i, n, lane);
    const uint32_t bits = read_u32(w, i, n, lane) >> (i->op_sel >> (n - 1) & 1 ? 16 : 0);
    float value = (float)half_of(bits);
    value = o->absolute ? fabsf(value) : value;
    return o->negative ? -value : value;
}

static float mixed_fma(const struct wave *w, const struct instruction *i, int lane)
{
    return fmaf(mixed(w, i, 1, lane), mixed(w, i, 2, lane), mixed(w, i, 3, lane));
}

static void v_fma_mix_f32(struct wave *w, const struct instruction *i)
{
    EACH_LANE(w, lane) write_f32(w, i, lane, mixed_fma(w, i, lane));
}

static void v_fma_mixlo_f16(struct wave *w, const struct instruction *i)
{
    EACH_LANE(w, lane)
    {
        const uint32_t old = read_u32(w, i, 0, lane) & 0xffff0000;
        write_u32(w, i, lane, old | half_bits((half)mixed_fma(w, i, lane)));
    }
}

static void v_fma_mixhi_f16(struct wave *w, const struct instruction *i)
{
    EACH_LANE(w, lane)
    {
        const uint32_t old = read_u32(w, i, 0, lane) & 0xffff;
        write_u32(w, i, lane, old | half_bits((half)mixed_fma(w, i, lane)) << 16);
    }
}

static void v_nop(struct wave *w, const struct instruction *i)
{
    (void)w;
    (void)i;
}

#define ROW(name)         \
    {                     \
#name, name, NULL \
    }
const struct instruction_row vector_other_rows[] = {ROW(v_add_co_u32),
                                                    ROW(v_sub_co_u32),
                                                    ROW(v_subrev_co_u32),
                                                    {"v_addc_co_u32", v_add_co_u32, NULL},
                                                    {"v_subb_co_u32", v_sub_co_u32, NULL},
                                                    {"v_subbrev_co_u32", v_subrev_co_u32, NULL},
                                                    ROW(v_mad_u64_u32),
                                                    ROW(v_mad_i64_i32),
                                                    ROW(v_div_scale_f32),
                                                    ROW(v_div_scale_f64),
                                                    ROW(v_readfirstlane_b32),
                                                    ROW(v_readlane_b32),
                                                    ROW(v_writelane_b32),
                                                    ROW(v_swap_b32),
                                                    ROW(v_fma_mix_f32),
                                                    ROW(v_fma_mixlo_f16),
                                                    ROW(v_fma_mixhi_f16),
                                                    ROW(v_nop),
                                                    {NULL, NULL, NULL}};
