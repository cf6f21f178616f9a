/* host_kernel.h: what a shared object exports so that the host backend can launch its kernels.
 *
 * It defines one variable, `gg_host_kernels`, with default visibility. A kernel is a function that does
 * the work of one thread. The threads of a block run one after the other on one thread of the system,
 * each until it ends or waits at a barrier; the blocks follow each other. Variables that the kernels'
 * users are to find by name (gg_module_global) are exported too.
 *
 * cuda_dialect.h makes all this from CUDA source; this header is for those who write it by hand. */
#ifndef GPUGLUE_HOST_KERNEL_H
#define GPUGLUE_HOST_KERNEL_H

#include <gpuglue/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GG_HOST_KERNELS_MAGIC 0x4b484747u /* "GGHK" */
#define GG_HOST_KERNELS_ABI 1u

struct gg_host_dim {
    uint32_t x, y, z;
};

/* What the thread that runs knows. Valid while it runs. */
struct gg_host_thread {
    uint32_t struct_size;
    uint32_t shared_size;                   /* bytes at shared */
    struct gg_host_dim thread, block;       /* which one, in its block and in the grid */
    struct gg_host_dim block_dim, grid_dim; /* how many */
    void *shared;                           /* dynamic shared memory of the block, aligned to 64 */
    /* Wait until all threads of the block that have not ended are here. */
    void (*barrier)(const struct gg_host_thread *self);
    void *reserved; /* the launcher's */
};

struct gg_host_kernel {
    uint32_t struct_size;
    int32_t parameter_count;
    const char *name;
    const struct gg_parameter *parameters;
    void (*run)(const struct gg_host_thread *thread, const void *const *arguments);
    uint32_t shared_size; /* bytes of shared memory that it has of itself; for information */
    uint32_t max_threads; /* of a block; 0: no limit of its own */
};

struct gg_host_kernels {
    uint32_t magic, abi; /* GG_HOST_KERNELS_MAGIC, GG_HOST_KERNELS_ABI */
    size_t count;
    const struct gg_host_kernel *const *kernels;
};

GG_API extern const struct gg_host_kernels gg_host_kernels; /* the shared object's */

#ifdef __cplusplus
}
#endif
#endif
