/* pool_trim.c: the pool's beginning and end, its figures and limits, and giving back what is idle. */
#include "pool.h"
#include "sized.h"
#include "staging.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- beginning and figures ---- */

bool ggi_free_may_wait(const struct ggi_pool *pool)
{
    return pool->kind != GG_MEMORY_DEVICE || !(pool->device->flags & GG_DEVICE_FREE_NEVER_WAITS);
}

struct ggi_pool *ggi_pool_new(struct gg_device *device, enum gg_memory_kind kind)
{
    struct ggi_pool *pool = calloc(1, sizeof *pool);
    const char *allocator = ggi_host_api()->get_env("GPUGLUE_ALLOCATOR");
    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pool->device = device;
    pool->kind = kind;
    pool->by_stream = kind == GG_MEMORY_DEVICE;
    pool->async = pool->by_stream && allocator && !strcmp(allocator, "async");
    pool->direct =
        kind == GG_MEMORY_MANAGED || pool->async || (allocator && !strcmp(allocator, "direct"));
    if (pool->by_stream && allocator && allocator[0] && strcmp(allocator, "pool") && !pool->direct)
        ggi_log(
            GG_LOG_WARN, "core",
            "GPUGLUE_ALLOCATOR=%s is not known; \"pool\", \"async\" and \"direct\" are. The pool "
            "is used",
            allocator);
    pool->figures.keep = pool->by_stream ? UINT64_MAX : GGI_PINNED_CACHED;
    return pool;
}

struct gg_pool_stats ggi_pool_figures(struct ggi_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct gg_pool_stats figures = pool->figures;
    pthread_mutex_unlock(&pool->lock);
    return figures;
}

/* ---- giving back, with the lock held ---- */

/* What leaves the pool: blocks of their own, slabs, and pieces of those, whose handles end here. */
struct leaving {
    gg_memory *blocks, *pieces;
    struct ggi_slab *slabs;
};

static void uncount(struct ggi_pool *pool, const gg_memory *memory)
{
    pool->any.count--;
    pool->figures.cached_blocks--;
    pool->figures.cached_bytes -= memory->room;
}

/* Take from a list what @p goes says. */
static gg_memory *pick(struct ggi_pool *pool, uint32_t size_class, uint64_t keep,
                       bool (*goes)(const struct ggi_pool *, const gg_memory *, uint64_t),
                       gg_memory *picked)
{
    struct ggi_bin *bin = &pool->any.bin[size_class];
    gg_memory **at = &bin->first, *memory, *last = NULL;
    while ((memory = *at)) {
        if (!goes(pool, memory, keep)) {
            last = memory;
            at = &memory->next_free;
            continue;
        }
        *at = memory->next_free;
        memory->next_free = picked;
        picked = memory;
        uncount(pool, memory);
    }
    bin->last = last;
    return picked;
}

static bool block_goes(const struct ggi_pool *pool, const gg_memory *memory, uint64_t keep)
{
    return !memory->slab && pool->figures.cached_bytes > keep;
}

static bool piece_goes(const struct ggi_pool *pool, const gg_memory *memory, uint64_t keep)
{
    (void)pool;
    (void)keep;
    return memory->slab && memory->slab->leaving;
}

static void count_idle_pieces(struct ggi_pool *pool)
{
    for (struct ggi_slab *slab = pool->slabs; slab; slab = slab->next)
        slab->idle = 0;
    for (uint32_t i = 0; i < GGI_CARVED_CLASSES; i++)
        for (gg_memory *memory = pool->any.bin[i].first; memory; memory = memory->next_free)
            if (memory->slab)
                memory->slab->idle++;
}

static void carve_no_more(struct ggi_pool *pool, const struct ggi_slab *slab)
{
    struct ggi_slab **at = &pool->slab[slab->size_class];
    while (*at && *at != slab)
        at = &(*at)->another;
    if (*at)
        *at = slab->another;
}

static struct ggi_slab *pick_slabs(struct ggi_pool *pool, uint64_t keep)
{
    struct ggi_slab **at = &pool->slabs, *slab, *picked = NULL;
    uint64_t cached = pool->figures.cached_bytes;
    while ((slab = *at)) {
        uint64_t bytes = slab->carved * (uint64_t)ggi_class_room(slab->size_class);
        if (slab->idle < slab->carved || (cached <= keep && keep)) {
            at = &slab->next;
            continue;
        }
        cached -= bytes;
        carve_no_more(pool, slab);
        slab->leaving = true;
        *at = slab->next;
        slab->next = picked;
        picked = slab;
    }
    return picked;
}

/* ---- giving back ---- */

static void retire_block(struct ggi_pool *pool, gg_memory *memory)
{
    ggi_pool_forget_uses(memory); /* they are over */
    memory->size_class = GGI_NO_CLASS;
    memory->retired.may_wait = ggi_free_may_wait(pool);
    ggi_retire(pool->device, &memory->retired);
}

static void delete_piece(gg_memory *memory)
{
    ggi_pool_forget_uses(memory);
    if (memory->kind == GG_MEMORY_PINNED)
        ggi_pinned_remove(memory);
    ggi_memory_delete(memory);
}

static void let_go(struct ggi_pool *pool, struct leaving *leaving)
{
    gg_memory *memory;
    struct ggi_slab *slab;
    while ((memory = leaving->pieces)) {
        leaving->pieces = memory->next_free;
        delete_piece(memory);
    }
    while ((memory = leaving->blocks)) {
        leaving->blocks = memory->next_free;
        retire_block(pool, memory);
    }
    while ((slab = leaving->slabs)) {
        leaving->slabs = slab->next;
        ggi_retire(pool->device, &slab->retired);
    }
}

static void count_retired(struct ggi_pool *pool, const struct leaving *leaving)
{
    struct gg_pool_stats *figures = &pool->figures;
    for (const gg_memory *memory = leaving->blocks; memory; memory = memory->next_free) {
        figures->retired_blocks++;
        figures->retired_bytes += memory->room;
    }
    for (const struct ggi_slab *slab = leaving->slabs; slab; slab = slab->next) {
        figures->retired_blocks++;
        figures->retired_bytes += slab->size;
    }
}

void ggi_pool_shed(struct ggi_pool *pool, uint64_t keep)
{
    struct leaving leaving = {0};
    pthread_mutex_lock(&pool->lock);
    if (pool->figures.cached_bytes > keep || !keep) {
        for (uint32_t i = GGI_CLASSES; i-- > 0;)
            leaving.blocks = pick(pool, i, keep, block_goes, leaving.blocks);
        count_idle_pieces(pool);
        leaving.slabs = pick_slabs(pool, keep);
        for (uint32_t i = 0; leaving.slabs && i < GGI_CARVED_CLASSES; i++)
            leaving.pieces = pick(pool, i, keep, piece_goes, leaving.pieces);
        count_retired(pool, &leaving);
    }
    pthread_mutex_unlock(&pool->lock);
    let_go(pool, &leaving);
}

void ggi_pools_empty(struct gg_device *device)
{
    for (int i = 0; i < GGI_POOLS; i++) {
        ggi_pool_gather(device->pools[i], NULL);
        ggi_pool_gather(device->pools[i], NULL); /* one question that fails says nothing */
        ggi_pool_shed(device->pools[i], 0);
    }
}

/* ---- what the user asks ---- */

static gg_status open_pool(gg_device *device, enum gg_memory_kind kind, struct ggi_pool **out)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (kind != GG_MEMORY_DEVICE && kind != GG_MEMORY_PINNED)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "there is no pool of memory kind %d, only of device (%d) and pinned (%d)",
                        (int)kind, GG_MEMORY_DEVICE, GG_MEMORY_PINNED);
    *out = device->pools[kind == GG_MEMORY_PINNED];
    return GG_OK;
}

/* Idle blocks beyond @p keep bytes; what the driver cannot free without a wait now goes later. */
static void trim(struct ggi_pool *pool, uint64_t keep)
{
    struct gg_device *device = pool->device;
    struct ggi_own own;
    ggi_own_begin(device, &own);
    pthread_mutex_lock(&device->drain_lock);
    if (!atomic_load(&ggi_down)) {
        ggi_drain_locked(device, false);
        ggi_pool_gather(pool, NULL);
        ggi_pool_shed(pool, keep);
        ggi_drain_locked(device, false);
    }
    pthread_mutex_unlock(&device->drain_lock);
    ggi_own_end(device, &own);
}

gg_status gg_pool_trim(gg_device *device, enum gg_memory_kind kind, uint64_t keep)
{
    struct ggi_pool *pool = NULL;
    gg_status status = open_pool(device, kind, &pool);
    if (!status)
        trim(pool, keep);
    return status;
}

gg_status gg_device_trim(gg_device *device)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    ggi_staging_trim(device);
    ggi_results_trim(device);
    for (int i = 0; i < GGI_POOLS; i++)
        trim(device->pools[i], 0);
    return GG_OK;
}

gg_status gg_trim(void)
{
    gg_status status = GG_OK;
    for (struct gg_backend *b = ggi_backend_next_open(NULL); b; b = ggi_backend_next_open(b))
        for (int32_t i = 0; i < b->device_count && !status; i++)
            if (atomic_load(&b->devices[i].impl))
                status = gg_device_trim(&b->devices[i]);
    return status;
}

gg_status gg_pool_set_limit(gg_device *device, enum gg_memory_kind kind, uint64_t limit)
{
    struct ggi_pool *pool = NULL;
    gg_status status = open_pool(device, kind, &pool);
    if (status)
        return status;
    if (limit && limit < ggi_pool_figures(pool).held_bytes)
        trim(pool, 0);
    pthread_mutex_lock(&pool->lock);
    uint64_t held = pool->figures.held_bytes;
    bool fits = !limit || held <= limit;
    if (fits)
        pool->figures.limit = limit;
    pthread_mutex_unlock(&pool->lock);
    if (fits)
        return GG_OK;
    return ggi_fail(
        GG_ERR_INVALID_ARGUMENT,
        "a limit of %llu bytes is below the %llu that are in use: close some memory, or "
        "wait for the work that uses it",
        (unsigned long long)limit, (unsigned long long)held);
}

gg_status gg_pool_set_keep(gg_device *device, enum gg_memory_kind kind, uint64_t keep)
{
    struct ggi_pool *pool = NULL;
    gg_status status = open_pool(device, kind, &pool);
    if (status)
        return status;
    pthread_mutex_lock(&pool->lock);
    pool->figures.keep = keep;
    bool over = pool->figures.cached_bytes > keep;
    pthread_mutex_unlock(&pool->lock);
    if (over)
        trim(pool, keep);
    return GG_OK;
}

gg_status gg_pool_stats(gg_device *device, enum gg_memory_kind kind, struct gg_pool_stats *stats)
{
    static const size_t first = offsetof(struct gg_pool_stats, keep) + sizeof(uint64_t);
    struct ggi_pool *pool = NULL;
    gg_status status = open_pool(device, kind, &pool);
    if (status)
        return status;
    if (!ggi_sized_fits(stats, first))
        return ggi_sized_refuse("gg_pool_stats", "gg_pool_stats", stats, first);
    struct gg_pool_stats full = ggi_pool_figures(pool);
    full.struct_size = sizeof full;
    ggi_sized_write(stats, &full, sizeof full);
    return GG_OK;
}
