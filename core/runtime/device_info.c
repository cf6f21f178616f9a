/* device_info.c: properties of a device and the operations it supports. */
#include "base/error.h"
#include "base/sized.h"
#include "runtime/call.h"
#include "runtime/stream.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* From sysfs, for all vendors' devices on a bus. -1 if unknown. The function may be the number of a partition of the GPU,
 * for which there is no file. */
static int32_t device_numa_node(const char *pci_bus_id)
{
    char path[96];
    int node = -1;
    FILE *file = NULL;
    for (int i = 0; i < 2 && !file; i++) {
        const int length = (int)strcspn(pci_bus_id, ".");
        snprintf(path, sizeof path, "/sys/bus/pci/devices/%.*s%s/numa_node", length, pci_bus_id,
                 i ? ".0" : pci_bus_id + length);
        file = fopen(path, "re");
    }
    if (!file)
        return -1;
    if (fscanf(file, "%d", &node) != 1)
        node = -1;
    fclose(file);
    return node;
}

gg_status gg_device_info(gg_device *device, struct gg_device_info *info)
{
    static const size_t first = GGI_SIZE_TO(struct gg_device_info, total_memory);
    struct gg_device_info full = {.struct_size = sizeof full, .numa_node = -1};
    gg_status status = ggi_device_check(device);
    if (status)
        return status;
    if (!ggi_sized_fits(info, first))
        return ggi_sized_refuse("gg_device_info", "gg_device_info", info, first);
    status = GGI_CALL(device, device_info, NULL, 0, (device->ordinal, &full));
    if (status)
        return status;
    if (full.pci_bus_id[0])
        full.numa_node = device_numa_node(full.pci_bus_id);
    ggi_sized_write(info, &full, sizeof full);
    return GG_OK;
}

gg_status gg_device_attribute(gg_device *device, gg_attribute attribute, int64_t *value)
{
    gg_status status = ggi_device_check(device);
    if (status)
        return status;
    if (attribute < 0 || attribute >= GG_ATTR_COUNT)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "attribute %d is unknown: expected 0 to %d",
                        (int)attribute, GG_ATTR_COUNT - 1);
    return GGI_CALL_OPTIONAL(device, device_attribute, NULL, 0, (device->ordinal, attribute, value));
}

gg_status gg_device_memory_info(gg_device *device, uint64_t *free, uint64_t *total)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (!device->ops->device_memory_info)
        return ggi_unsupported(device, GG_OP_device_memory_info);
    ggi_drain_all(device);
    return GGI_CALL_RELAXED(device, device_memory_info, NULL, 0,
                            (atomic_load(&device->impl), free, total));
}

/* Whether a slot of the table is set, whatever its type. */
static bool device_has_slot(const struct gg_backend_ops *ops, gg_op op)
{
    void (*slot)(void);
    memcpy(&slot, (const char *)&ops->probe + (size_t)op * sizeof slot, sizeof slot);
    return slot;
}

/* What the core does for a backend without graphs. */
static bool device_replays(const gg_device *device, gg_op op)
{
    return device->replays && op >= GG_OP_capture_begin && op <= GG_OP_capture_id;
}

int gg_device_supports(gg_device *device, gg_op op)
{
    if (device_replays(device, op))
        return !ggi_device_ready(device);
    if (op < 0 || op >= GG_OP_COUNT || !device_has_slot(device->ops, op) || ggi_device_ready(device))
        return 0;
    if (!device->ops->device_supports)
        return 1;
    ggi_suppress_errors(1); /* "no" is an answer, not a failed call */
    const int supported = device->ops->device_supports(atomic_load(&device->impl), op);
    ggi_suppress_errors(-1);
    return supported;
}

gg_status gg_device_native(gg_device *device, uint64_t handles[4])
{
    gg_status status = ggi_device_ready(device);
    return status ? status
                  : GGI_CALL_OPTIONAL(device, device_native, NULL, 0,
                                      (atomic_load(&device->impl), handles));
}

gg_status gg_stream_priority_range(gg_device *device, int32_t *least, int32_t *greatest)
{
    gg_status status = ggi_device_ready(device);
    return status ? status
                  : GGI_CALL_OPTIONAL(device, stream_priority_range, NULL, 0,
                                      (atomic_load(&device->impl), least, greatest));
}

gg_status gg_device_default_stream(gg_device *device, gg_stream **out)
{
    gg_status status = ggi_device_ready(device);
    if (!status)
        *out = device->default_stream;
    return status;
}
