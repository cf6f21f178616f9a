/* module_options.c: what SPIR-V is compiled with, checked against the code. */
#include "kernel/module_options.h"
#include "base/error.h"
#include "base/sized.h"
#include "kernel/image.h"
#include "runtime/call.h"

#include <stdio.h>

#define OPTIONS_SIZE_FIRST GGI_SIZE_TO(struct gg_module_options, binary_size)

gg_status ggi_module_options_copy(const struct gg_module_options *options,
                                  struct gg_module_options *out)
{
    if (options && !ggi_sized_fits(options, OPTIONS_SIZE_FIRST))
        return ggi_sized_refuse("gg_module_load_with", "gg_module_options", options,
                                OPTIONS_SIZE_FIRST);
    if (options)
        memcpy(out, options,
               options->struct_size < sizeof *out ? options->struct_size : sizeof *out);
    out->struct_size = sizeof *out;
    return GG_OK;
}

bool ggi_module_options_empty(const struct gg_module_options *options)
{
    return !options->constant_count && !options->input_count && !options->binary &&
           (!options->flags || !options->flags[0]);
}

/* ---- inputs ---- */

static gg_status input_read(struct gg_image *image, const struct gg_module_input *input,
                            size_t index)
{
    const struct ggi_bytes bytes = {input->bytes, input->bytes ? input->nbytes : 0};
    struct gg_image *one;
    gg_status status = gg_image_read(bytes.at, bytes.size, &one);
    if (status)
        return status;
    if (one->format == GG_IMAGE_SPIRV)
        status = ggi_image_add_spirv(bytes, image, (uint32_t)index + 1);
    else
        status = ggi_fail(GG_ERR_INVALID_ARGUMENT, "input %zu is %s: only SPIR-V is linked", index,
                          one->word);
    gg_image_free(one);
    return status;
}

/* ---- constants ---- */

/* "0 (4 bytes), 3 (8 bytes)" */
static void constants_list(const struct gg_image *image, char *out, size_t size)
{
    size_t used = 0;
    snprintf(out, size, "none");
    for (size_t i = 0; i < image->constant_count && used + 32 < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%u (%u bytes)", i ? ", " : "",
                                 image->constants[i].id, image->constants[i].size);
}

static gg_status constant_check(const struct gg_image *image,
                                const struct gg_module_constant *constant)
{
    char all[256];
    const struct gg_image_constant *first = NULL;
    for (size_t i = 0; i < image->constant_count; i++) {
        const struct gg_image_constant *at = &image->constants[i];
        if (at->id != constant->id)
            continue;
        if (first && (at->size != first->size || at->kind != first->kind))
            return ggi_fail(
                GG_ERR_INVALID_ARGUMENT,
                "specialisation constant %u has %u bytes in one input and %u in another, "
                "or another type: it can only be set where both are the same",
                constant->id, first->size, at->size);
        first = at;
    }
    if (!first) {
        constants_list(image, all, sizeof all);
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "the image has no specialisation constant %u; it has: %s", constant->id,
                        all);
    }
    if (first->size < 8 && constant->value >> (8 * first->size))
        return ggi_fail(
            GG_ERR_INVALID_ARGUMENT,
            "the value 0x%llx for specialisation constant %u has more than its %u bytes",
            (unsigned long long)constant->value, constant->id, first->size);
    return GG_OK;
}

static gg_status constants_check(const struct gg_module_options *options,
                                 const struct gg_image *image)
{
    gg_status status = GG_OK;
    for (uint32_t i = 0; i < options->constant_count && !status; i++) {
        status = constant_check(image, &options->constants[i]);
        for (uint32_t k = 0; k < i && !status; k++)
            if (options->constants[k].id == options->constants[i].id)
                status =
                    ggi_fail(GG_ERR_INVALID_ARGUMENT, "specialisation constant %u is given twice",
                             options->constants[i].id);
    }
    return status;
}

/* ---- all ---- */

static gg_status options_read(const struct gg_module_options *options, struct gg_image *image)
{
    gg_status status = GG_OK;
    if (image->format != GG_IMAGE_SPIRV)
        return ggi_fail(
            GG_ERR_INVALID_ARGUMENT,
            "the image is %s: constants, flags and further inputs are for SPIR-V, which "
            "the driver compiles",
            image->word);
    for (size_t i = 0; i < options->input_count && !status; i++)
        status = input_read(image, &options->inputs[i], i);
    return status ? status : constants_check(options, image);
}

gg_status ggi_module_options_read(struct gg_device *device, const struct gg_module_options *options,
                                  const void *bytes, size_t nbytes, struct gg_image **out)
{
    struct gg_image *image;
    if (!gg_device_supports(device, GG_OP_module_load_with))
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "%s:%d: constants, flags and further inputs of a module are for SPIR-V, "
                        "which this backend does not load: give them to the compiler, as "
                        "gpuglue.compile(source, options=[\"-DN=4\"])",
                        device->backend->name, (int)device->ordinal);
    gg_status status = gg_image_read(bytes, nbytes, &image);
    if (status)
        return status;
    status = options_read(options, image);
    if (status)
        gg_image_free(image);
    else
        *out = image;
    return status;
}
