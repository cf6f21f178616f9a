/* parse.c: a disassembled instruction: its name, operands and modifiers. */
#include "wave.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- operands ---- */

struct special {
    const char *name;
    struct operand operand;
};

#define REGISTER(at, count)                                     \
    {                                                           \
        .kind = OPERAND_SCALAR, .index = (at), .words = (count) \
    }
#define CONSTANT(value)                          \
    {                                            \
        .kind = OPERAND_INTEGER, .bits = (value) \
    }
static const struct special specials[] = {
    {"vcc", REGISTER(REGISTER_VCC, 2)},
    {"vcc_lo", REGISTER(REGISTER_VCC, 1)},
    {"vcc_hi", REGISTER(REGISTER_VCC + 1, 1)},
    {"exec", REGISTER(REGISTER_EXEC, 2)},
    {"exec_lo", REGISTER(REGISTER_EXEC, 1)},
    {"exec_hi", REGISTER(REGISTER_EXEC + 1, 1)},
    {"m0", REGISTER(REGISTER_M0, 1)},
    {"flat_scratch", REGISTER(102, 2)},
    {"flat_scratch_lo", REGISTER(102, 1)},
    {"flat_scratch_hi", REGISTER(103, 1)},
    {"xnack_mask", REGISTER(104, 2)},
    {"src_shared_base", CONSTANT(SHARED_BASE)},
    {"src_private_base", CONSTANT(PRIVATE_BASE)},
    {"src_shared_limit", CONSTANT(SHARED_BASE | 0xffffffff)},
    {"src_private_limit", CONSTANT(PRIVATE_BASE | 0xffffffff)},
    {"null", REGISTER(REGISTER_NULL, 2)},
    {"off", {.kind = OPERAND_OFF}},
};

static bool special_parse(const char *text, struct operand *o)
{
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++)
        if (!strcmp(text, specials[i].name)) {
            *o = specials[i].operand;
            return true;
        }
    return false;
}

/* The half of a register at the end of its name: v0.h */
static enum part half_parse(const char *text)
{
    const char *point = strchr(text, '.');
    if (!point)
        return PART_ALL;
    return point[1] == 'h' ? PART_WORD1 : PART_WORD0;
}

/* s4, v[2:3], v0.l, a0: accumulation registers come after the vector registers. */
static bool register_parse(const char *text, struct operand *o)
{
    int first, last;
    if (!*text || !strchr("sva", *text) || (text[1] != '[' && !isdigit((unsigned char)text[1])))
        return false;
    if (sscanf(text + 1, "[%d:%d]", &first, &last) != 2)
        first = last = atoi(text + 1 + (text[1] == '['));
    *o = (struct operand){.kind = *text == 's' ? OPERAND_SCALAR : OPERAND_VECTOR,
                          .index = first + (*text == 'a' ? ACCUMULATORS : 0),
                          .words = last - first + 1,
                          .part = half_parse(text)};
    return true;
}

static bool constant_parse(const char *text, struct operand *o)
{
    if (!strncmp(text, "0x", 2))
        *o = (struct operand){.kind = OPERAND_LITERAL, .bits = strtoull(text, NULL, 16)};
    else if (strchr(text, '.'))
        *o = (struct operand){.kind = OPERAND_FLOAT, .number = atof(text)};
    else if (isdigit((unsigned char)*text) || *text == '-')
        *o = (struct operand){.kind = OPERAND_INTEGER, .bits = (uint64_t)strtoll(text, NULL, 0)};
    else
        return false;
    return true;
}

/* Removes a prefix and the suffix that belongs to it. */
static bool stripped(char **text, const char *prefix, const char *end)
{
    const size_t length = strlen(*text);
    if (strncmp(*text, prefix, strlen(prefix)) != 0)
        return false;
    if (length >= strlen(end) && !strcmp(*text + length - strlen(end), end))
        (*text)[length - strlen(end)] = 0;
    *text += strlen(prefix);
    return true;
}

/* Whether the operand is known. Hardware registers are, and have no value. */
static bool operand_parse(char *text, struct operand *o)
{
    const bool minus =
        (*text == '-' && !isdigit((unsigned char)text[1])) && stripped(&text, "-", "");
    const bool negative = stripped(&text, "neg(", ")") || minus;
    const bool absolute = stripped(&text, "|", "|");
    const bool sign_extended = stripped(&text, "sext(", ")");
    stripped(&text, "lit(", ")");
    const bool known = special_parse(text, o) || register_parse(text, o) ||
                       constant_parse(text, o) || !strncmp(text, "hwreg(", 6) ||
                       !strncmp(text, "sendmsg(", 8);
    o->negative = negative;
    o->absolute = absolute;
    o->sign_extended = sign_extended;
    return known;
}

/* ---- modifiers ---- */

static enum part part_parse(const char *text)
{
    if (!strncmp(text, "BYTE_", 5))
        return PART_BYTE0 + (enum part)(text[5] - '0');
    if (!strncmp(text, "WORD_", 5))
        return PART_WORD0 + (enum part)(text[5] - '0');
    return PART_ALL;
}

/* Where the sources begin: after the destination, and after the carry out. */
static int first_source(const struct instruction *i)
{
    return strstr(i->name, "_co_") ? 2 : 1;
}

/* [1,0,1] as bits, the first the lowest. */
static uint8_t bits_parse(const char *text)
{
    uint8_t bits = 0;
    for (int n = 0; *text && *text != ']'; text++)
        if (isdigit((unsigned char)*text))
            bits |= (uint8_t)((*text - '0') << n++);
    return bits;
}

/* [3,2,1,0] as numbers of 2 or 3 bits, the first the lowest. */
static int lanes_parse(const char *text, int width)
{
    int bits = 0;
    for (int n = 0; *text && *text != ']'; text++)
        if (isdigit((unsigned char)*text))
            bits |= (*text - '0') << width * n++;
    return bits;
}

/* Of instructions of 16 bits: a bit per source, then one for the destination. */
static void op_sel_parse(struct instruction *i, const char *value)
{
    i->op_sel = bits_parse(value);
    if (!strncmp(i->name, "v_permlane", 10) || !strncmp(i->name, "v_pk_", 5) ||
        strstr(i->name, "_mix") || !strncmp(i->name, "v_dot", 5))
        return;
    for (int n = 1; n < i->count; n++)
        if (i->op_sel >> (n - 1) & 1)
            i->operand[n].part = PART_WORD1;
    if (strstr(i->name, "32_")) /* the destination has 32 bits */
        return;
    i->operand[0].part = i->op_sel >> (i->count - 1) & 1 ? PART_WORD1 : PART_WORD0;
    i->unused = UNUSED_KEPT;
}

static bool dpp_parse(struct instruction *i, const char *word, const char *value)
{
    static const struct {
        const char *name;
        enum dpp dpp;
    } kinds[] = {{"quad_perm:", DPP_QUAD_PERM},
                 {"row_shl:", DPP_ROW_SHL},
                 {"row_shr:", DPP_ROW_SHR},
                 {"row_ror:", DPP_ROW_ROR},
                 {"wave_shl:", DPP_WAVE_SHL},
                 {"wave_rol:", DPP_WAVE_ROL},
                 {"wave_shr:", DPP_WAVE_SHR},
                 {"wave_ror:", DPP_WAVE_ROR},
                 {"row_mirror", DPP_ROW_MIRROR},
                 {"row_half_mirror", DPP_ROW_HALF_MIRROR},
                 {"row_bcast:", DPP_ROW_BCAST},
                 {"row_newbcast:", DPP_ROW_NEWBCAST},
                 {"row_share:", DPP_ROW_NEWBCAST},
                 {"row_xmask:", DPP_ROW_XMASK},
                 {"dpp8:", DPP_EIGHT}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        if (!strncmp(word, kinds[k].name, strlen(kinds[k].name))) {
            i->dpp = kinds[k].dpp;
            i->dpp_amount = i->dpp == DPP_QUAD_PERM ? lanes_parse(value, 2)
                            : i->dpp == DPP_EIGHT   ? lanes_parse(value, 3)
                                                    : atoi(value);
            return true;
        }
    return false;
}

static bool number_parse(struct instruction *i, const char *word, const char *value)
{
    const struct {
        const char *name;
        int64_t *to;
    } numbers[] = {{"offset:", &i->offset}, {"offset0:", &i->offset0}, {"offset1:", &i->offset1}};
    for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
        if (!strncmp(word, numbers[k].name, strlen(numbers[k].name))) {
            *numbers[k].to = strtoll(value, NULL, 0);
            return true;
        }
    return false;
}

static bool bits_modifier_parse(struct instruction *i, const char *word, const char *value)
{
    if (!strncmp(word, "op_sel_hi:", 10))
        i->op_sel_hi = bits_parse(value);
    else if (!strncmp(word, "op_sel:", 7))
        op_sel_parse(i, value);
    else if (!strncmp(word, "neg_lo:", 7))
        i->neg_lo = bits_parse(value);
    else if (!strncmp(word, "neg_hi:", 7))
        i->neg_hi = bits_parse(value);
    else if (!strncmp(word, "row_mask:", 9))
        i->row_mask = (uint8_t)strtol(value, NULL, 0);
    else if (!strncmp(word, "bank_mask:", 10))
        i->bank_mask = (uint8_t)strtol(value, NULL, 0);
    else
        return false;
    return true;
}

static bool sdwa_parse(struct instruction *i, const char *word, const char *value)
{
    const int source = first_source(i);
    if (!strncmp(word, "dst_sel:", 8))
        i->operand[0].part = part_parse(value);
    else if (!strncmp(word, "src0_sel:", 9))
        i->operand[source].part = part_parse(value);
    else if (!strncmp(word, "src1_sel:", 9))
        i->operand[source + 1].part = part_parse(value);
    else if (!strncmp(word, "dst_unused:", 11))
        i->unused = strstr(value, "SEXT")       ? UNUSED_SIGN
                    : strstr(value, "PRESERVE") ? UNUSED_KEPT
                                                : UNUSED_ZERO;
    else
        return false;
    return true;
}

static bool word_parse(struct instruction *i, const char *word)
{
    static const char *const ignored[] = {"", "sc1", "nt", "slc", "dlc", "gds", "lds"};
    static const char *const scales[] = {"", "mul:2", "mul:4", "div:2"};
    for (int k = 1; k < 4; k++)
        if (!strcmp(word, scales[k])) {
            i->output_scale = k;
            return true;
        }
    const bool returns = !strcmp(word, "sc0") || !strcmp(word, "glc");
    const bool fetches = !strcmp(word, "fi:1");
    i->returns |= returns;
    i->fetches_inactive |= fetches;
    i->clamps |= !strcmp(word, "clamp");
    i->bound_control |= !strncmp(word, "bound_ctrl:", 11);
    for (size_t k = 0; k < sizeof ignored / sizeof ignored[0]; k++)
        if (!strcmp(word, ignored[k]))
            return true;
    return returns || fetches || !strcmp(word, "clamp") || !strncmp(word, "bound_ctrl:", 11);
}

static void modifier_parse(struct instruction *i, const char *word)
{
    const char *colon = strchr(word, ':'), *value = colon ? colon + 1 : "";
    if (!dpp_parse(i, word, value) && !number_parse(i, word, value) &&
        !bits_modifier_parse(i, word, value) && !sdwa_parse(i, word, value) && !word_parse(i, word))
        i->unknown = true;
}

/* ---- the line ---- */

static void name_parse(struct instruction *i, const char *name)
{
    static const char *const ends[] = {"_e64_dpp", "_e32", "_e64", "_sdwa", "_dpp"};
    snprintf(i->name, sizeof i->name, "%s", name);
    const size_t length = strlen(i->name);
    for (size_t k = 0; k < sizeof ends / sizeof ends[0]; k++)
        if (length > strlen(ends[k]) && !strcmp(i->name + length - strlen(ends[k]), ends[k])) {
            i->name[length - strlen(ends[k])] = 0;
            return;
        }
}

/* Cuts the text at the first such character outside brackets; returns the text after it, or NULL. */
static char *cut(char *text, char at)
{
    int depth = 0;
    for (; *text; text++) {
        depth += *text == '[' || *text == '(';
        depth -= *text == ']' || *text == ')';
        if (*text == at && !depth) {
            *text = 0;
            return text + 1;
        }
    }
    return NULL;
}

static bool is_modifier(const char *word)
{
    const size_t length = strcspn(word, ":[");
    return word[length] == ':' || !strncmp(word, "sc", 2) || !strcmp(word, "nt");
}

/* "a", " b", " c modifier modifier" */
static void piece_parse(struct instruction *i, char *piece)
{
    char *word = piece + strspn(piece, " "), *rest = cut(word, ' ');
    const bool dpp_alone = !strncmp(word, "row_", 4) || !strncmp(word, "quad_", 5);
    if (is_modifier(word) || dpp_alone)
        modifier_parse(i, word);
    else if (i->count == MOST_OPERANDS || !operand_parse(word, &i->operand[i->count++]))
        i->unknown = true;
    while (rest) {
        word = rest;
        rest = cut(word, ' ');
        modifier_parse(i, word);
    }
}

/* Instructions that have no effect here, and whose operands have their own syntax. */
static bool takes_no_operands(const char *name)
{
    return !strncmp(name, "s_waitcnt", 9) || !strcmp(name, "s_sendmsg") ||
           !strcmp(name, "s_delay_alu");
}

void instruction_parse(struct instruction *i)
{
    char text[sizeof i->text], *rest = text;
    memcpy(text, i->text, sizeof text);
    i->row_mask = i->bank_mask = 0xf;
    i->op_sel_hi = 0xff;
    rest = cut(text, ' ');
    name_parse(i, text);
    gfx11_imply_result(i);
    while (rest && !takes_no_operands(i->name)) {
        char *piece = rest;
        rest = cut(piece, ',');
        piece_parse(i, piece);
    }
    if (i->dpp != DPP_NONE) {
        struct operand *source = &i->operand[first_source(i)];
        i->moved = *source;
        source->index = MOVED;
    }
}
