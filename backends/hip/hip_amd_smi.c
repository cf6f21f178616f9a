/* hip_amd_smi.c: statistics of a device from AMD SMI, which replaces ROCm SMI since ROCm 7. */
#include "../cuda_hip/monitor.h"
#include "amd_smi_types.h"
#include "hip_driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HANDLES_MOST 256u
#define PROCESSES_MOST 4096u
#define DEVICES_MOST 64
#define THERMAL_BITS 24

struct amd_smi {
#define OWN(slot, parameters, symbol, need) int(*slot) parameters;
#include "amd_smi.def"
#undef OWN
};

static const struct gg_symbol amd_smi_symbols[] = {
#define OWN(slot, parameters, symbol, need) {#symbol, offsetof(struct amd_smi, slot), need},
#include "amd_smi.def"
#undef OWN
};

/* ---- the library --------------------------------------------------------------------------------- */

/* Structs differ between major versions. */
static uint32_t amd_smi_major(const struct amd_smi *smi)
{
    struct amd_smi_version version = {0, 0, 0, NULL};
    return smi->version(&version) ? 0 : version.major;
}

static gg_status amd_smi_start(const void *table)
{
    const struct amd_smi *smi = table;
    const uint32_t major = amd_smi_major(smi);
    if (major != 26 && major != 27)
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL,
                               "AMD SMI (libamd_smi.so) has the version %" PRIu32
                               ": expected 26 or 27, of ROCm 7 and later",
                               major);
    const int code = smi->init(AMDSMI_INIT_AMD_GPUS);
    return code ? cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL,
                                  "AMD SMI (libamd_smi.so) returned %d when it was initialised: "
                                  "check that amd-smi works",
                                  code)
                : GG_OK;
}

static const char *const amd_smi_names[] = {"libamd_smi.so.27", "libamd_smi.so.26", NULL};
static struct cuhip_monitor amd_smi_monitor = {
    .library = {.struct_size = sizeof(struct gg_library_spec),
                .flags = GG_LIBRARY_ADDED_DIRECTORIES,
                .names = amd_smi_names,
                .variable = "GPUGLUE_AMD_SMI_LIBRARY",
                .stem = "libamd_smi",
                .directories = hip_smi_directories},
    .symbols = amd_smi_symbols,
    .symbol_count = sizeof amd_smi_symbols / sizeof amd_smi_symbols[0],
    .table_size = sizeof(struct amd_smi),
    .start = amd_smi_start};

gg_status hip_amd_smi_open(void)
{
    const void *table;
    return cuhip_monitor_open(&amd_smi_monitor, &table);
}

/* ---- the device ---------------------------------------------------------------------------------- */

/* The domain is above bit 16. Partitions of a GPU are on one socket. */
static void amd_smi_find_on_socket(const struct amd_smi *smi, void *socket,
                                   struct hip_search *search, void **processor)
{
    void *processors[HANDLES_MOST];
    uint32_t count = HANDLES_MOST;
    uint64_t address;
    if (smi->processors(socket, &count, processors))
        return;
    for (uint32_t i = 0; i < count && i < HANDLES_MOST; i++)
        if (!smi->pci(processors[i], &address) && hip_search_add(search, address >> 16, address))
            *processor = processors[i];
}

static gg_status amd_smi_find(const struct amd_smi *smi, const struct gg_device_info *facts,
                              void **processor)
{
    struct hip_search search = hip_search_begin(facts);
    void *sockets[HANDLES_MOST];
    uint32_t count = HANDLES_MOST;
    const int code = smi->sockets(&count, sockets);
    for (uint32_t i = 0; !code && i < count && i < HANDLES_MOST; i++)
        amd_smi_find_on_socket(smi, sockets[i], &search, processor);
    return hip_search_end(&search, code, "AMD SMI (libamd_smi.so)");
}

/* ---- the values: one that a function does not return stays unknown ---------------------------------- */

static bool amd_smi_is_known(uint64_t value)
{
    return value != UINT16_MAX && value != UINT32_MAX && value != UINT64_MAX;
}

static void amd_smi_add_load(const struct amd_smi *smi, void *processor,
                             struct gg_device_stats *stats)
{
    struct amd_smi_activity percent;
    memset(&percent, 0xff, sizeof percent);
    if (smi->activity && !smi->activity(processor, &percent)) {
        if (amd_smi_is_known(percent.compute))
            stats->compute_utilization = percent.compute;
        if (amd_smi_is_known(percent.memory))
            stats->memory_utilization = percent.memory;
    }
    if (smi->memory_total)
        (void)smi->memory_total(processor, AMDSMI_MEM_TYPE_VRAM, &stats->memory_total);
    if (smi->memory_used)
        (void)smi->memory_used(processor, AMDSMI_MEM_TYPE_VRAM, &stats->memory_used);
}

static void amd_smi_add_power(const struct amd_smi *smi, void *processor,
                              struct gg_device_stats *stats)
{
    struct amd_smi_power watts;
    memset(&watts, 0xff, sizeof watts);
    if (!smi->power || smi->power(processor, &watts))
        return;
    const uint64_t in_order[] = {watts.current, watts.average, watts.socket};
    for (int i = 2; i >= 0; i--)
        if (amd_smi_is_known(in_order[i]))
            stats->power = (double)in_order[i];
}

/* Not all GPUs have a sensor at the hottest point. */
static void amd_smi_add_temperature(const struct amd_smi *smi, void *processor,
                                    struct gg_device_stats *stats)
{
    int64_t degrees = 0;
    if (smi->temperature &&
        (!smi->temperature(processor, AMDSMI_TEMPERATURE_TYPE_HOTSPOT, AMDSMI_TEMP_CURRENT,
                           &degrees) ||
         !smi->temperature(processor, AMDSMI_TEMPERATURE_TYPE_EDGE, AMDSMI_TEMP_CURRENT, &degrees)))
        stats->temperature = (double)degrees;
}

static void amd_smi_add_clock(const struct amd_smi *smi, void *processor, int type, double *clock)
{
    struct amd_smi_clock found;
    memset(&found, 0xff, sizeof found);
    if (smi->clock && !smi->clock(processor, type, &found) && amd_smi_is_known(found.current))
        *clock = found.current;
}

/* Bits 0 to 15 are limits of power, 16 to 31 of current, 32 to 55 of temperature. */
static uint32_t amd_smi_reasons_of_bits(uint64_t bits)
{
    const uint64_t thermal = bits >> 32 & ((UINT64_C(1) << THERMAL_BITS) - 1);
    return (bits & 0xffff ? GG_THROTTLE_POWER : 0) |
           (bits >> 16 & 0xffff ? GG_THROTTLE_CURRENT : 0) | (thermal ? GG_THROTTLE_THERMAL : 0) |
           (bits >> (32 + THERMAL_BITS) ? GG_THROTTLE_HARDWARE : 0);
}

/* Counters of a device at the previous call, by the device's handle. */
static struct {
    pthread_mutex_t lock;
    struct {
        void *processor;
        struct amd_smi_counters counters;
    } device[DEVICES_MOST];
} amd_smi_previous = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Exchange the counters with the previous ones; false if there are none. */
static bool amd_smi_exchange(void *processor, struct amd_smi_counters *counters)
{
    const struct amd_smi_counters now = *counters;
    bool found = false, stored = false;
    pthread_mutex_lock(&amd_smi_previous.lock);
    for (int i = 0; i < DEVICES_MOST && !stored; i++) {
        void *const owner = amd_smi_previous.device[i].processor;
        if (owner && owner != processor)
            continue;
        found = owner;
        *counters = amd_smi_previous.device[i].counters;
        amd_smi_previous.device[i].processor = processor;
        amd_smi_previous.device[i].counters = now;
        stored = true;
    }
    pthread_mutex_unlock(&amd_smi_previous.lock);
    return found;
}

static bool counter_grew(uint64_t before, uint64_t now)
{
    return before != UINT64_MAX && now != UINT64_MAX && now > before;
}

/* Unknown at the first call, which has nothing to compare with. */
static void amd_smi_add_counted(void *processor, const struct amd_smi_counters *now,
                                struct gg_device_stats *stats)
{
    struct amd_smi_counters before = *now;
    if (now->elapsed == UINT64_MAX || !amd_smi_exchange(processor, &before))
        return;
    const bool hot = counter_grew(before.hot, now->hot) ||
                     counter_grew(before.socket_thermal, now->socket_thermal) ||
                     counter_grew(before.regulator_thermal, now->regulator_thermal) ||
                     counter_grew(before.memory_thermal, now->memory_thermal);
    stats->throttle_reasons = (counter_grew(before.power, now->power) ? GG_THROTTLE_POWER : 0) |
                              (hot ? GG_THROTTLE_THERMAL : 0);
}

static void amd_smi_add_reasons(const struct amd_smi *smi, void *processor,
                                struct gg_device_stats *stats)
{
    union amd_smi_metrics metrics;
    memset(&metrics, 0xff, sizeof metrics);
    if (!smi->metrics || smi->metrics(processor, &metrics))
        return;
    const bool older = amd_smi_major(smi) == 26;
    const uint64_t bits = older ? metrics.v26.reasons : metrics.v27.reasons;
    if (bits != UINT64_MAX)
        stats->throttle_reasons = amd_smi_reasons_of_bits(bits);
    else
        amd_smi_add_counted(processor, older ? &metrics.v26.counters : &metrics.v27.counters, stats);
}

static void amd_smi_take_processes(const struct amd_smi_process *processes, uint32_t count,
                                   struct gg_device_stats *stats)
{
    stats->process_count = (int32_t)count;
    for (uint32_t i = 0; i < count && i < stats->process_room; i++)
        stats->processes[i] =
            (struct gg_process_stats){.pid = processes[i].pid, .memory = processes[i].vram};
}

static void amd_smi_add_processes(const struct amd_smi *smi, void *processor,
                                  struct gg_device_stats *stats)
{
    uint32_t count = 0, room;
    if (!smi->processes || smi->processes(processor, &count, NULL) || count > PROCESSES_MOST)
        return;
    room = count = count + 8; /* some may have started since */
    struct amd_smi_process *processes = calloc(room, sizeof *processes);
    if (!processes)
        return;
    if (!smi->processes(processor, &count, processes) && count <= room)
        amd_smi_take_processes(processes, count, stats);
    free(processes);
}

gg_status hip_amd_smi_stats(const struct gg_device_info *facts, struct gg_device_stats *stats)
{
    const void *table;
    void *processor = NULL;
    gg_status status = cuhip_monitor_open(&amd_smi_monitor, &table);
    if (status)
        return status;
    const struct amd_smi *smi = table;
    if ((status = amd_smi_find(smi, facts, &processor)))
        return status;
    snprintf(stats->source, sizeof stats->source, "AMD SMI");
    amd_smi_add_load(smi, processor, stats);
    amd_smi_add_power(smi, processor, stats);
    amd_smi_add_temperature(smi, processor, stats);
    amd_smi_add_clock(smi, processor, AMDSMI_CLK_TYPE_SYS, &stats->compute_clock);
    amd_smi_add_clock(smi, processor, AMDSMI_CLK_TYPE_MEM, &stats->memory_clock);
    amd_smi_add_reasons(smi, processor, stats);
    amd_smi_add_processes(smi, processor, stats);
    return GG_OK;
}
