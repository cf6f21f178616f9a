/* quarantine.c: released blocks that streams use which gpuglue does not know. Such a block is free when
 * all is done that the device had when it was released: one event behind all of the device tells that for
 * every block of a round. */
#include "pool.h"

void ggi_quarantine_enter(gg_memory *memory)
{
    struct ggi_quarantine *q = &memory->device->quarantine;
    atomic_fetch_add(&q->waiting, 1);
    atomic_store(&memory->unknown, atomic_load(&q->round) + 1);
}

bool ggi_quarantine_passed(const gg_memory *memory)
{
    return atomic_load(&memory->device->quarantine.done) >= atomic_load(&memory->unknown);
}

void ggi_quarantine_leave(gg_memory *memory)
{
    if (atomic_exchange(&memory->unknown, 0))
        atomic_fetch_sub(&memory->device->quarantine.waiting, 1);
}

uint64_t ggi_quarantine_begin(struct gg_device *device)
{
    return atomic_fetch_add(&device->quarantine.round, 1) + 1;
}

void ggi_quarantine_end(struct gg_device *device, uint64_t round)
{
    uint64_t done = atomic_load(&device->quarantine.done);
    while (done < round && !atomic_compare_exchange_weak(&device->quarantine.done, &done, round)) {
    }
}

static bool can_record(const struct gg_device *device)
{
    const struct gg_backend_ops *ops = device->ops;
    return ops->device_record &&
           (!ops->device_supports ||
            ops->device_supports(atomic_load(&device->impl), GG_OP_device_record));
}

/* False: there is no event behind the device's work. */
static bool record(struct gg_device *device)
{
    struct ggi_quarantine *q = &device->quarantine;
    if (!q->event && ggi_event_take(device, false, &q->event))
        return false;
    uint64_t round = ggi_quarantine_begin(device);
    ggi_begin(device, GG_OP_device_record, NULL, 0);
    gg_status status = device->ops->device_record(atomic_load(&device->impl), q->event);
    if (ggi_end(device, GG_OP_device_record, NULL, 0, status))
        return false;
    q->recorded = round;
    return true;
}

static void synchronize(struct gg_device *device)
{
    uint64_t round = ggi_quarantine_begin(device);
    ggi_begin(device, GG_OP_device_synchronize, NULL, 0);
    gg_status status = device->ops->device_synchronize(atomic_load(&device->impl));
    status = ggi_end(device, GG_OP_device_synchronize, NULL, 0, status);
    if (!status || status == GG_ERR_DEVICE_LOST)
        ggi_quarantine_end(device, round);
}

static void poll_event(struct gg_device *device)
{
    struct ggi_quarantine *q = &device->quarantine;
    if (!q->recorded)
        return;
    gg_status status = device->ops->event_query(q->event);
    if (status && status != GG_ERR_DEVICE_LOST)
        return;
    ggi_quarantine_end(device, q->recorded);
    q->recorded = 0;
}

void ggi_quarantine_look(struct gg_device *device, bool wait)
{
    struct ggi_quarantine *q = &device->quarantine;
    poll_event(device);
    if (!atomic_load(&q->waiting) || q->recorded)
        return;
    if (can_record(device) && record(device))
        poll_event(device);
    else if (wait) /* on a lost device too: it answers at once */
        synchronize(device);
}

void ggi_quarantine_destroy(struct gg_device *device)
{
    if (device->quarantine.event)
        ggi_event_give(device, false, device->quarantine.event);
    device->quarantine.event = NULL;
    device->quarantine.recorded = 0;
}
