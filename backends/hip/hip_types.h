/* hip_types.h: the structs of hip_runtime_api.h that this backend uses. tests/headers compares sizes and offsets. */
#ifndef GPUGLUE_HIP_TYPES_H
#define GPUGLUE_HIP_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* hipMemcpy3DParms, which is the same in HIP 5, 6 and 7. */
struct hip_pitched {
    void *pointer;
    size_t pitch, width, rows; /* width is for arrays only */
};
struct hip_copy_3d {
    void *src_array;
    size_t src_x, src_y, src_z;
    struct hip_pitched src;
    void *dst_array;
    size_t dst_x, dst_y, dst_z;
    struct hip_pitched dst;
    size_t width, height, depth;
    int kind;
};

#endif
