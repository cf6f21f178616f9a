/* hip_stats.c: statistics of a device from AMD SMI or, before ROCm 7, from ROCm SMI, which both read the kernel driver's
 * files. Of HIP it reads only the version. */
#include "../cuda_hip/monitor.h"
#include "hip_driver.h"
#include "rocm_smi_types.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROCESSES_MOST 4096u

struct rocm_smi {
#define OWN(slot, parameters, symbol, need) int(*slot) parameters;
#include "rocm_smi.def"
#undef OWN
};

static const struct gg_symbol rocm_smi_symbols[] = {
#define OWN(slot, parameters, symbol, need) {#symbol, offsetof(struct rocm_smi, slot), need},
#include "rocm_smi.def"
#undef OWN
};

/* ---- the library --------------------------------------------------------------------------------- */

static gg_status rocm_smi_start(const void *table)
{
    const int code = ((const struct rocm_smi *)table)->init(0);
    return code ? cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL,
                                  "ROCm SMI (librocm_smi64.so) returned %d when it was "
                                  "initialised: check that rocm-smi works",
                                  code)
                : GG_OK;
}

/* Debian's has the number 1. */
static const char *const rocm_smi_names[] = {"librocm_smi64.so.8",
                                             "librocm_smi64.so.7",
                                             "librocm_smi64.so.6",
                                             "librocm_smi64.so.5",
                                             "librocm_smi64.so.1",
                                             "librocm_smi64.so",
                                             NULL};
const char *const hip_smi_directories[] = {"$ROCM_PATH/lib", "/opt/rocm/lib", "/opt/rocm-*/lib",
                                           "/opt/rocm/core-*/lib", NULL};
static struct cuhip_monitor rocm_smi_monitor = {
    .library = {.struct_size = sizeof(struct gg_library_spec),
                .flags = GG_LIBRARY_ADDED_DIRECTORIES,
                .names = rocm_smi_names,
                .variable = "GPUGLUE_ROCM_SMI_LIBRARY",
                .stem = "librocm_smi64",
                .directories = hip_smi_directories},
    .symbols = rocm_smi_symbols,
    .symbol_count = sizeof rocm_smi_symbols / sizeof rocm_smi_symbols[0],
    .table_size = sizeof(struct rocm_smi),
    .other = "GPUGLUE_AMD_SMI_LIBRARY",
    .start = rocm_smi_start};

/* ---- the device ---------------------------------------------------------------------------------- */

struct hip_search hip_search_begin(const struct gg_device_info *facts)
{
    struct hip_search search = {.siblings = 0};
    snprintf(search.address, sizeof search.address, "%s", facts->pci_bus_id);
    return search;
}

bool hip_search_add(struct hip_search *search, uint64_t domain, uint64_t address)
{
    char text[32];
    const int length = snprintf(text, sizeof text, "%04" PRIx64 ":%02x:%02x.%x", domain,
                                (unsigned)(address >> 8 & 0xff), (unsigned)(address >> 3 & 0x1f),
                                (unsigned)(address & 7));
    if (strncmp(text, search->address, (size_t)length - 1) != 0)
        return false;
    search->siblings++;
    if (strcmp(text, search->address) != 0)
        return false;
    search->matches++;
    return true;
}

/* Before 6.2 HIP writes 0 as the function of every address. */
static bool search_knows_function(const struct hip_search *search)
{
    int version = 0;
    return search->address[strlen(search->address) - 1] != '0' ||
           (!cuhip_driver.version(&version) && version >= 6 * HIP_MAJOR + 2 * HIP_MINOR);
}

gg_status hip_search_end(const struct hip_search *search, int code, const char *library)
{
    if (!search->matches)
        return cuhip_api->fail(
            GG_ERR_UNSUPPORTED, NULL,
            "%s returned %d when it was asked for the device at %s: check that its command works",
            library, code, search->address);
    if (search->matches > 1 || (search->siblings > 1 && !search_knows_function(search)))
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL,
                               "%s lists %u partitions of the GPU at %s, and HIP does not report "
                               "which of them this device is: see amd-smi or rocm-smi",
                               library, search->siblings, search->address);
    return GG_OK;
}

/* The domain is in the upper half. Bits 28 to 31 may have the number of a partition, which HIP does not report. */
static gg_status rocm_smi_find(const struct rocm_smi *smi, const struct gg_device_info *facts,
                               uint32_t *index)
{
    struct hip_search search = hip_search_begin(facts);
    uint32_t count = 0;
    uint64_t address = 0;
    const int code = smi->device_count(&count);
    for (uint32_t i = 0; !code && i < count; i++)
        if (!smi->pci(i, &address) && hip_search_add(&search, address >> 32, address))
            *index = i;
    return hip_search_end(&search, code, "ROCm SMI (librocm_smi64.so)");
}

/* ---- the values: one that a function does not return stays unknown ---------------------------------- */

static void rocm_smi_add_load(const struct rocm_smi *smi, uint32_t device,
                              struct gg_device_stats *stats)
{
    uint32_t percent = 0;
    if (smi->busy && !smi->busy(device, &percent))
        stats->compute_utilization = percent;
    if (smi->memory_busy && !smi->memory_busy(device, &percent))
        stats->memory_utilization = percent;
    if (smi->memory_total)
        (void)smi->memory_total(device, RSMI_MEM_TYPE_VRAM, &stats->memory_total);
    if (smi->memory_used)
        (void)smi->memory_used(device, RSMI_MEM_TYPE_VRAM, &stats->memory_used);
}

/* Newer GPUs report the power of the socket, older ones an average. The junction is the hottest point; not all GPUs
 * have that sensor. */
static void rocm_smi_add_sensors(const struct rocm_smi *smi, uint32_t device,
                                 struct gg_device_stats *stats)
{
    uint64_t microwatts = 0;
    int64_t millidegrees = 0;
    if ((smi->power_socket && !smi->power_socket(device, &microwatts)) ||
        (smi->power_average && !smi->power_average(device, 0, &microwatts)))
        stats->power = (double)microwatts / 1e6;
    if (smi->temperature &&
        (!smi->temperature(device, RSMI_TEMP_TYPE_JUNCTION, RSMI_TEMP_CURRENT, &millidegrees) ||
         !smi->temperature(device, RSMI_TEMP_TYPE_EDGE, RSMI_TEMP_CURRENT, &millidegrees)))
        stats->temperature = (double)millidegrees / 1000;
}

/* The struct of ROCm 6 begins with one member more: then the third number is an index, and not the lower half of a
 * frequency. */
static double frequencies_current(const union rocm_smi_frequencies *f)
{
    if (f->v5.frequency[0] >= sizeof f->v6.frequency / sizeof f->v6.frequency[0])
        return f->v5.current < 32 ? (double)f->v5.frequency[f->v5.current] / 1e6 : -1;
    return f->v6.current < 33 ? (double)f->v6.frequency[f->v6.current] / 1e6 : -1;
}

static void rocm_smi_add_clocks(const struct rocm_smi *smi, uint32_t device,
                                struct gg_device_stats *stats)
{
    union rocm_smi_frequencies frequencies;
    memset(&frequencies, 0, sizeof frequencies);
    if (smi->clock && !smi->clock(device, RSMI_CLK_TYPE_SYS, &frequencies))
        stats->compute_clock = frequencies_current(&frequencies);
    memset(&frequencies, 0, sizeof frequencies);
    if (smi->clock && !smi->clock(device, RSMI_CLK_TYPE_MEM, &frequencies))
        stats->memory_clock = frequencies_current(&frequencies);
}

/* The list has the processes of all devices. */
static void rocm_smi_take_process(const struct rocm_smi *smi, uint32_t device, uint32_t pid,
                                  struct gg_device_stats *stats)
{
    union {
        struct rocm_smi_process process;
        char room[256]; /* for members of later versions */
    } found = {.room = {0}};
    if (smi->process_on(pid, device, &found.process))
        return;
    if ((uint32_t)stats->process_count < stats->process_room)
        stats->processes[stats->process_count] =
            (struct gg_process_stats){.pid = pid, .memory = found.process.vram};
    stats->process_count++;
}

static void rocm_smi_add_processes(const struct rocm_smi *smi, uint32_t device,
                                   struct gg_device_stats *stats)
{
    uint32_t count = 0, room;
    if (!smi->processes || !smi->process_on || smi->processes(NULL, &count) ||
        count > PROCESSES_MOST)
        return;
    room = count = count + 8; /* some may have started since */
    struct rocm_smi_process *processes = calloc(room, sizeof *processes);
    if (!processes)
        return;
    if (!smi->processes(processes, &count)) {
        stats->process_count = 0;
        for (uint32_t i = 0; i < count && i < room; i++)
            rocm_smi_take_process(smi, device, processes[i].pid, stats);
    }
    free(processes);
}

static gg_status rocm_smi_stats(const struct gg_device_info *facts, struct gg_device_stats *stats)
{
    const void *table;
    uint32_t device = 0;
    gg_status status = cuhip_monitor_open(&rocm_smi_monitor, &table);
    if (status)
        return status;
    const struct rocm_smi *smi = table;
    if ((status = rocm_smi_find(smi, facts, &device)))
        return status;
    snprintf(stats->source, sizeof stats->source, "ROCm SMI");
    rocm_smi_add_load(smi, device, stats);
    rocm_smi_add_sensors(smi, device, stats);
    rocm_smi_add_clocks(smi, device, stats);
    rocm_smi_add_processes(smi, device, stats);
    return GG_OK;
}

/* ---- which of the two libraries -------------------------------------------------------------------- */

static bool stats_variable_is_set(const char *name)
{
    const char *value = cuhip_api->get_env(name);
    return value && *value;
}

/* A variable that names a file of one library chooses that library: an error in it is not hidden by the other one. Once
 * ROCm SMI is in use, AMD SMI is not searched for again. */
static bool stats_use_amd_smi(void)
{
    if (stats_variable_is_set("GPUGLUE_AMD_SMI_LIBRARY"))
        return true;
    return !stats_variable_is_set("GPUGLUE_ROCM_SMI_LIBRARY") &&
           !atomic_load(&rocm_smi_monitor.table) && hip_amd_smi_open() == GG_OK;
}

bool hip_has_stats(void)
{
    const void *table;
    return stats_use_amd_smi() ? hip_amd_smi_open() == GG_OK
                               : cuhip_monitor_open(&rocm_smi_monitor, &table) == GG_OK;
}

gg_status hip_stats(const struct gg_device_info *facts, struct gg_device_stats *stats)
{
    return stats_use_amd_smi() ? hip_amd_smi_stats(facts, stats) : rocm_smi_stats(facts, stats);
}
