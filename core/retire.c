/* retire.c: what was released waits here until the device is done with it. Releasing is one push and
 * never a driver call; calls that may wait anyway come by and destroy what has become idle. */
#include "pool.h"
#include "staging.h"

void ggi_retire(struct gg_device *device, struct ggi_retired *item)
{
    item->next = atomic_load_explicit(&device->retired, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&device->retired, &item->next, item,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

/* With drain_lock held: whether there is anything new. */
static bool collect(struct gg_device *device)
{
    struct ggi_retired *item = atomic_exchange(&device->retired, NULL), *next;
    bool any = item;
    for (; item; item = next) {
        next = item->next;
        item->next = device->pending;
        device->pending = item;
    }
    return any;
}

/* Ask once for each stream with work, so that the items need not ask again. */
static bool look_at_streams(struct gg_device *device)
{
    bool idle = true;
    for (gg_stream *stream = ggi_streams_of(device); stream; stream = stream->next) {
        if (!ggi_stream_passed(stream, atomic_load(&stream->submitted), true))
            idle = false;
        if (atomic_load(&stream->keeps)) /* one may have come after its ticket had passed */
            ggi_stream_release_keeps(stream, false);
    }
    return idle;
}

/* Streams that their user closed, but that blocks name as their last users. */
static void abandon_closed(struct gg_device *device)
{
    gg_stream *stream, *next;
    if (!atomic_exchange(&device->closed, 0))
        return;
    for (stream = ggi_streams_of(device); stream; stream = next) {
        next = stream->next;
        if (!ggi_stream_abandon(stream))
            atomic_store(&device->closed, 1);
    }
}

/* Destroys what is idle and leaves the rest pending. */
static void sweep(struct gg_device *device, bool wait)
{
    struct ggi_retired *item = device->pending, *next;
    device->pending = NULL;
    for (; item; item = next) {
        next = item->next;
        if ((wait || !item->may_wait) && item->idle(item)) {
            item->destroy(item);
            continue;
        }
        item->next = device->pending;
        device->pending = item;
    }
}

bool ggi_drain_waiting(const struct gg_device *device)
{
    return atomic_load_explicit(&device->retired, memory_order_relaxed) ||
           atomic_load_explicit(&device->waiting, memory_order_relaxed) ||
           atomic_load_explicit(&device->closed, memory_order_relaxed) ||
           atomic_load_explicit(&device->over, memory_order_relaxed) ||
           atomic_load_explicit(&device->keeps, memory_order_relaxed);
}

/* The pools keep no more than they may. */
static void keep_less(struct gg_device *device)
{
    for (int i = 0; i < GGI_POOLS; i++) {
        ggi_pool_gather(device->pools[i], NULL);
        ggi_pool_shed(device->pools[i], ggi_pool_figures(device->pools[i]).keep);
    }
}

void ggi_drain_locked(struct gg_device *device, bool force)
{
    struct ggi_own own;
    ggi_own_begin(device, &own);
    bool idle = look_at_streams(device);
    abandon_closed(device);
    force = force || ggi_pool_figures(device->pools[1]).retired_bytes > GGI_PINNED_BACKLOG;
    ggi_quarantine_look(device, force);
    if (atomic_exchange(&device->over, 0))
        keep_less(device);
    do {
        collect(device);
        sweep(device, idle || force);
    } while (atomic_load(&device->retired)); /* destroying memory lets go of streams */
    atomic_store(&device->waiting, device->pending != NULL);
    ggi_own_end(device, &own);
}

void ggi_drain(struct gg_device *device)
{
    if (!ggi_drain_waiting(device) || pthread_mutex_trylock(&device->drain_lock))
        return;
    if (!atomic_load(&ggi_down))
        ggi_drain_locked(device, false);
    pthread_mutex_unlock(&device->drain_lock);
}

struct ggi_retired *ggi_retire_pick(struct gg_device *device,
                                    bool (*want)(const struct ggi_retired *item, const void *what),
                                    const void *what)
{
    struct ggi_retired *item, **at = &device->pending;
    collect(device);
    while (*at && !want(*at, what))
        at = &(*at)->next;
    item = *at;
    if (item)
        *at = item->next;
    /* What was collected is no longer among the retired. */
    atomic_store(&device->waiting, device->pending != NULL);
    return item;
}
