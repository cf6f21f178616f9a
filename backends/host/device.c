/* device.c: the device: this machine's processor and memory, or those of one NUMA node. */
#include "host.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static uint64_t installed_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

/* "model name : Some CPU @ 2 GHz"; false if the kernel does not report it (arm). */
static bool processor_name(char *name, size_t size)
{
    char line[256];
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file)
        return false;
    while (!found && fgets(line, sizeof line, file)) {
        char *value = strchr(line, ':');
        if (!value || strncmp(line, "model name", 10) != 0)
            continue;
        value[strcspn(value, "\n")] = '\0';
        snprintf(name, size, "%s", value + strspn(value, ": \t"));
        found = name[0] != '\0';
    }
    fclose(file);
    return found;
}

/* The kernel's random number of this boot: equal in all containers, as long as memory can be shared. The machine's own
 * identity is confidential: see machine-id(5). */
static bool boot_id(uint8_t uuid[16])
{
    char text[64] = "";
    unsigned value;
    int count = 0;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && !fgets(text, sizeof text, file))
        text[0] = '\0';
    if (file)
        fclose(file);
    memset(uuid, 0, 16);
    for (const char *at = text; count < 16 && sscanf(at, "%2x", &value) == 1; count++) {
        uuid[count] = (uint8_t)value;
        at += at[2] == '-' ? 3 : 2;
    }
    return count == 16;
}

static uint64_t device_memory(int32_t ordinal)
{
    const int32_t node = host_device_node(ordinal);
    const uint64_t own = node < 0 ? 0 : host_node_memory(node);
    return own ? own : installed_memory() / (uint64_t)host_device_count();
}

gg_status host_device_info(int32_t ordinal, struct gg_device_info *info)
{
    struct utsname machine;
    if (uname(&machine))
        snprintf(machine.machine, sizeof machine.machine, "unknown");
    if (!processor_name(info->name, sizeof info->name))
        snprintf(info->name, sizeof info->name, "%.60s processor", machine.machine);
    snprintf(info->arch, sizeof info->arch, "%.31s", machine.machine);
    info->pci_bus_id[0] = '\0';
    info->flags = GG_DEVICE_FORK_SAFE_UNTIL_OPEN | GG_DEVICE_FREE_NEVER_WAITS;
    if (boot_id(info->uuid))
        info->flags |= GG_DEVICE_HAS_UUID;
    info->uuid[15] = (uint8_t)(info->uuid[15] + host_device_node(ordinal) + 1);
    info->numa_node = host_numa_node(ordinal);
    info->total_memory = device_memory(ordinal);
    return GG_OK;
}

/* Launch limits are those of usual GPUs, so that a program that runs here also runs there. */
static int64_t launch_limit(gg_attribute attribute)
{
    switch ((int)attribute) {
    case GG_ATTR_MAX_THREADS_PER_BLOCK:
    case GG_ATTR_MAX_BLOCK_X:
    case GG_ATTR_MAX_BLOCK_Y:
        return 1024;
    case GG_ATTR_MAX_BLOCK_Z:
        return 64;
    case GG_ATTR_MAX_GRID_X:
        return INT32_MAX;
    case GG_ATTR_MAX_GRID_Y:
    case GG_ATTR_MAX_GRID_Z:
        return UINT16_MAX;
    case GG_ATTR_SHARED_MEMORY_PER_BLOCK:
    case GG_ATTR_SHARED_MEMORY_OPTIN:
    case GG_ATTR_SHARED_MEMORY_PER_MULTIPROCESSOR: /* a processor runs one block at a time */
        return 256 << 10;
    case GG_ATTR_THREADS_PER_MULTIPROCESSOR:
        return 1024;
    case GG_ATTR_REGISTERS_PER_BLOCK:
    case GG_ATTR_REGISTERS_PER_MULTIPROCESSOR:
    case GG_ATTR_CONSTANT_MEMORY:
        return 64 << 10;
    default:
        return 0;
    }
}

/* Bytes of the first processor's level 2 cache: "1024K"; 0 if the kernel does not report it. */
static int64_t cache_size(void)
{
    int64_t level = 0, size = 0;
    FILE *files[] = {fopen("/sys/devices/system/cpu/cpu0/cache/index2/level", "re"),
                     fopen("/sys/devices/system/cpu/cpu0/cache/index2/size", "re")};
    if (files[0] && files[1] && fscanf(files[0], "%" SCNd64, &level) == 1 && level == 2 &&
        fscanf(files[1], "%" SCNd64 "K", &size) != 1)
        size = 0;
    for (int i = 0; i < 2; i++)
        if (files[i])
            fclose(files[i]);
    return size << 10;
}

gg_status host_device_attribute(int32_t ordinal, gg_attribute attribute, int64_t *value)
{
    const int64_t limit =
        attribute == GG_ATTR_L2_CACHE_SIZE ? cache_size() : launch_limit(attribute);
    if (limit > 0)
        *value = limit;
    else if (attribute == GG_ATTR_WARP_SIZE)
        *value = GG_HOST_WARP;
    else if (attribute == GG_ATTR_CONCURRENT_KERNELS || attribute == GG_ATTR_MANAGED_MEMORY)
        *value = 1;
    else if (attribute == GG_ATTR_MULTIPROCESSORS)
        *value = host_thread_count(ordinal);
    else if (attribute == GG_ATTR_ASYNC_ENGINES)
        *value = sysconf(_SC_NPROCESSORS_ONLN);
    else if (attribute == GG_ATTR_COOPERATIVE_LAUNCH)
        *value = 0;
    else
        return host_api->fail(GG_ERR_UNSUPPORTED, NULL, "the host device has no attribute %d",
                              (int)attribute);
    return GG_OK;
}

/* ---- open and close ---- */

static void device_destroy_locks(struct gg_device_impl *device)
{
    pthread_cond_destroy(&device->pause_changed);
    pthread_mutex_destroy(&device->pause_lock);
    pthread_mutex_destroy(&device->memory_lock);
    pthread_mutex_destroy(&device->lock);
}

gg_status host_device_open(int32_t ordinal, struct gg_device_impl **out)
{
    gg_status status;
    struct gg_device_impl *device = calloc(1, sizeof *device);
    if (!device)
        return host_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for the device");
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->memory_lock, NULL);
    pthread_mutex_init(&device->pause_lock, NULL);
    pthread_cond_init(&device->pause_changed, NULL);
    device->ordinal = ordinal;
    device->node = host_device_node(ordinal);
    host_team_init(&device->team, ordinal);
    device->file = -1;
    device->total = device_memory(ordinal);
    status = host_stream_create(device, 0, 0, &device->default_stream);
    if (status)
        goto destroy_locks;
    *out = device;
    return GG_OK;

destroy_locks:
    host_team_destroy(&device->team);
    device_destroy_locks(device);
    free(device);
    return status;
}

void host_device_close(struct gg_device_impl *device)
{
    host_stream_destroy(device->default_stream);
    host_team_destroy(&device->team);
    device_destroy_locks(device);
    host_shared_close(device);
    free(device->blocks);
    free(device);
}

/* Free memory is counted, not measured: the result depends only on our allocations. */
gg_status host_device_memory_info(struct gg_device_impl *device, uint64_t *free, uint64_t *total)
{
    pthread_mutex_lock(&device->memory_lock);
    *free = device->total - device->used;
    *total = device->total;
    pthread_mutex_unlock(&device->memory_lock);
    return GG_OK;
}

/* ---- all streams at once ---- */

/* Not by a query, which would consume the error of a failed command. */
static gg_status point_queue_behind(struct host_point *point, struct gg_stream_impl *stream)
{
    pthread_mutex_lock(&stream->lock);
    const bool idle = stream->completed == stream->submitted;
    pthread_mutex_unlock(&stream->lock);
    return idle ? GG_OK : host_point_queue(point, stream);
}

/* A point after all work that is queued on the device, with a reference for the caller. */
static gg_status point_queue_behind_all(struct gg_device_impl *device, struct host_point **out)
{
    struct host_point *point = host_point_new();
    gg_status status = GG_OK;
    if (!point)
        return host_point_no_memory();
    pthread_mutex_lock(&device->lock);
    for (struct host_object *object = device->streams; object && !status; object = object->next)
        status = point_queue_behind(point, (struct gg_stream_impl *)object);
    pthread_mutex_unlock(&device->lock);
    if (status)
        host_point_release(point); /* the queues that have it hold references */
    else
        *out = point;
    return status;
}

gg_status host_device_synchronize(struct gg_device_impl *device)
{
    struct host_point *point = NULL;
    gg_status status = point_queue_behind_all(device, &point);
    if (status)
        return status;
    status = host_point_wait(point, GG_FOREVER);
    host_point_release(point);
    return status;
}

gg_status host_device_record(struct gg_device_impl *device, struct gg_event_impl *event)
{
    struct host_point *point = NULL, *before;
    gg_status status = point_queue_behind_all(device, &point);
    if (status)
        return status;
    pthread_mutex_lock(&event->lock);
    before = event->point;
    event->point = point;
    pthread_mutex_unlock(&event->lock);
    if (before)
        host_point_release(before);
    return GG_OK;
}

/* ---- native handles and the current device: other libraries do not know this device ---- */

gg_status host_device_native(struct gg_device_impl *device, uint64_t handles[4])
{
    (void)device;
    memset(handles, 0, 4 * sizeof *handles);
    return GG_OK;
}

gg_status host_device_enter(struct gg_device_impl *device, void **saved)
{
    (void)device;
    *saved = NULL;
    return GG_OK;
}

void host_device_leave(void *saved)
{
    (void)saved;
}

int32_t host_device_current(void)
{
    return -1;
}
