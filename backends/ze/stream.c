/* stream.c: streams: created, each with its own list, or borrowed. */
#include "ze.h"

#include <stdlib.h>

#define SETTLE_NS 1000000000u
#define FIRST_ADDRESS 4096u /* the lowest address of a list */

/* ---- waiting ---- */

/* The next stream of the device, with a reference; the reference to @p stream is released. A referenced stream stays
 * in the list, so that the next one can be found. */
static struct gg_stream_impl *streams_next(struct gg_device_impl *device,
                                           struct gg_stream_impl *stream)
{
    pthread_mutex_lock(&device->lock);
    struct gg_stream_impl *next = stream ? stream->next : device->streams;
    if (next)
        next->refs++;
    pthread_mutex_unlock(&device->lock);
    if (stream)
        ze_stream_destroy(stream);
    return next;
}

int ze_streams_wait(struct gg_device_impl *device)
{
    int code = 0;
    struct gg_stream_impl *stream = streams_next(device, NULL);
    for (; stream; stream = streams_next(device, stream))
        if (!code)
            code = ze_list_wait(stream, UINT64_MAX);
    return code;
}

gg_status ze_stream_query(struct gg_stream_impl *stream)
{
    const int code = ze_list_wait(stream, 0);
    return code ? ze_fail(code, "querying a stream") : GG_OK;
}

gg_status ze_stream_wait(struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    const int code = ze_list_wait(stream, timeout_ns);
    return code ? ze_fail(code, "waiting for a stream") : GG_OK;
}

gg_status ze_stream_wait_event(struct gg_stream_impl *stream, struct gg_event_impl *event)
{
    struct ze_pooled_event *pooled = ze_event_current(event);
    struct gg_device_impl *from = event->device;
    int code = 0;
    if (!pooled)
        return GG_OK;
    if (from->driver != stream->device->driver)
        code = ze_stream_task(stream, pooled, NULL, NULL);
    else if (event->borrowed || from != stream->device || ze_pooled_event_query(pooled))
        code = ze_stream_wait_pooled(stream, pooled);
    ze_pooled_event_release(pooled);
    return code ? ze_fail(code, "making a stream wait for an event") : GG_OK;
}

/* ---- create and destroy ---- */

/* The known stream of @p list, with a reference; NULL: none. The device's lock is held. */
static struct gg_stream_impl *streams_find_locked(struct gg_device_impl *device, void *list)
{
    struct gg_stream_impl *stream = device->streams;
    while (stream && stream->list != list)
        stream = stream->next;
    if (stream)
        stream->refs++;
    return stream;
}

static struct gg_stream_impl *streams_find(struct gg_device_impl *device, void *list)
{
    pthread_mutex_lock(&device->lock);
    struct gg_stream_impl *stream = streams_find_locked(device, list);
    pthread_mutex_unlock(&device->lock);
    return stream;
}

/* The stream, or the one that another thread has added meanwhile for the same borrowed list: two streams must not
 * append to it at once. A list that we created is new even if its address was used before. */
static struct gg_stream_impl *streams_add(struct gg_stream_impl *stream)
{
    struct gg_device_impl *device = stream->device;
    pthread_mutex_lock(&device->lock);
    struct gg_stream_impl *other = stream->owned ? NULL : streams_find_locked(device, stream->list);
    if (!other) {
        stream->refs = 1;
        stream->next = device->streams;
        if (device->streams)
            device->streams->previous = stream;
        device->streams = stream;
    }
    pthread_mutex_unlock(&device->lock);
    return other ? other : stream;
}

static bool stream_drop(struct gg_stream_impl *stream)
{
    struct gg_device_impl *device = stream->device;
    pthread_mutex_lock(&device->lock);
    const bool last = --stream->refs == 0;
    if (last && stream->next)
        stream->next->previous = stream->previous;
    if (last && stream->previous)
        stream->previous->next = stream->next;
    else if (last)
        device->streams = stream->next;
    pthread_mutex_unlock(&device->lock);
    return last;
}

static struct gg_stream_impl *stream_new(struct gg_device_impl *device, void *list, bool owned)
{
    struct gg_stream_impl *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->device = device;
    stream->list = stream->tail = list;
    stream->owned = owned;
    atomic_init(&stream->shared, !owned);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_mutex_init(&stream->task_lock, NULL);
    return stream;
}

static void stream_delete(struct gg_stream_impl *stream)
{
    pthread_mutex_destroy(&stream->task_lock);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

gg_status ze_stream_default(struct gg_device_impl *device, struct gg_stream_impl **out)
{
    *out = device->default_stream;
    return GG_OK;
}

/* No stream is ordered with the default stream, so GG_STREAM_NONBLOCKING has no effect. */
gg_status ze_stream_create(struct gg_device_impl *device, uint32_t flags, int32_t priority,
                           struct gg_stream_impl **out)
{
    if (flags & ~(uint32_t)GG_STREAM_NONBLOCKING)
        return ze_api->fail(GG_ERR_UNSUPPORTED, NULL, "stream flags 0x%x", (unsigned)flags);
    struct gg_stream_impl *stream = stream_new(device, NULL, true);
    if (!stream)
        return ze_no_memory("a stream");
    const int code = ze_list_create(stream, priority);
    if (code) {
        stream_delete(stream);
        return ze_fail(code, "flags 0x%x, priority %d", (unsigned)flags, (int)priority);
    }
    streams_add(stream);
    *out = stream;
    return GG_OK;
}

/* Behind an append whose barrier failed there is no signal yet. Captured work does not run. */
static int stream_wait_last(struct gg_stream_impl *stream)
{
    struct ze_pooled_event *pooled = NULL;
    if (stream->captured)
        return 0;
    int code = stream->recorded_at == stream->submitted ? 0 : ze_stream_record(stream, &pooled);
    ze_pooled_event_release(pooled);
    if (!code && stream->recorded)
        code = ze_pooled_event_wait(stream->recorded, SETTLE_NS);
    return code;
}

/* The work is complete, but perhaps not the last signal after it, and neither a list nor its event may be destroyed before
 * that. Returns whether they may be. A failed wait is repeated. */
static bool stream_settle(struct gg_stream_impl *stream)
{
    int code = stream_wait_last(stream);
    for (int tries = 1; tries < ZE_TRIES && code && !ze_is_shut_down(code); tries++)
        code = stream_wait_last(stream);
    ze_log_failure(code, "waiting for a list's last signal");
    return !code || ze_is_over(code);
}

void ze_stream_destroy(struct gg_stream_impl *stream)
{
    if (!stream_drop(stream))
        return; /* still borrowed */
    ze_tasks_end(stream);
    if (!stream->owned || stream_settle(stream)) {
        if (stream->owned)
            ze_lists_destroy(stream);
        ze_pooled_event_release(stream->first_recorded);
        ze_pooled_event_release(stream->recorded);
    } else { /* the device may still write the signal: both are left to it */
        ze_pooled_event_leave(stream->first_recorded);
        ze_pooled_event_leave(stream->recorded);
    }
    stream_delete(stream);
}

/* ---- native handles ---- */

/* From API 1.9 on a list can be queried. */
static gg_status list_check_external(struct gg_device_impl *device, void *list)
{
    void *owner = device->gpu->handle;
    uint8_t immediate = 1;
    if ((uintptr_t)list < FIRST_ADDRESS) /* other vendors use small numbers for special streams */
        return ze_api->fail(GG_ERR_INVALID_ARGUMENT, NULL, "%zu is not a command list",
                            (size_t)(uintptr_t)list);
    if (ze.list_is_immediate && ze.list_is_immediate(list, &immediate))
        immediate = 1;
    if (ze.list_device && ze.list_device(list, &owner))
        owner = device->gpu->handle;
    if (!immediate)
        return ze_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                            "%p is a command list that must be closed and executed; only immediate "
                            "lists are streams",
                            list);
    if (owner != device->gpu->handle)
        return ze_api->fail(GG_ERR_INVALID_ARGUMENT, NULL, "%p is a command list of another device",
                            list);
    return GG_OK;
}

gg_status ze_stream_borrow(struct gg_device_impl *device, uint64_t native, uint32_t *flags,
                           int32_t *is_default, struct gg_stream_impl **out)
{
    void *list = (void *)(uintptr_t)native;
    struct gg_stream_impl *stream = streams_find(device, list);
    *flags = GG_STREAM_NONBLOCKING;
    *is_default = stream && stream == device->default_stream;
    if (*is_default)
        stream_drop(stream);
    if (!stream) {
        const gg_status status = list_check_external(device, list);
        if (status)
            return status;
        struct gg_stream_impl *made = stream_new(device, list, false);
        if (!made)
            return ze_no_memory("a borrowed stream");
        stream = streams_add(made);
        if (stream != made)
            stream_delete(made);
    }
    *out = stream;
    return GG_OK;
}

gg_status ze_stream_native(struct gg_stream_impl *stream, uint64_t handles[4])
{
    const int code = ze_stream_share(stream);
    if (code)
        return ze_fail(code, "moving a stream's work to one list");
    handles[0] = (uintptr_t)stream->list;
    handles[1] = (uintptr_t)stream->device->gpu->handle;
    handles[2] = (uintptr_t)stream->device->context;
    handles[3] = (uintptr_t)stream->device->driver->handle;
    return GG_OK;
}

gg_status ze_stream_priority_range(struct gg_device_impl *device, int32_t *least, int32_t *greatest)
{
    (void)device;
    *least = 1;
    *greatest = -1;
    return GG_OK;
}
