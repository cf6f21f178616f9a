/* times.c: when a kernel or a copy ran. The runtime translates the times of the GPU into those of the system by clocks of the kernel
 * driver, which are always 0 in AMD's model of it. Here both clocks are one. */
#include "model.h"
#include "runtime.h"

enum { SYSTEM_TIMESTAMP_FREQUENCY = 3, CLOCK_FREQUENCY = 100000000 /* of model_clock */ };

struct times {
    uint64_t start, end;
};

struct signal_handle {
    uint64_t handle;
};

EXPORT int hsa_system_get_info(int attribute, void *value);
EXPORT int hsa_amd_profiling_get_dispatch_time(struct agent, struct signal_handle, struct times *);
EXPORT int hsa_amd_profiling_get_async_copy_time(struct signal_handle, struct times *);

static int times_read(struct signal_handle of, struct times *times)
{
    const struct signal *signal = (const struct signal *)(uintptr_t)of.handle;
    *times = (struct times){signal->start, signal->end};
    return STATUS_SUCCESS;
}

EXPORT int hsa_system_get_info(int attribute, void *value)
{
    const int status = NEXT(hsa_system_get_info)(attribute, value);
    if (attribute == SYSTEM_TIMESTAMP_FREQUENCY && status == STATUS_SUCCESS)
        *(uint64_t *)value = CLOCK_FREQUENCY;
    return status;
}

EXPORT int hsa_amd_profiling_get_dispatch_time(struct agent agent, struct signal_handle signal,
                                               struct times *times)
{
    (void)agent;
    return times_read(signal, times);
}

EXPORT int hsa_amd_profiling_get_async_copy_time(struct signal_handle signal, struct times *times)
{
    return times_read(signal, times);
}
