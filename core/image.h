/* image.h: what the readers of the several formats share. A reader trusts nothing: every offset and every
 * count comes from the image. */
#ifndef GPUGLUE_IMAGE_H
#define GPUGLUE_IMAGE_H

#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* Part of an image. */
struct ggi_bytes {
    const unsigned char *at;
    size_t size;
};

/* Whether [offset, offset + size) lies inside. */
static inline bool ggi_inside(struct ggi_bytes bytes, uint64_t offset, uint64_t size)
{
    return offset <= bytes.size && size <= bytes.size - offset;
}
/* The part, or an empty one where it is not inside. */
static inline struct ggi_bytes ggi_part(struct ggi_bytes bytes, uint64_t offset, uint64_t size)
{
    if (!ggi_inside(bytes, offset, size))
        return (struct ggi_bytes){NULL, 0};
    return (struct ggi_bytes){bytes.at + offset, (size_t)size};
}
/* Little-endian numbers; 0 where they are not inside. */
static inline uint64_t ggi_number(struct ggi_bytes bytes, uint64_t offset, unsigned size)
{
    uint64_t value = 0;
    if (!ggi_inside(bytes, offset, size))
        return 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)bytes.at[offset + i] << (8 * i);
    return value;
}
static inline uint16_t ggi_u16(struct ggi_bytes bytes, uint64_t offset)
{
    return (uint16_t)ggi_number(bytes, offset, 2);
}
static inline uint32_t ggi_u32(struct ggi_bytes bytes, uint64_t offset)
{
    return (uint32_t)ggi_number(bytes, offset, 4);
}
static inline uint64_t ggi_u64(struct ggi_bytes bytes, uint64_t offset)
{
    return ggi_number(bytes, offset, 8);
}
static inline bool ggi_begins(struct ggi_bytes bytes, const char *text, size_t size)
{
    return bytes.size >= size && !memcmp(bytes.at, text, size);
}

/* ---- building the answer; each returns GG_ERR_OUT_OF_MEMORY or GG_OK ---- */

#define GGI_MAX_KERNELS 65536u
#define GGI_MAX_PARAMETERS 4096u

/* One more kernel, without parameters (their number not known). Names are cut at their first NUL. */
gg_status ggi_image_add_kernel(struct gg_image *image, struct ggi_bytes name,
                               struct gg_image_kernel **out);
/* One more parameter of the kernel; sets parameter_count from -1 to 1 or raises it. */
gg_status ggi_image_add_parameter(struct gg_image_kernel *kernel,
                                  const struct gg_parameter *parameter);
/* @p word behind what arch has, with a blank between; not if it is there already. Where no room is left the
 * dots of GGI_MORE_ARCHS end it. */
#define GGI_MORE_ARCHS "\xe2\x80\xa6"
void ggi_image_add_arch(struct gg_image *image, const char *word);
gg_status ggi_image_damaged(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- the readers; image->format and zeroes are set ---- */

gg_status ggi_image_read_elf(struct ggi_bytes bytes, struct gg_image *image);    /* image_elf.c */
gg_status ggi_image_read_note(struct ggi_bytes pack, struct gg_image *image);    /* image_note.c */
gg_status ggi_image_read_text(struct ggi_bytes bytes, struct gg_image *image);   /* image_text.c */
gg_status ggi_image_read_spirv(struct ggi_bytes bytes, struct gg_image *image);  /* image_spirv.c */
gg_status ggi_image_read_fatbin(struct ggi_bytes bytes, struct gg_image *image); /* image_fat.c */
gg_status ggi_image_read_bundle(struct ggi_bytes bytes, struct gg_image *image); /* image_fat.c */

#endif
