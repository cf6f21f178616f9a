/* pool_steal.c: where memory has run out: blocks that other streams still use, for a stream that waits for
 * them on the device. */
#include "pool.h"

/* The new user's stream behind one of the old ones, with a wait even where the vendor orders the two: others
 * ask the new one alone. What cannot be ordered is left alone. */
static gg_status wait_for(gg_stream *stream, gg_stream *other, uint64_t ticket, bool all)
{
    if (other->device->backend != stream->device->backend)
        return GG_ERR_UNSUPPORTED;
    if (other == stream || other->gone || (!all && ggi_stream_passed(other, ticket, false)))
        return GG_OK;
    if (!ggi_stream_ownerless(other) && ggi_stream_capturing(other))
        return GG_ERR_UNSUPPORTED;
    return ggi_stream_fence(stream, other, !all);
}

/* Behind the uses that are known, and behind all that its home has: its bare address was used there. */
static gg_status order(gg_memory *memory, gg_stream *stream)
{
    gg_status status = GG_OK;
    for (uint32_t i = 0; i < memory->use_count && !status; i++) {
        const struct ggi_use use = ggi_memory_use(memory, i);
        status = wait_for(stream, use.stream, use.ticket, false);
    }
    if (!status && memory->home && !ggi_stream_ownerless(memory->home))
        status = wait_for(stream, memory->home, 0, true);
    return status;
}

static gg_memory *from_lists(struct ggi_pool *pool, uint32_t size_class, const gg_stream *stream)
{
    gg_memory *memory = NULL;
    for (gg_stream *other = ggi_streams_of(pool->device); other && !memory; other = other->next) {
        if (other == stream)
            continue;
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

struct wish {
    const struct ggi_pool *pool;
    uint32_t size_class;
};

static bool is_wished(const struct ggi_retired *item, const void *what)
{
    const struct wish *wish = what;
    gg_memory *memory = ggi_memory_retired(item);
    return memory && memory->pool == wish->pool && memory->size_class == wish->size_class &&
           !atomic_load(&memory->captured) && !atomic_load(&memory->unknown);
}

static gg_memory *from_retired(struct ggi_pool *pool, uint32_t size_class)
{
    const struct wish wish = {pool, size_class};
    gg_memory *memory = (gg_memory *)ggi_retire_pick(pool->device, is_wished, &wish);
    if (!memory)
        return NULL;
    pthread_mutex_lock(&pool->lock);
    pool->figures.retired_blocks--;
    pool->figures.retired_bytes -= memory->room;
    pthread_mutex_unlock(&pool->lock);
    return memory;
}

static void put_back(struct ggi_pool *pool, gg_memory *memory, bool retired)
{
    pthread_mutex_lock(&pool->lock);
    if (retired) {
        pool->figures.retired_blocks++;
        pool->figures.retired_bytes += memory->room;
    } else {
        ggi_pool_put(pool, memory);
    }
    pthread_mutex_unlock(&pool->lock);
    if (retired)
        ggi_retire(pool->device, &memory->retired);
}

gg_status ggi_pool_steal(struct ggi_pool *pool, size_t nbytes, gg_stream *stream, gg_memory **out)
{
    uint32_t size_class = ggi_class_of(nbytes);
    struct ggi_own own;
    if (pool->direct || size_class == GGI_NO_CLASS || !stream || ggi_stream_capturing(stream))
        return GG_ERR_OUT_OF_MEMORY;
    gg_memory *memory = from_lists(pool, size_class, stream);
    bool retired = !memory;
    if (!memory)
        memory = from_retired(pool, size_class);
    if (!memory)
        return GG_ERR_OUT_OF_MEMORY;
    ggi_own_begin(pool->device, &own);
    gg_status status = order(memory, stream);
    ggi_own_end(pool->device, &own);
    if (status) {
        put_back(pool, memory, retired);
        return GG_ERR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&pool->lock);
    ggi_pool_count_out(pool, nbytes);
    pthread_mutex_unlock(&pool->lock);
    uint64_t ticket = ggi_stream_submitted(stream);
    ggi_pool_forget_uses(memory);
    ggi_pool_hand_out(memory, nbytes, stream, ticket);
    ggi_memory_used(memory, stream, ticket); /* the old uses, for those who wait for this stream's */
    *out = memory;
    return GG_OK;
}
