/* image.c: the format of an image, detected from its content, and the reader for it; fatbins. */
#include "kernel/image.h"

#include <stdio.h>

#define PTX_SIZE_MIN 16

/* ---- fatbins: the architectures that they hold ---- */

enum { FATBIN_PTX = 1, FATBIN_ELF = 2 }; /* other kinds must be linked before they can be loaded */

/* A header has the member's kind at 0 and its target at 28. False for a member that must be linked first. */
static bool fatbin_read_member(struct ggi_bytes member, struct gg_image *image)
{
    char arch[32];
    const unsigned kind = ggi_u16(member, 0);
    if (kind != FATBIN_PTX && kind != FATBIN_ELF)
        return false;
    snprintf(arch, sizeof arch, "%s_%u", kind == FATBIN_PTX ? "compute" : "sm",
             (unsigned)ggi_u32(member, 28));
    ggi_image_add_arch(image, arch);
    return true;
}

static gg_status image_read_fatbin(struct ggi_bytes bytes, struct gg_image *image)
{
    const uint64_t header = ggi_u16(bytes, 6), size = ggi_u64(bytes, 8);
    struct ggi_bytes members = ggi_bytes_slice(bytes, header, size);
    unsigned any = 0, loadable = 0;
    if (header < 16 || !ggi_bytes_contain(bytes, header, size))
        return ggi_image_damaged("the fatbin's header declares %llu bytes, but %zu are left",
                                 (unsigned long long)size, bytes.size);
    for (uint64_t at = 0; at < members.size; any++) {
        const uint64_t head = ggi_u32(members, at + 4), body = ggi_u64(members, at + 8);
        if (head < 32 || !ggi_bytes_contain(members, at, head) ||
            !ggi_bytes_contain(members, at + head, body))
            return ggi_image_damaged("member %u of the fatbin extends past its end", any);
        loadable += fatbin_read_member(ggi_bytes_slice(members, at, head), image);
        at += head + body;
    }
    if (any && !loadable)
        image->format = GG_IMAGE_LTOIR;
    return GG_OK;
}

/* ---- detection ---- */
const char *gg_image_format_name(uint32_t format)
{
#define GG_IMAGE_WORD(name, word) word,
    static const char *const words[] = {GG_IMAGE_FORMATS(GG_IMAGE_WORD)};
#undef GG_IMAGE_WORD
    return format < GG_IMAGE_FORMAT_COUNT ? words[format] : words[GG_IMAGE_UNKNOWN];
}

/* Whether the first bytes are text: no control characters other than white space. */
static bool image_is_text(struct ggi_bytes bytes)
{
    size_t end = bytes.size < 4096 ? bytes.size : 4096;
    for (size_t i = 0; i < end; i++)
        if (bytes.at[i] < 9 || (bytes.at[i] > 13 && bytes.at[i] < 32))
            return i && !bytes.at[i] && i + 1 == bytes.size; /* one NUL may follow */
    return true;
}

static bool image_is_ptx(struct ggi_bytes bytes)
{
    static const char word[] = ".version";
    size_t end = bytes.size < 4096 ? bytes.size : 4096;
    if (bytes.size < PTX_SIZE_MIN || !image_is_text(bytes))
        return false;
    return memmem(bytes.at, end, word, sizeof word - 1);
}

struct image_reader {
    uint32_t format;
    gg_status (*read)(struct ggi_bytes bytes, struct gg_image *image);
};

static struct image_reader image_reader_of(struct ggi_bytes bytes)
{
    static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__";
    if (ggi_bytes_start_with(bytes, "\177ELF", 4))
        return (struct image_reader){GG_IMAGE_UNKNOWN, ggi_image_read_elf};
    if (ggi_u32(bytes, 0) == 0xba55ed50u)
        return (struct image_reader){GG_IMAGE_FATBIN, image_read_fatbin};
    if (ggi_u32(bytes, 0) == 0x07230203u || ggi_u32(bytes, 0) == 0x03022307u)
        return (struct image_reader){GG_IMAGE_SPIRV, ggi_image_read_spirv};
    if (ggi_bytes_start_with(bytes, bundle, sizeof bundle - 1) ||
        ggi_bytes_start_with(bytes, "CCOB", 4))
        return (struct image_reader){GG_IMAGE_BUNDLE, ggi_image_read_bundle};
    if (ggi_u32(bytes, 0) == 0x7f4e43edu || ggi_bytes_start_with(bytes, "BC\xc0\xde", 4))
        return (struct image_reader){GG_IMAGE_LTOIR, NULL};
    if (image_is_ptx(bytes))
        return (struct image_reader){GG_IMAGE_PTX, ggi_image_read_ptx};
    return (struct image_reader){GG_IMAGE_UNKNOWN, NULL};
}

static gg_status image_refuse_unknown(struct ggi_bytes bytes)
{
    char first[3 * 8 + 1] = "";
    for (size_t i = 0; i < 8 && i < bytes.size; i++)
        snprintf(first + 3 * i, 4, " %02x", bytes.at[i]);
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "the format of the image is unknown (%zu bytes that begin with%s): expected a "
                    "cubin, a fatbin, PTX, a code object or a bundle of them, SPIR-V, or a shared "
                    "object of host kernels; compile source with gpuglue.compile",
                    bytes.size, first);
}

gg_status ggi_image_complete(struct ggi_bytes *bytes, void **copy)
{
    *copy = NULL;
    if (!bytes->at || !ggi_cubin_lacks_a_byte(*bytes))
        return GG_OK;
    unsigned char *whole = malloc(bytes->size + 1);
    if (!whole)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a copy of an image");
    memcpy(whole, bytes->at, bytes->size);
    whole[bytes->size] = 0;
    *copy = whole;
    *bytes = (struct ggi_bytes){whole, bytes->size + 1};
    return GG_OK;
}

static gg_status image_read(struct ggi_bytes all, struct gg_image **out)
{
    if (!all.size)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "the image has 0 bytes: expected device code");
    const struct image_reader reader = image_reader_of(all);
    if (!reader.read && reader.format == GG_IMAGE_UNKNOWN)
        return image_refuse_unknown(all);
    struct gg_image *image = calloc(1, sizeof *image);
    if (!image)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for an image's description");
    image->struct_size = sizeof *image;
    image->kernel_size = sizeof *image->kernels;
    image->format = reader.format;
    gg_status status = reader.read ? reader.read(all, image) : GG_OK;
    image->word = gg_image_format_name(image->format);
    if (status)
        gg_image_free(image);
    else
        *out = image;
    return status;
}

gg_status gg_image_read(const void *bytes, size_t nbytes, struct gg_image **out)
{
    struct ggi_bytes all = {bytes, bytes ? nbytes : 0};
    void *copy;
    gg_status status = ggi_image_complete(&all, &copy);
    if (!status)
        status = image_read(all, out);
    free(copy);
    return status;
}
