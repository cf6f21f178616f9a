/* module.c: modules of the drivers, and their functions. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_SIZE 2048
enum { JIT_ERROR_LOG = 5, JIT_ERROR_LOG_SIZE = 6 }; /* the same for both */

/* ---- loading ---- */

/* PTX ends where its NUL is, which bytes need not have. */
static char *with_nul(const struct gg_image *image, const void *bytes, size_t nbytes)
{
    char *copy = image->format == GG_IMAGE_PTX ? malloc(nbytes + 1) : NULL;
    if (copy) {
        memcpy(copy, bytes, nbytes);
        copy[nbytes] = 0;
    }
    return copy;
}

static int driver_load(const void *image, char *log, void **out)
{
    int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_SIZE};
    void *values[] = {log, (void *)(uintptr_t)LOG_SIZE};
    return twin_driver.module_load(out, image, 2, options, values);
}

static gg_status load(struct gg_module_impl *module, const void *image, size_t nbytes)
{
    char log[LOG_SIZE] = "";
    struct twin_guard guard;
    int code = twin_enter(&guard, TWIN_AT_module_load, module->device, NULL);
    if (!code)
        code = driver_load(image, log, &module->native);
    twin_leave(&guard);
    log[LOG_SIZE - 1] = 0;
    log[strcspn(log, "\n")] = log[0] ? ' ' : 0;
    return code ? twin_fail(code, "an image of %zu bytes%s%.300s", nbytes, log[0] ? ": " : "", log)
                : GG_OK;
}

gg_status twin_module_load(struct gg_device_impl *device, const struct gg_image *image,
                           const void *bytes, size_t nbytes, struct gg_module_impl **out)
{
    if (!twin_driver.module_load || !twin_driver.module_unload || !twin_driver.module_function)
        return twin_missing(offsetof(struct twin_driver, module_load));
    gg_status status = twin_image_fits(device, image);
    if (status)
        return status;
    char *text = with_nul(image, bytes, nbytes);
    struct gg_module_impl *module = calloc(1, sizeof *module);
    if (!module || (image->format == GG_IMAGE_PTX && !text)) {
        status = twin_no_memory(nbytes, "a module");
    } else {
        module->device = device;
        pthread_mutex_init(&module->lock, NULL);
        status = load(module, text ? text : bytes, nbytes);
    }
    free(text);
    if (status)
        free(module);
    else
        *out = module;
    return status;
}

void twin_module_unload(struct gg_module_impl *module)
{
    struct gg_kernel_impl *next;
    struct twin_guard guard;
    /* Unloaded even where the context cannot be entered: the handle says what it belongs to. */
    twin_forget(twin_enter(&guard, TWIN_AT_module_unload, module->device, NULL),
                "entering a context to unload a module");
    const int code = twin_driver.module_unload(module->native);
    twin_leave(&guard);
    if (code)
        twin_forget(code, "unloading a module");
    for (struct gg_kernel_impl *kernel = module->kernels; kernel; kernel = next) {
        next = kernel->next;
        free(kernel);
    }
    pthread_mutex_destroy(&module->lock);
    free(module);
}

/* ---- names ---- */

gg_status twin_module_global(struct gg_module_impl *module, const char *name, void **pointer,
                             size_t *nbytes)
{
    struct twin_guard guard;
    if (!twin_driver.module_global)
        return twin_missing(offsetof(struct twin_driver, module_global));
    int code = twin_enter(&guard, TWIN_AT_module_global, module->device, NULL);
    if (!code)
        code = twin_driver.module_global(pointer, nbytes, module->native, name);
    twin_leave(&guard);
    if (code == twin.not_found) {
        twin_clear(code);
        return GG_NOT_READY;
    }
    return code ? twin_fail(code, "the variable %.200s", name) : GG_OK;
}

static struct gg_kernel_impl *find_kernel(struct gg_module_impl *module, const char *name)
{
    for (struct gg_kernel_impl *kernel = module->kernels; kernel; kernel = kernel->next)
        if (!strcmp(kernel->name, name))
            return kernel;
    return NULL;
}

/* With the lock held. */
static gg_status new_kernel(struct gg_module_impl *module, const char *name,
                            struct gg_kernel_impl **out)
{
    struct twin_guard guard;
    void *function = NULL;
    const size_t size = strlen(name) + 1;
    int code = twin_enter(&guard, TWIN_AT_module_function, module->device, NULL);
    if (!code)
        code = twin_driver.module_function(&function, module->native, name);
    twin_leave(&guard);
    if (code == twin.not_found) {
        twin_clear(code);
        return GG_NOT_READY;
    }
    if (code)
        return twin_fail(code, "the kernel %.200s", name);
    struct gg_kernel_impl *kernel = malloc(sizeof *kernel + size);
    if (!kernel)
        return twin_no_memory(sizeof *kernel + size, "a kernel");
    kernel->module = module;
    kernel->function = function;
    memcpy(kernel->name, name, size);
    kernel->next = module->kernels;
    *out = module->kernels = kernel;
    return GG_OK;
}

gg_status twin_module_kernel(struct gg_module_impl *module, const char *name,
                             struct gg_kernel_impl **out)
{
    gg_status status = GG_OK;
    pthread_mutex_lock(&module->lock);
    struct gg_kernel_impl *kernel = find_kernel(module, name);
    if (kernel)
        *out = kernel;
    else
        status = new_kernel(module, name, out);
    pthread_mutex_unlock(&module->lock);
    return status;
}

gg_status twin_module_names(struct gg_module_impl *module,
                            void (*each)(void *user, const char *name), void *user)
{
    struct twin_guard guard;
    if (!twin.names)
        return twin_host->fail(GG_ERR_UNSUPPORTED, NULL, "this driver does not tell names");
    int code = twin_enter(&guard, TWIN_AT_module_function, module->device, NULL);
    if (!code)
        code = twin.names(module->native, each, user);
    twin_leave(&guard);
    return code ? twin_fail(code, "the names of a module's kernels") : GG_OK;
}
