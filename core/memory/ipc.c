/* ipc.c: handles to device memory for other processes. A driver exports whole blocks only and opens each block
 * once: open handles to parts of one block share its mapping. */
#include "base/error.h"
#include "base/sized.h"
#include "runtime/call.h"
#include "memory/pool.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A pid may be reused, so the time of the first export is mixed in. */
static uint64_t ipc_process_id(void)
{
    static _Atomic(uint64_t) number;
    static _Atomic(uint32_t) generation;
    uint64_t known = atomic_load(&number);
    struct timespec now;
    if (known && atomic_load(&generation) == atomic_load(&ggi_generation))
        return known;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t made = (uint64_t)getpid() << 40 ^ (uint64_t)now.tv_sec << 20 ^ (uint64_t)now.tv_nsec;
    if (atomic_load(&generation) != atomic_load(&ggi_generation)) {
        atomic_store(&number, made);
        atomic_store(&generation, atomic_load(&ggi_generation));
    } else {
        atomic_compare_exchange_strong(&number, &known, made);
    }
    return atomic_load(&number);
}

/* ---- exporting ---- */

/* The driver allocation that contains the memory. */
static gg_status ipc_find_block(gg_memory *memory, void **base, size_t *size)
{
    struct gg_device *device = memory->device;
    struct gg_pointer_info info = {.struct_size = sizeof info};
    gg_device *owner = NULL;
    *base = memory->slab      ? memory->slab->base
            : memory->segment ? memory->segment->base
                              : memory->pointer;
    *size = memory->slab      ? memory->slab->size
            : memory->segment ? memory->segment->size
                              : memory->block_size;
    if (memory->pool)
        return GG_OK;
    gg_status status = gg_pointer_query(memory->pointer, &owner, &info);
    if (!status && (owner != device || !info.base))
        status =
            ggi_fail(GG_ERR_UNSUPPORTED,
                     "ipc_export: %s:%d: the driver does not report which allocation contains %p",
                     device->backend->name, (int)device->ordinal, memory->pointer);
    *base = info.base;
    *size = info.size;
    return status;
}

static gg_status ipc_check_export(gg_memory *memory)
{
    struct gg_device *device = memory->device;
    gg_status status = ggi_device_check(device);
    if (status)
        return status;
    if (!gg_device_supports(device, GG_OP_ipc_export))
        return ggi_unsupported(device, GG_OP_ipc_export);
    if (memory->kind != GG_MEMORY_DEVICE || !memory->nbytes)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "ipc_export: expected device memory (kind %d) of at least 1 byte, got %zu "
                        "bytes of kind %d",
                        GG_MEMORY_DEVICE, memory->nbytes, (int)memory->kind);
    if (memory->import)
        return ggi_fail(
            GG_ERR_INVALID_ARGUMENT,
            "ipc_export: this memory was itself opened from a handle: pass on that handle");
    if (memory->pool && memory->pool->async)
        return ggi_fail(GG_ERR_UNSUPPORTED, "ipc_export: memory of the driver's own pool cannot be "
                                            "exported: set GPUGLUE_ALLOCATOR=pool or direct");
    return GG_OK;
}

/* The digit behind the dot of "0000:65:00.1". */
static uint32_t ipc_function(const struct gg_device_info *info)
{
    const char *dot = strrchr(info->pci_bus_id, '.');
    return dot ? (uint32_t)strtoul(dot + 1, NULL, 16) : 0;
}

static gg_status ipc_identify_device(struct gg_device *device, struct gg_ipc_handle *handle)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    gg_status status = gg_device_info(device, &info);
    if (!status && !(info.flags & GG_DEVICE_HAS_UUID))
        status = ggi_fail(GG_ERR_UNSUPPORTED,
                          "ipc_export: %s:%d has no UUID, so another process cannot identify it",
                          device->backend->name, (int)device->ordinal);
    memcpy(handle->uuid, info.uuid, sizeof handle->uuid);
    snprintf(handle->backend, sizeof handle->backend, "%s", device->backend->name);
    handle->function = ipc_function(&info);
    return status;
}

gg_status gg_ipc_export(gg_memory *memory, struct gg_ipc_handle *handle)
{
    static const size_t first = GGI_SIZE_TO(struct gg_ipc_handle, native);
    struct gg_ipc_handle made = {
        .struct_size = sizeof made, .magic = GG_IPC_MAGIC, .version = GG_IPC_VERSION};
    struct gg_device *device = memory->device;
    void *base = NULL;
    size_t size = 0;
    gg_status status = ipc_check_export(memory);
    if (!status && !ggi_sized_fits(handle, first))
        return ggi_sized_refuse("gg_ipc_export", "gg_ipc_handle", handle, first);
    if (!status)
        status = ipc_identify_device(device, &made);
    if (!status)
        status = ipc_find_block(memory, &base, &size);
    if (status)
        return status;
    status = GGI_CALL(device, ipc_export, NULL, memory->nbytes,
                      (atomic_load(&device->impl), base, made.native));
    if (status)
        return status;
    made.process = ipc_process_id();
    made.offset = (uint64_t)((char *)memory->pointer - (char *)base);
    made.nbytes = memory->nbytes;
    made.block = size;
    ggi_sized_write(handle, &made, sizeof made);
    return GG_OK;
}

/* ---- opening ---- */

/* A mapped block of another process. */
struct ggi_import {
    struct ggi_import *next;
    struct gg_device *device;
    uint8_t native[GG_IPC_NATIVE_SIZE];
    void *base;
    uint64_t users;
};

static struct ggi_import *imports; /* under imports_lock, also held to map and unmap */
static pthread_mutex_t imports_lock = PTHREAD_MUTEX_INITIALIZER;
GGI_RESET_IN_CHILD(imports_lock)

/* With the lock held. */
static gg_status import_find_or_map(struct gg_device *device, const struct gg_ipc_handle *handle,
                                    struct ggi_import **out)
{
    for (struct ggi_import *at = imports; at; at = at->next)
        if (at->device == device && !memcmp(at->native, handle->native, sizeof at->native)) {
            at->users++;
            *out = at;
            return GG_OK;
        }
    struct ggi_import *import = calloc(1, sizeof *import);
    if (!import)
        return ggi_memory_no_handle();
    import->device = device;
    import->users = 1;
    memcpy(import->native, handle->native, sizeof import->native);
    gg_status status = GGI_CALL_RELAXED(
        device, ipc_open, NULL, 0, (atomic_load(&device->impl), import->native, &import->base));
    if (status) {
        free(import);
        return status;
    }
    import->next = imports;
    imports = import;
    *out = import;
    return GG_OK;
}

/* With the lock held. */
static void import_drop(struct ggi_import *import)
{
    struct gg_device *device = import->device;
    struct ggi_import **at = &imports;
    if (--import->users)
        return;
    while (*at != import)
        at = &(*at)->next;
    *at = import->next;
    GGI_CALL(device, ipc_close, NULL, 0, (atomic_load(&device->impl), import->base));
    free(import);
}

static bool import_free(gg_memory *memory)
{
    pthread_mutex_lock(&imports_lock);
    import_drop(memory->import);
    pthread_mutex_unlock(&imports_lock);
    return true;
}

/* Other processes make the handles, so what they claim is compared with what the driver has mapped. */
static gg_status import_check_size(const struct ggi_import *import,
                                   const struct gg_ipc_handle *handle)
{
    struct gg_device *device = import->device;
    struct gg_pointer_info info = {.struct_size = sizeof info};
    gg_status status = GG_OK;
    if (gg_device_supports(device, GG_OP_pointer_info))
        status = GGI_CALL(device, pointer_info, NULL, 0,
                          (atomic_load(&device->impl), import->base, &info));
    if (!status && !info.base)
        status = ggi_fail(GG_ERR_UNSUPPORTED,
                          "ipc_open: %s:%d: the driver does not report how much it has mapped, so "
                          "the handle's claim of %" PRIu64 " bytes cannot be checked",
                          device->backend->name, (int)device->ordinal, handle->nbytes);
    if (status)
        return status;
    const uint64_t mapped = info.size - (size_t)((char *)import->base - (char *)info.base);
    if (handle->offset <= mapped && handle->nbytes <= mapped - handle->offset)
        return GG_OK;
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "ipc_open: the handle claims %" PRIu64 " bytes at offset %" PRIu64
                    " of a block of which the driver has mapped %" PRIu64
                    ": use the handle as gg_ipc_export made it",
                    handle->nbytes, handle->offset, mapped);
}

/* A block that the handle claims too much of is closed again. */
static gg_status import_open(struct gg_device *device, const struct gg_ipc_handle *handle,
                             struct ggi_import **out)
{
    pthread_mutex_lock(&imports_lock);
    gg_status status = import_find_or_map(device, handle, out);
    if (!status) {
        status = import_check_size(*out, handle);
        if (status)
            import_drop(*out);
    }
    pthread_mutex_unlock(&imports_lock);
    return status;
}

static gg_status ipc_refuse_handle(const struct gg_ipc_handle *handle)
{
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "ipc_open: the handle is damaged, or from another version of gpuglue (%u "
                    "bytes): expected at least %zu bytes from gg_ipc_export",
                    handle->struct_size, GGI_SIZE_TO(struct gg_ipc_handle, native));
}

static gg_status ipc_check_handle(const struct gg_ipc_handle *handle)
{
    static const size_t first = GGI_SIZE_TO(struct gg_ipc_handle, native);
    if (handle->struct_size < first || handle->magic != GG_IPC_MAGIC)
        return ipc_refuse_handle(handle);
    const uint64_t end = handle->offset + handle->nbytes;
    if (handle->version != GG_IPC_VERSION)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "ipc_open: the handle has version %u, expected %u: use the same version of "
                        "gpuglue in both processes",
                        handle->version, GG_IPC_VERSION);
    if (!memchr(handle->backend, 0, sizeof handle->backend) || !handle->nbytes ||
        end < handle->offset || end > PTRDIFF_MAX || end > handle->block)
        return ipc_refuse_handle(handle);
    if (handle->process == ipc_process_id())
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "ipc_open: the handle is from this process, and drivers open only handles "
                        "of other processes: use the memory itself");
    return GG_OK;
}

/* Several devices may have the UUID: then the function decides. One alone is it, since an older driver writes no function. */
static gg_status ipc_find_device(const struct gg_ipc_handle *handle, gg_device **out)
{
    gg_device *device, *found = NULL, *exact = NULL;
    int32_t count = 0, same = 0, exact_count = 0;
    gg_status status = gg_device_count(handle->backend, &count);
    for (int32_t i = 0; !status && i < count; i++) {
        struct gg_device_info info = {.struct_size = sizeof info};
        status = gg_device_get(handle->backend, i, &device);
        if (!status)
            status = gg_device_info(device, &info);
        if (status || !(info.flags & GG_DEVICE_HAS_UUID) ||
            memcmp(info.uuid, handle->uuid, sizeof info.uuid))
            continue;
        found = device;
        same++;
        exact = ipc_function(&info) == handle->function ? device : exact;
        exact_count += ipc_function(&info) == handle->function;
    }
    if (status)
        return status;
    *out = same == 1 ? found : exact;
    if (same == 1 || exact_count == 1)
        return GG_OK;
    return ggi_fail(
        GG_ERR_NO_SUCH_DEVICE,
        "ipc_open: %d of the %d devices of %s here have the UUID of the handle, and %d of "
        "them its PCI function %u: expected one, so the exporter's device must be visible "
        "to this process, and the driver must distinguish partitions of a GPU",
        (int)same, (int)count, handle->backend, (int)exact_count, handle->function);
}

gg_status gg_ipc_open(const struct gg_ipc_handle *handle, gg_memory **out)
{
    static const struct ggi_backing imported = {.free = import_free};
    gg_device *device = NULL;
    gg_status status = ipc_check_handle(handle);
    if (!status)
        status = ipc_find_device(handle, &device);
    if (!status)
        status = ggi_device_ready(device);
    if (status)
        return status;
    if (!device->ops->ipc_close || !gg_device_supports(device, GG_OP_ipc_open))
        return ggi_unsupported(device, GG_OP_ipc_open);
    gg_memory *memory =
        ggi_memory_new_handle(device, GG_MEMORY_DEVICE, NULL, (size_t)handle->nbytes);
    if (!memory)
        return ggi_memory_no_handle();
    ggi_drain_all(device); /* it may unmap the block, which a driver opens once */
    status = import_open(device, handle, &memory->import);
    if (status) {
        ggi_memory_delete(memory);
        return status;
    }
    memory->pointer = (char *)memory->import->base + handle->offset;
    memory->backing = &imported;
    memory->retired.may_wait = memory->retired.locked = true;
    return ggi_memory_wrapped(memory, NULL, NULL, out);
}
