/* gfx11.c: instructions of gfx11 as the same ones of gfx9, whose names and operands differ, and those that gfx9 does not have. */
#include "operand.h"

#include <stdio.h>
#include <stdlib.h>

bool gfx11_is_target(void)
{
    static int is = -1;
    const char *target = getenv("GPUGLUE_TEST_MODEL_TARGET");
    if (is < 0)
        is = target && !strncmp(target, "gfx11", 5);
    return is;
}

/* ---- names ---- */

/* How a name begins, and how that of gfx9 does; the rest is the same. Where one begins with another, the longer is first. */
static const struct {
    const char *gfx11, *gfx9;
} names[] = {
    {"s_load_b32", "s_load_dword"},
    {"s_load_b64", "s_load_dwordx2"},
    {"s_load_b128", "s_load_dwordx4"},
    {"s_load_b256", "s_load_dwordx8"},
    {"s_load_b512", "s_load_dwordx16"},
    {"s_and_not1_", "s_andn2_"},
    {"s_or_not1_", "s_orn2_"},
    {"s_and_not0_", "s_andn1_"},
    {"s_or_not0_", "s_orn1_"},
    {"s_ctz_i32_", "s_ff1_i32_"},
    {"s_clz_i32_u", "s_flbit_i32_b"},
    {"s_cls_i32", "s_flbit_i32"},
    {"v_add_nc_", "v_add_"},
    {"v_sub_nc_", "v_sub_"},
    {"v_subrev_nc_", "v_subrev_"},
    {"v_add_co_ci_", "v_addc_co_"},
    {"v_sub_co_ci_", "v_subb_co_"},
    {"v_subrev_co_ci_", "v_subbrev_co_"},
    {"v_ctz_i32_b32", "v_ffbl_b32"},
    {"v_clz_i32_u32", "v_ffbh_u32"},
    {"v_cls_i32", "v_ffbh_i32"},
    {"v_mul_dx9_zero_f32", "v_mul_legacy_f32"},
    {"v_cvt_pk_rtz_f16_f32", "v_cvt_pkrtz_f16_f32"},
    {"v_cvt_nearest_i32_f32", "v_cvt_rpi_i32_f32"},
    {"v_cvt_floor_i32_f32", "v_cvt_flr_i32_f32"},
    {"ds_load_2addr_stride64_", "ds_read2st64_"},
    {"ds_load_2addr_", "ds_read2_"},
    {"ds_load_", "ds_read_"},
    {"ds_store_2addr_stride64_", "ds_write2st64_"},
    {"ds_store_2addr_", "ds_write2_"},
    {"ds_store_", "ds_write_"},
    {"ds_storexchg_rtn_", "ds_wrxchg_rtn_"},
    {"ds_cmpstore_", "ds_cmpst_"},
};

static void name_as_gfx9(struct instruction *i)
{
    char name[sizeof i->name];
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        const size_t length = strlen(names[k].gfx11);
        if (strncmp(i->name, names[k].gfx11, length) != 0)
            continue;
        snprintf(name, sizeof name, "%s%s", names[k].gfx9, i->name + length);
        memcpy(i->name, name, sizeof name);
        return;
    }
}

/* ---- operands ---- */

/* A name's first type is that of the result: v_cvt_f16_f32. */
static bool has_half_result(const char *name)
{
    if (strncmp(name, "v_", 2) != 0 || strstr(name, "_pk") || strstr(name, "_mix") ||
        !strncmp(name, "v_cmp", 5))
        return false;
    for (; (name = strchr(name, '_')); name++)
        if (strchr("bfiu", name[1]) && (strchr("1346", name[2])))
            return !strncmp(name + 2, "16", 2);
    return false;
}

/* The upper half of the register stays as it was. */
static void keep_upper_half(struct instruction *i)
{
    struct operand *result = &i->operand[0];
    if (result->part == PART_ALL)
        result->part = PART_WORD0;
    i->unused = UNUSED_KEPT;
}

static int results(const struct instruction *i)
{
    return strstr(i->name, "_co_") || strstr(i->name, "64_u32") || strstr(i->name, "64_i32") ||
                   strstr(i->name, "_div_scale_")
               ? 2
               : 1;
}

/* Null reads as 0; it is a register only where a result is discarded. */
static void clear_null(struct instruction *i)
{
    for (int n = results(i); n < i->count; n++)
        if (i->operand[n].kind == OPERAND_SCALAR && i->operand[n].index == REGISTER_NULL)
            i->operand[n] = (struct operand){.kind = OPERAND_INTEGER};
}

/* gfx11 has the new value before the one that is compared. */
static void exchange_last_two(struct instruction *i)
{
    const struct operand last = i->operand[i->count - 1];
    i->operand[i->count - 1] = i->operand[i->count - 2];
    i->operand[i->count - 2] = last;
}

void gfx11_imply_result(struct instruction *i)
{
    if (gfx11_is_target() && !strncmp(i->name, "v_cmpx", 6))
        i->operand[i->count++] =
            (struct operand){.kind = OPERAND_SCALAR, .index = REGISTER_EXEC, .words = 1};
}

void gfx11_adapt(struct instruction *i)
{
    if (!gfx11_is_target())
        return;
    clear_null(i);
    name_as_gfx9(i);
    if (has_half_result(i->name) || i->operand[0].part != PART_ALL)
        keep_upper_half(i);
    if (!strncmp(i->name, "ds_cmpst_", 9) && i->count > 2)
        exchange_last_two(i);
    if (!strcmp(i->name, "v_cndmask_b32") && i->count == 3)
        i->operand[i->count++] =
            (struct operand){.kind = OPERAND_SCALAR, .index = REGISTER_VCC, .words = 1};
}

/* ---- two in one: v_dual_mov_b32 v0, 0 :: v_dual_and_b32 v3, 3, v1; both read before either writes ---- */

static const char *dual_second(const struct instruction *i)
{
    const char *separator = strstr(i->text, " :: ");
    return separator ? separator + strlen(" :: ") : NULL;
}

bool gfx11_is_dual(const struct instruction *i)
{
    return dual_second(i);
}

/* v_dual_and_b32 as v_and_b32. */
static void dual_take(const struct instruction *i, struct instruction *one, const char *text,
                      size_t length)
{
    static const char prefix[] = "v_dual_";
    const size_t skipped = strncmp(text, prefix, strlen(prefix)) ? 0 : strlen(prefix);
    one->bytes = i->bytes;
    memcpy(one->code, i->code, sizeof one->code);
    snprintf(one->text, sizeof one->text, "%s%.*s", skipped ? "v_" : "", (int)(length - skipped),
             text + skipped);
}

void gfx11_split(const struct instruction *i, struct instruction *first, struct instruction *second)
{
    const char *text = dual_second(i);
    dual_take(i, first, i->text, (size_t)(text - i->text) - strlen(" :: "));
    dual_take(i, second, text, strlen(text));
}

void gfx11_execute_dual(struct wave *w, const struct instruction *i)
{
    uint32_t *result = w->vector[i->dual[0]->operand[0].index];
    uint32_t before[LANES], after[LANES];
    memcpy(before, result, sizeof before);
    i->dual[0]->execute(w, i->dual[0]);
    memcpy(after, result, sizeof after);
    memcpy(result, before, sizeof before);
    i->dual[1]->execute(w, i->dual[1]);
    memcpy(result, after, sizeof after);
}

/* ---- lanes of a row, or of the other row, selected by 4 bits per lane ---- */

static void permute_rows(struct wave *w, const struct instruction *i, int other)
{
    enum { FETCHES_INACTIVE = 1, BOUND_CONTROL = 2 }; /* of op_sel */
    uint32_t values[LANES];
    uint64_t written = 0;
    EACH_LANE(w, lane)
    {
        const uint64_t picks = read_u32(w, i, 2, 0) | (uint64_t)read_u32(w, i, 3, 0) << 32;
        const int from = ((lane & ~15) ^ other) | (int)(picks >> 4 * (lane & 15) & 15);
        const bool readable = i->op_sel & FETCHES_INACTIVE || wave_exec(w) >> from & 1;
        values[lane] = readable ? read_u32(w, i, 1, from) : 0;
        written |= (uint64_t)(readable || i->op_sel & BOUND_CONTROL) << lane;
    }
    EACH_LANE(w, lane) if (written >> lane & 1) write_u32(w, i, lane, values[lane]);
}

static void v_permlane16_b32(struct wave *w, const struct instruction *i)
{
    permute_rows(w, i, 0);
}

static void v_permlanex16_b32(struct wave *w, const struct instruction *i)
{
    permute_rows(w, i, 16);
}

/* ---- messages with an answer ---- */

static void s_sendmsg_rtn(struct wave *w, const struct instruction *i)
{
    if (!strstr(i->text, "MSG_RTN_GET_REALTIME"))
        instruction_fail(i, "a message that the model does not know");
    write_u64(w, i, 0, model_clock());
}

const struct instruction_row gfx11_rows[] = {{"v_permlane16_b32", v_permlane16_b32, NULL},
                                             {"v_permlanex16_b32", v_permlanex16_b32, NULL},
                                             {"s_sendmsg_rtn_b64", s_sendmsg_rtn, NULL},
                                             {NULL, NULL, NULL}};
