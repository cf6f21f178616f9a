/* slots.c: the pinned memory of a lane: near the device, within a budget, given back late. */
#include "staging.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_NODES 1024
#define PREFERRED 1 /* MPOL_PREFERRED */

static _Atomic(size_t) pinned_bytes; /* of all lanes */

/* ---- on which node ---- */

struct policy {
    int mode; /* -1: nothing to be restored */
    unsigned long nodes[MOST_NODES / (8 * sizeof(unsigned long))];
};

/* The driver takes pages by the calling thread's policy. Where the system refuses, pages lie anywhere. */
static void prefer_node(int32_t node, struct policy *before)
{
    struct policy wanted = {PREFERRED, {0}};
    const size_t bits = 8 * sizeof(unsigned long);
    before->mode = -1;
    if (node < 0 || node >= MOST_NODES ||
        syscall(SYS_get_mempolicy, &before->mode, before->nodes, (unsigned long)MOST_NODES, NULL, 0))
        return;
    wanted.nodes[(size_t)node / bits] = 1ul << (size_t)node % bits;
    if (syscall(SYS_set_mempolicy, wanted.mode, wanted.nodes, (unsigned long)MOST_NODES))
        before->mode = -1;
}

static void restore_node(const struct policy *before)
{
    if (before->mode >= 0)
        syscall(SYS_set_mempolicy, before->mode, before->nodes, (unsigned long)MOST_NODES);
}

static int32_t node_of(struct gg_device *device)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    return gg_device_info(device, &info) ? -1 : info.numa_node;
}

/* ---- what is given back ---- */

struct slots {
    struct ggi_retired retired;
    struct gg_device *device;
    void *pointer;
    size_t nbytes;
};

static bool slots_idle(struct ggi_retired *self)
{
    (void)self; /* a lane lets go of them when its last copy is over */
    return true;
}

static void slots_destroy(struct ggi_retired *self)
{
    struct slots *slots = (struct slots *)self;
    struct gg_device *device = slots->device;
    ggi_begin(device, GG_OP_mem_free, NULL, slots->nbytes);
    gg_status status =
        device->ops->mem_free(atomic_load(&device->impl), GG_MEMORY_PINNED, slots->pointer);
    ggi_end(device, GG_OP_mem_free, NULL, slots->nbytes, status);
    atomic_fetch_sub(&pinned_bytes, slots->nbytes);
    free(slots);
}

/* ---- filling ---- */

static bool reserve(size_t nbytes)
{
    size_t now = atomic_load(&pinned_bytes);
    while (now + nbytes <= GGI_STAGE_BUDGET)
        if (atomic_compare_exchange_weak(&pinned_bytes, &now, now + nbytes))
            return true;
    return false;
}

static struct slots *alloc_slots(struct gg_device *device, size_t nbytes)
{
    struct slots *slots = calloc(1, sizeof *slots);
    struct policy before;
    if (!slots || !reserve(nbytes)) {
        free(slots);
        return NULL;
    }
    slots->retired.may_wait = true;
    slots->retired.idle = slots_idle;
    slots->retired.destroy = slots_destroy;
    slots->device = device;
    slots->nbytes = nbytes;
    prefer_node(device->staging->crew.node, &before);
    ggi_begin(device, GG_OP_mem_alloc, NULL, nbytes);
    gg_status status = device->ops->mem_alloc(atomic_load(&device->impl), GG_MEMORY_PINNED, nbytes,
                                              &slots->pointer);
    status = ggi_end(device, GG_OP_mem_alloc, NULL, nbytes, status);
    restore_node(&before);
    if (!status)
        return slots;
    atomic_fetch_sub(&pinned_bytes, nbytes);
    free(slots);
    return NULL;
}

/* Other devices' slots that nobody is using make room. */
static void trim_others(const struct gg_device *device)
{
    for (struct gg_backend *b = ggi_backend_next_open(NULL); b; b = ggi_backend_next_open(b))
        for (int32_t i = 0; i < b->device_count; i++)
            if (&b->devices[i] != device && atomic_load(&b->devices[i].impl) &&
                ggi_usable(&b->devices[i])) {
                ggi_staging_trim(&b->devices[i]);
                ggi_drain(&b->devices[i]);
            }
}

static gg_status make_events(struct gg_device *device, struct ggi_lane *lane)
{
    gg_status status = GG_OK;
    for (unsigned i = 0; !status && i < lane->slots; i++)
        if (!lane->event[i])
            status = ggi_event_take(device, false, &lane->event[i]);
    return status;
}

static gg_status fill(struct gg_device *device, struct ggi_lane *lane)
{
    struct slots *slots = NULL;
    unsigned count = GGI_STAGE_SLOTS;
    device->staging->crew.node = node_of(device);
    for (; !slots && count >= GGI_STAGE_LEAST; count /= 2)
        slots = alloc_slots(device, count * GGI_STAGE_CHUNK);
    if (!slots)
        return GG_NOT_READY;
    lane->memory = &slots->retired;
    lane->slots = (unsigned)(slots->nbytes / GGI_STAGE_CHUNK);
    for (unsigned i = 0; i < lane->slots; i++)
        lane->slot[i] = (char *)slots->pointer + i * GGI_STAGE_CHUNK;
    if (!make_events(device, lane))
        return GG_OK;
    ggi_lane_empty(device, lane);
    return GG_NOT_READY;
}

gg_status ggi_lane_fill(struct gg_device *device, struct ggi_lane *lane)
{
    struct ggi_own own;
    ggi_own_begin(device, &own);
    gg_status status = fill(device, lane);
    if (status) {
        trim_others(device);
        status = fill(device, lane);
    }
    ggi_own_end(device, &own);
    return status;
}

void ggi_lane_empty(struct gg_device *device, struct ggi_lane *lane)
{
    for (unsigned i = 0; i < GGI_STAGE_SLOTS; i++) {
        if (lane->event[i])
            ggi_event_give(device, false, lane->event[i]);
        lane->event[i] = NULL;
    }
    if (lane->memory)
        ggi_retire(device, lane->memory);
    lane->memory = NULL;
}
