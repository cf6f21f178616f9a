/* shutdown.c: waits for copies to the host at the end of the process, and closes devices. */
#include "memory/memory.h"
#include "memory/pool.h"
#include "runtime/event.h"
#include "runtime/stream.h"
#include "trace/trace.h"
#include "transfer/ring.h"
#include "transfer/staging.h"

#include <time.h>

#define SHUTDOWN_THREADS_NS 5000000000u

/* With drain_lock held, which keeps streams alive while their list is read. Only copies to the host are waited for: a kernel may
 * never end. */
static bool shutdown_has_results(struct gg_device *device)
{
    for (gg_stream *stream = ggi_device_streams(device); stream; stream = stream->next)
        if (!ggi_stream_poll_locked(stream, atomic_load(&stream->to_host)))
            return false;
    return true;
}

/* Returns with drain_lock held. Without it, other threads drain meanwhile, and markers are recorded. */
static void shutdown_wait_for_results(struct gg_device *device, uint64_t deadline)
{
    pthread_mutex_lock(&device->drain_lock);
    while (!shutdown_has_results(device) && ggi_now_ns() < deadline) {
        ggi_drain_unlock(device);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        pthread_mutex_lock(&device->drain_lock);
    }
}

static bool shutdown_all_idle(struct gg_device *device)
{
    for (gg_stream *stream = ggi_device_streams(device); stream; stream = stream->next)
        if (!ggi_stream_poll_locked(stream, atomic_load(&stream->submitted)))
            return false;
    return true;
}

/* Memory and streams that the user still holds need the context, so it is not destroyed then. */
static bool shutdown_in_use(struct gg_device *device)
{
    for (int i = 0; i < GGI_POOLS; i++)
        if (ggi_pool_stats(device->pools[i]).reserved_bytes)
            return true;
    return ggi_device_streams(device) != device->default_stream || device->default_stream->next;
}

/* Another thread may be inside a call: what it uses stays. */
static void shutdown_free_memory(struct gg_device *device)
{
    ggi_ring_destroy(device);
    ggi_staging_trim(device);
    ggi_host_cache_trim(device);
    ggi_drain_locked(device, GGI_DRAIN_FORCE);
    ggi_epoch_free_spare(device);
    ggi_pools_empty(device);
}

/* No other thread can be inside a call here. */
static void shutdown_close_device(struct gg_device *device)
{
    ggi_staging_destroy(device);
    gg_stream_release(atomic_exchange(&device->join_stream, NULL));
    ggi_drain_locked(device, GGI_DRAIN_FORCE); /* again: one call may have failed */
    ggi_epoch_destroy(device);
    ggi_stream_release_events(device->default_stream); /* makes them spares */
    ggi_event_destroy_spares(device);
    if (!shutdown_in_use(device))
        device->ops->device_close(atomic_load(&device->impl));
}

static bool shutdown_is_alone(struct gg_device *device)
{
    return !atomic_load(&device->shared) && !atomic_load(&device->helpers) &&
           !atomic_load(&device->inside) && pthread_equal(device->opener, pthread_self());
}

/* Memory that is not in use is freed. A device that other threads have used is not closed: one of them may be inside a call. */
static void shutdown_device(struct gg_device *device, uint64_t deadline)
{
    struct ggi_internal_scope own;
    ggi_staging_wait(device, deadline);
    ggi_internal_begin(device, &own);
    ggi_record_markers(); /* releases the streams that want one */
    shutdown_wait_for_results(device, deadline);
    bool idle = shutdown_all_idle(device) || shutdown_all_idle(device); /* one query may fail */
    if (idle)
        shutdown_free_memory(device);
    bool alone = shutdown_is_alone(device);
    if (idle && alone)
        shutdown_close_device(device);
    else
        ggi_drain_locked(device, idle ? GGI_DRAIN_FORCE : GGI_DRAIN_ALL);
    ggi_drain_unlock(device);
    ggi_internal_end(device, &own);
}

static void shutdown_drain(struct gg_device *device)
{
    struct ggi_internal_scope own;
    ggi_internal_begin(device, &own);
    pthread_mutex_lock(&device->drain_lock);
    ggi_drain_locked(device, GGI_DRAIN_ALL);
    ggi_drain_unlock(device);
    ggi_internal_end(device, &own);
}

/* A thread that is inside a library when the process ends would use what the driver has freed. It may wait for graphs that
 * were closed. */
static void shutdown_wait_for_threads(struct gg_device *device, uint64_t deadline)
{
    while (atomic_load(&device->inside) && ggi_now_ns() < deadline) {
        shutdown_drain(device);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void shutdown_finish_downloads(struct gg_device *device, uint64_t deadline)
{
    struct ggi_internal_scope own;
    ggi_internal_begin(device, &own);
    shutdown_wait_for_results(device, deadline);
    ggi_drain_locked(device, GGI_DRAIN_ALL);
    ggi_drain_unlock(device);
    ggi_internal_end(device, &own);
}

/* Call @p function for each open device of this process. */
static void shutdown_each_device(void (*function)(struct gg_device *, uint64_t), uint64_t timeout_ns)
{
    uint64_t now = ggi_now_ns();
    uint64_t deadline = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
    for (struct gg_backend *b = ggi_backend_next_opened(NULL); b; b = ggi_backend_next_opened(b))
        for (struct gg_device *d = b->devices; d < b->devices + b->device_count; d++)
            if (atomic_load(&d->impl) && d->generation == atomic_load(&ggi_generation))
                function(d, deadline);
}

void gg_finish_downloads(uint64_t timeout_ns)
{
    if (!atomic_load(&ggi_shutting_down))
        shutdown_each_device(shutdown_finish_downloads, timeout_ns);
}

void gg_shutdown(uint64_t timeout_ns)
{
    int expected = 0;
    if (!atomic_load(&ggi_shutting_down))
        ggi_trace_exit();
    if (!atomic_compare_exchange_strong(&ggi_shutting_down, &expected, 1))
        return;
    shutdown_each_device(shutdown_wait_for_threads, SHUTDOWN_THREADS_NS);
    shutdown_each_device(shutdown_device, timeout_ns);
    atomic_store(&ggi_shutting_down, 2);
}
