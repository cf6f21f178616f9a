// zes_headers.cc: compares every function, constant and struct that backends/ze declares of Sysman with Level Zero's
// headers. Compiling it is the test.
#include <level_zero/zes_api.h>

#include "prototypes.h"

#include <cstddef>
#include <cstdint>

namespace declared
{
#include "../../backends/ze/zes_types.h"
}
using namespace declared;

// Functions that these headers are too old to have; meson finds them.
ABSENT_FUNCTIONS

#define FN(slot, parameters, symbol, need) \
    static_assert(same_shape<int(*) parameters, decltype(&symbol)>::value, #symbol);
#include "../../backends/ze/zes.def"
#undef FN

#define EQUAL(name) \
    static_assert(static_cast<long long>(::name) == static_cast<long long>(declared::name), #name);
EQUAL(ZES_STRUCTURE_TYPE_PCI_PROPERTIES)
EQUAL(ZES_STRUCTURE_TYPE_ENGINE_PROPERTIES)
EQUAL(ZES_STRUCTURE_TYPE_FREQ_PROPERTIES)
EQUAL(ZES_STRUCTURE_TYPE_MEM_PROPERTIES)
EQUAL(ZES_STRUCTURE_TYPE_POWER_PROPERTIES)
EQUAL(ZES_STRUCTURE_TYPE_TEMP_PROPERTIES)
EQUAL(ZES_STRUCTURE_TYPE_PROCESS_STATE)
EQUAL(ZES_STRUCTURE_TYPE_FREQ_STATE)
EQUAL(ZES_STRUCTURE_TYPE_MEM_STATE)
EQUAL(ZES_ENGINE_GROUP_ALL)
EQUAL(ZES_ENGINE_GROUP_COMPUTE_ALL)
EQUAL(ZES_FREQ_DOMAIN_GPU)
EQUAL(ZES_FREQ_DOMAIN_MEMORY)
EQUAL(ZES_TEMP_SENSORS_GLOBAL)
EQUAL(ZES_TEMP_SENSORS_GPU)
EQUAL(ZES_FREQ_THROTTLE_REASON_FLAG_AVE_PWR_CAP)
EQUAL(ZES_FREQ_THROTTLE_REASON_FLAG_BURST_PWR_CAP)
EQUAL(ZES_FREQ_THROTTLE_REASON_FLAG_CURRENT_LIMIT)
EQUAL(ZES_FREQ_THROTTLE_REASON_FLAG_THERMAL_LIMIT)
EQUAL(ZES_FREQ_THROTTLE_REASON_FLAG_PSU_ALERT)
EQUAL(ZES_FREQ_THROTTLE_REASON_FLAG_SW_RANGE)
EQUAL(ZES_FREQ_THROTTLE_REASON_FLAG_HW_RANGE)

#define STRUCT(own, vendor) static_assert(sizeof(declared::own) == sizeof(::vendor), #own);
#define FIELD(own, member, vendor, vendor_member)                                         \
    static_assert(offsetof(declared::own, member) == offsetof(::vendor, vendor_member) && \
                      sizeof(static_cast<declared::own *>(nullptr)->member) ==            \
                          sizeof(static_cast<::vendor *>(nullptr)->vendor_member),        \
                  #own "." #member);
STRUCT(zes_pci, zes_pci_properties_t)
static_assert(offsetof(declared::zes_pci, domain) == offsetof(::zes_pci_properties_t, address), "domain");
static_assert(offsetof(declared::zes_pci, function) ==
                  offsetof(::zes_pci_properties_t, address) + offsetof(::zes_pci_address_t, function),
              "function");
STRUCT(zes_memory, zes_mem_state_t)
FIELD(zes_memory, free, zes_mem_state_t, free)
FIELD(zes_memory, size, zes_mem_state_t, size)
STRUCT(zes_memory_properties, zes_mem_properties_t)
FIELD(zes_memory_properties, on_subdevice, zes_mem_properties_t, onSubdevice)
FIELD(zes_memory_properties, subdevice, zes_mem_properties_t, subdeviceId)
STRUCT(zes_power, zes_power_properties_t)
FIELD(zes_power, on_subdevice, zes_power_properties_t, onSubdevice)
FIELD(zes_power, subdevice, zes_power_properties_t, subdeviceId)
STRUCT(zes_engine, zes_engine_properties_t)
FIELD(zes_engine, type, zes_engine_properties_t, type)
FIELD(zes_engine, on_subdevice, zes_engine_properties_t, onSubdevice)
FIELD(zes_engine, subdevice, zes_engine_properties_t, subdeviceId)
STRUCT(zes_counter, zes_engine_stats_t)
FIELD(zes_counter, value, zes_engine_stats_t, activeTime)
FIELD(zes_counter, time, zes_engine_stats_t, timestamp)
STRUCT(zes_counter, zes_power_energy_counter_t)
FIELD(zes_counter, value, zes_power_energy_counter_t, energy)
FIELD(zes_counter, time, zes_power_energy_counter_t, timestamp)
STRUCT(zes_frequency, zes_freq_properties_t)
FIELD(zes_frequency, type, zes_freq_properties_t, type)
FIELD(zes_frequency, on_subdevice, zes_freq_properties_t, onSubdevice)
FIELD(zes_frequency, subdevice, zes_freq_properties_t, subdeviceId)
STRUCT(zes_frequency_state, zes_freq_state_t)
FIELD(zes_frequency_state, actual, zes_freq_state_t, actual)
FIELD(zes_frequency_state, reasons, zes_freq_state_t, throttleReasons)
STRUCT(zes_temperature, zes_temp_properties_t)
FIELD(zes_temperature, type, zes_temp_properties_t, type)
FIELD(zes_temperature, on_subdevice, zes_temp_properties_t, onSubdevice)
FIELD(zes_temperature, subdevice, zes_temp_properties_t, subdeviceId)
STRUCT(zes_process, zes_process_state_t)
FIELD(zes_process, pid, zes_process_state_t, processId)
FIELD(zes_process, memory, zes_process_state_t, memSize)

int main()
{
    return 0;
}
