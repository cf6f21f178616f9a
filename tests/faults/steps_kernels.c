/* steps_kernels.c: modules, their variables, kernels and launches. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    COUNT = 64,
    MORE_SHARED = 60000 /* bytes of shared memory for which a kernel must opt in */
};

static struct {
    gg_module *module;
    gg_kernel *scale, *reverse;
    gg_memory *table, *values;
    void *pointer; /* address of values */
    uint32_t count;
    float by;
} have;

/* ---- the image ---- */

/* Chosen by backend, without device queries: other steps test those. */
static const char *image_of(const struct program *p)
{
    return !strcmp(p->backend, "cuda")  ? "kernels.ptx"
           : !strcmp(p->backend, "hip") ? "kernels.gfx942.co"
                                        : "kernels.spv";
}

static char *read_file(const char *name, size_t *size)
{
    char path[4200];
    ssize_t length = readlink("/proc/self/exe", path, 4096);
    path[length > 0 ? length : 0] = 0;
    char *slash = strrchr(path, '/');
    if (!slash)
        return NULL;
    snprintf(slash, 64, "/images/%s", name);
    FILE *file = fopen(path, "rb");
    char *bytes = file ? malloc(1 << 20) : NULL;
    *size = bytes ? fread(bytes, 1, 1 << 20, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

static int load(struct program *p, union output *out)
{
    size_t size = 0;
    gg_module *module = (gg_module *)(void *)out;
    if (!p->device)
        return SKIPPED;
    char *bytes = read_file(image_of(p), &size);
    if (!bytes) {
        p->wrong = "the test kernels' images were not built";
        return SKIPPED;
    }
    const int status = (int)gg_module_load(p->device, bytes, size, &module);
    free(bytes);
    if (!status)
        have.module = module;
    else if (module != (gg_module *)(void *)out)
        p->wrong = "a failed load returned a module";
    return status;
}

static int load_garbage(struct program *p, union output *out)
{
    gg_module *module;
    (void)out;
    return p->device ? (int)gg_module_load(p->device, "garbage", 7, &module) : SKIPPED;
}

static int read_binary(gg_module *module)
{
    size_t size = 0;
    int status = (int)gg_module_binary(module, NULL, &size);
    char *binary = status ? NULL : malloc(size);
    if (binary)
        status = (int)gg_module_binary(module, binary, &size);
    free(binary);
    return status;
}

/* SPIR-V with a constant and flags; its machine code. */
static int compile(struct program *p, union output *out)
{
    const struct gg_module_constant constant = {.value = 9};
    const struct gg_module_options options = {.struct_size = sizeof options,
                                              .constants = &constant,
                                              .constant_count = 1,
                                              .flags = "-ze-opt-level=1"};
    size_t size = 0;
    gg_module *module = (gg_module *)(void *)out;
    if (!p->device || strcmp(p->backend, "ze") != 0)
        return SKIPPED;
    char *bytes = read_file("constants.spv", &size);
    int status = (int)gg_module_load_with(p->device, bytes, size, &options, &module);
    free(bytes);
    if (status) {
        if (module != (gg_module *)(void *)out)
            p->wrong = "a failed load returned a module";
        return status;
    }
    status = read_binary(module);
    gg_module_release(module);
    return status;
}

/* ---- its contents ---- */

static int kernel(const char *name, gg_kernel **out)
{
    return have.module ? (int)gg_module_kernel(have.module, name, out) : SKIPPED;
}

static int find_scale(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return kernel("scale", &have.scale);
}

static int find_reverse(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return kernel("reverse", &have.reverse);
}

static int find_missing_kernel(struct program *p, union output *out)
{
    gg_kernel *none = NULL;
    (void)out;
    const int status = kernel("nobody", &none);
    if (none)
        p->wrong = "a failed lookup returned a kernel";
    return status;
}

static int find_table(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return have.module ? (int)gg_module_global(have.module, "table", &have.table) : SKIPPED;
}

static int fill_table(struct program *p, union output *out)
{
    const uint32_t seven = 7;
    (void)p;
    (void)out;
    return have.table ? (int)gg_fill(have.table, 0, &seven, sizeof seven, 4, NULL) : SKIPPED;
}

static int query_attributes(struct program *p, union output *out)
{
    for (int i = 0; have.scale && i < GG_KERNEL_ATTRIBUTE_COUNT; i++) {
        int64_t value = out->number;
        const int status = (int)gg_kernel_attribute_get(have.scale, (gg_kernel_attribute)i, &value);
        if (status && value != out->number)
            p->wrong = "a failed query wrote an attribute";
        if (status && status != GG_ERR_UNSUPPORTED)
            return status;
    }
    return have.scale ? GG_OK : SKIPPED;
}

static int query_occupancy(struct program *p, union output *out)
{
    (void)p;
    return have.scale ? (int)gg_kernel_occupancy(have.scale, 32, 0, &out->numbers[0]) : SKIPPED;
}

static int query_suggestion(struct program *p, union output *out)
{
    uint32_t *numbers = (uint32_t *)(void *)out->numbers;
    (void)p;
    return have.scale ? (int)gg_kernel_suggest_block_size(have.scale, 0, 0, &numbers[0], &numbers[1])
                      : SKIPPED;
}

/* ---- launches ---- */

static int create_values(struct program *p, union output *out)
{
    const float three = 3;
    (void)out;
    if (!p->device)
        return SKIPPED;
    int status = (int)gg_memory_alloc(p->device, GG_MEMORY_DEVICE, COUNT * 4, NULL, &have.values);
    if (status)
        return status;
    have.pointer = gg_memory_pointer(have.values);
    have.count = COUNT;
    have.by = 2;
    return (int)gg_fill(have.values, 0, &three, sizeof three, COUNT, NULL);
}

static int launch_scale(gg_stream *stream, uint32_t arguments, uint32_t block, uint32_t flags)
{
    const void *const values[] = {&have.pointer, &have.count, &have.by};
    const size_t sizes[] = {sizeof have.pointer, sizeof have.count, sizeof have.by};
    const struct gg_launch launch = {.struct_size = sizeof launch,
                                     .flags = flags,
                                     .grid = {COUNT / 32, 1, 1},
                                     .block = {block, 1, 1},
                                     .argument_count = arguments,
                                     .arguments = values,
                                     .sizes = sizes,
                                     .memories = &have.values,
                                     .memory_count = 1};
    return have.scale && have.values ? (int)gg_kernel_launch(have.scale, &launch, stream) : SKIPPED;
}

static int launch_implicit(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return launch_scale(NULL, 3, 32, 0);
}

static int launch_explicit(struct program *p, union output *out)
{
    (void)out;
    if (!p->first || !have.values)
        return SKIPPED;
    /* An explicit stream is not ordered with the default stream. */
    const int status = (int)gg_stream_wait_memory(p->first, have.values);
    return status ? status : launch_scale(p->first, 3, 32, 0);
}

static int launch_cooperative(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return launch_scale(NULL, 3, 32, GG_LAUNCH_COOPERATIVE);
}

static int launch_with_too_few(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return launch_scale(NULL, 2, 32, 0);
}

static int launch_too_large(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    return launch_scale(NULL, 3, 1u << 20, 0);
}

static int launch_with_more_shared_memory(struct program *p, union output *out)
{
    const void *const values[] = {&have.pointer};
    const size_t sizes[] = {sizeof have.pointer};
    const struct gg_launch launch = {.struct_size = sizeof launch,
                                     .grid = {1, 1, 1},
                                     .block = {COUNT, 1, 1},
                                     .shared = MORE_SHARED,
                                     .argument_count = 1,
                                     .arguments = values,
                                     .sizes = sizes,
                                     .memories = &have.values,
                                     .memory_count = 1};
    (void)p;
    (void)out;
    return have.reverse && have.values ? (int)gg_kernel_launch(have.reverse, &launch, NULL)
                                       : SKIPPED;
}

/* The values must be 3, doubled by each successful launch. */
static int check_values(struct program *p, union output *out)
{
    float got[COUNT] = {0};
    (void)out;
    if (!have.values)
        return SKIPPED;
    const struct gg_copy_operand src = {.memory = have.values}, dst = {.host = got};
    const int status = (int)gg_copy(&dst, &src, sizeof got, NULL, 0);
    for (int i = 1; !status && i < COUNT; i++)
        if (got[i] < 3 || got[i] > 24)
            check_bytes(p, (const unsigned char *)"", 1, 1, "the kernels' values are wrong");
    return status;
}

/* ---- the shutdown ---- */

static int release_modules(struct program *p, union output *out)
{
    (void)p;
    (void)out;
    gg_kernel_release(have.scale);
    gg_kernel_release(have.reverse);
    gg_memory_release(have.table);
    gg_memory_release(have.values);
    if (have.module)
        gg_module_release(have.module);
    return GG_OK;
}

static const struct step steps[] = {
    {"load a module", load, GG_OK},
    {"load an invalid image", load_garbage, GG_ERR_INVALID_ARGUMENT},
    {"compile SPIR-V with options", compile, GG_OK},
    {"find a kernel", find_scale, GG_OK},
    {"find another kernel", find_reverse, GG_OK},
    {"find a missing kernel", find_missing_kernel, GG_ERR_INVALID_ARGUMENT},
    {"find a variable", find_table, GG_OK},
    {"fill the variable", fill_table, GG_OK},
    {"query a kernel's attributes", query_attributes, GG_OK},
    {"query its occupancy", query_occupancy, GG_OK},
    {"query a block size", query_suggestion, GG_OK},
    {"create a kernel's values", create_values, GG_OK},
    {"launch", launch_implicit, GG_OK},
    {"launch on a stream", launch_explicit, GG_OK},
    {"launch cooperatively", launch_cooperative, GG_OK},
    {"launch with too few arguments", launch_with_too_few, GG_ERR_INVALID_ARGUMENT},
    {"launch too large a block", launch_too_large, GG_ERR_INVALID_ARGUMENT},
    {"launch with opt-in shared memory", launch_with_more_shared_memory, GG_OK},
    {"check the kernels' values", check_values, GG_OK},
    {"release modules and kernels", release_modules, GG_OK},
};
const struct steps kernels_steps = {steps, sizeof steps / sizeof steps[0]};
