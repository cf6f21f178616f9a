/* sim_hip_fill.c: HIP: fills. All of them are asynchronous. */
#include "sim_hip.h"

static hipError_t fill(const char *name, const struct sim_fill *fill, hipStream_t stream, bool now)
{
    struct sim_work work = {.kind = SIM_FILL, .fill = *fill};
    struct sim_queue *queue;
    int status;
    hipError_t result = hip_enter_stream(name, stream, &queue);
    if (result)
        return result;
    status = now ? sim_capture_unsafe() : SIM_OK;
    if (status || !fill->width)
        return hip_leave(status);
    if (fill->dst % fill->element ||
        !hip_end_valid((const void *)(uintptr_t)fill->dst, fill->width * fill->element,
                       HIP_DEVICE_END, &work.dst_tracked))
        return hip_leave(SIM_INVALID);
    return hip_leave(sim_queue_submit(queue, &work));
}

static struct sim_fill row(const void *dst, size_t count, unsigned value, unsigned element)
{
    return (struct sim_fill){(uintptr_t)dst, 0, count, 1, value, element};
}

hipError_t hipMemset(void *dst, int value, size_t sizeBytes)
{
    struct sim_fill work = row(dst, sizeBytes, (unsigned char)value, 1);
    return fill("hipMemset", &work, NULL, true);
}

hipError_t hipMemsetAsync(void *dst, int value, size_t sizeBytes, hipStream_t stream)
{
    struct sim_fill work = row(dst, sizeBytes, (unsigned char)value, 1);
    return fill("hipMemsetAsync", &work, stream, false);
}

hipError_t hipMemsetD8(hipDeviceptr_t dest, unsigned char value, size_t count)
{
    struct sim_fill work = row(dest, count, value, 1);
    return fill("hipMemsetD8", &work, NULL, true);
}

hipError_t hipMemsetD16(hipDeviceptr_t dest, unsigned short value, size_t count)
{
    struct sim_fill work = row(dest, count, value, 2);
    return fill("hipMemsetD16", &work, NULL, true);
}

hipError_t hipMemsetD32(hipDeviceptr_t dest, int value, size_t count)
{
    struct sim_fill work = row(dest, count, (unsigned)value, 4);
    return fill("hipMemsetD32", &work, NULL, true);
}

hipError_t hipMemsetD8Async(hipDeviceptr_t dest, unsigned char value, size_t count,
                            hipStream_t stream)
{
    struct sim_fill work = row(dest, count, value, 1);
    return fill("hipMemsetD8Async", &work, stream, false);
}

hipError_t hipMemsetD16Async(hipDeviceptr_t dest, unsigned short value, size_t count,
                             hipStream_t stream)
{
    struct sim_fill work = row(dest, count, value, 2);
    return fill("hipMemsetD16Async", &work, stream, false);
}

hipError_t hipMemsetD32Async(hipDeviceptr_t dst, int value, size_t count, hipStream_t stream)
{
    struct sim_fill work = row(dst, count, (unsigned)value, 4);
    return fill("hipMemsetD32Async", &work, stream, false);
}
