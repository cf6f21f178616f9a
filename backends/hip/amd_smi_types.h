/* amd_smi_types.h: numbers and structs of AMD SMI 26 (ROCm 7) and 27. tests/headers compares them with the header of 27. */
#ifndef GPUGLUE_BACKENDS_AMD_SMI_TYPES_H
#define GPUGLUE_BACKENDS_AMD_SMI_TYPES_H

#include <stdint.h>

enum {
    AMDSMI_STATUS_SUCCESS = 0,
    AMDSMI_STATUS_OUT_OF_RESOURCES = 15,
    AMDSMI_INIT_AMD_GPUS = 2,
    AMDSMI_MEM_TYPE_VRAM = 0,
    AMDSMI_TEMP_CURRENT = 0,
    AMDSMI_TEMPERATURE_TYPE_EDGE = 0,
    AMDSMI_TEMPERATURE_TYPE_HOTSPOT = 1,
    AMDSMI_CLK_TYPE_SYS = 0,
    AMDSMI_CLK_TYPE_MEM = 4,
};

struct amd_smi_version {
    uint32_t major, minor, release;
    const char *build;
};

/* Percent. Where a value is not known, it has the largest number of 16 or of 32 bits. */
struct amd_smi_activity {
    uint32_t compute, memory, media, reserved[13];
};

/* Watts: newer GPUs have the current power, older ones an average. */
struct amd_smi_power {
    uint64_t socket;
    uint32_t current, average;
    uint64_t voltages[3];
    uint32_t limit, board;
    uint64_t reserved[18];
};

/* Megahertz. */
struct amd_smi_clock {
    uint32_t current, least, most;
    uint8_t is_locked, is_asleep;
    uint32_t reserved[4];
};

/* What reduces the clocks, in the table of the GPU's firmware. Reasons are bits, or counters of the time that a reason
 * has held; the others of the two kinds have all bits set. */
struct amd_smi_counters {
    uint64_t elapsed, hot, power, socket_thermal, regulator_thermal, memory_thermal;
};
union amd_smi_metrics {
    struct {
        char before_reasons[112];
        uint64_t reasons;
        char before_counters[304];
        struct amd_smi_counters counters;
    } v26;
    struct {
        char before_reasons[120];
        uint64_t reasons;
        char before_counters[312];
        struct amd_smi_counters counters;
    } v27;
    char room[16384]; /* of all members, and of those of later versions */
};

struct amd_smi_process {
    char name[256];
    uint32_t pid;
    uint64_t all, engines[8], gtt, cpu, vram; /* bytes; nanoseconds */
    uint32_t reserved[10];
    char container[256];
    uint32_t occupancy, later[11];
};

#endif
