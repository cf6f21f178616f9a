/* stats.c: statistics of a device from Level Zero's Sysman. It does not touch the contexts and lists of ze.h. */
#include "ze.h"
#include "zes_types.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 32 /* sensors of one kind */
#define DEVICES 128
#define PROCESSES_MOST 65536u

struct sysman {
#define FN(slot, parameters, symbol, need) int(*slot) parameters;
#include "zes.def"
#undef FN
};

static const struct gg_symbol sysman_symbols[] = {
#define FN(slot, parameters, symbol, need) {#symbol, offsetof(struct sysman, slot), need},
#include "zes.def"
#undef FN
};

/* Load and power are counters, whose previous values are kept, by ordinal. */
static struct {
    pthread_mutex_t lock;
    struct zes_counter load[ZE_MAX_GPUS], energy[ZE_MAX_GPUS];
} sysman_previous = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic(struct sysman *) sysman_ready;

/* ---- the library: the loader, which is loaded already ----------------------------------------------- */

static gg_status sysman_fail(int code, const char *what)
{
    return ze_api->fail(GG_ERR_UNSUPPORTED, NULL,
                        "Sysman (zes* of libze_loader.so.1) returned 0x%x when %s", (unsigned)code,
                        what);
}

static const char *const sysman_names[] = {"libze_loader.so.1", NULL};
static const char *const sysman_directories[] = {"$CONDA_PREFIX/lib", NULL};
static const struct gg_library_spec sysman_library = {.struct_size = sizeof sysman_library,
                                                      .flags = GG_LIBRARY_ADDED_DIRECTORIES,
                                                      .names = sysman_names,
                                                      .variable = "GPUGLUE_ZES_LIBRARY",
                                                      .stem = "libze_loader",
                                                      .directories = sysman_directories};

/* A loader before 1.9 has no zesInit. Its devices are those of zeDeviceGet, if the variable was set before zeInit. */
static gg_status sysman_start(const struct sysman *sysman)
{
    const char *enabled = ze_api->get_env("ZES_ENABLE_SYSMAN");
    if (!sysman->init || !sysman->driver_get || !sysman->device_get)
        return enabled && !strcmp(enabled, "1")
                   ? GG_OK
                   : ze_api->fail(GG_ERR_UNSUPPORTED, NULL,
                                  "this Level Zero loader has no zesInit: update it, or start the "
                                  "program with "
                                  "ZES_ENABLE_SYSMAN=1");
    const int code = sysman->init(0);
    return code ? sysman_fail(code, "it was initialised") : GG_OK;
}

static gg_status sysman_load(struct sysman *sysman)
{
    char reason[512] = "";
    struct gg_library library = {.struct_size = sizeof library};
    gg_probe_status status =
        ze_api->library_open(&sysman_library, NULL, &library, reason, sizeof reason);
    if (status == GG_PROBE_AVAILABLE)
        status = ze_api->library_resolve(&library, sysman_symbols,
                                         sizeof sysman_symbols / sizeof sysman_symbols[0], sysman,
                                         reason, sizeof reason);
    return status == GG_PROBE_AVAILABLE
               ? sysman_start(sysman)
               : ze_api->fail(GG_ERR_UNSUPPORTED, NULL, "Sysman cannot be used: %s", reason);
}

/* Without a lock, because the initialisation may take seconds: if two threads are first, both initialise. */
static gg_status sysman_open(const struct sysman **out)
{
    struct sysman *ready = atomic_load_explicit(&sysman_ready, memory_order_acquire), *loaded;
    *out = ready;
    if (ready)
        return GG_OK;
    loaded = calloc(1, sizeof *loaded);
    if (!loaded)
        return ze_no_memory("the functions of Sysman");
    const gg_status status = sysman_load(loaded);
    if (status || !atomic_compare_exchange_strong(&sysman_ready, &ready, loaded)) {
        free(loaded);
        loaded = ready;
    }
    *out = loaded;
    return status;
}

bool ze_has_stats(void)
{
    const struct sysman *sysman;
    return sysman_open(&sysman) == GG_OK && (ze.pci_properties || !sysman->init);
}

/* ---- the device: a card, or a tile of one ---- */

struct sysman_device {
    void *handle; /* of the card */
    bool is_tile;
    uint32_t tile;
};

/* Whether a sensor is the device's own. The sensors of a card are those of no tile. */
static bool sysman_owns(const struct sysman_device *device, bool on_subdevice, uint32_t subdevice)
{
    return device->is_tile ? on_subdevice && subdevice == device->tile : !on_subdevice;
}

static bool sysman_is_at(const struct sysman *sysman, void *device,
                         const struct ze_pci_properties *pci)
{
    struct zes_pci found = {.stype = ZES_STRUCTURE_TYPE_PCI_PROPERTIES};
    return !sysman->pci(device, &found) && found.domain == pci->domain && found.bus == pci->bus &&
           found.device == pci->device && found.function == pci->function;
}

static void *sysman_find_of_driver(const struct sysman *sysman, void *driver,
                                   const struct ze_pci_properties *pci)
{
    void *devices[DEVICES];
    uint32_t count = DEVICES;
    if (sysman->device_get(driver, &count, devices))
        return NULL;
    for (uint32_t i = 0; i < count && i < DEVICES; i++)
        if (sysman_is_at(sysman, devices[i], pci))
            return devices[i];
    return NULL;
}

/* By UUID, which also names the tile; with an older driver by PCI address. */
static bool sysman_find_in_driver(const struct sysman *sysman, void *driver,
                                  const struct ze_gpu *gpu, const struct ze_pci_properties *pci,
                                  struct sysman_device *device)
{
    struct zes_uuid uuid;
    uint8_t on_subdevice = 0;
    memcpy(uuid.id, gpu->properties.uuid, sizeof uuid.id);
    if (sysman->find_device &&
        !sysman->find_device(driver, uuid, &device->handle, &on_subdevice, &device->tile) &&
        device->handle) {
        device->is_tile = on_subdevice;
        return true;
    }
    device->handle = sysman_find_of_driver(sysman, driver, pci);
    device->is_tile = gpu->properties.flags & ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE;
    device->tile = gpu->properties.subdevice_id;
    return device->handle;
}

/* Sysman ignores ZE_AFFINITY_MASK and ZE_FLAT_DEVICE_HIERARCHY, and its devices may be in another order. */
static bool sysman_find(const struct sysman *sysman, const struct ze_gpu *gpu,
                        struct sysman_device *device)
{
    struct ze_pci_properties pci = {.stype = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES};
    void *drivers[ZE_MAX_DRIVERS];
    uint32_t count = ZE_MAX_DRIVERS;
    bool found = false;
    *device = (struct sysman_device){.handle = gpu->handle};
    if (!sysman->init)
        return true;
    if (!ze.pci_properties || ze.pci_properties(gpu->handle, &pci) ||
        sysman->driver_get(&count, drivers))
        return false;
    for (uint32_t i = 0; i < count && i < ZE_MAX_DRIVERS && !found; i++)
        found = sysman_find_in_driver(sysman, drivers[i], gpu, &pci, device);
    return found;
}

/* ---- the values: one that a function does not return stays unknown ---- */

/* The handles of one kind of sensor; 0 if there is none. */
static uint32_t sysman_parts(int (*list)(void *, uint32_t *, void **), void *device,
                             void *parts[PARTS])
{
    uint32_t count = PARTS;
    memset(parts, 0, PARTS * sizeof *parts);
    return list && !list(device, &count, parts) && count <= PARTS ? count : 0;
}

/* The memory of a card is that of all its tiles. */
static bool memory_counts(const struct sysman *sysman, const struct sysman_device *device,
                          void *memory)
{
    struct zes_memory_properties properties = {.stype = ZES_STRUCTURE_TYPE_MEM_PROPERTIES};
    if (!device->is_tile)
        return true;
    return sysman->memory_properties && !sysman->memory_properties(memory, &properties) &&
           sysman_owns(device, properties.on_subdevice, properties.subdevice);
}

static void sysman_add_memory(const struct sysman *sysman, const struct sysman_device *device,
                              struct gg_device_stats *stats)
{
    void *parts[PARTS];
    uint64_t free = 0, size = 0;
    const uint32_t count =
        sysman->memory_state ? sysman_parts(sysman->memories, device->handle, parts) : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct zes_memory state = {.stype = ZES_STRUCTURE_TYPE_MEM_STATE};
        if (!memory_counts(sysman, device, parts[i]))
            continue;
        if (sysman->memory_state(parts[i], &state) || state.free > state.size)
            return;
        free += state.free;
        size += state.size;
    }
    if (size) {
        stats->memory_total = size;
        stats->memory_used = size - free;
    }
}

/* Exchange a counter with its previous value. The rate between them, or NaN. */
static double counter_rate(struct zes_counter *previous, struct zes_counter now)
{
    pthread_mutex_lock(&sysman_previous.lock);
    const struct zes_counter before = *previous;
    *previous = now;
    pthread_mutex_unlock(&sysman_previous.lock);
    if (!before.time || now.time <= before.time || now.value < before.value)
        return NAN;
    return (double)(now.value - before.value) / (double)(now.time - before.time);
}

/* The group of all compute engines; else that of all engines. */
static void *sysman_find_engine(const struct sysman *sysman, const struct sysman_device *device)
{
    void *parts[PARTS], *all = NULL;
    const uint32_t count =
        sysman->engine_properties ? sysman_parts(sysman->engines, device->handle, parts) : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct zes_engine properties = {.stype = ZES_STRUCTURE_TYPE_ENGINE_PROPERTIES};
        if (sysman->engine_properties(parts[i], &properties) ||
            !sysman_owns(device, properties.on_subdevice, properties.subdevice))
            continue;
        if (properties.type == ZES_ENGINE_GROUP_COMPUTE_ALL)
            return parts[i];
        if (properties.type == ZES_ENGINE_GROUP_ALL)
            all = parts[i];
    }
    return all;
}

static void sysman_add_load(const struct sysman *sysman, const struct sysman_device *device,
                            int32_t ordinal, struct gg_device_stats *stats)
{
    struct zes_counter counter = {0, 0};
    void *engine = sysman_find_engine(sysman, device);
    if (engine && sysman->engine_activity && !sysman->engine_activity(engine, &counter))
        stats->compute_utilization = 100 * counter_rate(&sysman_previous.load[ordinal], counter);
}

/* A card's first domain is its own. */
static void *sysman_find_power(const struct sysman *sysman, const struct sysman_device *device)
{
    void *parts[PARTS];
    const uint32_t count = sysman_parts(sysman->powers, device->handle, parts);
    if (!device->is_tile)
        return count ? parts[0] : NULL;
    for (uint32_t i = 0; sysman->power_properties && i < count; i++) {
        struct zes_power properties = {.stype = ZES_STRUCTURE_TYPE_POWER_PROPERTIES};
        if (!sysman->power_properties(parts[i], &properties) &&
            sysman_owns(device, properties.on_subdevice, properties.subdevice))
            return parts[i];
    }
    return NULL;
}

/* Microjoules by microseconds are watts. */
static void sysman_add_power(const struct sysman *sysman, const struct sysman_device *device,
                             int32_t ordinal, struct gg_device_stats *stats)
{
    struct zes_counter counter = {0, 0};
    void *power = sysman_find_power(sysman, device);
    if (power && sysman->power_energy && !sysman->power_energy(power, &counter))
        stats->power = counter_rate(&sysman_previous.energy[ordinal], counter);
}

static void sysman_add_temperature(const struct sysman *sysman, const struct sysman_device *device,
                                   struct gg_device_stats *stats)
{
    void *parts[PARTS];
    double degrees = 0;
    const uint32_t count = sysman->temperature_properties && sysman->temperature_state
                               ? sysman_parts(sysman->temperatures, device->handle, parts)
                               : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct zes_temperature properties = {.stype = ZES_STRUCTURE_TYPE_TEMP_PROPERTIES};
        if (sysman->temperature_properties(parts[i], &properties) ||
            !sysman_owns(device, properties.on_subdevice, properties.subdevice))
            continue;
        const bool gpu = properties.type == ZES_TEMP_SENSORS_GPU;
        if ((gpu || (properties.type == ZES_TEMP_SENSORS_GLOBAL && isnan(stats->temperature))) &&
            !sysman->temperature_state(parts[i], &degrees))
            stats->temperature = degrees;
    }
}

static const struct {
    uint32_t theirs, ours;
} sysman_reasons[] = {
    {ZES_FREQ_THROTTLE_REASON_FLAG_AVE_PWR_CAP | ZES_FREQ_THROTTLE_REASON_FLAG_BURST_PWR_CAP,
     GG_THROTTLE_POWER},
    {ZES_FREQ_THROTTLE_REASON_FLAG_CURRENT_LIMIT, GG_THROTTLE_CURRENT},
    {ZES_FREQ_THROTTLE_REASON_FLAG_THERMAL_LIMIT, GG_THROTTLE_THERMAL},
    {ZES_FREQ_THROTTLE_REASON_FLAG_PSU_ALERT, GG_THROTTLE_SUPPLY},
    {ZES_FREQ_THROTTLE_REASON_FLAG_SW_RANGE, GG_THROTTLE_SETTING},
    {ZES_FREQ_THROTTLE_REASON_FLAG_HW_RANGE, GG_THROTTLE_HARDWARE},
};

static void frequency_take(int type, const struct zes_frequency_state *state,
                           struct gg_device_stats *stats)
{
    if (type == ZES_FREQ_DOMAIN_MEMORY)
        stats->memory_clock = state->actual;
    if (type != ZES_FREQ_DOMAIN_GPU)
        return;
    stats->compute_clock = state->actual;
    stats->throttle_reasons = 0;
    for (size_t i = 0; i < sizeof sysman_reasons / sizeof sysman_reasons[0]; i++)
        if (state->reasons & sysman_reasons[i].theirs)
            stats->throttle_reasons |= sysman_reasons[i].ours;
}

static void sysman_add_clocks(const struct sysman *sysman, const struct sysman_device *device,
                              struct gg_device_stats *stats)
{
    void *parts[PARTS];
    const uint32_t count = sysman->frequency_properties && sysman->frequency_state
                               ? sysman_parts(sysman->frequencies, device->handle, parts)
                               : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct zes_frequency properties = {.stype = ZES_STRUCTURE_TYPE_FREQ_PROPERTIES};
        struct zes_frequency_state state = {.stype = ZES_STRUCTURE_TYPE_FREQ_STATE};
        if (!sysman->frequency_properties(parts[i], &properties) &&
            (!device->is_tile || sysman_owns(device, properties.on_subdevice, properties.subdevice)) &&
            !sysman->frequency_state(parts[i], &state))
            frequency_take(properties.type, &state, stats);
    }
}

/* Of the whole card: Sysman does not report them by tile. */
static void sysman_add_processes(const struct sysman *sysman, const struct sysman_device *device,
                                 struct gg_device_stats *stats)
{
    uint32_t count = 0, room;
    if (!sysman->processes || sysman->processes(device->handle, &count, NULL) ||
        count > PROCESSES_MOST)
        return;
    room = count = count + 8; /* some may have started since */
    struct zes_process *processes = calloc(room, sizeof *processes);
    for (uint32_t i = 0; processes && i < room; i++)
        processes[i].stype = ZES_STRUCTURE_TYPE_PROCESS_STATE;
    if (processes && !sysman->processes(device->handle, &count, processes) && count <= room) {
        stats->process_count = (int32_t)count;
        for (uint32_t i = 0; i < count && i < stats->process_room; i++)
            stats->processes[i] =
                (struct gg_process_stats){.pid = processes[i].pid, .memory = processes[i].memory};
    }
    free(processes);
}

gg_status ze_device_stats(int32_t ordinal, struct gg_device_stats *stats)
{
    const struct sysman *sysman;
    const gg_status status = sysman_open(&sysman);
    if (status)
        return status;
    struct sysman_device device;
    if (!sysman_find(sysman, &ze_gpus[ordinal], &device))
        return ze_api->fail(
            GG_ERR_UNSUPPORTED, NULL,
            "Sysman does not know a device at this PCI address: is its driver that of the device?");
    snprintf(stats->source, sizeof stats->source, "Sysman");
    sysman_add_memory(sysman, &device, stats);
    sysman_add_load(sysman, &device, ordinal, stats);
    sysman_add_power(sysman, &device, ordinal, stats);
    sysman_add_temperature(sysman, &device, stats);
    sysman_add_clocks(sysman, &device, stats);
    sysman_add_processes(sysman, &device, stats);
    return GG_OK;
}
