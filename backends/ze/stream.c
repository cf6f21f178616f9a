/* stream.c: streams: immediate command lists that run in order. */
#include "ze.h"

#include <stdlib.h>
#include <string.h>

#define SETTLE_NS 1000000000u

/* ---- appending; stream->lock is held ---- */

/* Makes what comes later wait for what came before, where the list does not do that by itself. */
static int order(struct gg_stream_impl *stream)
{
    if (stream->in_order)
        return 0;
    const int code = ze.append_barrier(stream->list, NULL, 0, NULL);
    stream->barrier_due = code != 0;
    return code;
}

/* What others append to a list of theirs may have no barrier behind it. */
int ze_append_begin(struct gg_stream_impl *stream)
{
    pthread_mutex_lock(&stream->lock);
    return stream->barrier_due || !stream->owned ? order(stream) : 0;
}

int ze_append_end(struct gg_stream_impl *stream, int code)
{
    if (!code) {
        stream->submitted++;
        code = order(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    return code;
}

static int signal_behind(struct gg_stream_impl *stream, void *event)
{
    if (stream->in_order)
        return ze.append_signal(stream->list, event);
    const int code = ze.append_barrier(stream->list, event, 0, NULL);
    if (!code)
        stream->barrier_due = false;
    return code;
}

/* A point with its signal behind all appends so far; the last one serves again while nothing was
 * appended since. */
static int mark(struct gg_stream_impl *stream, bool anew, struct ze_point **out)
{
    struct ze_point *point = NULL;
    if (stream->mark && stream->marked == stream->submitted && !anew) {
        *out = ze_point_retain(stream->mark);
        return 0;
    }
    int code = ze_point_take(stream->device->driver, false, &point);
    if (code)
        return code;
    code = signal_behind(stream, point->event);
    if (code) {
        ze_point_abandon(point);
        return code;
    }
    ze_point_release(stream->mark);
    stream->mark = ze_point_retain(point);
    stream->marked = stream->submitted;
    *out = point;
    return 0;
}

/* Others may have appended something behind the last mark. */
int ze_stream_mark(struct gg_stream_impl *stream, struct ze_point **out)
{
    pthread_mutex_lock(&stream->lock);
    const int code = mark(stream, atomic_load(&stream->shared), out);
    pthread_mutex_unlock(&stream->lock);
    return code;
}

int ze_stream_mark_time(struct gg_stream_impl *stream, struct ze_point **out)
{
    struct ze_point *point = NULL;
    int code = ze_point_take(stream->device->driver, true, &point);
    if (code)
        return code;
    code = ze_append_begin(stream);
    if (!code)
        code = ze.append_time(stream->list, point->time, point->event, 0, NULL);
    if (code) {
        ze_append_end(stream, code);
        ze_point_abandon(point);
        return code;
    }
    code = ze_append_end(stream, code);
    if (code)
        ze_point_release(point); /* it will be signalled all the same */
    else
        *out = point;
    return code;
}

/* The barrier signals an event of its own when it is passed, and that one holds @p point until then. */
int ze_stream_wait_point(struct gg_stream_impl *stream, struct ze_point *point)
{
    struct ze_point *receipt = NULL;
    int code = ze_point_take(stream->device->driver, false, &receipt);
    if (code)
        return code;
    code = ze_append_begin(stream);
    if (!code)
        code = ze.append_barrier(stream->list, receipt->event, 1, &point->event);
    if (!code) {
        receipt->before = ze_point_retain(point);
        stream->submitted++;
    }
    pthread_mutex_unlock(&stream->lock);
    if (code)
        ze_point_abandon(receipt);
    else
        ze_point_release(receipt);
    return code;
}

/* ---- waiting ---- */

/* With a point, where the driver cannot wait for a list. Of what others appended only a wait knows. */
static int wait_by_mark(struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    struct ze_point *point = NULL;
    const bool anew = timeout_ns && atomic_load(&stream->shared);
    pthread_mutex_lock(&stream->lock);
    const uint64_t now = stream->submitted;
    const bool idle = stream->passed == now && !anew;
    int code = idle ? 0 : mark(stream, anew, &point);
    pthread_mutex_unlock(&stream->lock);
    if (code || idle)
        return code;
    code = ze_point_wait(point, timeout_ns);
    ze_point_release(point);
    if (code)
        return code;
    pthread_mutex_lock(&stream->lock);
    if (stream->passed < now)
        stream->passed = now;
    pthread_mutex_unlock(&stream->lock);
    return 0;
}

static int wait_for(struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    struct ze_driver *driver = stream->device->driver;
    if (ze.list_synchronize && !atomic_load(&driver->no_list_wait)) {
        const int code = ze.list_synchronize(stream->list, timeout_ns);
        if (code != ZE_RESULT_ERROR_UNSUPPORTED_FEATURE &&
            code != ZE_RESULT_ERROR_UNSUPPORTED_VERSION)
            return code;
        atomic_store(&driver->no_list_wait, true);
    }
    return wait_by_mark(stream, timeout_ns);
}

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
            code = wait_for(stream, UINT64_MAX);
    return code;
}

gg_status ze_stream_query(struct gg_stream_impl *stream)
{
    const int code = wait_for(stream, 0);
    return code ? ze_fail(code, "looking whether a stream is done") : GG_OK;
}

gg_status ze_stream_wait(struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    const int code = wait_for(stream, timeout_ns);
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

static void add(struct gg_stream_impl *stream)
{
    struct gg_device_impl *device = stream->device;
    pthread_mutex_lock(&device->lock);
    stream->refs = 1;
    stream->next = device->streams;
    if (device->streams)
        device->streams->previous = stream;
    device->streams = stream;
    pthread_mutex_unlock(&device->lock);
}

/* The stream of ours that has this list, with a reference. */
static struct gg_stream_impl *find(struct gg_device_impl *device, void *list)
{
    struct gg_stream_impl *stream;
    pthread_mutex_lock(&device->lock);
    stream = device->streams;
    while (stream && stream->list != list)
        stream = stream->next;
    if (stream)
        stream->refs++;
    pthread_mutex_unlock(&device->lock);
    return stream;
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
    return stream;
}

static uint32_t native_priority(int32_t priority)
{
    if (priority)
        return priority < 0 ? ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH
                            : ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW;
    return ZE_COMMAND_QUEUE_PRIORITY_NORMAL;
}

/* An older loader's validation does not know the flag, whatever the driver knows. */
static int create_list(struct gg_device_impl *device, int32_t priority, void **list, bool *in_order)
{
    struct ze_queue_desc desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                 .ordinal = device->group,
                                 .index = atomic_fetch_add(&device->next_queue, 1) % device->queues,
                                 .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
                                 .priority = native_priority(priority)};
    int code = ZE_RESULT_ERROR_INVALID_ENUMERATION;
    *in_order = device->driver->api >= ZE_API(1, 7);
    if (*in_order) {
        desc.flags = ZE_COMMAND_QUEUE_FLAG_IN_ORDER;
        code = ze.list_create(device->context, device->gpu->handle, &desc, list);
    }
    if (code != ZE_RESULT_ERROR_INVALID_ENUMERATION)
        return code;
    *in_order = false;
    desc.flags = 0;
    return ze.list_create(device->context, device->gpu->handle, &desc, list);
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
    const int code = create_list(device, priority, &list, &in_order);
    if (code)
        return ze_fail(code, "flags 0x%x, priority %d", (unsigned)flags, (int)priority);
    struct gg_stream_impl *stream = new_stream(device, list, true);
    if (!stream) {
        ze_forget(ze.list_destroy(list), "destroying a list");
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
        ze_forget(ze.list_destroy(stream->list), "destroying a list");
    ze_point_release(stream->mark);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

/* ---- native handles ---- */

/* From API 1.9 on the list itself can be asked. */
static gg_status check_foreign(struct gg_device_impl *device, void *list)
{
    void *owner = device->gpu->handle;
    uint8_t immediate = 1;
    if (!list)
        return ze_host->fail(GG_ERR_INVALID_ARGUMENT, NULL, "0 is no command list");
    if (ze.list_is_immediate && ze.list_is_immediate(list, &immediate))
        immediate = 1;
    if (ze.list_device && ze.list_device(list, &owner))
        owner = device->gpu->handle;
    if (!immediate)
        return ze_host->fail(GG_ERR_INVALID_ARGUMENT, NULL,
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
        stream = new_stream(device, list, false);
        if (!stream)
            return ze_no_memory("a borrowed stream");
        add(stream);
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

gg_status ze_stream_priority_range(struct gg_device_impl *device, int32_t *least,
                                   int32_t *greatest)
{
    (void)device;
    *least = 1;
    *greatest = -1;
    return GG_OK;
}
