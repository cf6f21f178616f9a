/* cuda_types.h: the structs of cuda.h that this backend uses. tests/headers compares sizes and offsets. */
#ifndef GPUGLUE_CUDA_TYPES_H
#define GPUGLUE_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* CUDA_MEMCPY3D: each side, then the extent. */
struct cuda_side {
    size_t x, y, z, lod;
    unsigned type; /* CU_MEMORYTYPE_… */
    void *host;
    uintptr_t device;
    void *array, *reserved;
    size_t pitch, rows; /* bytes of a row, rows of a slice */
};
struct cuda_copy_3d {
    struct cuda_side src, dst;
    size_t width, height, depth;
};

#endif
