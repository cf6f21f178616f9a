/* device.c: devices: opening them on first need, what they are, waiting for all their work. */
#include "pool.h"
#include "sized.h"
#include "staging.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gg_status ggi_device_setup(struct gg_device *device, struct gg_backend *backend, int32_t ordinal)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    const char *debug = ggi_host_api()->get_env("GPUGLUE_DEBUG");
    atomic_store(&ggi_debug_sync, debug && !strcmp(debug, "sync"));
    if (debug && debug[0] && strcmp(debug, "sync"))
        ggi_log(GG_LOG_WARN, "core", "GPUGLUE_DEBUG=%s is not known and does nothing; \"sync\" is",
                debug);
    memset(device, 0, sizeof *device);
    device->backend = backend;
    device->ops = &backend->ops;
    device->ordinal = ordinal;
    device->generation = atomic_load(&ggi_generation);
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->spare_lock, NULL);
    pthread_mutex_init(&device->drain_lock, NULL);
    ggi_trace_start();
    ggi_begin(device, GG_OP_device_info, NULL, 0);
    gg_status status = backend->ops.device_info(ordinal, &info);
    status = ggi_end(device, GG_OP_device_info, NULL, 0, status);
    if (status)
        return status;
    device->flags = info.flags;
    return GG_OK;
}

static gg_status make_pools(struct gg_device *device)
{
    static const enum gg_memory_kind kinds[GGI_POOLS] = {GG_MEMORY_DEVICE, GG_MEMORY_PINNED,
                                                         GG_MEMORY_MANAGED};
    for (int i = 0; i < GGI_POOLS; i++)
        if (!device->pools[i] && !(device->pools[i] = ggi_pool_new(device, kinds[i])))
            return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a device");
    return GG_OK;
}

/* With device->lock held. */
static gg_status open_device(struct gg_device *device)
{
    struct gg_device_impl *impl;
    struct gg_stream_impl *stream;
    ggi_begin(device, GG_OP_device_open, NULL, 0);
    gg_status status = device->ops->device_open(device->ordinal, &impl);
    status = ggi_end(device, GG_OP_device_open, NULL, 0, status);
    if (status)
        return status;
    ggi_begin(device, GG_OP_stream_default, NULL, 0);
    status = device->ops->stream_default(impl, &stream);
    status = ggi_end(device, GG_OP_stream_default, NULL, 0, status);
    if (!status && !device->ring)
        device->ring = ggi_ring_new();
    if (!status && !device->staging)
        device->staging = ggi_staging_new(device);
    if (!status && (!device->ring || !device->staging))
        status = ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a device");
    if (!status)
        status = make_pools(device);
    if (!status)
        status = ggi_stream_new(device, stream, 0, &device->default_stream);
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
    return GG_OK;
}

gg_status ggi_device_open(struct gg_device *device)
{
    gg_status status = GG_OK;
    pthread_mutex_lock(&device->lock);
    if (!atomic_load(&device->impl))
        status = open_device(device);
    pthread_mutex_unlock(&device->lock);
    return status;
}

void ggi_relax_begin(struct gg_device *device, struct ggi_own *own)
{
    own->relaxed = false;
    if (!device->ops->capture_mode)
        return;
    ggi_quiet(1);
    own->relaxed = !device->ops->capture_mode(atomic_load(&device->impl), 1, &own->mode);
    ggi_quiet(-1);
}

void ggi_relax_end(struct gg_device *device, const struct ggi_own *own)
{
    int32_t mode = own->mode;
    if (!own->relaxed)
        return;
    ggi_quiet(1);
    device->ops->capture_mode(atomic_load(&device->impl), 0, &mode);
    ggi_quiet(-1);
}

void ggi_own_begin(struct gg_device *device, struct ggi_own *own)
{
    ggi_relax_begin(device, own);
    ggi_quiet(1);
}

void ggi_own_end(struct gg_device *device, struct ggi_own *own)
{
    ggi_quiet(-1);
    ggi_relax_end(device, own);
}

const char *gg_device_backend(const gg_device *device)
{
    return device->backend->name;
}

int32_t gg_device_ordinal(const gg_device *device)
{
    return device->ordinal;
}

/* Every vendor's PCI address leads to the same file. -1 where it says nothing. */
static int32_t numa_node_of(const char *pci_bus_id)
{
    char path[96];
    int node = -1;
    if (!pci_bus_id[0])
        return -1;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", pci_bus_id);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    if (fscanf(file, "%d", &node) != 1)
        node = -1;
    fclose(file);
    return node;
}

gg_status gg_device_info(gg_device *device, struct gg_device_info *info)
{
    static const size_t first = offsetof(struct gg_device_info, total_memory) + sizeof(uint64_t);
    struct gg_device_info full = {.struct_size = sizeof full, .numa_node = -1};
    gg_status status = ggi_check(device);
    if (status)
        return status;
    if (!ggi_sized_fits(info, first))
        return ggi_sized_refuse("gg_device_info", "gg_device_info", info, first);
    ggi_begin(device, GG_OP_device_info, NULL, 0);
    status = device->ops->device_info(device->ordinal, &full);
    status = ggi_end(device, GG_OP_device_info, NULL, 0, status);
    if (status)
        return status;
    full.numa_node = numa_node_of(full.pci_bus_id);
    ggi_sized_write(info, &full, sizeof full);
    return GG_OK;
}

gg_status gg_device_attribute(gg_device *device, gg_attribute attribute, int64_t *value)
{
    gg_status status = ggi_check(device);
    if (status)
        return status;
    if (attribute < 0 || attribute >= GG_ATTR_COUNT)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "attribute %d is unknown; there are 0 to %d",
                        (int)attribute, GG_ATTR_COUNT - 1);
    if (!device->ops->device_attribute)
        return ggi_unsupported(device, GG_OP_device_attribute);
    ggi_begin(device, GG_OP_device_attribute, NULL, 0);
    status = device->ops->device_attribute(device->ordinal, attribute, value);
    return ggi_end(device, GG_OP_device_attribute, NULL, 0, status);
}

gg_status gg_device_memory_info(gg_device *device, uint64_t *free, uint64_t *total)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (!device->ops->device_memory_info)
        return ggi_unsupported(device, GG_OP_device_memory_info);
    struct ggi_own own;
    ggi_drain(device);
    ggi_relax_begin(device, &own);
    ggi_begin(device, GG_OP_device_memory_info, NULL, 0);
    status = device->ops->device_memory_info(atomic_load(&device->impl), free, total);
    status = ggi_end(device, GG_OP_device_memory_info, NULL, 0, status);
    ggi_relax_end(device, &own);
    return status;
}

/* A table slot, whatever its type. */
static bool has_slot(const struct gg_backend_ops *ops, gg_op op)
{
    void (*slot)(void);
    memcpy(&slot, (const char *)&ops->probe + (size_t)op * sizeof slot, sizeof slot);
    return slot;
}

int gg_device_supports(gg_device *device, gg_op op)
{
    if (op < 0 || op >= GG_OP_COUNT || !has_slot(device->ops, op) || ggi_device_ready(device))
        return 0;
    return !device->ops->device_supports ||
           device->ops->device_supports(atomic_load(&device->impl), op);
}

gg_status ggi_unsupported(struct gg_device *device, gg_op op)
{
    return ggi_fail(GG_ERR_UNSUPPORTED, "%s: %s is not supported on device %d",
                    device->backend->name, gg_op_name(op), (int)device->ordinal);
}

gg_status gg_device_native(gg_device *device, uint64_t handles[4])
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (!device->ops->device_native)
        return ggi_unsupported(device, GG_OP_device_native);
    ggi_begin(device, GG_OP_device_native, NULL, 0);
    status = device->ops->device_native(atomic_load(&device->impl), handles);
    return ggi_end(device, GG_OP_device_native, NULL, 0, status);
}

gg_status gg_stream_priority_range(gg_device *device, int32_t *least, int32_t *greatest)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (!device->ops->stream_priority_range)
        return ggi_unsupported(device, GG_OP_stream_priority_range);
    ggi_begin(device, GG_OP_stream_priority_range, NULL, 0);
    status = device->ops->stream_priority_range(atomic_load(&device->impl), least, greatest);
    return ggi_end(device, GG_OP_stream_priority_range, NULL, 0, status);
}

gg_status gg_device_default_stream(gg_device *device, gg_stream **out)
{
    gg_status status = ggi_device_ready(device);
    if (!status)
        *out = device->default_stream;
    return status;
}

/* ---- waiting for the whole device ---- */

/* An event behind everything, also what we did not submit, can be waited for with the hook. */
static gg_status wait_by_event(struct gg_device *device)
{
    gg_event *event;
    gg_status status = gg_event_create(device, 0, &event);
    if (status)
        return status;
    ggi_begin(device, GG_OP_device_record, NULL, 0);
    status = device->ops->device_record(atomic_load(&device->impl), event->impl);
    status = ggi_end(device, GG_OP_device_record, NULL, 0, status);
    if (!status) {
        atomic_fetch_add(&event->recorded, 1);
        status = gg_event_wait(event, GG_FOREVER);
    }
    gg_event_release(event);
    return status;
}

/* References to the streams of a device and what each has now, so that waiting for them needs no lock. */
static size_t hold_streams(struct gg_device *device, struct ggi_use **out)
{
    size_t count = 0, held = 0;
    pthread_mutex_lock(&device->lock);
    for (gg_stream *stream = device->streams; stream; stream = stream->next)
        count++;
    struct ggi_use *uses = malloc(count * sizeof *uses);
    for (gg_stream *stream = device->streams; stream && uses; stream = stream->next)
        if (ggi_stream_try_retain(stream))
            uses[held++] = (struct ggi_use){stream, atomic_load(&stream->submitted)};
    pthread_mutex_unlock(&device->lock);
    *out = uses;
    return held;
}

/* Ours first, since those waits can be interrupted; then what is left, without a limit. */
static gg_status wait_by_streams(struct gg_device *device, const struct ggi_use *uses, size_t count)
{
    gg_status status = GG_OK;
    for (size_t i = 0; i < count && !status; i++)
        status = ggi_stream_wait_ticket(uses[i].stream, uses[i].ticket);
    if (status)
        return status;
    ggi_begin(device, GG_OP_device_synchronize, NULL, 0);
    status = device->ops->device_synchronize(atomic_load(&device->impl));
    return ggi_end(device, GG_OP_device_synchronize, NULL, 0, status);
}

/* An event behind a stream's work does not say whether it succeeded; the stream does. */
static gg_status outcome(const struct ggi_use *use)
{
    ggi_stream_passed(use->stream, use->ticket, true);
    return ggi_stream_tell(use->stream, GG_OP_device_synchronize);
}

gg_status gg_device_synchronize(gg_device *device)
{
    struct ggi_use *uses;
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    uint64_t round = ggi_quarantine_begin(device);
    size_t count = hold_streams(device, &uses);
    status = gg_device_supports(device, GG_OP_device_record) ? wait_by_event(device)
                                                             : wait_by_streams(device, uses, count);
    const bool waited = !status;
    for (size_t i = 0; i < count; i++) {
        if (waited && !status)
            status = outcome(&uses[i]);
        if (waited)
            ggi_stream_advance(uses[i].stream, uses[i].ticket);
        gg_stream_release(uses[i].stream);
    }
    free(uses);
    if (waited)
        ggi_quarantine_end(device, round);
    if (waited)
        ggi_drain(device);
    return status;
}
