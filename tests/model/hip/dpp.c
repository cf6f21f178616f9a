/* dpp.c: data-parallel primitives: instructions whose first source comes from other lanes. Rows have 16 lanes. */
#include "operand.h"

enum { ROW_LANES = 16, NO_LANE = -1 };

static int within_row(int lane, int from)
{
    return from / ROW_LANES == lane / ROW_LANES && from >= 0 ? from : NO_LANE;
}

static int within_wave(int from)
{
    return from >= 0 && from < LANES ? from : NO_LANE;
}

/* The broadcast of a row's last lane reaches the next row, that of lane 31 the upper half. */
static int broadcast(int lane, int amount)
{
    if (amount == 31)
        return lane >= 32 ? 31 : NO_LANE;
    return lane >= ROW_LANES ? lane / ROW_LANES * ROW_LANES - 1 : NO_LANE;
}

/* The lane that a lane reads, or NO_LANE. */
static int source_lane(const struct instruction *i, int lane)
{
    const int row = lane & ~(ROW_LANES - 1), amount = i->dpp_amount;
    switch (i->dpp) {
    case DPP_QUAD_PERM:
        return (lane & ~3) | (amount >> 2 * (lane & 3) & 3);
    case DPP_ROW_SHL:
        return within_row(lane, lane + amount);
    case DPP_ROW_SHR:
        return within_row(lane, lane - amount);
    case DPP_ROW_ROR:
        return row | ((lane - amount) & (ROW_LANES - 1));
    case DPP_WAVE_SHL:
        return within_wave(lane + 1);
    case DPP_WAVE_SHR:
        return within_wave(lane - 1);
    case DPP_WAVE_ROL:
        return (lane + 1) % LANES;
    case DPP_WAVE_ROR:
        return (lane + LANES - 1) % LANES;
    case DPP_ROW_MIRROR:
        return row | (ROW_LANES - 1 - (lane & (ROW_LANES - 1)));
    case DPP_ROW_HALF_MIRROR:
        return (lane & ~7) | (7 - (lane & 7));
    case DPP_ROW_BCAST:
        return broadcast(lane, amount);
    case DPP_ROW_XMASK:
        return lane ^ amount;
    case DPP_EIGHT:
        return (lane & ~7) | (amount >> 3 * (lane & 7) & 7);
    default:
        return row | amount;
    }
}

static bool masked_out(const struct instruction *i, int lane)
{
    return !(i->row_mask >> lane / ROW_LANES & 1) || !(i->bank_mask >> lane % ROW_LANES / 4 & 1);
}

/* Fills the moved operand; returns whether the lane is written. A lane without a source reads 0 with bound_ctrl, and
 * otherwise keeps its destination. */
static bool move_lane(struct wave *w, const struct instruction *i, int lane)
{
    const int from = source_lane(i, lane);
    const bool readable = from != NO_LANE && (i->fetches_inactive || wave_exec(w) >> from & 1);
    for (int word = 0; word < i->moved.words; word++)
        w->vector[MOVED + word][lane] = readable ? register_read(w, &i->moved, word, from) : 0;
    return (readable || i->bound_control) && !masked_out(i, lane);
}

void dpp_execute(struct wave *w, const struct instruction *i)
{
    const uint64_t exec = wave_exec(w);
    uint64_t written = 0;
    EACH_LANE(w, lane) written |= (uint64_t)move_lane(w, i, lane) << lane;
    wave_set_exec(w, written);
    i->inner(w, i);
    if (wave_exec(w) == written) /* else it was a comparison that sets the mask itself */
        wave_set_exec(w, exec);
}
