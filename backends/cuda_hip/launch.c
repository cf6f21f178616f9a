/* launch.c: kernels: their attributes and their launch. */
#include "driver.h"

/* The attribute's number, the same for both drivers. Negative: they do not have it. */
static int kernel_attribute_number(gg_kernel_attribute attribute)
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

gg_status cuhip_kernel_attribute(struct gg_kernel_impl *kernel, gg_kernel_attribute attribute,
                                 int64_t *value)
{
    const int number = kernel_attribute_number(attribute);
    struct gg_device_impl *device = kernel->module->device;
    int found = 0;
    if (attribute == GG_KERNEL_WARP_SIZE)
        return cuhip_device_attribute(device->ordinal, GG_ATTR_WARP_SIZE, value);
    if (number < 0)
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL, "kernel attribute %d", (int)attribute);
    if (!cuhip_driver.function_attribute)
        return cuhip_missing(offsetof(struct cuhip_driver, function_attribute));
    const int code =
        CUHIP_IN_CONTEXT(function_attribute, device, NULL,
                         cuhip_driver.function_attribute(&found, number, kernel->function));
    if (code)
        return cuhip_fail(code, "attribute %d of %.200s", number, kernel->name);
    *value = found;
    return GG_OK;
}

gg_status cuhip_kernel_parameter(struct gg_kernel_impl *kernel, uint32_t index,
                                 struct gg_parameter *parameter)
{
    size_t offset = 0, size = 0;
    if (!cuhip.parameter)
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL, "this driver does not report parameters");
    const int code = CUHIP_IN_CONTEXT(launch, kernel->module->device, NULL,
                                      cuhip.parameter(kernel->function, index, &offset, &size));
    if (code == cuhip.invalid_value) {
        cuhip_clear_error(code);
        return GG_NOT_READY;
    }
    if (code)
        return cuhip_fail(code, "parameter %u of %.200s", index, kernel->name);
    parameter->offset = (uint32_t)offset;
    parameter->size = (uint32_t)size;
    return GG_OK;
}

gg_status cuhip_kernel_occupancy(struct gg_kernel_impl *kernel, uint32_t threads, size_t shared,
                                 int32_t *blocks)
{
    int found = 0;
    if (!cuhip_driver.function_occupancy)
        return cuhip_missing(offsetof(struct cuhip_driver, function_occupancy));
    const int code = CUHIP_IN_CONTEXT(
        function_occupancy, kernel->module->device, NULL,
        cuhip_driver.function_occupancy(&found, kernel->function, (int)threads, shared));
    if (code)
        return cuhip_fail(code, "occupancy of %.200s with %u threads", kernel->name, threads);
    *blocks = found;
    return GG_OK;
}

gg_status cuhip_kernel_suggest_block_size(struct gg_kernel_impl *kernel, size_t shared,
                                          uint32_t limit, uint32_t *threads, uint32_t *blocks)
{
    int found_blocks = 0, found_threads = 0;
    const int code = CUHIP_IN_CONTEXT(
        function_occupancy, kernel->module->device, NULL,
        cuhip.suggest(kernel->function, shared, (int)limit, &found_blocks, &found_threads));
    if (code)
        return cuhip_fail(code, "a block size for %.200s", kernel->name);
    *threads = (uint32_t)found_threads;
    *blocks = (uint32_t)found_blocks;
    return GG_OK;
}

gg_status cuhip_kernel_allow_shared(struct gg_kernel_impl *kernel, uint32_t shared)
{
    if (!cuhip.allow_shared)
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL, "no block gets %u bytes", shared);
    const int code = CUHIP_IN_CONTEXT(launch, kernel->module->device, NULL,
                                      cuhip.allow_shared(kernel->function, (int)shared));
    return code ? cuhip_fail(code, "%u bytes of shared memory for %.200s", shared, kernel->name)
                : GG_OK;
}

static int kernel_start(void *stream, const struct gg_kernel_impl *kernel,
                        const struct gg_launch *launch)
{
    void **arguments = (void **)(uintptr_t)launch->arguments;
    const uint32_t *grid = launch->grid, *block = launch->block;
    if (!(launch->flags & GG_LAUNCH_COOPERATIVE))
        return cuhip_driver.launch(kernel->function, grid[0], grid[1], grid[2], block[0], block[1],
                                   block[2], launch->shared, stream, arguments, NULL);
    if (!cuhip_driver.launch_cooperative)
        return cuhip.not_supported;
    return cuhip_driver.launch_cooperative(kernel->function, grid[0], grid[1], grid[2], block[0],
                                           block[1], block[2], launch->shared, stream, arguments);
}

gg_status cuhip_kernel_launch(struct gg_stream_impl *stream, struct gg_kernel_impl *kernel,
                              const struct gg_launch *launch)
{
    if (!cuhip_driver.launch)
        return cuhip_missing(offsetof(struct cuhip_driver, launch));
    const gg_status status = launch->flags & GG_LAUNCH_COOPERATIVE
                                 ? cuhip_check_capturable(stream, "a cooperative launch")
                                 : GG_OK;
    if (status)
        return status;
    const int code = CUHIP_IN_CONTEXT(launch, stream->device, stream,
                                      kernel_start(stream->native, kernel, launch));
    return code ? cuhip_fail(code, "%u arguments%s", launch->argument_count,
                             launch->flags & GG_LAUNCH_COOPERATIVE ? ", cooperative" : "")
                : GG_OK;
}
