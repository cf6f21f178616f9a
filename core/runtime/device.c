/* device.c: the setup of devices, and their errors after a fork or the shutdown. */
#include "base/error.h"
#include "runtime/call.h"
#include "runtime/device.h"

#include <string.h>

gg_status ggi_device_setup(struct gg_device *device, struct gg_backend *backend, int32_t ordinal)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    memset(device, 0, sizeof *device);
    device->backend = backend;
    device->ops = &backend->ops;
    device->replays = !device->ops->stream_capturing;
    device->ordinal = ordinal;
    device->generation = atomic_load(&ggi_generation);
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->spare_lock, NULL);
    pthread_mutex_init(&device->drain_lock, NULL);
    ggi_call_init();
    gg_status status = GGI_CALL(device, device_info, NULL, 0, (ordinal, &info));
    if (status)
        return status;
    device->flags = info.flags;
    return GG_OK;
}

const char *gg_device_backend(const gg_device *device)
{
    return device->backend->name;
}

int32_t gg_device_ordinal(const gg_device *device)
{
    return device->ordinal;
}

gg_status ggi_unsupported(struct gg_device *device, gg_op op)
{
    return ggi_fail(GG_ERR_UNSUPPORTED, "%s: %s is not supported on device %d",
                    device->backend->name, gg_op_name(op), (int)device->ordinal);
}

gg_status ggi_device_unusable(struct gg_device *device)
{
    if (atomic_load(&ggi_shutting_down))
        return ggi_fail(GG_ERR_SHUT_DOWN, "gpuglue was shut down and accepts no new work");
    if (ggi_backend_adopt_in_child(device->backend))
        return GG_OK;
    return ggi_backend_fail_forked(device->backend);
}
