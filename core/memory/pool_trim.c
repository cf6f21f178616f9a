/* pool_trim.c: moves idle blocks to the list for any stream, and back to the driver. */
#include "base/error.h"
#include "base/text.h"
#include "base/sized.h"
#include "memory/pool.h"
#include "memory/uses.h"

#include <stddef.h>

#define LARGER_CLASSES \
    48 /* in which a request also looks for blocks of other streams: up to 64 times its size */
#define SHRINK_MOST 64 /* blocks that are freed before the pool grows */

/* ---- the blocks of streams that are idle ---- */

void ggi_pool_release_bins(gg_stream *stream)
{
    struct ggi_pool *pool = stream->device->pools[0];
    pthread_mutex_lock(&pool->lock);
    stream->bins_released = true;
    ggi_stash_close(pool, stream->bins);
    ggi_bins_splice(pool, &pool->any, stream->bins);
    ggi_bins_unlist(stream->bins);
    pthread_mutex_unlock(&pool->lock);
}

/* Whether all work on the stream has finished, also work that was not counted. */
static bool stream_found_idle(gg_stream *stream)
{
    uint64_t ticket = ggi_stream_is_ownerless(stream) ? atomic_load(&stream->submitted)
                                                      : ggi_stream_counted(stream);
    return ggi_stream_poll_locked(stream, ticket);
}

/* The blocks are off the list during the poll: a block that is released meanwhile may be in use. */
static bool pool_reclaim_stream(struct ggi_pool *pool, gg_stream *stream)
{
    struct ggi_bins taken = {.stream = NULL};
    pthread_mutex_lock(&pool->lock);
    ggi_stash_close(pool, stream->bins);
    const bool any = ggi_bins_splice(pool, &taken, stream->bins);
    pthread_mutex_unlock(&pool->lock);
    if (!any)
        return false;
    bool idle = stream_found_idle(stream);
    pthread_mutex_lock(&pool->lock);
    ggi_bins_splice(pool, idle ? &pool->any : stream->bins, &taken);
    pthread_mutex_unlock(&pool->lock);
    return idle;
}

void ggi_pool_reclaim(struct ggi_pool *pool)
{
    if (!pool->by_stream)
        return;
    for (gg_stream *stream = ggi_device_streams(pool->device); stream; stream = stream->next)
        if (!stream->gone)
            pool_reclaim_stream(pool, stream);
    pthread_mutex_lock(&pool->lock);
    ggi_pool_merge_idle(pool);
    pthread_mutex_unlock(&pool->lock);
}

/* Of one class. True if a block that suffices was moved, or all polls were made. */
static bool reclaim_class(struct ggi_pool *pool, uint32_t size_class, bool suffices,
                          const gg_stream *except, int *polls)
{
    gg_stream *first = NULL, *stream;
    for (; *polls > 0; --*polls) {
        pthread_mutex_lock(&pool->lock);
        stream = ggi_pool_next_lender(pool, size_class);
        pthread_mutex_unlock(&pool->lock);
        if (!stream || stream == first)
            return false;
        if (!first)
            first = stream;
        if (stream != except && pool_reclaim_stream(pool, stream) && suffices)
            return true;
    }
    return true;
}

void ggi_pool_reclaim_class(struct ggi_pool *pool, struct ggi_request request,
                            const gg_stream *except)
{
    const bool larger = pool->splits && !request.of_slab;
    const uint32_t size_class = request.size_class,
                   last = larger ? size_class + LARGER_CLASSES : size_class;
    bool suffices = !larger && size_class < GGI_FIXED_CLASSES; /* others may be too small */
    int polls = GGI_LENDERS;
    for (uint32_t i = size_class; pool->by_stream && i <= last && i < GGI_CLASSES; i++) {
        if (reclaim_class(pool, i, suffices, except, &polls))
            return;
        suffices = true;
    }
}

/* ---- what a trim removes, with the lock held ---- */

/* Blocks from the driver are freed while more than @p keep is cached, blocks of a slab together with it. Pieces are not. */
static bool trim_selects(const struct ggi_pool *pool, const gg_memory *memory, uint64_t keep,
                         bool of_slabs)
{
    if (!memory->slab)
        return !of_slabs && !memory->segment && pool->stats.cached_bytes > keep;
    return of_slabs && memory->slab->trimmed;
}

static void trim_pick(struct ggi_pool *pool, gg_memory *memory, struct ggi_free_link *picked)
{
    ggi_pool_unlist(pool, memory);
    ggi_link_add(picked, memory);
    if (!memory->slab)
        ggi_pool_count_retired(pool, memory->block_size);
}

/* Move the selected blocks of one class to @p picked. */
static void trim_list(struct ggi_pool *pool, uint32_t size_class, uint64_t keep, bool of_slabs,
                      struct ggi_free_link *picked)
{
    struct ggi_bin *bin = &pool->any.bin[size_class];
    struct ggi_free_link *link = bin->blocks.next, *next;
    for (; !ggi_bin_is_empty(bin) && link != &bin->blocks; link = next) {
        next = link->next;
        if (trim_selects(pool, ggi_free_memory(link), keep, of_slabs))
            trim_pick(pool, ggi_free_memory(link), picked);
    }
}

/* The large block that was released first, or NULL. */
static gg_memory *trim_oldest_large(struct ggi_pool *pool)
{
    gg_memory *oldest = NULL;
    for (uint32_t i = GGI_FIXED_CLASSES - 1; i < GGI_CLASSES;
         i++) { /* the first may have some, too */
        struct ggi_bin *bin = &pool->any.bin[i];
        struct ggi_free_link *link = bin->blocks.next;
        for (; !ggi_bin_is_empty(bin) && link != &bin->blocks; link = link->next) {
            gg_memory *memory = ggi_free_memory(link);
            if (ggi_block_is_large(memory) && (!oldest || memory->released < oldest->released))
                oldest = memory;
        }
    }
    return oldest;
}

/* Move the large blocks that were released first to @p picked, until the rest is within its bound. */
static void trim_large(struct ggi_pool *pool, struct ggi_free_link *picked)
{
    gg_memory *memory;
    while (pool->large_bytes > pool->large_kept && (memory = trim_oldest_large(pool)))
        trim_pick(pool, memory, picked);
}

/* ---- before the pool grows ---- */

static gg_memory *shrink_find(struct ggi_bin *bin)
{
    struct ggi_free_link *link = bin->blocks.next;
    if (ggi_bin_is_empty(bin))
        return NULL;
    for (int i = 0; i < GGI_EXAMINED && link != &bin->blocks; i++, link = link->next)
        if (!ggi_free_memory(link)->segment && !ggi_free_memory(link)->slab)
            return ggi_free_memory(link);
    return NULL;
}

/* A whole block of at least that class, or else the largest one; NULL if none is found. */
static gg_memory *shrink_pick(struct ggi_pool *pool, uint32_t size_class)
{
    gg_memory *memory = NULL;
    for (uint32_t i = size_class; i < GGI_CLASSES && !memory; i++)
        memory = shrink_find(&pool->any.bin[i]);
    for (uint32_t i = size_class; i-- > 0 && !memory;)
        memory = shrink_find(&pool->any.bin[i]);
    return memory;
}

static void trim_count_idle(struct ggi_pool *pool)
{
    for (struct ggi_slab *slab = pool->slabs; slab; slab = slab->next)
        slab->idle = 0;
    for (uint32_t i = 0; i < GGI_SLAB_CLASSES; i++) {
        struct ggi_bin *bin = &pool->any.bin[i];
        struct ggi_free_link *link = bin->blocks.next;
        for (; !ggi_bin_is_empty(bin) && link != &bin->blocks; link = link->next)
            if (ggi_free_memory(link)->slab)
                ggi_free_memory(link)->slab->idle++;
    }
}

static void slab_stop_carving(struct ggi_pool *pool, const struct ggi_slab *slab)
{
    struct ggi_slab **at = &pool->slab[slab->size_class];
    while (*at && *at != slab)
        at = &(*at)->next_open;
    if (*at)
        *at = slab->next_open;
}

static struct ggi_slab *trim_slabs(struct ggi_pool *pool, uint64_t keep)
{
    struct ggi_slab **at = &pool->slabs, *slab, *picked = NULL;
    uint64_t cached = pool->stats.cached_bytes;
    while ((slab = *at)) {
        uint64_t bytes = slab->carved * (uint64_t)ggi_size_class_bytes(slab->size_class);
        if (slab->idle < slab->carved || (cached <= keep && keep)) {
            at = &slab->next;
            continue;
        }
        cached -= bytes;
        slab_stop_carving(pool, slab);
        slab->trimmed = true;
        *at = slab->next;
        slab->next = picked;
        picked = slab;
        ggi_pool_count_retired(pool, slab->size);
    }
    return picked;
}

/* ---- without the lock ---- */

/* Slabs are retired last, and only the handles of their blocks are deleted. */
static void trimmed_retire(struct ggi_pool *pool, struct ggi_free_link *blocks,
                           struct ggi_slab *slabs)
{
    for (gg_memory *memory; (memory = ggi_link_take(blocks));) {
        ggi_memory_forget_uses(memory);
        if (memory->slab) {
            if (memory->kind == GG_MEMORY_PINNED)
                ggi_pinned_remove(memory);
            ggi_memory_delete(memory);
        } else {
            memory->size_class = GGI_NO_CLASS;
            memory->retired.may_wait = ggi_pool_free_may_wait(pool);
            ggi_retire(pool->device, &memory->retired);
        }
    }
    for (struct ggi_slab *slab; (slab = slabs);) {
        slabs = slab->next;
        ggi_retire(pool->device, &slab->retired);
    }
}

void ggi_pool_trim(struct ggi_pool *pool, uint64_t keep)
{
    struct ggi_free_link blocks = {&blocks, &blocks};
    struct ggi_slab *slabs = NULL;
    pthread_mutex_lock(&pool->lock);
    trim_large(pool, &blocks);
    if (pool->stats.cached_bytes > keep || !keep) {
        for (uint32_t i = GGI_CLASSES; i-- > 0;)
            trim_list(pool, i, keep, false, &blocks);
        trim_count_idle(pool);
        slabs = trim_slabs(pool, keep);
        for (uint32_t i = 0; slabs && i < GGI_SLAB_CLASSES; i++)
            trim_list(pool, i, keep, true, &blocks);
    }
    pthread_mutex_unlock(&pool->lock);
    trimmed_retire(pool, &blocks, slabs);
}

void ggi_pool_shrink(struct ggi_pool *pool, uint64_t nbytes)
{
    struct ggi_free_link blocks = {&blocks, &blocks};
    uint64_t picked = 0;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < SHRINK_MOST && picked < nbytes; i++) {
        const uint32_t size_class = ggi_size_class_of((size_t)(nbytes - picked));
        gg_memory *memory =
            shrink_pick(pool, size_class < GGI_CLASSES ? size_class : GGI_CLASSES - 1);
        if (!memory)
            break;
        trim_pick(pool, memory, &blocks);
        picked += memory->block_size;
    }
    pthread_mutex_unlock(&pool->lock);
    trimmed_retire(pool, &blocks, NULL);
}

void ggi_pool_trim_now(struct ggi_pool *pool, uint64_t keep)
{
    struct gg_device *device = pool->device;
    struct ggi_internal_scope own;
    ggi_internal_begin(device, &own);
    pthread_mutex_lock(&device->drain_lock);
    if (!atomic_load(&ggi_shutting_down)) {
        ggi_drain_locked(device, GGI_DRAIN_ALL);
        ggi_pool_reclaim(pool);
        ggi_pool_trim(pool, keep);
        ggi_drain_locked(device, GGI_DRAIN_ALL);
    }
    ggi_drain_unlock(device);
    ggi_internal_end(device, &own);
}

void ggi_pools_empty(struct gg_device *device)
{
    for (int i = 0; i < GGI_POOLS; i++) {
        ggi_pool_reclaim(device->pools[i]);
        ggi_pool_reclaim(device->pools[i]); /* a single query may fail */
        ggi_pool_trim(device->pools[i], 0);
    }
}

/* ---- the public calls ---- */

static gg_status pool_of_kind(gg_device *device, enum gg_memory_kind kind, struct ggi_pool **out)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (kind != GG_MEMORY_DEVICE && kind != GG_MEMORY_PINNED)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "memory kind %d has no pool: expected device (%d) or pinned (%d)",
                        (int)kind, GG_MEMORY_DEVICE, GG_MEMORY_PINNED);
    *out = device->pools[kind == GG_MEMORY_PINNED];
    return GG_OK;
}

gg_status gg_pool_trim(gg_device *device, enum gg_memory_kind kind, uint64_t keep)
{
    struct ggi_pool *pool = NULL;
    gg_status status = pool_of_kind(device, kind, &pool);
    if (!status)
        ggi_pool_trim_now(pool, keep);
    return status;
}

gg_status gg_pool_set_limit(gg_device *device, enum gg_memory_kind kind, uint64_t limit)
{
    struct ggi_pool *pool = NULL;
    gg_status status = pool_of_kind(device, kind, &pool);
    if (status)
        return status;
    if (limit && limit < ggi_pool_stats(pool).reserved_bytes)
        ggi_pool_trim_now(pool, 0);
    pthread_mutex_lock(&pool->lock);
    uint64_t held = pool->stats.reserved_bytes;
    bool fits = !limit || held <= limit;
    if (fits)
        pool->stats.limit = limit;
    pthread_mutex_unlock(&pool->lock);
    if (fits)
        return GG_OK;
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "a limit of %s is below the %s that are in use: close memory, or wait for "
                    "the work that "
                    "uses it",
                    ggi_text_size(&(struct ggi_size){0}, limit),
                    ggi_text_size(&(struct ggi_size){0}, held));
}

gg_status gg_pool_set_release_threshold(gg_device *device, enum gg_memory_kind kind, uint64_t keep)
{
    struct ggi_pool *pool = NULL;
    gg_status status = pool_of_kind(device, kind, &pool);
    if (status)
        return status;
    pthread_mutex_lock(&pool->lock);
    pool->stats.release_threshold = keep;
    pool->threshold_set = true;
    pool->large_kept = UINT64_MAX;
    bool over = pool->stats.cached_bytes > keep;
    pthread_mutex_unlock(&pool->lock);
    if (over)
        ggi_pool_trim_now(pool, keep);
    return GG_OK;
}

gg_status gg_pool_stats(gg_device *device, enum gg_memory_kind kind, struct gg_pool_stats *stats)
{
    static const size_t first = GGI_SIZE_TO(struct gg_pool_stats, release_threshold);
    struct ggi_pool *pool = NULL;
    gg_status status = pool_of_kind(device, kind, &pool);
    if (status)
        return status;
    if (!ggi_sized_fits(stats, first))
        return ggi_sized_refuse("gg_pool_stats", "gg_pool_stats", stats, first);
    struct gg_pool_stats full = ggi_pool_stats(pool);
    full.struct_size = sizeof full;
    ggi_sized_write(stats, &full, sizeof full);
    return GG_OK;
}

gg_status gg_device_memory_stats(gg_device *device, struct gg_memory_stats *stats)
{
    static const size_t first = GGI_SIZE_TO(struct gg_memory_stats, retired_bytes);
    struct gg_memory_stats full = {.struct_size = sizeof full};
    gg_status status = ggi_device_check(device);
    if (status)
        return status;
    if (!ggi_sized_fits(stats, first))
        return ggi_sized_refuse("gg_device_memory_stats", "gg_memory_stats", stats, first);
    for (int i = 0; i < GGI_POOLS && atomic_load(&device->impl); i++) {
        const struct gg_pool_stats stats = ggi_pool_stats(device->pools[i]);
        full.blocks += stats.used_blocks;
        full.bytes += stats.used_bytes;
        full.retired_blocks += stats.retired_blocks;
        full.retired_bytes += stats.retired_bytes;
    }
    ggi_sized_write(stats, &full, sizeof full);
    return GG_OK;
}
