/* device.c: devices, their shared contexts, and what is current in a thread. */
#include "driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- contexts ----------------------------------------------------------------------------------- */

int twin_switch(const struct gg_device_impl *device, struct twin_guard *guard)
{
    guard->switched = false;
    int code = twin.context_get(&guard->saved);
    if (code || guard->saved == device->context)
        return code;
    code = twin.context_set(device->context);
    guard->switched = code == 0;
    return code;
}

void twin_switch_back(const struct twin_guard *guard)
{
    twin_forget(twin.context_set(guard->saved), "restoring the caller's context");
}

gg_status twin_device_enter(struct gg_device_impl *device, void **saved)
{
    struct twin_guard guard;
    const int code = twin_switch(device, &guard);
    if (code)
        return twin_fail(code, "making device %" PRId32 " current", device->ordinal);
    *saved = guard.saved;
    return GG_OK;
}

void twin_device_leave(void *saved)
{
    twin_forget(twin.context_set(saved), "restoring the caller's context");
}

int32_t twin_device_current(void)
{
    void *current = NULL;
    if (!twin_device_count || twin_clear(twin.context_get(&current)) || !current)
        return -1;
    for (int i = 0; i < twin_device_count; i++)
        if (atomic_load_explicit(&twin_contexts[i], memory_order_relaxed) == current)
            return i;
    return twin.context_ordinal(current);
}

/* ---- facts -------------------------------------------------------------------------------------- */

static gg_status get_device(int32_t ordinal, int *device)
{
    const int code = twin_driver.device_get(device, ordinal);
    return code ? twin_fail(code, "ordinal %" PRId32 " of %d", ordinal, twin_device_count) : GG_OK;
}

/* "0000:65:00.0" in lower case, as sysfs spells it; "" where the driver does not say. */
static void get_pci(int device, char *out, size_t size)
{
    if (!twin_driver.device_pci || twin_clear(twin_driver.device_pci(out, (int)size, device)))
        out[0] = '\0';
    for (char *c = out; *c; c++)
        if (*c >= 'A' && *c <= 'F')
            *c = (char)(*c - 'A' + 'a');
}

static int get_facts(int device, struct gg_device_info *info)
{
    size_t total = 0;
    int integrated = 0;
    bool known = false;
    int code = twin_driver.device_name(info->name, (int)sizeof info->name, device);
    if (!code)
        code = twin_driver.device_total(&total, device);
    if (!code)
        code = twin.device_arch(device, info->arch, sizeof info->arch);
    if (!code && twin.device_uuid(device, info->uuid, &known))
        known = false;
    if (!code && twin_driver.device_attribute(&integrated, twin.integrated, device))
        integrated = 0;
    get_pci(device, info->pci_bus_id, sizeof info->pci_bus_id);
    info->total_memory = total;
    info->flags = GG_DEVICE_SHARED_DEFAULT | (integrated ? (uint32_t)GG_DEVICE_INTEGRATED : 0) |
                  (known ? (uint32_t)GG_DEVICE_HAS_UUID : 0);
    return code;
}

gg_status twin_device_info(int32_t ordinal, struct gg_device_info *info)
{
    struct gg_device_info facts = {.struct_size = sizeof facts, .numa_node = -1};
    int device = 0;
    const gg_status status = get_device(ordinal, &device);
    if (status)
        return status;
    const int code = get_facts(device, &facts);
    if (code)
        return twin_fail(code, "reading what device %" PRId32 " is", ordinal);
    facts.struct_size = info->struct_size;
    memcpy(info, &facts, info->struct_size < sizeof facts ? info->struct_size : sizeof facts);
    return GG_OK;
}

gg_status twin_device_attribute(int32_t ordinal, gg_attribute attribute, int64_t *value)
{
    int device = 0, number = 0;
    if ((unsigned)attribute >= GG_ATTR_COUNT || twin.attributes[attribute] < 0)
        return twin_host->fail(GG_ERR_UNSUPPORTED, NULL, "attribute %d is not known",
                               (int)attribute);
    const gg_status status = get_device(ordinal, &device);
    if (status)
        return status;
    const int code = twin_driver.device_attribute(&number, twin.attributes[attribute], device);
    if (twin_clear(code) ==
        twin.invalid_value) /* the driver is older than the attribute, or has dropped it */
        return twin_host->fail(GG_ERR_UNSUPPORTED, NULL, "the driver does not know attribute %d",
                               twin.attributes[attribute]);
    if (code)
        return twin_fail(code, "attribute %d", twin.attributes[attribute]);
    *value = number;
    return GG_OK;
}

gg_status twin_device_memory_info(struct gg_device_impl *device, uint64_t *free, uint64_t *total)
{
    struct twin_guard guard;
    size_t now_free = 0, now_total = 0;
    int code = twin_enter(&guard, TWIN_AT_memory_info, device, NULL);
    if (!code)
        code = twin_driver.memory_info(&now_free, &now_total);
    twin_leave(&guard);
    if (code)
        return twin_fail(code, "free and total memory");
    *free = now_free;
    *total = now_total;
    return GG_OK;
}

static bool writes_64_bits(const struct gg_device_impl *device)
{
    int value = 0;
    return !twin_driver.device_attribute(&value, twin.word_attribute, device->device) && value;
}

/* The optional rows, by the operation that is nothing without them. */
static const struct {
    gg_op op;
    size_t slot;
} optional[] = {
    {GG_OP_capture_mode, offsetof(struct twin_driver, capture_mode)},
    {GG_OP_stream_capturing, offsetof(struct twin_driver, stream_capturing)},
    {GG_OP_stream_priority_range, offsetof(struct twin_driver, priority_range)},
    {GG_OP_stream_host_func, offsetof(struct twin_driver, host_func)},
    {GG_OP_event_elapsed, offsetof(struct twin_driver, event_elapsed)},
    {GG_OP_peer_access, offsetof(struct twin_driver, peer_access)},
    {GG_OP_mem_register, offsetof(struct twin_driver, host_register)},
    {GG_OP_mem_unregister, offsetof(struct twin_driver, host_unregister)},
    {GG_OP_mem_prefetch, offsetof(struct twin_driver, prefetch)},
    {GG_OP_mem_advise, offsetof(struct twin_driver, advise)},
    {GG_OP_mem_alloc_async, offsetof(struct twin_driver, alloc_async)},
    {GG_OP_mem_free_async, offsetof(struct twin_driver, free_async)},
    {GG_OP_ipc_export, offsetof(struct twin_driver, ipc_export)},
    {GG_OP_ipc_open, offsetof(struct twin_driver, ipc_open)},
    {GG_OP_ipc_close, offsetof(struct twin_driver, ipc_close)},
    {GG_OP_module_load, offsetof(struct twin_driver, module_load)},
    {GG_OP_module_unload, offsetof(struct twin_driver, module_unload)},
    {GG_OP_module_global, offsetof(struct twin_driver, module_global)},
    {GG_OP_module_kernel, offsetof(struct twin_driver, module_function)},
    {GG_OP_kernel_attribute, offsetof(struct twin_driver, function_attribute)},
    {GG_OP_kernel_occupancy, offsetof(struct twin_driver, function_occupancy)},
    {GG_OP_kernel_launch, offsetof(struct twin_driver, launch)},
};

int32_t twin_device_supports(struct gg_device_impl *device, gg_op op)
{
    if (op == GG_OP_write_word)
        return twin.writes_words && twin_driver.write_word && writes_64_bits(device);
    void (*function)(void) = NULL;
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
        if (optional[i].op != op)
            continue;
        memcpy(&function, (const char *)&twin_driver + optional[i].slot, sizeof function);
        return function || (op == GG_OP_stream_host_func && twin.host_func && twin.supports(op));
    }
    return twin.supports(op);
}

gg_status twin_device_native(struct gg_device_impl *device, uint64_t handles[4])
{
    memset(handles, 0, 4 * sizeof *handles);
    twin.device_native(device->device, device->context, handles);
    return GG_OK;
}

/* ---- opening ------------------------------------------------------------------------------------ */

gg_status twin_device_open(int32_t ordinal, struct gg_device_impl **out)
{
    int code = 0;
    gg_status status = GG_OK;
    struct gg_device_impl *device = calloc(1, sizeof *device);
    if (!device)
        return twin_no_memory(sizeof *device, "a device");
    status = get_device(ordinal, &device->device);
    if (status)
        goto free_device;
    code = twin.context_retain(device->device, &device->context);
    if (code) {
        status = twin_fail(code, "opening the context of device %" PRId32, ordinal);
        goto free_device;
    }
    pthread_mutex_init(&device->lock, NULL);
    device->ordinal = ordinal;
    device->default_stream = (struct gg_stream_impl){
        .native = (void *)twin.default_stream, .device = device, .enters = device};
    atomic_store_explicit(&twin_contexts[ordinal], device->context, memory_order_relaxed);
    *out = device;
    return GG_OK;

free_device:
    free(device);
    return status;
}

void twin_device_close(struct gg_device_impl *device)
{
    twin_fences_destroy(device);
    atomic_store_explicit(&twin_contexts[device->ordinal], NULL, memory_order_relaxed);
    twin_forget(twin.context_release(device->device), "releasing a device's context");
    pthread_mutex_destroy(&device->lock);
    free(device);
}

/* ---- work --------------------------------------------------------------------------------------- */

gg_status twin_device_synchronize(struct gg_device_impl *device)
{
    struct twin_guard guard;
    int code = twin_enter(&guard, TWIN_AT_device_synchronize, device, NULL);
    if (!code)
        code = twin_driver.device_synchronize();
    twin_leave(&guard);
    return code ? twin_fail(code, "waiting for all work of the device") : GG_OK;
}

gg_status twin_device_record(struct gg_device_impl *device, struct gg_event_impl *event)
{
    const int code = twin.context_record(device->context, event->native);
    return code ? twin_fail(code, "recording behind all work of the device") : GG_OK;
}

gg_status twin_capture_mode(struct gg_device_impl *device, int32_t relaxed, int32_t *mode)
{
    int exchanged = relaxed ? twin.capture_relaxed : *mode;
    (void)device; /* the mode is the thread's */
    if (!twin_driver.capture_mode)
        return twin_missing(offsetof(struct twin_driver, capture_mode));
    const int code = twin_driver.capture_mode(&exchanged);
    if (code)
        return twin_fail(code, "exchanging the thread's capture mode for %d", exchanged);
    *mode = exchanged;
    return GG_OK;
}
