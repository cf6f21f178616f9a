/* kernels.h: the test kernels' images and calls, for the suites that launch them. Included once by each. */
#ifndef GPUGLUE_TESTS_KERNELS_H
#define GPUGLUE_TESTS_KERNELS_H

#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LENGTH 100u

/* ---- images ---- */

static char *image;
static size_t image_size;

static inline const char *directory(void)
{
    static char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    assert_true(size > 0);
    path[size] = 0;
    strcpy(strrchr(path, '/'), "/images/");
    return path;
}

/* The contents of a file of the directory; the caller frees them. */
static inline char *read_image(const char *name, size_t *size)
{
    char path[4200];
    snprintf(path, sizeof path, "%s%s", directory(), name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there: it is part of the tests' build", path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size + 1);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    bytes[*size] = 0;
    fclose(file);
    return bytes;
}

static inline const char *image_for(const char *arch)
{
    if (!strncmp(arch, "sm_", 3))
        return "kernels.ptx";
    if (!strncmp(arch, "gfx", 3))
        return "kernels.gfx942.co";
    if (!strcmp(arch, "x86_64") || !strcmp(arch, "aarch64"))
        return "kernels_host.so";
    return "kernels.spv";
}

static inline struct gg_device_info info_of(gg_device *device)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    assert_int_equal(gg_device_info(device, &info), GG_OK);
    return info;
}

static inline gg_module *load(struct fixture *f)
{
    gg_module *module;
    need(f, GG_OP_module_load);
    free(image);
    image = read_image(image_for(info_of(f->device).arch), &image_size);
    gg_status status = gg_module_load(f->device, image, image_size, &module);
    if (status)
        fail_msg("%s", last_error().message);
    return module;
}

static inline gg_kernel *kernel_of(struct fixture *f, const char *name)
{
    need(f, GG_OP_kernel_launch);
    gg_module *module = load(f);
    gg_kernel *kernel;
    gg_status status = gg_module_kernel(module, name, &kernel);
    gg_module_release(module);
    if (status)
        fail_msg("%s", last_error().message);
    return kernel;
}

/* ---- launches ---- */

struct call {
    const void *values[8];
    size_t sizes[8];
    struct gg_launch launch;
};

static inline void call_begin(struct call *call, gg_memory *const *memories, size_t count)
{
    *call = (struct call){.launch = {.struct_size = sizeof call->launch,
                                     .grid = {1, 1, 1},
                                     .block = {32, 1, 1},
                                     .memories = memories,
                                     .memory_count = count}};
    call->launch.arguments = call->values;
    call->launch.sizes = call->sizes;
}

static inline void pass(struct call *call, const void *value, size_t size)
{
    call->values[call->launch.argument_count] = value;
    call->sizes[call->launch.argument_count++] = size;
}

struct scaling {
    struct call call;
    gg_memory *memory;
    void *pointer;
    uint32_t count;
    float by;
};

/* scale(x, LENGTH, 2) over LENGTH floats of 3. */
static inline void make_scaling(struct fixture *f, struct scaling *s)
{
    const float three = 3;
    s->memory = new_memory(f, LENGTH * sizeof(float));
    s->pointer = gg_memory_pointer(s->memory);
    s->count = LENGTH;
    s->by = 2;
    assert_int_equal(gg_fill(s->memory, 0, &three, sizeof three, LENGTH, f->stream), GG_OK);
    call_begin(&s->call, &s->memory, 1);
    s->call.launch.grid[0] = (LENGTH + 31) / 32;
    pass(&s->call, &s->pointer, sizeof s->pointer);
    pass(&s->call, &s->count, sizeof s->count);
    pass(&s->call, &s->by, sizeof s->by);
}

static inline void assert_floats(struct fixture *f, gg_memory *memory, float expected)
{
    float got[LENGTH];
    read_back(f, memory, got, sizeof got);
    for (size_t i = 0; i < LENGTH; i++)
        assert_float_equal(got[i], expected, 0);
}

#endif
