/* nvml_types.h: numbers and structs of NVML. tests/headers compares them with the vendor's header. */
#ifndef GPUGLUE_BACKENDS_NVML_TYPES_H
#define GPUGLUE_BACKENDS_NVML_TYPES_H

enum {
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_TEMPERATURE_GPU = 0,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEM = 2,
};

/* Why the clocks are low. */
enum {
    NVML_REASON_GPU_IDLE = 0x1,
    NVML_REASON_APPLICATIONS_CLOCKS = 0x2,
    NVML_REASON_SW_POWER_CAP = 0x4,
    NVML_REASON_HW_SLOWDOWN = 0x8,
    NVML_REASON_SYNC_BOOST = 0x10,
    NVML_REASON_SW_THERMAL = 0x20,
    NVML_REASON_HW_THERMAL = 0x40,
    NVML_REASON_HW_POWER_BRAKE = 0x80,
    NVML_REASON_DISPLAY_CLOCK = 0x100,
};

struct nvml_utilization {
    unsigned gpu, memory; /* % */
};

struct nvml_memory {
    unsigned long long total, free, used; /* bytes */
};

/* Its `used` leaves out what the driver reserves, as nvidia-smi does. */
struct nvml_memory_2 {
    unsigned version; /* NVML_MEMORY_2 */
    unsigned long long total, reserved, free, used;
};
#define NVML_MEMORY_2 (sizeof(struct nvml_memory_2) | 2u << 24)

struct nvml_process {
    unsigned pid;
    unsigned long long memory; /* bytes; all bits set: not reported */
    unsigned gpu_instance, compute_instance;
};

#endif
