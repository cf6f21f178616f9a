/* captured.c: the captures that gpuglue began, and the memory that their work uses. */
#include "base/error.h"
#include "base/list.h"
#include "memory/captured.h"
#include "memory/uses.h"

#include <stdlib.h>

/* Captured work is rare, and no driver call is made under the lock. No other lock is taken under it. */
static pthread_mutex_t active_lock = PTHREAD_MUTEX_INITIALIZER;
GGI_RESET_IN_CHILD(active_lock)
static struct ggi_capture *active;
static uint64_t last_capture; /* serial; under the lock */

void ggi_capture_start(struct ggi_capture *capture, uint64_t id)
{
    pthread_mutex_lock(&active_lock);
    capture->id = id;
    capture->serial = ++last_capture;
    capture->thread = pthread_self();
    capture->next = active;
    active = capture;
    pthread_mutex_unlock(&active_lock);
}

struct ggi_capture *ggi_capture_stop(const gg_stream *stream)
{
    pthread_mutex_lock(&active_lock);
    struct ggi_capture **at = &active;
    while (*at && (*at)->stream != stream)
        at = &(*at)->next;
    struct ggi_capture *capture = *at;
    if (capture)
        *at = capture->next;
    pthread_mutex_unlock(&active_lock);
    return capture;
}

/* With the lock held. NULL: another library began the capture. */
static struct ggi_capture *capture_find(const struct gg_device *device, uint64_t id)
{
    struct ggi_capture *capture = active;
    while (capture && (capture->id != id || capture->stream->device->backend != device->backend))
        capture = capture->next;
    return capture;
}

static bool captured_reserve(struct ggi_captured *uses)
{
    if (uses->count < uses->room)
        return true;
    const size_t room = uses->room ? 2 * uses->room : 16;
    gg_memory **memories = realloc(uses->memories, room * sizeof *memories);
    if (!memories)
        return false;
    uses->memories = memories;
    uses->room = room;
    return true;
}

/* With the lock held. The memory knows the newest capture that holds it, so the list is searched only if a later capture
 * holds it too. */
static bool captured_holds(const struct ggi_capture *capture, const gg_memory *memory)
{
    const struct ggi_captured *uses = capture->uses;
    if (memory->held_by <= capture->serial)
        return memory->held_by == capture->serial;
    for (size_t i = uses->count; i > 0; i--)
        if (uses->memories[i - 1] == memory)
            return true;
    return false;
}

/* With the lock held. False if the memory is being destroyed. */
static bool captured_hold(struct ggi_capture *capture, gg_memory *memory)
{
    struct ggi_captured *uses = capture->uses;
    if (captured_holds(capture, memory))
        return true;
    if (!ggi_refs_try_retain(&memory->refs))
        return false;
    if (!captured_reserve(uses)) {
        uses->incomplete =
            true; /* the capture fails at its end, with the caller's reference still held */
        atomic_fetch_sub(&memory->refs, 1);
        return true;
    }
    uses->memories[uses->count++] = memory;
    if (memory->held_by < capture->serial)
        memory->held_by = capture->serial;
    uses->to_host = uses->to_host || memory->kind != GG_MEMORY_DEVICE;
    return true;
}

static bool users_reserve(struct ggi_capture *capture)
{
    if (capture->user_count < capture->user_room)
        return true;
    const size_t room = capture->user_room ? 2 * capture->user_room : 16;
    struct ggi_captured_user *users = realloc(capture->users, room * sizeof *users);
    if (!users)
        return false;
    capture->users = users;
    capture->user_room = room;
    return true;
}

/* With the lock held: the number of the last user of the memory, from 1; 0: none. As captured_holds. */
static size_t capture_last_user(const struct ggi_capture *capture, const gg_memory *memory)
{
    size_t number = capture->user_count;
    if (memory->used_in <= capture->serial)
        return memory->used_in == capture->serial ? memory->last_user : 0;
    while (number && capture->users[number - 1].memory != memory)
        number--;
    return number;
}

/* Every external handle that is passed to an operation is a stream of its own. */
static bool is_same_stream(const gg_stream *one, const gg_stream *other)
{
    return one == other || (one->native && one->native == other->native &&
                            one->device == other->device && !one->of_thread);
}

/* With the lock held. */
static void capture_note_user(struct ggi_capture *capture, gg_memory *memory, gg_stream *stream)
{
    const size_t last = capture_last_user(capture, memory);
    for (size_t i = last; i; i = capture->users[i - 1].older)
        if (is_same_stream(capture->users[i - 1].stream, stream))
            return;
    if (!users_reserve(capture)) {
        capture->uses->incomplete = true;
        return;
    }
    gg_stream_retain(stream);
    capture->users[capture->user_count++] = (struct ggi_captured_user){memory, stream, last};
    if (memory->used_in <= capture->serial) {
        memory->used_in = capture->serial;
        memory->last_user = capture->user_count;
    }
}

void ggi_capture_forget_users(struct ggi_capture *capture)
{
    for (size_t i = 0; i < capture->user_count; i++)
        gg_stream_release(capture->users[i].stream);
    free(capture->users);
}

/* The user with this number or, if it is @p stream, an older one, with a reference; and the number of the next older one.
 * NULL: there is none. */
static gg_stream *capture_user(uint64_t id, const gg_memory *memory, const gg_stream *stream,
                               bool newest, size_t *number)
{
    gg_stream *found = NULL;
    pthread_mutex_lock(&active_lock);
    const struct ggi_capture *capture = capture_find(stream->device, id);
    if (!capture)
        *number = 0;
    else if (newest)
        *number = capture_last_user(capture, memory);
    while (*number && !found) {
        const struct ggi_captured_user *user = &capture->users[*number - 1];
        found = is_same_stream(user->stream, stream) ? NULL : user->stream;
        *number = user->older;
    }
    if (found)
        gg_stream_retain(found);
    pthread_mutex_unlock(&active_lock);
    return found;
}

gg_status ggi_memory_wait_captured(gg_memory *memory, gg_stream *stream)
{
    gg_status status = GG_OK;
    gg_stream *other;
    uint64_t id = 0;
    size_t next = 0;
    bool newest = true;
    if (ggi_stream_capture_id(stream, &id) || !id)
        return GG_OK;
    memory = ggi_memory_whole(memory);
    while (!status && (other = capture_user(id, memory, stream, newest, &next))) {
        status = ggi_stream_fence(stream, other, false);
        gg_stream_release(other);
        newest = false;
    }
    return status;
}

bool ggi_memory_in_own_capture(gg_memory *memory)
{
    bool found = false;
    if (!atomic_load_explicit(&ggi_captures, memory_order_relaxed))
        return false;
    memory = ggi_memory_whole(memory);
    pthread_mutex_lock(&active_lock);
    for (const struct ggi_capture *capture = active; capture && !found; capture = capture->next)
        found = pthread_equal(capture->thread, pthread_self()) && capture_last_user(capture, memory);
    pthread_mutex_unlock(&active_lock);
    return found;
}

void ggi_memory_captured(gg_memory *memory, gg_stream *stream)
{
    uint64_t id = 0;
    if (!ggi_stream_capture_id(stream, &id) && !id) /* invalidated: nothing was captured */
        return;
    pthread_mutex_lock(&active_lock);
    struct ggi_capture *capture = capture_find(stream->device, id);
    if (!capture)
        atomic_store(&memory->captured, 1);
    else if (captured_hold(capture, memory)) /* else its owner is held: a module's code */
        capture_note_user(capture, ggi_memory_whole(memory), stream);
    pthread_mutex_unlock(&active_lock);
}

/* Whether the stream is in a capture of gpuglue; *item is in its list then, or freed. */
static bool captured_add_owner(gg_stream *stream, const struct ggi_captured_owner *given,
                               bool to_host, bool *added)
{
    struct ggi_captured_owner *item = malloc(sizeof *item);
    uint64_t id = 0;
    ggi_stream_capture_id(stream, &id);
    pthread_mutex_lock(&active_lock);
    const struct ggi_capture *capture = capture_find(stream->device, id);
    struct ggi_captured *uses = capture ? capture->uses : NULL;
    *added = uses && item;
    if (*added) {
        *item = *given;
        item->next = uses->owners;
        uses->owners = item;
        uses->to_host = uses->to_host || to_host;
        uses->may_end = uses->may_end || given->hooks;
    } else if (uses) {
        uses->incomplete = true;
    }
    pthread_mutex_unlock(&active_lock);
    if (!*added)
        free(item);
    return uses != NULL;
}

gg_status ggi_captured_keep_owner(gg_stream *stream, void (*release)(void *), void *owner)
{
    const struct ggi_captured_owner item = {.release = release, .owner = owner};
    bool added;
    if (captured_add_owner(stream, &item, true, &added))
        return added ? GG_OK : GG_ERR_OUT_OF_MEMORY;
    return ggi_device_defer_release(stream->device, release, owner);
}

gg_status ggi_captured_keep(gg_stream *stream, const struct ggi_captured_hooks *hooks, void *owner,
                            bool *kept)
{
    const struct ggi_captured_owner item = {
        .release = hooks->release, .owner = owner, .hooks = hooks};
    if (captured_add_owner(stream, &item, false, kept) && !*kept)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a capture");
    return GG_OK;
}

/* Of the owners before @p last. */
static gg_status captured_end_before(const struct ggi_captured *uses,
                                     const struct ggi_captured_owner *last, gg_stream *stream,
                                     uint64_t ticket, gg_status status)
{
    for (const struct ggi_captured_owner *owner = uses->owners; owner != last; owner = owner->next)
        if (owner->hooks)
            status = owner->hooks->end(owner->owner, stream, ticket, status);
    return status;
}

static void captured_count(const struct ggi_captured *uses, int32_t by)
{
    for (const struct ggi_captured_owner *owner = uses->owners; owner; owner = owner->next)
        if (owner->hooks)
            owner->hooks->count(owner->owner, by);
}

gg_status ggi_captured_begin(const struct ggi_captured *uses, gg_stream *stream)
{
    gg_status status = GG_OK;
    for (const struct ggi_captured_owner *owner = uses->owners; owner; owner = owner->next) {
        if (owner->hooks)
            status = owner->hooks->begin(owner->owner, stream);
        if (status)
            return captured_end_before(uses, owner, stream, 0, status);
    }
    captured_count(uses, 1);
    return GG_OK;
}

gg_status ggi_captured_end(const struct ggi_captured *uses, gg_stream *stream, uint64_t ticket,
                           gg_status status)
{
    if (status)
        captured_count(uses, -1);
    return captured_end_before(uses, NULL, stream, ticket, status);
}
