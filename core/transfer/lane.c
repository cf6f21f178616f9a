/* lane.c: staging lanes: which thread holds one, and its pinned slots, near the device and within a budget. */
#include "base/condition.h"
#include "base/error.h"
#include "memory/numa.h"
#include "runtime/call.h"
#include "runtime/event.h"
#include "runtime/stream.h"
#include "transfer/staging.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SLOTS_MIN 2u

static _Atomic(size_t) pinned_bytes; /* of all lanes */

/* ---- the slots ---- */

struct slots {
    struct ggi_retired retired;
    struct gg_device *device;
    void *pointer;
    size_t nbytes;
    bool registered; /* mapped here, not allocated by the driver */
};

static void slots_destroy(struct ggi_retired *self)
{
    struct slots *slots = (struct slots *)self;
    struct gg_device *device = slots->device;
    struct gg_device_impl *impl = atomic_load(&device->impl);
    if (!slots->registered)
        GGI_CALL(device, mem_free, NULL, slots->nbytes, (impl, GG_MEMORY_PINNED, slots->pointer));
    else if (!GGI_CALL(device, mem_unregister, NULL, slots->nbytes, (impl, slots->pointer)))
        munmap(slots->pointer, slots->nbytes); /* else the device may still reach it */
    atomic_fetch_sub(&pinned_bytes, slots->nbytes);
    free(slots);
}

static bool budget_reserve(size_t nbytes)
{
    size_t now = atomic_load(&pinned_bytes);
    while (now + nbytes <= GGI_STAGING_BUDGET)
        if (atomic_compare_exchange_weak(&pinned_bytes, &now, now + nbytes))
            return true;
    return false;
}

/* Aligned to huge pages, and not shared with a forked child, whose copy the kernel would make of pinned pages. */
static void *slots_map(size_t nbytes)
{
    char *map = mmap(NULL, nbytes + GGI_HUGE_PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    const size_t below = (size_t)(-(uintptr_t)map & (GGI_HUGE_PAGE - 1));
    if (below)
        munmap(map, below);
    munmap(map + below + nbytes, GGI_HUGE_PAGE - below);
    madvise(map + below, nbytes, MADV_HUGEPAGE);
    madvise(map + below, nbytes, MADV_DONTFORK);
    return map + below;
}

/* Registering huge pages takes a third of the time in which a driver allocates pinned memory, and copies from and
 * to huge pages miss the TLB less. */
static gg_status slots_register(struct gg_device *device, struct slots *slots)
{
    const size_t nbytes = slots->nbytes;
    void *map = gg_device_supports(device, GG_OP_mem_register) ? slots_map(nbytes) : NULL;
    if (!map)
        return GG_ERR_UNSUPPORTED;
    gg_status status =
        GGI_CALL(device, mem_register, NULL, nbytes, (atomic_load(&device->impl), map, nbytes));
    slots->registered = status <= GG_NOT_READY;
    slots->pointer = map;
    if (slots->registered)
        return GG_OK;
    munmap(map, nbytes);
    return status;
}

static struct slots *slots_alloc(struct gg_device *device, size_t nbytes)
{
    struct slots *slots = calloc(1, sizeof *slots);
    if (!slots || !budget_reserve(nbytes)) {
        free(slots);
        return NULL;
    }
    slots->retired.may_wait = true;
    slots->retired.destroy = slots_destroy;
    slots->device = device;
    slots->nbytes = nbytes;
    const bool preferred = ggi_numa_prefer(device->staging->threads.node);
    gg_status status = slots_register(device, slots);
    if (status)
        status = GGI_CALL(device, mem_alloc, NULL, nbytes,
                          (atomic_load(&device->impl), GG_MEMORY_PINNED, nbytes, &slots->pointer));
    ggi_numa_restore(preferred);
    if (!status)
        return slots;
    atomic_fetch_sub(&pinned_bytes, nbytes);
    free(slots);
    return NULL;
}

/* The lane is held, and nothing is in flight. */
static void lane_free_slots(struct gg_device *device, struct ggi_lane *lane)
{
    for (unsigned i = 0; i < GGI_QUEUE_SLOTS; i++) {
        if (lane->event[i])
            ggi_event_recycle(device, false, lane->event[i]);
        lane->event[i] = NULL;
    }
    if (lane->memory)
        ggi_retire(device, lane->memory);
    lane->memory = lane->used = NULL;
}

static gg_status lane_make_events(struct gg_device *device, struct ggi_lane *lane)
{
    gg_status status = GG_OK;
    for (unsigned i = 0; !status && i < lane->queue->slots; i++)
        if (!lane->event[i])
            status = ggi_event_acquire(device, false, &lane->event[i]);
    return status;
}

static gg_status lane_make_slots(struct gg_device *device, struct ggi_lane *lane)
{
    struct slots *slots = NULL;
    unsigned count = GGI_QUEUE_SLOTS;
    device->staging->threads.node = ggi_numa_of_device(device);
    for (; !slots && count >= SLOTS_MIN; count /= 2)
        slots = slots_alloc(device, count * GGI_STAGING_CHUNK);
    if (!slots)
        return GG_NOT_READY;
    lane->memory = &slots->retired;
    lane->queue->slots = (unsigned)(slots->nbytes / GGI_STAGING_CHUNK);
    for (unsigned i = 0; i < lane->queue->slots; i++)
        lane->slot[i] = (char *)slots->pointer + i * GGI_STAGING_CHUNK;
    if (!lane_make_events(device, lane))
        return GG_OK;
    lane_free_slots(device, lane);
    return GG_NOT_READY;
}

/* ---- which thread holds it ---- */

/* With the lock held: wait until the lane may be free, for one slice at most. */
static void lane_wait_slice(struct ggi_lane *lane)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)GGI_SLICE_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&lane->free, &lane->lock, &until);
}

static gg_status lane_hold(struct gg_device *device, struct ggi_lane *lane)
{
    gg_status status = GG_OK;
    pthread_mutex_lock(&lane->lock);
    while (!status && lane->held) {
        lane_wait_slice(lane);
        pthread_mutex_unlock(&lane->lock);
        status = ggi_device_check(device);
        if (!status && ggi_interrupted())
            status = ggi_fail(GG_ERR_INTERRUPTED, "a copy was interrupted");
        pthread_mutex_lock(&lane->lock);
    }
    if (!status)
        lane->held = true;
    pthread_mutex_unlock(&lane->lock);
    return status;
}

static bool lane_try_hold(struct ggi_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    bool got = !lane->held;
    lane->held = true;
    pthread_mutex_unlock(&lane->lock);
    return got;
}

void ggi_lane_release(struct ggi_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    lane->held = false;
    pthread_cond_signal(&lane->free);
    pthread_mutex_unlock(&lane->lock);
}

/* ---- the lanes of a device ---- */

struct ggi_staging *ggi_staging_new(struct gg_device *device)
{
    struct ggi_staging *staging = calloc(1, sizeof *staging);
    if (!staging)
        return NULL;
    staging->threads.backend = device->backend->name;
    for (int i = 0; i < 2; i++) {
        pthread_mutex_init(&staging->lane[i].lock, NULL);
        ggi_condition_init(&staging->lane[i].free);
        staging->lane[i].queue = &staging->threads.queue[i];
    }
    pthread_mutex_init(&staging->threads.lock, NULL);
    return staging;
}

void ggi_staging_trim(struct gg_device *device)
{
    for (int i = 0; i < 2; i++) {
        struct ggi_lane *lane = &device->staging->lane[i];
        if (!lane_try_hold(lane))
            continue; /* a copy is using it */
        lane_free_slots(device, lane);
        ggi_lane_release(lane);
    }
}

void ggi_staging_destroy(struct gg_device *device)
{
    ggi_staging_trim(device);
    ggi_copy_threads_stop(&device->staging->threads);
}

void ggi_staging_wait(struct gg_device *device, uint64_t deadline)
{
    for (int i = 0; device->staging && i < 2; i++) {
        struct ggi_lane *lane = &device->staging->lane[i];
        pthread_mutex_lock(&lane->lock);
        while (lane->held && ggi_now_ns() < deadline)
            lane_wait_slice(lane);
        pthread_mutex_unlock(&lane->lock);
    }
}

/* Free the slots of other devices that no copy is using. */
static void staging_trim_others(const struct gg_device *device)
{
    for (struct gg_backend *b = ggi_backend_next_opened(NULL); b; b = ggi_backend_next_opened(b))
        for (int32_t i = 0; i < b->device_count; i++)
            if (&b->devices[i] != device && atomic_load(&b->devices[i].impl) &&
                ggi_device_usable(&b->devices[i])) {
                ggi_staging_trim(&b->devices[i]);
                ggi_drain_all(&b->devices[i]);
            }
}

static gg_status lane_alloc_slots(struct gg_device *device, struct ggi_lane *lane)
{
    struct ggi_internal_scope own;
    ggi_internal_begin(device, &own);
    gg_status status = lane_make_slots(device, lane);
    if (status) {
        staging_trim_others(device);
        status = lane_make_slots(device, lane);
    }
    ggi_internal_end(device, &own);
    return status;
}

gg_status ggi_lane_acquire(struct gg_device *device, struct ggi_lane *lane)
{
    gg_status status = lane_hold(device, lane);
    if (status)
        return status;
    if (!lane->memory)
        status = lane_alloc_slots(device, lane);
    if (status)
        ggi_lane_release(lane);
    return status;
}
