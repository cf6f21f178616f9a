/* sim_zes.c: the Sysman functions of a Level Zero loader, for the devices of the simulated drivers, in reverse order. Load
 * and power are counters: each reading is one second after the last one.
 *
 * GPUGLUE_SIM_MONITOR_ODD: `global`: one temperature sensor, of the whole device.
 * GPUGLUE_SIM_ZE_TILES: as for the driver: so many of its devices are the tiles of one card, which is the device here. */
#include <level_zero/zes_api.h>

#include "sim_monitor.h"

#include <stdatomic.h>

#define ENTER(name)              \
    if (sim_monitor_fails(name)) \
    return ZE_RESULT_ERROR_UNKNOWN

/* A handle is the address of an element of a device. */
enum {
    DEVICE,
    ENGINE,
    ALL_ENGINES,
    POWER,
    HOTTEST,
    SENSOR,
    CLOCK,
    MEMORY_CLOCK,
    MEMORY,
    OTHER_MEMORY,
    PARTS
};
static char parts[64][PARTS];
static atomic_uint engine_readings, power_readings;

static unsigned physical_of(void *handle)
{
    return (unsigned)(((char *)handle - &parts[0][0]) / PARTS);
}

static unsigned part_of(void *handle)
{
    return (unsigned)(((char *)handle - &parts[0][0]) % PARTS);
}

static unsigned tiles(void)
{
    const char *text = getenv("GPUGLUE_SIM_ZE_TILES");
    return text ? (unsigned)atoi(text) : 1;
}

static ze_bool_t on_subdevice(void *part, uint32_t *subdevice)
{
    *subdevice = physical_of(part) % tiles();
    return tiles() > 1;
}

/* As Level Zero's lists are read: with NULL only the number. A card has the parts of all its tiles. */
static ze_result_t list(void *device, uint32_t *count, void **out, unsigned first, unsigned number)
{
    const unsigned all = number * tiles();
    if (out)
        for (unsigned i = 0; i < all && i < *count; i++)
            out[i] = &parts[physical_of(device) + i / number][first + i % number];
    *count = all;
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesInit(uint32_t flags);
ze_result_t zesInit(uint32_t flags)
{
    return flags || sim_monitor_fails("zesInit") ? ZE_RESULT_ERROR_UNINITIALIZED : ZE_RESULT_SUCCESS;
}

/* Newer than the headers of Debian 12, like zesInit. */
SIM_EXPORT ze_result_t zesDriverGet(uint32_t *count, zes_driver_handle_t *drivers);
ze_result_t zesDriverGet(uint32_t *count, zes_driver_handle_t *drivers)
{
    ENTER("zesDriverGet");
    if (drivers && *count)
        drivers[0] = (zes_driver_handle_t)(void *)parts;
    *count = 1;
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesDeviceGet(zes_driver_handle_t driver, uint32_t *count,
                                    zes_device_handle_t *devices);
ze_result_t zesDeviceGet(zes_driver_handle_t driver, uint32_t *count, zes_device_handle_t *devices)
{
    const unsigned number = (unsigned)sim_monitor_devices() / tiles();
    (void)driver;
    ENTER("zesDeviceGet");
    for (unsigned i = 0; devices && i < number && i < *count; i++)
        devices[i] = (zes_device_handle_t)(void *)&parts[(number - 1 - i) * tiles()][DEVICE];
    *count = number;
    return ZE_RESULT_SUCCESS;
}

/* Newer too, and the vendor's declaration has another type of the UUID, so it has another name in C. The UUIDs are those of
 * sim_ze_device.c. */
struct uuid {
    uint8_t id[16];
};

SIM_EXPORT ze_result_t sim_device_by_uuid(
    zes_driver_handle_t driver, struct uuid uuid, zes_device_handle_t *device,
    ze_bool_t *on_subdevice_, uint32_t *subdevice) __asm__("zesDriverGetDeviceByUuidExp");
ze_result_t sim_device_by_uuid(zes_driver_handle_t driver, struct uuid uuid,
                               zes_device_handle_t *device, ze_bool_t *on_subdevice_,
                               uint32_t *subdevice)
{
    const unsigned physical = uuid.id[0] - 1u;
    (void)driver;
    ENTER("zesDriverGetDeviceByUuidExp");
    if (physical >= (unsigned)sim_monitor_devices() || uuid.id[1] != uuid.id[0])
        return ZE_RESULT_ERROR_UNKNOWN;
    *device = (zes_device_handle_t)(void *)&parts[physical - physical % tiles()][DEVICE];
    *on_subdevice_ = uuid.id[14] != uuid.id[0];
    *subdevice = physical % tiles();
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesDevicePciGetProperties(zes_device_handle_t device,
                                                 zes_pci_properties_t *properties)
{
    ENTER("zesDevicePciGetProperties");
    if (properties->stype != ZES_STRUCTURE_TYPE_PCI_PROPERTIES)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    properties->address =
        (zes_pci_address_t){0, SIM_ZE_FIRST_BUS + physical_of(device) / tiles(), 0, 0};
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesDeviceEnumMemoryModules(zes_device_handle_t device, uint32_t *count,
                                                  zes_mem_handle_t *out)
{
    ENTER("zesDeviceEnumMemoryModules");
    return list(device, count, (void **)out, MEMORY, 2);
}

SIM_EXPORT ze_result_t zesMemoryGetProperties(zes_mem_handle_t memory,
                                              zes_mem_properties_t *properties)
{
    ENTER("zesMemoryGetProperties");
    if (properties->stype != ZES_STRUCTURE_TYPE_MEM_PROPERTIES)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    properties->onSubdevice = on_subdevice(memory, &properties->subdeviceId);
    return ZE_RESULT_SUCCESS;
}

/* Each of two modules has one half. */
SIM_EXPORT ze_result_t zesMemoryGetState(zes_mem_handle_t memory, zes_mem_state_t *state)
{
    ENTER("zesMemoryGetState");
    if (state->stype != ZES_STRUCTURE_TYPE_MEM_STATE)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    state->size = SIM_TOTAL / 2;
    state->free = (SIM_TOTAL - SIM_USED(physical_of(memory))) / 2;
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesDeviceEnumEngineGroups(zes_device_handle_t device, uint32_t *count,
                                                 zes_engine_handle_t *out)
{
    ENTER("zesDeviceEnumEngineGroups");
    return list(device, count, (void **)out, ENGINE, 2);
}

SIM_EXPORT ze_result_t zesEngineGetProperties(zes_engine_handle_t engine,
                                              zes_engine_properties_t *properties)
{
    ENTER("zesEngineGetProperties");
    if (properties->stype != ZES_STRUCTURE_TYPE_ENGINE_PROPERTIES)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    properties->type =
        part_of(engine) == ENGINE ? ZES_ENGINE_GROUP_COMPUTE_ALL : ZES_ENGINE_GROUP_ALL;
    properties->onSubdevice = on_subdevice(engine, &properties->subdeviceId);
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesEngineGetActivity(zes_engine_handle_t engine, zes_engine_stats_t *stats)
{
    ENTER("zesEngineGetActivity");
    const uint64_t seconds = atomic_fetch_add(&engine_readings, 1) + 1u;
    const unsigned load = part_of(engine) == ENGINE ? SIM_LOAD(physical_of(engine)) : 99;
    *stats =
        (zes_engine_stats_t){.activeTime = seconds * 10000 * load, .timestamp = seconds * 1000000};
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesDeviceEnumPowerDomains(zes_device_handle_t device, uint32_t *count,
                                                 zes_pwr_handle_t *out)
{
    ENTER("zesDeviceEnumPowerDomains");
    return list(device, count, (void **)out, POWER, 1);
}

SIM_EXPORT ze_result_t zesPowerGetProperties(zes_pwr_handle_t power,
                                             zes_power_properties_t *properties)
{
    ENTER("zesPowerGetProperties");
    if (properties->stype != ZES_STRUCTURE_TYPE_POWER_PROPERTIES)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    properties->onSubdevice = on_subdevice(power, &properties->subdeviceId);
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesPowerGetEnergyCounter(zes_pwr_handle_t power,
                                                zes_power_energy_counter_t *energy)
{
    ENTER("zesPowerGetEnergyCounter");
    const uint64_t seconds = atomic_fetch_add(&power_readings, 1) + 1u;
    *energy =
        (zes_power_energy_counter_t){.energy = seconds * 1000 * SIM_MILLIWATTS(physical_of(power)),
                                     .timestamp = seconds * 1000000};
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesDeviceEnumTemperatureSensors(zes_device_handle_t device, uint32_t *count,
                                                       zes_temp_handle_t *out)
{
    ENTER("zesDeviceEnumTemperatureSensors");
    return list(device, count, (void **)out, HOTTEST, sim_monitor_odd("global") ? 1 : 2);
}

SIM_EXPORT ze_result_t zesTemperatureGetProperties(zes_temp_handle_t sensor,
                                                   zes_temp_properties_t *properties)
{
    ENTER("zesTemperatureGetProperties");
    if (properties->stype != ZES_STRUCTURE_TYPE_TEMP_PROPERTIES)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    properties->type = part_of(sensor) == HOTTEST ? ZES_TEMP_SENSORS_GLOBAL : ZES_TEMP_SENSORS_GPU;
    properties->onSubdevice = on_subdevice(sensor, &properties->subdeviceId);
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesTemperatureGetState(zes_temp_handle_t sensor, double *degrees)
{
    ENTER("zesTemperatureGetState");
    *degrees = SIM_DEGREES(physical_of(sensor)) +
               (part_of(sensor) == HOTTEST && !sim_monitor_odd("global") ? 9 : 0);
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesDeviceEnumFrequencyDomains(zes_device_handle_t device, uint32_t *count,
                                                     zes_freq_handle_t *out)
{
    ENTER("zesDeviceEnumFrequencyDomains");
    return list(device, count, (void **)out, CLOCK, 2);
}

SIM_EXPORT ze_result_t zesFrequencyGetProperties(zes_freq_handle_t domain,
                                                 zes_freq_properties_t *properties)
{
    ENTER("zesFrequencyGetProperties");
    if (properties->stype != ZES_STRUCTURE_TYPE_FREQ_PROPERTIES)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    properties->type = part_of(domain) == CLOCK ? ZES_FREQ_DOMAIN_GPU : ZES_FREQ_DOMAIN_MEMORY;
    properties->onSubdevice = on_subdevice(domain, &properties->subdeviceId);
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesFrequencyGetState(zes_freq_handle_t domain, zes_freq_state_t *state)
{
    ENTER("zesFrequencyGetState");
    if (state->stype != ZES_STRUCTURE_TYPE_FREQ_STATE)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    state->actual = part_of(domain) == CLOCK ? SIM_CLOCK(physical_of(domain))
                                             : SIM_MEMORY_CLOCK(physical_of(domain));
    state->throttleReasons =
        ZES_FREQ_THROTTLE_REASON_FLAG_AVE_PWR_CAP | ZES_FREQ_THROTTLE_REASON_FLAG_THERMAL_LIMIT;
    return ZE_RESULT_SUCCESS;
}

SIM_EXPORT ze_result_t zesDeviceProcessesGetState(zes_device_handle_t device, uint32_t *count,
                                                  zes_process_state_t *processes)
{
    const uint32_t room = *count;
    (void)device;
    ENTER("zesDeviceProcessesGetState");
    *count = 2;
    if (!processes)
        return ZE_RESULT_SUCCESS;
    if (room < 2)
        return ZE_RESULT_ERROR_INVALID_SIZE;
    processes[0].processId = (uint32_t)getpid();
    processes[0].memSize = SIM_OWN_MEMORY;
    processes[1].processId = SIM_OTHER_PID;
    processes[1].memSize = SIM_OTHER_MEMORY;
    return ZE_RESULT_SUCCESS;
}
