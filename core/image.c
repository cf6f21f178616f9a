/* image.c: which format an image has, told by its content, and what it says of itself. */
#include "image.h"

#include <stdarg.h>
#include <stdio.h>

#define LEAST_PTX 16

const char *gg_image_format_name(uint32_t format)
{
#define GG_IMAGE_WORD(name, word) word,
    static const char *const words[] = {GG_IMAGE_FORMATS(GG_IMAGE_WORD)};
#undef GG_IMAGE_WORD
    return format < GG_IMAGE_FORMAT_COUNT ? words[format] : words[GG_IMAGE_UNKNOWN];
}

gg_status ggi_image_damaged(const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "the image is damaged or was cut short: %s. Build it again, or copy it again",
                    what);
}

/* ---- building the answer ---- */

/* Room in an array that grows at powers of two: reallocated when @p count is one. */
static void *grow(void *array, size_t count, size_t size)
{
    if (count & (count - 1))
        return array;
    return realloc(array, (count ? 2 * count : 1) * size);
}

/* Up to the first zero byte; the bytes need not end in one. */
static char *copy_name(struct ggi_bytes name)
{
    const size_t size = strnlen((const char *)name.at, name.size);
    char *copy = malloc(size + 1);
    if (!copy)
        return NULL;
    memcpy(copy, name.at, size);
    copy[size] = 0;
    return copy;
}

gg_status ggi_image_add_kernel(struct gg_image *image, struct ggi_bytes name,
                               struct gg_image_kernel **out)
{
    struct gg_image_kernel *kernels = (struct gg_image_kernel *)(uintptr_t)image->kernels;
    if (image->kernel_count >= GGI_MAX_KERNELS)
        return ggi_image_damaged("more than %u kernels", GGI_MAX_KERNELS);
    kernels = grow(kernels, image->kernel_count, sizeof *kernels);
    if (!kernels)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for the names of kernels");
    image->kernels = kernels;
    char *copy = copy_name(name);
    if (!copy)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for the names of kernels");
    kernels[image->kernel_count] = (struct gg_image_kernel){.name = copy, .parameter_count = -1};
    *out = &kernels[image->kernel_count++];
    return GG_OK;
}

gg_status ggi_image_add_parameter(struct gg_image_kernel *kernel,
                                  const struct gg_parameter *parameter)
{
    size_t count = kernel->parameter_count < 0 ? 0 : (size_t)kernel->parameter_count;
    struct gg_parameter *parameters = (struct gg_parameter *)(uintptr_t)kernel->parameters;
    if (count >= GGI_MAX_PARAMETERS)
        return ggi_image_damaged("a kernel with more than %u parameters", GGI_MAX_PARAMETERS);
    parameters = grow(parameters, count, sizeof *parameters);
    if (!parameters)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a kernel's parameters");
    parameters[count] = *parameter;
    kernel->parameters = parameters;
    kernel->parameter_count = (int32_t)count + 1;
    return GG_OK;
}

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

void ggi_image_add_arch(struct gg_image *image, const char *word)
{
    static const char more[] = " " GGI_MORE_ARCHS;
    const size_t used = strlen(image->arch), left = sizeof image->arch - used;
    if (!word[0] || has_word(image->arch, word) || has_word(image->arch, GGI_MORE_ARCHS))
        return;
    if (1 + strlen(word) + sizeof more > left)
        word = GGI_MORE_ARCHS;
    snprintf(image->arch + used, left, "%s%s", used ? " " : "", word);
}

void gg_image_free(struct gg_image *image)
{
    if (!image)
        return;
    for (size_t i = 0; i < image->kernel_count; i++) {
        free((void *)(uintptr_t)image->kernels[i].name);
        free((void *)(uintptr_t)image->kernels[i].parameters);
    }
    free((void *)(uintptr_t)image->kernels);
    free(image);
}

/* ---- telling formats apart ---- */

/* Text without NUL and other control characters but white space, as far as it was looked at. */
static bool is_text(struct ggi_bytes bytes)
{
    size_t end = bytes.size < 4096 ? bytes.size : 4096;
    for (size_t i = 0; i < end; i++)
        if (bytes.at[i] < 9 || (bytes.at[i] > 13 && bytes.at[i] < 32))
            return i && !bytes.at[i] && i + 1 == bytes.size; /* one NUL may end it */
    return true;
}

static bool is_ptx(struct ggi_bytes bytes)
{
    static const char word[] = ".version";
    size_t end = bytes.size < 4096 ? bytes.size : 4096;
    if (bytes.size < LEAST_PTX || !is_text(bytes))
        return false;
    for (size_t i = 0; i + sizeof word < end; i++)
        if (!memcmp(bytes.at + i, word, sizeof word - 1))
            return true;
    return false;
}

struct reader {
    uint32_t format;
    gg_status (*read)(struct ggi_bytes bytes, struct gg_image *image);
};

static struct reader reader_of(struct ggi_bytes bytes)
{
    static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__";
    if (ggi_begins(bytes, "\177ELF", 4))
        return (struct reader){GG_IMAGE_UNKNOWN, ggi_image_read_elf};
    if (ggi_u32(bytes, 0) == 0xba55ed50u)
        return (struct reader){GG_IMAGE_FATBIN, ggi_image_read_fatbin};
    if (ggi_u32(bytes, 0) == 0x07230203u || ggi_u32(bytes, 0) == 0x03022307u)
        return (struct reader){GG_IMAGE_SPIRV, ggi_image_read_spirv};
    if (ggi_begins(bytes, bundle, sizeof bundle - 1) || ggi_begins(bytes, "CCOB", 4))
        return (struct reader){GG_IMAGE_BUNDLE, ggi_image_read_bundle};
    if (ggi_u32(bytes, 0) == 0x7f4e43edu || ggi_begins(bytes, "BC\xc0\xde", 4))
        return (struct reader){GG_IMAGE_LTOIR, NULL};
    if (is_ptx(bytes))
        return (struct reader){GG_IMAGE_PTX, ggi_image_read_text};
    return (struct reader){GG_IMAGE_UNKNOWN, NULL};
}

static gg_status refuse_unknown(struct ggi_bytes bytes)
{
    char first[3 * 8 + 1] = "";
    for (size_t i = 0; i < 8 && i < bytes.size; i++)
        snprintf(first + 3 * i, 4, "%02x ", bytes.at[i]);
    return ggi_fail(
        GG_ERR_INVALID_ARGUMENT,
        "%zu bytes that begin with %sare no image of a known format: expected a cubin, a "
        "fatbin, PTX, a code object or a bundle of them, SPIR-V, or a shared object of "
        "host kernels; source goes through gpuglue.compile",
        bytes.size, first);
}

gg_status gg_image_read(const void *bytes, size_t nbytes, struct gg_image **out)
{
    const struct ggi_bytes all = {bytes, bytes ? nbytes : 0};
    if (!all.size)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "an image of 0 bytes: expected device code");
    const struct reader reader = reader_of(all);
    if (!reader.read && reader.format == GG_IMAGE_UNKNOWN)
        return refuse_unknown(all);
    struct gg_image *image = calloc(1, sizeof *image);
    if (!image)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory to look at an image");
    image->struct_size = sizeof *image;
    image->format = reader.format;
    gg_status status = reader.read ? reader.read(all, image) : GG_OK;
    image->word = gg_image_format_name(image->format);
    if (status)
        gg_image_free(image);
    else
        *out = image;
    return status;
}
