/* memory.c: handles of memory blocks: references, and destruction once the device has finished with them. */
#include "base/error.h"
#include "memory/pool.h"
#include "memory/uses.h"

#include <stdlib.h>

/* ---- blocks that unknown streams use: after the release they wait for a round of the device's epoch ---- */

static uint64_t memory_held(const gg_memory *memory)
{
    return memory->pool ? memory->block_size : memory->nbytes;
}

__attribute__((noinline)) static void memory_enter_epoch(gg_memory *memory)
{
    struct ggi_device_epoch *epoch = &memory->device->epoch;
    atomic_fetch_add(&epoch->waiting, 1);
    atomic_fetch_add(&epoch->held, memory_held(memory));
    atomic_store(&memory->untracked, atomic_load(&epoch->round) + 1);
}

static bool memory_epoch_passed(const gg_memory *memory)
{
    return atomic_load(&memory->device->epoch.done) >= atomic_load(&memory->untracked);
}

void ggi_memory_leave_epoch(gg_memory *memory)
{
    if (!atomic_exchange(&memory->untracked, 0))
        return;
    atomic_fetch_sub(&memory->device->epoch.waiting, 1);
    atomic_fetch_sub(&memory->device->epoch.held, memory_held(memory));
}

/* With the lock of the whole held. */
static bool memory_find_use(gg_memory *memory, const gg_stream *ignored, struct ggi_use *out)
{
    gg_memory *whole = ggi_memory_whole(memory);
    for (uint32_t i = 0; i < whole->use_count; i++) {
        *out = ggi_memory_use(whole, i);
        if (out->stream != ignored && out->stream->device == memory->device)
            return true;
    }
    return false;
}

/* A part of pinned memory has no uses of its own. It gets this one, as other threads may remove that of the whole. */
bool ggi_memory_wait_for_use(gg_memory *memory, const gg_stream *ignored)
{
    gg_memory *whole = ggi_memory_whole(memory);
    struct ggi_use use;
    if (memory != whole)
        ggi_memory_forget_uses(memory);
    pthread_mutex_lock(&whole->lock);
    const bool found = memory_find_use(memory, ignored, &use);
    if (found && memory != whole) {
        ggi_stream_use_retain(use.stream);
        memory->uses[memory->use_count++] = use;
    }
    pthread_mutex_unlock(&whole->lock);
    if (found) {
        memory->retired.after = use.stream;
        memory->retired.ticket = use.ticket;
    }
    return false;
}

static bool memory_idle(struct ggi_retired *self)
{
    gg_memory *memory = (gg_memory *)self;
    self->never = atomic_load(&memory->captured);
    self->unknown = atomic_load(&memory->untracked) && !memory_epoch_passed(memory);
    if (self->never || self->unknown)
        return false;
    if (memory->backing->idle)
        return memory->backing->idle(memory);
    return ggi_memory_prune(memory, false) || ggi_memory_wait_for_use(memory, NULL);
}

void ggi_memory_delete(gg_memory *memory)
{
    ggi_memory_forget_uses(memory); /* an async block may be freed before its stream is done */
    pthread_mutex_destroy(&memory->lock);
    if (memory->uses != memory->inline_uses)
        free(memory->uses);
    if (memory->alloc_stream)
        ggi_stream_use_release(memory->alloc_stream);
    free(memory);
}

static void memory_destroy(struct ggi_retired *self)
{
    gg_memory *memory = (gg_memory *)self;
    ggi_memory_leave_epoch(memory);
    if (memory->waits)
        atomic_fetch_sub_explicit(&memory->device->others_waiting, 1, memory_order_relaxed);
    if (memory->backing->free && !memory->backing->free(memory))
        return;
    if (memory->release)
        memory->release(memory->owner);
    gg_memory_release(memory->parent);
    ggi_memory_delete(memory);
}

gg_memory *ggi_memory_retired(const struct ggi_retired *item)
{
    return item->destroy == memory_destroy ? (gg_memory *)(uintptr_t)item : NULL;
}

gg_memory *ggi_memory_new_handle(gg_device *device, enum gg_memory_kind kind, void *pointer,
                                 size_t nbytes)
{
    static const struct ggi_backing none = {NULL, NULL};
    gg_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    memory->retired.idle = memory_idle;
    memory->retired.destroy = memory_destroy;
    memory->backing = &none;
    memory->device = device;
    memory->kind = kind;
    memory->pointer = pointer;
    memory->nbytes = nbytes;
    memory->size_class = GGI_NO_CLASS;
    memory->uses = memory->inline_uses;
    memory->use_capacity = sizeof memory->inline_uses / sizeof memory->inline_uses[0];
    pthread_mutex_init(&memory->lock, NULL);
    atomic_init(&memory->refs, 0);
    return memory;
}

gg_status ggi_memory_no_handle(void)
{
    return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a memory handle");
}

gg_status ggi_memory_wrapped(gg_memory *memory, void (*release)(void *), void *owner,
                             gg_memory **out)
{
    memory->wrapped = true;
    memory->release = release;
    memory->owner = owner;
    atomic_store(&memory->refs, 1);
    *out = memory;
    return GG_OK;
}

void gg_memory_retain(gg_memory *memory)
{
    atomic_fetch_add_explicit(&memory->refs, 1, memory_order_relaxed);
}

/* After the last release: all work that the sharing streams have now uses the memory. A stream that is destroyed
 * was idle. */
__attribute__((noinline)) static void memory_end_sharing(gg_memory *memory)
{
    for (int i = 0; i < GGI_SHARED && memory->shared[i]; i++) {
        gg_stream *stream = memory->shared[i];
        memory->shared[i] = NULL;
        if (ggi_stream_try_pin(stream)) {
            ggi_memory_used(memory, stream, ggi_stream_submitted(stream));
            gg_stream_release(stream);
        }
        ggi_stream_use_release(stream);
    }
}

/* Unused wrapped memory that is destroyed without a driver call does not wait for a drain. */
static bool memory_can_destroy(gg_memory *memory)
{
    return memory->wrapped && !memory->retired.may_wait && !memory->use_count &&
           (!memory->parent || ggi_memory_prune(memory->parent, false)) &&
           !atomic_load(&memory->captured) && !atomic_load(&memory->untracked) &&
           ggi_device_usable(memory->device);
}

void gg_memory_release(gg_memory *memory)
{
    if (!memory || atomic_fetch_sub(&memory->refs, 1) != 1)
        return;
    struct gg_device *device = memory->device;
    if (atomic_load_explicit(&device->generation, memory_order_relaxed) !=
        atomic_load_explicit(&ggi_generation, memory_order_relaxed))
        return; /* from the parent process, whose locks may be held for ever */
    if (memory->shared[0])
        memory_end_sharing(memory);
    if (memory_can_destroy(memory)) {
        memory_destroy(&memory->retired);
        return;
    }
    if (atomic_load_explicit(&memory->untracked, memory_order_relaxed))
        memory_enter_epoch(memory);
    if (memory->pool && ggi_pool_free(memory))
        return;
    memory->retired.known = ggi_block_knows_use(memory);
    memory->retired.polled = !memory->retired.known && ggi_memory_has_peer_use(memory);
    memory->waits = !memory->pool;
    if (memory->waits)
        atomic_fetch_add_explicit(&device->others_waiting, 1, memory_order_relaxed);
    ggi_retire(device, &memory->retired);
}

void *gg_memory_pointer(const gg_memory *memory)
{
    return memory->pointer;
}

size_t gg_memory_size(const gg_memory *memory)
{
    return memory->nbytes;
}

enum gg_memory_kind gg_memory_get_kind(const gg_memory *memory)
{
    return memory->kind;
}

gg_device *gg_memory_device(const gg_memory *memory)
{
    return memory->device;
}

gg_status ggi_memory_refuse_request(const gg_device *device, enum gg_memory_kind kind,
                                    size_t nbytes, const gg_stream *stream)
{
    if (kind != GG_MEMORY_DEVICE && kind != GG_MEMORY_PINNED && kind != GG_MEMORY_MANAGED)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "memory kind %d cannot be allocated; device (%d), pinned (%d) and managed "
                        "(%d) can",
                        (int)kind, GG_MEMORY_DEVICE, GG_MEMORY_PINNED, GG_MEMORY_MANAGED);
    if (nbytes > PTRDIFF_MAX)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "%zu bytes exceed the address space", nbytes);
    return ggi_fail(GG_ERR_INVALID_ARGUMENT, "the stream belongs to %s:%d, the memory to %s:%d",
                    stream->device->backend->name, (int)stream->device->ordinal,
                    device->backend->name, (int)device->ordinal);
}

gg_status ggi_memory_check_range(const gg_memory *memory, const char *what, size_t offset,
                                 size_t nbytes)
{
    if (offset <= memory->nbytes && nbytes <= memory->nbytes - offset)
        return GG_OK;
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s: %zu bytes from offset %zu do not fit into the memory's %zu bytes", what,
                    nbytes, offset, memory->nbytes);
}
