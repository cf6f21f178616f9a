/* event.c: events: each refers to the point of its last record. Recording it again refers to another point
 * and does not affect waits for the first. */
#include "host.h"

#include <stdlib.h>
#include <string.h>

/* ---- points ---- */

struct host_point *host_point_new(void)
{
    struct host_point *point = calloc(1, sizeof *point);
    if (!point)
        return NULL;
    atomic_init(&point->refs, 1);
    atomic_init(&point->pending, 0);
    point->time_ns = host_now_ns();
    pthread_mutex_init(&point->lock, NULL);
    host_cond_init(&point->reached);
    return point;
}

gg_status host_point_no_memory(void)
{
    return host_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for an event's state");
}

static struct host_point *point_retain(struct host_point *point)
{
    atomic_fetch_add_explicit(&point->refs, 1, memory_order_relaxed);
    return point;
}

void host_point_release(struct host_point *point)
{
    if (atomic_fetch_sub_explicit(&point->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_cond_destroy(&point->reached);
    pthread_mutex_destroy(&point->lock);
    free(point);
}

/* An acquire load: time_ns may be read afterwards. */
static bool point_is_reached(const struct host_point *point)
{
    return atomic_load_explicit(&point->pending, memory_order_acquire) == 0;
}

gg_status host_point_wait(struct host_point *point, uint64_t timeout_ns)
{
    uint64_t deadline = host_deadline(timeout_ns);
    bool in_time = true;
    pthread_mutex_lock(&point->lock);
    while (!point_is_reached(point) && in_time)
        in_time = host_cond_wait(&point->reached, &point->lock, deadline);
    pthread_mutex_unlock(&point->lock);
    return point_is_reached(point) ? GG_OK : GG_NOT_READY;
}

static void run_reach_point(const struct host_command *command)
{
    struct host_point *point = command->point;
    pthread_mutex_lock(&point->lock);
    point->time_ns = host_now_ns();
    atomic_fetch_sub_explicit(&point->pending, 1, memory_order_release);
    pthread_cond_broadcast(&point->reached);
    pthread_mutex_unlock(&point->lock);
    host_point_release(point);
}

gg_status host_point_queue(struct host_point *point, struct gg_stream_impl *stream)
{
    const struct host_command work = {
        .run = run_reach_point, .brief = true, .point = point_retain(point)};
    atomic_fetch_add_explicit(&point->pending, 1, memory_order_relaxed);
    gg_status status = host_submit(stream, &work);
    if (status) {
        atomic_fetch_sub_explicit(&point->pending, 1, memory_order_relaxed);
        host_point_release(point);
    }
    return status;
}

static void run_wait_point(const struct host_command *command)
{
    host_point_wait(command->point, GG_FOREVER);
    host_point_release(command->point);
}

/* ---- events ---- */

/* The point of the last record, with a reference; NULL if the event was never recorded. */
static struct host_point *event_get_point(struct gg_event_impl *event)
{
    pthread_mutex_lock(&event->lock);
    struct host_point *point = event->point ? point_retain(event->point) : NULL;
    pthread_mutex_unlock(&event->lock);
    return point;
}

gg_status host_event_create(struct gg_device_impl *device, uint32_t flags,
                            struct gg_event_impl **out)
{
    /* Every event has a time and every wait sleeps at once, so both flags have no effect. */
    const uint32_t known = GG_EVENT_TIMING | GG_EVENT_BLOCKING;
    if (flags & ~known)
        return host_api->fail(GG_ERR_UNSUPPORTED, NULL, "event flags 0x%x", (unsigned)flags);
    struct gg_event_impl *event = calloc(1, sizeof *event);
    if (!event)
        return host_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for an event");
    event->device = device;
    pthread_mutex_init(&event->lock, NULL);
    host_object_add(device, &device->events, &event->object);
    *out = event;
    return GG_OK;
}

void host_event_destroy(struct gg_event_impl *event)
{
    struct gg_device_impl *device = event->device;
    if (!host_object_drop(device, &device->events, &event->object))
        return; /* still borrowed */
    if (event->point)
        host_point_release(event->point);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

gg_status host_event_borrow(struct gg_device_impl *device, uint64_t native,
                            struct gg_event_impl **out)
{
    struct host_object *found = host_object_find(device, &device->events, native);
    if (!found)
        return host_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                              "0x%llx is not an event of this device", (unsigned long long)native);
    *out = (struct gg_event_impl *)found;
    return GG_OK;
}

gg_status host_event_native(struct gg_event_impl *event, uint64_t handles[4])
{
    memset(handles, 0, 4 * sizeof *handles);
    handles[0] = (uint64_t)(uintptr_t)event;
    return GG_OK;
}

/* With a reference: the event's own point if only the event holds it, so that recording again needs no
 * allocation; else a new one. event->lock is held, so no other thread can retain the point meanwhile. */
static struct host_point *event_point_to_record(struct gg_event_impl *event)
{
    struct host_point *point = event->point;
    if (point && point_is_reached(point) &&
        atomic_load_explicit(&point->refs, memory_order_acquire) == 1)
        return point_retain(point);
    return host_point_new();
}

gg_status host_event_record(struct gg_event_impl *event, struct gg_stream_impl *stream)
{
    pthread_mutex_lock(&event->lock);
    struct host_point *point = event_point_to_record(event);
    gg_status status = point ? host_point_queue(point, stream) : host_point_no_memory();
    struct host_point *unused = status ? point : event->point;
    if (!status)
        event->point = point;
    pthread_mutex_unlock(&event->lock);
    if (unused)
        host_point_release(unused);
    return status;
}

gg_status host_stream_wait_event(struct gg_stream_impl *stream, struct gg_event_impl *event)
{
    const struct host_command work = {
        .run = run_wait_point, .unpaused = true, .point = event_get_point(event)};
    if (!work.point)
        return GG_OK;
    const bool reached = point_is_reached(work.point);
    gg_status status = reached ? GG_OK : host_submit(stream, &work);
    if (reached || status)
        host_point_release(work.point);
    return status;
}

gg_status host_event_query(struct gg_event_impl *event)
{
    pthread_mutex_lock(&event->lock);
    const bool done = !event->point || point_is_reached(event->point);
    pthread_mutex_unlock(&event->lock);
    return done ? GG_OK : GG_NOT_READY;
}

gg_status host_event_wait(struct gg_event_impl *event, uint64_t timeout_ns)
{
    struct host_point *point = event_get_point(event);
    if (!point)
        return GG_OK;
    gg_status status = host_point_wait(point, timeout_ns);
    host_point_release(point);
    return status;
}

/* False while the event has not been reached. */
static bool event_get_time(struct gg_event_impl *event, uint64_t *time_ns)
{
    pthread_mutex_lock(&event->lock);
    const bool reached = event->point && point_is_reached(event->point);
    if (reached)
        *time_ns = event->point->time_ns;
    pthread_mutex_unlock(&event->lock);
    return reached;
}

gg_status host_event_elapsed(struct gg_event_impl *start, struct gg_event_impl *stop,
                             double *milliseconds)
{
    uint64_t from, to;
    if (!event_get_time(start, &from) || !event_get_time(stop, &to))
        return GG_NOT_READY;
    *milliseconds = (double)(int64_t)(to - from) * 1e-6;
    return GG_OK;
}
