/* launch.c: kernels: what the drivers tell of them, and their launch. */
#include "driver.h"

/* Numbers of the drivers' functions; the same for both. Negative: not theirs. */
static int attribute_number(gg_kernel_attribute attribute)
{
    switch ((int)attribute) {
    case GG_KERNEL_MAX_THREADS_PER_BLOCK:
        return 0;
    case GG_KERNEL_SHARED_SIZE:
        return 1;
    case GG_KERNEL_CONSTANT_SIZE:
        return 2;
    case GG_KERNEL_LOCAL_SIZE:
        return 3;
    case GG_KERNEL_REGISTERS:
        return 4;
    case GG_KERNEL_MAX_DYNAMIC_SHARED_SIZE:
        return 8;
    default:
        return -1;
    }
}

gg_status twin_kernel_attribute(struct gg_kernel_impl *kernel, gg_kernel_attribute attribute,
                                int64_t *value)
{
    const int number = attribute_number(attribute);
    struct gg_device_impl *device = kernel->module->device;
    struct twin_guard guard;
    int found = 0;
    if (attribute == GG_KERNEL_WARP_SIZE)
        return twin_device_attribute(device->ordinal, GG_ATTR_WARP_SIZE, value);
    if (number < 0)
        return twin_host->fail(GG_ERR_UNSUPPORTED, NULL, "kernel attribute %d", (int)attribute);
    if (!twin_driver.function_attribute)
        return twin_missing(offsetof(struct twin_driver, function_attribute));
    int code = twin_enter(&guard, TWIN_AT_function_attribute, device, NULL);
    if (!code)
        code = twin_driver.function_attribute(&found, number, kernel->function);
    twin_leave(&guard);
    if (code)
        return twin_fail(code, "attribute %d of %.200s", number, kernel->name);
    *value = found;
    return GG_OK;
}

gg_status twin_kernel_parameter(struct gg_kernel_impl *kernel, uint32_t index,
                                struct gg_parameter *parameter)
{
    struct twin_guard guard;
    size_t offset = 0, size = 0;
    if (!twin.parameter)
        return twin_host->fail(GG_ERR_UNSUPPORTED, NULL, "this driver does not tell parameters");
    int code = twin_enter(&guard, TWIN_AT_launch, kernel->module->device, NULL);
    if (!code)
        code = twin.parameter(kernel->function, index, &offset, &size);
    twin_leave(&guard);
    if (code == twin.invalid_value) {
        twin_clear(code);
        return GG_NOT_READY;
    }
    if (code)
        return twin_fail(code, "parameter %u of %.200s", index, kernel->name);
    parameter->offset = (uint32_t)offset;
    parameter->size = (uint32_t)size;
    return GG_OK;
}

gg_status twin_kernel_occupancy(struct gg_kernel_impl *kernel, uint32_t threads, size_t shared,
                                int32_t *blocks)
{
    struct twin_guard guard;
    int found = 0;
    if (!twin_driver.function_occupancy)
        return twin_missing(offsetof(struct twin_driver, function_occupancy));
    int code = twin_enter(&guard, TWIN_AT_function_occupancy, kernel->module->device, NULL);
    if (!code)
        code = twin_driver.function_occupancy(&found, kernel->function, (int)threads, shared);
    twin_leave(&guard);
    if (code)
        return twin_fail(code, "occupancy of %.200s with %u threads", kernel->name, threads);
    *blocks = found;
    return GG_OK;
}

gg_status twin_kernel_suggest(struct gg_kernel_impl *kernel, size_t shared, uint32_t limit,
                              uint32_t *threads, uint32_t *blocks)
{
    struct twin_guard guard;
    int found_blocks = 0, found_threads = 0;
    int code = twin_enter(&guard, TWIN_AT_function_occupancy, kernel->module->device, NULL);
    if (!code)
        code = twin.suggest(kernel->function, shared, (int)limit, &found_blocks, &found_threads);
    twin_leave(&guard);
    if (code)
        return twin_fail(code, "a block size for %.200s", kernel->name);
    *threads = (uint32_t)found_threads;
    *blocks = (uint32_t)found_blocks;
    return GG_OK;
}

gg_status twin_kernel_allow_shared(struct gg_kernel_impl *kernel, uint32_t shared)
{
    struct twin_guard guard;
    if (!twin.allow_shared)
        return twin_host->fail(GG_ERR_UNSUPPORTED, NULL, "no block gets %u bytes", shared);
    int code = twin_enter(&guard, TWIN_AT_launch, kernel->module->device, NULL);
    if (!code)
        code = twin.allow_shared(kernel->function, (int)shared);
    twin_leave(&guard);
    return code ? twin_fail(code, "%u bytes of shared memory for %.200s", shared, kernel->name)
                : GG_OK;
}

static int start(void *stream, const struct gg_kernel_impl *kernel, const struct gg_launch *launch)
{
    void **arguments = (void **)(uintptr_t)launch->arguments;
    const uint32_t *grid = launch->grid, *block = launch->block;
    if (!(launch->flags & GG_LAUNCH_COOPERATIVE))
        return twin_driver.launch(kernel->function, grid[0], grid[1], grid[2], block[0], block[1],
                                  block[2], launch->shared, stream, arguments, NULL);
    if (!twin_driver.launch_cooperative)
        return twin.not_supported;
    return twin_driver.launch_cooperative(kernel->function, grid[0], grid[1], grid[2], block[0],
                                          block[1], block[2], launch->shared, stream, arguments);
}

gg_status twin_kernel_launch(struct gg_stream_impl *stream, struct gg_kernel_impl *kernel,
                             const struct gg_launch *launch)
{
    struct twin_guard guard;
    if (!twin_driver.launch)
        return twin_missing(offsetof(struct twin_driver, launch));
    int code = twin_enter(&guard, TWIN_AT_launch, stream->device, stream);
    if (!code)
        code = start(stream->native, kernel, launch);
    twin_leave(&guard);
    return code ? twin_fail(code, "%u arguments%s", launch->argument_count,
                            launch->flags & GG_LAUNCH_COOPERATIVE ? ", cooperative" : "")
                : GG_OK;
}
