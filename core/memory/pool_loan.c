/* pool_loan.c: free blocks of streams that are busy, for which the stream of an allocation waits on the device. */
#include "memory/pool.h"
#include "memory/uses.h"

gg_memory *ggi_pool_first_reference(gg_memory *memory, size_t nbytes, gg_stream *stream,
                                    uint64_t ready_ticket)
{
    pthread_mutex_lock(&memory->pool->lock);
    ggi_pool_count_alloc(memory->pool, nbytes);
    pthread_mutex_unlock(&memory->pool->lock);
    ggi_pool_prepare(memory, nbytes, stream, ready_ticket);
    return memory;
}

/* A stream without an owner may be destroyed, and then no other can wait for it. */
static bool pool_may_borrow(const gg_stream *stream, const gg_stream *other)
{
    return !ggi_stream_is_ownerless(other) && ggi_stream_implicitly_ordered(stream, other);
}

/* A free block of another stream, *lender; @p ordered_only: which the driver orders with @p stream. The order in which
 * ggi_pool_reclaim_class polls the streams stays the same: otherwise it might skip the same ones each time. */
static gg_memory *pool_pop_other(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                                 bool ordered_only, gg_stream **lender)
{
    const struct ggi_request request = ggi_pool_request(pool, nbytes);
    gg_memory *memory = NULL;
    gg_stream *other;
    struct ggi_bin *at = NULL;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; !memory && (i < GGI_LENDERS || !ordered_only); i++) {
        other = ggi_pool_lender_after(pool, request.size_class, &at);
        if (!other)
            break;
        if (other == stream || (ordered_only && !pool_may_borrow(stream, other)))
            continue;
        *lender = other;
        memory = ggi_pool_pop(pool, other, request);
    }
    pthread_mutex_unlock(&pool->lock);
    return memory;
}

/* The explicit wait is for a third stream, which will wait for @p stream only. */
bool ggi_pool_borrow(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                     struct ggi_pool_loan *loan)
{
    gg_stream *lender = NULL;
    if (!stream || ggi_stream_capturing(stream))
        return false;
    gg_memory *memory = pool_pop_other(pool, nbytes, stream, true, &lender);
    if (!memory)
        return false;
    gg_stream_retain(lender); /* from a use to a reference; drain_lock keeps its native stream */
    *loan = (struct ggi_pool_loan){.memory = memory, .lender = lender};
    return true;
}

/* ---- blocks that other streams still use ---- */

/* Explicit even where the driver orders the streams, as in ggi_pool_borrow. Fails if that is impossible. A stream that is destroyed
 * was idle. */
static gg_status steal_wait_for(gg_stream *stream, gg_stream *other, uint64_t ticket, bool all)
{
    if (other->device->backend != stream->device->backend)
        return GG_ERR_UNSUPPORTED;
    if (other == stream || (!all && ggi_stream_is_complete(other, ticket, false)) ||
        !ggi_stream_try_pin(other))
        return GG_OK;
    const gg_status status = ggi_stream_fence_uncaptured(stream, other, !all);
    gg_stream_release(other);
    return status;
}

/* Wait for the recorded uses, and for all work on alloc_stream, which may use the raw address. */
static gg_status steal_wait(gg_memory *memory, gg_stream *stream)
{
    gg_status status = GG_OK;
    for (uint32_t i = 0; i < memory->use_count && !status; i++) {
        const struct ggi_use use = ggi_memory_use(memory, i);
        status = steal_wait_for(stream, use.stream, use.ticket, false);
    }
    if (!status && memory->alloc_stream && !ggi_stream_is_ownerless(memory->alloc_stream))
        status = steal_wait_for(stream, memory->alloc_stream, 0, true);
    return status;
}

struct steal_request {
    const struct ggi_pool *pool;
    struct ggi_request request;
};

static bool steal_fits(const struct ggi_retired *item, const void *what)
{
    const struct steal_request *request = what;
    gg_memory *memory = ggi_memory_retired(item);
    return memory && memory->pool == request->pool &&
           memory->size_class == request->request.size_class &&
           ggi_block_suits(memory, &request->request) && !atomic_load(&memory->captured) &&
           !atomic_load(&memory->untracked);
}

static gg_memory *steal_retired(struct ggi_pool *pool, size_t nbytes)
{
    const struct steal_request request = {pool, ggi_pool_request(pool, nbytes)};
    if (!ggi_pool_stats(pool).retired_blocks)
        return NULL;
    ggi_retire_flatten(pool->device);
    gg_memory *memory = (gg_memory *)ggi_retire_pick(pool->device, steal_fits, &request);
    if (!memory)
        return NULL;
    memory->retired.known = false;
    pthread_mutex_lock(&pool->lock);
    ggi_pool_uncount_retired(pool, memory->block_size);
    pthread_mutex_unlock(&pool->lock);
    return memory;
}

bool ggi_pool_steal(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                    struct ggi_pool_loan *loan)
{
    gg_stream *lender;
    if (pool->direct || ggi_pool_request(pool, nbytes).size_class == GGI_NO_CLASS || !stream ||
        ggi_stream_capturing(stream))
        return false;
    gg_memory *memory = pool_pop_other(pool, nbytes, stream, false, &lender);
    const bool retired = !memory;
    if (!memory)
        memory = steal_retired(pool, nbytes);
    *loan = (struct ggi_pool_loan){.memory = memory, .retired = retired};
    return memory;
}

static void loan_undo(struct ggi_pool *pool, const struct ggi_pool_loan *loan)
{
    pthread_mutex_lock(&pool->lock);
    if (loan->retired)
        ggi_pool_count_retired(pool, loan->memory->block_size);
    else
        ggi_pool_insert(pool, loan->memory);
    pthread_mutex_unlock(&pool->lock);
    if (loan->retired)
        ggi_retire(pool->device, &loan->memory->retired);
}

bool ggi_pool_use_loan(struct ggi_pool *pool, size_t nbytes, gg_stream *stream,
                       const struct ggi_pool_loan *loan, gg_memory **out)
{
    struct ggi_internal_scope own;
    gg_memory *memory = loan->memory;
    ggi_internal_begin(pool->device, &own);
    const gg_status status = loan->lender ? ggi_stream_fence_uncaptured(stream, loan->lender, false)
                                          : steal_wait(memory, stream);
    ggi_internal_end(pool->device, &own);
    if (status)
        loan_undo(pool, loan);
    gg_stream_release(loan->lender);
    if (status)
        return false;
    const uint64_t ticket = ggi_stream_counted(stream);
    if (!loan->lender)
        ggi_memory_forget_uses(memory);
    *out = ggi_pool_first_reference(memory, nbytes, stream, ticket);
    if (!loan->lender)
        ggi_memory_used(memory, stream, ticket); /* which also waits for the old uses */
    return true;
}
