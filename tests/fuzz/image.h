/* image.h: reads an input as an image of one format, and checks the description. */
#ifndef GPUGLUE_FUZZ_IMAGE_H
#define GPUGLUE_FUZZ_IMAGE_H

#include "fuzz.h"

#include "kernel/image.h"

/* Every text ends, and every count is within its limit. */
static inline void fuzz_check_image(const struct gg_image *image)
{
    FUZZ_CHECK(memchr(image->arch, 0, sizeof image->arch));
    FUZZ_CHECK(image->kernel_count <= GGI_MAX_KERNELS);
    for (size_t i = 0; i < image->kernel_count; i++) {
        const struct gg_image_kernel *kernel = &image->kernels[i];
        FUZZ_CHECK(strlen(kernel->name) < SIZE_MAX);
        FUZZ_CHECK(kernel->parameter_count >= -1);
        FUZZ_CHECK(kernel->parameter_count <= (int32_t)GGI_MAX_PARAMETERS);
        for (int32_t j = 0; j < kernel->parameter_count; j++)
            FUZZ_CHECK(kernel->parameters[j].kind <= GG_PARAMETER_LOCAL);
    }
}

/* The image begins with @p magic, so that no input is spent on other formats. The copy has the input's exact size:
 * the address sanitizer detects reads beyond it. */
static inline void fuzz_image(const char *magic, size_t length, const uint8_t *data, size_t size)
{
    struct gg_image *image = NULL;
    if (size < length)
        return;
    uint8_t *copy = malloc(size);
    FUZZ_CHECK(copy);
    memcpy(copy, data, size);
    memcpy(copy, magic, length);
    if (!gg_image_read(copy, size, &image)) {
        fuzz_check_image(image);
        FUZZ_CHECK(!strcmp(image->word, gg_image_format_name(image->format)));
    }
    gg_image_free(image);
    free(copy);
}

#endif
