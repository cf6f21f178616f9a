/* ipc.c: handles to device memory for other processes. A driver gives a handle to a whole block and opens it
 * once; what is opened here are parts of blocks, which share one mapping as long as any of them lives. */
#include "pool.h"
#include "sized.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- which process ---- */

/* The process's id may come back for another one; its time of asking does not. */
static uint64_t this_process(void)
{
    static _Atomic(uint64_t) number;
    static _Atomic(uint32_t) generation;
    uint64_t is = atomic_load(&number);
    struct timespec now;
    if (is && atomic_load(&generation) == atomic_load(&ggi_generation))
        return is;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t made = (uint64_t)getpid() << 40 ^ (uint64_t)now.tv_sec << 20 ^ (uint64_t)now.tv_nsec;
    if (atomic_load(&generation) != atomic_load(&ggi_generation)) {
        atomic_store(&number, made);
        atomic_store(&generation, atomic_load(&ggi_generation));
    } else {
        atomic_compare_exchange_strong(&number, &is, made);
    }
    return atomic_load(&number);
}

/* ---- exporting ---- */

/* The driver's block that the memory is a part of. */
static gg_status block_of(gg_memory *memory, void **base, size_t *size)
{
    struct gg_device *device = memory->device;
    struct gg_pointer_info info = {.struct_size = sizeof info};
    gg_device *owner = NULL;
    *base = memory->pointer;
    *size = memory->room;
    if (memory->slab) {
        *base = memory->slab->base;
        *size = memory->slab->size;
    }
    if (memory->pool)
        return GG_OK;
    gg_status status = gg_pointer_query(memory->pointer, &owner, &info);
    if (!status && (owner != device || !info.base))
        status = ggi_fail(GG_ERR_UNSUPPORTED,
                          "ipc_export: %s:%d: the driver does not say which allocation %p is in",
                          device->backend->name, (int)device->ordinal, memory->pointer);
    *base = info.base;
    *size = info.size;
    return status;
}

static gg_status check_export(gg_memory *memory)
{
    struct gg_device *device = memory->device;
    gg_status status = ggi_check(device);
    if (status)
        return status;
    if (!gg_device_supports(device, GG_OP_ipc_export))
        return ggi_unsupported(device, GG_OP_ipc_export);
    if (memory->kind != GG_MEMORY_DEVICE || !memory->nbytes)
        return ggi_fail(
            GG_ERR_INVALID_ARGUMENT,
            "ipc_export: only device memory (kind %d) with at least a byte can be opened by "
            "another process; this is %zu bytes of kind %d",
            GG_MEMORY_DEVICE, memory->nbytes, (int)memory->kind);
    if (memory->import)
        return ggi_fail(
            GG_ERR_INVALID_ARGUMENT,
            "ipc_export: this memory was opened by a handle itself: pass that handle on");
    if (memory->pool && memory->pool->async)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "ipc_export: memory of the driver's own pool has no such handles: take "
                        "GPUGLUE_ALLOCATOR=pool or direct");
    return GG_OK;
}

static gg_status identify(struct gg_device *device, struct gg_ipc_handle *handle)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    gg_status status = gg_device_info(device, &info);
    if (!status && !(info.flags & GG_DEVICE_HAS_UUID))
        status = ggi_fail(GG_ERR_UNSUPPORTED,
                          "ipc_export: %s:%d has no UUID by which another process would know it",
                          device->backend->name, (int)device->ordinal);
    memcpy(handle->uuid, info.uuid, sizeof handle->uuid);
    snprintf(handle->backend, sizeof handle->backend, "%s", device->backend->name);
    return status;
}

gg_status gg_ipc_export(gg_memory *memory, struct gg_ipc_handle *handle)
{
    struct gg_ipc_handle made = {.struct_size = sizeof made, .magic = GG_IPC_MAGIC};
    struct gg_device *device = memory->device;
    void *base = NULL;
    size_t size = 0;
    gg_status status = check_export(memory);
    if (!status && !ggi_sized_fits(handle, sizeof made))
        return ggi_sized_refuse("gg_ipc_export", "gg_ipc_handle", handle, sizeof made);
    if (!status)
        status = identify(device, &made);
    if (!status)
        status = block_of(memory, &base, &size);
    if (status)
        return status;
    ggi_begin(device, GG_OP_ipc_export, NULL, memory->nbytes);
    status = device->ops->ipc_export(atomic_load(&device->impl), base, made.native);
    status = ggi_end(device, GG_OP_ipc_export, NULL, memory->nbytes, status);
    if (status)
        return status;
    made.process = this_process();
    made.offset = (uint64_t)((char *)memory->pointer - (char *)base);
    made.nbytes = memory->nbytes;
    made.block = size;
    ggi_sized_write(handle, &made, sizeof made);
    return GG_OK;
}

/* ---- opening ---- */

/* One block of another process, mapped here. */
struct ggi_import {
    struct ggi_import *next;
    struct gg_device *device;
    uint8_t native[GG_IPC_NATIVE_SIZE];
    void *base;
    uint64_t users;
};

static struct ggi_import *imports; /* under the lock, which is held while a block is mapped or unmapped */
static pthread_mutex_t imports_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t imports_once = PTHREAD_ONCE_INIT;

static void survive_forks(void)
{
    ggi_reset_in_child(&imports_lock);
}

static gg_status map(struct ggi_import *import)
{
    struct gg_device *device = import->device;
    struct ggi_own own;
    ggi_relax_begin(device, &own);
    ggi_begin(device, GG_OP_ipc_open, NULL, 0);
    gg_status status =
        device->ops->ipc_open(atomic_load(&device->impl), import->native, &import->base);
    status = ggi_end(device, GG_OP_ipc_open, NULL, 0, status);
    ggi_relax_end(device, &own);
    return status;
}

/* With the lock held. */
static gg_status find_or_map(struct gg_device *device, const struct gg_ipc_handle *handle,
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
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a memory handle");
    import->device = device;
    import->users = 1;
    memcpy(import->native, handle->native, sizeof import->native);
    gg_status status = map(import);
    if (status) {
        free(import);
        return status;
    }
    import->next = imports;
    imports = import;
    *out = import;
    return GG_OK;
}

static void let_go(struct ggi_import *import)
{
    struct gg_device *device = import->device;
    pthread_mutex_lock(&imports_lock);
    if (!--import->users) {
        struct ggi_import **at = &imports;
        while (*at != import)
            at = &(*at)->next;
        *at = import->next;
        ggi_begin(device, GG_OP_ipc_close, NULL, 0);
        gg_status status = device->ops->ipc_close(atomic_load(&device->impl), import->base);
        ggi_end(device, GG_OP_ipc_close, NULL, 0, status);
        free(import);
    }
    pthread_mutex_unlock(&imports_lock);
}

void ggi_import_close(gg_memory *memory)
{
    let_go(memory->import);
}

static gg_status check_handle(const struct gg_ipc_handle *handle)
{
    const uint64_t end = handle->offset + handle->nbytes;
    if (handle->struct_size != sizeof *handle || handle->magic != GG_IPC_MAGIC ||
        !memchr(handle->backend, 0, sizeof handle->backend) || !handle->nbytes ||
        end < handle->offset || end > PTRDIFF_MAX || (handle->block && end > handle->block))
        return ggi_fail(
            GG_ERR_INVALID_ARGUMENT,
            "ipc_open: this is no handle that this version of gpuglue can read: %u bytes, "
            "expected %zu as gg_ipc_export made them",
            handle->struct_size, sizeof *handle);
    if (handle->process == this_process())
        return ggi_fail(
            GG_ERR_INVALID_ARGUMENT,
            "ipc_open: the handle was made by this process, and drivers open those of other "
            "processes only: use the memory itself");
    return GG_OK;
}

static gg_status find_device(const struct gg_ipc_handle *handle, gg_device **out)
{
    int32_t count = 0;
    gg_status status = gg_device_count(handle->backend, &count);
    for (int32_t i = 0; !status && i < count; i++) {
        struct gg_device_info info = {.struct_size = sizeof info};
        status = gg_device_get(handle->backend, i, out);
        if (!status)
            status = gg_device_info(*out, &info);
        if (!status && info.flags & GG_DEVICE_HAS_UUID &&
            !memcmp(info.uuid, handle->uuid, sizeof info.uuid))
            return GG_OK;
    }
    if (status)
        return status;
    return ggi_fail(GG_ERR_NO_SUCH_DEVICE,
                    "ipc_open: none of the %d devices of %s here has the UUID of the handle: the "
                    "exporter's device must be visible to this process, too",
                    (int)count, handle->backend);
}

gg_status gg_ipc_open(const struct gg_ipc_handle *handle, gg_memory **out)
{
    gg_device *device = NULL;
    struct ggi_import *import = NULL;
    gg_status status = check_handle(handle);
    if (!status)
        status = find_device(handle, &device);
    if (!status)
        status = ggi_device_ready(device);
    if (status)
        return status;
    if (!device->ops->ipc_close || !gg_device_supports(device, GG_OP_ipc_open))
        return ggi_unsupported(device, GG_OP_ipc_open);
    pthread_once(&imports_once, survive_forks);
    ggi_drain(device); /* what was released may still be mapped */
    pthread_mutex_lock(&imports_lock);
    status = find_or_map(device, handle, &import);
    pthread_mutex_unlock(&imports_lock);
    if (status)
        return status;
    gg_memory *memory = ggi_memory_blank(
        device, GG_MEMORY_DEVICE, (char *)import->base + handle->offset, (size_t)handle->nbytes);
    if (!memory) {
        let_go(import);
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a memory handle");
    }
    memory->import = import;
    memory->wrapped = true;
    memory->retired.may_wait = true;
    atomic_store(&memory->refs, 1);
    *out = memory;
    return GG_OK;
}
