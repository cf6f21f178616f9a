/* launch.c: a kernel is started: all that can be checked is checked first, so that a wrong launch is an
 * error with a name and not a device that is lost. */
#include "module.h"

static const char axes[] = "xyz";

static gg_status refuse(const gg_kernel *kernel, const char *what, char axis, uint32_t given,
                        uint32_t limit)
{
    const char name[] = {' ', axis, 0};
    if (!given)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%.100s: %s%s is 0: expected 1 to %u",
                        kernel->name, what, axis ? name : "", limit);
    return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%.100s: %s%s is %u, over the limit of %u",
                    kernel->name, what, axis ? name : "", given, limit);
}

static gg_status check_shape(const gg_kernel *kernel, const struct gg_launch *launch)
{
    const uint64_t threads = (uint64_t)launch->block[0] * launch->block[1];
    for (int i = 0; i < 3; i++) {
        if (launch->block[i] - 1 >= kernel->max_block[i])
            return refuse(kernel, "block", axes[i], launch->block[i], kernel->max_block[i]);
        if (launch->grid[i] - 1 >= kernel->max_grid[i])
            return refuse(kernel, "grid", axes[i], launch->grid[i], kernel->max_grid[i]);
    }
    if (threads > kernel->max_threads || threads * launch->block[2] > kernel->max_threads)
        return ggi_fail(
            GG_ERR_INVALID_ARGUMENT,
            "%.100s: a block of %u x %u x %u threads is over the limit of %u threads per "
            "block: ask for a smaller block, or compile the kernel to use fewer registers",
            kernel->name, launch->block[0], launch->block[1], launch->block[2], kernel->max_threads);
    return GG_OK;
}

/* Memory of the block's own has a size and no value; all else has a value. */
static gg_status refuse_value(const gg_kernel *kernel, uint32_t i, bool local)
{
    if (local)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%.100s: argument %u is memory that each block has to itself: pass its "
                        "size, gpuglue.local(bytes) or in C a NULL value",
                        kernel->name, i);
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%.100s: argument %u has no value, as only memory of the block's own has: the "
                    "kernel does not take such memory there",
                    kernel->name, i);
}

static gg_status refuse_size(const gg_kernel *kernel, uint32_t i, size_t given, uint32_t size)
{
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%.100s: argument %u has %zu bytes where the kernel takes %u: pass a "
                    "value of that size",
                    kernel->name, i, given, size);
}

/* One look at each argument; what each block has to itself is added to @p shared, in bytes. */
static gg_status check_arguments(const gg_kernel *kernel, const struct gg_launch *launch,
                                 uint64_t *shared)
{
    static const struct gg_parameter not_told = {.kind = GG_PARAMETER_UNKNOWN};
    const uint32_t count = launch->argument_count;
    const bool told = kernel->parameter_count >= 0;
    if (told && count != (uint32_t)kernel->parameter_count)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%.100s takes %d arguments, got %u", kernel->name,
                        (int)kernel->parameter_count, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct gg_parameter *parameter = told ? &kernel->parameters[i] : &not_told;
        const bool local = parameter->kind == GG_PARAMETER_LOCAL, none = !launch->arguments[i];
        if (local != none)
            return refuse_value(kernel, i, local);
        if (parameter->size && parameter->size != launch->sizes[i])
            return refuse_size(kernel, i, launch->sizes[i], parameter->size);
        if (none)
            *shared += launch->sizes[i] < UINT32_MAX ? launch->sizes[i] : UINT32_MAX;
    }
    return GG_OK;
}

static gg_status check_memories(const gg_kernel *kernel, const struct gg_launch *launch)
{
    struct gg_device *device = kernel->module->device;
    for (size_t i = 0; i < launch->memory_count; i++) {
        struct gg_device *other = launch->memories[i]->device;
        if (other != device)
            return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                            "%.100s runs on %s:%d, an argument lies on %s:%d: copy it there first",
                            kernel->name, device->backend->name, (int)device->ordinal,
                            other->backend->name, (int)other->ordinal);
    }
    return GG_OK;
}

/* More than what every kernel gets has to be asked for. The driver's limit is one for all kernels made of a
 * function, and a smaller one would take from the others what they have: so all is asked for, once. */
static gg_status allow_shared(gg_kernel *kernel, uint64_t bytes)
{
    struct gg_device *device = kernel->module->device;
    const uint32_t shared = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    if (shared <= atomic_load_explicit(&kernel->shared_allowed, memory_order_relaxed))
        return GG_OK;
    if (shared > kernel->shared_most || !device->ops->kernel_allow_shared)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%.100s: %u bytes of dynamic shared memory are over the limit of %u",
                        kernel->name, shared, kernel->shared_most);
    gg_status status = device->ops->kernel_allow_shared(kernel->impl, kernel->shared_most);
    if (status)
        return ggi_op_failed(device, GG_OP_kernel_allow_shared, status);
    atomic_store(&kernel->shared_allowed, kernel->shared_most);
    return GG_OK;
}

static gg_status check(gg_kernel *kernel, const struct gg_launch *launch)
{
    gg_status status;
    if (launch->struct_size < sizeof *launch)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_kernel_launch: struct_size is %u, expected sizeof(struct gg_launch)",
                        launch->struct_size);
    if (launch->flags & ~(uint32_t)GG_LAUNCH_COOPERATIVE)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "launch flags 0x%x hold an unknown bit",
                        launch->flags);
    if (launch->flags && !kernel->cooperative)
        return ggi_fail(GG_ERR_UNSUPPORTED, "%.100s: %s:%d runs no cooperative launches",
                        kernel->name, kernel->module->device->backend->name,
                        (int)kernel->module->device->ordinal);
    uint64_t shared = launch->shared;
    status = check_shape(kernel, launch);
    if (!status)
        status = check_arguments(kernel, launch, &shared);
    if (!status)
        status = check_memories(kernel, launch);
    return status ? status : allow_shared(kernel, shared);
}

/* ---- running ---- */

static gg_status order(gg_kernel *kernel, const struct gg_launch *launch, gg_stream *stream,
                       bool implicit)
{
    gg_status status = implicit ? ggi_module_order(kernel->module, stream) : GG_OK;
    for (size_t i = 0; i < launch->memory_count && !status; i++)
        status = implicit ? ggi_memory_order(launch->memories[i], stream)
                          : ggi_memory_enter(launch->memories[i], stream);
    return status;
}

static void count_uses(gg_kernel *kernel, const struct gg_launch *launch, gg_stream *stream)
{
    const bool captured = ggi_stream_captures(stream);
    const uint64_t ticket = captured ? 0 : ggi_stream_submitted(stream);
    ggi_module_used(kernel->module, stream, ticket, captured);
    for (size_t i = 0; i < launch->memory_count; i++)
        ggi_note_use(launch->memories[i], stream, ticket, captured);
}

gg_status gg_kernel_launch(gg_kernel *kernel, const struct gg_launch *launch, gg_stream *stream)
{
    struct gg_device *device = kernel->module->device;
    bool implicit, complete;
    gg_status status = ggi_check(device);
    if (status)
        return status;
    if (!device->ops->kernel_launch)
        return ggi_unsupported(device, GG_OP_kernel_launch);
    status = check(kernel, launch);
    if (!status)
        status = ggi_choose_stream(device, &stream, &implicit, &complete);
    if (!status)
        status = order(kernel, launch, stream, implicit);
    if (status)
        return status;
    ggi_begin(device, GG_OP_kernel_launch, stream, 0);
    status = device->ops->kernel_launch(stream->impl, kernel->impl, launch);
    status = ggi_end(device, GG_OP_kernel_launch, stream, 0, status);
    count_uses(kernel, launch, stream); /* a failed launch may have begun */
    if (status)
        return ggi_launch_failed(kernel, launch, status);
    return complete ? ggi_stream_finish(stream, true) : GG_OK;
}
