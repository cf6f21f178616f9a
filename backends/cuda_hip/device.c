/* device.c: devices: their properties, opening and closing. */
#include "driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- facts -------------------------------------------------------------------------------------- */

static gg_status device_get(int32_t ordinal, int *device)
{
    const int code = cuhip_driver.device_get(device, ordinal);
    return code ? cuhip_fail(code, "ordinal %" PRId32 " of %d", ordinal, cuhip_device_count) : GG_OK;
}

/* "0000:65:00.0" in lower case, as in sysfs; "" if the driver does not report it. */
static void device_get_pci(int device, char *out, size_t size)
{
    if (!cuhip_driver.device_pci ||
        cuhip_clear_error(cuhip_driver.device_pci(out, (int)size, device)))
        out[0] = '\0';
    for (char *c = out; *c; c++)
        if (*c >= 'A' && *c <= 'F')
            *c = (char)(*c - 'A' + 'a');
}

static int device_get_info(int device, struct gg_device_info *info)
{
    size_t total = 0;
    int integrated = 0;
    bool known = false;
    int code = cuhip_driver.device_name(info->name, (int)sizeof info->name, device);
    if (!code)
        code = cuhip_driver.device_total(&total, device);
    if (!code)
        code = cuhip.device_arch(device, info->arch, sizeof info->arch);
    if (!code && cuhip.device_uuid(device, info->uuid, &known))
        known = false;
    if (!code && cuhip_driver.device_attribute(&integrated, cuhip.integrated, device))
        integrated = 0;
    device_get_pci(device, info->pci_bus_id, sizeof info->pci_bus_id);
    info->total_memory = total;
    info->flags = GG_DEVICE_SHARED_DEFAULT | GG_DEVICE_FREE_WAITS |
                  (integrated ? (uint32_t)GG_DEVICE_INTEGRATED : 0) |
                  (known ? (uint32_t)GG_DEVICE_HAS_UUID : 0);
    return code;
}

gg_status cuhip_device_info(int32_t ordinal, struct gg_device_info *info)
{
    struct gg_device_info facts = {.struct_size = sizeof facts, .numa_node = -1};
    int device = 0;
    const gg_status status = device_get(ordinal, &device);
    if (status)
        return status;
    const int code = device_get_info(device, &facts);
    if (code)
        return cuhip_fail(code, "properties of device %" PRId32, ordinal);
    facts.struct_size = info->struct_size;
    memcpy(info, &facts, info->struct_size < sizeof facts ? info->struct_size : sizeof facts);
    return GG_OK;
}

/* Whether the device could do it, but the driver has no function for it. */
static bool attribute_needs_missing(gg_attribute attribute)
{
    return (attribute == GG_ATTR_MANAGED_MEMORY && !cuhip_driver.managed_alloc) ||
           (attribute == GG_ATTR_COOPERATIVE_LAUNCH && !cuhip_driver.launch_cooperative);
}

gg_status cuhip_device_attribute(int32_t ordinal, gg_attribute attribute, int64_t *value)
{
    int device = 0, number = 0;
    if ((unsigned)attribute >= GG_ATTR_COUNT || cuhip.attributes[attribute] < 0)
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL, "attribute %d is not known",
                               (int)attribute);
    const gg_status status = device_get(ordinal, &device);
    if (status)
        return status;
    const int code = cuhip_driver.device_attribute(&number, cuhip.attributes[attribute], device);
    if (cuhip_clear_error(code) ==
        cuhip.invalid_value) /* the driver is older than the attribute, or has removed it */
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL, "the driver does not know attribute %d",
                               cuhip.attributes[attribute]);
    if (code)
        return cuhip_fail(code, "attribute %d", cuhip.attributes[attribute]);
    *value = attribute_needs_missing(attribute) ? 0 : number;
    return GG_OK;
}

/* The facts that identify it, which are all that the management library needs to know. */
gg_status cuhip_device_stats(int32_t ordinal, struct gg_device_stats *stats)
{
    struct gg_device_info facts = {.struct_size = sizeof facts};
    bool known = false;
    int device = 0;
    const gg_status status = device_get(ordinal, &device);
    if (status)
        return status;
    if (!cuhip.device_uuid(device, facts.uuid, &known) && known)
        facts.flags = GG_DEVICE_HAS_UUID;
    device_get_pci(device, facts.pci_bus_id, sizeof facts.pci_bus_id);
    return cuhip.stats(&facts, stats);
}

gg_status cuhip_range_tool(struct gg_range_tool *tool)
{
    return cuhip.range_tool(tool);
}

gg_status cuhip_device_memory_info(struct gg_device_impl *device, uint64_t *free, uint64_t *total)
{
    size_t now_free = 0, now_total = 0;
    const int code = CUHIP_IN_CONTEXT(memory_info, device, NULL,
                                      cuhip_driver.memory_info(&now_free, &now_total));
    if (code)
        return cuhip_fail(code, "free and total memory");
    *free = now_free;
    *total = now_total;
    return GG_OK;
}

static bool device_writes_words(const struct gg_device_impl *device)
{
    int value = 0;
    return !cuhip_driver.device_attribute(&value, cuhip.word_attribute, device->device) && value;
}

/* The optional driver functions, by the operation that needs them; it may need several. */
static const struct {
    gg_op op;
    size_t slot;
} optional[] = {
    {GG_OP_capture_mode, offsetof(struct cuhip_driver, capture_mode)},
    {GG_OP_stream_capturing, offsetof(struct cuhip_driver, stream_capturing)},
    {GG_OP_stream_priority_range, offsetof(struct cuhip_driver, priority_range)},
    {GG_OP_peer_access, offsetof(struct cuhip_driver, peer_access)},
    {GG_OP_mem_register, offsetof(struct cuhip_driver, host_register)},
    {GG_OP_mem_register, offsetof(struct cuhip_driver, host_unregister)},
    {GG_OP_mem_unregister, offsetof(struct cuhip_driver, host_unregister)},
    {GG_OP_mem_prefetch, offsetof(struct cuhip_driver, prefetch)},
    {GG_OP_mem_advise, offsetof(struct cuhip_driver, advise)},
    {GG_OP_mem_alloc_async, offsetof(struct cuhip_driver, alloc_async)},
    {GG_OP_mem_alloc_async, offsetof(struct cuhip_driver, free_async)},
    {GG_OP_mem_free_async, offsetof(struct cuhip_driver, free_async)},
    {GG_OP_ipc_export, offsetof(struct cuhip_driver, ipc_export)},
    {GG_OP_ipc_open, offsetof(struct cuhip_driver, ipc_open)},
    {GG_OP_ipc_open, offsetof(struct cuhip_driver, ipc_close)},
    {GG_OP_ipc_close, offsetof(struct cuhip_driver, ipc_close)},
    {GG_OP_module_load, offsetof(struct cuhip_driver, module_load)},
    {GG_OP_module_load, offsetof(struct cuhip_driver, module_unload)},
    {GG_OP_module_load, offsetof(struct cuhip_driver, module_function)},
    {GG_OP_module_unload, offsetof(struct cuhip_driver, module_unload)},
    {GG_OP_module_global, offsetof(struct cuhip_driver, module_global)},
    {GG_OP_module_kernel, offsetof(struct cuhip_driver, module_function)},
    {GG_OP_kernel_attribute, offsetof(struct cuhip_driver, function_attribute)},
    {GG_OP_kernel_occupancy, offsetof(struct cuhip_driver, function_occupancy)},
    {GG_OP_kernel_launch, offsetof(struct cuhip_driver, launch)},
    {GG_OP_capture_begin, offsetof(struct cuhip_driver, stream_capturing)},
    {GG_OP_capture_begin, offsetof(struct cuhip_driver, begin_capture)},
    {GG_OP_capture_begin, offsetof(struct cuhip_driver, end_capture)},
    {GG_OP_capture_begin, offsetof(struct cuhip_driver, graph_destroy)},
    {GG_OP_capture_begin, offsetof(struct cuhip_driver, exec_launch)},
    {GG_OP_capture_begin, offsetof(struct cuhip_driver, exec_destroy)},
    {GG_OP_capture_begin, offsetof(struct cuhip_driver, capture_info)},
    {GG_OP_capture_id, offsetof(struct cuhip_driver, capture_info)},
    {GG_OP_capture_end, offsetof(struct cuhip_driver, end_capture)},
    {GG_OP_graph_launch, offsetof(struct cuhip_driver, exec_launch)},
    {GG_OP_graph_destroy, offsetof(struct cuhip_driver, exec_destroy)},
};

int32_t cuhip_device_supports(struct gg_device_impl *device, gg_op op)
{
    if (op == GG_OP_write_word)
        return cuhip.writes_words && cuhip_driver.write_word && device_writes_words(device);
    if (op == GG_OP_stream_host_func)
        return cuhip_driver.host_func || (cuhip.host_func && cuhip.supports(op));
    void (*function)(void) = NULL;
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
        if (optional[i].op != op)
            continue;
        memcpy(&function, (const char *)&cuhip_driver + optional[i].slot, sizeof function);
        if (!function)
            return 0;
    }
    return cuhip.supports(op);
}

gg_status cuhip_device_native(struct gg_device_impl *device, uint64_t handles[4])
{
    memset(handles, 0, 4 * sizeof *handles);
    cuhip.device_native(device->device, device->context, handles);
    return GG_OK;
}

/* ---- opening ------------------------------------------------------------------------------------ */

gg_status cuhip_device_open(int32_t ordinal, struct gg_device_impl **out)
{
    int code = 0;
    gg_status status = GG_OK;
    struct gg_device_impl *device = calloc(1, sizeof *device);
    if (!device)
        return cuhip_no_memory(sizeof *device, "a device");
    status = device_get(ordinal, &device->device);
    if (status)
        goto free_device;
    code = cuhip.context_retain(device->device, &device->context);
    if (code) {
        status = cuhip_fail(code, "opening the context of device %" PRId32, ordinal);
        goto free_device;
    }
    pthread_mutex_init(&device->lock, NULL);
    device->ordinal = ordinal;
    device->default_stream = (struct gg_stream_impl){
        .native = (void *)cuhip.default_stream, .device = device, .enters = device};
    atomic_store_explicit(&cuhip_contexts[ordinal], device->context, memory_order_relaxed);
    *out = device;
    return GG_OK;

free_device:
    free(device);
    return status;
}

void cuhip_device_close(struct gg_device_impl *device)
{
    cuhip_fences_destroy(device);
    atomic_store_explicit(&cuhip_contexts[device->ordinal], NULL, memory_order_relaxed);
    cuhip_log_failure(cuhip.context_release(device->device), "releasing a device's context");
    pthread_mutex_destroy(&device->lock);
    free(device);
}

/* ---- work --------------------------------------------------------------------------------------- */

gg_status cuhip_device_synchronize(struct gg_device_impl *device)
{
    const int code =
        CUHIP_IN_CONTEXT(device_synchronize, device, NULL, cuhip_driver.device_synchronize());
    return code ? cuhip_fail(code, "waiting for all work of the device") : GG_OK;
}

gg_status cuhip_device_record(struct gg_device_impl *device, struct gg_event_impl *event)
{
    const int code = cuhip.context_record(device->context, event->native);
    return code ? cuhip_fail(code, "recording an event after all work of the device") : GG_OK;
}
