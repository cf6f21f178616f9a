/* compare.c: comparisons of vector and scalar registers; their names define them. */
#include "operand.h"

enum { ANY = LESS | EQUAL | GREATER | UNORDERED };
#define SIGN(a, b) ((a) < (b) ? LESS : (a) > (b) ? GREATER : (a) == (b) ? EQUAL : UNORDERED)

/* ---- names ---- */

struct condition {
    const char *name;
    unsigned holds;
};

static unsigned condition_of(const struct instruction *i, const char *name, size_t length)
{
    static const struct condition table[] = {
        {"f", 0},
        {"lt", LESS},
        {"eq", EQUAL},
        {"le", LESS | EQUAL},
        {"gt", GREATER},
        {"lg", LESS | GREATER},
        {"ne", LESS | GREATER},
        {"ge", GREATER | EQUAL},
        {"o", LESS | EQUAL | GREATER},
        {"u", UNORDERED},
        {"nge", LESS | UNORDERED},
        {"nlg", EQUAL | UNORDERED},
        {"ngt", LESS | EQUAL | UNORDERED},
        {"nle", GREATER | UNORDERED},
        {"neq", LESS | GREATER | UNORDERED},
        {"nlt", EQUAL | GREATER | UNORDERED},
        {"tru", ANY},
        {"t", ANY},
        {"class", 0},
    };
    for (size_t k = 0; k < sizeof table / sizeof table[0]; k++)
        if (strlen(table[k].name) == length && !strncmp(table[k].name, name, length))
            return table[k].holds;
    instruction_fail(i, "a condition that the model does not know");
}

static enum value_type type_of(const struct instruction *i, const char *name)
{
    static const char *const names[] = {[TYPE_U16] = "u16", [TYPE_I16] = "i16", [TYPE_U32] = "u32",
                                        [TYPE_I32] = "i32", [TYPE_U64] = "u64", [TYPE_I64] = "i64",
                                        [TYPE_F16] = "f16", [TYPE_F32] = "f32", [TYPE_F64] = "f64"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        if (!strcmp(names[k], name))
            return (enum value_type)k;
    instruction_fail(i, "a type that the model does not know");
}

/* v_cmp_lt_u32, v_cmpx_class_f32, s_cmpk_eq_i32: the condition, then the type. */
static void compare_prepare(struct instruction *i)
{
    const char *condition = strchr(i->name + 2, '_') + 1, *type = strrchr(i->name, '_');
    i->condition = condition_of(i, condition, (size_t)(type - condition));
    i->type = type_of(i, type + 1);
}

/* ---- comparing ---- */

static unsigned compared(const struct wave *w, const struct instruction *i, int a, int b, int lane)
{
#define COMPARE(type) SIGN(read_##type(w, i, a, lane), read_##type(w, i, b, lane))
    switch (i->type) {
    case TYPE_U16:
        return COMPARE(u16);
    case TYPE_I16:
        return COMPARE(i16);
    case TYPE_U32:
        return COMPARE(u32);
    case TYPE_I32:
        return COMPARE(i32);
    case TYPE_U64:
        return COMPARE(u64);
    case TYPE_I64:
        return COMPARE(i64);
    case TYPE_F16:
        return COMPARE(f16);
    case TYPE_F32:
        return COMPARE(f32);
    default:
        return COMPARE(f64);
    }
}

static void write_result(struct wave *w, const struct instruction *i, uint64_t result)
{
    mask_write(w, &i->operand[0], result);
    if (!strncmp(i->name, "v_cmpx", 6))
        wave_set_exec(w, result);
}

static void v_cmp(struct wave *w, const struct instruction *i)
{
    uint64_t result = 0;
    EACH_LANE(w, lane) result |= (uint64_t) !!(compared(w, i, 1, 2, lane) & i->condition) << lane;
    write_result(w, i, result);
}

/* ---- classes of floating-point numbers: a bit of the second operand for each ---- */

static unsigned class_of(double value, bool subnormal, bool signaling)
{
    const bool negative = signbit(value);
    if (isnan(value))
        return signaling ? 1 << 0 : 1 << 1;
    if (isinf(value))
        return negative ? 1 << 2 : 1 << 9;
    if (value == 0)
        return negative ? 1 << 5 : 1 << 6;
    if (subnormal)
        return negative ? 1 << 4 : 1 << 7;
    return negative ? 1 << 3 : 1 << 8;
}

static unsigned lane_class(const struct wave *w, const struct instruction *i, int lane)
{
    const float single = read_f32(w, i, 1, lane);
    const double wide = read_f64(w, i, 1, lane);
    const half narrow = read_f16(w, i, 1, lane);
    switch (i->type) {
    case TYPE_F16:
        return class_of((double)narrow, fabs((double)narrow) < 0x1p-14,
                        !(half_bits(narrow) & 0x200));
    case TYPE_F32:
        return class_of((double)single, fpclassify(single) == FP_SUBNORMAL,
                        !(bits_of(single) & 0x400000));
    default:
        return class_of(wide, fpclassify(wide) == FP_SUBNORMAL, !(double_bits(wide) >> 51 & 1));
    }
}

static void v_cmp_class(struct wave *w, const struct instruction *i)
{
    uint64_t result = 0;
    EACH_LANE(w, lane)
    result |= (uint64_t) !!(lane_class(w, i, lane) & read_u32(w, i, 2, lane)) << lane;
    write_result(w, i, result);
}

/* ---- scalars ---- */

static void s_cmp(struct wave *w, const struct instruction *i)
{
    w->scc = compared(w, i, 0, 1, 0) & i->condition;
}

/* The constant in the instruction has 16 bits; the text shows them as unsigned. */
static void s_cmpk(struct wave *w, const struct instruction *i)
{
    const uint32_t a = read_u32(w, i, 0, 0);
    const unsigned sign = i->type == TYPE_I32 ? SIGN((int32_t)a, (int32_t)i->immediate)
                                              : SIGN(a, (uint32_t)(uint16_t)i->immediate);
    w->scc = sign & i->condition;
}

const struct instruction_row compare_family_rows[] = {{"v_cmp_class", v_cmp_class, compare_prepare},
                                                      {"v_cmpx_class", v_cmp_class, compare_prepare},
                                                      {"v_cmp", v_cmp, compare_prepare},
                                                      {"s_cmpk", s_cmpk, compare_prepare},
                                                      {"s_cmp", s_cmp, compare_prepare},
                                                      {NULL, NULL, NULL}};
