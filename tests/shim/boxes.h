/* boxes.h: the structs of three-dimensional copies: hipMemcpy3DParms and CUDA_MEMCPY3D. */
#ifndef GPUGLUE_TESTS_SHIM_BOXES_H
#define GPUGLUE_TESTS_SHIM_BOXES_H

#include <stddef.h>

struct hip_pitched {
    void *pointer;
    size_t pitch, width, rows;
};

struct hip_copy_3d {
    void *src_array;
    size_t src_at[3];
    struct hip_pitched src;
    void *dst_array;
    size_t dst_at[3];
    struct hip_pitched dst;
    size_t width, height, depth;
    int kind;
};

struct cuda_side {
    size_t at[3], lod;
    unsigned type;
    void *host, *device, *array, *reserved;
    size_t pitch, rows;
};

struct cuda_copy_3d {
    struct cuda_side src, dst;
    size_t width, height, depth;
};

#endif
