// nccl_headers.cc: compares every function and number that backends/cuda_hip declares of NCCL and RCCL with the vendors' headers.
// Compiling it is the test.
#ifdef HEADER_OF_RCCL
#define __HIP_PLATFORM_AMD__
#include <rccl/rccl.h>
#else
#include <nccl.h>
#endif

#include "prototypes.h"

#include <cstddef>
#include <cstdint>

#define GG_COMM_ID_SIZE 128
struct cuhip_comm_id {
    char bytes[GG_COMM_ID_SIZE];
};
static_assert(sizeof(cuhip_comm_id) == sizeof(ncclUniqueId), "an id is passed by value");

#define FN(slot, parameters, symbol, need) \
    static_assert(same_shape<int(*) parameters, decltype(&symbol)>::value, #symbol);
#define TEXT(slot, parameters, symbol, need) \
    static_assert(same_shape<const char *(*)parameters, decltype(&symbol)>::value, #symbol);
#include "../../backends/cuda_hip/comm.def"
#undef FN
#undef TEXT

namespace declared
{
#include "../../backends/cuda_hip/comm_numbers.h"
}

#define EQUAL(own, vendor) static_assert(int(declared::own) == int(vendor), #own);
EQUAL(NCCL_SUCCESS, ncclSuccess)
EQUAL(NCCL_DEVICE_ERROR, ncclUnhandledCudaError)
EQUAL(NCCL_SYSTEM_ERROR, ncclSystemError)
EQUAL(NCCL_INTERNAL_ERROR, ncclInternalError)
EQUAL(NCCL_INVALID_ARGUMENT, ncclInvalidArgument)
EQUAL(NCCL_INVALID_USAGE, ncclInvalidUsage)
EQUAL(NCCL_REMOTE_ERROR, ncclRemoteError)
#if NCCL_MINOR >= 14
EQUAL(NCCL_IN_PROGRESS, ncclInProgress)
#endif
EQUAL(NCCL_INT8, ncclInt8)
EQUAL(NCCL_UINT8, ncclUint8)
EQUAL(NCCL_INT32, ncclInt32)
EQUAL(NCCL_UINT32, ncclUint32)
EQUAL(NCCL_INT64, ncclInt64)
EQUAL(NCCL_UINT64, ncclUint64)
EQUAL(NCCL_FLOAT16, ncclFloat16)
EQUAL(NCCL_FLOAT32, ncclFloat32)
EQUAL(NCCL_FLOAT64, ncclFloat64)
EQUAL(NCCL_BFLOAT16, ncclBfloat16)
#if NCCL_MINOR >= 27
EQUAL(NCCL_FLOAT8_E4M3, ncclFloat8e4m3)
EQUAL(NCCL_FLOAT8_E5M2, ncclFloat8e5m2)
#endif
EQUAL(NCCL_SUM, ncclSum)
EQUAL(NCCL_PROD, ncclProd)
EQUAL(NCCL_MAX, ncclMax)
EQUAL(NCCL_MIN, ncclMin)
EQUAL(NCCL_AVG, ncclAvg)

int main() {}
