// rocm_smi_headers.cc: compares every function, constant and struct that backends/hip declares of ROCm SMI with the
// vendor's header, of ROCm 5 or 6. Compiling it is the test.
#include <rocm_smi/rocm_smi.h>

#include "prototypes.h"

#include <cstddef>

namespace declared
{
#include "../../backends/hip/rocm_smi_types.h"
}
using declared::rocm_smi_frequencies;
using declared::rocm_smi_process;

// Functions that this header is too old to have; meson finds them.
ABSENT_FUNCTIONS

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
#define FIELD(own, member, vendor, vendor_member)                                       \
    static_assert(offsetof(declared::own, member) == offsetof(::vendor, vendor_member), \
                  #own "." #member);
#if RSMI_MAX_NUM_FREQUENCIES == 32
using frequencies = declared::rocm_smi_frequencies_5;
#else
using frequencies = declared::rocm_smi_frequencies_6;
static_assert(offsetof(frequencies, has_deep_sleep) == offsetof(rsmi_frequencies_t, has_deep_sleep),
              "has_deep_sleep");
#endif
static_assert(sizeof(frequencies) == sizeof(rsmi_frequencies_t), "rsmi_frequencies_t");
static_assert(offsetof(frequencies, count) == offsetof(rsmi_frequencies_t, num_supported),
              "num_supported");
static_assert(offsetof(frequencies, current) == offsetof(rsmi_frequencies_t, current), "current");
static_assert(offsetof(frequencies, frequency) == offsetof(rsmi_frequencies_t, frequency),
              "frequency");
STRUCT(rocm_smi_process, rsmi_process_info_t)
FIELD(rocm_smi_process, pid, rsmi_process_info_t, process_id)
FIELD(rocm_smi_process, vram, rsmi_process_info_t, vram_usage)

int main()
{
    return 0;
}
