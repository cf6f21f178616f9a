/* synchronize.c: waits for all work of a device. */
#include "runtime/call.h"
#include "runtime/event.h"
#include "runtime/stream.h"

#include <stdlib.h>

/* The error of work that was left on the device, for which the wait would never end. */
static gg_status synchronize_raise_staying(const struct ggi_use *uses, size_t count)
{
    gg_status status = GG_OK;
    for (size_t i = 0; i < count && !status; i++)
        if (!ggi_stream_is_complete(uses[i].stream, uses[i].ticket, true))
            status = ggi_stream_raise_staying(uses[i].stream);
    return status;
}

/* It calls the hook. */
static gg_status synchronize_wait(gg_event *event, const struct ggi_use *uses, size_t count)
{
    gg_status status;
    while ((status = gg_event_wait(event, GGI_SLICE_NS)) == GG_NOT_READY) {
        if (ggi_interrupted())
            return ggi_fail_interrupted();
        status = synchronize_raise_staying(uses, count);
        if (status)
            return status;
    }
    return status;
}

/* Wait for an event recorded after all work, also of other libraries. */
static gg_status synchronize_by_event(struct gg_device *device, const struct ggi_use *uses,
                                      size_t count)
{
    gg_event *event;
    gg_status status = gg_event_create(device, 0, &event);
    if (status)
        return status;
    status = GGI_CALL(device, device_record, NULL, 0, (atomic_load(&device->impl), event->impl));
    if (!status) {
        atomic_fetch_add(&event->recorded, 1);
        status = synchronize_wait(event, uses, count);
    }
    gg_event_release(event);
    return status;
}

/* First the known streams, since those waits can be interrupted; then the whole device. */
static gg_status synchronize_streams(struct gg_device *device, const struct ggi_use *uses,
                                     size_t count)
{
    gg_status status = GG_OK;
    for (size_t i = 0; i < count && !status; i++)
        status = ggi_stream_wait_ticket(uses[i].stream, uses[i].ticket);
    if (status)
        return status;
    return GGI_CALL(device, device_synchronize, NULL, 0, (atomic_load(&device->impl)));
}

/* An event does not report whether the work before it succeeded; a query of the stream does. */
static gg_status synchronize_result(const struct ggi_use *use)
{
    ggi_stream_is_complete(use->stream, use->ticket, true);
    return ggi_stream_raise_stashed(use->stream, GG_OP_device_synchronize);
}

/* One that has joined a capture, which may have begun on another device. */
static bool synchronize_finds_captured(struct gg_device *device)
{
    struct ggi_use *uses;
    bool captured = false;
    const size_t count = ggi_device_pin_streams(device, &uses);
    for (size_t i = 0; i < count; i++) {
        captured = captured || (!uses[i].stream->is_default && ggi_other_capturing(uses[i].stream));
        gg_stream_release(uses[i].stream);
    }
    free(uses);
    return captured;
}

/* Drivers refuse the wait and invalidate the capture. Drivers without device_record do so for captures on any device. */
static bool synchronize_disturbs_capture(struct gg_device *device)
{
    const struct gg_backend *backend = device->backend;
    int captures = atomic_load(&device->captures);
    if (!atomic_load(&ggi_captures))
        return false;
    if (gg_device_supports(device, GG_OP_device_record))
        return captures > 0 || synchronize_finds_captured(device);
    for (int32_t i = 0; i < backend->device_count; i++)
        captures += atomic_load(&backend->devices[i].captures);
    return captures > 0;
}

gg_status gg_device_synchronize(gg_device *device)
{
    struct ggi_use *uses;
    gg_status status = ggi_device_ready(device);
    if (!status && synchronize_disturbs_capture(device))
        status = ggi_capture_fail_wait();
    if (status)
        return status;
    uint64_t round = ggi_epoch_begin(device);
    size_t count = ggi_device_pin_streams(device, &uses);
    status = gg_device_supports(device, GG_OP_device_record)
                 ? synchronize_by_event(device, uses, count)
                 : synchronize_streams(device, uses, count);
    const bool waited = !status;
    for (size_t i = 0; i < count; i++) {
        if (waited && !status)
            status = synchronize_result(&uses[i]);
        if (waited)
            ggi_stream_advance(uses[i].stream, uses[i].ticket);
        gg_stream_release(uses[i].stream);
    }
    free(uses);
    if (waited)
        ggi_epoch_end(device, round);
    if (waited)
        ggi_drain_all(device);
    return status;
}
