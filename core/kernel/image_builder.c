/* image_builder.c: the description of an image, as a reader builds it. */
#include "base/list.h"
#include "kernel/image.h"

#include <stdarg.h>
#include <stdio.h>

gg_status ggi_image_damaged(const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "the image is damaged or truncated: %s. Build it again, or copy it again", what);
}

/* Copies up to the first NUL, if there is one. */
static char *image_copy_name(struct ggi_bytes name)
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
        return ggi_image_damaged("it has more than %u kernels", GGI_MAX_KERNELS);
    kernels = ggi_array_grow(kernels, image->kernel_count, sizeof *kernels);
    if (!kernels)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for the names of kernels");
    image->kernels = kernels;
    char *copy = image_copy_name(name);
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
        return ggi_image_damaged("a kernel has more than %u parameters", GGI_MAX_PARAMETERS);
    parameters = ggi_array_grow(parameters, count, sizeof *parameters);
    if (!parameters)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a kernel's parameters");
    parameters[count] = *parameter;
    kernel->parameters = parameters;
    kernel->parameter_count = (int32_t)count + 1;
    return GG_OK;
}

gg_status ggi_image_add_constant(struct gg_image *image, const struct gg_image_constant *constant)
{
    struct gg_image_constant *constants = (struct gg_image_constant *)(uintptr_t)image->constants;
    if (image->constant_count >= GGI_MAX_CONSTANTS)
        return ggi_image_damaged("it has more than %u specialisation constants", GGI_MAX_CONSTANTS);
    constants = ggi_array_grow(constants, image->constant_count, sizeof *constants);
    if (!constants)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for specialisation constants");
    constants[image->constant_count++] = *constant;
    image->constants = constants;
    return GG_OK;
}

static bool image_has_arch(const char *words, const char *word)
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
    if (!word[0] || image_has_arch(image->arch, word) || image_has_arch(image->arch, GGI_MORE_ARCHS))
        return;
    if (1 + strlen(word) + sizeof more > left)
        word = GGI_MORE_ARCHS;
    snprintf(image->arch + used, left, "%s%s", used ? " " : "", word);
}

void ggi_image_add_target(struct gg_image *image, struct ggi_bytes triple, const char *mark)
{
    char word[64];
    const unsigned char *at =
        triple.size ? memmem(triple.at, triple.size, mark, strlen(mark)) : NULL;
    const size_t size = at ? (size_t)(triple.at + triple.size - (at + 2)) : 0;
    if (!size)
        return;
    if (size >= sizeof word) {
        ggi_image_add_arch(image, GGI_MORE_ARCHS);
        return;
    }
    memcpy(word, at + 2, size);
    word[size] = 0;
    ggi_image_add_arch(image, word);
}

void ggi_image_clear(struct gg_image *image)
{
    for (size_t i = 0; i < image->kernel_count; i++) {
        free((void *)(uintptr_t)image->kernels[i].name);
        free((void *)(uintptr_t)image->kernels[i].parameters);
    }
    free((void *)(uintptr_t)image->kernels);
    free((void *)(uintptr_t)image->constants);
    image->kernels = NULL;
    image->kernel_count = 0;
    image->constants = NULL;
    image->constant_count = 0;
}

void gg_image_free(struct gg_image *image)
{
    if (!image)
        return;
    ggi_image_clear(image);
    free(image);
}
