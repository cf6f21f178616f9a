/* sim_monitor.h: what the simulated management libraries share: the values, which are the same in all, and faults.
 *
 *   GPUGLUE_SIM_DEVICES       number of devices, default 2, as for the drivers
 *   GPUGLUE_SIM_MONITOR_FAIL  name,…: these functions fail; read at every call, so that a test may change it
 *   GPUGLUE_SIM_MONITOR_ODD   a word that one library understands, see there */
#ifndef SIM_MONITOR_H
#define SIM_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIM_EXPORT __attribute__((visibility("default")))

/* PCI buses of the first devices of the simulated drivers. */
enum { SIM_CUDA_FIRST_BUS = 0x10, SIM_HIP_FIRST_BUS = 0x40, SIM_ZE_FIRST_BUS = 0x3a };

/* Of device @p physical. tests/conformance/test_stats.c and tests/python/test_stats.py expect them. */
#define SIM_LOAD(physical) (40u + (unsigned)(physical))        /* % */
#define SIM_MEMORY_LOAD(physical) (10u + (unsigned)(physical)) /* % */
#define SIM_TOTAL (UINT64_C(64) << 30)
#define SIM_USED(physical) (((uint64_t)(physical) + 1) << 30)
#define SIM_RESERVED (512u << 20) /* by the driver; NVML's older function counts it as used */
#define SIM_MILLIWATTS(physical) (150500u + 1000u * (unsigned)(physical))
#define SIM_DEGREES(physical) (60u + (unsigned)(physical))
#define SIM_CLOCK(physical) (1500u + (unsigned)(physical))        /* MHz */
#define SIM_MEMORY_CLOCK(physical) (1200u + (unsigned)(physical)) /* MHz */
/* Two processes: the caller, and another one. */
#define SIM_OTHER_PID 4242u
#define SIM_OWN_MEMORY (UINT64_C(256) << 20)
#define SIM_OTHER_MEMORY (UINT64_C(128) << 20)

static inline int sim_monitor_devices(void)
{
    const char *text = getenv("GPUGLUE_SIM_DEVICES");
    const int count = text ? atoi(text) : 2;
    return count < 0 ? 0 : count > 64 ? 64 : count;
}

static inline bool sim_monitor_fails(const char *name)
{
    const char *list = getenv("GPUGLUE_SIM_MONITOR_FAIL");
    while (list && *list) {
        const size_t item = strcspn(list, ",");
        if (item == strlen(name) && !strncmp(list, name, item))
            return true;
        list += item + (list[item] == ',');
    }
    return false;
}

static inline bool sim_monitor_odd(const char *word)
{
    const char *odd = getenv("GPUGLUE_SIM_MONITOR_ODD");
    return odd && !strcmp(odd, word);
}

/* GPUGLUE_SIM_PARTITIONS: HIP's devices are partitions of one GPU; see ../README.md. */
static inline bool sim_monitor_partitions(void)
{
    return getenv("GPUGLUE_SIM_PARTITIONS");
}

/* The lower half of KFD's location_id: the kernel writes a partition's number into the function, or into bits 28 to 31. */
static inline uint32_t sim_monitor_location(unsigned physical)
{
    const char *where = getenv("GPUGLUE_SIM_PARTITIONS");
    if (!where)
        return (SIM_HIP_FIRST_BUS + physical) << 8;
    return SIM_HIP_FIRST_BUS << 8 | (strcmp(where, "location") ? physical : physical << 28);
}

/* GPUGLUE_SIM_MIG: CUDA's devices are slices of one GPU. */
static inline bool sim_monitor_mig(void)
{
    return getenv("GPUGLUE_SIM_MIG") || sim_monitor_odd("mig");
}

#endif
