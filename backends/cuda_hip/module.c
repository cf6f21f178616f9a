/* module.c: modules and their kernels. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_SIZE 2048
enum { JIT_ERROR_LOG = 5, JIT_ERROR_LOG_SIZE = 6 }; /* the same for both */

/* ---- loading ---- */

/* The driver expects PTX to end with a NUL, which @p bytes may lack. */
static char *ptx_with_nul(const struct gg_image *image, const void *bytes, size_t nbytes)
{
    char *copy = image->format == GG_IMAGE_PTX ? malloc(nbytes + 1) : NULL;
    if (copy) {
        memcpy(copy, bytes, nbytes);
        copy[nbytes] = 0;
    }
    return copy;
}

static int module_load_image(const void *image, char *log, void **out)
{
    int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_SIZE};
    void *values[] = {log, (void *)(uintptr_t)LOG_SIZE};
    return cuhip_driver.module_load(out, image, 2, options, values);
}

static gg_status module_load(struct gg_module_impl *module, const void *image, size_t nbytes)
{
    char log[LOG_SIZE] = "";
    const int code = CUHIP_IN_CONTEXT(module_load, module->device, NULL,
                                      module_load_image(image, log, &module->native));
    log[LOG_SIZE - 1] = 0;
    log[strcspn(log, "\n")] = log[0] ? ' ' : 0;
    return code ? cuhip_fail(code, "an image of %zu bytes%s%.300s", nbytes, log[0] ? ": " : "", log)
                : GG_OK;
}

gg_status cuhip_module_load(struct gg_device_impl *device, const struct gg_image *image,
                            const void *bytes, size_t nbytes, struct gg_module_impl **out)
{
    if (!cuhip_driver.module_load || !cuhip_driver.module_unload || !cuhip_driver.module_function)
        return cuhip_missing(offsetof(struct cuhip_driver, module_load));
    gg_status status = cuhip_check_image(device, image);
    if (!status && image->format == GG_IMAGE_BUNDLE && cuhip.check_bundle)
        status = cuhip.check_bundle(bytes);
    if (status)
        return status;
    char *text = ptx_with_nul(image, bytes, nbytes);
    struct gg_module_impl *module = calloc(1, sizeof *module);
    if (!module || (image->format == GG_IMAGE_PTX && !text)) {
        status = cuhip_no_memory(nbytes, "a module");
    } else {
        module->device = device;
        pthread_mutex_init(&module->lock, NULL);
        status = module_load(module, text ? text : bytes, nbytes);
    }
    free(text);
    if (status)
        free(module);
    else
        *out = module;
    return status;
}

void cuhip_module_unload(struct gg_module_impl *module)
{
    struct gg_kernel_impl *next;
    const int code = CUHIP_RELEASE(module_unload, module->device, NULL,
                                   cuhip_driver.module_unload(module->native));
    cuhip_log_failure(code, "unloading a module");
    for (struct gg_kernel_impl *kernel = module->kernels; kernel; kernel = next) {
        next = kernel->next;
        free(kernel);
    }
    pthread_mutex_destroy(&module->lock);
    free(module);
}

/* ---- names ---- */

gg_status cuhip_module_global(struct gg_module_impl *module, const char *name, void **pointer,
                              size_t *nbytes)
{
    if (!cuhip_driver.module_global)
        return cuhip_missing(offsetof(struct cuhip_driver, module_global));
    const int code =
        CUHIP_IN_CONTEXT(module_global, module->device, NULL,
                         cuhip_driver.module_global(pointer, nbytes, module->native, name));
    if (code == cuhip.not_found) {
        cuhip_clear_error(code);
        return GG_NOT_READY;
    }
    return code ? cuhip_fail(code, "the variable %.200s", name) : GG_OK;
}

static struct gg_kernel_impl *kernel_find(struct gg_module_impl *module, const char *name)
{
    for (struct gg_kernel_impl *kernel = module->kernels; kernel; kernel = kernel->next)
        if (!strcmp(kernel->name, name))
            return kernel;
    return NULL;
}

/* With the lock held. */
static gg_status kernel_new(struct gg_module_impl *module, const char *name,
                            struct gg_kernel_impl **out)
{
    void *function = NULL;
    const size_t size = strlen(name) + 1;
    const int code = CUHIP_IN_CONTEXT(module_function, module->device, NULL,
                                      cuhip_driver.module_function(&function, module->native, name));
    if (code == cuhip.not_found) {
        cuhip_clear_error(code);
        return GG_NOT_READY;
    }
    if (code)
        return cuhip_fail(code, "the kernel %.200s", name);
    struct gg_kernel_impl *kernel = malloc(sizeof *kernel + size);
    if (!kernel)
        return cuhip_no_memory(sizeof *kernel + size, "a kernel");
    kernel->module = module;
    kernel->function = function;
    memcpy(kernel->name, name, size);
    kernel->next = module->kernels;
    *out = module->kernels = kernel;
    return GG_OK;
}

gg_status cuhip_module_kernel(struct gg_module_impl *module, const char *name,
                              struct gg_kernel_impl **out)
{
    gg_status status = GG_OK;
    pthread_mutex_lock(&module->lock);
    struct gg_kernel_impl *kernel = kernel_find(module, name);
    if (kernel)
        *out = kernel;
    else
        status = kernel_new(module, name, out);
    pthread_mutex_unlock(&module->lock);
    return status;
}

gg_status cuhip_module_names(struct gg_module_impl *module,
                             void (*each)(void *user, const char *name), void *user)
{
    if (!cuhip.names)
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL, "this driver does not report names");
    const int code = CUHIP_IN_CONTEXT(module_function, module->device, NULL,
                                      cuhip.names(module->native, each, user));
    return code ? cuhip_fail(code, "the names of a module's kernels") : GG_OK;
}
