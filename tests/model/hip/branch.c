/* branch.c: control flow: branches, calls, the lane mask, barriers and fences. */
#include "operand.h"

static void jump(struct wave *w, const struct instruction *i, bool taken)
{
    if (taken)
        w->pc += (uint64_t)((int64_t)i->immediate * 4);
}

#define BRANCH(name, taken)                                       \
    static void name(struct wave *w, const struct instruction *i) \
    {                                                             \
        jump(w, i, taken);                                        \
    }
BRANCH(s_branch, true)
BRANCH(s_cbranch_scc0, !w->scc)
BRANCH(s_cbranch_scc1, w->scc)
BRANCH(s_cbranch_vccz, !wave_vcc(w))
BRANCH(s_cbranch_vccnz, wave_vcc(w) != 0)
BRANCH(s_cbranch_execz, !wave_exec(w))
BRANCH(s_cbranch_execnz, wave_exec(w) != 0)

static void s_getpc_b64(struct wave *w, const struct instruction *i)
{
    write_u64(w, i, 0, w->pc);
}

static void s_setpc_b64(struct wave *w, const struct instruction *i)
{
    w->pc = read_u64(w, i, 0, 0);
}

static void s_swappc_b64(struct wave *w, const struct instruction *i)
{
    const uint64_t to = read_u64(w, i, 1, 0);
    write_u64(w, i, 0, w->pc);
    w->pc = to;
}

static void s_call_b64(struct wave *w, const struct instruction *i)
{
    write_u64(w, i, 0, w->pc);
    jump(w, i, true);
}

/* ---- the lane mask: the old one is saved; SCC is set if any lane is left ---- */

static void set_exec(struct wave *w, const struct instruction *i, uint64_t exec)
{
    wave_set_exec(w, i->operand[0].words > 1 ? exec : (uint32_t)exec);
    w->scc = wave_exec(w) != 0;
}

/* OP(name without the mask's width, mask for the wave): mask is the source, exec the old mask. */
#define SAVEEXEC_ROWS(OP)               \
    OP(s_and_saveexec, mask &exec)      \
    OP(s_or_saveexec, mask | exec)      \
    OP(s_xor_saveexec, mask ^ exec)     \
    OP(s_andn2_saveexec, mask & ~exec)  \
    OP(s_orn2_saveexec, mask | ~exec)   \
    OP(s_nand_saveexec, ~(mask & exec)) \
    OP(s_nor_saveexec, ~(mask | exec))  \
    OP(s_xnor_saveexec, ~(mask ^ exec)) \
    OP(s_andn1_saveexec, ~mask &exec)   \
    OP(s_orn1_saveexec, ~mask | exec)

#define SAVEEXEC(name, value)                                            \
    static void name(struct wave *w, const struct instruction *i)        \
    {                                                                    \
        const uint64_t exec = wave_exec(w), mask = read_u64(w, i, 1, 0); \
        mask_write(w, &i->operand[0], exec);                             \
        set_exec(w, i, value);                                           \
    }
SAVEEXEC_ROWS(SAVEEXEC)

/* … or both get the new one. */
static void s_andn1_wrexec(struct wave *w, const struct instruction *i)
{
    set_exec(w, i, ~read_u64(w, i, 1, 0) & wave_exec(w));
    mask_write(w, &i->operand[0], wave_exec(w));
}

static void s_andn2_wrexec(struct wave *w, const struct instruction *i)
{
    set_exec(w, i, read_u64(w, i, 1, 0) & ~wave_exec(w));
    mask_write(w, &i->operand[0], wave_exec(w));
}

/* ---- ends and waits ---- */

static void s_endpgm(struct wave *w, const struct instruction *i)
{
    (void)i;
    w->state = WAVE_ENDED;
}

static void s_barrier(struct wave *w, const struct instruction *i)
{
    (void)i;
    w->state = WAVE_AT_BARRIER;
}

static void s_trap(struct wave *w, const struct instruction *i)
{
    (void)w;
    instruction_fail(i, "the kernel ran into a trap");
}

/* Memory accesses are in program order, and nothing is cached. */
static void nothing(struct wave *w, const struct instruction *i)
{
    (void)w;
    (void)i;
}

/* ---- the mode of floating-point arithmetic: that of the model is fixed ---- */

/* Of a hardware register, as in the instruction: 6 bits of its number, 5 of the first bit, 5 of the number of bits less 1. */
static void s_setreg_b32(struct wave *w, const struct instruction *i)
{
    const unsigned place = (uint16_t)i->immediate, from = place >> 6 & 31, bits = (place >> 11) + 1;
    const uint32_t mask = 0xffffffffu >> (32 - bits) << from, mode = read_u32(w, i, 1, 0) << from;
    if ((place & 63) != HARDWARE_MODE || mask & ~(uint32_t)MODE_OF_FLOATS ||
        (mode ^ MODE_OF_MODEL) & mask)
        instruction_fail(i, "a mode that the model does not have");
}

static void s_round_mode(struct wave *w, const struct instruction *i)
{
    (void)w;
    if ((i->immediate ^ MODE_OF_MODEL) & 15)
        instruction_fail(i, "a mode that the model does not have");
}

static void s_denorm_mode(struct wave *w, const struct instruction *i)
{
    (void)w;
    if ((i->immediate ^ MODE_OF_MODEL >> 4) & 15)
        instruction_fail(i, "a mode that the model does not have");
}

#define ROW(name)         \
    {                     \
#name, name, NULL \
    }
#define NOTHING(name)        \
    {                        \
#name, nothing, NULL \
    }
#define MASK_ROWS(name, value) {#name "_b32", name, NULL}, {#name "_b64", name, NULL},
const struct instruction_row branch_rows[] = {ROW(s_branch),
                                              ROW(s_cbranch_scc0),
                                              ROW(s_cbranch_scc1),
                                              ROW(s_cbranch_vccz),
                                              ROW(s_cbranch_vccnz),
                                              ROW(s_cbranch_execz),
                                              ROW(s_cbranch_execnz),
                                              ROW(s_getpc_b64),
                                              ROW(s_setpc_b64),
                                              ROW(s_swappc_b64),
                                              ROW(s_call_b64),
                                              SAVEEXEC_ROWS(MASK_ROWS) MASK_ROWS(s_andn1_wrexec, )
                                                  MASK_ROWS(s_andn2_wrexec, ) ROW(s_endpgm),
                                              ROW(s_barrier),
                                              ROW(s_trap),
                                              NOTHING(s_nop),
                                              NOTHING(s_sleep),
                                              NOTHING(s_setprio),
                                              NOTHING(s_sendmsg),
                                              NOTHING(s_waitcnt),
                                              NOTHING(s_icache_inv),
                                              NOTHING(s_dcache_inv),
                                              NOTHING(s_dcache_wb),
                                              ROW(s_setreg_b32),
                                              {"s_setreg_imm32_b32", s_setreg_b32, NULL},
                                              NOTHING(s_inst_prefetch),
                                              NOTHING(s_set_inst_prefetch_distance),
                                              NOTHING(s_clause),
                                              NOTHING(s_delay_alu),
                                              NOTHING(s_waitcnt_vscnt),
                                              NOTHING(s_waitcnt_depctr),
                                              NOTHING(s_wait_idle),
                                              ROW(s_denorm_mode),
                                              ROW(s_round_mode),
                                              NOTHING(buffer_gl0_inv),
                                              NOTHING(buffer_gl1_inv),
                                              NOTHING(s_wakeup),
                                              NOTHING(s_incperflevel),
                                              NOTHING(s_decperflevel),
                                              NOTHING(buffer_inv),
                                              NOTHING(buffer_wbl2),
                                              {NULL, NULL, NULL}};
