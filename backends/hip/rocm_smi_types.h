/* rocm_smi_types.h: numbers and structs of ROCm SMI. tests/headers compares them with the vendor's header. */
#ifndef GPUGLUE_BACKENDS_ROCM_SMI_TYPES_H
#define GPUGLUE_BACKENDS_ROCM_SMI_TYPES_H

#include <stdint.h>

enum {
    RSMI_STATUS_SUCCESS = 0,
    RSMI_MEM_TYPE_VRAM = 0,
    RSMI_TEMP_CURRENT = 0,
    RSMI_TEMP_TYPE_EDGE = 0,
    RSMI_TEMP_TYPE_JUNCTION = 1,
    RSMI_CLK_TYPE_SYS = 0,
    RSMI_CLK_TYPE_MEM = 4,
};

/* The frequencies of a clock, in Hz, and which of them is the current one: until ROCm 5, and since ROCm 6. */
struct rocm_smi_frequencies_5 {
    uint32_t count, current;
    uint64_t frequency[32];
};
struct rocm_smi_frequencies_6 {
    uint8_t has_deep_sleep;
    uint32_t count, current;
    uint64_t frequency[33];
};
union rocm_smi_frequencies {
    struct rocm_smi_frequencies_5 v5;
    struct rocm_smi_frequencies_6 v6;
};

struct rocm_smi_process {
    uint32_t pid, pasid;
    uint64_t vram, sdma; /* bytes; microseconds */
    uint32_t occupancy;
};

#endif
