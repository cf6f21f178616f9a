/* sim_cuda_pointer.c: CUDA: attributes of a pointer. */
#include "sim_cuda.h"

#include <string.h>

union attribute_value {
    CUcontext context;
    unsigned memory_type;
    CUdeviceptr device_pointer;
    void *host_pointer;
    unsigned long long number;
    size_t size;
    int integer;
    unsigned boolean;
    CUmemoryPool pool;
};

static bool on_host(const struct sim_alloc *alloc)
{
    return alloc->kind != SIM_DEVICE;
}

/* Returns the size of the value, or 0 if this memory has no such attribute. */
static size_t query_known(int attribute, const struct sim_alloc *alloc, uint64_t pointer,
                          union attribute_value *out)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        out->context = (CUcontext)(void *)(alloc->pool ? NULL : alloc->context);
        return sizeof out->context;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        out->memory_type = alloc->kind == SIM_PINNED || alloc->kind == SIM_REGISTERED
                               ? CU_MEMORYTYPE_HOST
                               : CU_MEMORYTYPE_DEVICE;
        return sizeof out->memory_type;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        out->device_pointer = pointer;
        return sizeof out->device_pointer;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        out->host_pointer = (void *)(uintptr_t)pointer;
        return on_host(alloc) ? sizeof out->host_pointer : 0;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        out->number = alloc->serial;
        return sizeof out->number;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        out->integer = alloc->device ? alloc->device->ordinal : CU_DEVICE_INVALID;
        return sizeof out->integer;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        out->device_pointer = alloc->base;
        return sizeof out->device_pointer;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        out->size = alloc->size;
        return sizeof out->size;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        out->pool = (CUmemoryPool)(void *)alloc->pool;
        return sizeof out->pool;
    default:
        return 0;
    }
}

static size_t query_flag(int attribute, const struct sim_alloc *alloc, union attribute_value *out)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        out->boolean = alloc->kind == SIM_MANAGED;
        return sizeof out->boolean;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        out->boolean = 1;
        return sizeof out->boolean;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        out->boolean = 0;
        return sizeof out->boolean;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        out->number = 0;
        return sizeof out->number;
    default:
        return 0;
    }
}

static size_t query(int attribute, const struct sim_alloc *alloc, uint64_t pointer,
                    union attribute_value *out)
{
    size_t size = query_known(attribute, alloc, pointer, out);
    return size ? size : query_flag(attribute, alloc, out);
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    const struct sim_alloc *alloc;
    union attribute_value value;
    size_t size;
    CUresult result = cuda_enter("cuPointerGetAttribute");
    if (result)
        return result;
    alloc = sim_memory_find(ptr);
    if (!data || !alloc)
        return cuda_leave(SIM_INVALID);
    size = query((int)attribute, alloc, ptr, &value);
    if (size)
        memcpy(data, &value, size);
    return cuda_leave(size ? SIM_OK : SIM_INVALID);
}

static bool attribute_known(int attribute)
{
    return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT &&
           attribute <= CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID &&
           attribute != CU_POINTER_ATTRIBUTE_P2P_TOKENS;
}

/* For unknown memory the plural form succeeds and writes zeros. */
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes,
                                void **data, CUdeviceptr ptr)
{
    const struct sim_alloc any = {.device = NULL}, *alloc;
    CUresult result = cuda_enter("cuPointerGetAttributes");
    if (result)
        return result;
    if (!numAttributes || !attributes || !data)
        return cuda_leave(SIM_INVALID);
    for (unsigned i = 0; i < numAttributes; i++)
        if (!attribute_known((int)attributes[i]) || !data[i])
            return cuda_leave(SIM_INVALID);
    alloc = sim_memory_find(ptr);
    for (unsigned i = 0; i < numAttributes; i++) {
        int attribute = (int)attributes[i];
        union attribute_value value;
        size_t size;
        memset(&value, 0, sizeof value);
        size = query(attribute, alloc ? alloc : &any, ptr, &value);
        if (!alloc || !size)
            memset(&value, 0, sizeof value);
        if (!alloc && attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            value.integer = CU_DEVICE_INVALID;
        memcpy(data[i], &value, size ? size : sizeof value.host_pointer);
    }
    return cuda_leave(SIM_OK);
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    CUresult result = cuda_enter("cuPointerSetAttribute");
    if (result)
        return result;
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !sim_memory_find(ptr))
        return cuda_leave(SIM_INVALID);
    return cuda_leave(SIM_OK);
}
