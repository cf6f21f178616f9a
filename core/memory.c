/* memory.c: blocks of device and pinned memory: made, wrapped, asked, given back. */
#include "pool.h"
#include "sized.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the end of a block ---- */

/* What no list keeps, and whose end does not wait, may have work on its home that nobody counted: by its bare
 * address. With drain_lock held, so that the stream does not go meanwhile. */
static bool home_is_done(gg_memory *memory)
{
    gg_stream *home = memory->home;
    if (memory->retired.may_wait || !home || home->gone || ggi_stream_ownerless(home))
        return true;
    if (!memory->last)
        memory->last = ggi_stream_submitted(home);
    return ggi_stream_passed(home, memory->last, true);
}

static bool memory_idle(struct ggi_retired *self)
{
    gg_memory *memory = (gg_memory *)self;
    if (atomic_load(&memory->captured) ||
        (atomic_load(&memory->unknown) && !ggi_quarantine_passed(memory)))
        return false;
    if (memory->pool && (memory->size_class != GGI_NO_CLASS || memory->pool->async))
        return ggi_pool_only_home(memory, false);
    return ggi_memory_prune(memory, false) && (!memory->pool || home_is_done(memory));
}

/* A stream that is gone was idle: any other will do. */
static void free_async(struct gg_device *device, void *pointer, size_t nbytes, gg_stream *stream)
{
    gg_stream *on = stream && !stream->gone ? stream : device->default_stream;
    ggi_begin(device, GG_OP_mem_free_async, on, nbytes);
    gg_status status = device->ops->mem_free_async(on->impl, pointer);
    ggi_end(device, GG_OP_mem_free_async, on, nbytes, status);
}

static void free_now(struct ggi_pool *pool, void *pointer, size_t nbytes)
{
    struct gg_device *device = pool->device;
    ggi_begin(device, GG_OP_mem_free, NULL, nbytes);
    gg_status status = device->ops->mem_free(atomic_load(&device->impl), pool->kind, pointer);
    ggi_end(device, GG_OP_mem_free, NULL, nbytes, status);
}

void ggi_driver_free(struct ggi_pool *pool, void *pointer, size_t nbytes, gg_stream *stream)
{
    if (pool->async)
        free_async(pool->device, pointer, nbytes, stream);
    else
        free_now(pool, pointer, nbytes);
    pthread_mutex_lock(&pool->lock);
    pool->figures.driver_calls++;
    pthread_mutex_unlock(&pool->lock);
}

void ggi_memory_delete(gg_memory *memory)
{
    pthread_mutex_destroy(&memory->lock);
    if (memory->uses != memory->few)
        free(memory->uses);
    if (memory->home)
        ggi_stream_use_release(memory->home);
    free(memory);
}

/* A piece of a slab, or what the pool keeps, goes on a list; the rest to whom it belongs. */
static void memory_destroy(struct ggi_retired *self)
{
    gg_memory *memory = (gg_memory *)self;
    bool kept = memory->pool && memory->size_class != GGI_NO_CLASS;
    ggi_quarantine_leave(memory);
    if (memory->pool && !kept)
        ggi_driver_free(memory->pool, memory->pointer, memory->room, memory->home);
    if (memory->pool)
        ggi_pool_take_back(memory);
    if (kept)
        return;
    if (memory->registered && !ggi_unregister(memory))
        return; /* the driver takes its pages for locked: they stay whose they are, for good */
    if (memory->import)
        ggi_import_close(memory);
    if (memory->pointer && memory->kind != GG_MEMORY_DEVICE && !memory->within)
        ggi_pinned_remove(memory);
    if (memory->wrapped && memory->release)
        memory->release(memory->owner);
    gg_memory_release(memory->within);
    ggi_memory_delete(memory);
}

gg_memory *ggi_memory_retired(const struct ggi_retired *item)
{
    return item->destroy == memory_destroy ? (gg_memory *)(uintptr_t)item : NULL;
}

/* ---- making and asking ---- */

gg_memory *ggi_memory_blank(gg_device *device, enum gg_memory_kind kind, void *pointer,
                            size_t nbytes)
{
    gg_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    memory->retired.idle = memory_idle;
    memory->retired.destroy = memory_destroy;
    memory->device = device;
    memory->kind = kind;
    memory->pointer = pointer;
    memory->nbytes = nbytes;
    memory->size_class = GGI_NO_CLASS;
    memory->uses = memory->few;
    memory->use_room = sizeof memory->few / sizeof memory->few[0];
    pthread_mutex_init(&memory->lock, NULL);
    atomic_init(&memory->refs, 0);
    return memory;
}

gg_memory *ggi_memory_new(gg_device *device, enum gg_memory_kind kind, void *pointer, size_t nbytes)
{
    gg_memory *memory = ggi_memory_blank(device, kind, pointer, nbytes);
    if (memory && pointer && kind != GG_MEMORY_DEVICE && ggi_pinned_add(memory)) {
        ggi_memory_delete(memory);
        return NULL;
    }
    return memory;
}

static gg_status no_handle(void)
{
    return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a memory handle");
}

/* With the lock held: whether the pool may take that much from the driver; it is counted then. */
static bool within_limit(struct ggi_pool *pool, size_t nbytes)
{
    struct gg_pool_stats *figures = &pool->figures;
    if (figures->limit &&
        (figures->held_bytes > figures->limit || nbytes > figures->limit - figures->held_bytes))
        return false;
    figures->held_bytes += nbytes;
    figures->driver_calls++;
    return true;
}

/* What the driver did not give was never held. */
static void count_given(struct ggi_pool *pool, size_t nbytes, bool given)
{
    struct gg_pool_stats *figures = &pool->figures;
    pthread_mutex_lock(&pool->lock);
    if (!given)
        figures->held_bytes -= nbytes;
    else if (figures->held_bytes > figures->held_peak)
        figures->held_peak = figures->held_bytes;
    pthread_mutex_unlock(&pool->lock);
}

static gg_status alloc_async(struct gg_device *device, size_t nbytes, gg_stream *stream, void **out)
{
    if (!gg_device_supports(device, GG_OP_mem_alloc_async) || !device->ops->mem_free_async)
        return ggi_fail(
            GG_ERR_UNSUPPORTED,
            "GPUGLUE_ALLOCATOR=async: %s:%d has no pool of its own; take pool or direct",
            device->backend->name, (int)device->ordinal);
    if (ggi_stream_captures(stream))
        return ggi_fail(
            GG_ERR_UNSUPPORTED,
            "stream is capturing: memory that the driver allocates there would belong to "
            "the graph; allocate before the capture begins");
    ggi_begin(device, GG_OP_mem_alloc_async, stream, nbytes);
    gg_status status = device->ops->mem_alloc_async(stream->impl, nbytes, out);
    return ggi_end(device, GG_OP_mem_alloc_async, stream, nbytes, status);
}

static gg_status alloc_now(struct ggi_pool *pool, size_t nbytes, void **out)
{
    struct gg_device *device = pool->device;
    ggi_begin(device, GG_OP_mem_alloc, NULL, nbytes);
    gg_status status = device->ops->mem_alloc(atomic_load(&device->impl), pool->kind, nbytes, out);
    return ggi_end(device, GG_OP_mem_alloc, NULL, nbytes, status);
}

gg_status ggi_driver_alloc(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, void **out)
{
    struct ggi_own own;
    pthread_mutex_lock(&pool->lock);
    bool may = within_limit(pool, nbytes);
    pthread_mutex_unlock(&pool->lock);
    if (!may)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "the pool's limit");
    ggi_relax_begin(pool->device, &own); /* a capture elsewhere must survive the allocation */
    gg_status status =
        pool->async ? alloc_async(pool->device, nbytes, stream, out) : alloc_now(pool, nbytes, out);
    ggi_relax_end(pool->device, &own);
    count_given(pool, nbytes, !status);
    return status;
}

static gg_status check_alloc(gg_device *device, enum gg_memory_kind kind, size_t nbytes,
                             const gg_stream *stream)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (kind != GG_MEMORY_DEVICE && kind != GG_MEMORY_PINNED && kind != GG_MEMORY_MANAGED)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "memory kind %d cannot be allocated; device (%d), pinned (%d) and managed "
                        "(%d) can",
                        (int)kind, GG_MEMORY_DEVICE, GG_MEMORY_PINNED, GG_MEMORY_MANAGED);
    if (nbytes > PTRDIFF_MAX)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "%zu bytes are more than an address can reach",
                        nbytes);
    if (stream && stream->device != device)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "the stream belongs to %s:%d, the memory to %s:%d",
                        stream->device->backend->name, (int)stream->device->ordinal,
                        device->backend->name, (int)device->ordinal);
    return GG_OK;
}

/* The pool it comes from and the stream it is for: the current one if none was given. */
static struct ggi_pool *pool_of(gg_device *device, enum gg_memory_kind kind, gg_stream **stream)
{
    bool complete;
    if (kind != GG_MEMORY_DEVICE)
        *stream = NULL;
    else if (!*stream)
        ggi_implicit_stream(device, stream, &complete);
    return device->pools[kind == GG_MEMORY_DEVICE ? 0 : kind == GG_MEMORY_PINNED ? 1 : 2];
}

gg_status gg_memory_try_alloc(gg_device *device, enum gg_memory_kind kind, size_t nbytes,
                              gg_stream *stream, gg_memory **out)
{
    gg_status status = check_alloc(device, kind, nbytes, stream);
    if (status)
        return status;
    struct ggi_pool *pool = pool_of(device, kind, &stream);
    bool pooled = nbytes && !(pool->by_stream && ggi_allocator_set());
    return pooled && ggi_pool_take(pool, nbytes, stream, out) ? GG_OK : GG_NOT_READY;
}

static gg_status alloc_nothing(gg_device *device, enum gg_memory_kind kind, gg_memory **out)
{
    gg_memory *memory = ggi_memory_new(device, kind, NULL, 0);
    if (!memory)
        return no_handle();
    atomic_store(&memory->refs, 1);
    *out = memory;
    return GG_OK;
}

gg_status gg_memory_alloc(gg_device *device, enum gg_memory_kind kind, size_t nbytes,
                          gg_stream *stream, gg_memory **out)
{
    gg_status status = check_alloc(device, kind, nbytes, stream);
    if (status)
        return status;
    if (!nbytes)
        return alloc_nothing(device, kind, out);
    struct ggi_pool *pool = pool_of(device, kind, &stream);
    if (pool->by_stream && ggi_allocator_set())
        return ggi_allocator_alloc(device, nbytes, stream, out);
    return ggi_pool_take(pool, nbytes, stream, out) ? GG_OK
                                                    : ggi_pool_alloc(pool, nbytes, stream, out);
}

/* A part of pinned memory of ours stays out of the list, where it would hide the rest, and the whole has
 * its uses: one address is then found, and waited for, in one place. */
static gg_memory *new_wrapped(gg_device *device, enum gg_memory_kind kind, void *pointer,
                              size_t nbytes)
{
    size_t offset = 0;
    gg_memory *within =
        nbytes && kind != GG_MEMORY_DEVICE ? ggi_pinned_find(pointer, nbytes, &offset) : NULL;
    if (!within)
        return ggi_memory_new(device, kind, pointer, nbytes);
    gg_memory *memory = ggi_memory_blank(device, kind, pointer, nbytes);
    if (memory)
        memory->within = within;
    else
        gg_memory_release(within);
    return memory;
}

gg_status gg_memory_wrap(gg_device *device, enum gg_memory_kind kind, void *pointer, size_t nbytes,
                         void (*release)(void *), void *owner, gg_memory **out)
{
    gg_status status = check_alloc(device, kind, nbytes, NULL);
    if (status)
        return status;
    if (!pointer && nbytes)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "a NULL pointer cannot hold %zu bytes", nbytes);
    gg_memory *memory = new_wrapped(device, kind, pointer, nbytes);
    if (!memory)
        return no_handle();
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

/* Somebody else's memory that nothing ever used, and whose end calls no driver, need not wait for a drain. */
static bool needs_no_list(gg_memory *memory)
{
    return memory->wrapped && !memory->retired.may_wait && !memory->use_count &&
           (!memory->within || ggi_memory_prune(memory->within, false)) &&
           !atomic_load(&memory->captured) && !atomic_load(&memory->unknown) &&
           ggi_usable(memory->device);
}

void gg_memory_release(gg_memory *memory)
{
    if (!memory || atomic_fetch_sub(&memory->refs, 1) != 1)
        return;
    struct gg_device *device = memory->device;
    if (atomic_load_explicit(&device->generation, memory_order_relaxed) !=
        atomic_load_explicit(&ggi_generation, memory_order_relaxed))
        return; /* of the parent of this process; what locks there are may be held for ever */
    if (needs_no_list(memory)) {
        memory_destroy(&memory->retired);
        return;
    }
    if (atomic_load_explicit(&memory->unknown, memory_order_relaxed))
        ggi_quarantine_enter(memory);
    if (!memory->pool || !ggi_pool_give(memory))
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
    for (int i = 0; i < GGI_POOLS && atomic_load(&device->impl); i++) {
        const struct gg_pool_stats figures = ggi_pool_figures(device->pools[i]);
        full.blocks += figures.used_blocks;
        full.bytes += figures.used_bytes;
        full.retired_blocks += figures.retired_blocks;
        full.retired_bytes += figures.retired_bytes;
    }
    ggi_sized_write(stats, &full, sizeof full);
    return GG_OK;
}
