/* uses.h: the streams that use a block, and how operations wait for them. */
#ifndef GPUGLUE_USES_H
#define GPUGLUE_USES_H

#include "memory/memory.h"

/* The memory that records the uses. */
static inline gg_memory *ggi_memory_whole(gg_memory *memory)
{
    return memory->parent ? memory->parent : memory;
}

/* A word holds a stream's serial and the newest ticket of its use. While the word has that serial, one
 * compare-and-swap raises the ticket without the lock. The list contains the use as long as the word is set:
 * before uses are removed, their words are written back to the list. */
#define GGI_TICKET_BITS 40
static inline _Atomic(uint64_t) *ggi_newest_of(gg_memory *memory, const gg_stream *stream)
{
    return &memory->newest[stream->serial % GGI_NEWEST];
}
static inline uint64_t ggi_newest_word(const gg_stream *stream, uint64_t ticket)
{
    return stream->serial << GGI_TICKET_BITS | ticket;
}
/* 0: it does not fit into a word. */
static inline uint64_t ggi_newest_raised(const gg_stream *stream, uint64_t ticket)
{
    return ticket >> GGI_TICKET_BITS || stream->serial >> (64 - GGI_TICKET_BITS)
               ? 0
               : ggi_newest_word(stream, ticket);
}
/* False: the caller has to take the lock. */
static inline bool ggi_newest_raise(_Atomic(uint64_t) *newest, uint64_t raised)
{
    uint64_t word = atomic_load_explicit(newest, memory_order_relaxed);
    while (raised && (word ^ raised) >> GGI_TICKET_BITS == 0) /* of the same stream */
        if (word >= raised || atomic_compare_exchange_weak_explicit(
                                  newest, &word, raised, memory_order_release, memory_order_relaxed))
            return true;
    return false;
}
static inline bool ggi_newest_update(gg_memory *memory, const gg_stream *stream, uint64_t ticket)
{
    return ggi_newest_raise(ggi_newest_of(memory, stream), ggi_newest_raised(stream, ticket));
}

/* ---- recording uses ---- */

/* @p stream uses the memory up to @p ticket. Cannot fail: without host memory it waits for the stream. */
void ggi_memory_used_slow(gg_memory *memory, gg_stream *stream, uint64_t ticket);
static inline void ggi_memories_used(gg_memory *const *memories, size_t count, gg_stream *stream,
                                     uint64_t ticket)
{
    const uint64_t place = stream->serial % GGI_NEWEST, raised = ggi_newest_raised(stream, ticket);
    for (size_t i = 0; i < count; i++) {
        gg_memory *whole = ggi_memory_whole(memories[i]);
        if (!ggi_newest_raise(&whole->newest[place], raised))
            ggi_memory_used_slow(whole, stream, ticket);
    }
}
static inline void ggi_memory_used(gg_memory *memory, gg_stream *stream, uint64_t ticket)
{
    ggi_memories_used(&memory, 1, stream, ticket);
}
/* A collective operation, which the watchers may end, writes the memory, or a graph that contains one may. */
static inline void ggi_memory_note_result(gg_memory *memory, const gg_stream *stream,
                                          uint64_t ticket, uint64_t watchers)
{
    gg_memory *whole = ggi_memory_whole(memory);
    atomic_store_explicit(&whole->result_watchers, watchers, memory_order_relaxed);
    atomic_store(&whole->result, ggi_newest_raised(stream, ticket));
}
/* Something else writes it, or the failure was reported. */
static inline void ggi_memory_forget_result(gg_memory *memory)
{
    atomic_store_explicit(&ggi_memory_whole(memory)->result, 0, memory_order_relaxed);
}
/* The word of that operation, or of later work of its stream that has used the memory since; 0: there is none. */
uint64_t ggi_memory_result(gg_memory *memory);
/* Return the error if this work was ended without a result, even if a wait for its stream has already returned it. Later calls for this
 * memory return GG_OK. */
gg_status ggi_memory_raise_result(gg_memory *memory, uint64_t word);
/* @p stream is captured, and its graph uses the memory. In captured.c. */
void ggi_memory_captured(gg_memory *memory, gg_stream *stream);
/* Whether work in a capture that this thread began, and that has not ended, uses the memory. In captured.c. */
bool ggi_memory_in_own_capture(gg_memory *memory);
/* Make @p stream, which is captured, wait for work on other streams of its capture that uses the memory. In captured.c. */
gg_status ggi_memory_wait_captured(gg_memory *memory, gg_stream *stream);
/* Call after an operation is submitted, or captured into a graph. */
static inline void ggi_memory_note_use(gg_memory *memory, gg_stream *stream, uint64_t ticket,
                                       bool captured)
{
    if (captured)
        ggi_memory_captured(memory, stream);
    else
        ggi_memory_used(memory, stream, ticket);
}

/* ---- waiting for uses ---- */

/* An internal stream, not ordered with others, that waits for several others, so that the caller waits for one. */
gg_status ggi_join_stream(gg_device *device, gg_stream **out);

/* Call before an operation on an explicit stream: alloc_stream may still use the block. */
gg_status ggi_memory_wait_ready_slow(gg_memory *memory, gg_stream *stream);
static inline gg_status ggi_memory_wait_ready(gg_memory *memory, gg_stream *stream)
{
    if (!atomic_load_explicit(&memory->ready_ticket, memory_order_relaxed) ||
        (memory->alloc_stream == stream && !ggi_stream_is_capturable(stream)))
        return GG_OK;
    return ggi_memory_wait_ready_slow(memory, stream);
}
/* Before an operation on the implicit stream: also wait on the device for unfinished uses on other streams. */
gg_status ggi_memory_wait_uses(gg_memory *memory, gg_stream *stream);
static inline gg_status ggi_memory_wait_before_use(gg_memory *memory, gg_stream *stream,
                                                   bool implicit)
{
    return implicit ? ggi_memory_wait_uses(memory, stream) : ggi_memory_wait_ready(memory, stream);
}

/* A use with its newest ticket. With the lock held, or in the only thread that can access the block. */
struct ggi_use ggi_memory_use(gg_memory *memory, uint32_t index);

/* Whether a stream of another device uses it, which ggi_memory_prune queries. */
bool ggi_memory_has_peer_use(gg_memory *memory);

/* ---- removing uses ---- */

/* Remove finished uses; true if none is left. Without @p poll only streams of other devices are queried. */
bool ggi_memory_prune(gg_memory *memory, bool poll);
/* For the only thread that can access the block, without the lock: true if only uses by alloc_stream are left. */
bool ggi_memory_prune_foreign(gg_memory *memory);
/* For the same thread: remove all uses. */
void ggi_memory_forget_uses(gg_memory *memory);

#endif
