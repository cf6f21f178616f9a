/* kernel.h: kernels and their launches. */
#ifndef GG_KERNEL_H
#define GG_KERNEL_H

#include <gpuglue/image.h>

GG_BEGIN_DECLS

/** Add a reference; drop one (NULL is allowed). */
GG_API void gg_kernel_retain(gg_kernel *kernel);
GG_API void gg_kernel_release(gg_kernel *kernel);

/** Name in the image, module and device; valid as long as the kernel. */
GG_API const char *gg_kernel_name(const gg_kernel *kernel);
GG_API gg_module *gg_kernel_module(const gg_kernel *kernel);
GG_API gg_device *gg_kernel_device(const gg_kernel *kernel);

/** Number of parameters, or -1 if neither the image nor the driver reports it; and their layout. */
GG_API int32_t gg_kernel_parameter_count(const gg_kernel *kernel);
GG_API const struct gg_parameter *gg_kernel_parameters(const gg_kernel *kernel);

/* Numeric attributes of a kernel, sizes in bytes. One that a backend does not know is GG_ERR_UNSUPPORTED. */
#define GG_KERNEL_ATTRIBUTES(X)                                         \
    X(MAX_THREADS_PER_BLOCK, "max_threads_per_block")                   \
    X(SHARED_SIZE, "shared_size") /* declared statically in the code */ \
    X(CONSTANT_SIZE, "constant_size")                                   \
    X(LOCAL_SIZE, "local_size") /* per thread */                        \
    X(REGISTERS, "registers")                                           \
    X(MAX_DYNAMIC_SHARED_SIZE, "max_dynamic_shared_size")               \
    X(WARP_SIZE, "warp_size")
#define GG_KERNEL_ATTRIBUTE_ENUM(name, word) GG_KERNEL_##name,
typedef enum gg_kernel_attribute {
    GG_KERNEL_ATTRIBUTES(GG_KERNEL_ATTRIBUTE_ENUM) GG_KERNEL_ATTRIBUTE_COUNT
} gg_kernel_attribute;
#undef GG_KERNEL_ATTRIBUTE_ENUM

/** Name of an attribute, such as "registers"; "unknown" for an unknown number. */
GG_API const char *gg_kernel_attribute_name(gg_kernel_attribute attribute);

/** One attribute of a kernel.
 *  Errors  GG_ERR_UNSUPPORTED: the backend does not know it;
 *          GG_ERR_INVALID_ARGUMENT: no such attribute. */
GG_API gg_status gg_kernel_attribute_get(gg_kernel *kernel, gg_kernel_attribute attribute,
                                         int64_t *value);

/** Number of blocks of @p threads threads and @p shared bytes of dynamic shared memory that one
 *  multiprocessor runs at a time. */
GG_API gg_status gg_kernel_occupancy(gg_kernel *kernel, uint32_t threads, size_t shared,
                                     int32_t *blocks);

/** Threads per block for the highest occupancy, and the smallest grid that then fills the device.
 *  @p limit is the largest block to consider; 0: the device's limit. */
GG_API gg_status gg_kernel_suggest_block_size(gg_kernel *kernel, size_t shared, uint32_t limit,
                                              uint32_t *threads, uint32_t *blocks);

enum gg_launch_flag {
    GG_LAUNCH_COOPERATIVE =
        1 /* all blocks run at the same time and may synchronize with each other */
};

struct gg_launch {
    uint32_t struct_size;
    uint32_t flags; /* enum gg_launch_flag */
    uint32_t grid[3], block[3];
    uint32_t shared; /* dynamic shared memory of each block, in bytes */
    uint32_t argument_count;
    /* Address of each argument's value, read before the call returns; NULL for a LOCAL parameter. */
    const void *const *arguments;
    const size_t *sizes;        /* of the arguments, in bytes */
    gg_memory *const *memories; /* that the kernel reads or writes */
    size_t memory_count;
};

/** Launch a kernel. List its device memory in @p launch->memories: it is retained until the kernel is
 *  complete, and the launch counts as a use of it.
 *  Stream   NULL: the device's current stream, which first waits for unfinished work on the memories and
 *           on the module's variables. Given: no implicit synchronization is added, except that memory
 *           which the pool just allocated for another stream is waited for.
 *  Errors   GG_ERR_INVALID_ARGUMENT, before anything runs: wrong number or size of arguments, a grid or
 *           block over a limit (which is named), memory of another device. */
GG_API gg_status gg_kernel_launch(gg_kernel *kernel, const struct gg_launch *launch,
                                  gg_stream *stream);

GG_END_DECLS
#endif
