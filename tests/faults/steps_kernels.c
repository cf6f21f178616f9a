/* steps_kernels.c: a module, its kernels and variables, launches. The images are those of tests/images, for the
 * architecture that the device reports. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *image_for(const char *arch)
{
    if (!strncmp(arch, "sm_", 3))
        return "kernels.ptx";
    if (!strncmp(arch, "gfx", 3))
        return "kernels.gfx942.co";
    return "kernels.spv";
}

/* The image's bytes, to be freed; NULL where the device does not say what it is or there is no file. */
static char *read_image(gg_device *device, size_t *size)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    char path[4200];
    const ssize_t length = readlink("/proc/self/exe", path, 4096);
    if (length <= 0 || gg_device_info(device, &info))
        return NULL;
    path[length] = '\0';
    snprintf(strrchr(path, '/'), 100, "/images/%s", image_for(info.arch));
    FILE *file = fopen(path, "rbe");
    char *bytes = file ? malloc((size_t)1 << 20) : NULL;
    if (bytes)
        *size = fread(bytes, 1, ((size_t)1 << 20) - 1, file);
    if (bytes)
        bytes[*size] = '\0';
    if (file)
        fclose(file);
    return bytes;
}

static int load_module(struct program *p, union output *out)
{
    size_t size = 0;
    char *bytes = p->device ? read_image(p->device, &size) : NULL;
    if (!bytes)
        return SKIPPED;
    const gg_status status = gg_module_load(p->device, bytes, size, &out->module);
    free(bytes);
    if (!status)
        p->module = out->module;
    return (int)status;
}

static int find_kernel(struct program *p, union output *out)
{
    if (!p->module)
        return SKIPPED;
    const gg_status status = gg_module_kernel(p->module, "scale", &out->kernel);
    if (!status)
        p->kernel = out->kernel;
    return (int)status;
}

static int find_no_kernel(struct program *p, union output *out)
{
    return p->module ? (int)gg_module_kernel(p->module, "nobody", &out->kernel) : SKIPPED;
}

static int find_variable(struct program *p, union output *out)
{
    if (!p->module)
        return SKIPPED;
    const gg_status status = gg_module_global(p->module, "table", &out->memory);
    if (!status)
        p->variable = out->memory;
    return (int)status;
}

static int write_variable(struct program *p, union output *out)
{
    (void)out;
    return p->variable ? (int)gg_fill(p->variable, 0, "v", 1, gg_memory_size(p->variable), NULL)
                       : SKIPPED;
}

static int ask_attribute(struct program *p, union output *out)
{
    return p->kernel ? (int)gg_kernel_attribute_get(p->kernel, GG_KERNEL_MAX_THREADS_PER_BLOCK,
                                                    &out->number)
                     : SKIPPED;
}

static int ask_occupancy(struct program *p, union output *out)
{
    return p->kernel ? (int)gg_kernel_occupancy(p->kernel, 64, 0, &out->numbers[0]) : SKIPPED;
}

static int ask_suggestion(struct program *p, union output *out)
{
    return p->kernel ? (int)gg_kernel_suggest(p->kernel, 0, 0, &out->shape[0], &out->shape[1])
                     : SKIPPED;
}

static int launch(struct program *p, gg_stream *stream, uint32_t shared, uint32_t flags)
{
    void *pointer = gg_memory_pointer(p->small);
    const uint32_t count = SMALL / sizeof(float);
    const float by = 2;
    const void *values[] = {&pointer, &count, &by};
    const size_t sizes[] = {sizeof pointer, sizeof count, sizeof by};
    const struct gg_launch what = {.struct_size = sizeof what,
                                   .flags = flags,
                                   .grid = {SMALL / sizeof(float) / 64, 1, 1},
                                   .block = {64, 1, 1},
                                   .shared = shared,
                                   .argument_count = 3,
                                   .arguments = values,
                                   .sizes = sizes,
                                   .memories = &p->small,
                                   .memory_count = 1};
    return (int)gg_kernel_launch(p->kernel, &what, stream);
}

/* Zeros, which stay zeros, whatever became of the launches. */
static int launch_implicitly(struct program *p, union output *out)
{
    (void)out;
    if (!p->kernel || !p->small)
        return SKIPPED;
    const int status = (int)gg_fill(p->small, 0, "\0", 1, SMALL, NULL);
    return status ? status : launch(p, NULL, 0, 0);
}

static int launch_on_a_stream(struct program *p, union output *out)
{
    (void)out;
    return p->kernel && p->small && p->second ? launch(p, p->second, 0, 0) : SKIPPED;
}

static int launch_with_much_shared(struct program *p, union output *out)
{
    (void)out;
    return p->kernel && p->small ? launch(p, NULL, 60 * 1024, 0) : SKIPPED;
}

static int launch_cooperatively(struct program *p, union output *out)
{
    (void)out;
    return p->kernel && p->small ? launch(p, NULL, 0, GG_LAUNCH_COOPERATIVE) : SKIPPED;
}

static int read_scaled(struct program *p, union output *out)
{
    struct gg_end dst = {.host = p->host}, src = {.memory = p->small};
    (void)out;
    if (!p->kernel || !p->small)
        return SKIPPED;
    const int status = (int)gg_copy(&dst, &src, SMALL, NULL, 0);
    return status ? status : check_bytes(p, p->host, SMALL, 0, "a kernel's memory lost its bytes");
}

static int unload(struct program *p, union output *out)
{
    (void)out;
    gg_memory_release(p->variable);
    if (p->kernel)
        gg_kernel_release(p->kernel);
    if (p->module)
        gg_module_release(p->module);
    p->variable = NULL;
    p->kernel = NULL;
    p->module = NULL;
    return p->device ? (int)gg_device_trim(p->device) : SKIPPED;
}

static const struct step steps[] = {
    {"load a module", load_module, GG_OK},
    {"find a kernel", find_kernel, GG_OK},
    {"find a kernel that is not there", find_no_kernel, GG_ERR_INVALID_ARGUMENT},
    {"find a variable", find_variable, GG_OK},
    {"write a variable", write_variable, GG_OK},
    {"a kernel's attribute", ask_attribute, GG_OK},
    {"a kernel's occupancy", ask_occupancy, GG_OK},
    {"a kernel's best shape", ask_suggestion, GG_OK},
    {"launch", launch_implicitly, GG_OK},
    {"launch on a stream", launch_on_a_stream, GG_OK},
    {"launch with much shared memory", launch_with_much_shared, GG_OK},
    {"launch cooperatively", launch_cooperatively, GG_OK},
    {"read what kernels wrote", read_scaled, GG_OK},
    {"unload", unload, GG_OK},
};
const struct steps kernel_steps = {steps, sizeof steps / sizeof steps[0]};
