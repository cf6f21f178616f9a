/* module.c: modules: loaded device code and its variables; unloaded once nothing uses them. */
#include "base/error.h"
#include "base/list.h"
#include "runtime/call.h"
#include "kernel/image.h"
#include "kernel/kernel.h"
#include "kernel/module_options.h"

#include <stdlib.h>
#include <string.h>

/* A variable, in its module's list while its memory is alive. */
struct ggi_global {
    struct ggi_global *next, **link;
    struct gg_module *module; /* a reference */
    gg_memory *memory;        /* no reference */
    char *name;
};

/* The code is idle and has no references. */
static void module_destroy(void *owner)
{
    gg_module *module = owner;
    struct gg_device *device = module->device;
    ggi_call_begin(device, GG_OP_module_unload, NULL, 0);
    device->ops->module_unload(module->impl);
    ggi_call_end(device, GG_OP_module_unload, NULL, 0, GG_OK);
    gg_image_free(module->image);
    ggi_names_free(module->driver_names);
    pthread_mutex_destroy(&module->lock);
    free(module);
}

gg_module *ggi_module_of_code(const gg_memory *memory)
{
    return memory->release == module_destroy ? memory->owner : NULL;
}

void gg_module_retain(gg_module *module)
{
    atomic_fetch_add_explicit(&module->refs, 1, memory_order_relaxed);
}

void gg_module_release(gg_module *module)
{
    if (module && atomic_fetch_sub(&module->refs, 1) == 1)
        gg_memory_release(module->code);
}

gg_device *gg_module_device(const gg_module *module)
{
    return module->device;
}

const struct gg_image *gg_module_image(const gg_module *module)
{
    return module->image;
}

/* ---- loading ---- */

/* An image with what it is compiled with; no options: NULL. */
struct module_source {
    struct gg_image *image;
    const void *bytes;
    size_t nbytes;
    const struct gg_module_options *options;
};

static gg_status module_driver_load(struct gg_device *device, const struct module_source *source,
                                    struct gg_module_impl **out)
{
    const struct gg_image *image = source->image;
    if (image->format == GG_IMAGE_LTOIR)
        return ggi_fail(
            GG_ERR_UNSUPPORTED,
            "%s:%d: the image is ltoir, which has to be linked before it can be loaded: "
            "compile to a cubin or to ptx instead",
            device->backend->name, (int)device->ordinal);
    if (source->options)
        return GGI_CALL_RELAXED(device, module_load_with, NULL, source->nbytes,
                                (atomic_load(&device->impl), image, source->bytes, source->nbytes,
                                 source->options, out));
    return GGI_CALL_RELAXED(device, module_load, NULL, source->nbytes,
                            (atomic_load(&device->impl), image, source->bytes, source->nbytes, out));
}

static gg_status module_new(struct gg_device *device, struct gg_image *image,
                            struct gg_module_impl *impl, gg_module **out)
{
    gg_module *module = calloc(1, sizeof *module);
    gg_status status =
        module ? GG_OK : ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a module handle");
    if (!status)
        status = gg_memory_wrap(device, GG_MEMORY_DEVICE, module, 1, module_destroy, module,
                                &module->code);
    if (status) {
        free(module);
        return status;
    }
    module->code->retired.may_wait = true; /* unloading may wait for the device */
    atomic_init(&module->refs, 1);
    module->device = device;
    module->impl = impl;
    module->image = image;
    pthread_mutex_init(&module->lock, NULL);
    *out = module;
    return GG_OK;
}

/* The source's image becomes the module's, or is freed. */
static gg_status module_load(struct gg_device *device, const struct module_source *source,
                             gg_module **out)
{
    struct gg_module_impl *impl = NULL;
    gg_status status = module_driver_load(device, source, &impl);
    if (!status) {
        status = module_new(device, source->image, impl, out);
        if (status)
            device->ops->module_unload(impl);
    }
    if (status)
        gg_image_free(source->image);
    return status;
}

static gg_status module_begin(struct gg_device *device)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (!gg_device_supports(device, GG_OP_module_load))
        return ggi_unsupported(device, GG_OP_module_load);
    ggi_drain(device);
    return GG_OK;
}

gg_status gg_module_load(gg_device *device, const void *bytes, size_t nbytes, gg_module **out)
{
    struct ggi_bytes whole = {bytes, nbytes};
    void *copy = NULL;
    struct module_source source = {0};
    gg_status status = module_begin(device);
    if (!status)
        status = ggi_image_complete(&whole, &copy);
    if (!status)
        status = gg_image_read(whole.at, whole.size, &source.image);
    source.bytes = whole.at;
    source.nbytes = whole.size;
    if (!status)
        status = module_load(device, &source, out);
    free(copy);
    return status;
}

gg_status gg_module_load_with(gg_device *device, const void *bytes, size_t nbytes,
                              const struct gg_module_options *options, gg_module **out)
{
    struct gg_module_options full = {0};
    struct module_source source = {.bytes = bytes, .nbytes = nbytes, .options = &full};
    gg_status status = ggi_module_options_copy(options, &full);
    if (!status && ggi_module_options_empty(&full))
        return gg_module_load(device, bytes, nbytes, out);
    if (!status)
        status = module_begin(device);
    if (!status)
        status = ggi_module_options_read(device, &full, bytes, nbytes, &source.image);
    return status ? status : module_load(device, &source, out);
}

gg_status gg_module_binary(gg_module *module, void *binary, size_t *nbytes)
{
    struct gg_device *device = module->device;
    const size_t room = *nbytes;
    size_t size = 0;
    gg_status status = ggi_device_check(device);
    if (!status)
        status = GGI_CALL_OPTIONAL(device, module_binary, NULL, 0, (module->impl, NULL, &size));
    if (!status && binary && room < size)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_module_binary: room for %zu bytes: expected %zu or more", room, size);
    if (!status && binary)
        status = GGI_CALL_OPTIONAL(device, module_binary, NULL, size, (module->impl, binary, &size));
    if (!status)
        *nbytes = size;
    return status;
}

/* ---- variables ---- */

/* The variable's memory is released. */
static void global_destroy(void *owner)
{
    struct ggi_global *global = owner;
    gg_module *module = global->module;
    pthread_mutex_lock(&module->lock);
    *global->link = global->next;
    if (global->next)
        global->next->link = global->link;
    pthread_mutex_unlock(&module->lock);
    free(global->name);
    free(global);
    gg_module_release(module);
}

/* With the lock held. Launches in flight may use the variable, so its memory inherits their uses. */
static void global_inherit_uses(gg_memory *memory, gg_memory *code)
{
    pthread_mutex_lock(&code->lock);
    for (uint32_t i = 0; i < code->use_count; i++) {
        const struct ggi_use use = ggi_memory_use(code, i);
        ggi_memory_used(memory, use.stream, use.ticket);
    }
    pthread_mutex_unlock(&code->lock);
}

/* With the lock held: a reference to the memory of that name, if it is still alive. */
static gg_memory *global_find(gg_module *module, const char *name)
{
    for (struct ggi_global *at = atomic_load(&module->globals); at; at = at->next)
        if (!strcmp(at->name, name) && ggi_refs_try_retain(&at->memory->refs))
            return at->memory;
    return NULL;
}

static gg_status global_new(gg_module *module, const char *name, void *pointer, size_t nbytes,
                            gg_memory **out)
{
    struct ggi_global *global = calloc(1, sizeof *global);
    char *copy = strdup(name);
    gg_status status =
        global && copy ? GG_OK
                       : ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a variable's handle");
    if (!status)
        status = gg_memory_wrap(module->device, GG_MEMORY_DEVICE, pointer, nbytes, global_destroy,
                                global, &global->memory);
    if (status) {
        free(global);
        free(copy);
        return status;
    }
    struct ggi_global *first = atomic_load(&module->globals);
    gg_module_retain(module);
    global->module = module;
    global->name = copy;
    global->next = first;
    global->link = (struct ggi_global **)(void *)&module->globals;
    if (first)
        first->link = &global->next;
    atomic_store(&module->globals, global);
    global_inherit_uses(global->memory, module->code);
    *out = global->memory;
    return GG_OK;
}

gg_status gg_module_global(gg_module *module, const char *name, gg_memory **out)
{
    struct gg_device *device = module->device;
    void *pointer = NULL;
    size_t nbytes = 0;
    gg_status status = ggi_device_check(device);
    if (status)
        return status;
    status =
        GGI_CALL_OPTIONAL(device, module_global, NULL, 0, (module->impl, name, &pointer, &nbytes));
    if (status == GG_NOT_READY || (!status && !pointer))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "%s:%d: the module has no variable \"%.200s\": expected the name of a "
                        "variable in device memory that the compiler kept; C++ names are mangled, "
                        "so declare it extern \"C\"",
                        device->backend->name, (int)device->ordinal, name);
    if (status)
        return status;
    pthread_mutex_lock(&module->lock);
    *out = global_find(module, name);
    if (!*out)
        status = global_new(module, name, pointer, nbytes, out);
    pthread_mutex_unlock(&module->lock);
    return status;
}

gg_status ggi_module_wait_uses(gg_module *module, gg_stream *stream)
{
    gg_status status = GG_OK;
    if (!atomic_load_explicit(&module->globals, memory_order_acquire))
        return GG_OK;
    pthread_mutex_lock(&module->lock);
    for (struct ggi_global *at = atomic_load(&module->globals); at && !status; at = at->next)
        status = ggi_memory_wait_uses(at->memory, stream);
    pthread_mutex_unlock(&module->lock);
    return status;
}

void ggi_module_note_globals(gg_module *module, gg_stream *stream, uint64_t ticket, bool captured)
{
    pthread_mutex_lock(&module->lock);
    for (struct ggi_global *at = atomic_load(&module->globals); at; at = at->next)
        if (atomic_load(&at->memory->refs) > 0)
            ggi_memory_note_use(at->memory, stream, ticket, captured);
    pthread_mutex_unlock(&module->lock);
}
