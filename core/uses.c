/* uses.c: which streams still use a block, and how an operation is ordered behind them. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- the newest ticket of a stream, in a word beside the list ---- */

static uint64_t ticket_in(uint64_t word)
{
    return word & ((UINT64_C(1) << GGI_TICKET_BITS) - 1);
}

/* With the lock held: one word into the list. */
static void take_word(gg_memory *memory, _Atomic(uint64_t) *slot)
{
    if (!atomic_load_explicit(slot, memory_order_relaxed))
        return;
    const uint64_t word = atomic_exchange_explicit(slot, 0, memory_order_acquire);
    for (uint32_t i = 0; i < memory->use_count; i++)
        if (memory->uses[i].stream->serial == word >> GGI_TICKET_BITS &&
            memory->uses[i].ticket < ticket_in(word))
            memory->uses[i].ticket = ticket_in(word);
}

void ggi_memory_take_newest(gg_memory *memory)
{
    for (int i = 0; i < GGI_NEWEST; i++)
        take_word(memory, &memory->newest[i]);
}

/* With the lock held, for a use that is in the list: its word says it from now on. */
static void put_word(gg_memory *memory, const gg_stream *stream, uint64_t ticket)
{
    if (stream->serial >> (64 - GGI_TICKET_BITS) || ticket >> GGI_TICKET_BITS)
        return;
    take_word(memory, ggi_newest_of(memory, stream));
    atomic_store_explicit(ggi_newest_of(memory, stream), ggi_newest_word(stream, ticket),
                          memory_order_release);
}

struct ggi_use ggi_memory_use(gg_memory *memory, uint32_t index)
{
    struct ggi_use use = memory->uses[index];
    const uint64_t word =
        atomic_load_explicit(ggi_newest_of(memory, use.stream), memory_order_acquire);
    if (word >> GGI_TICKET_BITS == use.stream->serial && ticket_in(word) > use.ticket)
        use.ticket = ticket_in(word);
    return use;
}

/* ---- the list ---- */

/* With the lock held. */
static void prune(gg_memory *memory, bool look)
{
    uint32_t kept = 0;
    ggi_memory_take_newest(memory);
    for (uint32_t i = 0; i < memory->use_count; i++) {
        struct ggi_use use = memory->uses[i];
        if (ggi_stream_passed(use.stream, use.ticket, look || use.stream->device != memory->device))
            ggi_stream_use_release(use.stream);
        else
            memory->uses[kept++] = use;
    }
    memory->use_count = kept;
}

bool ggi_memory_prune(gg_memory *memory, bool look)
{
    memory = ggi_memory_whole(memory);
    pthread_mutex_lock(&memory->lock);
    prune(memory, look);
    bool none = !memory->use_count;
    pthread_mutex_unlock(&memory->lock);
    return none;
}

/* With the lock held: room for one more use. */
static bool make_room(gg_memory *memory)
{
    if (memory->use_count < memory->use_room)
        return true;
    prune(memory, true);
    if (memory->use_count < memory->use_room)
        return true;
    uint32_t room = memory->use_room * 2;
    struct ggi_use *uses = malloc(room * sizeof *uses);
    if (!uses)
        return false;
    memcpy(uses, memory->uses, memory->use_count * sizeof *uses);
    if (memory->uses != memory->few)
        free(memory->uses);
    memory->uses = uses;
    memory->use_room = room;
    return true;
}

/* With the lock held: the stream's use in the list, or a new one; NULL without memory for it. */
static struct ggi_use *own_use(gg_memory *memory, gg_stream *stream)
{
    for (uint32_t i = 0; i < memory->use_count; i++)
        if (memory->uses[i].stream == stream)
            return &memory->uses[i];
    if (!make_room(memory))
        return NULL;
    ggi_stream_use_retain(stream);
    memory->uses[memory->use_count] = (struct ggi_use){stream, 0};
    return &memory->uses[memory->use_count++];
}

void ggi_memory_used_slow(gg_memory *memory, gg_stream *stream, uint64_t ticket)
{
    pthread_mutex_lock(&memory->lock);
    struct ggi_use *use = own_use(memory, stream);
    if (use) {
        if (use->ticket < ticket)
            use->ticket = ticket;
        put_word(memory, stream, use->ticket);
    }
    pthread_mutex_unlock(&memory->lock);
    if (!use)
        ggi_stream_finish(stream, false); /* the caller keeps the stream during the call */
}

/* With the lock held: the first use after a serial that is not over and not of @p stream. */
static bool find_use(gg_memory *memory, const gg_stream *stream, uint64_t after, struct ggi_use *out)
{
    bool found = false;
    for (uint32_t i = 0; i < memory->use_count; i++) {
        struct ggi_use use = ggi_memory_use(memory, i);
        if (use.stream == stream || use.stream->serial <= after ||
            (found && use.stream->serial > out->stream->serial) ||
            ggi_stream_passed(use.stream, use.ticket, false))
            continue;
        *out = use;
        found = true;
    }
    return found;
}

/* One use that @p stream has not yet been made to wait for, with a reference. */
static bool next_use(gg_memory *memory, const gg_stream *stream, uint64_t *after,
                     struct ggi_use *out)
{
    bool found;
    memory = ggi_memory_whole(memory);
    pthread_mutex_lock(&memory->lock);
    do
        found = find_use(memory, stream, *after, out);
    while (found && !ggi_stream_enter(out->stream)); /* it is over by now */
    if (found)
        *after = out->stream->serial;
    pthread_mutex_unlock(&memory->lock);
    return found;
}

static gg_status refuse_capture(void)
{
    return ggi_fail(
        GG_ERR_UNSUPPORTED,
        "stream is capturing, and the memory was given out while earlier work still used "
        "it: allocate it, and synchronize, before the capture begins");
}

/* Where a capture forbids to ask or wait for a stream, what was counted there decides: the ticket of the
 * hand-out itself stands behind it. */
static gg_status enter_capture(gg_stream *stream, gg_stream *home, uint64_t handed, bool both)
{
    if (ggi_stream_passed(home, handed - 1, false))
        return GG_OK;
    return both && stream != home ? ggi_stream_fence(stream, home, true) : refuse_capture();
}

/* Behind the hand-out; both streams are held. */
static gg_status after_hand_out(gg_stream *stream, gg_stream *home, uint64_t handed)
{
    bool captures = ggi_stream_capturing(stream), home_captures = captures;
    if (stream != home)
        home_captures = !ggi_stream_ownerless(home) && ggi_stream_capturing(home);
    if (captures || home_captures)
        return enter_capture(stream, home, handed, captures && home_captures);
    return stream != home ? ggi_stream_after(stream, home, handed) : GG_OK;
}

/* A block may have been given out before the earlier work of its home stream was done. That stream runs
 * in order; any other waits for the point at which the block was given out. */
gg_status ggi_memory_enter_slow(gg_memory *memory, gg_stream *stream)
{
    gg_stream *home = memory->home;
    uint64_t handed = atomic_load_explicit(&memory->handed, memory_order_relaxed);
    if (!handed || atomic_load_explicit(&memory->fenced, memory_order_relaxed) == stream->serial)
        return GG_OK;
    if (ggi_stream_passed(home, handed, stream != home) ||
        (stream != home && !ggi_stream_enter(home))) {
        atomic_store_explicit(&memory->handed, 0, memory_order_relaxed);
        return GG_OK;
    }
    gg_status status = after_hand_out(stream, home, handed);
    if (stream != home)
        gg_stream_release(home);
    if (!status)
        atomic_store_explicit(&memory->fenced, stream->serial, memory_order_relaxed);
    return status;
}

gg_status ggi_memory_order(gg_memory *memory, gg_stream *stream)
{
    struct ggi_use use;
    gg_status status = ggi_memory_enter(memory, stream);
    uint64_t after = 0;
    while (!status && next_use(memory, stream, &after, &use)) {
        status = ggi_stream_after(stream, use.stream, use.ticket);
        gg_stream_release(use.stream);
    }
    return status;
}

/* Any use that is not over, with a reference to its stream. */
static bool any_use(gg_memory *memory, struct ggi_use *out)
{
    uint64_t after = 0;
    return next_use(memory, NULL, &after, out);
}

/* Who had a block before its hand-out may still be at work on it: one more use, by its home. */
bool ggi_memory_handed(gg_memory *memory)
{
    uint64_t handed = atomic_load_explicit(&memory->handed, memory_order_relaxed);
    if (!handed)
        return false;
    if (!ggi_stream_passed(memory->home, handed, true))
        return true;
    atomic_store_explicit(&memory->handed, 0, memory_order_relaxed);
    return false;
}

uint32_t ggi_memory_users(gg_memory *memory, gg_stream **one)
{
    const bool handed = ggi_memory_handed(memory) && ggi_stream_enter(memory->home);
    gg_stream *home = handed ? memory->home : NULL;
    uint32_t count = handed;
    if (handed)
        *one = home;
    memory = ggi_memory_whole(memory);
    pthread_mutex_lock(&memory->lock);
    for (uint32_t i = 0; i < memory->use_count; i++) {
        const struct ggi_use use = ggi_memory_use(memory, i);
        if (use.stream == home || ggi_stream_passed(use.stream, use.ticket, false) ||
            (!count && !ggi_stream_enter(use.stream)))
            continue;
        if (!count++)
            *one = use.stream;
    }
    pthread_mutex_unlock(&memory->lock);
    return count;
}

gg_status gg_memory_wait(gg_memory *memory)
{
    struct ggi_use use;
    gg_status status = ggi_check(memory->device);
    ggi_note_user(memory->device);
    if (!status && ggi_memory_handed(memory) && ggi_stream_enter(memory->home)) {
        status = ggi_stream_wait_ticket(memory->home, atomic_load(&memory->handed));
        gg_stream_release(memory->home);
    }
    while (!status && any_use(memory, &use)) {
        status = ggi_stream_wait_ticket(use.stream, use.ticket);
        gg_stream_release(use.stream);
    }
    return status;
}

gg_status gg_memory_record_use(gg_memory *memory, gg_stream *stream)
{
    gg_status status = ggi_check(memory->device);
    if (!status && stream)
        status = ggi_stream_check(stream);
    if (status)
        return status;
    if (!stream)
        atomic_store(&memory->unknown, GGI_UNKNOWN);
    else if (ggi_stream_capturing(stream))
        atomic_store(&memory->captured, 1);
    else
        ggi_memory_used(memory, stream, ggi_stream_submitted(stream));
    return GG_OK;
}

gg_status gg_memory_hand_out(gg_memory *memory, gg_stream *stream)
{
    gg_status status = ggi_check(memory->device);
    if (!status)
        status = ggi_stream_check(stream);
    if (!status && (!memory->wrapped || memory->home || stream->device != memory->device))
        status =
            ggi_fail(GG_ERR_INVALID_ARGUMENT,
                     "gg_memory_hand_out: expected wrapped memory that was not handed out yet, "
                     "and a stream of its device");
    if (status || ggi_stream_captures(stream)) /* what belongs to a graph runs in its order */
        return status;
    ggi_stream_use_retain(stream);
    memory->home = stream;
    atomic_store_explicit(&memory->handed, ggi_stream_submitted(stream), memory_order_relaxed);
    return GG_OK;
}

void gg_memory_release_captured(gg_memory *memory)
{
    atomic_store(&memory->captured, 0);
}
