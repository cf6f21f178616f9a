/* list.c: immediate command lists that run in order: create, append, wait. */
#include "ze.h"

#include <sched.h>

#define SLICE_NS 100000u /* of a wait for a list */

/* ---- create and destroy ---- */

/* With two drivers a loader returns handles of its own. It removes a handle after the driver has destroyed the list.
 * If the driver has reused the address for a new list meanwhile, the loader removes that one (seen in loader
 * 1.8.12). So no list is created while one is destroyed. */
static pthread_mutex_t list_lifetime_lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t list_native_priority(int32_t priority)
{
    if (priority)
        return priority < 0 ? ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH
                            : ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW;
    return ZE_COMMAND_QUEUE_PRIORITY_NORMAL;
}

static int list_create(struct gg_device_impl *device, const struct ze_queue_desc *desc, void **list)
{
    pthread_mutex_lock(&list_lifetime_lock);
    const int code = ze.list_create(device->context, device->gpu->handle, desc, list);
    pthread_mutex_unlock(&list_lifetime_lock);
    return code;
}

static void list_destroy(void *list)
{
    pthread_mutex_lock(&list_lifetime_lock);
    ze_log_failure(ze.list_destroy(list), "destroying a list");
    pthread_mutex_unlock(&list_lifetime_lock);
}

/* The flags of lists, from the newest API on. The validation layer of an older loader rejects a flag even if the driver
 * supports it. */
static const struct list_kind {
    uint32_t api, flags;
} list_kinds[] = {
    {ZE_API(1, 14), ZE_COMMAND_QUEUE_FLAG_IN_ORDER | ZE_COMMAND_QUEUE_FLAG_COPY_OFFLOAD_HINT},
    {ZE_API(1, 7), ZE_COMMAND_QUEUE_FLAG_IN_ORDER},
    {0, 0},
};

int ze_list_create(struct gg_stream_impl *stream, int32_t priority)
{
    struct gg_device_impl *device = stream->device;
    struct ze_queue_desc desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                 .ordinal = device->group,
                                 .index = atomic_fetch_add(&device->next_queue, 1) % device->queues,
                                 .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
                                 .priority = list_native_priority(priority)};
    const struct list_kind *kind = list_kinds;
    int code;
    while (kind->api > device->driver->api)
        kind++;
    do {
        desc.flags = kind->flags;
        code = list_create(device, &desc, &stream->list);
    } while (code == ZE_RESULT_ERROR_INVALID_ENUMERATION && kind++->api);
    stream->in_order = desc.flags & ZE_COMMAND_QUEUE_FLAG_IN_ORDER;
    stream->needs_copy_list =
        device->copy_queues && !(desc.flags & ZE_COMMAND_QUEUE_FLAG_COPY_OFFLOAD_HINT);
    stream->priority = desc.priority;
    stream->tail = stream->list;
    return code;
}

/* With the stream's lock held. Without such a list copies run where kernels do, so a failure is not an error. */
static void copy_list_create(struct gg_stream_impl *stream)
{
    struct gg_device_impl *device = stream->device;
    const struct ze_queue_desc desc = {
        .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
        .ordinal = device->copy_group,
        .index = atomic_fetch_add(&device->next_copy_queue, 1) % device->copy_queues,
        .flags = stream->in_order ? ZE_COMMAND_QUEUE_FLAG_IN_ORDER : 0,
        .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
        .priority = stream->priority};
    const int code = list_create(device, &desc, &stream->copy_list);
    ze_log_failure(code, "creating a list for copies");
    stream->needs_copy_list = false;
    if (code)
        stream->copy_list = NULL;
}

void ze_lists_destroy(struct gg_stream_impl *stream)
{
    list_destroy(stream->list);
    if (stream->copy_list)
        list_destroy(stream->copy_list);
}

/* ---- appending; stream->lock is held ---- */

/* Make later appends wait for earlier ones, unless the list does so itself. */
static int list_append_order(struct gg_stream_impl *stream)
{
    if (stream->in_order)
        return 0;
    const int code = ze.append_barrier(stream->tail, NULL, 0, NULL);
    stream->barrier_due = code != 0;
    return code;
}

int ze_append_end(struct gg_stream_impl *stream, int code)
{
    if (!code) {
        stream->submitted++;
        code = list_append_order(stream);
    }
    pthread_mutex_unlock(&stream->lock);
    return code;
}

static int list_append_signal(struct gg_stream_impl *stream, void *event)
{
    if (stream->in_order)
        return ze.append_signal(stream->tail, event);
    const int code = ze.append_barrier(stream->tail, event, 0, NULL);
    if (!code)
        stream->barrier_due = false;
    return code;
}

static void stream_set_recorded(struct gg_stream_impl *stream, struct ze_pooled_event *pooled,
                                bool again)
{
    ze_pooled_event_release(stream->recorded);
    stream->recorded = ze_pooled_event_retain(pooled);
    stream->recorded_at = stream->submitted;
    if (again)
        return;
    ze_pooled_event_release(stream->first_recorded);
    stream->first_recorded = ze_pooled_event_retain(pooled);
}

/* A pooled event that is signalled after all appends so far. If nothing was appended since the last one, the first of these
 * is reused, unless @p renew is set. */
static int stream_record(struct gg_stream_impl *stream, bool renew, struct ze_pooled_event **out)
{
    struct ze_pooled_event *pooled = NULL;
    const bool again = stream->recorded && stream->recorded_at == stream->submitted;
    if (again && !renew) {
        *out = ze_pooled_event_retain(stream->first_recorded);
        return 0;
    }
    int code = ze_pooled_event_take(stream->device->driver, false, &pooled);
    if (code)
        return code;
    code = list_append_signal(stream, pooled->event);
    if (code) {
        ze_pooled_event_abandon(pooled);
        return code;
    }
    stream_set_recorded(stream, pooled, again);
    *out = pooled;
    return 0;
}

/* The barrier signals another event when it is passed; that one holds @p pooled until then. */
static int stream_wait_pooled(struct gg_stream_impl *stream, struct ze_pooled_event *pooled)
{
    struct ze_pooled_event *barrier_event = NULL;
    int code = ze_pooled_event_take(stream->device->driver, false, &barrier_event);
    if (code)
        return code;
    code = ze.append_barrier(stream->tail, barrier_event->event, 1, &pooled->event);
    if (code) {
        ze_pooled_event_abandon(barrier_event);
        return code;
    }
    barrier_event->before = ze_pooled_event_retain(pooled);
    stream->submitted++;
    ze_pooled_event_release(barrier_event);
    return 0;
}

/* Later appends go to the list @p to, after all earlier ones. */
static int stream_move(struct gg_stream_impl *stream, void *to)
{
    struct ze_pooled_event *pooled = NULL;
    void *from = stream->tail;
    int code = stream->submitted ? stream_record(stream, false, &pooled) : 0;
    if (code)
        return code;
    stream->tail = to;
    if (pooled)
        code = stream_wait_pooled(stream, pooled);
    if (code)
        stream->tail = from;
    ze_pooled_event_release(pooled);
    return code;
}

static void *stream_choose_list(struct gg_stream_impl *stream, enum ze_engine engine)
{
    if (engine == ZE_ENGINE_COMPUTE || atomic_load(&stream->shared))
        return stream->list;
    if (engine == ZE_ENGINE_ANY)
        return stream->tail;
    if (stream->needs_copy_list)
        copy_list_create(stream);
    return stream->copy_list ? stream->copy_list : stream->list;
}

/* An append by other code may have no barrier after it. */
int ze_append_begin(struct gg_stream_impl *stream, enum ze_engine engine)
{
    ze_stream_lock(stream);
    void *list = stream_choose_list(stream, engine);
    int code = stream->barrier_due || atomic_load(&stream->shared) ? list_append_order(stream) : 0;
    if (!code && list != stream->tail)
        code = stream_move(stream, list);
    return code;
}

int ze_stream_share(struct gg_stream_impl *stream)
{
    ze_stream_lock(stream);
    const int code = stream->tail == stream->list ? 0 : stream_move(stream, stream->list);
    if (!code)
        atomic_store(&stream->shared, true);
    pthread_mutex_unlock(&stream->lock);
    return code;
}

/* Other code may have appended something to a shared list. */
int ze_stream_record(struct gg_stream_impl *stream, struct ze_pooled_event **out)
{
    ze_stream_lock(stream);
    const int code = stream_record(stream, atomic_load(&stream->shared), out);
    pthread_mutex_unlock(&stream->lock);
    return code;
}

int ze_stream_record_time(struct gg_stream_impl *stream, struct ze_pooled_event **out)
{
    struct ze_pooled_event *pooled = NULL;
    int code = ze_pooled_event_take(stream->device->driver, true, &pooled);
    if (code)
        return code;
    code = ze_append_begin(stream, ZE_ENGINE_ANY);
    if (!code)
        code = ze.append_time(stream->tail, pooled->time, pooled->event, 0, NULL);
    if (code) {
        ze_append_end(stream, code);
        ze_pooled_event_abandon(pooled);
        return code;
    }
    code = ze_append_end(stream, code);
    if (code)
        ze_pooled_event_release(pooled); /* it will still be signalled */
    else
        *out = pooled;
    return code;
}

int ze_stream_wait_pooled(struct gg_stream_impl *stream, struct ze_pooled_event *pooled)
{
    int code = ze_append_begin(stream, ZE_ENGINE_ANY);
    if (!code)
        code = stream_wait_pooled(stream, pooled);
    pthread_mutex_unlock(&stream->lock);
    return code;
}

/* ---- waiting ---- */

/* With a pooled event, if the driver cannot wait for a list. Only a wait includes the appends of other code; a query
 * does not. */
static int stream_wait_recorded(struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    struct ze_pooled_event *pooled = NULL;
    const bool renew = timeout_ns && atomic_load(&stream->shared);
    ze_stream_lock(stream);
    const bool fresh = !stream->submitted && !stream->recorded && !renew;
    int code = fresh ? 0 : stream_record(stream, renew, &pooled);
    pthread_mutex_unlock(&stream->lock);
    if (code || fresh)
        return code;
    code = ze_pooled_event_wait(pooled, timeout_ns);
    ze_pooled_event_release(pooled);
    return code;
}

/* Where a wait succeeds, Intel's driver changes what appends change, without a lock of its own: so do both with the
 * stream's lock held. */
static int list_query(struct gg_stream_impl *stream)
{
    ze_stream_lock(stream);
    const int code = ze.list_synchronize(stream->tail, 0);
    pthread_mutex_unlock(&stream->lock);
    return code;
}

/* In slices: another thread may have to append what this one waits for. */
static int list_synchronize(struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    int code = list_query(stream);
    for (uint64_t left = timeout_ns; code == ZE_RESULT_NOT_READY && left;) {
        const uint64_t slice = left < SLICE_NS ? left : SLICE_NS;
        while (atomic_load(&stream->lockers))
            sched_yield();
        pthread_mutex_lock(&stream->lock);
        code = ze.list_synchronize(stream->tail, slice);
        pthread_mutex_unlock(&stream->lock);
        left -= left == UINT64_MAX ? 0 : slice;
    }
    return code;
}

int ze_list_wait(struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    struct ze_driver *driver = stream->device->driver;
    if (ze.list_synchronize && !atomic_load(&driver->no_list_wait)) {
        const int code = list_synchronize(stream, timeout_ns);
        if (!ze_is_unsupported(code))
            return code;
        atomic_store(&driver->no_list_wait, true);
    }
    return stream_wait_recorded(stream, timeout_ns);
}
