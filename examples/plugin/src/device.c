/* device.c: the one device, which is this machine's processor and memory. */
#include "mine.h"

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

/* "model name : Some CPU @ 2 GHz"; false where the kernel does not say (arm). */
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

gg_status mine_device_info(int32_t ordinal, struct gg_device_info *info)
{
    struct utsname machine;
    (void)ordinal;
    if (uname(&machine))
        snprintf(machine.machine, sizeof machine.machine, "unknown");
    if (!processor_name(info->name, sizeof info->name))
        snprintf(info->name, sizeof info->name, "%.60s processor", machine.machine);
    snprintf(info->arch, sizeof info->arch, "%.31s", machine.machine);
    info->pci_bus_id[0] = '\0';
    memset(info->uuid, 0, sizeof info->uuid);
    info->flags = GG_DEVICE_LAZY | GG_DEVICE_FREE_NEVER_WAITS;
    info->numa_node = -1;
    info->total_memory = installed_memory();
    return GG_OK;
}

/* Limits of launches are those of usual GPUs, so that a program that keeps them here runs there. */
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
        return 256 << 10;
    default:
        return 0;
    }
}

gg_status mine_device_attribute(int32_t ordinal, gg_attribute attribute, int64_t *value)
{
    const int64_t limit = launch_limit(attribute);
    (void)ordinal;
    if (limit)
        *value = limit;
    else if (attribute == GG_ATTR_WARP_SIZE || attribute == GG_ATTR_CONCURRENT_KERNELS ||
             attribute == GG_ATTR_MANAGED_MEMORY)
        *value = 1;
    else if (attribute == GG_ATTR_MULTIPROCESSORS || attribute == GG_ATTR_ASYNC_ENGINES)
        *value = sysconf(_SC_NPROCESSORS_ONLN);
    else if (attribute == GG_ATTR_COOPERATIVE_LAUNCH)
        *value = 0;
    else
        return mine_api->fail(GG_ERR_UNSUPPORTED, NULL, "a processor has no attribute %d",
                              (int)attribute);
    return GG_OK;
}

/* ---- open and close ---- */

gg_status mine_device_open(int32_t ordinal, struct gg_device_impl **out)
{
    gg_status status;
    struct gg_device_impl *device = calloc(1, sizeof *device);
    (void)ordinal;
    if (!device)
        return mine_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for the device");
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->memory_lock, NULL);
    device->total = installed_memory();
    status = mine_stream_create(device, 0, 0, &device->default_stream);
    if (status)
        goto destroy_locks;
    *out = device;
    return GG_OK;

destroy_locks:
    pthread_mutex_destroy(&device->memory_lock);
    pthread_mutex_destroy(&device->lock);
    free(device);
    return status;
}

void mine_device_close(struct gg_device_impl *device)
{
    mine_stream_destroy(device->default_stream);
    pthread_mutex_destroy(&device->memory_lock);
    pthread_mutex_destroy(&device->lock);
    free(device->blocks);
    free(device);
}

/* What is free is counted, not measured: an allocator that is asked the same gives the same. */
gg_status mine_device_memory_info(struct gg_device_impl *device, uint64_t *free, uint64_t *total)
{
    pthread_mutex_lock(&device->memory_lock);
    *free = device->total - device->used;
    *total = device->total;
    pthread_mutex_unlock(&device->memory_lock);
    return GG_OK;
}

/* ---- all streams at once ---- */

/* A query would also take what a command could not do from those who are to be told. */
static gg_status queue_behind(struct mine_point *point, struct gg_stream_impl *stream)
{
    pthread_mutex_lock(&stream->lock);
    const bool idle = stream->completed == stream->submitted;
    pthread_mutex_unlock(&stream->lock);
    return idle ? GG_OK : mine_point_queue(point, stream);
}

/* A point behind all that is queued on the device, with a reference for the caller. */
static gg_status point_behind_all(struct gg_device_impl *device, struct mine_point **out)
{
    struct mine_point *point = mine_point_new();
    gg_status status = GG_OK;
    if (!point)
        return mine_no_point();
    pthread_mutex_lock(&device->lock);
    for (struct mine_object *object = device->streams; object && !status; object = object->next)
        status = queue_behind(point, (struct gg_stream_impl *)object);
    pthread_mutex_unlock(&device->lock);
    if (status)
        mine_point_release(point); /* the queues that it is in keep it until they are past it */
    else
        *out = point;
    return status;
}

gg_status mine_device_synchronize(struct gg_device_impl *device)
{
    struct mine_point *point = NULL;
    gg_status status = point_behind_all(device, &point);
    if (status)
        return status;
    status = mine_point_wait(point, GG_FOREVER);
    mine_point_release(point);
    return status;
}

gg_status mine_device_record(struct gg_device_impl *device, struct gg_event_impl *event)
{
    struct mine_point *point = NULL, *before;
    gg_status status = point_behind_all(device, &point);
    if (status)
        return status;
    pthread_mutex_lock(&event->lock);
    before = event->point;
    event->point = point;
    pthread_mutex_unlock(&event->lock);
    if (before)
        mine_point_release(before);
    return GG_OK;
}

/* ---- native sense: no other library knows this device ---- */

gg_status mine_device_native(struct gg_device_impl *device, uint64_t handles[4])
{
    (void)device;
    memset(handles, 0, 4 * sizeof *handles);
    return GG_OK;
}

gg_status mine_device_enter(struct gg_device_impl *device, void **saved)
{
    (void)device;
    *saved = NULL;
    return GG_OK;
}

void mine_device_leave(void *saved)
{
    (void)saved;
}

int32_t mine_device_current(void)
{
    return -1;
}

/* ---- objects that a native handle can name ---- */

void mine_object_add(struct gg_device_impl *device, struct mine_object **list,
                     struct mine_object *object)
{
    pthread_mutex_lock(&device->lock);
    object->refs = 1;
    object->next = *list;
    if (*list)
        (*list)->previous = object;
    *list = object;
    pthread_mutex_unlock(&device->lock);
}

/* Compares addresses and looks behind none, so a stale or foreign number is only not found. The head
 * of the list is read under the lock: hence the pointer to it. */
struct mine_object *mine_object_find(struct gg_device_impl *device, struct mine_object **list,
                                     uint64_t native)
{
    struct mine_object *object;
    pthread_mutex_lock(&device->lock);
    object = *list;
    while (object && (uint64_t)(uintptr_t)object != native)
        object = object->next;
    if (object)
        object->refs++;
    pthread_mutex_unlock(&device->lock);
    return object;
}

bool mine_object_drop(struct gg_device_impl *device, struct mine_object **list,
                      struct mine_object *object)
{
    bool last;
    pthread_mutex_lock(&device->lock);
    last = --object->refs == 0;
    if (last && object->next)
        object->next->previous = object->previous;
    if (last && object->previous)
        object->previous->next = object->next;
    else if (last)
        *list = object->next;
    pthread_mutex_unlock(&device->lock);
    return last;
}
