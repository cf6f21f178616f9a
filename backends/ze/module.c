/* module.c: modules, which the driver builds from SPIR-V, and their kernels. */
#include "ze.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_SIZE 2048
#define SPIRV_MAGIC 0x07230203u
#define SPIRV_NEWEST 6u /* the latest published version is 1.6 */

/* ---- building ---- */

/* Compilers have aborted the process at an unknown header. */
static gg_status spirv_check_header(const void *bytes)
{
    uint32_t head[2];
    memcpy(head, bytes, sizeof head);
    if (head[0] != SPIRV_MAGIC)
        return ze_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                            "the SPIR-V begins with 0x%08x: its words have the other byte order, "
                            "which drivers cannot load: expected 0x%08x",
                            head[0], SPIRV_MAGIC);
    if ((head[1] >> 8 & 0xff) > SPIRV_NEWEST)
        return ze_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                            "the image is SPIR-V 1.%u: expected 1.0 to 1.%u", head[1] >> 8 & 0xff,
                            SPIRV_NEWEST);
    return GG_OK;
}

static gg_status image_check(struct gg_device_impl *device, const struct gg_image *image,
                             const void *bytes)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    if (image->format == GG_IMAGE_SPIRV)
        return spirv_check_header(bytes);
    if (image->format == GG_IMAGE_ZEBIN)
        return GG_OK;
    gg_status status = ze_device_info(device->ordinal, &info);
    if (status)
        return status;
    return ze_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                        "the image is %s for %s, this device is %s: it needs SPIR-V", image->word,
                        image->arch[0] ? image->arch : "another kind of device", info.arch);
}

/* ---- what kernels print ---- */

/* A call of OpenCL's printf: instruction 184 of an extended set. */
static bool spirv_has_printf(const unsigned char *bytes, size_t nbytes)
{
    enum { HEADER = 5, OP_EXT_INST = 12, INSTRUCTION = 4, PRINTF = 184 };
    uint32_t words[INSTRUCTION + 1];
    size_t at = HEADER * sizeof *words, size;
    for (; at + sizeof words <= nbytes; at += size) {
        memcpy(words, bytes + at, sizeof words);
        size = (words[0] >> 16) * sizeof *words;
        if ((words[0] & 0xffff) == OP_EXT_INST && words[INSTRUCTION] == PRINTF)
            return true;
        if (!size)
            break;
    }
    return false;
}

/* Whether it may contain a kernel that prints. In machine code the names of the arguments show
 * this; they are those of zeinfo.h of intel/compute-runtime. */
static bool image_prints(const void *bytes, size_t nbytes)
{
    static const char hidden[] = "implicit_arg_buffer";
    uint32_t magic = 0;
    if (nbytes >= sizeof magic)
        memcpy(&magic, bytes, sizeof magic);
    return memmem(bytes, nbytes, "printf", 6) || memmem(bytes, nbytes, hidden, sizeof hidden - 1) ||
           (magic == SPIRV_MAGIC && spirv_has_printf(bytes, nbytes));
}

static bool module_prints(const void *bytes, size_t nbytes, const struct gg_module_options *options)
{
    bool prints = image_prints(bytes, nbytes);
    for (size_t i = 0; i < options->input_count && !prints; i++)
        prints = image_prints(options->inputs[i].bytes, options->inputs[i].nbytes);
    return prints;
}

/* ---- the driver's compiler ---- */

/* Its output, truncated to the buffer. */
static void build_log_read(void *log, char text[LOG_SIZE])
{
    size_t size = 0;
    char *all = NULL;
    text[0] = 0;
    if (!log)
        return;
    if (ze.log_text && !ze.log_text(log, &size, NULL) && size)
        all = calloc(1, size + 1);
    if (all && !ze.log_text(log, &size, all))
        snprintf(text, LOG_SIZE, "%s", all);
    free(all);
    if (ze.log_destroy)
        ze_log_failure(ze.log_destroy(log), "destroying a build log");
}

/* Without it, kernels of some devices keep 32 bits of an offset in a block, and their results are wrong. */
static const char large_blocks_option[] = "-ze-opt-greater-than-4GB-buffer-required";

/* What a module is built from. The arrays have one element per input that is linked. */
struct build {
    const struct gg_image *image;
    const struct gg_module_options *options;
    struct ze_module_desc desc;
    struct ze_program_desc program;
    char *flags; /* of the desc */
    const uint8_t **images;
    size_t *sizes;
    const char **all_flags;
    const struct ze_module_constants **all_constants;
    struct ze_module_constants *constants; /* what each input has of those that are set */
    uint32_t *ids;
    const void **values;
};

static void build_free(struct build *build)
{
    free(build->flags);
    free((void *)build->images);
    free(build->sizes);
    free((void *)build->all_flags);
    free((void *)build->all_constants);
    free(build->constants);
    free(build->ids);
    free((void *)build->values);
}

/* NULL if there are none; the caller frees them. */
static bool build_set_flags(struct build *build, bool large_blocks)
{
    const char *given = build->options->flags ? build->options->flags : "";
    const size_t size = sizeof large_blocks_option + strlen(given) + 1;
    if (!large_blocks && !given[0])
        return true;
    build->flags = malloc(size);
    if (build->flags)
        snprintf(build->flags, size, "%s%s%s", large_blocks ? large_blocks_option : "",
                 large_blocks && given[0] ? " " : "", given);
    build->desc.flags = build->flags;
    return build->flags;
}

static const uint64_t *option_value(const struct gg_module_options *options, uint32_t id)
{
    for (uint32_t i = 0; i < options->constant_count; i++)
        if (options->constants[i].id == id)
            return &options->constants[i].value;
    return NULL;
}

/* Drivers refuse a constant that an input does not have. */
static bool build_set_constants(struct build *build)
{
    const size_t inputs = build->options->input_count + 1;
    const struct gg_image *image = build->image;
    uint32_t used = 0;
    build->constants = calloc(inputs, sizeof *build->constants);
    build->ids = calloc(image->constant_count + 1, sizeof *build->ids);
    build->values = calloc(image->constant_count + 1, sizeof *build->values);
    if (!build->constants || !build->ids || !build->values)
        return false;
    for (size_t i = 0; i < image->constant_count; i++) {
        const struct gg_image_constant *constant = &image->constants[i];
        struct ze_module_constants *mine = &build->constants[constant->input];
        const uint64_t *value = option_value(build->options, constant->id);
        if (!value)
            continue;
        if (!mine->count++) {
            mine->ids = &build->ids[used];
            mine->values = &build->values[used];
        }
        build->ids[used] = constant->id;
        build->values[used++] = value;
    }
    if (build->constants[0].count)
        build->desc.constants = &build->constants[0];
    return true;
}

/* Intel's driver joins the inputs' flags without a space between them, so only the first has some. */
static bool build_set_inputs(struct build *build, const void *bytes, size_t nbytes)
{
    const size_t count = build->options->input_count + 1;
    build->images = calloc(count, sizeof *build->images);
    build->sizes = calloc(count, sizeof *build->sizes);
    build->all_flags = calloc(count, sizeof *build->all_flags);
    build->all_constants = calloc(count, sizeof *build->all_constants);
    if (!build->images || !build->sizes || !build->all_flags || !build->all_constants)
        return false;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const struct gg_module_input *input = i ? &build->options->inputs[i - 1] : NULL;
        build->images[i] = input ? input->bytes : bytes;
        build->sizes[i] = input ? input->nbytes : nbytes;
        build->all_constants[i] = &build->constants[i];
        any = any || build->constants[i].count;
    }
    build->all_flags[0] = build->flags;
    build->program = (struct ze_program_desc){.stype = ZE_STRUCTURE_TYPE_MODULE_PROGRAM_EXP_DESC,
                                              .count = (uint32_t)count,
                                              .sizes = build->sizes,
                                              .images = build->images,
                                              .flags = build->flags ? build->all_flags : NULL,
                                              .constants = any ? build->all_constants : NULL};
    build->desc.next = &build->program;
    return true;
}

static gg_status build_describe(struct build *build, const struct gg_device_impl *device,
                                const void *bytes, size_t nbytes)
{
    const struct gg_module_options *options = build->options;
    const bool spirv = build->image->format == GG_IMAGE_SPIRV && !options->binary;
    build->desc = (struct ze_module_desc){.stype = ZE_STRUCTURE_TYPE_MODULE_DESC,
                                          .format = spirv ? ZE_MODULE_FORMAT_IL_SPIRV
                                                          : ZE_MODULE_FORMAT_NATIVE,
                                          .size = options->binary ? options->binary_size : nbytes,
                                          .image = options->binary ? options->binary : bytes};
    if (spirv && options->input_count && !device->driver->links)
        return ze_api->fail(GG_ERR_UNSUPPORTED, NULL,
                            "linking %zu SPIR-V modules: this driver lacks "
                            "ZE_experimental_module_program; link them before, with spirv-link",
                            options->input_count + 1);
    bool enough = build_set_flags(build, device->large_blocks);
    if (enough && spirv)
        enough = build_set_constants(build);
    if (enough && spirv && options->input_count)
        enough = build_set_inputs(build, bytes, nbytes);
    return enough ? GG_OK : ze_no_memory("a module");
}

/* Where the loader passes calls on to several drivers or layers, handles are its own; but of a build that fails it returns the
 * driver's handle of the log, and reading that log through the loader crashes (Level Zero loader 1.8 to 1.32, zeModuleCreate in
 * source/loader/ze_ldrddi.cpp). */
static bool log_is_readable(const struct ze_driver *driver)
{
    void *own = NULL;
    return !ze.loader_translate ||
           (!ze.loader_translate(ZEL_HANDLE_DRIVER, driver->handle, &own) && own == driver->handle);
}

static gg_status module_build(struct gg_module_impl *module, const struct build *build)
{
    const char *flags = build->options->flags;
    char text[LOG_SIZE];
    void *log = NULL;
    const int code = ze.module_create(module->device->context, module->device->gpu->handle,
                                      &build->desc, &module->native, &log);
    build_log_read(!code || log_is_readable(module->device->driver) ? log : NULL, text);
    if (code)
        return ze_fail(code, "an image of %zu bytes%s%.100s%s%s%.300s", build->desc.size,
                       flags ? " with \"" : "", flags ? flags : "", flags ? "\"" : "",
                       text[0] ? ": " : "", text);
    if (text[0] && flags)
        ze_api->log(GG_LOG_WARN, "ze", "compiling with \"%.300s\": %.1000s", flags, text);
    return GG_OK;
}

static gg_status module_new(struct gg_device_impl *device, const struct build *build,
                            struct gg_module_impl **out)
{
    struct gg_module_impl *module = calloc(1, sizeof *module);
    if (!module)
        return ze_no_memory("a module");
    module->device = device;
    pthread_mutex_init(&module->lock, NULL);
    const gg_status status = module_build(module, build);
    if (status) {
        pthread_mutex_destroy(&module->lock);
        free(module);
        return status;
    }
    *out = module;
    return GG_OK;
}

gg_status ze_module_load_with(struct gg_device_impl *device, const struct gg_image *image,
                              const void *bytes, size_t nbytes,
                              const struct gg_module_options *options, struct gg_module_impl **out)
{
    struct build build = {.image = image, .options = options};
    if (!ze_device_supports(device, GG_OP_module_load))
        return ze_missing("zeModuleCreate");
    gg_status status = image_check(device, image, bytes);
    if (!status)
        status = build_describe(&build, device, bytes, nbytes);
    if (!status)
        status = module_new(device, &build, out);
    if (!status && device->gpu->has_graphs)
        (*out)->prints = module_prints(bytes, nbytes, options);
    build_free(&build);
    return status;
}

gg_status ze_module_load(struct gg_device_impl *device, const struct gg_image *image,
                         const void *bytes, size_t nbytes, struct gg_module_impl **out)
{
    const struct gg_module_options none = {.struct_size = sizeof none};
    return ze_module_load_with(device, image, bytes, nbytes, &none, out);
}

gg_status ze_module_binary(struct gg_module_impl *module, void *binary, size_t *nbytes)
{
    if (!ze.module_binary)
        return ze_missing("zeModuleGetNativeBinary");
    const int code = ze.module_binary(module->native, nbytes, binary);
    return code ? ze_fail(code, "the machine code of a module") : GG_OK;
}

void ze_module_unload(struct gg_module_impl *module)
{
    struct gg_kernel_impl *next;
    for (struct gg_kernel_impl *kernel = module->kernels; kernel; kernel = next) {
        next = kernel->next;
        ze_log_failure(ze.kernel_destroy(kernel->native), "destroying a kernel");
        pthread_mutex_destroy(&kernel->lock);
        free(kernel);
    }
    ze_log_failure(ze.module_destroy(module->native), "destroying a module");
    pthread_mutex_destroy(&module->lock);
    free(module);
}

/* ---- names ---- */

gg_status ze_module_global(struct gg_module_impl *module, const char *name, void **pointer,
                           size_t *nbytes)
{
    if (!ze.module_global)
        return ze_missing("zeModuleGetGlobalPointer");
    const int code = ze.module_global(module->native, name, nbytes, pointer);
    if (code == ZE_RESULT_ERROR_INVALID_GLOBAL_NAME)
        return GG_NOT_READY;
    return code ? ze_fail(code, "the variable %.200s", name) : GG_OK;
}

/* Allow a kernel to follow pointers that it finds in memory. */
static int kernel_allow_indirect(void *kernel)
{
    const uint32_t all = ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST |
                         ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE |
                         ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED;
    const int code = ze.kernel_indirect ? ze.kernel_indirect(kernel, all) : 0;
    return code == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE ? 0 : code;
}

/* Of Intel's driver since 2024, beside the specification: level_zero/include/level_zero/ze_stypes.h. */
#define ZEX_STRUCTURE_KERNEL_REGISTER_FILE_SIZE_EXP 0x00030012

/* In one call: Intel's driver knows both structs since 2024, and names the extension of the first. Its version 22.43, which knows
 * neither, does not return for a chain of two. */
static void kernel_read_properties(struct gg_kernel_impl *kernel, bool extended)
{
    struct ze_kernel_extra file = {.stype = ZEX_STRUCTURE_KERNEL_REGISTER_FILE_SIZE_EXP};
    struct ze_kernel_extra largest = {
        .stype = ZE_STRUCTURE_TYPE_KERNEL_MAX_GROUP_SIZE_EXT_PROPERTIES, .next = &file};
    struct ze_kernel_properties *properties = &kernel->properties;
    *properties = (struct ze_kernel_properties){.stype = ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES,
                                                .next = extended ? &largest : NULL};
    if (!ze.kernel_properties || ze.kernel_properties(kernel->native, properties)) {
        properties->stype = 0; /* unknown */
        return;
    }
    properties->next = NULL;
    kernel->arguments = properties->arguments;
    kernel->max_threads = largest.value;
    kernel->registers = file.value;
}

static int kernel_create(struct gg_module_impl *module, struct gg_kernel_impl *kernel)
{
    const struct ze_kernel_desc desc = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC,
                                        .name = kernel->name};
    int code = ze.kernel_create(module->native, &desc, &kernel->native);
    if (!code)
        code = kernel_allow_indirect(kernel->native);
    if (code) {
        if (kernel->native)
            ze_log_failure(ze.kernel_destroy(kernel->native), "destroying a kernel");
        return code;
    }
    kernel_read_properties(kernel, module->device->driver->extends_kernels);
    return 0;
}

/* With the module's lock held. */
static gg_status kernel_new(struct gg_module_impl *module, const char *name,
                            struct gg_kernel_impl **out)
{
    const size_t size = strlen(name) + 1;
    struct gg_kernel_impl *kernel = calloc(1, sizeof *kernel + size);
    if (!kernel)
        return ze_no_memory("a kernel");
    memcpy(kernel->name, name, size);
    kernel->module = module;
    const int code = kernel_create(module, kernel);
    if (code) {
        free(kernel);
        return code == ZE_RESULT_ERROR_INVALID_KERNEL_NAME
                   ? GG_NOT_READY
                   : ze_fail(code, "the kernel %.200s", name);
    }
    pthread_mutex_init(&kernel->lock, NULL);
    kernel->next = module->kernels;
    *out = module->kernels = kernel;
    return GG_OK;
}

gg_status ze_module_kernel(struct gg_module_impl *module, const char *name,
                           struct gg_kernel_impl **out)
{
    gg_status status = GG_OK;
    pthread_mutex_lock(&module->lock);
    struct gg_kernel_impl *kernel = module->kernels;
    while (kernel && strcmp(kernel->name, name) != 0)
        kernel = kernel->next;
    if (kernel)
        *out = kernel;
    else
        status = kernel_new(module, name, out);
    pthread_mutex_unlock(&module->lock);
    return status;
}

gg_status ze_module_names(struct gg_module_impl *module, void (*each)(void *user, const char *name),
                          void *user)
{
    uint32_t count = 0;
    int code = ze.module_names ? ze.module_names(module->native, &count, NULL)
                               : ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    const char **names = code ? NULL : calloc(count ? count : 1, sizeof *names);
    if (!code && !names)
        return ze_no_memory("names");
    if (!code)
        code = ze.module_names(module->native, &count, names);
    for (uint32_t i = 0; !code && i < count; i++)
        each(user, names[i]);
    free((void *)names);
    return code ? ze_fail(code, "the names of a module's kernels") : GG_OK;
}
