/* cuda_stats.c: statistics of a device from NVML, the library below nvidia-smi. It does not touch the CUDA driver. */
#include "../cuda_hip/monitor.h"
#include "cuda_stats.h"
#include "nvml_types.h"

#include <stdio.h>
#include <stdlib.h>

#define PROCESSES_MOST (1u << 16)

struct nvml {
#define OWN(slot, parameters, symbol, need) int(*slot) parameters;
#include "nvml.def"
#undef OWN
};

static const struct gg_symbol nvml_symbols[] = {
#define OWN(slot, parameters, symbol, need) {#symbol, offsetof(struct nvml, slot), need},
#include "nvml.def"
#undef OWN
};

/* ---- the library --------------------------------------------------------------------------------- */

static gg_status nvml_fail(int code, const char *what)
{
    return cuhip_api->fail(
        GG_ERR_UNSUPPORTED, NULL,
        "NVML (libnvidia-ml.so.1) returned %d when %s: check that nvidia-smi works", code, what);
}

static gg_status nvml_start(const void *table)
{
    const int code = ((const struct nvml *)table)->init();
    return code ? nvml_fail(code, "it was initialised") : GG_OK;
}

static const char *const nvml_names[] = {"libnvidia-ml.so.1", NULL};
static const char *const nvml_directories[] = {"/usr/lib/wsl/lib", "/usr/local/nvidia/lib64",
                                               "/run/opengl-driver/lib", NULL};
static struct cuhip_monitor nvml_monitor = {
    .library = {.struct_size = sizeof(struct gg_library_spec),
                .names = nvml_names,
                .variable = "GPUGLUE_NVML_LIBRARY",
                .stem = "libnvidia-ml",
                .directories = nvml_directories},
    .symbols = nvml_symbols,
    .symbol_count = sizeof nvml_symbols / sizeof nvml_symbols[0],
    .table_size = sizeof(struct nvml),
    .start = nvml_start};

bool cuda_has_stats(void)
{
    const void *table;
    return cuhip_monitor_open(&nvml_monitor, &table) == GG_OK;
}

/* ---- the device ---------------------------------------------------------------------------------- */

/* "GPU-8-4-4-4-12", or "MIG-…" for a slice of a GPU. */
static void nvml_format_uuid(const char *prefix, const uint8_t u[16], char text[48])
{
    snprintf(text, 48, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             prefix, u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11],
             u[12], u[13], u[14], u[15]);
}

/* The PCI address is that of the whole GPU: where there is a UUID, it alone identifies a slice. */
static int nvml_find(const struct nvml *nvml, const struct gg_device_info *facts, void **device)
{
    static const char *const prefixes[] = {"GPU", "MIG"};
    char uuid[48];
    int code = -1;
    if (!(facts->flags & GG_DEVICE_HAS_UUID))
        return nvml->by_pci(facts->pci_bus_id, device);
    for (int i = 0; code && i < 2; i++) {
        nvml_format_uuid(prefixes[i], facts->uuid, uuid);
        code = nvml->by_uuid(uuid, device);
    }
    return code;
}

/* CUDA before 11.4 reports the UUID of the GPU for its slices. CUDA uses no whole GPU that has slices. */
static bool nvml_has_slices(const struct nvml *nvml, void *device)
{
    unsigned current = 0, pending = 0;
    return nvml->mig_mode && !nvml->mig_mode(device, &current, &pending) && current;
}

/* ---- the values: one that a function does not return stays unknown ---------------------------------- */

static void nvml_add_load(const struct nvml *nvml, void *device, struct gg_device_stats *stats)
{
    struct nvml_utilization rates = {0, 0};
    if (!nvml->utilization || nvml->utilization(device, &rates))
        return;
    stats->compute_utilization = rates.gpu;
    stats->memory_utilization = rates.memory;
}

static void nvml_add_memory(const struct nvml *nvml, void *device, struct gg_device_stats *stats)
{
    struct nvml_memory_2 newer = {.version = NVML_MEMORY_2};
    struct nvml_memory memory = {0, 0, 0};
    if (nvml->memory_2 && !nvml->memory_2(device, &newer)) {
        stats->memory_total = newer.total;
        stats->memory_used = newer.used;
    } else if (nvml->memory && !nvml->memory(device, &memory)) {
        stats->memory_total = memory.total;
        stats->memory_used = memory.used;
    }
}

static void nvml_add_sensors(const struct nvml *nvml, void *device, struct gg_device_stats *stats)
{
    unsigned value = 0;
    if (nvml->power && !nvml->power(device, &value))
        stats->power = value / 1000.0;
    if (nvml->temperature && !nvml->temperature(device, NVML_TEMPERATURE_GPU, &value))
        stats->temperature = value;
    if (nvml->clock && !nvml->clock(device, NVML_CLOCK_SM, &value))
        stats->compute_clock = value;
    if (nvml->clock && !nvml->clock(device, NVML_CLOCK_MEM, &value))
        stats->memory_clock = value;
}

static const struct {
    unsigned theirs, ours;
} nvml_reasons[] = {
    {NVML_REASON_GPU_IDLE, GG_THROTTLE_IDLE},
    {NVML_REASON_APPLICATIONS_CLOCKS | NVML_REASON_DISPLAY_CLOCK, GG_THROTTLE_SETTING},
    {NVML_REASON_SW_POWER_CAP, GG_THROTTLE_POWER},
    {NVML_REASON_HW_SLOWDOWN, GG_THROTTLE_HARDWARE},
    {NVML_REASON_SYNC_BOOST, GG_THROTTLE_SYNC},
    {NVML_REASON_SW_THERMAL | NVML_REASON_HW_THERMAL, GG_THROTTLE_THERMAL},
    {NVML_REASON_HW_POWER_BRAKE, GG_THROTTLE_SUPPLY},
};

static void nvml_add_reasons(const struct nvml *nvml, void *device, struct gg_device_stats *stats)
{
    unsigned long long reasons = 0;
    int (*read)(void *, unsigned long long *) =
        nvml->event_reasons ? nvml->event_reasons : nvml->throttle_reasons;
    if (!read || read(device, &reasons))
        return;
    stats->throttle_reasons = 0;
    for (size_t i = 0; i < sizeof nvml_reasons / sizeof nvml_reasons[0]; i++)
        if (reasons & nvml_reasons[i].theirs)
            stats->throttle_reasons |= nvml_reasons[i].ours;
}

static void nvml_take_processes(const struct nvml_process *processes, unsigned count,
                                struct gg_device_stats *stats)
{
    stats->process_count = (int32_t)count;
    for (unsigned i = 0; i < count && i < stats->process_room; i++)
        stats->processes[i] =
            (struct gg_process_stats){.pid = processes[i].pid, .memory = processes[i].memory};
}

/* Processes may start between two calls: each attempt has more room than the last one would have needed. */
static void nvml_add_processes(const struct nvml *nvml, void *device, struct gg_device_stats *stats)
{
    unsigned room = 32, count;
    int code = nvml->processes ? NVML_ERROR_INSUFFICIENT_SIZE : -1;
    while (code == NVML_ERROR_INSUFFICIENT_SIZE && room < PROCESSES_MOST) {
        struct nvml_process *processes = calloc(room, sizeof *processes);
        count = room;
        if (!processes)
            return;
        code = nvml->processes(device, &count, processes);
        if (!code && count <= room)
            nvml_take_processes(processes, count, stats);
        free(processes);
        room = count < PROCESSES_MOST && count > room ? 2 * count : 2 * room;
    }
}

gg_status cuda_stats(const struct gg_device_info *facts, struct gg_device_stats *stats)
{
    const void *table;
    void *device = NULL;
    const gg_status status = cuhip_monitor_open(&nvml_monitor, &table);
    if (status)
        return status;
    const struct nvml *nvml = table;
    const int code = nvml_find(nvml, facts, &device);
    if (code)
        return nvml_fail(code, "it was asked for this device");
    if (nvml_has_slices(nvml, device))
        return cuhip_api->fail(
            GG_ERR_UNSUPPORTED, NULL,
            "the GPU at %s has MIG slices, and this driver does not report which "
            "of them the device is: expected CUDA 11.4 or newer",
            facts->pci_bus_id);
    snprintf(stats->source, sizeof stats->source, "NVML");
    nvml_add_load(nvml, device, stats);
    nvml_add_memory(nvml, device, stats);
    nvml_add_sensors(nvml, device, stats);
    nvml_add_reasons(nvml, device, stats);
    nvml_add_processes(nvml, device, stats);
    return GG_OK;
}
