/* wait.c: waits with a timeout. The drivers' own waits have none, so their queries are polled: first without
 * pauses, then with pauses in proportion to the time waited. A wait is late by that fraction at most, and a long
 * wait uses little processor time. */
#include "driver.h"

#include <time.h>

#define PAUSE_SHARE \
    256u /* of the time waited so far: a copy of 256 MiB is still waited for without pauses */
#define PAUSE_MIN_NS 20000u
#define PAUSE_MAX_NS 1000000u

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void poll_pause(uint64_t waited, bool sleep_at_once, uint64_t left)
{
    uint64_t pause = waited / PAUSE_SHARE;
    if (pause < PAUSE_MIN_NS && !sleep_at_once)
        return; /* spin */
    if (pause < PAUSE_MIN_NS)
        pause = PAUSE_MIN_NS;
    if (pause > PAUSE_MAX_NS)
        pause = PAUSE_MAX_NS;
    if (pause > left)
        pause = left;
    nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
}

static int poll_loop(int (*query)(void *object), void *object, bool sleep_at_once,
                     uint64_t timeout_ns)
{
    const uint64_t start = clock_ns();
    int code = cuhip.not_ready;
    for (uint64_t waited = 0; waited < timeout_ns; waited = clock_ns() - start) {
        poll_pause(waited, sleep_at_once, timeout_ns - waited);
        code = query(object);
        if (code != cuhip.not_ready)
            break;
    }
    return code;
}

int cuhip_poll(int (*query)(void *object), void *object, bool sleep_at_once, uint64_t timeout_ns)
{
    int code = query(object);
    if (code != cuhip.not_ready || timeout_ns == 0)
        return code;
    code = poll_loop(query, object, sleep_at_once, timeout_ns);
    cuhip_clear_error(cuhip.not_ready);
    return code;
}

/* ---- fences: events that mark the end of the work to wait for -------------------------------------- */

/* Only a new event needs the device's context. */
static int fence_acquire(struct gg_device_impl *device, void **fence)
{
    *fence = NULL;
    pthread_mutex_lock(&device->lock);
    if (device->fence_count > 0)
        *fence = device->fences[--device->fence_count];
    pthread_mutex_unlock(&device->lock);
    return *fence ? 0
                  : CUHIP_IN_CONTEXT(event_create, device, NULL,
                                     cuhip_driver.event_create(fence, cuhip.event_no_timing));
}

static void fence_release(struct gg_device_impl *device, void *fence)
{
    pthread_mutex_lock(&device->lock);
    const bool kept = device->fence_count < CUHIP_MAX_FENCES;
    if (kept)
        device->fences[device->fence_count++] = fence;
    pthread_mutex_unlock(&device->lock);
    if (!kept)
        cuhip_log_failure(cuhip_driver.event_destroy(fence), "destroying an event");
}

void cuhip_fences_destroy(struct gg_device_impl *device)
{
    while (device->fence_count > 0)
        cuhip_log_failure(cuhip_driver.event_destroy(device->fences[--device->fence_count]),
                          "destroying an event");
}

int cuhip_poll_stream(const struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    void *fence = NULL;
    int code = cuhip_driver.stream_query(stream->native);
    if (code != cuhip.not_ready || timeout_ns == 0)
        return code;
    cuhip_clear_error(code);
    /* A fence excludes what other threads enqueue meanwhile. */
    if (cuhip_clear_error(fence_acquire(stream->device, &fence)))
        return cuhip_poll(cuhip_driver.stream_query, stream->native, false, timeout_ns);
    if (!cuhip_clear_error(cuhip_driver.event_record(fence, stream->native)))
        code = cuhip_poll(cuhip_query_event, fence, false, timeout_ns);
    else
        code = cuhip_poll(cuhip_driver.stream_query, stream->native, false, timeout_ns);
    fence_release(stream->device, fence);
    return code;
}
