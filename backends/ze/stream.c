/* stream.c: streams: each is a list of its own, or somebody else's. */
#include "ze.h"

#include <stdlib.h>

#define SETTLE_NS 1000000000u
#define FIRST_ADDRESS 4096u /* of what a process can have */

/* ---- waiting ---- */

/* The next stream of the device, with a reference, and without the one that @p stream had. One that is
 * held stays in the list, so that the next one can be found. */
static struct gg_stream_impl *next_stream(struct gg_device_impl *device,
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
    struct gg_stream_impl *stream = next_stream(device, NULL);
    for (; stream; stream = next_stream(device, stream))
        if (!code)
            code = ze_list_wait(stream, UINT64_MAX);
    return code;
}

gg_status ze_stream_query(struct gg_stream_impl *stream)
{
    const int code = ze_list_wait(stream, 0);
    return code ? ze_fail(code, "looking whether a stream is done") : GG_OK;
}

gg_status ze_stream_wait(struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    const int code = ze_list_wait(stream, timeout_ns);
    return code ? ze_fail(code, "waiting for a stream") : GG_OK;
}

gg_status ze_stream_wait_event(struct gg_stream_impl *stream, struct gg_event_impl *event)
{
    struct ze_point *point = ze_event_last(event);
    struct gg_device_impl *from = event->device;
    int code = 0;
    if (!point)
        return GG_OK;
    if (from->driver != stream->device->driver)
        code = ze_stream_task(stream, point, NULL, NULL);
    else if (event->borrowed || from != stream->device || ze_point_query(point))
        code = ze_stream_wait_point(stream, point);
    ze_point_release(point);
    return code ? ze_fail(code, "making a stream wait for an event") : GG_OK;
}

/* ---- create and destroy ---- */

/* With the device's lock held: the stream of ours that has this list, with a reference. */
static struct gg_stream_impl *known(struct gg_device_impl *device, void *list)
{
    struct gg_stream_impl *stream = device->streams;
    while (stream && stream->list != list)
        stream = stream->next;
    if (stream)
        stream->refs++;
    return stream;
}

static struct gg_stream_impl *find(struct gg_device_impl *device, void *list)
{
    pthread_mutex_lock(&device->lock);
    struct gg_stream_impl *stream = known(device, list);
    pthread_mutex_unlock(&device->lock);
    return stream;
}

/* The stream, or the one that another thread has added meanwhile for the list that both borrowed: two would append
 * to it at once. A list of ours is new, whoever had its address before. */
static struct gg_stream_impl *add(struct gg_stream_impl *stream)
{
    struct gg_device_impl *device = stream->device;
    pthread_mutex_lock(&device->lock);
    struct gg_stream_impl *other = stream->owned ? NULL : known(device, stream->list);
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

static bool drop(struct gg_stream_impl *stream)
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

static struct gg_stream_impl *new_stream(struct gg_device_impl *device, void *list, bool owned)
{
    struct gg_stream_impl *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->device = device;
    stream->list = list;
    stream->owned = owned;
    atomic_init(&stream->shared, !owned);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_mutex_init(&stream->task_lock, NULL);
    return stream;
}

static void delete_stream(struct gg_stream_impl *stream)
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

/* No stream is ordered with the default one, so GG_STREAM_NONBLOCKING changes nothing. */
gg_status ze_stream_create(struct gg_device_impl *device, uint32_t flags, int32_t priority,
                           struct gg_stream_impl **out)
{
    void *list = NULL;
    bool in_order;
    if (flags & ~(uint32_t)GG_STREAM_NONBLOCKING)
        return ze_host->fail(GG_ERR_UNSUPPORTED, NULL, "stream flags 0x%x", (unsigned)flags);
    const int code = ze_list_create(device, priority, &list, &in_order);
    if (code)
        return ze_fail(code, "flags 0x%x, priority %d", (unsigned)flags, (int)priority);
    struct gg_stream_impl *stream = new_stream(device, list, true);
    if (!stream) {
        ze_list_destroy(list);
        return ze_no_memory("a stream");
    }
    stream->in_order = in_order;
    add(stream);
    *out = stream;
    return GG_OK;
}

void ze_stream_destroy(struct gg_stream_impl *stream)
{
    if (!drop(stream))
        return; /* borrowed by someone */
    ze_tasks_end(stream);
    /* Its work is done, but the last signal behind it may not have been asked for yet, and a list must not
     * be destroyed before it has come. */
    if (stream->owned && stream->mark)
        ze_forget(ze_point_wait(stream->mark, SETTLE_NS), "waiting for a list's last signal");
    if (stream->owned)
        ze_list_destroy(stream->list);
    ze_point_release(stream->mark);
    delete_stream(stream);
}

/* ---- native handles ---- */

/* From API 1.9 on the list itself can be asked. */
static gg_status check_foreign(struct gg_device_impl *device, void *list)
{
    void *owner = device->gpu->handle;
    uint8_t immediate = 1;
    if ((uintptr_t)list < FIRST_ADDRESS) /* other vendors have small numbers for special streams */
        return ze_host->fail(GG_ERR_INVALID_ARGUMENT, NULL, "%zu is no command list",
                             (size_t)(uintptr_t)list);
    if (ze.list_is_immediate && ze.list_is_immediate(list, &immediate))
        immediate = 1;
    if (ze.list_device && ze.list_device(list, &owner))
        owner = device->gpu->handle;
    if (!immediate)
        return ze_host->fail(
            GG_ERR_INVALID_ARGUMENT, NULL,
            "%p is a command list that must be closed and executed; only immediate "
            "lists are streams",
            list);
    if (owner != device->gpu->handle)
        return ze_host->fail(GG_ERR_INVALID_ARGUMENT, NULL, "%p is a list of another device", list);
    return GG_OK;
}

gg_status ze_stream_borrow(struct gg_device_impl *device, uint64_t native, uint32_t *flags,
                           int32_t *is_default, struct gg_stream_impl **out)
{
    void *list = (void *)(uintptr_t)native;
    struct gg_stream_impl *stream = find(device, list);
    *flags = GG_STREAM_NONBLOCKING;
    *is_default = stream && stream == device->default_stream;
    if (*is_default)
        drop(stream);
    if (!stream) {
        const gg_status status = check_foreign(device, list);
        if (status)
            return status;
        struct gg_stream_impl *made = new_stream(device, list, false);
        if (!made)
            return ze_no_memory("a borrowed stream");
        stream = add(made);
        if (stream != made)
            delete_stream(made);
    }
    *out = stream;
    return GG_OK;
}

gg_status ze_stream_native(struct gg_stream_impl *stream, uint64_t handles[4])
{
    atomic_store(&stream->shared, true);
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
