/* pool_grow.c: what an allocation does where no list has a block: look who is idle, ask the driver, and
 * where that has nothing, take from streams that are busy, give back, and ask once more. */
#include "pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLAB_UNIT ((size_t)2 << 20)
#define SLAB_PIECES 8u /* at least, in a slab */

/* ---- blocks of other streams ---- */

void ggi_pool_part(gg_stream *stream)
{
    struct ggi_pool *pool = stream->device->pools[0];
    pthread_mutex_lock(&pool->lock);
    pool->busy_blocks -= stream->bins->count;
    ggi_bins_splice(&pool->any, stream->bins);
    stream->parted = true;
    pthread_mutex_unlock(&pool->lock);
}

/* Whether it has done all that anybody queued until now, counted or not. */
static bool seen_idle(gg_stream *stream)
{
    uint64_t ticket = ggi_stream_ownerless(stream) ? atomic_load(&stream->submitted)
                                                   : ggi_stream_submitted(stream);
    return ggi_stream_passed(stream, ticket, true);
}

/* Its blocks are off its list while it is asked: what comes meanwhile may have been used since. */
static void gather_from(struct ggi_pool *pool, gg_stream *stream)
{
    struct ggi_bins taken = {0};
    pthread_mutex_lock(&pool->lock);
    ggi_bins_splice(&taken, stream->bins);
    pthread_mutex_unlock(&pool->lock);
    if (!taken.count)
        return;
    uint64_t count = taken.count;
    bool idle = seen_idle(stream);
    pthread_mutex_lock(&pool->lock);
    ggi_bins_splice(idle ? &pool->any : stream->bins, &taken);
    if (idle)
        pool->busy_blocks -= count;
    pthread_mutex_unlock(&pool->lock);
}

void ggi_pool_gather(struct ggi_pool *pool, const gg_stream *except)
{
    if (!pool->by_stream)
        return;
    for (gg_stream *stream = ggi_streams_of(pool->device); stream; stream = stream->next)
        if (stream != except && !stream->gone)
            gather_from(pool, stream);
}

/* A free block of a stream that the vendor keeps in order with this one; *lender: that stream. One without an
 * owner may be gone, and could not be waited for. */
static gg_memory *borrow(struct ggi_pool *pool, uint32_t size_class, gg_stream *stream,
                         gg_stream **lender)
{
    gg_memory *memory = NULL;
    for (gg_stream *other = ggi_streams_of(pool->device); other && !memory; other = other->next) {
        if (other == stream || ggi_stream_ownerless(other) ||
            !ggi_stream_ordered_anyway(stream, other))
            continue;
        *lender = other;
        pthread_mutex_lock(&pool->lock);
        memory = ggi_bin_pop(other->bins, size_class);
        if (memory) {
            pool->busy_blocks--;
            pool->figures.cached_blocks--;
            pool->figures.cached_bytes -= memory->room;
        }
        pthread_mutex_unlock(&pool->lock);
    }
    return memory;
}

/* Streams that the vendor keeps in order with this one lend their blocks. A third one asks the borrower
 * alone, which answers for the lender only with a wait of its own in it. */
static bool take_ordered(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, gg_memory **out)
{
    gg_stream *lender = NULL;
    if (!stream || ggi_stream_capturing(stream))
        return false;
    gg_memory *memory = borrow(pool, ggi_class_of(nbytes), stream, &lender);
    if (!memory)
        return false;
    bool behind = !ggi_stream_capturing(lender) && !ggi_stream_fence(stream, lender, false);
    pthread_mutex_lock(&pool->lock);
    if (behind)
        ggi_pool_count_out(pool, nbytes);
    else
        ggi_pool_put(pool, memory);
    pthread_mutex_unlock(&pool->lock);
    if (!behind)
        return false;
    ggi_pool_hand_out(memory, nbytes, stream, ggi_stream_submitted(stream));
    *out = memory;
    return true;
}

/* With drain_lock held: all that needs no more memory and no wait. */
static bool look_around(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, gg_memory **out)
{
    struct ggi_own own;
    if (pool->direct || ggi_class_of(nbytes) == GGI_NO_CLASS)
        return false;
    ggi_own_begin(pool->device, &own);
    ggi_pool_gather(pool, stream);
    bool found = ggi_pool_take(pool, nbytes, stream, out) || take_ordered(pool, nbytes, stream, out);
    ggi_own_end(pool->device, &own);
    return found;
}

/* ---- memory from the driver ---- */

static gg_status no_host_memory(struct ggi_pool *pool, void *pointer, size_t nbytes)
{
    ggi_driver_free(pool, pointer, nbytes, NULL);
    pthread_mutex_lock(&pool->lock);
    pool->figures.held_bytes -= nbytes;
    pthread_mutex_unlock(&pool->lock);
    return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a memory handle");
}

static void destroy_slab(struct ggi_retired *self)
{
    struct ggi_slab *slab = (struct ggi_slab *)self;
    struct ggi_pool *pool = slab->pool;
    ggi_driver_free(pool, slab->base, slab->size, NULL);
    pthread_mutex_lock(&pool->lock);
    pool->figures.retired_blocks--;
    pool->figures.retired_bytes -= slab->size;
    pool->figures.held_bytes -= slab->size;
    pthread_mutex_unlock(&pool->lock);
    free(slab);
}

static bool slab_idle(struct ggi_retired *self)
{
    (void)self; /* all its pieces were idle when it was retired */
    return true;
}

static struct ggi_slab *new_slab(struct ggi_pool *pool, uint32_t size_class)
{
    struct ggi_slab *slab = calloc(1, sizeof *slab);
    size_t room = ggi_class_room(size_class);
    if (!slab)
        return NULL;
    slab->retired.idle = slab_idle;
    slab->retired.destroy = destroy_slab;
    slab->retired.may_wait = ggi_free_may_wait(pool);
    slab->pool = pool;
    slab->size_class = size_class;
    slab->size = (SLAB_PIECES * room + SLAB_UNIT - 1) / SLAB_UNIT * SLAB_UNIT;
    slab->room_for = (uint32_t)(slab->size / room);
    return slab;
}

/* A slab of the class; the allocation then takes its first piece. */
static gg_status add_slab(struct ggi_pool *pool, uint32_t size_class)
{
    struct ggi_slab *slab = new_slab(pool, size_class);
    void *base = NULL;
    if (!slab)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a slab");
    gg_status status = ggi_driver_alloc(pool, slab->size, NULL, &base);
    if (status) {
        free(slab);
        return status;
    }
    slab->base = base;
    pthread_mutex_lock(&pool->lock);
    slab->another = pool->slab[size_class]; /* another thread was here, too */
    pool->slab[size_class] = slab;
    slab->next = pool->slabs;
    pool->slabs = slab;
    pthread_mutex_unlock(&pool->lock);
    return GG_OK;
}

static gg_status alloc_block(struct ggi_pool *pool, size_t nbytes, uint32_t size_class,
                             gg_stream *stream, gg_memory **out)
{
    size_t room = size_class == GGI_NO_CLASS ? nbytes : ggi_class_room(size_class);
    void *pointer = NULL;
    gg_status status = ggi_driver_alloc(pool, room, stream, &pointer);
    if (status)
        return status;
    gg_memory *memory = ggi_memory_new(pool->device, pool->kind, pointer, room);
    if (!memory)
        return no_host_memory(pool, pointer, room);
    memory->pool = pool;
    memory->room = room;
    memory->size_class = size_class;
    memory->retired.may_wait = size_class == GGI_NO_CLASS && !pool->async && ggi_free_may_wait(pool);
    pthread_mutex_lock(&pool->lock);
    ggi_pool_count_out(pool, nbytes);
    pthread_mutex_unlock(&pool->lock);
    /* What the vendor's pool gives is there once the stream has come so far. */
    ggi_pool_hand_out(memory, nbytes, stream, pool->async ? ggi_stream_submitted(stream) : 0);
    *out = memory;
    return GG_OK;
}

static gg_status alloc_rounded(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                               gg_memory **out)
{
    uint32_t size_class = pool->direct ? GGI_NO_CLASS : ggi_class_of(nbytes);
    return alloc_block(pool, nbytes, size_class, stream, out);
}

/* Small ones by the slab; where there is no room for that, alone. */
static gg_status grow(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, gg_memory **out)
{
    if (nbytes <= GGI_CARVED_MAX && !pool->direct) {
        gg_status status = add_slab(pool, ggi_class_of(nbytes));
        if (!status && ggi_pool_take(pool, nbytes, stream, out))
            return GG_OK;
        if (status && status != GG_ERR_OUT_OF_MEMORY)
            return status;
    }
    return alloc_rounded(pool, nbytes, stream, out);
}

/* ---- no more memory ---- */

static bool anything_busy(struct ggi_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    bool any = pool->busy_blocks || pool->figures.retired_blocks;
    pthread_mutex_unlock(&pool->lock);
    return any;
}

/* With drain_lock held: what is idle goes back to the driver, once all streams are idle: before that, giving
 * it back may wait for work that needs us. */
static bool give_back(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, gg_memory **out)
{
    struct ggi_own own;
    ggi_own_begin(pool->device, &own);
    ggi_drain_locked(pool->device, false);
    bool found = look_around(pool, nbytes, stream, out);
    if (!found) {
        ggi_pool_gather(pool, NULL);
        ggi_pool_shed(pool, 0);
        ggi_drain_locked(pool->device, false);
    }
    ggi_own_end(pool->device, &own);
    return found;
}

/* More than the device will ever have, or than the limit allows: nothing to give back would help. */
static bool hopeless(struct ggi_pool *pool, size_t nbytes)
{
    const struct gg_pool_stats figures = ggi_pool_figures(pool);
    struct gg_device_info info = {.struct_size = sizeof info};
    if (figures.limit && nbytes > figures.limit)
        return true;
    ggi_quiet(1);
    gg_status status = gg_device_info(pool->device, &info);
    ggi_quiet(-1);
    return !status && pool->kind == GG_MEMORY_DEVICE && info.total_memory &&
           nbytes > info.total_memory;
}

static uint64_t bytes_held(struct ggi_pool *pool)
{
    return ggi_pool_figures(pool).held_bytes;
}

/* What was released may still be in use by queued work: worth a short wait, which can be interrupted. The
 * driver is asked again whenever it got something back, and at the end. */
static gg_status scrape(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, gg_memory **out)
{
    const struct timespec pause = {0, 100000};
    struct gg_device *device = pool->device;
    uint64_t limit = ggi_now_ns() + 40 * GGI_SLICE_NS;
    bool last = hopeless(pool, nbytes);
    gg_status status = GG_ERR_OUT_OF_MEMORY;
    while (!last && status == GG_ERR_OUT_OF_MEMORY) {
        uint64_t held = bytes_held(pool);
        last = !anything_busy(pool) || ggi_now_ns() > limit;
        if (ggi_interrupted())
            return ggi_fail(GG_ERR_INTERRUPTED, "the wait for memory was interrupted");
        pthread_mutex_lock(&device->drain_lock);
        const bool down = atomic_load(&ggi_down);
        if (!down)
            status = ggi_pool_steal(pool, nbytes, stream, out);
        bool found = !down && (!status || give_back(pool, nbytes, stream, out));
        pthread_mutex_unlock(&device->drain_lock);
        if (found || down)
            return found ? GG_OK : ggi_refuse(device);
        if (last || bytes_held(pool) < held)
            status = alloc_rounded(pool, nbytes, stream, out);
        if (status == GG_ERR_OUT_OF_MEMORY && last) /* what its class adds may be what is missing */
            status = alloc_block(pool, nbytes, GGI_NO_CLASS, stream, out);
        if (status == GG_ERR_OUT_OF_MEMORY && !last)
            nanosleep(&pause, NULL);
    }
    return status;
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

static void say_limit(const struct gg_pool_stats *figures, char *out, size_t size)
{
    if (figures->limit)
        snprintf(out, size, ", and the pool's limit is %" PRIu64, figures->limit);
}

static gg_status out_of_memory(struct ggi_pool *pool, size_t nbytes)
{
    struct gg_device *device = pool->device;
    const struct gg_pool_stats figures = ggi_pool_figures(pool);
    char room[96] = "", limit[64] = "";
    struct gg_error first = {.struct_size = sizeof first};
    gg_last_error(&first);
    say_free(device, room, sizeof room);
    say_limit(&figures, limit, sizeof limit);
    struct gg_error *error = &ggi_thread()->error;
    ggi_fail(GG_ERR_OUT_OF_MEMORY,
             "%s:%d: no %zu bytes of %s memory: %sgpuglue holds %" PRIu64 " (at most %" PRIu64
             " so far, %" PRIu64 " calls of the driver%s): %" PRIu64 " bytes in %" PRIu64
             " blocks are in use, %" PRIu64 " are free in blocks that did not fit, and %" PRIu64
             " were released and are still used by queued work. Close what is no longer needed, or "
             "ask for less",
             device->backend->name, (int)device->ordinal, nbytes,
             pool->kind == GG_MEMORY_PINNED    ? "pinned host"
             : pool->kind == GG_MEMORY_MANAGED ? "managed"
                                               : "device",
             room, figures.held_bytes, figures.held_peak, figures.driver_calls, limit,
             figures.used_bytes, figures.used_blocks, figures.cached_bytes, figures.retired_bytes);
    memcpy(first.message, error->message, sizeof first.message);
    *error = first;
    return GG_ERR_OUT_OF_MEMORY;
}

gg_status ggi_pool_alloc(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, gg_memory **out)
{
    struct gg_device *device = pool->device;
    gg_status status = GG_OK;
    bool found = false;
    pthread_mutex_lock(&device->drain_lock);
    if (atomic_load(&ggi_down))
        status = ggi_refuse(device);
    else if (ggi_drain_waiting(device))
        ggi_drain_locked(device, false);
    if (!status)
        found = look_around(pool, nbytes, stream, out);
    pthread_mutex_unlock(&device->drain_lock);
    if (!status && !found)
        status = grow(pool, nbytes, stream, out);
    if (status == GG_ERR_OUT_OF_MEMORY)
        status = scrape(pool, nbytes, stream, out);
    return status == GG_ERR_OUT_OF_MEMORY ? out_of_memory(pool, nbytes) : status;
}
