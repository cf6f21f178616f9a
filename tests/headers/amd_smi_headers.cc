// amd_smi_headers.cc: compares every function, constant and struct that backends/hip declares of AMD SMI with the vendor's
// header, of version 27. Compiling it is the test.
#include <amd_smi/amdsmi.h>

#include "prototypes.h"

#include <cstddef>

namespace declared
{
#include "../../backends/hip/amd_smi_types.h"
}
using declared::amd_smi_activity;
using declared::amd_smi_clock;
using declared::amd_smi_metrics;
using declared::amd_smi_power;
using declared::amd_smi_process;
using declared::amd_smi_version;

#define OWN(slot, parameters, symbol, need) \
    static_assert(same_shape<int(*) parameters, decltype(&symbol)>::value, #symbol);
#include "../../backends/hip/amd_smi.def"
#undef OWN

static_assert(AMDSMI_LIB_VERSION_MAJOR == 27, "the structs are those of version 27");

#define EQUAL(name) \
    static_assert(static_cast<long long>(declared::name) == static_cast<long long>(::name), #name);
EQUAL(AMDSMI_STATUS_SUCCESS)
EQUAL(AMDSMI_INIT_AMD_GPUS)
EQUAL(AMDSMI_MEM_TYPE_VRAM)
EQUAL(AMDSMI_TEMP_CURRENT)
EQUAL(AMDSMI_TEMPERATURE_TYPE_EDGE)
EQUAL(AMDSMI_TEMPERATURE_TYPE_HOTSPOT)
EQUAL(AMDSMI_CLK_TYPE_SYS)
EQUAL(AMDSMI_CLK_TYPE_MEM)

#define STRUCT(own, vendor) static_assert(sizeof(declared::own) == sizeof(::vendor), #own);
#define FIELD(own, member, vendor, vendor_member)                                       \
    static_assert(offsetof(declared::own, member) == offsetof(::vendor, vendor_member), \
                  #own "." #member);
STRUCT(amd_smi_version, amdsmi_version_t)
STRUCT(amd_smi_activity, amdsmi_engine_usage_t)
FIELD(amd_smi_activity, compute, amdsmi_engine_usage_t, gfx_activity)
FIELD(amd_smi_activity, memory, amdsmi_engine_usage_t, umc_activity)
STRUCT(amd_smi_power, amdsmi_power_info_t)
FIELD(amd_smi_power, socket, amdsmi_power_info_t, socket_power)
FIELD(amd_smi_power, current, amdsmi_power_info_t, current_socket_power)
FIELD(amd_smi_power, average, amdsmi_power_info_t, average_socket_power)
STRUCT(amd_smi_clock, amdsmi_clk_info_t)
FIELD(amd_smi_clock, current, amdsmi_clk_info_t, clk)
STRUCT(amd_smi_process, amdsmi_proc_info_t)
FIELD(amd_smi_process, pid, amdsmi_proc_info_t, pid)
FIELD(amd_smi_process, vram, amdsmi_proc_info_t, memory_usage.vram_mem)
static_assert(sizeof(declared::amd_smi_metrics) >= sizeof(::amdsmi_gpu_metrics_t),
              "room for the table");
FIELD(amd_smi_metrics, v27.reasons, amdsmi_gpu_metrics_t, indep_throttle_status)
FIELD(amd_smi_metrics, v27.counters.elapsed, amdsmi_gpu_metrics_t, accumulation_counter)
FIELD(amd_smi_metrics, v27.counters.hot, amdsmi_gpu_metrics_t, prochot_residency_acc)
FIELD(amd_smi_metrics, v27.counters.power, amdsmi_gpu_metrics_t, ppt_residency_acc)
FIELD(amd_smi_metrics, v27.counters.socket_thermal, amdsmi_gpu_metrics_t, socket_thm_residency_acc)
FIELD(amd_smi_metrics, v27.counters.regulator_thermal, amdsmi_gpu_metrics_t, vr_thm_residency_acc)
FIELD(amd_smi_metrics, v27.counters.memory_thermal, amdsmi_gpu_metrics_t, hbm_thm_residency_acc)
// Version 26, of which Debian has no header: as in the fields of AMD's own Python package amdsmi 7.0.2.
static_assert(offsetof(declared::amd_smi_metrics, v26.reasons) == 112, "reasons");
static_assert(offsetof(declared::amd_smi_metrics, v26.counters.elapsed) == 424, "counters");

int main()
{
    return 0;
}
