/* comm_numbers.h: numbers of NCCL, which are those of RCCL; tests/headers compares them with the vendors' headers. */
#ifndef GPUGLUE_CUHIP_COMM_NUMBERS_H
#define GPUGLUE_CUHIP_COMM_NUMBERS_H

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
enum { NCCL_PART = 10 * 10 }; /* of a version: 10000 * major + NCCL_PART * minor + patch */
enum { NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG };

#endif
