/* pool.c: blocks that are given out and taken back without a driver call: size classes, lists, slabs. */
#include "pool.h"

#include <stdlib.h>

/* ---- size classes: steps of 256 bytes up to 2 KiB, then eight steps for each doubling ---- */

#define FINE_CLASSES 8u
#define FINE_STEP 256u

uint32_t ggi_class_of(size_t nbytes)
{
    if (nbytes > GGI_POOLED_MAX)
        return GGI_NO_CLASS;
    if (nbytes <= FINE_CLASSES * FINE_STEP)
        return nbytes ? (uint32_t)((nbytes - 1) / FINE_STEP) : 0;
    uint32_t power = 63u - (uint32_t)__builtin_clzll(nbytes - 1); /* 2^power < nbytes */
    uint32_t step = (uint32_t)((nbytes - 1 - ((size_t)1 << power)) >> (power - 3));
    return FINE_CLASSES + (power - 11) * 8 + step;
}

size_t ggi_class_room(uint32_t size_class)
{
    if (size_class < FINE_CLASSES)
        return (size_class + 1) * (size_t)FINE_STEP;
    uint32_t power = 11 + (size_class - FINE_CLASSES) / 8, step = (size_class - FINE_CLASSES) % 8;
    return ((size_t)1 << power) + (((size_t)step + 1) << (power - 3));
}

/* ---- lists, with the pool's lock held ---- */

gg_memory *ggi_bin_pop(struct ggi_bins *bins, uint32_t size_class)
{
    struct ggi_bin *bin = &bins->bin[size_class];
    gg_memory *memory = bin->first;
    if (!memory)
        return NULL;
    bin->first = memory->next_free;
    bins->count--;
    return memory;
}

void ggi_bin_push(struct ggi_bins *bins, gg_memory *memory)
{
    struct ggi_bin *bin = &bins->bin[memory->size_class];
    memory->next_free = bin->first;
    if (!bin->first)
        bin->last = memory;
    bin->first = memory;
    bins->count++;
}

void ggi_bins_splice(struct ggi_bins *to, struct ggi_bins *from)
{
    for (uint32_t i = 0; i < GGI_CLASSES && from->count; i++) {
        struct ggi_bin *bin = &from->bin[i];
        if (!bin->first)
            continue;
        bin->last->next_free = to->bin[i].first;
        if (!to->bin[i].first)
            to->bin[i].last = bin->last;
        to->bin[i].first = bin->first;
        bin->first = NULL;
    }
    to->count += from->count;
    from->count = 0;
}

/* ---- what is known of a block's uses; nobody else has the block ---- */

bool ggi_pool_only_home(gg_memory *memory, bool look)
{
    uint32_t kept = 0;
    bool only = true;
    ggi_memory_take_newest(memory);
    for (uint32_t i = 0; i < memory->use_count; i++) {
        struct ggi_use use = memory->uses[i];
        if (ggi_stream_passed(use.stream, use.ticket, look || use.stream->device != memory->device)) {
            ggi_stream_use_release(use.stream);
            continue;
        }
        only = only && use.stream == memory->home;
        memory->uses[kept++] = use;
    }
    memory->use_count = kept;
    return only;
}

void ggi_pool_forget_uses(gg_memory *memory)
{
    ggi_memory_take_newest(memory);
    for (uint32_t i = 0; i < memory->use_count; i++)
        ggi_stream_use_release(memory->uses[i].stream);
    memory->use_count = 0;
}

/* ---- giving out ---- */

void ggi_pool_count_out(struct ggi_pool *pool, size_t nbytes)
{
    struct gg_pool_stats *figures = &pool->figures;
    figures->allocations++;
    figures->used_blocks++;
    figures->used_bytes += nbytes;
    if (figures->used_bytes > figures->peak_bytes)
        figures->peak_bytes = figures->used_bytes;
}

/* A block's home is the stream that it was last given out for: its bare address may be used there. */
static void move_home(gg_memory *memory, gg_stream *stream)
{
    if (memory->home == stream)
        return;
    if (stream)
        ggi_stream_use_retain(stream);
    if (memory->home)
        ggi_stream_use_release(memory->home);
    memory->home = stream;
}

void ggi_pool_hand_out(gg_memory *memory, size_t nbytes, gg_stream *stream, uint64_t handed)
{
    move_home(memory, stream);
    memory->nbytes = nbytes;
    atomic_store_explicit(&memory->unknown, 0, memory_order_relaxed);
    atomic_store_explicit(&memory->captured, 0, memory_order_relaxed);
    atomic_store_explicit(&memory->fenced, 0, memory_order_relaxed);
    atomic_store_explicit(&memory->handed, handed, memory_order_relaxed);
    atomic_store_explicit(&memory->refs, 1, memory_order_release); /* see ggi_pinned_find */
}

/* With the lock held: the next piece of the slab of that class. */
static gg_memory *carve(struct ggi_pool *pool, uint32_t size_class)
{
    struct ggi_slab *slab = size_class < GGI_CARVED_CLASSES ? pool->slab[size_class] : NULL;
    size_t room = ggi_class_room(size_class);
    if (!slab)
        return NULL;
    gg_memory *memory =
        ggi_memory_new(pool->device, pool->kind, slab->base + slab->carved * room, room);
    if (!memory)
        return NULL;
    memory->pool = pool;
    memory->slab = slab;
    memory->size_class = size_class;
    memory->room = room;
    memory->retired.may_wait = false;
    if (++slab->carved == slab->room_for)
        pool->slab[size_class] = slab->another;
    return memory;
}

/* So often a hit leaves the way to the retire list, which the slow way looks at. */
#define DRAIN_EVERY 64u

/* With the lock held. */
static bool overdue(struct ggi_pool *pool)
{
    if (!ggi_drain_waiting(pool->device) || ++pool->since_drain < DRAIN_EVERY)
        return false;
    pool->since_drain = 0;
    return true;
}

/* With the lock held. *own: it comes from the stream's own list. */
static gg_memory *find(struct ggi_pool *pool, uint32_t size_class, const gg_stream *stream,
                       bool *own)
{
    gg_memory *memory = NULL;
    if (stream)
        memory = ggi_bin_pop(stream->bins, size_class);
    *own = memory;
    if (memory)
        pool->busy_blocks--;
    else
        memory = ggi_bin_pop(&pool->any, size_class);
    if (memory) {
        pool->figures.cached_blocks--;
        pool->figures.cached_bytes -= memory->room;
    } else {
        memory = carve(pool, size_class);
    }
    return memory;
}

/* The point that a stream has reached as far as it is known here: what its work by bare addresses has to
 * have passed before another stream may use the block. A stream without an owner is never asked. */
static uint64_t point_of(gg_stream *stream)
{
    if (ggi_stream_ownerless(stream))
        return atomic_load_explicit(&stream->submitted, memory_order_acquire);
    return ggi_stream_submitted(stream);
}

bool ggi_pool_take(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, gg_memory **out)
{
    uint32_t size_class = ggi_class_of(nbytes);
    bool own = false;
    if (size_class == GGI_NO_CLASS)
        return false;
    pthread_mutex_lock(&pool->lock);
    gg_memory *memory = overdue(pool) ? NULL : find(pool, size_class, stream, &own);
    if (memory)
        ggi_pool_count_out(pool, nbytes);
    pthread_mutex_unlock(&pool->lock);
    if (!memory)
        return false;
    if (!own)
        ggi_pool_forget_uses(memory);
    ggi_pool_hand_out(memory, nbytes, stream, own ? point_of(stream) : 0);
    *out = memory;
    return true;
}

/* ---- taking back ---- */

/* With the lock held: on the list of its home, unless the host looks at the memory at once or that stream
 * is gone, which was seen idle then. */
void ggi_pool_put(struct ggi_pool *pool, gg_memory *memory)
{
    struct gg_pool_stats *figures = &pool->figures;
    gg_stream *home = pool->by_stream ? memory->home : NULL;
    bool busy = home && !home->parted;
    ggi_bin_push(busy ? home->bins : &pool->any, memory);
    pool->busy_blocks += busy;
    figures->cached_blocks++;
    figures->cached_bytes += memory->room;
    if (figures->cached_bytes > figures->keep)
        atomic_store_explicit(&pool->device->over, 1, memory_order_relaxed);
}

bool ggi_pool_give(gg_memory *memory)
{
    struct ggi_pool *pool = memory->pool;
    struct gg_pool_stats *figures = &pool->figures;
    bool free = memory->size_class != GGI_NO_CLASS &&
                !atomic_load_explicit(&memory->unknown, memory_order_relaxed) &&
                !atomic_load_explicit(&memory->captured, memory_order_relaxed) &&
                ggi_pool_only_home(memory, false);
    pthread_mutex_lock(&pool->lock);
    figures->used_blocks--;
    figures->used_bytes -= memory->nbytes;
    if (free) {
        ggi_pool_put(pool, memory);
    } else {
        figures->retired_blocks++;
        figures->retired_bytes += memory->room;
    }
    pthread_mutex_unlock(&pool->lock);
    return free;
}

void ggi_pool_take_back(gg_memory *memory)
{
    struct ggi_pool *pool = memory->pool;
    pthread_mutex_lock(&pool->lock);
    pool->figures.retired_blocks--;
    pool->figures.retired_bytes -= memory->room;
    if (memory->size_class != GGI_NO_CLASS)
        ggi_pool_put(pool, memory);
    else
        pool->figures.held_bytes -= memory->room;
    pthread_mutex_unlock(&pool->lock);
}
