/* uses.c: the streams that use a block, and how operations and other libraries wait for them. */
#include "base/error.h"
#include "memory/uses.h"

#include <stdlib.h>
#include <string.h>

/* ---- the newest tickets, in words beside the list ---- */

static uint64_t newest_ticket(uint64_t word)
{
    return word & ((UINT64_C(1) << GGI_TICKET_BITS) - 1);
}

/* With the lock held, or in the only thread that can access the block (@p alone): write the ticket of one word back to the
 * list. */
static void newest_fold(gg_memory *memory, _Atomic(uint64_t) *slot, bool alone)
{
    uint64_t word = atomic_load_explicit(slot, memory_order_relaxed);
    if (!word)
        return;
    if (alone)
        atomic_store_explicit(slot, 0, memory_order_relaxed);
    else
        word = atomic_exchange_explicit(slot, 0, memory_order_acquire);
    for (uint32_t i = 0; i < memory->use_count; i++)
        if (memory->uses[i].stream->serial == word >> GGI_TICKET_BITS &&
            memory->uses[i].ticket < newest_ticket(word))
            memory->uses[i].ticket = newest_ticket(word);
}

static void newest_fold_all(gg_memory *memory, bool alone)
{
    for (int i = 0; i < GGI_NEWEST; i++)
        newest_fold(memory, &memory->newest[i], alone);
}

/* With the lock held: from now on the word has the newest ticket of a use in the list. */
static void newest_store(gg_memory *memory, const gg_stream *stream, uint64_t ticket)
{
    const uint64_t word = ggi_newest_raised(stream, ticket);
    if (!word)
        return;
    newest_fold(memory, ggi_newest_of(memory, stream), false);
    atomic_store_explicit(ggi_newest_of(memory, stream), word, memory_order_release);
}

struct ggi_use ggi_memory_use(gg_memory *memory, uint32_t index)
{
    struct ggi_use use = memory->uses[index];
    const uint64_t word =
        atomic_load_explicit(ggi_newest_of(memory, use.stream), memory_order_acquire);
    if (word >> GGI_TICKET_BITS == use.stream->serial && newest_ticket(word) > use.ticket)
        use.ticket = newest_ticket(word);
    return use;
}

/* ---- the list ---- */

/* With the lock held. */
static bool uses_is_complete(const struct ggi_use *use, bool poll)
{
    return poll ? ggi_stream_poll_locked(use->stream, use->ticket)
                : ggi_stream_has_passed(use->stream, use->ticket);
}

/* Complete, and not ended without a result that no wait has reported. */
static bool uses_is_over(const struct ggi_use *use, bool poll)
{
    return uses_is_complete(use, poll) && !ggi_stream_has_ended(use->stream, use->ticket);
}

enum uses_way {
    USES_KNOWN, /* removes those that are known to be complete */
    USES_POLL,  /* queries the driver as well */
    USES_FOREIGN, /* as USES_KNOWN; uses of alloc_stream do not count, and no other thread can access the block */
    USES_REPORTED /* as USES_POLL, but keeps those whose error a wait still has to report */
};

/* With the lock held, or alone. Whether no use is left. */
static bool uses_prune(gg_memory *memory, enum uses_way way)
{
    uint32_t kept = 0;
    bool none = true;
    if (!memory->use_count) /* then no word is set either */
        return true;
    newest_fold_all(memory, way == USES_FOREIGN);
    for (uint32_t i = 0; i < memory->use_count; i++) {
        struct ggi_use use = memory->uses[i];
        const bool poll =
            way == USES_POLL || way == USES_REPORTED || use.stream->device != memory->device;
        if (way == USES_REPORTED ? uses_is_over(&use, poll) : uses_is_complete(&use, poll)) {
            ggi_stream_use_release(use.stream);
            continue;
        }
        none = none && way == USES_FOREIGN && use.stream == memory->alloc_stream;
        memory->uses[kept++] = use;
    }
    memory->use_count = kept;
    return none;
}

bool ggi_memory_prune(gg_memory *memory, bool poll)
{
    memory = ggi_memory_whole(memory);
    pthread_mutex_lock(&memory->lock);
    bool none = uses_prune(memory, poll ? USES_POLL : USES_KNOWN);
    pthread_mutex_unlock(&memory->lock);
    return none;
}

/* Mostly alloc_stream alone uses the block. Its use stays in the list, finished or not: the next one on that stream then takes no
 * lock. An error that no wait has reported must not become that of the next allocation. */
bool ggi_memory_prune_foreign(gg_memory *memory)
{
    const bool own = memory->use_count == 1 && memory->uses[0].stream == memory->alloc_stream;
    return (own && !ggi_stream_ended_unseen(memory->alloc_stream)) ||
           uses_prune(memory, USES_FOREIGN);
}

bool ggi_memory_has_peer_use(gg_memory *memory)
{
    bool found = false;
    memory = ggi_memory_whole(memory);
    pthread_mutex_lock(&memory->lock);
    for (uint32_t i = 0; i < memory->use_count && !found; i++)
        found = memory->uses[i].stream->device != memory->device;
    pthread_mutex_unlock(&memory->lock);
    return found;
}

void ggi_memory_forget_uses(gg_memory *memory)
{
    if (!memory->use_count)
        return;
    newest_fold_all(memory, true);
    for (uint32_t i = 0; i < memory->use_count; i++)
        ggi_stream_use_release(memory->uses[i].stream);
    memory->use_count = 0;
}

/* With the lock held: space for one more use. */
static bool uses_reserve(gg_memory *memory)
{
    if (memory->use_count < memory->use_capacity)
        return true;
    uses_prune(memory, USES_REPORTED);
    if (memory->use_count < memory->use_capacity)
        return true;
    uint32_t capacity = memory->use_capacity * 2;
    struct ggi_use *uses = malloc(capacity * sizeof *uses);
    if (!uses)
        return false;
    memcpy(uses, memory->uses, memory->use_count * sizeof *uses);
    if (memory->uses != memory->inline_uses)
        free(memory->uses);
    memory->uses = uses;
    memory->use_capacity = capacity;
    return true;
}

/* With the lock held: the stream's use in the list, or a new one; NULL without host memory. */
static struct ggi_use *uses_of_stream(gg_memory *memory, gg_stream *stream)
{
    for (uint32_t i = 0; i < memory->use_count; i++)
        if (memory->uses[i].stream == stream)
            return &memory->uses[i];
    if (!uses_reserve(memory))
        return NULL;
    ggi_stream_use_retain(stream);
    memory->uses[memory->use_count] = (struct ggi_use){stream, 0};
    return &memory->uses[memory->use_count++];
}

void ggi_memory_used_slow(gg_memory *memory, gg_stream *stream, uint64_t ticket)
{
    pthread_mutex_lock(&memory->lock);
    struct ggi_use *use = uses_of_stream(memory, stream);
    if (use) {
        if (use->ticket < ticket)
            use->ticket = ticket;
        newest_store(memory, stream, use->ticket);
    }
    pthread_mutex_unlock(&memory->lock);
    if (!use)
        ggi_stream_synchronize(stream, false); /* the caller keeps the stream during the call */
}

/* With the lock held: the first unfinished use, by serial after @p after, of a stream other than @p stream. */
static bool uses_find(gg_memory *memory, const gg_stream *stream, uint64_t after,
                      struct ggi_use *out)
{
    bool found = false;
    for (uint32_t i = 0; i < memory->use_count; i++) {
        struct ggi_use use = ggi_memory_use(memory, i);
        if (use.stream == stream || use.stream->serial <= after ||
            (found && use.stream->serial > out->stream->serial) || uses_is_over(&use, false))
            continue;
        *out = use;
        found = true;
    }
    return found;
}

/* Add a reference to the stream of an unfinished use. One whose native stream is destroyed may still have to report an error. */
static bool uses_pin(const struct ggi_use *use)
{
    if (ggi_stream_try_pin(use->stream))
        return true;
    if (!ggi_stream_has_ended(use->stream, use->ticket))
        return false;
    gg_stream_retain(use->stream);
    return true;
}

/* The next use that @p stream does not wait for yet, with a reference to its stream. */
static bool uses_next(gg_memory *memory, const gg_stream *stream, uint64_t *after,
                      struct ggi_use *out)
{
    bool found;
    memory = ggi_memory_whole(memory);
    pthread_mutex_lock(&memory->lock);
    do {
        found = uses_find(memory, stream, *after, out);
        if (found)
            *after = out->stream->serial;
    } while (found && !uses_pin(out)); /* finished */
    pthread_mutex_unlock(&memory->lock);
    return found;
}

/* During a capture a stream can be neither queried nor waited for, so its counts decide: the ready ticket itself
 * is after all counted work. */
static gg_status ready_in_capture(gg_stream *stream, gg_stream *alloc_stream, uint64_t ready_ticket,
                                  bool both)
{
    if (ggi_stream_is_complete(alloc_stream, ready_ticket - 1, false))
        return GG_OK;
    if (both && stream != alloc_stream)
        return ggi_stream_fence(stream, alloc_stream, true);
    return ggi_fail(
        GG_ERR_UNSUPPORTED,
        "stream is capturing, and the memory was allocated while earlier work still used "
        "it: allocate it, and synchronize, before the capture begins");
}

/* Both streams are pinned. *@p captured: @p stream is captured, so later work on it does not wait. */
static gg_status ready_on_stream(gg_stream *stream, gg_stream *alloc_stream, uint64_t ready_ticket,
                                 bool *captured)
{
    bool captures = ggi_stream_capturing(stream), alloc_captures = captures;
    *captured = captures;
    if (stream != alloc_stream)
        alloc_captures = !ggi_stream_is_ownerless(alloc_stream) && ggi_other_capturing(alloc_stream);
    if (captures || alloc_captures)
        return ready_in_capture(stream, alloc_stream, ready_ticket, captures && alloc_captures);
    return stream != alloc_stream ? ggi_stream_wait_on_device(stream, alloc_stream, ready_ticket)
                                  : GG_OK;
}

/* A block may be allocated before earlier work on alloc_stream has finished. That stream runs in order; any other
 * waits for the ready ticket. */
gg_status ggi_memory_wait_ready_slow(gg_memory *memory, gg_stream *stream)
{
    gg_stream *alloc_stream = memory->alloc_stream;
    uint64_t ready_ticket = atomic_load_explicit(&memory->ready_ticket, memory_order_relaxed);
    if (!ready_ticket ||
        atomic_load_explicit(&memory->ready_waiter, memory_order_relaxed) == stream->serial)
        return GG_OK;
    if (ggi_stream_is_complete(alloc_stream, ready_ticket, stream != alloc_stream) ||
        (stream != alloc_stream && !ggi_stream_try_pin(alloc_stream))) {
        atomic_store_explicit(&memory->ready_ticket, 0, memory_order_relaxed);
        return GG_OK;
    }
    if (stream == alloc_stream && ggi_stream_has_passed(stream, ready_ticket - 1))
        return GG_OK; /* also in a capture */
    bool captured;
    gg_status status = ready_on_stream(stream, alloc_stream, ready_ticket, &captured);
    if (stream != alloc_stream)
        gg_stream_release(alloc_stream);
    if (!status && !captured)
        atomic_store_explicit(&memory->ready_waiter, stream->serial, memory_order_relaxed);
    return status;
}

gg_status ggi_memory_wait_uses(gg_memory *memory, gg_stream *stream)
{
    struct ggi_use use;
    gg_status status = ggi_memory_wait_ready(memory, stream);
    uint64_t after = 0;
    if (!status && ggi_stream_in_known_capture(stream))
        status = ggi_memory_wait_captured(memory, stream);
    while (!status && uses_next(memory, stream, &after, &use)) {
        status = ggi_stream_wait_on_device(stream, use.stream, use.ticket);
        gg_stream_release(use.stream);
    }
    return status;
}

/* Work on alloc_stream from before the allocation may still use the block: it counts as one more use. */
static bool memory_not_ready(gg_memory *memory)
{
    uint64_t ready_ticket = atomic_load_explicit(&memory->ready_ticket, memory_order_relaxed);
    if (!ready_ticket)
        return false;
    if (!ggi_stream_is_complete(memory->alloc_stream, ready_ticket, true))
        return true;
    atomic_store_explicit(&memory->ready_ticket, 0, memory_order_relaxed);
    return false;
}

/* How many streams have unfinished uses; *@p one: a reference to the first. Does not query these streams. */
static uint32_t memory_count_users(gg_memory *memory, gg_stream **one)
{
    const bool not_ready = memory_not_ready(memory) && ggi_stream_try_pin(memory->alloc_stream);
    gg_stream *alloc_stream = not_ready ? memory->alloc_stream : NULL;
    uint32_t count = not_ready;
    if (not_ready)
        *one = alloc_stream;
    memory = ggi_memory_whole(memory);
    pthread_mutex_lock(&memory->lock);
    for (uint32_t i = 0; i < memory->use_count; i++) {
        const struct ggi_use use = ggi_memory_use(memory, i);
        if (use.stream == alloc_stream || ggi_stream_is_complete(use.stream, use.ticket, false) ||
            (!count && !ggi_stream_try_pin(use.stream)))
            continue;
        if (!count++)
            *one = use.stream;
    }
    pthread_mutex_unlock(&memory->lock);
    return count;
}

/* ---- the public calls ---- */

gg_status gg_memory_wait(gg_memory *memory)
{
    struct ggi_use use;
    uint64_t after = 0;
    gg_status status = ggi_device_check(memory->device);
    ggi_device_note_thread(memory->device);
    if (!status && ggi_memory_in_own_capture(memory))
        return ggi_capture_fail_wait();
    if (!status && memory_not_ready(memory) && ggi_stream_try_pin(memory->alloc_stream)) {
        status = ggi_stream_wait_ticket(memory->alloc_stream, atomic_load(&memory->ready_ticket));
        gg_stream_release(memory->alloc_stream);
    }
    /* Each stream once: other threads may go on using the memory. */
    while (!status && uses_next(memory, NULL, &after, &use)) {
        status = ggi_stream_wait_ticket(use.stream, use.ticket);
        gg_stream_release(use.stream);
    }
    return status;
}

static void memory_used_anywhere(gg_memory *memory)
{
    atomic_store(&memory->untracked, GGI_UNTRACKED);
    ggi_epoch_prepare(memory->device);
}

gg_status gg_memory_record_use(gg_memory *memory, gg_stream *stream)
{
    gg_status status = ggi_device_check(memory->device);
    if (!status && stream)
        status = ggi_stream_check(stream);
    if (status)
        return status;
    if (!stream)
        memory_used_anywhere(memory);
    else if (ggi_stream_capturing(stream))
        ggi_memory_captured(memory, stream);
    else
        ggi_memory_used(memory, stream, ggi_stream_submitted(stream));
    return GG_OK;
}

/* False if there is no space for another stream. */
static bool memory_share(gg_memory *memory, gg_stream *stream)
{
    int i = 0;
    pthread_mutex_lock(&memory->lock);
    while (i < GGI_SHARED && memory->shared[i] && memory->shared[i] != stream)
        i++;
    if (i < GGI_SHARED && !memory->shared[i]) {
        ggi_stream_use_retain(stream);
        memory->shared[i] = stream;
    }
    pthread_mutex_unlock(&memory->lock);
    return i < GGI_SHARED;
}

gg_status gg_memory_share(gg_memory *memory, gg_stream *stream)
{
    gg_status status = ggi_device_check(memory->device);
    if (!status)
        status = ggi_stream_check(stream);
    if (status)
        return status;
    const bool ownerless = ggi_stream_is_ownerless(stream);
    if (ownerless)
        stream = ggi_stream_of_native(stream->device, stream->native);
    if (stream && ggi_stream_is_captured(stream))
        ggi_memory_captured(memory, stream);
    else if (!stream || !memory_share(memory, stream))
        memory_used_anywhere(memory);
    if (ownerless)
        gg_stream_release(stream);
    return GG_OK;
}

gg_status gg_memory_ready_after(gg_memory *memory, gg_stream *stream)
{
    gg_status status = ggi_device_check(memory->device);
    if (!status)
        status = ggi_stream_check(stream);
    if (!status && (!memory->wrapped || memory->alloc_stream || stream->device != memory->device))
        status = ggi_fail(GG_ERR_INVALID_ARGUMENT, "gg_memory_ready_after: expected wrapped memory "
                                                   "without an earlier call of this function, "
                                                   "and a stream of its device");
    if (status || ggi_stream_is_captured(stream)) /* a graph runs in its own order */
        return status;
    ggi_stream_use_retain(stream);
    memory->alloc_stream = stream;
    atomic_store_explicit(&memory->ready_ticket, ggi_stream_submitted(stream), memory_order_relaxed);
    return GG_OK;
}

void gg_memory_release_captured(gg_memory *memory)
{
    atomic_store(&memory->captured, 0);
}

/* ---- waits by other libraries ---- */

gg_status gg_stream_wait_memory(gg_stream *stream, gg_memory *memory)
{
    gg_status status = ggi_device_check(memory->device);
    if (!status)
        status = ggi_stream_check(stream);
    if (!status && stream->device->backend != memory->device->backend)
        status = ggi_fail(GG_ERR_INVALID_ARGUMENT,
                          "a stream of \"%s\" cannot wait for work on memory of \"%s\"",
                          stream->device->backend->name, memory->device->backend->name);
    return status ? status : ggi_memory_wait_uses(memory, stream);
}

/* The error of a use that was ended without a result, which the next wait reports. */
static gg_status memory_check_ended(gg_memory *memory)
{
    struct ggi_use ended = {NULL, 0};
    if (!ggi_ended_any())
        return GG_OK;
    memory = ggi_memory_whole(memory);
    pthread_mutex_lock(&memory->lock);
    for (uint32_t i = 0; i < memory->use_count && !ended.stream; i++) {
        const struct ggi_use use = ggi_memory_use(memory, i);
        if (ggi_stream_poll_locked(use.stream, use.ticket) &&
            ggi_stream_has_ended(use.stream, use.ticket))
            ended = use;
    }
    const uint64_t serial = ended.stream ? ended.stream->serial : 0;
    pthread_mutex_unlock(&memory->lock);
    ggi_record_markers();
    return ggi_ended_report(memory->device, GG_OP_stream_query,
                            (struct ggi_ended_use){serial, ended.ticket, GGI_ALL_WATCHERS});
}

uint64_t ggi_memory_result(gg_memory *memory)
{
    memory = ggi_memory_whole(memory);
    uint64_t word = atomic_load(&memory->result);
    if (!word || !ggi_ended_any())
        return word;
    pthread_mutex_lock(&memory->lock);
    for (uint32_t i = 0; i < memory->use_count; i++) {
        const struct ggi_use use = ggi_memory_use(memory, i);
        if (use.stream->serial == word >> GGI_TICKET_BITS && use.ticket > newest_ticket(word))
            word = ggi_newest_word(use.stream, use.ticket);
    }
    pthread_mutex_unlock(&memory->lock);
    return word;
}

gg_status ggi_memory_raise_result(gg_memory *memory, uint64_t word)
{
    const struct ggi_ended_use use = {word >> GGI_TICKET_BITS, newest_ticket(word),
                                      atomic_load(&ggi_memory_whole(memory)->result_watchers)};
    const gg_status status = word ? ggi_ended_report(memory->device, GG_OP_stream_wait, use) : GG_OK;
    if (status)
        ggi_memory_forget_result(memory);
    return status;
}

gg_status gg_memory_query(gg_memory *memory)
{
    gg_status status = ggi_device_check(memory->device);
    if (!status)
        status = memory_check_ended(memory);
    if (status)
        return status;
    const bool unused = ggi_memory_prune(memory, true);
    ggi_record_markers();
    return unused && !memory_not_ready(memory) && !ggi_memory_in_own_capture(memory) ? GG_OK
                                                                                     : GG_NOT_READY;
}

gg_status ggi_join_stream(gg_device *device, gg_stream **out)
{
    gg_stream *made, *none = NULL;
    gg_status status;
    *out = atomic_load(&device->join_stream);
    if (*out)
        return GG_OK;
    status = gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &made);
    if (status)
        return status;
    *out = made;
    if (!atomic_compare_exchange_strong(&device->join_stream, &none, made)) {
        gg_stream_release(made);
        *out = none;
    }
    return GG_OK;
}

gg_status gg_memory_completion_stream(gg_memory *memory, uint32_t flags, gg_stream **out)
{
    gg_stream *only = NULL, *join_stream;
    gg_status status = ggi_device_check(memory->device);
    if (status)
        return status;
    if (flags & ~(uint32_t)GG_COMPLETION_ALLOW_DEFAULT)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_memory_completion_stream: flags 0x%x contain an unknown bit",
                        (unsigned)flags);
    status = memory_check_ended(memory);
    if (status)
        return status;
    uint32_t count = memory_count_users(memory, &only);
    /* An ownerless stream's handle may mean another stream in another thread, or be destroyed. */
    if (!count || (count == 1 && !ggi_stream_is_ownerless(only) &&
                   (only->is_default || !ggi_other_capturing(only)) &&
                   (!only->is_default || flags & GG_COMPLETION_ALLOW_DEFAULT))) {
        *out = only;
        return GG_OK;
    }
    gg_stream_release(only);
    status = ggi_join_stream(memory->device, &join_stream);
    if (!status)
        status = ggi_memory_wait_uses(memory, join_stream);
    if (status)
        return status;
    gg_stream_retain(join_stream);
    *out = join_stream;
    return GG_OK;
}
