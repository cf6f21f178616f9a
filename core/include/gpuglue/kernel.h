/** @file
 *  Kernels and their launches.
 *
 *  @par Ordering
 *  With stream NULL a launch is queued on the device's current stream, which first waits for unfinished work on the listed
 *  memories and on the module's variables. With a stream, no implicit synchronization is added, with one
 *  exception: the launch waits for memory that was allocated for another stream to become ready (pool.h).
 *  @par Threads
 *  Any thread. Several threads may launch the same kernel. */
#ifndef GG_KERNEL_H
#define GG_KERNEL_H

#include <gpuglue/image.h>

GG_BEGIN_DECLS

/** Add a reference.
 *
 *  @param kernel  any kernel */
GG_API void gg_kernel_retain(gg_kernel *kernel);

/** Drop a reference. Never waits; launches that are queued still run.
 *
 *  @param kernel  may be NULL */
GG_API void gg_kernel_release(gg_kernel *kernel);

/** Name in the image.
 *
 *  @param kernel  any kernel
 *  @return valid as long as the kernel */
GG_API const char *gg_kernel_name(const gg_kernel *kernel);

/** The module that the kernel is a part of.
 *
 *  @param kernel  any kernel
 *  @return valid as long as the kernel; not a reference */
GG_API gg_module *gg_kernel_module(const gg_kernel *kernel);

/** The device that the kernel's module was loaded onto.
 *
 *  @param kernel  any kernel
 *  @return the device, not a reference */
GG_API gg_device *gg_kernel_device(const gg_kernel *kernel);

/** Number of parameters.
 *
 *  @param kernel  any kernel
 *  @return -1 if neither the image nor the driver reports it */
GG_API int32_t gg_kernel_parameter_count(const gg_kernel *kernel);

/** Layout of the parameters.
 *
 *  @param kernel  any kernel
 *  @return gg_kernel_parameter_count of them, valid as long as the kernel */
GG_API const struct gg_parameter *gg_kernel_parameters(const gg_kernel *kernel);

#define GG_KERNEL_ATTRIBUTES(X)                                                                 \
    X(MAX_THREADS_PER_BLOCK, "max_threads_per_block") /**< threads of a block of this kernel */ \
    X(SHARED_SIZE, "shared_size")                     /**< bytes of a block, static */          \
    X(CONSTANT_SIZE, "constant_size")                 /**< bytes of constant memory */          \
    X(LOCAL_SIZE, "local_size")                       /**< bytes of local memory per thread */  \
    X(REGISTERS, "registers")                         /**< registers per thread */              \
    X(MAX_DYNAMIC_SHARED_SIZE, "max_dynamic_shared_size") /**< bytes a launch may add */        \
    X(WARP_SIZE, "warp_size")                             /**< threads that run in lockstep */  \
    X(SPILL_SIZE, "spill_size") /**< bytes per thread for registers that did not fit, if known */
#define GG_KERNEL_ATTRIBUTE_ENUM(name, word) GG_KERNEL_##name,
/** Numeric attributes of a kernel. One that a backend does not know is GG_ERR_UNSUPPORTED. */
typedef enum gg_kernel_attribute {
    GG_KERNEL_ATTRIBUTES(GG_KERNEL_ATTRIBUTE_ENUM)
        GG_KERNEL_ATTRIBUTE_COUNT /**< number of attributes */
} gg_kernel_attribute;
#undef GG_KERNEL_ATTRIBUTE_ENUM

/** Name of an attribute.
 *
 *  @param attribute  any number
 *  @return such as "registers"; "unknown" for an unknown number; static */
GG_API const char *gg_kernel_attribute_name(gg_kernel_attribute attribute);

/** One attribute of a kernel.
 *
 *  @param kernel      any kernel
 *  @param attribute   which one
 *  @param[out] value  a count, or bytes
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_UNSUPPORTED       the backend does not know it
 *  @retval GG_ERR_INVALID_ARGUMENT  no such attribute */
GG_API gg_status gg_kernel_attribute_get(gg_kernel *kernel, gg_kernel_attribute attribute,
                                         int64_t *value);

/** Number of blocks that one multiprocessor runs at a time.
 *
 *  @param kernel       any kernel
 *  @param threads      threads of a block
 *  @param shared       dynamic shared memory of a block, in bytes
 *  @param[out] blocks  a count
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_UNSUPPORTED  the backend does not report it */
GG_API gg_status gg_kernel_occupancy(gg_kernel *kernel, uint32_t threads, size_t shared,
                                     int32_t *blocks);

/** Threads per block for the highest occupancy, and the smallest grid that then fills the device.
 *
 *  @param kernel        any kernel
 *  @param shared        dynamic shared memory of a block, in bytes
 *  @param limit         largest block to consider, in threads; 0: the device's limit
 *  @param[out] threads  threads of a block
 *  @param[out] blocks   blocks of the grid
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_UNSUPPORTED  the backend does not report it */
GG_API gg_status gg_kernel_suggest_block_size(gg_kernel *kernel, size_t shared, uint32_t limit,
                                              uint32_t *threads, uint32_t *blocks);

/** How a kernel is launched. */
enum gg_launch_flag {
    /** All blocks run at the same time and may synchronize with each other. */
    GG_LAUNCH_COOPERATIVE = 1
};

/** Configuration and arguments of a launch. */
struct gg_launch {
    uint32_t struct_size;    /**< sizeof(struct gg_launch) */
    uint32_t flags;          /**< of enum gg_launch_flag, or 0 */
    uint32_t grid[3],        /**< blocks on the axes x, y, z; each 1 or more */
        block[3];            /**< threads of a block on the axes x, y, z; each 1 or more */
    uint32_t shared;         /**< dynamic shared memory of each block, in bytes */
    uint32_t argument_count; /**< length of arguments and sizes */
    /** Address of each argument's value, read before the call returns; NULL for a LOCAL parameter. */
    const void *const *arguments;
    const size_t *sizes;        /**< of the arguments, in bytes */
    gg_memory *const *memories; /**< memory that the kernel reads or writes */
    size_t memory_count;        /**< length of memories */
};

/** Queue a launch of a kernel.
 *
 *  @param kernel  any kernel
 *  @param launch  grid, arguments and memories. The memories are retained until the kernel is complete, and the launch
 *                 counts as a use of them
 *  @param stream  NULL: the device's current stream, after unfinished work on the memories
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  before anything runs: wrong number or size of arguments, a grid or block over a limit
 *                                   (the message names it), memory of another device */
GG_API gg_status gg_kernel_launch(gg_kernel *kernel, const struct gg_launch *launch,
                                  gg_stream *stream);

GG_END_DECLS
#endif
