/** @file
 *  Compiled device code and its metadata. Needs no device.
 *
 *  @par Ordering
 *  Nothing here orders work.
 *  @par Threads
 *  Any thread. A gg_image is read-only. */
#ifndef GG_IMAGE_H
#define GG_IMAGE_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

#define GG_IMAGE_FORMATS(X)                                                                        \
    X(UNKNOWN, "unknown")           /**< none of those below */                                    \
    X(CUBIN, "cubin")               /**< machine code of one NVIDIA architecture */                \
    X(FATBIN, "fatbin")             /**< several images for NVIDIA architectures */                \
    X(PTX, "ptx")                   /**< NVIDIA's assembler text, which the driver compiles */     \
    X(LTOIR, "ltoir")               /**< NVIDIA's intermediate code, which must be linked first */ \
    X(CODE_OBJECT, "code object")   /**< machine code of one AMD architecture */                   \
    X(BUNDLE, "code object bundle") /**< several images for AMD architectures */                   \
    X(SPIRV, "spirv")               /**< intermediate code, which the driver compiles */           \
    X(ZEBIN, "zebin")               /**< machine code of one Intel architecture */                 \
    X(SHARED_OBJECT, "shared object") /**< machine code of the host */
#define GG_IMAGE_ENUM(name, word) GG_IMAGE_##name,
/** Formats of compiled device code. */
enum gg_image_format {
    GG_IMAGE_FORMATS(GG_IMAGE_ENUM) GG_IMAGE_FORMAT_COUNT /**< number of formats */
};
#undef GG_IMAGE_ENUM

/** What an image records about the type of a kernel's parameter. */
enum gg_parameter_kind {
    GG_PARAMETER_UNKNOWN,  /**< the image does not record it */
    GG_PARAMETER_SIGNED,   /**< a signed integer */
    GG_PARAMETER_UNSIGNED, /**< an unsigned integer */
    GG_PARAMETER_INTEGER,  /**< of unknown sign */
    GG_PARAMETER_FLOAT,    /**< a floating-point number */
    GG_PARAMETER_POINTER,  /**< a device address */
    GG_PARAMETER_BYTES,    /**< a struct or array passed by value */
    GG_PARAMETER_LOCAL /**< memory of each block, whose size the launch sets (OpenCL's __local) */
};

/** A parameter of a kernel. The size never changes: plugins fill in this struct, and arrays of it are indexed. */
struct gg_parameter {
    uint32_t offset;   /**< in the kernel's argument buffer, in bytes */
    uint32_t size;     /**< in bytes; 0: unknown */
    uint32_t kind;     /**< enum gg_parameter_kind */
    uint32_t reserved; /**< 0 */
};

/** A kernel of an image. */
struct gg_image_kernel {
    const char *name;                      /**< as gg_module_kernel expects it */
    int32_t parameter_count;               /**< -1: the image does not record it */
    uint32_t reserved;                     /**< 0 */
    const struct gg_parameter *parameters; /**< parameter_count of them */
};

/** A specialisation constant of SPIR-V: a number that gg_module_load_with can replace before the driver compiles the code.
 *  The size never changes: arrays of it are indexed. */
struct gg_image_constant {
    uint32_t id; /**< number by which the code declares it (SpecId) */
    uint32_t kind; /**< GG_PARAMETER_INTEGER, GG_PARAMETER_FLOAT, or GG_PARAMETER_UNSIGNED for a boolean */
    uint32_t size;  /**< in bytes: 1, 2, 4 or 8 */
    uint32_t input; /**< 0: of the image itself; n: of the nth further input of a module */
    uint64_t value; /**< that of the image, in the low bytes */
};

/** Metadata of an image. */
struct gg_image {
    uint32_t struct_size; /**< bytes that the library wrote */
    uint32_t format;      /**< enum gg_image_format */
    const char *word;     /**< gg_image_format_name(format) */
    /** Target architectures: "sm_90", "gfx90a", "x86_64", "sm_80 sm_90", or "". Ends in "…" if the list does not fit. */
    char arch[160];
    size_t kernel_count;                   /**< number of kernels */
    const struct gg_image_kernel *kernels; /**< empty if the format hides them (a compressed fatbin) */
    size_t kernel_size;    /**< bytes from one to the next: use gg_image_kernel_at */
    size_t constant_count; /**< number of specialisation constants */
    const struct gg_image_constant *constants; /**< by input, then in the order of the code */
};

/** A kernel of an image. The library's structs may be larger than those of this header.
 *
 *  @param image  any image
 *  @param index  below kernel_count
 *  @return valid as long as the image */
static inline const struct gg_image_kernel *gg_image_kernel_at(const struct gg_image *image,
                                                               size_t index)
{
    return (const struct gg_image_kernel *)(const void *)((const char *)image->kernels +
                                                          index * image->kernel_size);
}

/** Detect the format of an image and read its metadata. Any input is safe: no byte beyond @p nbytes is read.
 *
 *  @param bytes     the image
 *  @param nbytes    its size in bytes
 *  @param[out] out  free it with gg_image_free; it holds no pointer into @p bytes
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  truncated, damaged, or of an unknown format
 *  @retval GG_ERR_OUT_OF_MEMORY     of the host */
GG_API gg_status gg_image_read(const void *bytes, size_t nbytes, struct gg_image **out);

/** Free the result of gg_image_read.
 *
 *  @param image  may be NULL */
GG_API void gg_image_free(struct gg_image *image);

/** Name of a format.
 *
 *  @param format  any number
 *  @return such as "cubin"; static, never NULL */
GG_API const char *gg_image_format_name(uint32_t format);

GG_END_DECLS
#endif
