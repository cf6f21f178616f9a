/* image.h: compiled device code and its metadata. Needs no device. */
#ifndef GG_IMAGE_H
#define GG_IMAGE_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

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
    GG_PARAMETER_UNKNOWN,
    GG_PARAMETER_SIGNED,
    GG_PARAMETER_UNSIGNED,
    GG_PARAMETER_INTEGER, /* of unknown sign */
    GG_PARAMETER_FLOAT,
    GG_PARAMETER_POINTER,
    GG_PARAMETER_BYTES, /* a struct or array passed by value */
    GG_PARAMETER_LOCAL  /* memory of each block, whose size the launch sets (OpenCL's __local) */
};

/** The size never changes: plugins fill in this struct, and arrays of it are indexed. */
struct gg_parameter {
    uint32_t offset; /* in the kernel's argument buffer, in bytes */
    uint32_t size;   /* in bytes; 0: unknown */
    uint32_t kind;   /* enum gg_parameter_kind */
    uint32_t reserved;
};

struct gg_image_kernel {
    const char *name;
    int32_t parameter_count; /* -1: the image does not record it */
    uint32_t reserved;
    const struct gg_parameter *parameters;
};

/** Metadata of an image. */
struct gg_image {
    uint32_t struct_size;
    uint32_t format;  /* enum gg_image_format */
    const char *word; /* gg_image_format_name(format) */
    /* Target architectures: "sm_90", "gfx90a", "x86_64", "sm_80 sm_90", or "". Ends in "…" if the list
     * does not fit. */
    char arch[160];
    size_t kernel_count;
    const struct gg_image_kernel *kernels; /* empty if the format hides them (a compressed fatbin) */
    size_t kernel_size;                    /* bytes from one to the next: use gg_image_kernel_at */
};

/** Kernel @p index, below kernel_count. The library's structs may be larger than those of this header. */
static inline const struct gg_image_kernel *gg_image_kernel_at(const struct gg_image *image,
                                                               size_t index)
{
    return (const struct gg_image_kernel *)(const void *)((const char *)image->kernels +
                                                          index * image->kernel_size);
}

/** Detect the format of @p nbytes at @p bytes and read its metadata. Any input is safe: no byte beyond
 *  @p nbytes is read.
 *  Ownership  free the result with gg_image_free; it holds no pointer into @p bytes.
 *  Errors     GG_ERR_INVALID_ARGUMENT: truncated, damaged, or of an unknown format. */
GG_API gg_status gg_image_read(const void *bytes, size_t nbytes, struct gg_image **out);

/** Free the result of gg_image_read. NULL is allowed. */
GG_API void gg_image_free(struct gg_image *image);

/** Name of a format, such as "cubin". Static, never NULL. */
GG_API const char *gg_image_format_name(uint32_t format);

GG_END_DECLS
#endif
