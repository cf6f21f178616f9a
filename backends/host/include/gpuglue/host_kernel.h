/* host_kernel.h: what a shared object exports so that the host backend can launch its kernels.
 *
 * It defines one variable, `gg_host_kernels`, with default visibility. A kernel is a function that does the work
 * of one thread. The threads of a block run one after the other on one thread of the system, each until it ends
 * or waits at a barrier. Blocks may run at the same time, each on one thread of the system. Variables that gg_module_global must find are
 * exported too.
 *
 * cuda_dialect.h defines all this for CUDA source. Use this header to write it by hand. */
#ifndef GG_GPUGLUE_HOST_KERNEL_H
#define GG_GPUGLUE_HOST_KERNEL_H

#include <gpuglue/kernel.h>

GG_BEGIN_DECLS

#define GG_HOST_KERNELS_MAGIC 0x4b484747u /* "GGHK" */
#define GG_HOST_KERNELS_ABI 1u

struct gg_host_dim {
    uint32_t x, y, z;
};

#define GG_HOST_WARP 32u /* threads: lane i of warp w is thread 32 w + i of the block */

/* What lanes of a warp do together. */
struct gg_host_operation {
    const char *name; /* for messages */
    /* Called once for all: argument[i] is what lane i passed, or NULL. Writes into @p failure, of @p size bytes, what is
     * wrong with an argument. NULL: they only wait for each other. */
    void (*run)(void *const argument[GG_HOST_WARP], uint32_t lanes, char *failure, size_t size);
};

/* What a kernel knows about the thread that runs it. Valid while it runs. */
struct gg_host_thread {
    uint32_t struct_size;
    uint32_t shared_size;                   /* bytes at shared */
    struct gg_host_dim thread, block;       /* the indices in the block and in the grid */
    struct gg_host_dim block_dim, grid_dim; /* the numbers of threads and blocks */
    void *shared;                           /* dynamic shared memory of the block, aligned to 64 */
    /* Wait until all threads of the block that have not ended are at the barrier. */
    void (*barrier)(const struct gg_host_thread *self);
    void *reserved; /* the launcher's */
    /* Wait until all lanes in @p mask that have not ended make the same call; then the operation runs. With @p site the mask
     * is 0: wait until no thread of the block can go on, for the lanes that wait at that site. */
    void (*warp)(const struct gg_host_thread *self, uint32_t mask,
                 const struct gg_host_operation *operation, void *argument, const void *site);
};

struct gg_host_kernel {
    uint32_t struct_size;
    int32_t parameter_count;
    const char *name;
    const struct gg_parameter *parameters;
    void (*run)(const struct gg_host_thread *thread, const void *const *arguments);
    uint32_t shared_size; /* bytes of static shared memory; only reported */
    uint32_t max_threads; /* per block; 0: no limit of its own */
};

struct gg_host_kernels {
    uint32_t magic, abi; /* GG_HOST_KERNELS_MAGIC, GG_HOST_KERNELS_ABI */
    size_t count;
    const struct gg_host_kernel *const *kernels;
};

GG_API extern const struct gg_host_kernels gg_host_kernels; /* defined by the shared object */

GG_END_DECLS
#endif
