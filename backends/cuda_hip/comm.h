/* comm.h: the vendor's library of collective operations. */
#ifndef GPUGLUE_CUHIP_COMM_H
#define GPUGLUE_CUHIP_COMM_H

#include "driver.h"

struct cuhip_comm_id {
    char bytes[GG_COMM_ID_SIZE];
};

struct cuhip_comm_library {
#define FN(slot, parameters, symbol, need) int(*slot) parameters;
#define TEXT(slot, parameters, symbol, need) const char *(*slot)parameters;
#include "comm.def"
#undef FN
#undef TEXT
};

/* The numbers of the library: those of both vendors are equal. */
enum {
    NCCL_SUCCESS,
    NCCL_DEVICE_ERROR,
    NCCL_SYSTEM_ERROR,
    NCCL_INTERNAL_ERROR,
    NCCL_INVALID_ARGUMENT,
    NCCL_INVALID_USAGE,
    NCCL_REMOTE_ERROR,
    NCCL_IN_PROGRESS
};
enum {
    NCCL_INT8,
    NCCL_UINT8,
    NCCL_INT32,
    NCCL_UINT32,
    NCCL_INT64,
    NCCL_UINT64,
    NCCL_FLOAT16,
    NCCL_FLOAT32,
    NCCL_FLOAT64,
    NCCL_BFLOAT16,
    NCCL_FLOAT8_E4M3,
    NCCL_FLOAT8_E5M2
};
enum { NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG };

#endif
