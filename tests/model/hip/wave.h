/* wave.h: the registers of a wave, and the instruction that it runs. */
#ifndef MODEL_WAVE_H
#define MODEL_WAVE_H

#include "model.h"

#include <string.h>

/* LANES: the most that a wave has. A scalar register that holds nothing, as null of gfx11, comes after the others. */
enum { LANES = 64, SCALARS = 130, VECTORS = 512, ACCUMULATORS = 256, MOVED = VECTORS };
enum { REGISTER_VCC = 106, REGISTER_M0 = 124, REGISTER_EXEC = 126, REGISTER_NULL = 128 };
enum { MOST_OPERANDS = 8 };

/* The start of the generic addresses of LDS and of a lane's private memory, as AMD's model of the driver reports them. */
#define SHARED_BASE 0x4000000000000000u
#define PRIVATE_BASE 0x5000000000000000u

enum wave_state { WAVE_RUNS, WAVE_AT_BARRIER, WAVE_ENDED };

struct group {
    const struct gpu *gpu;
    char *lds;
    size_t lds_bytes;
    bool flushes; /* denormals of 32 bits */
};

struct wave {
    struct group *group;
    uint64_t pc;
    uint32_t scalar[SCALARS];
    uint32_t vector[VECTORS + 2][LANES]; /* the last two: operands whose lanes were moved */
    bool scc;
    enum wave_state state;
    unsigned id; /* in its group */
    unsigned lanes; /* 64, or 32: then a mask of lanes has one register, and the upper half of EXEC stays 0 */
    char *private;     /* memory of all its lanes, one after the other */
    size_t lane_bytes; /* of each */
};

/* ---- instructions ---- */

enum operand_kind {
    OPERAND_NONE,
    OPERAND_SCALAR,
    OPERAND_VECTOR,
    OPERAND_INTEGER,
    OPERAND_LITERAL,
    OPERAND_FLOAT,
    OPERAND_OFF
};

/* The part of a register that SDWA and op_sel select. */
enum part { PART_ALL, PART_BYTE0, PART_BYTE1, PART_BYTE2, PART_BYTE3, PART_WORD0, PART_WORD1 };

struct operand {
    enum operand_kind kind;
    int index, words;
    uint64_t bits; /* of an integer or a literal */
    double number; /* of a float */
    bool negative, absolute, sign_extended;
    enum part part;
};

enum unused { UNUSED_ZERO, UNUSED_SIGN, UNUSED_KEPT };
enum value_type {
    TYPE_U16,
    TYPE_I16,
    TYPE_U32,
    TYPE_I32,
    TYPE_U64,
    TYPE_I64,
    TYPE_F16,
    TYPE_F32,
    TYPE_F64
};

enum dpp {
    DPP_NONE,
    DPP_QUAD_PERM,
    DPP_ROW_SHL,
    DPP_ROW_SHR,
    DPP_ROW_ROR,
    DPP_WAVE_SHL,
    DPP_WAVE_ROL,
    DPP_WAVE_SHR,
    DPP_WAVE_ROR,
    DPP_ROW_MIRROR,
    DPP_ROW_HALF_MIRROR,
    DPP_ROW_BCAST,
    DPP_ROW_NEWBCAST,
    DPP_ROW_XMASK,
    DPP_EIGHT
};

struct instruction;
typedef void execute_function(struct wave *, const struct instruction *);
struct atomic_row;

struct instruction {
    uint64_t address, code[2]; /* other code may be loaded at this address later */
    char text[192], name[48];
    int bytes, count;
    struct operand operand[MOST_OPERANDS];
    execute_function *execute, *inner; /* inner: what a DPP instruction runs */
    struct instruction *dual[2];       /* what an instruction that consists of two runs */
    int16_t immediate;
    /* modifiers */
    int64_t offset, offset0, offset1;
    enum unused unused;
    bool returns, clamps, bound_control, fetches_inactive, unknown;
    int output_scale;                          /* 1: times 2, 2: times 4, 3: divided by 2 */
    uint8_t op_sel, op_sel_hi, neg_lo, neg_hi; /* a bit per operand */
    enum dpp dpp;
    int dpp_amount;
    uint8_t row_mask, bank_mask;
    struct operand moved; /* the operand whose lanes DPP moves */
    /* properties derived from the name, once */
    int access_bytes, access_words;
    bool access_signed, access_high, access_half, single; /* of floats of 32 bits */
    unsigned condition;
    enum value_type type;
    const struct atomic_row *atomic;
};

struct instruction_row {
    const char *name;
    execute_function *execute;
    void (*prepare)(struct instruction *); /* NULL: nothing to read from the name */
};

/* Rows by whole name, and by how names begin; a row without a name is the last. */
extern const struct instruction_row scalar_rows[], scalar_family_rows[], branch_rows[],
    vector_rows[], vector_other_rows[], compare_family_rows[], packed_rows[], memory_family_rows[],
    lds_rows[], lds_family_rows[], atomic_family_rows[], gfx11_rows[];

/* The instruction at an address; ends the process if it is unknown. */
const struct instruction *instruction_at(const struct gpu *, uint64_t address);
void instruction_parse(struct instruction *);
/* gfx11.c: gives an instruction of gfx11 the name and operands of the same instruction of gfx9. */
void gfx11_adapt(struct instruction *);
bool gfx11_is_target(void);
/* Adds the destination that the text does not have. */
void gfx11_imply_result(struct instruction *);
bool gfx11_is_dual(const struct instruction *);
/* Separates the texts of the two instructions that one consists of. */
void gfx11_split(const struct instruction *, struct instruction *first, struct instruction *second);
void gfx11_execute_dual(struct wave *, const struct instruction *);
void instruction_find(struct instruction *);
__attribute__((noreturn)) void instruction_fail(const struct instruction *, const char *why);

/* dpp.c: reads operand 1 from other lanes, then runs the inner instruction. */
void dpp_execute(struct wave *, const struct instruction *);
/* compare.c: whether a comparison's result is among those that its condition names. */
enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };
void access_prepare(struct instruction *, const char *type);

/* ---- pairs of scalar registers ---- */

static inline uint64_t scalar_pair(const struct wave *wave, int index)
{
    return wave->scalar[index] | (uint64_t)wave->scalar[index + 1] << 32;
}

static inline void scalar_set_pair(struct wave *wave, int index, uint64_t value)
{
    wave->scalar[index] = (uint32_t)value;
    wave->scalar[index + 1] = (uint32_t)(value >> 32);
}

/* A mask of lanes: VCC, EXEC or another pair; one register if the wave has 32 lanes. */
static inline void mask_write(struct wave *wave, const struct operand *o, uint64_t mask)
{
    wave->scalar[o->index] = (uint32_t)mask;
    if (o->words > 1)
        wave->scalar[o->index + 1] = (uint32_t)(mask >> 32);
}

static inline uint64_t wave_vcc(const struct wave *wave)
{
    return wave->lanes > 32 ? scalar_pair(wave, REGISTER_VCC) : wave->scalar[REGISTER_VCC];
}

static inline uint64_t wave_exec(const struct wave *wave)
{
    return scalar_pair(wave, REGISTER_EXEC);
}

static inline void wave_set_exec(struct wave *wave, uint64_t exec)
{
    scalar_set_pair(wave, REGISTER_EXEC, exec);
}

#define EACH_LANE(wave, lane)                \
    for (int lane = 0; lane < LANES; lane++) \
        if (wave_exec(wave) >> lane & 1)

#endif
