/* sim_hip_enter.c: HIP: the start and the end of every entry point. */
#include "sim_hip.h"

#include <stdio.h>
#include <stdlib.h>

_Thread_local int hip_current_device;
static _Thread_local hipError_t last_error;

/* The macro HIP_RETURN of ROCm/clr (hip_internal.hpp): up to ROCm 6 every call sets the last error, a success too.
 * From ROCm 7 on (ROCm/rocm-systems) it keeps the last failure, and "not ready" is none. */
hipError_t hip_note(hipError_t code)
{
    if (SIM_HIP < 7 || (code && code != hipErrorNotReady))
        last_error = code;
    return code;
}

hipError_t hipPeekAtLastError(void)
{
    return last_error;
}

hipError_t hipGetLastError(void)
{
    hipError_t error = last_error;
    last_error = hipSuccess;
    return error;
}

#if SIM_HIP >= 6
hipError_t hipExtGetLastError(void)
{
    return hipGetLastError();
}
#endif

/* After one of these codes, every later call on the device returns the same code. */
static bool is_sticky(hipError_t code)
{
    return code == hipErrorECCNotCorrectable || code == hipErrorIllegalAddress ||
           code == hipErrorLaunchTimeOut || code == hipErrorAssert || code == hipErrorLaunchFailure;
}

static struct sim_context *known_context(int ordinal)
{
    struct sim_device *device = hip_device(ordinal);
    return device ? device->primary : NULL;
}

static hipError_t lose(struct sim_context *context, hipError_t code)
{
    if (!is_sticky(code) || !sim_initialised() || sim_forked() || sim_finished())
        return hip_note(code);
    pthread_mutex_lock(&sim.lock);
    if (!context)
        context = known_context(hip_current_device);
    if (context)
        sim_context_lose(context, (int)code);
    pthread_mutex_unlock(&sim.lock);
    return hip_note(code);
}

/* Without a device HIP 5 returns "invalid device", except in hipGetDeviceCount. */
static hipError_t no_device(void)
{
    return SIM_HIP < 6 ? hipErrorInvalidDevice : hipErrorNoDevice;
}

/* ROCr calls the handlers of all signals in one thread, and so does ROCm/clr the host functions of all streams. At the end of a
 * capture hipStreamEndCapture of ROCm/clr counts the nodes that no other follows. */
__attribute__((constructor)) static void set_rules(void)
{
    sim.serial_host = true;
    sim.joins_idle = true;
}

static hipError_t initialise(void)
{
    const char *mask = getenv("HIP_VISIBLE_DEVICES");
    int status = sim_initialised() ? SIM_OK : sim_init(mask ? mask : getenv("CUDA_VISIBLE_DEVICES"));
    return status == SIM_NO_DEVICE ? hip_note(no_device()) : hip_code(status);
}

static hipError_t enter(const char *name, struct sim_context *context)
{
    hipError_t result = (hipError_t)sim_fault(name);
    if (sim_finished())
        return hip_note(hipErrorDeinitialized);
    if (sim_forked())
        return hip_note(hipErrorNotInitialized);
    if (sim_in_host_function)
        return hip_note(hipErrorNotSupported);
    if (result)
        return lose(context, result);
    result = initialise();
    if (!result)
        pthread_mutex_lock(&sim.lock);
    return result;
}

hipError_t hip_enter(const char *name)
{
    return enter(name, NULL);
}

hipError_t hip_leave(int status)
{
    pthread_mutex_unlock(&sim.lock);
    sim_pause_poll(status);
    return hip_code(status);
}

struct sim_device *hip_device(int ordinal)
{
    return ordinal >= 0 && ordinal < sim.device_count ? &sim.devices[ordinal] : NULL;
}

/* Every device has one context, created at its first use. Callers do not release it. */
int hip_context_of(struct sim_device *device, struct sim_context **context)
{
    int status = SIM_OK;
    if (!device->primary) {
        status = sim_context_create(device, true, &device->primary);
        if (status)
            return status;
        device->primary->slot.internal = true;
    }
    *context = device->primary;
    return (*context)->lost;
}

hipError_t hip_enter_device(const char *name, int ordinal, struct sim_device **device)
{
    hipError_t result = hip_enter(name);
    if (result)
        return result;
    *device = hip_device(ordinal);
    return *device ? hipSuccess : hip_leave(hipErrorInvalidDevice);
}

hipError_t hip_enter_context(const char *name, struct sim_context **context)
{
    int status;
    hipError_t result = hip_enter(name);
    if (result)
        return result;
    status = hip_context_of(hip_device(hip_current_device), context);
    return status ? hip_leave(status) : hipSuccess;
}

/* Up to ROCm 6 the functions for streams look the handle up (ROCm/clr, hip::isValid). In 2026 they read the object, which
 * hipStreamDestroy has freed (ROCm/rocm-systems, hip_stream.cpp): whatever follows, it is an error of the client. */
static int stale_stream(const void *handle)
{
    if (SIM_HIP < 7)
        return hipErrorContextIsDestroyed;
    fprintf(stderr, "gpuglue sim: %p is used as a stream, but there is none, or none any more\n",
            handle);
    abort();
}

/* The null stream and the per-thread stream belong to the current device. */
int hip_find_stream(hipStream_t handle, struct sim_queue **queue)
{
    struct sim_context *context;
    int status;
    if (handle && handle != hipStreamPerThread) {
        *queue = sim_table_find(&sim_queues, handle);
        return *queue ? (*queue)->context->lost : stale_stream(handle);
    }
    status = hip_context_of(hip_device(hip_current_device), &context);
    if (status)
        return status;
    if (handle)
        return sim_queue_per_thread(context, queue);
    *queue = context->legacy;
    return SIM_OK;
}

/* The context of a live handle. It is looked up before the call, so that a loss applies to it. */
static struct sim_context *context_behind(struct sim_table *table, const void *handle)
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

hipError_t hip_enter_stream(const char *name, hipStream_t handle, struct sim_queue **queue)
{
    int status;
    hipError_t result = enter(name, context_behind(&sim_queues, handle));
    if (result)
        return result;
    status = hip_find_stream(handle, queue);
    return status ? hip_leave(status) : hipSuccess;
}

hipError_t hip_enter_event(const char *name, hipEvent_t handle, struct sim_event **event)
{
    hipError_t result = enter(name, context_behind(&sim_events, handle));
    if (result)
        return result;
    *event = sim_table_find(&sim_events, handle);
    if (!*event)
        return hip_leave(SIM_BAD_HANDLE);
    return (*event)->context->lost ? hip_leave((*event)->context->lost) : hipSuccess;
}

void hip_attempt(struct sim_table *table, const void *handle)
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

void hip_attempt_memory(const void *pointer)
{
    struct sim_alloc *alloc;
    if (!sim_initialised() || sim_forked() || sim_finished())
        return;
    pthread_mutex_lock(&sim.lock);
    alloc = sim_memory_find((uintptr_t)pointer);
    if (alloc && (alloc->imported ? alloc->imported : alloc->base) == (uintptr_t)pointer)
        alloc->attempted = true;
    pthread_mutex_unlock(&sim.lock);
}

bool hip_end_valid(const void *pointer, size_t size, enum hip_end end, bool *tracked)
{
    const uint64_t address = (uintptr_t)pointer;
    const struct sim_alloc *alloc = sim_memory_range(address, size);
    *tracked = alloc != NULL;
    switch (end) {
    case HIP_DEVICE_END:
        return alloc != NULL;
    case HIP_HOST_END:
        return sim_memory_copyable(address, size);
    case HIP_ANY_END:
        return alloc || sim_memory_copyable(address, size);
    }
    return false;
}
