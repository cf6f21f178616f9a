/* image.h: what the readers of the image formats share. Every offset and every count comes from the image, so a
 * reader trusts none of them. */
#ifndef GPUGLUE_IMAGE_H
#define GPUGLUE_IMAGE_H

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* ---- bounded reads ---- */

/* Part of an image. */
struct ggi_bytes {
    const unsigned char *at;
    size_t size;
};

/* Whether [offset, offset + size) is inside. */
static inline bool ggi_bytes_contain(struct ggi_bytes bytes, uint64_t offset, uint64_t size)
{
    return offset <= bytes.size && size <= bytes.size - offset;
}
/* That part, or no bytes if it is not inside. */
static inline struct ggi_bytes ggi_bytes_slice(struct ggi_bytes bytes, uint64_t offset,
                                               uint64_t size)
{
    if (!ggi_bytes_contain(bytes, offset, size))
        return (struct ggi_bytes){NULL, 0};
    return (struct ggi_bytes){bytes.at + offset, (size_t)size};
}
/* Little-endian numbers; 0 if they are not inside. */
static inline uint64_t ggi_bytes_uint(struct ggi_bytes bytes, uint64_t offset, unsigned size)
{
    uint64_t value = 0;
    if (!ggi_bytes_contain(bytes, offset, size))
        return 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)bytes.at[offset + i] << (8 * i);
    return value;
}
static inline uint16_t ggi_u16(struct ggi_bytes bytes, uint64_t offset)
{
    return (uint16_t)ggi_bytes_uint(bytes, offset, 2);
}
static inline uint32_t ggi_u32(struct ggi_bytes bytes, uint64_t offset)
{
    return (uint32_t)ggi_bytes_uint(bytes, offset, 4);
}
static inline uint64_t ggi_u64(struct ggi_bytes bytes, uint64_t offset)
{
    return ggi_bytes_uint(bytes, offset, 8);
}
static inline bool ggi_bytes_start_with(struct ggi_bytes bytes, const char *text, size_t size)
{
    return bytes.size >= size && !memcmp(bytes.at, text, size);
}

static inline bool ggi_bytes_equal(struct ggi_bytes bytes, const char *text)
{
    return bytes.size == strlen(text) && ggi_bytes_start_with(bytes, text, bytes.size);
}

/* ---- incomplete images ---- */

/* Whether only the last byte of a cubin is absent, which belongs to its program headers and is 0. CuPy's
 * compile_using_nvrtc removes it (its file nvrtc.pyx, getCUBIN). */
bool ggi_cubin_lacks_a_byte(struct ggi_bytes bytes);
/* Make such a cubin complete: then *copy is to be freed after the last use of *bytes; else it is NULL. */
gg_status ggi_image_complete(struct ggi_bytes *bytes, void **copy);

/* ---- building the description: image_builder.c ---- */

#define GGI_MAX_KERNELS 65536u
#define GGI_MAX_PARAMETERS 4096u
#define GGI_MAX_CONSTANTS 65536u

/* Add a kernel whose parameter count is not known yet. Names are cut at their first NUL. */
gg_status ggi_image_add_kernel(struct gg_image *image, struct ggi_bytes name,
                               struct gg_image_kernel **out);
/* Add a parameter to the kernel; sets parameter_count from -1 to 1, or increments it. */
gg_status ggi_image_add_parameter(struct gg_image_kernel *kernel,
                                  const struct gg_parameter *parameter);
gg_status ggi_image_add_constant(struct gg_image *image, const struct gg_image_constant *constant);
/* Append a word to image->arch unless it is there. If it does not fit, GGI_MORE_ARCHS ends the list. */
#define GGI_MORE_ARCHS "\xe2\x80\xa6"
void ggi_image_add_arch(struct gg_image *image, const char *word);
/* The same with the target of a triple, "…--gfx90a": what follows the dashes of the first @p mark. */
void ggi_image_add_target(struct gg_image *image, struct ggi_bytes triple, const char *mark);
/* Forget all kernels. */
void ggi_image_clear(struct gg_image *image);
gg_status ggi_image_damaged(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- the readers. image->format is set, the rest of the image is zero ---- */

gg_status ggi_image_read_bundle(struct ggi_bytes bytes, struct gg_image *image);
gg_status ggi_image_read_elf(struct ggi_bytes bytes, struct gg_image *image);
gg_status ggi_image_read_msgpack(struct ggi_bytes pack, struct gg_image *image);
gg_status ggi_image_read_ptx(struct ggi_bytes bytes, struct gg_image *image);
gg_status ggi_image_read_spirv(struct ggi_bytes bytes, struct gg_image *image);
/* Adds what further SPIR-V has, which is linked with the image. */
gg_status ggi_image_add_spirv(struct ggi_bytes bytes, struct gg_image *image, uint32_t input);

#endif
