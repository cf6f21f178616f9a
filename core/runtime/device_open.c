/* device_open.c: opens a device on first need. */
#include "runtime/call.h"
#include "runtime/range.h"
#include "runtime/stream.h"

/* The parts and the default stream. */
static gg_status device_open_native(struct gg_device *device, struct gg_device_impl *impl)
{
    struct gg_stream_impl *stream;
    gg_status status = GGI_CALL(device, stream_default, NULL, 0, (impl, &stream));
    if (!status)
        status = ggi_device_parts.open(device);
    if (!status)
        status = ggi_stream_new(device, stream, 0, &device->default_stream);
    return status;
}

/* With device->lock held. */
static gg_status device_open_locked(struct gg_device *device)
{
    struct gg_device_impl *impl;
    gg_status status = GGI_CALL(device, device_open, NULL, 0, (device->ordinal, &impl));
    if (status)
        return status;
    status = device_open_native(device, impl);
    if (status) {
        device->ops->device_close(impl);
        return status;
    }
    device->writes_words =
        device->ops->write_word &&
        (!device->ops->device_supports || device->ops->device_supports(impl, GG_OP_write_word));
    device->default_stream->is_default = true;
    device->streams = device->default_stream;
    device->opener = pthread_self();
    atomic_store_explicit(&device->impl, impl, memory_order_release);
    ggi_range_find_tool(device);
    return GG_OK;
}

gg_status ggi_device_open(struct gg_device *device)
{
    gg_status status = GG_OK;
    pthread_mutex_lock(&device->lock);
    if (!atomic_load(&device->impl))
        status = device_open_locked(device);
    pthread_mutex_unlock(&device->lock);
    return status;
}
