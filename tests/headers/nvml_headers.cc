// nvml_headers.cc: compares every function, constant and struct that backends/cuda declares of NVML with the vendor's
// header. Compiling it is the test.
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include "prototypes.h"

#include <cstddef>
#include <cstdint>

namespace declared
{
#include "../../backends/cuda/nvml_types.h"
}
using declared::nvml_memory;
using declared::nvml_memory_2;
using declared::nvml_process;
using declared::nvml_utilization;

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define OWN(slot, parameters, symbol, need) \
    static_assert(same_shape<int(*) parameters, decltype(&symbol)>::value, #symbol);
#include "../../backends/cuda/nvml.def"
#undef OWN

#define EQUAL(own, vendor) \
    static_assert(static_cast<long long>(declared::own) == static_cast<long long>(vendor), #own);
EQUAL(NVML_ERROR_INSUFFICIENT_SIZE, ::NVML_ERROR_INSUFFICIENT_SIZE)
EQUAL(NVML_TEMPERATURE_GPU, ::NVML_TEMPERATURE_GPU)
EQUAL(NVML_CLOCK_SM, ::NVML_CLOCK_SM)
EQUAL(NVML_CLOCK_MEM, ::NVML_CLOCK_MEM)
EQUAL(NVML_REASON_GPU_IDLE, nvmlClocksThrottleReasonGpuIdle)
EQUAL(NVML_REASON_APPLICATIONS_CLOCKS, nvmlClocksThrottleReasonApplicationsClocksSetting)
EQUAL(NVML_REASON_SW_POWER_CAP, nvmlClocksThrottleReasonSwPowerCap)
EQUAL(NVML_REASON_HW_SLOWDOWN, nvmlClocksThrottleReasonHwSlowdown)
EQUAL(NVML_REASON_SYNC_BOOST, nvmlClocksThrottleReasonSyncBoost)
EQUAL(NVML_REASON_SW_THERMAL, nvmlClocksThrottleReasonSwThermalSlowdown)
EQUAL(NVML_REASON_HW_THERMAL, nvmlClocksThrottleReasonHwThermalSlowdown)
EQUAL(NVML_REASON_HW_POWER_BRAKE, nvmlClocksThrottleReasonHwPowerBrakeSlowdown)
EQUAL(NVML_REASON_DISPLAY_CLOCK, nvmlClocksThrottleReasonDisplayClockSetting)
static_assert(NVML_MEMORY_2 == nvmlMemory_v2, "the version of the struct");
static_assert(NVML_VALUE_NOT_AVAILABLE == -1, "a process without memory has all bits set");

#define STRUCT(own, vendor) static_assert(sizeof(own) == sizeof(vendor), #own);
#define FIELD(own, member, vendor, vendor_member)                           \
    static_assert(offsetof(own, member) == offsetof(vendor, vendor_member), #own "." #member);
STRUCT(nvml_utilization, nvmlUtilization_t)
FIELD(nvml_utilization, gpu, nvmlUtilization_t, gpu)
FIELD(nvml_utilization, memory, nvmlUtilization_t, memory)
STRUCT(nvml_memory, nvmlMemory_t)
FIELD(nvml_memory, total, nvmlMemory_t, total)
FIELD(nvml_memory, used, nvmlMemory_t, used)
STRUCT(nvml_memory_2, nvmlMemory_v2_t)
FIELD(nvml_memory_2, version, nvmlMemory_v2_t, version)
FIELD(nvml_memory_2, total, nvmlMemory_v2_t, total)
FIELD(nvml_memory_2, used, nvmlMemory_v2_t, used)
STRUCT(nvml_process, nvmlProcessInfo_t)
FIELD(nvml_process, pid, nvmlProcessInfo_t, pid)
FIELD(nvml_process, memory, nvmlProcessInfo_t, usedGpuMemory)

int main()
{
    return 0;
}
