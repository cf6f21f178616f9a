/* sim_cuda_enter.c: CUDA: the start and the end of every entry point. */
#include "sim_cuda.h"

CUresult cuda_enter_plain(const char *name)
{
    int fault = sim_fault(name);
    if (sim_finished())
        return CUDA_ERROR_DEINITIALIZED;
    if (sim_forked())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (sim_in_host_function)
        return CUDA_ERROR_NOT_PERMITTED;
    return (CUresult)fault;
}

/* After one of these codes, every later call on the context returns the same code: cuda.h says of each that "any
 * further CUDA work will return the same error", or that the process must be relaunched. */
static bool is_sticky(CUresult code)
{
    switch ((int)code) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
        return true;
    default:
        return false;
    }
}

/* An injected device loss applies to the context of the call. */
static CUresult lose(struct sim_context *context, CUresult code)
{
    if (!is_sticky(code) || !sim_initialised() || sim_forked() || sim_finished())
        return code;
    pthread_mutex_lock(&sim.lock);
    if (!context)
        context = sim_context_top();
    if (context && context->slot.alive)
        sim_context_lose(context, (int)code);
    pthread_mutex_unlock(&sim.lock);
    return code;
}

CUresult cuda_enter(const char *name)
{
    CUresult result = cuda_enter_plain(name);
    if (result)
        return lose(NULL, result);
    if (!sim_initialised())
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&sim.lock);
    return CUDA_SUCCESS;
}

CUresult cuda_leave(int status)
{
    pthread_mutex_unlock(&sim.lock);
    sim_pause_poll(status);
    return cuda_code(status);
}

CUresult cuda_enter_context(const char *name, struct sim_context **context)
{
    int status;
    CUresult result = cuda_enter(name);
    if (result)
        return result;
    *context = sim_context_top();
    status = sim_context_check(*context);
    return status ? cuda_leave(status) : CUDA_SUCCESS;
}

int cuda_find_stream(CUstream handle, struct sim_queue **queue)
{
    struct sim_context *context = sim_context_top();
    int status;
    if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
        *queue = sim_table_find(&sim_queues, handle);
        return *queue ? sim_context_check((*queue)->context) : SIM_BAD_HANDLE;
    }
    status = sim_context_check(context);
    if (status)
        return status;
    if (handle == CU_STREAM_PER_THREAD)
        return sim_queue_per_thread(context, queue);
    *queue = context->legacy;
    return SIM_OK;
}

static CUresult enter_losing(const char *name, struct sim_context *context)
{
    CUresult result = cuda_enter_plain(name);
    if (result)
        return lose(context, result);
    if (!sim_initialised())
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&sim.lock);
    return CUDA_SUCCESS;
}

/* The context of a live handle. It is looked up before the call, so that a loss applies to it. */
static struct sim_context *context_of(struct sim_table *table, const void *handle)
{
    struct sim_context *context = NULL;
    const void *object;
    if (!sim_initialised() || sim_forked() || sim_finished() || sim_in_host_function)
        return NULL;
    pthread_mutex_lock(&sim.lock);
    object = sim_table_find(table, handle);
    if (object && table == &sim_queues)
        context = ((const struct sim_queue *)object)->context;
    else if (object)
        context = ((const struct sim_event *)object)->context;
    pthread_mutex_unlock(&sim.lock);
    return context;
}

CUresult cuda_enter_stream(const char *name, CUstream handle, struct sim_queue **queue)
{
    int status;
    CUresult result = enter_losing(name, context_of(&sim_queues, handle));
    if (result)
        return result;
    status = cuda_find_stream(handle, queue);
    return status ? cuda_leave(status) : CUDA_SUCCESS;
}

CUresult cuda_enter_event(const char *name, CUevent handle, struct sim_event **event)
{
    CUresult result = enter_losing(name, context_of(&sim_events, handle));
    if (result)
        return result;
    *event = sim_table_find(&sim_events, handle);
    if (!*event)
        return cuda_leave(SIM_BAD_HANDLE);
    return (*event)->context->lost ? cuda_leave((*event)->context->lost) : CUDA_SUCCESS;
}

struct sim_device *cuda_device(CUdevice ordinal)
{
    return ordinal >= 0 && ordinal < sim.device_count ? &sim.devices[ordinal] : NULL;
}

CUresult cuda_enter_device(const char *name, CUdevice ordinal, struct sim_device **device)
{
    CUresult result = cuda_enter(name);
    if (result)
        return result;
    *device = cuda_device(ordinal);
    return *device ? CUDA_SUCCESS : cuda_leave(CUDA_ERROR_INVALID_DEVICE);
}

int cuda_find_context(CUcontext handle, struct sim_context **context)
{
    if (!handle) {
        *context = sim_context_top();
        return sim_context_check(*context);
    }
    *context = sim_table_find(&sim_contexts, handle);
    return *context ? (*context)->lost : SIM_NO_CONTEXT;
}

void cuda_attempt(struct sim_table *table, const void *handle)
{
    struct sim_slot *slot;
    if (!sim_initialised() || sim_forked() || sim_finished())
        return;
    pthread_mutex_lock(&sim.lock);
    slot = sim_table_find(table, handle);
    if (slot)
        slot->attempted = true;
    pthread_mutex_unlock(&sim.lock);
}

void cuda_attempt_memory(uint64_t address)
{
    struct sim_alloc *alloc;
    if (!sim_initialised() || sim_forked() || sim_finished())
        return;
    pthread_mutex_lock(&sim.lock);
    alloc = sim_memory_find(address);
    if (alloc && (alloc->imported ? alloc->imported : alloc->base) == address)
        alloc->attempted = true;
    pthread_mutex_unlock(&sim.lock);
}

bool cuda_end_valid(uint64_t address, size_t size, enum cuda_end end, bool *tracked)
{
    const struct sim_alloc *alloc = sim_memory_range(address, size);
    *tracked = alloc != NULL;
    switch (end) {
    case CUDA_DEVICE_END:
        return alloc != NULL;
    case CUDA_HOST_END:
        return sim_memory_copyable(address, size);
    case CUDA_ANY_END:
        return alloc || sim_memory_copyable(address, size);
    }
    return false;
}
