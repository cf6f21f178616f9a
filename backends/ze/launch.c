/* launch.c: kernels: what the driver tells of them, and their launch. A kernel holds its group size and its
 * arguments until it is appended, so a launch has it to itself. */
#include "ze.h"

gg_status ze_kernel_parameter(struct gg_kernel_impl *kernel, uint32_t index,
                              struct gg_parameter *parameter)
{
    (void)parameter; /* their number is all that it tells */
    if (!kernel->properties.stype)
        return ze_host->fail(GG_ERR_UNSUPPORTED, NULL, "the driver does not tell parameters");
    return index < kernel->arguments ? GG_OK : GG_NOT_READY;
}

gg_status ze_kernel_attribute(struct gg_kernel_impl *kernel, gg_kernel_attribute attribute,
                              int64_t *value)
{
    const struct ze_kernel_properties *properties = &kernel->properties;
    const int32_t ordinal = kernel->module->device->ordinal;
    switch ((int)attribute) {
    case GG_KERNEL_MAX_THREADS_PER_BLOCK:
        return ze_device_attribute(ordinal, GG_ATTR_MAX_THREADS_PER_BLOCK, value);
    case GG_KERNEL_SHARED_SIZE:
        *value = properties->local_memory;
        return GG_OK;
    case GG_KERNEL_LOCAL_SIZE:
        *value = (int64_t)properties->private_memory + properties->spill_memory;
        return GG_OK;
    case GG_KERNEL_WARP_SIZE:
        *value = properties->max_subgroup_size;
        return GG_OK;
    default:
        return ze_host->fail(GG_ERR_UNSUPPORTED, NULL, "Level Zero does not tell attribute %d",
                             (int)attribute);
    }
}

/* Of a grid that fills any device. */
gg_status ze_kernel_suggest(struct gg_kernel_impl *kernel, size_t shared, uint32_t limit,
                            uint32_t *threads, uint32_t *blocks)
{
    uint32_t x = 0, y = 0, z = 0;
    int64_t units = 1;
    (void)shared;
    if (!ze.kernel_suggest)
        return ze_host->fail(GG_ERR_UNSUPPORTED, NULL,
                             "this loader has no zeKernelSuggestGroupSize");
    const int code = ze.kernel_suggest(kernel->native, 1u << 20, 1, 1, &x, &y, &z);
    if (code)
        return ze_fail(code, "a group size for %.200s", kernel->name);
    gg_status status =
        ze_device_attribute(kernel->module->device->ordinal, GG_ATTR_MULTIPROCESSORS, &units);
    if (status)
        return status;
    *threads = limit && limit < x ? limit : x;
    *blocks = units > 0 ? (uint32_t)units : 1;
    return GG_OK;
}

/* With the kernel's lock held. */
static int set_up(struct gg_kernel_impl *kernel, const struct gg_launch *launch)
{
    int code = ze.kernel_block(kernel->native, launch->block[0], launch->block[1], launch->block[2]);
    for (uint32_t i = 0; i < launch->argument_count && !code; i++)
        code = ze.kernel_argument(kernel->native, i, launch->sizes[i], launch->arguments[i]);
    return code;
}

gg_status ze_kernel_launch(struct gg_stream_impl *stream, struct gg_kernel_impl *kernel,
                           const struct gg_launch *launch)
{
    const struct ze_group_count groups = {launch->grid[0], launch->grid[1], launch->grid[2]};
    if (launch->flags || launch->shared)
        return ze_host->fail(GG_ERR_UNSUPPORTED, NULL,
                             "%s: Level Zero's kernels take local memory as an argument",
                             launch->flags ? "a cooperative launch" : "dynamic shared memory");
    pthread_mutex_lock(&kernel->lock);
    int code = set_up(kernel, launch);
    if (!code) {
        code = ze_append_begin(stream);
        if (!code)
            code = ze.append_launch(stream->list, kernel->native, &groups, NULL, 0, NULL);
        code = ze_append_end(stream, code);
    }
    pthread_mutex_unlock(&kernel->lock);
    return code ? ze_fail(code, "%u arguments", launch->argument_count) : GG_OK;
}
