/* launch.c: launches. Each is fully checked first, because a wrong launch may lose the device. */
#include "base/error.h"
#include "base/sized.h"
#include "base/text.h"
#include "runtime/replay.h"
#include "runtime/scope.h"
#include "kernel/kernel.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static gg_status launch_refuse_size(const gg_kernel *kernel, const char *what, char axis,
                                    uint32_t given, uint32_t limit)
{
    if (!given)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%.100s: %s %c is 0: expected 1 to %u",
                        kernel->name, what, axis, limit);
    return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%.100s: %s %c is %u, over the limit of %u",
                    kernel->name, what, axis, given, limit);
}

static gg_status launch_refuse_shape(const gg_kernel *kernel, const struct gg_launch *launch)
{
    for (int i = 0; i < 3; i++) {
        if (launch->block[i] - 1 >= kernel->max_block[i])
            return launch_refuse_size(kernel, "block", "xyz"[i], launch -> block[i],
                                      kernel -> max_block[i]);
        if (launch->grid[i] - 1 >= kernel->max_grid[i])
            return launch_refuse_size(kernel, "grid", "xyz"[i], launch -> grid[i],
                                      kernel -> max_grid[i]);
    }
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%.100s: a block of %u x %u x %u threads is over the limit of %u threads per "
                    "block: ask for a smaller block, or compile the kernel to use fewer registers",
                    kernel->name, launch->block[0], launch->block[1], launch->block[2],
                    kernel->max_threads);
}

static inline int launch_axis_is_over(const gg_kernel *kernel, const struct gg_launch *launch, int i)
{
    return (launch->block[i] - 1 >= kernel->max_block[i]) |
           (launch->grid[i] - 1 >= kernel->max_grid[i]);
}

/* One branch for all limits. Which one is exceeded is determined only for the message. */
static inline gg_status launch_check_shape(const gg_kernel *kernel, const struct gg_launch *launch)
{
    const uint64_t plane = (uint64_t)launch->block[0] * launch->block[1];
    const int over =
        (plane > kernel->max_threads) | (plane * launch->block[2] > kernel->max_threads) |
        launch_axis_is_over(kernel, launch, 0) | launch_axis_is_over(kernel, launch, 1) |
        launch_axis_is_over(kernel, launch, 2);
    return over ? launch_refuse_shape(kernel, launch) : GG_OK;
}

/* Only an argument in block-local memory has a size and no value. */
static gg_status launch_refuse_value(const gg_kernel *kernel, uint32_t i, bool local)
{
    if (local)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%.100s: argument %u is block-local memory: pass its size, with "
                        "gpuglue.LocalMemory(bytes), or in C with a NULL value",
                        kernel->name, i);
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%.100s: argument %u is NULL, which requests block-local memory, but this "
                    "parameter is not block-local memory: pass a value",
                    kernel->name, i);
}

/* Adds the bytes of block-local arguments to @p shared. */
static gg_status launch_check_each(const gg_kernel *kernel, const struct gg_launch *launch,
                                   uint64_t *shared)
{
    static const struct gg_parameter unknown = {.kind = GG_PARAMETER_UNKNOWN};
    const uint32_t count = launch->argument_count;
    const bool declared = kernel->parameter_count >= 0;
    if (declared && count != (uint32_t)kernel->parameter_count)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%.100s takes %d arguments, got %u", kernel->name,
                        (int)kernel->parameter_count, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct gg_parameter *parameter = declared ? &kernel->parameters[i] : &unknown;
        const bool local = parameter->kind == GG_PARAMETER_LOCAL, none = !launch->arguments[i];
        if (local != none)
            return launch_refuse_value(kernel, i, local);
        if (parameter->size && parameter->size != launch->sizes[i])
            return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                            "%.100s: argument %u has %zu bytes where the kernel takes %u: pass a "
                            "value of that size",
                            kernel->name, i, launch->sizes[i], parameter->size);
        if (none)
            *shared += launch->sizes[i] < UINT32_MAX ? launch->sizes[i] : UINT32_MAX;
    }
    return GG_OK;
}

/* The usual kernel declares a size for each parameter: one branch for all arguments. */
static inline gg_status launch_check_arguments(const gg_kernel *kernel,
                                               const struct gg_launch *launch, uint64_t *shared)
{
    const uint32_t count = launch->argument_count;
    size_t differs = !kernel->by_value | (count != (uint32_t)kernel->parameter_count), absent = 0;
    const uint32_t comparable = differs ? 0 : count;
    for (uint32_t i = 0; i < comparable; i++) {
        differs |= launch->sizes[i] ^ kernel->parameters[i].size;
        absent += !launch->arguments[i];
    }
    return differs | absent ? launch_check_each(kernel, launch, shared) : GG_OK;
}

static gg_status launch_check_memories(const gg_kernel *kernel, const struct gg_launch *launch)
{
    struct gg_device *device = kernel->module->device;
    for (size_t i = 0; i < launch->memory_count; i++) {
        struct gg_device *other = launch->memories[i]->device;
        if (ggi_memory_whole(launch->memories[i])->copies_only)
            return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                            "%.100s: argument %zu is registered host memory, which %s:%d has at "
                            "another address: copy it to device memory, or allocate pinned memory",
                            kernel->name, i, other->backend->name, (int)other->ordinal);
        if (other != device)
            return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                            "%.100s runs on %s:%d, but an argument is on %s:%d: copy it first",
                            kernel->name, device->backend->name, (int)device->ordinal,
                            other->backend->name, (int)other->ordinal);
    }
    return GG_OK;
}

/* More than the standard limit must be requested. All handles of a function share one limit in the driver, so the
 * whole opt-in limit is requested once: a lower one would break the others. */
static gg_status kernel_allow_shared(gg_kernel *kernel, uint64_t bytes)
{
    struct gg_device *device = kernel->module->device;
    const uint32_t shared = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    if (shared <= atomic_load_explicit(&kernel->shared_allowed, memory_order_relaxed))
        return GG_OK;
    if (shared > kernel->shared_max || !device->ops->kernel_allow_shared)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%.100s: %u bytes of dynamic shared memory are over the limit of %u",
                        kernel->name, shared, kernel->shared_max);
    gg_status status = device->ops->kernel_allow_shared(kernel->impl, kernel->shared_max);
    if (status)
        return ggi_op_failed(device, GG_OP_kernel_allow_shared, status);
    atomic_store(&kernel->shared_allowed, kernel->shared_max);
    return GG_OK;
}

static gg_status launch_check(gg_kernel *kernel, const struct gg_launch *launch)
{
    static const size_t first = GGI_SIZE_TO(struct gg_launch, memory_count);
    gg_status status;
    if (launch->struct_size < first)
        return ggi_sized_refuse("gg_kernel_launch", "gg_launch", launch, first);
    if (launch->flags & ~(uint32_t)GG_LAUNCH_COOPERATIVE)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "launch flags 0x%x contain an unknown bit",
                        launch->flags);
    if (launch->flags && !kernel->cooperative)
        return ggi_fail(GG_ERR_UNSUPPORTED, "%.100s: %s:%d does not support cooperative launches",
                        kernel->name, kernel->module->device->backend->name,
                        (int)kernel->module->device->ordinal);
    uint64_t shared = launch->shared;
    status = launch_check_shape(kernel, launch);
    if (!status)
        status = launch_check_arguments(kernel, launch, &shared);
    if (!status)
        status = launch_check_memories(kernel, launch);
    return status ? status : kernel_allow_shared(kernel, shared);
}

/* ---- the error of a launch: the kernel, its shape and its arguments ---- */

/* At most 8 bytes, as an integer. */
static uint64_t argument_bits(const void *value, size_t size)
{
    uint64_t bits = 0;
    memcpy(&bits, value, size);
    return bits;
}

static int64_t argument_signed(const void *value, size_t size)
{
    const unsigned unused = 64 - 8 * (unsigned)size;
    return (int64_t)(argument_bits(value, size) << unused) >> unused;
}

static void argument_add_bytes(struct ggi_text *text, const unsigned char *bytes, size_t size)
{
    ggi_text_add(text, "0x");
    for (size_t i = 0; i < size && i < 16; i++)
        ggi_text_add(text, "%02x", bytes[i]);
    if (size > 16)
        ggi_text_add(text, "\xe2\x80\xa6 (%zu bytes)", size);
}

/* An address, and the memory of the launch that contains it. PTX declares addresses as unsigned. */
static void argument_add_pointer(struct ggi_text *text, const struct gg_launch *launch,
                                 uint64_t address)
{
    ggi_text_add(text, "0x%" PRIx64, address);
    for (size_t i = 0; i < launch->memory_count; i++) {
        const gg_memory *memory = launch->memories[i];
        const uint64_t at = address - (uintptr_t)memory->pointer;
        if (at > memory->nbytes)
            continue;
        ggi_text_add(text, " (%zu bytes", memory->nbytes);
        if (at)
            ggi_text_add(text, ", at %" PRIu64, at);
        ggi_text_add(text, ")");
        return;
    }
}

static void argument_add_float(struct ggi_text *text, const void *value, size_t size)
{
    float narrow;
    double wide;
    memcpy(&wide, value, size == sizeof wide ? size : 0);
    memcpy(&narrow, value, size == sizeof narrow ? size : 0);
    if (size == sizeof wide)
        ggi_text_add(text, "%.17g", wide);
    else if (size == sizeof narrow)
        ggi_text_add(text, "%.9g", (double)narrow);
    else
        argument_add_bytes(text, value, size);
}

static void argument_add(struct ggi_text *text, const struct gg_launch *launch, uint32_t index,
                         uint32_t kind)
{
    const void *value = launch->arguments[index];
    const size_t size = launch->sizes[index];
    const bool number = size == 1 || size == 2 || size == 4;
    if (!value)
        ggi_text_add(text, "%zu bytes of block-local memory", size);
    else if (kind == GG_PARAMETER_FLOAT)
        argument_add_float(text, value, size);
    else if (kind == GG_PARAMETER_SIGNED ? number || size == 8
                                         : number && kind == GG_PARAMETER_INTEGER)
        ggi_text_add(text, "%" PRId64, argument_signed(value, size));
    else if (number && kind == GG_PARAMETER_UNSIGNED)
        ggi_text_add(text, "%" PRIu64, argument_bits(value, size));
    else if (size == sizeof(void *))
        argument_add_pointer(text, launch, argument_bits(value, size));
    else
        argument_add_bytes(text, value, size);
}

static void launch_add_arguments(struct ggi_text *text, const gg_kernel *kernel,
                                 const struct gg_launch *launch)
{
    ggi_text_add(text, "arguments (");
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const bool declared = (int32_t)i < kernel->parameter_count;
        ggi_text_add(text, "%s", i ? ", " : "");
        argument_add(text, launch, i, declared ? kernel->parameters[i].kind : GG_PARAMETER_UNKNOWN);
    }
    ggi_text_add(text, ")");
}

static gg_status launch_describe_error(const gg_kernel *kernel, const struct gg_launch *launch,
                                       gg_status status)
{
    const bool exact = atomic_load_explicit(&ggi_debug_sync, memory_order_relaxed);
    struct gg_device *device = kernel->module->device;
    struct gg_error *error = &ggi_error_record()->error;
    char before[sizeof error->message];
    struct ggi_text arguments = GGI_TEXT(320);
    memcpy(before, error->message, sizeof before);
    launch_add_arguments(&arguments, kernel, launch);
    struct ggi_text text = ggi_text_begin(error->message, sizeof error->message);
    ggi_text_add(&text, "%skernel %.100s, grid %u x %u x %u, block %u x %u x %u, %u bytes shared, ",
                 exact ? "" : "at the launch of ", kernel->name, launch->grid[0], launch->grid[1],
                 launch->grid[2], launch->block[0], launch->block[1], launch->block[2],
                 launch->shared);
    ggi_text_add(&text, "%s: %.300s", arguments.data, before);
    if (status == GG_ERR_DEVICE_LOST && ggi_error_record()->first_loss) { /* later errors quote it */
        pthread_mutex_lock(&device->spare_lock);
        snprintf(device->lost.message, sizeof device->lost.message, "%s", error->message);
        pthread_mutex_unlock(&device->spare_lock);
    }
    return status;
}

/* ---- submission ---- */

static gg_status launch_wait_uses(gg_kernel *kernel, const struct gg_launch *launch,
                                  gg_stream *stream)
{
    gg_status status = ggi_module_wait_uses(kernel->module, stream);
    for (size_t i = 0; i < launch->memory_count && !status; i++)
        status = ggi_memory_wait_uses(launch->memories[i], stream);
    return status;
}

static inline gg_status launch_wait(gg_kernel *kernel, const struct gg_launch *launch,
                                    gg_stream *stream, bool implicit)
{
    if (implicit)
        return launch_wait_uses(kernel, launch, stream);
    for (size_t i = 0; i < launch->memory_count; i++) {
        const gg_status status = ggi_memory_wait_ready(launch->memories[i], stream);
        if (status)
            return status;
    }
    return GG_OK;
}

static void launch_note_uses(gg_kernel *kernel, const struct gg_launch *launch, gg_stream *stream)
{
    const bool captured = ggi_stream_is_captured(stream);
    const uint64_t ticket = captured ? 0 : ggi_stream_submitted(stream);
    ggi_module_note_use(kernel->module, stream, ticket, captured);
    if (!captured)
        ggi_memories_used(launch->memories, launch->memory_count, stream, ticket);
    for (size_t i = 0; captured && i < launch->memory_count; i++)
        ggi_memory_captured(launch->memories[i], stream);
}

gg_status gg_kernel_launch(gg_kernel *kernel, const struct gg_launch *launch, gg_stream *stream)
{
    struct gg_device *device = kernel->module->device;
    bool implicit, complete;
    gg_status status = ggi_device_check(device);
    if (status)
        return status;
    if (!device->ops->kernel_launch)
        return ggi_unsupported(device, GG_OP_kernel_launch);
    status = launch_check(kernel, launch);
    if (!status)
        status = ggi_choose_stream(device, &stream, &implicit, &complete);
    if (!status)
        status = launch_wait(kernel, launch, stream, implicit);
    if (status)
        return status;
    status = GGI_QUEUE_NAMED(device, kernel_launch, stream, 0, kernel->name, kernel->impl, launch);
    launch_note_uses(kernel, launch, stream); /* also if it failed: it may have started */
    if (status)
        return launch_describe_error(kernel, launch, status);
    if (complete)
        status = ggi_stream_synchronize(stream, true);
    ggi_drain_others(stream, false);
    return status;
}
