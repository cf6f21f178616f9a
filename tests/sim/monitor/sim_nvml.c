/* sim_nvml.c: a libnvidia-ml.so.1 for the devices of the simulated CUDA driver.
 *
 * GPUGLUE_SIM_MONITOR_ODD: `mig`: the devices are slices, known by MIG-UUIDs only, without load, power and sensors;
 * `many`: 100 processes. */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include "sim_monitor.h"

#include <stdio.h>

#define ENTER(name)                                       \
    if (sim_monitor_fails(name))                          \
        return NVML_ERROR_UNKNOWN;                        \
    if (!__atomic_load_n(&initialised, __ATOMIC_RELAXED)) \
    return NVML_ERROR_UNINITIALIZED

static bool initialised;
enum { WHOLE = 64 };
static char devices[2 * WHOLE]; /* a handle is the address of a device's element */

static unsigned physical_of(nvmlDevice_t device)
{
    return (unsigned)((char *)device - devices) % WHOLE;
}

/* With `mig` the devices that have a UUID are slices; those at a PCI address are the whole GPUs. */
static bool is_slice(nvmlDevice_t device)
{
    return sim_monitor_mig() && (char *)device - devices < WHOLE;
}

SIM_EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    if (sim_monitor_fails("nvmlInit_v2"))
        return NVML_ERROR_DRIVER_NOT_LOADED;
    __atomic_store_n(&initialised, true, __ATOMIC_RELAXED);
    return NVML_SUCCESS;
}

static nvmlReturn_t device_take(int physical, nvmlDevice_t *device)
{
    if (physical < 0 || physical >= sim_monitor_devices())
        return NVML_ERROR_NOT_FOUND;
    *device = (nvmlDevice_t)(void *)&devices[physical];
    return NVML_SUCCESS;
}

/* The UUID of the simulated driver: the text "gpuglue sim dev " whose last character is the number. That
 * of a GPU with slices ends in G. */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    char text[64];
    const char *prefix = sim_monitor_mig() ? "MIG" : "GPU";
    ENTER("nvmlDeviceGetHandleByUUID");
    if (sim_monitor_mig() && !strcmp(uuid, "GPU-67707567-6c75-6520-7369-6d2064657647")) {
        *device = (nvmlDevice_t)(void *)&devices[WHOLE];
        return NVML_SUCCESS;
    }
    for (int i = 0; i < sim_monitor_devices(); i++) {
        snprintf(text, sizeof text, "%s-67707567-6c75-6520-7369-6d20646576%02x", prefix,
                 (unsigned)('0' + i));
        if (!strcmp(text, uuid))
            return device_take(i, device);
    }
    return NVML_ERROR_NOT_FOUND;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *device)
{
    unsigned domain, bus;
    ENTER("nvmlDeviceGetHandleByPciBusId_v2");
    if (sscanf(address, "%x:%x:", &domain, &bus) != 2)
        return NVML_ERROR_INVALID_ARGUMENT;
    const nvmlReturn_t result = device_take((int)bus - SIM_CUDA_FIRST_BUS, device);
    if (!result)
        *device = (nvmlDevice_t)(void *)((char *)*device + WHOLE);
    return result;
}

/* Of a whole GPU; a slice has no mode. */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current,
                                             unsigned *pending)
{
    ENTER("nvmlDeviceGetMigMode");
    if (is_slice(device))
        return NVML_ERROR_INVALID_ARGUMENT;
    *current = *pending = sim_monitor_mig();
    return NVML_SUCCESS;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    ENTER("nvmlDeviceGetUtilizationRates");
    if (is_slice(device))
        return NVML_ERROR_NOT_SUPPORTED;
    *rates =
        (nvmlUtilization_t){SIM_LOAD(physical_of(device)), SIM_MEMORY_LOAD(physical_of(device))};
    return NVML_SUCCESS;
}

/* What the driver reserves counts as used here, and in the newer function does not. */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    ENTER("nvmlDeviceGetMemoryInfo");
    *memory =
        (nvmlMemory_t){.total = SIM_TOTAL, .used = SIM_USED(physical_of(device)) + SIM_RESERVED};
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    ENTER("nvmlDeviceGetMemoryInfo_v2");
    if (memory->version != nvmlMemory_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = is_slice(device) ? SIM_TOTAL / 8 : SIM_TOTAL;
    memory->reserved = SIM_RESERVED;
    memory->used = SIM_USED(physical_of(device));
    memory->free = memory->total - memory->used - memory->reserved;
    return NVML_SUCCESS;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts)
{
    ENTER("nvmlDeviceGetPowerUsage");
    if (is_slice(device))
        return NVML_ERROR_NOT_SUPPORTED;
    *milliwatts = SIM_MILLIWATTS(physical_of(device));
    return NVML_SUCCESS;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device,
                                                 nvmlTemperatureSensors_t sensor, unsigned *degrees)
{
    ENTER("nvmlDeviceGetTemperature");
    if (sensor != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (is_slice(device))
        return NVML_ERROR_NOT_SUPPORTED;
    *degrees = SIM_DEGREES(physical_of(device));
    return NVML_SUCCESS;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                               unsigned *megahertz)
{
    ENTER("nvmlDeviceGetClockInfo");
    if (is_slice(device))
        return NVML_ERROR_NOT_SUPPORTED;
    if (type != NVML_CLOCK_SM && type != NVML_CLOCK_MEM)
        return NVML_ERROR_INVALID_ARGUMENT;
    *megahertz = type == NVML_CLOCK_SM ? SIM_CLOCK(physical_of(device))
                                       : SIM_MEMORY_CLOCK(physical_of(device));
    return NVML_SUCCESS;
}

static nvmlReturn_t read_reasons(nvmlDevice_t device, unsigned long long *reasons)
{
    if (is_slice(device))
        return NVML_ERROR_NOT_SUPPORTED;
    *reasons = nvmlClocksEventReasonSwPowerCap | nvmlClocksThrottleReasonHwThermalSlowdown;
    return NVML_SUCCESS;
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                               unsigned long long *reasons)
{
    ENTER("nvmlDeviceGetCurrentClocksEventReasons");
    return read_reasons(device, reasons);
}

/* The name of that function before driver 535. */
SIM_EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                                  unsigned long long *reasons)
{
    ENTER("nvmlDeviceGetCurrentClocksThrottleReasons");
    return read_reasons(device, reasons);
}

SIM_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                                nvmlProcessInfo_t *processes)
{
    const unsigned room = *count, all = sim_monitor_odd("many") ? 100 : 2;
    ENTER("nvmlDeviceGetComputeRunningProcesses_v3");
    *count = all;
    if (room < all)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memset(processes, 0, all * sizeof *processes);
    for (unsigned i = 1; i < all; i++) {
        processes[i].pid = SIM_OTHER_PID + i - 1;
        processes[i].usedGpuMemory = SIM_OTHER_MEMORY;
    }
    processes[0].pid = (unsigned)getpid();
    processes[0].usedGpuMemory = SIM_OWN_MEMORY;
    if (is_slice(device))
        processes[1].usedGpuMemory = (unsigned long long)NVML_VALUE_NOT_AVAILABLE;
    return NVML_SUCCESS;
}
