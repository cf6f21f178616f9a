/* device_epoch.c: points after all work of a device, also in streams unknown to gpuglue. Such a point ends a round:
 * the blocks released in that round are free. */
#include "runtime/call.h"
#include "runtime/event.h"
#include "runtime/stream.h"

uint64_t ggi_epoch_begin(struct gg_device *device)
{
    return atomic_fetch_add(&device->epoch.round, 1) + 1;
}

void ggi_epoch_end(struct gg_device *device, uint64_t round)
{
    uint64_t done = atomic_load(&device->epoch.done);
    while (done < round && !atomic_compare_exchange_weak(&device->epoch.done, &done, round)) {
    }
}

static bool epoch_can_record(const struct gg_device *device)
{
    const struct gg_backend_ops *ops = device->ops;
    return ops->device_record &&
           (!ops->device_supports ||
            ops->device_supports(atomic_load(&device->impl), GG_OP_device_record));
}

/* Whether calls for the whole device may invalidate captures of other libraries, in any capture mode. */
static bool epoch_disturbs_captures(struct gg_device *device)
{
    const struct gg_backend_ops *ops = device->ops;
    return ops->stream_capturing &&
           (!ops->device_supports ||
            ops->device_supports(atomic_load(&device->impl), GG_OP_stream_capturing));
}

/* False if no event was recorded. */
static bool epoch_record(struct gg_device *device)
{
    struct ggi_device_epoch *q = &device->epoch;
    if (!q->event && ggi_event_acquire(device, false, &q->event))
        return false;
    uint64_t round = ggi_epoch_begin(device);
    if (GGI_CALL(device, device_record, NULL, 0, (atomic_load(&device->impl), q->event)))
        return false;
    q->recorded = round;
    return true;
}

static void epoch_synchronize(struct gg_device *device)
{
    uint64_t round = ggi_epoch_begin(device);
    gg_status status = GGI_CALL(device, device_synchronize, NULL, 0, (atomic_load(&device->impl)));
    if (!status || status == GG_ERR_DEVICE_LOST)
        ggi_epoch_end(device, round);
}

/* The only call that waits for the whole device and leaves captures valid is a free. So that there is something to free on a
 * device without free memory, a byte is allocated while there still is some. */
void ggi_epoch_prepare(struct gg_device *device)
{
    struct ggi_device_epoch *q = &device->epoch;
    struct ggi_internal_scope own;
    void *pointer = NULL;
    if (!(device->flags & GG_DEVICE_FREE_WAITS) || atomic_exchange(&q->prepared, true))
        return;
    ggi_internal_begin(device, &own);
    if (GGI_CALL(device, mem_alloc, NULL, 1,
                 (atomic_load(&device->impl), GG_MEMORY_DEVICE, 1, &pointer)))
        atomic_store(&q->prepared, false);
    else
        atomic_store(&q->spare, pointer);
    ggi_internal_end(device, &own);
}

bool ggi_epoch_free_spare(struct gg_device *device)
{
    struct ggi_device_epoch *q = &device->epoch;
    void *pointer = atomic_exchange(&q->spare, NULL);
    if (!pointer)
        return false;
    const uint64_t round = ggi_epoch_begin(device);
    const gg_status status = GGI_CALL(device, mem_free, NULL, 1,
                                      (atomic_load(&device->impl), GG_MEMORY_DEVICE, pointer));
    atomic_store(&q->prepared, false);
    if (!status || (status == GG_ERR_DEVICE_LOST && ggi_device_is_lost(device)))
        ggi_epoch_end(device, round);
    return true;
}

void ggi_epoch_wait(struct gg_device *device)
{
    if (!epoch_disturbs_captures(device)) {
        epoch_synchronize(device);
        return;
    }
    ggi_epoch_prepare(device); /* unless that was possible earlier */
    if (ggi_epoch_free_spare(device))
        ggi_epoch_prepare(device);
    else if (atomic_load(&device->gone)) /* nothing runs */
        ggi_epoch_end(device, ggi_epoch_begin(device));
}

static void epoch_poll_event(struct gg_device *device)
{
    struct ggi_device_epoch *q = &device->epoch;
    if (!q->recorded)
        return;
    gg_status status = device->ops->event_query(q->event);
    if (status && (status != GG_ERR_DEVICE_LOST || !ggi_device_is_lost(device)))
        return;
    ggi_epoch_end(device, q->recorded);
    q->recorded = 0;
}

void ggi_epoch_poll(struct gg_device *device, bool wait)
{
    struct ggi_device_epoch *q = &device->epoch;
    epoch_poll_event(device);
    if (!atomic_load(&q->waiting) || q->recorded)
        return;
    if (epoch_disturbs_captures(device)) {
        q->wanted = q->wanted || wait;
        return;
    }
    if (epoch_can_record(device) && epoch_record(device))
        epoch_poll_event(device);
    else if (wait) /* returns at once on a lost device */
        epoch_synchronize(device);
}

void ggi_epoch_destroy(struct gg_device *device)
{
    ggi_epoch_free_spare(device);
    if (device->epoch.event)
        ggi_event_recycle(device, false, device->epoch.event);
    device->epoch.event = NULL;
    device->epoch.recorded = 0;
}
