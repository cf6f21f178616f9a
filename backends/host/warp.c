/* warp.c: the warps of a block: lanes that wait for each other until all have made the same call.
 *
 * As CUDA has it since Volta, each lane runs on its own: what a mask names must come, except lanes that have ended. A warp of
 * which no lane waits costs nothing, and a block without such calls has no warps at all. */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>

struct warp {
    uint32_t ended; /* lanes; those beyond the block too */
    uint32_t waiting;
    struct host_lane *lanes[GG_HOST_WARP]; /* of those that wait */
};

struct host_warps {
    struct host_lanes *ready;
    uint32_t threads, count;
    struct warp warps[];
};

static uint32_t lane_bit(const struct host_lane *lane)
{
    return 1u << lane->index % GG_HOST_WARP;
}

static uint32_t first_lane(uint32_t lanes)
{
    return (uint32_t)__builtin_ctz(lanes);
}

struct host_warps *host_warps_new(uint32_t threads, struct host_lanes *ready)
{
    const uint32_t count = (threads + GG_HOST_WARP - 1) / GG_HOST_WARP;
    struct host_warps *warps = calloc(1, sizeof *warps + count * sizeof *warps->warps);
    if (!warps)
        return NULL;
    warps->ready = ready;
    warps->threads = threads;
    warps->count = count;
    host_warps_begin(warps);
    return warps;
}

void host_warps_begin(struct host_warps *warps)
{
    const uint32_t rest = warps->threads % GG_HOST_WARP;
    for (uint32_t i = 0; i < warps->count; i++)
        warps->warps[i].ended = 0;
    if (rest)
        warps->warps[warps->count - 1].ended = UINT32_MAX << rest;
}

static bool lanes_meet(const struct host_lane *a, const struct host_lane *b)
{
    return a->mask == b->mask && a->operation == b->operation && a->site == b->site;
}

/* Of the lanes @p among: those that wait where @p lane does. */
static uint32_t warp_meeting(const struct warp *warp, const struct host_lane *lane, uint32_t among)
{
    uint32_t found = 0;
    for (uint32_t rest = among & warp->waiting; rest; rest &= rest - 1)
        if (lanes_meet(warp->lanes[first_lane(rest)], lane))
            found |= rest & -rest;
    return found;
}

/* The operation of @p lanes, which have all come. */
static void warp_run(struct host_warps *warps, struct warp *warp, uint32_t lanes, char *failure)
{
    const struct gg_host_operation *operation = warp->lanes[first_lane(lanes)]->operation;
    void *argument[GG_HOST_WARP] = {0};
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        argument[first_lane(rest)] = warp->lanes[first_lane(rest)]->argument;
    warp->waiting &= ~lanes;
    if (operation->run)
        operation->run(argument, lanes, failure, HOST_FAILURE_SIZE);
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        host_lanes_append(warps->ready, warp->lanes[first_lane(rest)]);
}

/* Whether all lanes have come for which the waiting lane @p lane waits. The last lanes come last, as a rule. */
static bool warp_is_complete(const struct warp *warp, const struct host_lane *lane)
{
    const uint32_t needed = lane->mask & ~warp->ended;
    return !lane->site && !(needed & ~warp->waiting) && warp_meeting(warp, lane, needed) == needed;
}

void host_warps_call(struct host_warps *warps, struct host_lane *lane, char *failure)
{
    const uint32_t number = lane->index / GG_HOST_WARP, bit = lane_bit(lane);
    struct warp *warp = &warps->warps[number];
    if (!lane->site && !(lane->mask & bit)) {
        snprintf(failure, HOST_FAILURE_SIZE,
                 "lane %u of warp %u calls %s with mask 0x%08x, which does not name this lane",
                 first_lane(bit), number, lane->operation->name, lane->mask);
        return;
    }
    warp->lanes[first_lane(bit)] = lane;
    warp->waiting |= bit;
    if (warp_is_complete(warp, lane))
        warp_run(warps, warp, lane->mask & ~warp->ended, failure);
}

void host_warps_end(struct host_warps *warps, uint32_t index, char *failure)
{
    struct warp *warp = &warps->warps[index / GG_HOST_WARP];
    warp->ended |= 1u << index % GG_HOST_WARP;
    for (uint32_t rest = warp->waiting; rest; rest &= rest - 1) {
        const struct host_lane *lane = warp->lanes[first_lane(rest)];
        if ((rest & -rest & warp->waiting) && warp_is_complete(warp, lane))
            warp_run(warps, warp, lane->mask & ~warp->ended, failure);
    }
}

/* ---- no thread can go on ---- */

static void warp_release_sites(struct host_warps *warps, struct warp *warp, char *failure)
{
    for (uint32_t rest = warp->waiting; rest; rest &= rest - 1) {
        const struct host_lane *lane = warp->lanes[first_lane(rest)];
        if ((rest & -rest & warp->waiting) && lane->site)
            warp_run(warps, warp, warp_meeting(warp, lane, warp->waiting), failure);
    }
}

/* Where a lane is that does not come. */
static void lane_describe(const struct warp *warp, uint32_t number, char *out, size_t size)
{
    const struct host_lane *lane = warp->lanes[number];
    if (warp->waiting & 1u << number)
        snprintf(out, size, "calls %s with mask 0x%08x", lane->operation->name, lane->mask);
    else
        snprintf(out, size, "waits at a barrier of the block");
}

static void warp_explain(const struct warp *warp, uint32_t number, char *failure)
{
    const struct host_lane *lane = warp->lanes[first_lane(warp->waiting)];
    const uint32_t here = warp_meeting(warp, lane, warp->waiting);
    const uint32_t missing = lane->mask & ~warp->ended & ~here;
    char where[96];
    lane_describe(warp, first_lane(missing), where, sizeof where);
    snprintf(failure, HOST_FAILURE_SIZE,
             "in warp %u the lanes 0x%08x wait in %s with mask 0x%08x for lane %u, which %s: all "
             "lanes that a mask names must make the same call",
             number, here, lane->operation->name, lane->mask, first_lane(missing), where);
}

void host_warps_stalled(struct host_warps *warps, char *failure)
{
    for (uint32_t i = 0; i < warps->count; i++)
        warp_release_sites(warps, &warps->warps[i], failure);
    for (uint32_t i = 0; i < warps->count && !warps->ready->first; i++)
        if (warps->warps[i].waiting) {
            warp_explain(&warps->warps[i], i, failure);
            return;
        }
}
