/* uses.c: which streams still use a block, and how an operation is ordered behind them. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

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

gg_status ggi_memory_order(gg_memory *memory, gg_stream *stream)
{
    struct ggi_use use;
    gg_status status = GG_OK;
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

uint32_t ggi_memory_users(gg_memory *memory, gg_stream **one)
{
    uint32_t count = 0;
    pthread_mutex_lock(&memory->lock);
    for (uint32_t i = 0; i < memory->use_count; i++) {
        gg_stream *stream = memory->uses[i].stream;
        if (ggi_stream_passed(stream, memory->uses[i].ticket, false))
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
        atomic_store(&memory->unknown, 1);
    else if (ggi_stream_capturing(stream))
        atomic_store(&memory->captured, 1);
    else
        ggi_memory_used(memory, stream, ggi_stream_submitted(stream));
    return GG_OK;
}

void gg_memory_release_captured(gg_memory *memory)
{
    atomic_store(&memory->captured, 0);
}
