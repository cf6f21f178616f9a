/* sim_cuda_pool.c: CUDA: memory pools and stream-ordered allocation. */
#include "sim_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sim_pool *pool_of(CUmemoryPool handle)
{
    return sim_table_find(&sim_pools, handle);
}

static CUmemoryPool handle_of(struct sim_pool *pool)
{
    return (CUmemoryPool)(void *)pool;
}

static void set_defaults(struct sim_pool *pool)
{
    pool->values[CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = 1;
    pool->values[CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC] = 1;
    pool->values[CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES] = 1;
}

static CUresult get_pool(const char *name, CUmemoryPool *out, CUdevice dev, bool current)
{
    struct sim_device *device;
    CUresult result = cuda_enter_device(name, dev, &device);
    if (result)
        return result;
    if (!out)
        return cuda_leave(SIM_INVALID);
    *out = handle_of(current ? device->current_pool : device->default_pool);
    return cuda_leave(SIM_OK);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    return get_pool("cuDeviceGetDefaultMemPool", pool_out, dev, false);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    return get_pool("cuDeviceGetMemPool", pool, dev, true);
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    struct sim_device *device;
    struct sim_pool *found;
    CUresult result = cuda_enter_device("cuDeviceSetMemPool", dev, &device);
    if (result)
        return result;
    found = pool_of(pool);
    if (!found || found->device != device)
        return cuda_leave(SIM_INVALID);
    device->current_pool = found;
    return cuda_leave(SIM_OK);
}

/* The pool of a location. Host memory has one pool, created at its first use. */
static int pool_at(const CUmemLocation *location, CUmemAllocationType type, bool current,
                   struct sim_pool **out)
{
    static struct sim_pool *host_pool;
    struct sim_device *device;
    int status = SIM_OK;
    if (!location || type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return location && type == CU_MEM_ALLOCATION_TYPE_MANAGED ? SIM_UNSUPPORTED : SIM_INVALID;
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE) {
        device = cuda_device(location->id);
        if (!device)
            return SIM_INVALID;
        *out = current ? device->current_pool : device->default_pool;
        return SIM_OK;
    }
    if (location->type == CU_MEM_LOCATION_TYPE_NONE ||
        (int)location->type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
        return SIM_INVALID;
    if (!host_pool)
        status = sim_pool_create(NULL, true, &host_pool);
    if (status)
        return status;
    host_pool->slot.internal = true;
    set_defaults(host_pool);
    *out = host_pool;
    return SIM_OK;
}

static CUresult get_pool_at(const char *name, CUmemoryPool *out, const CUmemLocation *location,
                            CUmemAllocationType type, bool current)
{
    struct sim_pool *pool = NULL;
    int status;
    CUresult result = cuda_enter(name);
    if (result)
        return result;
    status = out ? pool_at(location, type, current, &pool) : SIM_INVALID;
    if (!status)
        *out = handle_of(pool);
    return cuda_leave(status);
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                CUmemAllocationType type)
{
    return get_pool_at("cuMemGetDefaultMemPool", pool_out, location, type, false);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    return get_pool_at("cuMemGetMemPool", pool, location, type, true);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    struct sim_device *device = NULL;
    struct sim_pool *created;
    bool host;
    int status;
    CUresult result = cuda_enter("cuMemPoolCreate");
    if (result)
        return result;
    if (!pool || !poolProps)
        return cuda_leave(SIM_INVALID);
    if (poolProps->handleTypes || poolProps->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED)
        return cuda_leave(SIM_UNSUPPORTED);
    host = (int)poolProps->location.type >= CU_MEM_LOCATION_TYPE_HOST;
    if (poolProps->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        device = cuda_device(poolProps->location.id);
    if (poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || (!host && !device))
        return cuda_leave(SIM_INVALID);
    status = sim_pool_create(device, host, &created);
    if (status)
        return cuda_leave(status);
    set_defaults(created);
    *pool = handle_of(created);
    return cuda_leave(SIM_OK);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    struct sim_pool *found;
    CUresult result;
    cuda_attempt(&sim_pools, pool);
    result = cuda_enter("cuMemPoolDestroy");
    if (result)
        return result;
    found = pool_of(pool);
    if (!found || found->slot.internal)
        return cuda_leave(SIM_INVALID);
    sim_pool_destroy(found);
    return cuda_leave(SIM_OK);
}

static bool is_integer(CUmemPool_attribute attr)
{
    return attr <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    struct sim_pool *found;
    uint64_t wide = 0;
    int narrow = 0;
    CUresult result = cuda_enter("cuMemPoolSetAttribute");
    if (result)
        return result;
    found = pool_of(pool);
    if (!found || !value || attr < 1 || attr > CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        return cuda_leave(SIM_INVALID);
    if (is_integer(attr))
        memcpy(&narrow, value, sizeof narrow);
    else
        memcpy(&wide, value, sizeof wide);
    if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT || attr == CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
        return cuda_leave(SIM_INVALID);
    if (attr > CU_MEMPOOL_ATTR_RELEASE_THRESHOLD && wide)
        return cuda_leave(SIM_INVALID); /* a high-water mark can only be reset to 0 */
    found->values[attr] = is_integer(attr) ? (uint64_t)(narrow != 0) : wide;
    if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
        found->reserved_high = found->reserved;
    if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        found->used_high = found->used;
    return cuda_leave(SIM_OK);
}

static uint64_t attribute(const struct sim_pool *pool, CUmemPool_attribute attr)
{
    switch ((int)attr) {
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return pool->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return pool->used_high;
    default:
        return pool->values[attr];
    }
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    const struct sim_pool *found;
    uint64_t wide;
    int narrow;
    CUresult result = cuda_enter("cuMemPoolGetAttribute");
    if (result)
        return result;
    found = pool_of(pool);
    if (!found || !value || attr < 1 || attr > CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        return cuda_leave(SIM_INVALID);
    wide = attribute(found, attr);
    narrow = (int)wide;
    if (is_integer(attr))
        memcpy(value, &narrow, sizeof narrow);
    else
        memcpy(value, &wide, sizeof wide);
    return cuda_leave(SIM_OK);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    CUresult result = cuda_enter("cuMemPoolTrimTo");
    (void)minBytesToKeep; /* a simulated pool keeps no free memory */
    if (result)
        return result;
    return cuda_leave(pool_of(pool) ? SIM_OK : SIM_INVALID);
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    struct sim_pool *found;
    CUresult result = cuda_enter("cuMemPoolSetAccess");
    if (result)
        return result;
    found = pool_of(pool);
    if (!found || (count && !map))
        return cuda_leave(SIM_INVALID);
    for (size_t i = 0; i < count; i++)
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            !cuda_device(map[i].location.id) || (int)map[i].flags == 2 || (int)map[i].flags > 3 ||
            (!map[i].flags && cuda_device(map[i].location.id) == found->device))
            return cuda_leave(SIM_INVALID);
    for (size_t i = 0; i < count; i++) {
        unsigned bit = 1u << map[i].location.id;
        found->access = map[i].flags ? found->access | bit : found->access & ~bit;
    }
    return cuda_leave(SIM_OK);
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
    const struct sim_pool *found;
    CUresult result = cuda_enter("cuMemPoolGetAccess");
    if (result)
        return result;
    found = pool_of(memPool);
    if (!flags || !found || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
        !cuda_device(location->id))
        return cuda_leave(SIM_INVALID);
    *flags = found->access & 1u << location->id ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return cuda_leave(SIM_OK);
}

/* On an H200 (driver 580.159) it fails for the default stream while a stream that is ordered with it is captured. */
static CUresult allocate(const char *name, CUdeviceptr *out, size_t size, CUmemoryPool pool,
                         CUstream stream)
{
    struct sim_queue *queue;
    struct sim_pool *found;
    uint64_t address = 0;
    int status;
    CUresult result = cuda_enter_stream(name, stream, &queue);
    if (result)
        return result;
    found = pool ? pool_of(pool) : queue->context->device->current_pool;
    if (!out || !found)
        return cuda_leave(SIM_INVALID);
    status = queue->legacy ? sim_capture_implicit(queue->context) : SIM_OK;
    if (!status)
        status = sim_pool_alloc(found, queue, size, &address);
    if (!status)
        *out = address;
    return cuda_leave(status);
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    return allocate("cuMemAllocAsync", dptr, bytesize, NULL, hStream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                 CUstream hStream)
{
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    return allocate("cuMemAllocFromPoolAsync", dptr, bytesize, pool, hStream);
}

/* On an H200 (driver 580.159) a stream that was destroyed ends the process here. */
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct sim_queue *queue;
    CUresult result;
    cuda_attempt_memory(dptr);
    result = cuda_enter_stream("cuMemFreeAsync", hStream, &queue);
    if (result == CUDA_ERROR_INVALID_HANDLE) {
        fprintf(stderr, "gpuglue sim: memory is freed on a stream that was destroyed\n");
        abort();
    }
    return result ? result : cuda_leave(sim_pool_free(dptr, queue));
}
