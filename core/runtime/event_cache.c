/* event_cache.c: a small cache of idle native events for each device. */
#include "runtime/call.h"
#include "runtime/event.h"
#include "runtime/replay.h"

gg_status ggi_event_acquire(struct gg_device *device, bool timing, struct gg_event_impl **out)
{
    struct gg_event_impl *spare = NULL;
    pthread_mutex_lock(&device->spare_lock);
    if (device->spares[timing] > 0)
        spare = device->spare[timing][--device->spares[timing]];
    pthread_mutex_unlock(&device->spare_lock);
    if (spare) {
        *out = spare;
        return GG_OK;
    }
    return GGI_CALL(device, event_create, NULL, 0,
                    (atomic_load(&device->impl), timing ? GG_EVENT_TIMING : 0, out));
}

bool ggi_event_keep_spare(struct gg_device *device, bool timing, struct gg_event_impl *impl)
{
    pthread_mutex_lock(&device->spare_lock);
    bool room = device->spares[timing] < GGI_SPARES;
    if (room)
        device->spare[timing][device->spares[timing]++] = impl;
    pthread_mutex_unlock(&device->spare_lock);
    return room;
}

void ggi_event_recycle(struct gg_device *device, bool timing, struct gg_event_impl *impl)
{
    ggi_replay_forget_event(impl); /* the next owner's records belong to no capture */
    if (!ggi_event_keep_spare(device, timing, impl))
        device->ops->event_destroy(impl);
}

void ggi_event_destroy_spares(struct gg_device *device)
{
    pthread_mutex_lock(&device->spare_lock);
    for (int timing = 0; timing < 2; timing++)
        while (device->spares[timing] > 0)
            device->ops->event_destroy(device->spare[timing][--device->spares[timing]]);
    pthread_mutex_unlock(&device->spare_lock);
}
