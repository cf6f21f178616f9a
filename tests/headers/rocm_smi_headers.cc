// rocm_smi_headers.cc: compares every function, constant and struct that backends/hip declares of ROCm SMI with the
// vendor's header, of ROCm 5. Compiling it is the test.
#include <rocm_smi/rocm_smi.h>

#include "prototypes.h"

#include <cstddef>

namespace declared
{
#include "../../backends/hip/rocm_smi_types.h"
}
using declared::rocm_smi_frequencies;
using declared::rocm_smi_process;

// Functions of later versions.
extern const not_yet rsmi_dev_current_socket_power_get;
extern const not_yet rsmi_compute_process_info_by_device_get;

#define OWN(slot, parameters, symbol, need) \
    static_assert(same_shape<int(*) parameters, decltype(&symbol)>::value, #symbol);
#include "../../backends/hip/rocm_smi.def"
#undef OWN

#define EQUAL(name) \
    static_assert(static_cast<long long>(declared::name) == static_cast<long long>(::name), #name);
EQUAL(RSMI_STATUS_SUCCESS)
EQUAL(RSMI_MEM_TYPE_VRAM)
EQUAL(RSMI_TEMP_CURRENT)
EQUAL(RSMI_TEMP_TYPE_EDGE)
EQUAL(RSMI_TEMP_TYPE_JUNCTION)
EQUAL(RSMI_CLK_TYPE_SYS)
EQUAL(RSMI_CLK_TYPE_MEM)

#define STRUCT(own, vendor) static_assert(sizeof(declared::own) == sizeof(::vendor), #own);
#define FIELD(own, member, vendor, vendor_member)                                         \
    static_assert(offsetof(declared::own, member) == offsetof(::vendor, vendor_member), #own "." #member);
STRUCT(rocm_smi_frequencies_5, rsmi_frequencies_t)
FIELD(rocm_smi_frequencies_5, count, rsmi_frequencies_t, num_supported)
FIELD(rocm_smi_frequencies_5, current, rsmi_frequencies_t, current)
FIELD(rocm_smi_frequencies_5, frequency, rsmi_frequencies_t, frequency)
STRUCT(rocm_smi_process, rsmi_process_info_t)
FIELD(rocm_smi_process, pid, rsmi_process_info_t, process_id)
FIELD(rocm_smi_process, vram, rsmi_process_info_t, vram_usage)

int main()
{
    return 0;
}
