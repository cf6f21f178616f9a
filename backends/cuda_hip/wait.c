/* wait.c: waiting with a limit. The drivers' own waits have none, so their queries are polled: without
 * a pause while little time has passed, then with pauses in proportion to the time waited, so that a
 * wait ends late by that share at most and a long one costs no processor. */
#include "driver.h"

#include <time.h>

#define PAUSE_SHARE 256u /* of the time waited so far: a copy of 256 MiB is still spun for */
#define PAUSE_MIN_NS 20000u
#define PAUSE_MAX_NS 1000000u

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void pause_after(uint64_t waited, bool sleep_at_once, uint64_t left)
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

static int poll_on(int (*query)(void *object), void *object, bool sleep_at_once, uint64_t timeout_ns)
{
    const uint64_t start = now_ns();
    int code = twin.not_ready;
    for (uint64_t waited = 0; waited < timeout_ns; waited = now_ns() - start) {
        pause_after(waited, sleep_at_once, timeout_ns - waited);
        code = query(object);
        if (code != twin.not_ready)
            break;
    }
    return code;
}

int twin_poll(int (*query)(void *object), void *object, bool sleep_at_once, uint64_t timeout_ns)
{
    int code = query(object);
    if (code != twin.not_ready || timeout_ns == 0)
        return code;
    code = poll_on(query, object, sleep_at_once, timeout_ns);
    twin_clear(twin.not_ready);
    return code;
}

/* ---- fences: events behind which a stream is waited for -------------------------------------------- */

static int fence_take(struct gg_device_impl *device, void **fence)
{
    *fence = NULL;
    pthread_mutex_lock(&device->lock);
    if (device->fence_count > 0)
        *fence = device->fences[--device->fence_count];
    pthread_mutex_unlock(&device->lock);
    return *fence ? 0 : twin_driver.event_create(fence, twin.event_no_timing);
}

static void fence_give(struct gg_device_impl *device, void *fence)
{
    pthread_mutex_lock(&device->lock);
    const bool kept = device->fence_count < TWIN_FENCES;
    if (kept)
        device->fences[device->fence_count++] = fence;
    pthread_mutex_unlock(&device->lock);
    if (!kept)
        twin_forget(twin_driver.event_destroy(fence), "destroying an event");
}

void twin_fences_destroy(struct gg_device_impl *device)
{
    while (device->fence_count > 0)
        twin_forget(twin_driver.event_destroy(device->fences[--device->fence_count]),
                    "destroying an event");
}

int twin_poll_stream(const struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    void *fence = NULL;
    int code = twin_driver.stream_query(stream->native);
    if (code != twin.not_ready || timeout_ns == 0)
        return code;
    twin_clear(code);
    /* Behind a fence, so that what others queue meanwhile is theirs to wait for. */
    if (twin_clear(fence_take(stream->device, &fence)))
        return twin_poll(twin_driver.stream_query, stream->native, false, timeout_ns);
    if (!twin_clear(twin_driver.event_record(fence, stream->native)))
        code = twin_poll(twin_driver.event_query, fence, false, timeout_ns);
    else
        code = twin_poll(twin_driver.stream_query, stream->native, false, timeout_ns);
    fence_give(stream->device, fence);
    return code;
}
