/* zes_types.h: numbers and structs of Level Zero's Sysman. tests/headers compares them with Level Zero's headers. */
#ifndef GPUGLUE_BACKENDS_ZES_TYPES_H
#define GPUGLUE_BACKENDS_ZES_TYPES_H

#include <stdint.h>

enum {
    ZES_STRUCTURE_TYPE_PCI_PROPERTIES = 0x2,
    ZES_STRUCTURE_TYPE_ENGINE_PROPERTIES = 0x5,
    ZES_STRUCTURE_TYPE_FREQ_PROPERTIES = 0x9,
    ZES_STRUCTURE_TYPE_MEM_PROPERTIES = 0xb,
    ZES_STRUCTURE_TYPE_POWER_PROPERTIES = 0xd,
    ZES_STRUCTURE_TYPE_TEMP_PROPERTIES = 0x14,
    ZES_STRUCTURE_TYPE_PROCESS_STATE = 0x16,
    ZES_STRUCTURE_TYPE_FREQ_STATE = 0x1b,
    ZES_STRUCTURE_TYPE_MEM_STATE = 0x1e,
    ZES_ENGINE_GROUP_ALL = 0,
    ZES_ENGINE_GROUP_COMPUTE_ALL = 1,
    ZES_FREQ_DOMAIN_GPU = 0,
    ZES_FREQ_DOMAIN_MEMORY = 1,
    ZES_TEMP_SENSORS_GLOBAL = 0,
    ZES_TEMP_SENSORS_GPU = 1,
    ZES_FREQ_THROTTLE_REASON_FLAG_AVE_PWR_CAP = 0x1,
    ZES_FREQ_THROTTLE_REASON_FLAG_BURST_PWR_CAP = 0x2,
    ZES_FREQ_THROTTLE_REASON_FLAG_CURRENT_LIMIT = 0x4,
    ZES_FREQ_THROTTLE_REASON_FLAG_THERMAL_LIMIT = 0x8,
    ZES_FREQ_THROTTLE_REASON_FLAG_PSU_ALERT = 0x10,
    ZES_FREQ_THROTTLE_REASON_FLAG_SW_RANGE = 0x20,
    ZES_FREQ_THROTTLE_REASON_FLAG_HW_RANGE = 0x40,
};

struct zes_pci {
    int stype;
    void *next;
    uint32_t domain, bus, device, function;
    struct {
        int32_t generation, width;
        int64_t bandwidth;
    } speed;
    uint8_t has[3]; /* counters of bandwidth, packets, replays */
};

struct zes_uuid {
    uint8_t id[16];
};

struct zes_memory_properties {
    int stype;
    void *next;
    int type;
    uint8_t on_subdevice;
    uint32_t subdevice;
    int location;
    uint64_t size;
    int32_t bus_width, channels;
};

struct zes_power {
    int stype;
    void *next;
    uint8_t on_subdevice;
    uint32_t subdevice;
    uint8_t can_control, has_threshold_event;
    int32_t limit, least, most;
};

struct zes_memory {
    int stype;
    const void *next;
    int health;
    uint64_t free, size; /* bytes */
};

struct zes_engine {
    int stype;
    void *next;
    int type;
    uint8_t on_subdevice;
    uint32_t subdevice;
};

/* Counters: the mean is the difference of two by the difference of their times. */
struct zes_counter {
    uint64_t value, time; /* microseconds or microjoules; microseconds */
};

struct zes_frequency {
    int stype;
    void *next;
    int type;
    uint8_t on_subdevice;
    uint32_t subdevice;
    uint8_t can_control, has_throttle_event;
    double min, max;
};

struct zes_frequency_state {
    int stype;
    const void *next;
    double voltage, request, tdp, efficient, actual; /* MHz; negative: unknown */
    uint32_t reasons;
};

struct zes_temperature {
    int stype;
    void *next;
    int type;
    uint8_t on_subdevice;
    uint32_t subdevice;
    double max;
    uint8_t has[3]; /* events: critical, two thresholds */
};

struct zes_process {
    int stype;
    const void *next;
    uint32_t pid;
    uint64_t memory, shared; /* bytes */
    uint32_t engines;
};

#endif
