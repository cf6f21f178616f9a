/* event.c: an event names the point at which it was recorded last; recording it again names another,
 * and whoever waits for the first one still does. */
#include "mine.h"

#include <stdlib.h>
#include <string.h>

/* ---- points ---- */

struct mine_point *mine_point_new(void)
{
    struct mine_point *point = calloc(1, sizeof *point);
    if (!point)
        return NULL;
    atomic_init(&point->refs, 1);
    atomic_init(&point->pending, 0);
    point->time_ns = mine_now_ns();
    pthread_mutex_init(&point->lock, NULL);
    mine_cond_init(&point->reached);
    return point;
}

gg_status mine_no_point(void)
{
    return mine_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for an event's state");
}

static struct mine_point *retain(struct mine_point *point)
{
    atomic_fetch_add_explicit(&point->refs, 1, memory_order_relaxed);
    return point;
}

void mine_point_release(struct mine_point *point)
{
    if (atomic_fetch_sub_explicit(&point->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_cond_destroy(&point->reached);
    pthread_mutex_destroy(&point->lock);
    free(point);
}

/* Acquires time_ns with it. */
static bool passed(const struct mine_point *point)
{
    return atomic_load_explicit(&point->pending, memory_order_acquire) == 0;
}

gg_status mine_point_wait(struct mine_point *point, uint64_t timeout_ns)
{
    uint64_t deadline = mine_deadline(timeout_ns);
    bool in_time = true;
    pthread_mutex_lock(&point->lock);
    while (!passed(point) && in_time)
        in_time = mine_cond_wait(&point->reached, &point->lock, deadline);
    pthread_mutex_unlock(&point->lock);
    return passed(point) ? GG_OK : GG_NOT_READY;
}

static void run_reach(const struct mine_command *command)
{
    struct mine_point *point = command->point;
    pthread_mutex_lock(&point->lock);
    point->time_ns = mine_now_ns();
    atomic_fetch_sub_explicit(&point->pending, 1, memory_order_release);
    pthread_cond_broadcast(&point->reached);
    pthread_mutex_unlock(&point->lock);
    mine_point_release(point);
}

gg_status mine_point_queue(struct mine_point *point, struct gg_stream_impl *stream)
{
    const struct mine_command work = {.run = run_reach, .brief = true, .point = retain(point)};
    gg_status status;
    atomic_fetch_add_explicit(&point->pending, 1, memory_order_relaxed);
    status = mine_submit(stream, &work);
    if (status) {
        atomic_fetch_sub_explicit(&point->pending, 1, memory_order_relaxed);
        mine_point_release(point);
    }
    return status;
}

static void run_wait(const struct mine_command *command)
{
    mine_point_wait(command->point, GG_FOREVER);
    mine_point_release(command->point);
}

/* ---- events ---- */

/* What the event recorded last, with a reference; NULL when it was never recorded. */
static struct mine_point *last_point(struct gg_event_impl *event)
{
    struct mine_point *point;
    pthread_mutex_lock(&event->lock);
    point = event->point ? retain(event->point) : NULL;
    pthread_mutex_unlock(&event->lock);
    return point;
}

gg_status mine_event_create(struct gg_device_impl *device, uint32_t flags,
                            struct gg_event_impl **out)
{
    /* Every event has a time and every wait sleeps at once: both flags ask for what there is. */
    const uint32_t known = GG_EVENT_TIMING | GG_EVENT_BLOCKING;
    struct gg_event_impl *event;
    if (flags & ~known)
        return mine_api->fail(GG_ERR_UNSUPPORTED, NULL, "event flags 0x%x", (unsigned)flags);
    event = calloc(1, sizeof *event);
    if (!event)
        return mine_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for an event");
    event->device = device;
    pthread_mutex_init(&event->lock, NULL);
    mine_object_add(device, &device->events, &event->object);
    *out = event;
    return GG_OK;
}

void mine_event_destroy(struct gg_event_impl *event)
{
    struct gg_device_impl *device = event->device;
    if (!mine_object_drop(device, &device->events, &event->object))
        return; /* borrowed by someone */
    if (event->point)
        mine_point_release(event->point);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

gg_status mine_event_borrow(struct gg_device_impl *device, uint64_t native,
                            struct gg_event_impl **out)
{
    struct mine_object *found = mine_object_find(device, &device->events, native);
    if (!found)
        return mine_api->fail(GG_ERR_INVALID_ARGUMENT, NULL, "0x%llx is no event of this device",
                              (unsigned long long)native);
    *out = (struct gg_event_impl *)found;
    return GG_OK;
}

gg_status mine_event_native(struct gg_event_impl *event, uint64_t handles[4])
{
    memset(handles, 0, 4 * sizeof *handles);
    handles[0] = (uint64_t)(uintptr_t)event;
    return GG_OK;
}

/* With a reference: the event's own point once more where nobody else holds it, which makes recording
 * again free of allocations, else a new one. event->lock is held, so nobody can come by it meanwhile. */
static struct mine_point *point_to_record(struct gg_event_impl *event)
{
    struct mine_point *point = event->point;
    if (point && passed(point) && atomic_load_explicit(&point->refs, memory_order_acquire) == 1)
        return retain(point);
    return mine_point_new();
}

gg_status mine_event_record(struct gg_event_impl *event, struct gg_stream_impl *stream)
{
    struct mine_point *point, *before;
    gg_status status;
    pthread_mutex_lock(&event->lock);
    point = point_to_record(event);
    status = point ? mine_point_queue(point, stream) : mine_no_point();
    before = event->point;
    if (!status)
        event->point = point;
    pthread_mutex_unlock(&event->lock);
    if (status)
        before = point;
    if (before)
        mine_point_release(before);
    return status;
}

gg_status mine_stream_wait_event(struct gg_stream_impl *stream, struct gg_event_impl *event)
{
    const struct mine_command work = {.run = run_wait, .point = last_point(event)};
    gg_status status;
    if (!work.point)
        return GG_OK;
    if (passed(work.point)) {
        mine_point_release(work.point);
        return GG_OK;
    }
    status = mine_submit(stream, &work);
    if (status)
        mine_point_release(work.point);
    return status;
}

gg_status mine_event_query(struct gg_event_impl *event)
{
    bool done;
    pthread_mutex_lock(&event->lock);
    done = !event->point || passed(event->point);
    pthread_mutex_unlock(&event->lock);
    return done ? GG_OK : GG_NOT_READY;
}

gg_status mine_event_wait(struct gg_event_impl *event, uint64_t timeout_ns)
{
    struct mine_point *point = last_point(event);
    gg_status status = GG_OK;
    if (!point)
        return status;
    status = mine_point_wait(point, timeout_ns);
    mine_point_release(point);
    return status;
}

/* False while the event is not reached. */
static bool time_of(struct gg_event_impl *event, uint64_t *time_ns)
{
    bool reached;
    pthread_mutex_lock(&event->lock);
    reached = event->point && passed(event->point);
    if (reached)
        *time_ns = event->point->time_ns;
    pthread_mutex_unlock(&event->lock);
    return reached;
}

gg_status mine_event_elapsed(struct gg_event_impl *start, struct gg_event_impl *stop,
                             double *milliseconds)
{
    uint64_t from, to;
    if (!time_of(start, &from) || !time_of(stop, &to))
        return GG_NOT_READY;
    *milliseconds = (double)(int64_t)(to - from) * 1e-6;
    return GG_OK;
}
