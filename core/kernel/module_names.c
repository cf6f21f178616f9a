/* module_names.c: the names of a module's kernels, and the error for a name that is not among them. */
#include "base/error.h"
#include "base/list.h"
#include "base/text.h"
#include "runtime/call.h"
#include "kernel/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_ROOM 256

/* Names that the driver lists. */
struct ggi_names {
    char **names;
    size_t count;
    bool no_memory;
};

void ggi_names_free(struct ggi_names *names)
{
    for (size_t i = 0; names && i < names->count; i++)
        free(names->names[i]);
    if (names)
        free(names->names);
    free(names);
}

static void names_add(void *user, const char *name)
{
    struct ggi_names *names = user;
    char *copy = strdup(name);
    char **grown = copy ? ggi_array_grow(names->names, names->count, sizeof *names->names) : NULL;
    if (!grown) {
        free(copy);
        names->no_memory = true;
        return;
    }
    names->names = grown;
    names->names[names->count++] = copy;
}

/* ---- the list ---- */

/* Whether the image has the names of all kernels. A container that could not be read has none. */
static bool image_lists_kernels(const struct gg_image *image)
{
    return image->kernel_count || image->format == GG_IMAGE_CUBIN ||
           image->format == GG_IMAGE_CODE_OBJECT || image->format == GG_IMAGE_PTX ||
           image->format == GG_IMAGE_SPIRV;
}

static gg_status module_ask_driver(gg_module *module, struct ggi_names *names)
{
    struct gg_device *device = module->device;
    const struct gg_error before = ggi_error_record()->error;
    gg_status status =
        GGI_CALL_OPTIONAL(device, module_names, NULL, 0, (module->impl, names_add, names));
    if (!status && names->no_memory)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for the names of kernels");
    if (status != GG_ERR_UNSUPPORTED)
        return status;
    ggi_error_record()->error = before;
    return ggi_fail(GG_ERR_UNSUPPORTED,
                    "%s:%d: the kernels of the module are not known: a %s like this one does not "
                    "list them, and neither does the driver; use the names of its source",
                    device->backend->name, (int)device->ordinal, module->image->word);
}

/* The driver is called without the lock, which launches take. */
static gg_status module_read_names(gg_module *module, const struct ggi_names **out)
{
    pthread_mutex_lock(&module->lock);
    *out = module->driver_names;
    pthread_mutex_unlock(&module->lock);
    if (*out)
        return GG_OK;
    struct ggi_names *names = calloc(1, sizeof *names);
    if (!names)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for the names of kernels");
    const gg_status status = module_ask_driver(module, names);
    if (status) {
        ggi_names_free(names);
        return status;
    }
    pthread_mutex_lock(&module->lock);
    struct ggi_names *other = module->driver_names;
    if (!other)
        module->driver_names = names;
    *out = module->driver_names;
    pthread_mutex_unlock(&module->lock);
    if (other)
        ggi_names_free(names);
    return GG_OK;
}

gg_status gg_module_kernel_count(gg_module *module, size_t *out)
{
    const struct ggi_names *names;
    gg_status status = ggi_device_check(module->device);
    if (status)
        return status;
    if (image_lists_kernels(module->image)) {
        *out = module->image->kernel_count;
        return GG_OK;
    }
    status = module_read_names(module, &names);
    if (!status)
        *out = names->count;
    return status;
}

const char *gg_module_kernel_name(gg_module *module, size_t index)
{
    if (image_lists_kernels(module->image))
        return index < module->image->kernel_count ? module->image->kernels[index].name : NULL;
    pthread_mutex_lock(&module->lock);
    const struct ggi_names *names = module->driver_names;
    pthread_mutex_unlock(&module->lock);
    return names && index < names->count ? names->names[index] : NULL;
}

/* ---- a name that is not there ---- */

const struct gg_image_kernel *ggi_module_image_kernel(const gg_module *module, const char *name)
{
    for (size_t i = 0; i < module->image->kernel_count; i++)
        if (!strcmp(module->image->kernels[i].name, name))
            return &module->image->kernels[i];
    return NULL;
}

/* The kernel whose C++ name contains @p name, such as _Z5scalePf, or the one whose name is similar; or NULL. */
static const char *module_nearest_name(gg_module *module, const char *name)
{
    char mangled[NAME_ROOM];
    const char *nearest = NULL, *at;
    size_t least = ggi_text_tolerance(name) + 1;
    const bool fits = snprintf(mangled, sizeof mangled, "%zu%s", strlen(name), name) < NAME_ROOM;
    for (size_t i = 0; (at = gg_module_kernel_name(module, i)); i++) {
        if (fits && name[0] && !strncmp(at, "_Z", 2) && strstr(at, mangled))
            return at;
        const size_t distance = ggi_text_distance(name, at);
        if (distance < least) {
            least = distance;
            nearest = at;
        }
    }
    return nearest;
}

static gg_status module_refuse_of_list(gg_module *module, const char *name)
{
    struct ggi_text names = GGI_TEXT(384), hint = GGI_TEXT(192);
    const char *nearest = module_nearest_name(module, name), *at;
    for (size_t i = 0; (at = gg_module_kernel_name(module, i)) && names.used < names.size; i++)
        ggi_text_add(&names, "%s%s", i ? ", " : "", at);
    if (nearest)
        ggi_text_add(&hint, " (did you mean \"%.160s\"?)", nearest);
    return ggi_fail(
        GG_ERR_INVALID_ARGUMENT, "%s:%d: the module has no kernel \"%.100s\"%s; it has: %s",
        module->device->backend->name, (int)module->device->ordinal, name, hint.data, names.data);
}

gg_status ggi_module_refuse_name(gg_module *module, const char *name)
{
    const char *backend = module->device->backend->name;
    const int ordinal = module->device->ordinal;
    size_t count = 0;
    if (ggi_module_image_kernel(module, name))
        return ggi_fail(
            GG_ERR_INVALID_ARGUMENT,
            "%s:%d: the image has kernel \"%.200s\", but the driver does not find it: link the "
            "device code that it calls into the image; a kernel that launches kernels calls "
            "the vendor's device runtime",
            backend, ordinal, name);
    ggi_suppress_errors(1);
    const gg_status status = gg_module_kernel_count(module, &count);
    ggi_suppress_errors(-1);
    if (status)
        return ggi_fail(
            GG_ERR_INVALID_ARGUMENT,
            "%s:%d: the module has no kernel \"%.200s\", and the driver does not list its kernels",
            backend, ordinal, name);
    if (!count)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%s:%d: the module has no kernel \"%.200s\" and no other kernel, only "
                        "variables or functions: declare the kernel __global__, in OpenCL C "
                        "__kernel",
                        backend, ordinal, name);
    return module_refuse_of_list(module, name);
}
