/* memory.c: blocks of device and pinned memory: made, wrapped, asked, given back. */
#include "internal.h"
#include "sized.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the end of a block ---- */

static bool memory_idle(struct ggi_retired *self)
{
    gg_memory *memory = (gg_memory *)self;
    return !atomic_load(&memory->captured) && ggi_memory_prune(memory, false);
}

/* The driver still has it, or nothing was allocated. */
static void give_back(gg_memory *memory)
{
    struct gg_device *device = memory->device;
    if (memory->kind == GG_MEMORY_PINNED)
        ggi_pinned_remove(memory);
    if (memory->wrapped) {
        if (memory->release)
            memory->release(memory->owner);
        return;
    }
    ggi_begin(device, GG_OP_mem_free, NULL, memory->nbytes);
    gg_status status =
        device->ops->mem_free(atomic_load(&device->impl), memory->kind, memory->pointer);
    ggi_end(device, GG_OP_mem_free, NULL, memory->nbytes, status);
    atomic_fetch_sub(&device->retired_blocks, 1);
    atomic_fetch_sub(&device->retired_bytes, memory->nbytes);
    if (memory->kind == GG_MEMORY_PINNED)
        atomic_fetch_sub(&device->retired_pinned, memory->nbytes);
}

static void memory_destroy(struct ggi_retired *self)
{
    gg_memory *memory = (gg_memory *)self;
    if (memory->pointer)
        give_back(memory);
    pthread_mutex_destroy(&memory->lock);
    if (memory->uses != memory->few)
        free(memory->uses);
    free(memory);
}

/* ---- making and asking ---- */

static gg_memory *new_memory(gg_device *device, enum gg_memory_kind kind, void *pointer,
                             size_t nbytes)
{
    gg_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    memory->retired.idle = memory_idle;
    memory->retired.destroy = memory_destroy;
    memory->retired.may_wait =
        kind == GG_MEMORY_PINNED || !(device->flags & GG_DEVICE_FREE_NEVER_WAITS);
    atomic_init(&memory->refs, 1);
    memory->device = device;
    memory->kind = kind;
    memory->pointer = pointer;
    memory->nbytes = nbytes;
    memory->uses = memory->few;
    memory->use_room = sizeof memory->few / sizeof memory->few[0];
    pthread_mutex_init(&memory->lock, NULL);
    return memory;
}

static gg_status driver_alloc(gg_device *device, enum gg_memory_kind kind, size_t nbytes, void **out)
{
    struct ggi_own own;
    ggi_relax_begin(device, &own); /* a capture elsewhere must survive the user's allocation too */
    ggi_begin(device, GG_OP_mem_alloc, NULL, nbytes);
    gg_status status = device->ops->mem_alloc(atomic_load(&device->impl), kind, nbytes, out);
    status = ggi_end(device, GG_OP_mem_alloc, NULL, nbytes, status);
    ggi_relax_end(device, &own);
    return status;
}

/* What was released may still be in use by queued work: worth a short wait before giving up. Idle blocks
 * go only once all streams are idle: before that, giving one back may wait for work that needs us. */
static void wait_for_retired(gg_device *device)
{
    const struct timespec pause = {0, 100000};
    uint64_t limit = ggi_now_ns() + 40 * GGI_SLICE_NS;
    while (atomic_load(&device->retired_blocks) && ggi_now_ns() < limit && !ggi_interrupted()) {
        ggi_drain(device);
        nanosleep(&pause, NULL);
    }
}

/* "the device has 1 of 2 bytes free; ", or nothing where the driver does not say. */
static void say_free(gg_device *device, char *out, size_t size)
{
    uint64_t free = 0, total = 0;
    struct ggi_own own;
    ggi_own_begin(device, &own);
    if (device->ops->device_memory_info &&
        !device->ops->device_memory_info(atomic_load(&device->impl), &free, &total))
        snprintf(out, size, "the device has %" PRIu64 " of %" PRIu64 " bytes free; ", free, total);
    ggi_own_end(device, &own);
}

static gg_status out_of_memory(gg_device *device, enum gg_memory_kind kind, size_t nbytes)
{
    char room[96] = "";
    struct gg_error first = {.struct_size = sizeof first};
    gg_last_error(&first);
    say_free(device, room, sizeof room);
    struct gg_error *error = &ggi_thread()->error;
    ggi_fail(GG_ERR_OUT_OF_MEMORY,
             "%s:%d: no %zu bytes of %s memory: %sgpuglue holds %" PRIu64 " bytes in %" PRIu64
             " blocks and %" PRIu64
             " bytes that queued work still uses. Close what is no longer needed, or ask for less",
             device->backend->name, (int)device->ordinal, nbytes,
             kind == GG_MEMORY_PINNED ? "pinned host" : "device", room,
             (uint64_t)atomic_load(&device->bytes), (uint64_t)atomic_load(&device->blocks),
             (uint64_t)atomic_load(&device->retired_bytes));
    memcpy(first.message, error->message, sizeof first.message);
    *error = first;
    return GG_ERR_OUT_OF_MEMORY;
}

static gg_status check_alloc(gg_device *device, enum gg_memory_kind kind, size_t nbytes,
                             const gg_stream *stream)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (kind != GG_MEMORY_DEVICE && kind != GG_MEMORY_PINNED)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "memory kind %d cannot be allocated; device (%d) and "
                        "pinned (%d) can",
                        (int)kind, GG_MEMORY_DEVICE, GG_MEMORY_PINNED);
    if (nbytes > PTRDIFF_MAX)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "%zu bytes are more than an address can reach",
                        nbytes);
    if (stream && stream->device != device)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "the stream belongs to %s:%d, the memory to %s:%d",
                        stream->device->backend->name, (int)stream->device->ordinal,
                        device->backend->name, (int)device->ordinal);
    return GG_OK;
}

gg_status gg_memory_alloc(gg_device *device, enum gg_memory_kind kind, size_t nbytes,
                          gg_stream *stream, gg_memory **out)
{
    void *pointer = NULL;
    gg_status status = check_alloc(device, kind, nbytes, stream);
    if (status)
        return status;
    ggi_drain(device);
    if (nbytes)
        status = driver_alloc(device, kind, nbytes, &pointer);
    if (status == GG_ERR_OUT_OF_MEMORY && atomic_load(&device->retired_blocks)) {
        wait_for_retired(device);
        status = driver_alloc(device, kind, nbytes, &pointer);
    }
    if (status)
        return status == GG_ERR_OUT_OF_MEMORY ? out_of_memory(device, kind, nbytes) : status;
    gg_memory *memory = new_memory(device, kind, pointer, nbytes);
    if (memory && pointer && kind == GG_MEMORY_PINNED && ggi_pinned_add(memory)) {
        free(memory);
        memory = NULL;
    }
    if (!memory) {
        if (pointer)
            device->ops->mem_free(atomic_load(&device->impl), kind, pointer);
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a memory handle");
    }
    if (pointer) {
        atomic_fetch_add(&device->blocks, 1);
        atomic_fetch_add(&device->bytes, nbytes);
    }
    *out = memory;
    return GG_OK;
}

gg_status gg_memory_wrap(gg_device *device, enum gg_memory_kind kind, void *pointer, size_t nbytes,
                         void (*release)(void *), void *owner, gg_memory **out)
{
    gg_status status = check_alloc(device, kind, nbytes, NULL);
    if (status)
        return status;
    if (!pointer && nbytes)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "a NULL pointer cannot hold %zu bytes", nbytes);
    gg_memory *memory = new_memory(device, kind, pointer, nbytes);
    if (memory && pointer && kind == GG_MEMORY_PINNED && ggi_pinned_add(memory)) {
        free(memory);
        memory = NULL;
    }
    if (!memory)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a memory handle");
    memory->wrapped = true;
    memory->retired.may_wait = false;
    memory->release = release;
    memory->owner = owner;
    *out = memory;
    return GG_OK;
}

void gg_memory_retain(gg_memory *memory)
{
    atomic_fetch_add_explicit(&memory->refs, 1, memory_order_relaxed);
}

void gg_memory_release(gg_memory *memory)
{
    if (!memory || atomic_fetch_sub(&memory->refs, 1) != 1)
        return;
    struct gg_device *device = memory->device;
    if (memory->pointer && !memory->wrapped) {
        atomic_fetch_sub(&device->blocks, 1);
        atomic_fetch_sub(&device->bytes, memory->nbytes);
        atomic_fetch_add(&device->retired_blocks, 1);
        atomic_fetch_add(&device->retired_bytes, memory->nbytes);
        if (memory->kind == GG_MEMORY_PINNED)
            atomic_fetch_add(&device->retired_pinned, memory->nbytes);
    }
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

enum gg_memory_kind gg_memory_kind_of(const gg_memory *memory)
{
    return memory->kind;
}

gg_device *gg_memory_device(const gg_memory *memory)
{
    return memory->device;
}

gg_status ggi_check_range(const gg_memory *memory, const char *what, size_t offset, size_t nbytes)
{
    if (offset <= memory->nbytes && nbytes <= memory->nbytes - offset)
        return GG_OK;
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s: %zu bytes from offset %zu on do not fit into the memory's %zu bytes", what,
                    nbytes, offset, memory->nbytes);
}

gg_status gg_device_memory_stats(gg_device *device, struct gg_memory_stats *stats)
{
    static const size_t first = offsetof(struct gg_memory_stats, retired_bytes) + sizeof(uint64_t);
    struct gg_memory_stats full = {.struct_size = sizeof full};
    gg_status status = ggi_check(device);
    if (status)
        return status;
    if (!ggi_sized_fits(stats, first))
        return ggi_sized_refuse("gg_device_memory_stats", "gg_memory_stats", stats, first);
    full.blocks = atomic_load(&device->blocks);
    full.bytes = atomic_load(&device->bytes);
    full.retired_blocks = atomic_load(&device->retired_blocks);
    full.retired_bytes = atomic_load(&device->retired_bytes);
    ggi_sized_write(stats, &full, sizeof full);
    return GG_OK;
}
