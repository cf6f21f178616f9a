/* kernel.c: kernels of a module: lookup by name, parameters, limits and attributes. */
#include "base/error.h"
#include "runtime/call.h"
#include "kernel/kernel.h"

#include <stdlib.h>
#include <string.h>

const char *gg_kernel_attribute_name(gg_kernel_attribute attribute)
{
#define GG_KERNEL_WORD(name, word) word,
    static const char *const words[] = {GG_KERNEL_ATTRIBUTES(GG_KERNEL_WORD)};
#undef GG_KERNEL_WORD
    return (unsigned)attribute < GG_KERNEL_ATTRIBUTE_COUNT ? words[attribute] : "unknown";
}

/* ---- parameters and limits ---- */

/* GG_NOT_READY: the kernel has no more parameters. */
static gg_status kernel_add_parameter_of_driver(gg_kernel *kernel)
{
    const size_t count = (size_t)kernel->parameter_count;
    struct gg_parameter parameter = {0};
    gg_status status =
        kernel->module->device->ops->kernel_parameter(kernel->impl, (uint32_t)count, &parameter);
    if (status)
        return status;
    struct gg_parameter *more = realloc(kernel->driver_parameters, (count + 1) * sizeof *more);
    if (!more)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a kernel's parameters");
    more[count] = parameter;
    kernel->parameters = kernel->driver_parameters = more;
    kernel->parameter_count++;
    return GG_OK;
}

/* It is not an error if the driver does not report them, so the error record is restored. */
static gg_status kernel_read_parameters_of_driver(gg_kernel *kernel)
{
    struct gg_device *device = kernel->module->device;
    const struct gg_error before = ggi_error_record()->error;
    gg_status status;
    if (!device->ops->kernel_parameter)
        return GG_OK;
    kernel->parameter_count = 0;
    do
        status = kernel_add_parameter_of_driver(kernel);
    while (!status);
    if (status == GG_NOT_READY)
        return GG_OK;
    free(kernel->driver_parameters);
    kernel->parameters = kernel->driver_parameters = NULL;
    kernel->parameter_count = -1;
    if (status != GG_ERR_UNSUPPORTED)
        return ggi_op_failed(device, GG_OP_kernel_parameter, status);
    ggi_error_record()->error = before;
    return GG_OK;
}

/* The image also has the types; the driver is queried only if the image has no parameters. */
static gg_status kernel_find_parameters(gg_kernel *kernel)
{
    const struct gg_image_kernel *declared = ggi_module_image_kernel(kernel->module, kernel->name);
    kernel->parameter_count = -1;
    if (!declared || declared->parameter_count < 0)
        return kernel_read_parameters_of_driver(kernel);
    kernel->parameters = declared->parameters;
    kernel->parameter_count = declared->parameter_count;
    return GG_OK;
}

static bool kernel_takes_values(const gg_kernel *kernel)
{
    int32_t i = 0;
    while (i < kernel->parameter_count && kernel->parameters[i].size &&
           kernel->parameters[i].kind != GG_PARAMETER_LOCAL)
        i++;
    return i == kernel->parameter_count;
}

#define UNKNOWN UINT32_MAX /* a limit that is not checked */

static uint32_t device_limit(struct gg_device *device, gg_attribute attribute)
{
    int64_t value = 0;
    if (!device->ops->device_attribute ||
        device->ops->device_attribute(device->ordinal, attribute, &value) || value <= 0 ||
        value > UINT32_MAX)
        return UNKNOWN;
    return (uint32_t)value;
}

/* An attribute of the kernel; @p otherwise if it is unknown, 0 or not below the limit. */
static uint32_t kernel_value_below(gg_kernel *kernel, gg_kernel_attribute attribute, uint32_t limit,
                                   uint32_t otherwise)
{
    struct gg_device *device = kernel->module->device;
    int64_t value = 0;
    if (!device->ops->kernel_attribute ||
        device->ops->kernel_attribute(kernel->impl, attribute, &value) || value <= 0 ||
        value >= limit)
        return otherwise;
    return (uint32_t)value;
}

static uint32_t limit_less(uint32_t limit, uint32_t used)
{
    return limit == UNKNOWN ? limit : limit > used ? limit - used : 0;
}

/* Dynamic shared memory: the device's limits minus the kernel's static shared memory. */
static void kernel_find_shared_limits(gg_kernel *kernel)
{
    struct gg_device *device = kernel->module->device;
    const uint32_t standard = device_limit(device, GG_ATTR_SHARED_MEMORY_PER_BLOCK);
    uint32_t optin = device_limit(device, GG_ATTR_SHARED_MEMORY_OPTIN);
    if (optin == UNKNOWN || (standard != UNKNOWN && optin < standard))
        optin = standard;
    const uint32_t used = kernel_value_below(kernel, GG_KERNEL_SHARED_SIZE, optin, 0);
    const bool always_opt_in = standard == UNKNOWN && optin != UNKNOWN;
    kernel->shared_max = limit_less(optin, used);
    atomic_init(&kernel->shared_allowed, always_opt_in ? 0 : limit_less(standard, used));
}

/* Read once, so that a launch only compares numbers. */
static void kernel_find_limits(gg_kernel *kernel)
{
    struct gg_device *device = kernel->module->device;
    ggi_suppress_errors(1);
    for (int i = 0; i < 3; i++) {
        kernel->max_grid[i] = device_limit(device, (gg_attribute)(GG_ATTR_MAX_GRID_X + i));
        kernel->max_block[i] = device_limit(device, (gg_attribute)(GG_ATTR_MAX_BLOCK_X + i));
    }
    const uint32_t threads = device_limit(device, GG_ATTR_MAX_THREADS_PER_BLOCK);
    kernel->max_threads =
        kernel_value_below(kernel, GG_KERNEL_MAX_THREADS_PER_BLOCK, threads, threads);
    kernel->cooperative = device_limit(device, GG_ATTR_COOPERATIVE_LAUNCH) != UNKNOWN;
    kernel_find_shared_limits(kernel);
    ggi_suppress_errors(-1);
}

gg_status gg_module_kernel(gg_module *module, const char *name, gg_kernel **out)
{
    struct gg_device *device = module->device;
    struct gg_kernel_impl *impl = NULL;
    gg_status status = ggi_device_check(device);
    if (status)
        return status;
    status = GGI_CALL(device, module_kernel, NULL, 0, (module->impl, name, &impl));
    if (status == GG_NOT_READY)
        return ggi_module_refuse_name(module, name);
    if (status)
        return status;
    gg_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a kernel handle");
    atomic_init(&kernel->refs, 1);
    gg_module_retain(module);
    kernel->module = module;
    kernel->impl = impl;
    kernel->name = strdup(name);
    status = kernel->name ? kernel_find_parameters(kernel)
                          : ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a kernel's name");
    if (status) {
        gg_kernel_release(kernel);
        return status;
    }
    kernel->by_value = kernel_takes_values(kernel);
    kernel_find_limits(kernel);
    *out = kernel;
    return GG_OK;
}

void gg_kernel_retain(gg_kernel *kernel)
{
    atomic_fetch_add_explicit(&kernel->refs, 1, memory_order_relaxed);
}

void gg_kernel_release(gg_kernel *kernel)
{
    if (!kernel || atomic_fetch_sub(&kernel->refs, 1) != 1)
        return;
    gg_module_release(kernel->module);
    free(kernel->driver_parameters);
    free(kernel->name);
    free(kernel);
}

const char *gg_kernel_name(const gg_kernel *kernel)
{
    return kernel->name;
}

gg_module *gg_kernel_module(const gg_kernel *kernel)
{
    return kernel->module;
}

gg_device *gg_kernel_device(const gg_kernel *kernel)
{
    return kernel->module->device;
}

int32_t gg_kernel_parameter_count(const gg_kernel *kernel)
{
    return kernel->parameter_count;
}

const struct gg_parameter *gg_kernel_parameters(const gg_kernel *kernel)
{
    return kernel->parameters;
}

gg_status gg_kernel_attribute_get(gg_kernel *kernel, gg_kernel_attribute attribute, int64_t *value)
{
    struct gg_device *device = kernel->module->device;
    gg_status status = ggi_device_check(device);
    if (status)
        return status;
    if ((unsigned)attribute >= GG_KERNEL_ATTRIBUTE_COUNT)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "kernel attribute %d is not one of 0 to %d",
                        (int)attribute, GG_KERNEL_ATTRIBUTE_COUNT - 1);
    return GGI_CALL_OPTIONAL(device, kernel_attribute, NULL, 0, (kernel->impl, attribute, value));
}

gg_status gg_kernel_occupancy(gg_kernel *kernel, uint32_t threads, size_t shared, int32_t *blocks)
{
    struct gg_device *device = kernel->module->device;
    gg_status status = ggi_device_check(device);
    if (status)
        return status;
    if (!threads || threads > kernel->max_threads)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%.100s: a block of %u threads: expected 1 to %u, its limit", kernel->name,
                        threads, kernel->max_threads);
    return GGI_CALL_OPTIONAL(device, kernel_occupancy, NULL, 0,
                             (kernel->impl, threads, shared, blocks));
}

gg_status gg_kernel_suggest_block_size(gg_kernel *kernel, size_t shared, uint32_t limit,
                                       uint32_t *threads, uint32_t *blocks)
{
    struct gg_device *device = kernel->module->device;
    gg_status status = ggi_device_check(device);
    if (status)
        return status;
    return GGI_CALL_OPTIONAL(device, kernel_suggest_block_size, NULL, 0,
                             (kernel->impl, shared, limit, threads, blocks));
}
