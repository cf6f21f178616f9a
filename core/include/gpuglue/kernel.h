/* kernel.h: images of device code, the modules they become on a device, and launches of their kernels.
 * Included by gpuglue.h; its conventions hold. */
#ifndef GPUGLUE_KERNEL_H
#define GPUGLUE_KERNEL_H

#include <gpuglue/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gg_module gg_module;
typedef struct gg_kernel gg_kernel;

/* ---- images: bytes, told apart by content; needs no device --------------------------------------- */

#define GG_IMAGE_FORMATS(X)         \
    X(UNKNOWN, "unknown")           \
    X(CUBIN, "cubin")               \
    X(FATBIN, "fatbin")             \
    X(PTX, "ptx")                   \
    X(LTOIR, "ltoir")               \
    X(CODE_OBJECT, "code object")   \
    X(BUNDLE, "code object bundle") \
    X(SPIRV, "spirv")               \
    X(ZEBIN, "zebin")               \
    X(SHARED_OBJECT, "shared object")
#define GG_IMAGE_ENUM(name, word) GG_IMAGE_##name,
enum gg_image_format { GG_IMAGE_FORMATS(GG_IMAGE_ENUM) GG_IMAGE_FORMAT_COUNT };
#undef GG_IMAGE_ENUM

enum gg_parameter_kind {
    GG_PARAMETER_UNKNOWN, /* size bytes of something */
    GG_PARAMETER_SIGNED,
    GG_PARAMETER_UNSIGNED,
    GG_PARAMETER_INTEGER, /* of a sign that the image does not tell */
    GG_PARAMETER_FLOAT,
    GG_PARAMETER_POINTER,
    GG_PARAMETER_BYTES, /* a struct or an array, by value */
    GG_PARAMETER_LOCAL  /* memory that each block has to itself, of a size that the launch says */
};

struct gg_parameter {
    uint32_t offset; /* in the kernel's block of arguments, in bytes */
    uint32_t size;   /* in bytes; 0: not told */
    uint32_t kind;   /* enum gg_parameter_kind */
    uint32_t reserved;
};

struct gg_image_kernel {
    const char *name;
    int32_t parameter_count; /* -1: the image does not tell */
    uint32_t reserved;
    const struct gg_parameter *parameters;
};

/** What an image says of itself. */
struct gg_image {
    uint32_t struct_size;
    uint32_t format;  /* enum gg_image_format */
    const char *word; /* gg_image_format_name of it */
    /* What it is for: "sm_90", "gfx90a", "x86_64"; of several "sm_80 sm_90"; "". The last word is "…" where
     * there is no room for all of them. */
    char arch[160];
    size_t kernel_count;
    const struct gg_image_kernel *kernels; /* none where the format hides them (a compressed fatbin) */
};

/** Look at @p nbytes at @p bytes. Whatever they hold: no read goes past them.
 *  Ownership  free the result with gg_image_free; it points nowhere into @p bytes.
 *  Errors     GG_ERR_INVALID_ARGUMENT: truncated, damaged, or of no format that is known. */
GG_API gg_status gg_image_read(const void *bytes, size_t nbytes, struct gg_image **out);
GG_API void gg_image_free(struct gg_image *image);
GG_API const char *gg_image_format_name(uint32_t format); /* "cubin"; static; never NULL */

/* ---- modules --------------------------------------------------------------------------------------- */

/** Load an image onto @p device. The bytes may go when the call returns.
 *  Errors  GG_ERR_INVALID_ARGUMENT: of another architecture (both are named), damaged;
 *          GG_ERR_UNSUPPORTED: a backend without modules, a format that has to be linked first. */
GG_API gg_status gg_module_load(gg_device *device, const void *bytes, size_t nbytes,
                                gg_module **out);
GG_API void gg_module_retain(gg_module *module);
GG_API void gg_module_release(gg_module *module); /* it is unloaded when its launches are over */
GG_API gg_device *gg_module_device(const gg_module *module);
GG_API const struct gg_image *gg_module_image(const gg_module *module); /* lives with the module */

/** A variable of the module in device memory. The memory keeps the module; launches of the module's
 *  kernels count as uses of it.
 *  Errors  GG_ERR_INVALID_ARGUMENT: there is none of that name. */
GG_API gg_status gg_module_global(gg_module *module, const char *name, gg_memory **out);

/** A kernel by its name in the image. It keeps the module.
 *  Errors  GG_ERR_INVALID_ARGUMENT: there is none; the message lists those that there are. */
GG_API gg_status gg_module_kernel(gg_module *module, const char *name, gg_kernel **out);

/* ---- kernels --------------------------------------------------------------------------------------- */

GG_API void gg_kernel_retain(gg_kernel *kernel);
GG_API void gg_kernel_release(gg_kernel *kernel);
GG_API const char *gg_kernel_name(const gg_kernel *kernel);
GG_API gg_module *gg_kernel_module(const gg_kernel *kernel);
GG_API gg_device *gg_kernel_device(const gg_kernel *kernel);

/** How many parameters it has, or -1 where neither image nor driver tells; and where they lie. */
GG_API int32_t gg_kernel_parameter_count(const gg_kernel *kernel);
GG_API const struct gg_parameter *gg_kernel_parameters(const gg_kernel *kernel);

/* Numbers of a kernel; what a backend does not know is GG_ERR_UNSUPPORTED. Sizes are in bytes. */
#define GG_KERNEL_ATTRIBUTES(X)                                         \
    X(MAX_THREADS_PER_BLOCK, "max_threads_per_block")                   \
    X(SHARED_SIZE, "shared_size") /* what the kernel itself declares */ \
    X(CONSTANT_SIZE, "constant_size")                                   \
    X(LOCAL_SIZE, "local_size") /* of a thread */                       \
    X(REGISTERS, "registers")                                           \
    X(MAX_DYNAMIC_SHARED_SIZE, "max_dynamic_shared_size")               \
    X(WARP_SIZE, "warp_size")
#define GG_KERNEL_ATTRIBUTE_ENUM(name, word) GG_KERNEL_##name,
typedef enum gg_kernel_attribute {
    GG_KERNEL_ATTRIBUTES(GG_KERNEL_ATTRIBUTE_ENUM) GG_KERNEL_ATTRIBUTE_COUNT
} gg_kernel_attribute;
#undef GG_KERNEL_ATTRIBUTE_ENUM

GG_API const char *gg_kernel_attribute_name(gg_kernel_attribute attribute);
GG_API gg_status gg_kernel_attribute_get(gg_kernel *kernel, gg_kernel_attribute attribute,
                                         int64_t *value);

/** How many blocks of @p threads threads and @p shared bytes of dynamic shared memory a multiprocessor
 *  runs at once. */
GG_API gg_status gg_kernel_occupancy(gg_kernel *kernel, uint32_t threads, size_t shared,
                                     int32_t *blocks);

/** Threads per block that keep the device busiest, and the fewest blocks that fill it then.
 *  @p limit: at most so many threads; 0: the device's limit. */
GG_API gg_status gg_kernel_suggest(gg_kernel *kernel, size_t shared, uint32_t limit,
                                   uint32_t *threads, uint32_t *blocks);

/* ---- launch ---------------------------------------------------------------------------------------- */

enum gg_launch_flag {
    GG_LAUNCH_COOPERATIVE = 1 /* all blocks run at once, so that they may wait for each other */
};

struct gg_launch {
    uint32_t struct_size;
    uint32_t flags; /* enum gg_launch_flag */
    uint32_t grid[3], block[3];
    uint32_t shared; /* bytes of dynamic shared memory for each block */
    uint32_t argument_count;
    const void *const *arguments; /* where each argument's value is; read before the call returns;
                                     NULL for a parameter of kind LOCAL */
    const size_t *sizes;          /* of each, in bytes */
    gg_memory *const *memories;   /* what the kernel reads and writes */
    size_t memory_count;
};

/** Run a kernel. Its device memory is in @p launch->memories, so that it is kept until the work has run
 *  and counts as used.
 *  Stream   NULL: the current stream of the device, made to wait first for unfinished gpuglue work on
 *           the memories and the module's variables. Given: nothing is inserted, but where the pool has
 *           just given out one of the memories to another stream: that hand-out is waited for.
 *  Errors   GG_ERR_INVALID_ARGUMENT, before anything runs: number or size of arguments, a block or grid
 *           over a limit (which is named), memory of another device. */
GG_API gg_status gg_kernel_launch(gg_kernel *kernel, const struct gg_launch *launch,
                                  gg_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
