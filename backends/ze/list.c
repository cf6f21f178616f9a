/* list.c: immediate command lists that run in order: making them, appending to them, waiting for them. */
#include "ze.h"

/* ---- making and destroying ---- */

/* With two drivers a loader gives out handles of its own. It forgets one after the driver has destroyed the
 * list, and if the driver has given the same address to a new list meanwhile, it forgets that one (seen in
 * loader 1.8.12). So no list is made while one is destroyed. */
static pthread_mutex_t birth_and_death = PTHREAD_MUTEX_INITIALIZER;

static uint32_t native_priority(int32_t priority)
{
    if (priority)
        return priority < 0 ? ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH
                            : ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW;
    return ZE_COMMAND_QUEUE_PRIORITY_NORMAL;
}

/* An older loader's validation does not know the flag, whatever the driver knows. */
int ze_list_create(struct gg_device_impl *device, int32_t priority, void **list, bool *in_order)
{
    struct ze_queue_desc desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                 .ordinal = device->group,
                                 .index = atomic_fetch_add(&device->next_queue, 1) % device->queues,
                                 .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
                                 .priority = native_priority(priority)};
    int code = ZE_RESULT_ERROR_INVALID_ENUMERATION;
    *in_order = device->driver->api >= ZE_API(1, 7);
    pthread_mutex_lock(&birth_and_death);
    if (*in_order) {
        desc.flags = ZE_COMMAND_QUEUE_FLAG_IN_ORDER;
        code = ze.list_create(device->context, device->gpu->handle, &desc, list);
    }
    if (code == ZE_RESULT_ERROR_INVALID_ENUMERATION) {
        *in_order = false;
        desc.flags = 0;
        code = ze.list_create(device->context, device->gpu->handle, &desc, list);
    }
    pthread_mutex_unlock(&birth_and_death);
    return code;
}

void ze_list_destroy(void *list)
{
    pthread_mutex_lock(&birth_and_death);
    ze_forget(ze.list_destroy(list), "destroying a list");
    pthread_mutex_unlock(&birth_and_death);
}

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

/* What others append, to a list of theirs or to ours, may have no barrier behind it. */
int ze_append_begin(struct gg_stream_impl *stream)
{
    pthread_mutex_lock(&stream->lock);
    return stream->barrier_due || atomic_load(&stream->shared) ? order(stream) : 0;
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
    const bool fresh = !stream->submitted && !stream->mark && !anew;
    int code = fresh ? 0 : mark(stream, anew, &point);
    pthread_mutex_unlock(&stream->lock);
    if (code || fresh)
        return code;
    code = ze_point_wait(point, timeout_ns);
    ze_point_release(point);
    return code;
}

int ze_list_wait(struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    struct ze_driver *driver = stream->device->driver;
    if (ze.list_synchronize && !atomic_load(&driver->no_list_wait)) {
        const int code = ze.list_synchronize(stream->list, timeout_ns);
        if (!ze_is_lacking(code))
            return code;
        atomic_store(&driver->no_list_wait, true);
    }
    return wait_by_mark(stream, timeout_ns);
}
