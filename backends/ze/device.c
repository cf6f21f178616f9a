/* device.c: devices: their properties, and the context that the devices of one driver share. */
#include "ze.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS 16  /* of queues */
#define MEMORIES 8 /* of one device */

struct ze_gpu ze_gpus[ZE_MAX_GPUS];
int ze_gpu_count;

/* ---- facts ---- */

/* "0000:65:00.0", as in sysfs; "" if the driver does not report it. */
static void device_get_pci(const struct ze_gpu *gpu, char *out, size_t size)
{
    struct ze_pci_properties pci = {.stype = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES};
    out[0] = '\0';
    if (ze.pci_properties && !ze.pci_properties(gpu->handle, &pci))
        snprintf(out, size, "%04x:%02x:%02x.%x", pci.domain, pci.bus, pci.device, pci.function);
}

static int device_total_memory(const struct ze_gpu *gpu, uint64_t *total)
{
    struct ze_memory_properties parts[MEMORIES];
    uint32_t count = 0;
    int code = ze.memory_properties(gpu->handle, &count, NULL);
    count = count < MEMORIES ? count : MEMORIES;
    memset(parts, 0, sizeof parts);
    for (uint32_t i = 0; i < count; i++)
        parts[i].stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES;
    if (!code && count)
        code = ze.memory_properties(gpu->handle, &count, parts);
    *total = 0;
    for (uint32_t i = 0; !code && i < count; i++)
        *total += parts[i].total;
    return code;
}

gg_status ze_device_info(int32_t ordinal, struct gg_device_info *info)
{
    const struct ze_gpu *gpu = &ze_gpus[ordinal];
    const struct ze_device_properties *properties = &gpu->properties;
    struct gg_device_info facts = {.struct_size = sizeof facts, .numa_node = -1};
    const int code = device_total_memory(gpu, &facts.total_memory);
    if (code)
        return ze_fail(code, "properties of device %" PRId32, ordinal);
    snprintf(facts.name, sizeof facts.name, "%.*s", (int)sizeof facts.name - 1, properties->name);
    /* The device's name for the vendor's offline compiler. */
    snprintf(facts.arch, sizeof facts.arch, "0x%04x", properties->device_id);
    device_get_pci(gpu, facts.pci_bus_id, sizeof facts.pci_bus_id);
    memcpy(facts.uuid, properties->uuid, sizeof facts.uuid);
    facts.flags = GG_DEVICE_HAS_UUID | GG_DEVICE_FREE_NEVER_WAITS;
    if (properties->flags & ZE_DEVICE_PROPERTY_FLAG_INTEGRATED)
        facts.flags |= GG_DEVICE_INTEGRATED;
    facts.struct_size = info->struct_size;
    memcpy(info, &facts, info->struct_size < sizeof facts ? info->struct_size : sizeof facts);
    return GG_OK;
}

/* ---- groups of queues ---- */

static int queue_groups_get(const struct ze_gpu *gpu, struct ze_group_properties groups[GROUPS],
                            uint32_t *count)
{
    *count = 0;
    int code = ze.group_properties(gpu->handle, count, NULL);
    *count = *count < GROUPS ? *count : GROUPS;
    memset(groups, 0, GROUPS * sizeof *groups);
    for (uint32_t i = 0; i < *count; i++)
        groups[i].stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES;
    if (!code && *count)
        code = ze.group_properties(gpu->handle, count, groups);
    return code;
}

/* Queues that only copy: they run concurrently with kernels. */
static int64_t queue_groups_count_copy(const struct ze_group_properties *groups, uint32_t count)
{
    int64_t queues = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!(groups[i].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE))
            queues += groups[i].queues;
    return queues;
}

/* The first group that can compute; it can also copy. 0 if there is none. */
static uint32_t queue_groups_choose(const struct ze_group_properties *groups, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (groups[i].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE)
            return i;
    return 0;
}

/* The first group that only copies; later ones have engines for links between devices. The number of groups if there is
 * none. */
static uint32_t queue_groups_choose_copy(const struct ze_group_properties *groups, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && (groups[i].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE ||
                         !(groups[i].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY)))
        i++;
    return i;
}

static int device_choose_groups(struct gg_device_impl *device)
{
    struct ze_group_properties groups[GROUPS];
    uint32_t count;
    const int code = queue_groups_get(device->gpu, groups, &count);
    device->group = queue_groups_choose(groups, count);
    device->queues = !code && groups[device->group].queues ? groups[device->group].queues : 1;
    device->copy_group = code ? count : queue_groups_choose_copy(groups, count);
    device->copy_queues = device->copy_group < count ? groups[device->copy_group].queues : 0;
    return code;
}

/* On the queues of gpuglue's streams. */
static int device_is_cooperative(const struct ze_gpu *gpu, int64_t *value)
{
    struct ze_group_properties groups[GROUPS];
    uint32_t count;
    const int code = queue_groups_get(gpu, groups, &count);
    *value = ze.append_cooperative && ze.kernel_most_groups &&
             groups[queue_groups_choose(groups, count)].flags &
                 ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COOPERATIVE_KERNELS;
    return code;
}

/* ---- attributes ---- */

static int64_t compute_widest_subgroup(const struct ze_compute_properties *compute)
{
    int64_t widest = -1;
    for (uint32_t i = 0; i < compute->subgroup_sizes && i < 8; i++)
        if (compute->subgroup_size[i] > widest)
            widest = compute->subgroup_size[i];
    return widest;
}

static int64_t compute_attribute(const struct ze_compute_properties *compute, gg_attribute attribute)
{
    const int64_t values[GG_ATTR_COUNT] = {
        [GG_ATTR_WARP_SIZE] = compute_widest_subgroup(compute),
        [GG_ATTR_MAX_THREADS_PER_BLOCK] = compute->group_size,
        [GG_ATTR_MAX_BLOCK_X] = compute->group_x,
        [GG_ATTR_MAX_BLOCK_Y] = compute->group_y,
        [GG_ATTR_MAX_BLOCK_Z] = compute->group_z,
        [GG_ATTR_MAX_GRID_X] = compute->groups_x,
        [GG_ATTR_MAX_GRID_Y] = compute->groups_y,
        [GG_ATTR_MAX_GRID_Z] = compute->groups_z,
        [GG_ATTR_SHARED_MEMORY_PER_BLOCK] = compute->shared_memory,
    };
    return values[attribute] ? values[attribute] : -1;
}

static int device_compute_attribute(const struct ze_gpu *gpu, gg_attribute attribute, int64_t *value)
{
    struct ze_compute_properties compute = {.stype = ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES};
    const int code = ze.compute_properties(gpu->handle, &compute);
    if (!code)
        *value = compute_attribute(&compute, attribute);
    return code;
}

/* Every thread of an execution unit runs a sub-group. */
static int device_resident_threads(const struct ze_gpu *gpu, int64_t *value)
{
    const struct ze_device_properties *properties = &gpu->properties;
    struct ze_compute_properties compute = {.stype = ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES};
    const int code = ze.compute_properties(gpu->handle, &compute);
    const int64_t threads = (int64_t)properties->eus_per_subslice * properties->threads_per_eu;
    if (!code && threads > 0 && compute_widest_subgroup(&compute) > 0)
        *value = threads * compute_widest_subgroup(&compute);
    return code;
}

static int device_copy_queues(const struct ze_gpu *gpu, int64_t *value)
{
    struct ze_group_properties groups[GROUPS];
    uint32_t count;
    const int code = queue_groups_get(gpu, groups, &count);
    if (!code)
        *value = queue_groups_count_copy(groups, count);
    return code;
}

gg_status ze_device_attribute(int32_t ordinal, gg_attribute attribute, int64_t *value)
{
    const struct ze_gpu *gpu = &ze_gpus[ordinal];
    const struct ze_device_properties *properties = &gpu->properties;
    int64_t found = -1; /* unknown */
    int code = 0;
    if (attribute == GG_ATTR_MULTIPROCESSORS)
        found = (int64_t)properties->slices * properties->subslices_per_slice;
    else if (attribute == GG_ATTR_CLOCK_KHZ)
        found = properties->clock_mhz ? (int64_t)properties->clock_mhz * 1000 : -1;
    else if (attribute == GG_ATTR_THREADS_PER_MULTIPROCESSOR)
        code = device_resident_threads(gpu, &found);
    else if (attribute == GG_ATTR_ASYNC_ENGINES)
        code = device_copy_queues(gpu, &found);
    else if (attribute == GG_ATTR_COOPERATIVE_LAUNCH)
        code = device_is_cooperative(gpu, &found);
    else if (attribute == GG_ATTR_MANAGED_MEMORY)
        found = gpu->has_shared;
    else if ((unsigned)attribute < GG_ATTR_COUNT)
        code = device_compute_attribute(gpu, attribute, &found);
    if (code)
        return ze_fail(code, "attribute %d of device %" PRId32, (int)attribute, ordinal);
    if (found < 0)
        return ze_api->fail(GG_ERR_UNSUPPORTED, NULL, "Level Zero does not report attribute %d",
                            (int)attribute);
    *value = found;
    return GG_OK;
}

int32_t ze_device_supports(struct gg_device_impl *device, gg_op op)
{
    const struct ze_device_properties *properties = &device->gpu->properties;
    if (op == GG_OP_device_memory_info)
        return device->reports_free_memory;
    if (op == GG_OP_device_stats)
        return ze_has_stats();
    if (op == GG_OP_module_binary)
        return ze.module_binary != NULL;
    if (op == GG_OP_module_load || op == GG_OP_module_load_with || op == GG_OP_kernel_launch)
        return ze.module_create && ze.module_destroy && ze.kernel_create && ze.kernel_destroy &&
               ze.kernel_block && ze.kernel_argument && ze.append_launch;
    if (op == GG_OP_kernel_suggest_block_size)
        return ze.kernel_suggest_block_size != NULL;
    if (op == GG_OP_kernel_occupancy)
        return ze.kernel_most_groups && ze.kernel_block;
    if (op == GG_OP_module_global)
        return ze.module_global != NULL;
    if (op == GG_OP_event_elapsed)
        return properties->timer_hz && properties->timer_bits > 0 && properties->timer_bits <= 64;
    if (op == GG_OP_peer_access || op == GG_OP_peer_enable || op == GG_OP_copy_peer)
        return ze.device_peer != NULL;
    if (op == GG_OP_mem_register || op == GG_OP_mem_unregister)
        return ze.extension_function && device->driver->imports.works;
    if (op == GG_OP_ipc_export || op == GG_OP_ipc_open || op == GG_OP_ipc_close)
        return device->driver->shares_memory && ze.ipc_get && ze.ipc_open && ze.ipc_close;
    if (op == GG_OP_mem_prefetch)
        return ze.append_prefetch && device->gpu->has_shared;
    if (op == GG_OP_mem_advise)
        return ze.append_advice && device->gpu->has_shared;
    if (op == GG_OP_capture_begin || op == GG_OP_capture_end || op == GG_OP_graph_launch ||
        op == GG_OP_graph_destroy)
        return device->gpu->has_graphs && ze.capture_begin && ze.capture_end &&
               ze.recording_instantiate && ze.recording_destroy && ze.append_graph &&
               ze.graph_destroy;
    if (op == GG_OP_copy_region)
        return ze.append_region != NULL;
    return 1;
}

/* The driver reports the properties of a lost device as before. */
static int device_status(const struct ze_gpu *gpu)
{
    const int code = ze.device_status ? ze.device_status(gpu->handle) : 0;
    return ze_is_unsupported(code) ? 0 : code;
}

/* Memory that no process uses, if the driver has that extension. */
static int device_free_memory(const struct ze_gpu *gpu, uint64_t *free)
{
    struct ze_usable_memory usable = {.stype =
                                          ZE_STRUCTURE_TYPE_DEVICE_USABLEMEM_SIZE_EXT_PROPERTIES};
    struct ze_device_properties properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2,
                                              .next = &usable};
    const int code = ze.device_properties(gpu->handle, &properties);
    *free = usable.usable;
    return code;
}

gg_status ze_device_memory_info(struct gg_device_impl *device, uint64_t *free, uint64_t *total)
{
    uint64_t now_free = 0, all = 0;
    if (!device->reports_free_memory)
        return ze_api->fail(GG_ERR_UNSUPPORTED, NULL, "this driver does not report free memory");
    int code = device_status(device->gpu);
    if (!code)
        code = device_free_memory(device->gpu, &now_free);
    if (!code)
        code = device_total_memory(device->gpu, &all);
    if (code)
        return ze_fail(code, "free and total memory");
    *free = now_free < all ? now_free : all;
    *total = all;
    return GG_OK;
}

/* ---- the context, one for all devices of a driver: the driver's default context if it has one, so that memory is
 * shared with other libraries ---- */

/* If a loader returns handles of its own (two drivers, or interception), loader 1.32 passes the wrong handle to the
 * driver in this call. */
static void *context_find_default(const struct ze_driver *driver)
{
    void *handle = NULL;
    if (!ze.default_context || !ze.loader_translate ||
        ze.loader_translate(ZEL_HANDLE_DRIVER, driver->handle, &handle) || handle != driver->handle)
        return NULL;
    return ze.default_context(driver->handle);
}

static int context_create(struct ze_driver *driver)
{
    const struct ze_plain_desc desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    driver->owns_context = false;
    driver->context = context_find_default(driver);
    if (driver->context)
        return 0;
    const int code = ze.context_create(driver->handle, &desc, &driver->context);
    driver->owns_context = !code;
    return code;
}

static int context_open(struct ze_driver *driver)
{
    int code = 0;
    pthread_mutex_lock(&driver->lock);
    if (!driver->opened)
        code = context_create(driver);
    if (!code)
        driver->opened++;
    pthread_mutex_unlock(&driver->lock);
    return code;
}

static void context_close(struct ze_driver *driver)
{
    pthread_mutex_lock(&driver->lock);
    if (--driver->opened == 0) {
        ze_pool_close(driver);
        if (driver->owns_context)
            ze_log_failure(ze.context_destroy(driver->context), "destroying a context");
    }
    pthread_mutex_unlock(&driver->lock);
}

/* ---- open and close ---- */

gg_status ze_device_open(int32_t ordinal, struct gg_device_impl **out)
{
    gg_status status;
    uint64_t free_now, total = 0;
    struct gg_device_impl *device = calloc(1, sizeof *device);
    if (!device)
        return ze_no_memory("a device");
    device->gpu = &ze_gpus[ordinal];
    device->driver = device->gpu->driver;
    device->ordinal = ordinal;
    /* Tested once: a loader's validation layer may reject what the driver supports. */
    device->reports_free_memory =
        device->driver->reports_free_memory && !device_free_memory(device->gpu, &free_now);
    pthread_mutex_init(&device->lock, NULL);
    int code = device_choose_groups(device);
    if (!code)
        code = device_total_memory(device->gpu, &total);
    device->large_blocks = total > device->gpu->properties.largest_alloc;
    if (!code)
        code = context_open(device->driver);
    if (code) {
        status = ze_fail(code, "opening device %" PRId32, ordinal);
        goto free_device;
    }
    device->context = device->driver->context;
    status = ze_stream_create(device, 0, 0, &device->default_stream);
    if (status)
        goto close_context;
    *out = device;
    return GG_OK;

close_context:
    context_close(device->driver);
free_device:
    pthread_mutex_destroy(&device->lock);
    free(device);
    return status;
}

void ze_device_close(struct gg_device_impl *device)
{
    ze_stream_destroy(device->default_stream);
    context_close(device->driver);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

/* The core has waited for its own streams; this waits for streams that were released while busy. Lists of other code
 * are included only with newer drivers. */
gg_status ze_device_synchronize(struct gg_device_impl *device)
{
    int code = ze_streams_wait(device);
    if (!code && ze.device_synchronize)
        code = ze.device_synchronize(device->gpu->handle);
    return !code || ze_is_unsupported(code) ? GG_OK
                                            : ze_fail(code, "waiting for all work of the device");
}

gg_status ze_device_native(struct gg_device_impl *device, uint64_t handles[4])
{
    handles[0] = (uintptr_t)device->gpu->handle;
    handles[1] = (uintptr_t)device->context;
    handles[2] = (uintptr_t)device->driver->handle;
    handles[3] = 0;
    return GG_OK;
}

/* A thread has no current device. */
gg_status ze_device_enter(struct gg_device_impl *device, void **saved)
{
    (void)device;
    *saved = NULL;
    return GG_OK;
}

void ze_device_leave(void *saved)
{
    (void)saved;
}
