/* uses.c: which streams still use a block, and how an operation is ordered behind them. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* Whose uses they are. */
static gg_memory *whole(gg_memory *memory)
{
    return memory->within ? memory->within : memory;
}

/* With the lock held. */
static void prune(gg_memory *memory, bool look)
{
    uint32_t kept = 0;
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
    memory = whole(memory);
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

void ggi_memory_used(gg_memory *memory, gg_stream *stream, uint64_t ticket)
{
    bool noted = true;
    memory = whole(memory);
    pthread_mutex_lock(&memory->lock);
    for (uint32_t i = 0; i < memory->use_count; i++)
        if (memory->uses[i].stream == stream) {
            if (memory->uses[i].ticket < ticket)
                memory->uses[i].ticket = ticket;
            pthread_mutex_unlock(&memory->lock);
            return;
        }
    noted = make_room(memory);
    if (noted) {
        ggi_stream_use_retain(stream);
        memory->uses[memory->use_count++] = (struct ggi_use){stream, ticket};
    }
    pthread_mutex_unlock(&memory->lock);
    if (!noted)
        ggi_stream_finish(stream, false); /* the caller keeps the stream during the call */
}

/* One use that @p stream has not yet been made to wait for, with a reference. */
static bool next_use(gg_memory *memory, const gg_stream *stream, uint64_t *after,
                     struct ggi_use *out)
{
    bool found = false;
    memory = whole(memory);
    pthread_mutex_lock(&memory->lock);
    for (uint32_t i = 0; i < memory->use_count; i++) {
        struct ggi_use use = memory->uses[i];
        if (use.stream == stream || use.stream->serial <= *after ||
            (found && use.stream->serial > out->stream->serial) ||
            ggi_stream_passed(use.stream, use.ticket, false))
            continue;
        *out = use;
        found = true;
    }
    if (found) {
        gg_stream_retain(out->stream);
        *after = out->stream->serial;
    }
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

/* A block may have been given out before the earlier work of its home stream was done. That stream runs
 * in order; any other waits for the point at which the block was given out. */
gg_status ggi_memory_enter_slow(gg_memory *memory, gg_stream *stream)
{
    gg_stream *home = memory->home;
    uint64_t handed = atomic_load_explicit(&memory->handed, memory_order_relaxed);
    if (!handed || atomic_load_explicit(&memory->fenced, memory_order_relaxed) == stream->serial)
        return GG_OK;
    if (ggi_stream_passed(home, handed, stream != home)) {
        atomic_store_explicit(&memory->handed, 0, memory_order_relaxed);
        return GG_OK;
    }
    bool captures = ggi_stream_capturing(stream), home_captures = ggi_stream_capturing(home);
    gg_status status = GG_OK;
    if (captures || home_captures)
        status = enter_capture(stream, home, handed, captures && home_captures);
    else if (stream != home)
        status = ggi_stream_after(stream, home, handed);
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
    gg_stream *home = ggi_memory_handed(memory) ? memory->home : NULL;
    uint32_t count = 0;
    if (home) {
        gg_stream_retain(*one = home);
        count++;
    }
    memory = whole(memory);
    pthread_mutex_lock(&memory->lock);
    for (uint32_t i = 0; i < memory->use_count; i++) {
        gg_stream *stream = memory->uses[i].stream;
        if (stream == home || ggi_stream_passed(stream, memory->uses[i].ticket, false))
            continue;
        if (!count++)
            gg_stream_retain(*one = stream);
    }
    pthread_mutex_unlock(&memory->lock);
    return count;
}

gg_status gg_memory_wait(gg_memory *memory)
{
    struct ggi_use use;
    gg_status status = ggi_check(memory->device);
    if (!status && ggi_memory_handed(memory))
        status = ggi_stream_wait_ticket(memory->home, atomic_load(&memory->handed));
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
