/* kernel.c: kernels of a module: found by name, with what image and driver tell of them. */
#include "module.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

const char *gg_kernel_attribute_name(gg_kernel_attribute attribute)
{
#define GG_KERNEL_WORD(name, word) word,
    static const char *const words[] = {GG_KERNEL_ATTRIBUTES(GG_KERNEL_WORD)};
#undef GG_KERNEL_WORD
    return (unsigned)attribute < GG_KERNEL_ATTRIBUTE_COUNT ? words[attribute] : "unknown";
}

/* ---- names ---- */

static void add_name(void *user, const char *name)
{
    struct ggi_text *names = user;
    if (names->used)
        ggi_text_add(names, ", ");
    ggi_text_add(names, "%s", name);
}

static gg_status refuse_name(gg_module *module, const char *name)
{
    struct gg_device *device = module->device;
    char room[512] = "";
    struct ggi_text names;
    ggi_text_begin(&names, room, sizeof room);
    for (size_t i = 0; i < module->image->kernel_count; i++)
        add_name(&names, module->image->kernels[i].name);
    if (!names.used && device->ops->module_names)
        device->ops->module_names(module->impl, add_name, &names);
    return ggi_fail(GG_ERR_INVALID_ARGUMENT, "%s:%d: the module has no kernel \"%.200s\"%s%s",
                    device->backend->name, (int)device->ordinal, name,
                    names.used ? "; it has: " : ", and does not tell which it has", room);
}

/* ---- what is known of a kernel ---- */

static const struct gg_image_kernel *in_image(const gg_module *module, const char *name)
{
    for (size_t i = 0; i < module->image->kernel_count; i++)
        if (!strcmp(module->image->kernels[i].name, name))
            return &module->image->kernels[i];
    return NULL;
}

/* The driver's word, one by one. One that tells none is no failure, and leaves no record. */
static gg_status ask_parameters(gg_kernel *kernel)
{
    struct gg_device *device = kernel->module->device;
    const struct gg_error before = ggi_thread()->error;
    gg_status status = GG_OK;
    struct gg_parameter *parameters = NULL;
    int32_t count = 0;
    if (!device->ops->kernel_parameter)
        return GG_OK;
    for (;;) {
        struct gg_parameter parameter = {0};
        status = device->ops->kernel_parameter(kernel->impl, (uint32_t)count, &parameter);
        if (status)
            break;
        struct gg_parameter *more = realloc(parameters, ((size_t)count + 1) * sizeof *more);
        if (!more) {
            status = ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a kernel's parameters");
            break;
        }
        parameters = more;
        parameters[count++] = parameter;
    }
    if (status != GG_NOT_READY) {
        free(parameters);
        if (status != GG_ERR_UNSUPPORTED)
            return ggi_op_failed(device, GG_OP_kernel_parameter, status);
        ggi_thread()->error = before;
        return GG_OK;
    }
    kernel->parameters = parameters;
    kernel->parameter_count = count;
    return GG_OK;
}

/* The image's word, which knows types; the driver's where it says nothing. */
static gg_status find_parameters(gg_kernel *kernel)
{
    const struct gg_image_kernel *told = in_image(kernel->module, kernel->name);
    kernel->parameter_count = -1;
    if (!told || told->parameter_count < 0)
        return ask_parameters(kernel);
    const size_t nbytes = (size_t)told->parameter_count * sizeof *kernel->parameters;
    kernel->parameters = malloc(nbytes ? nbytes : 1);
    if (!kernel->parameters)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a kernel's parameters");
    if (nbytes)
        memcpy(kernel->parameters, told->parameters, nbytes);
    kernel->parameter_count = told->parameter_count;
    return GG_OK;
}

static uint32_t limit_of(struct gg_device *device, gg_attribute attribute)
{
    int64_t value = 0;
    if (!device->ops->device_attribute ||
        device->ops->device_attribute(device->ordinal, attribute, &value) || value <= 0 ||
        value > UINT32_MAX)
        return UINT32_MAX;
    return (uint32_t)value;
}

static int64_t number_of(gg_kernel *kernel, gg_kernel_attribute attribute, int64_t otherwise)
{
    struct gg_device *device = kernel->module->device;
    int64_t value = 0;
    if (!device->ops->kernel_attribute ||
        device->ops->kernel_attribute(kernel->impl, attribute, &value))
        return otherwise;
    return value;
}

/* Asked once: a launch compares numbers only. */
static void find_limits(gg_kernel *kernel)
{
    struct gg_device *device = kernel->module->device;
    ggi_quiet(1);
    for (int i = 0; i < 3; i++) {
        kernel->max_grid[i] = limit_of(device, (gg_attribute)(GG_ATTR_MAX_GRID_X + i));
        kernel->max_block[i] = limit_of(device, (gg_attribute)(GG_ATTR_MAX_BLOCK_X + i));
    }
    const uint32_t device_threads = limit_of(device, GG_ATTR_MAX_THREADS_PER_BLOCK);
    const int64_t threads = number_of(kernel, GG_KERNEL_MAX_THREADS_PER_BLOCK, device_threads);
    kernel->max_threads =
        threads > 0 && threads < device_threads ? (uint32_t)threads : device_threads;
    const uint32_t cooperative = limit_of(device, GG_ATTR_COOPERATIVE_LAUNCH);
    kernel->cooperative = cooperative && cooperative != UINT32_MAX;
    const uint32_t usual = limit_of(device, GG_ATTR_SHARED_MEMORY_PER_BLOCK);
    const uint32_t optin = limit_of(device, GG_ATTR_SHARED_MEMORY_OPTIN);
    const bool known = usual != UINT32_MAX;
    const uint32_t most = optin == UINT32_MAX || (known && optin < usual) ? usual : optin;
    const int64_t own = number_of(kernel, GG_KERNEL_SHARED_SIZE, 0);
    const uint32_t taken = own > 0 && own < most ? (uint32_t)own : 0;
    const uint32_t allowed = known ? usual : most == UINT32_MAX ? most : 0; /* not known: ask */
    kernel->shared_most = most == UINT32_MAX ? most : most - taken;
    atomic_init(&kernel->shared_allowed, allowed == UINT32_MAX ? allowed
                                         : allowed > taken     ? allowed - taken
                                                               : 0);
    ggi_quiet(-1);
}

gg_status gg_module_kernel(gg_module *module, const char *name, gg_kernel **out)
{
    struct gg_device *device = module->device;
    struct gg_kernel_impl *impl = NULL;
    gg_status status = ggi_check(device);
    if (status)
        return status;
    ggi_begin(device, GG_OP_module_kernel, NULL, 0);
    status = device->ops->module_kernel(module->impl, name, &impl);
    status = ggi_end(device, GG_OP_module_kernel, NULL, 0, status);
    if (status == GG_NOT_READY)
        return refuse_name(module, name);
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
    status = kernel->name ? find_parameters(kernel)
                          : ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a kernel's name");
    if (status) {
        gg_kernel_release(kernel);
        return status;
    }
    find_limits(kernel);
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
    free(kernel->parameters);
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

/* ---- questions ---- */

gg_status gg_kernel_attribute_get(gg_kernel *kernel, gg_kernel_attribute attribute, int64_t *value)
{
    struct gg_device *device = kernel->module->device;
    gg_status status = ggi_check(device);
    if (status)
        return status;
    if (!device->ops->kernel_attribute)
        return ggi_unsupported(device, GG_OP_kernel_attribute);
    if ((unsigned)attribute >= GG_KERNEL_ATTRIBUTE_COUNT)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "kernel attribute %d is not one of 0 to %d",
                        (int)attribute, GG_KERNEL_ATTRIBUTE_COUNT - 1);
    ggi_begin(device, GG_OP_kernel_attribute, NULL, 0);
    status = device->ops->kernel_attribute(kernel->impl, attribute, value);
    return ggi_end(device, GG_OP_kernel_attribute, NULL, 0, status);
}

gg_status gg_kernel_occupancy(gg_kernel *kernel, uint32_t threads, size_t shared, int32_t *blocks)
{
    struct gg_device *device = kernel->module->device;
    gg_status status = ggi_check(device);
    if (status)
        return status;
    if (!device->ops->kernel_occupancy)
        return ggi_unsupported(device, GG_OP_kernel_occupancy);
    if (!threads || threads > kernel->max_threads)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%.100s: a block of %u threads: expected 1 to %u, its limit", kernel->name,
                        threads, kernel->max_threads);
    ggi_begin(device, GG_OP_kernel_occupancy, NULL, 0);
    status = device->ops->kernel_occupancy(kernel->impl, threads, shared, blocks);
    return ggi_end(device, GG_OP_kernel_occupancy, NULL, 0, status);
}

gg_status gg_kernel_suggest(gg_kernel *kernel, size_t shared, uint32_t limit, uint32_t *threads,
                            uint32_t *blocks)
{
    struct gg_device *device = kernel->module->device;
    gg_status status = ggi_check(device);
    if (status)
        return status;
    if (!device->ops->kernel_suggest)
        return ggi_unsupported(device, GG_OP_kernel_suggest);
    ggi_begin(device, GG_OP_kernel_suggest, NULL, 0);
    status = device->ops->kernel_suggest(kernel->impl, shared, limit, threads, blocks);
    return ggi_end(device, GG_OP_kernel_suggest, NULL, 0, status);
}
