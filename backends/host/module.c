/* module.c: modules: an image for the host is a shared object that exports a table of its kernels
 * (gpuglue/host_kernel.h). It is loaded from memory, so that no file remains. */
#include "host.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define NESTED "_ZN" /* begins the symbol of a name in a namespace */
#define USER_SPACE "7gg_user"

struct gg_module_impl {
    struct gg_device_impl *device;
    void *handle;
    int file; /* open as long as the handle: the loader identifies the object by its number */
    const struct gg_host_kernels *table;
    struct gg_kernel_impl *kernels; /* as many as in the table */
    pthread_mutex_t lock;
    void **globals; /* variables that are listed as device memory */
    size_t global_count;
};

int32_t host_module_ordinal(const struct gg_module_impl *module)
{
    return module->device->ordinal;
}

static gg_status image_check(const struct gg_image *image)
{
    struct utsname machine = {0};
    uname(&machine);
    if (image->format == GG_IMAGE_SHARED_OBJECT && !strcmp(image->arch, machine.machine))
        return GG_OK;
    return host_api->fail(
        GG_ERR_INVALID_ARGUMENT, NULL,
        "the image is %s for %s, this device is %s: it needs a shared object for %s", image->word,
        image->arch[0] ? image->arch : "another architecture", machine.machine, machine.machine);
}

/* ---- opening ---- */

static bool file_write(int file, const char *bytes, size_t nbytes)
{
    while (nbytes) {
        ssize_t written = write(file, bytes, nbytes);
        if (written <= 0)
            return false;
        bytes += written;
        nbytes -= (size_t)written;
    }
    return true;
}

/* The loader identifies a library by its path. A library that cannot be unloaded (with symbols that are unique
 * in the process) stays loaded after its file number was reused. So no path is used twice: a serial number is
 * encoded in it, one redundant path component per bit. */
static void file_unique_path(int file, char *out, size_t size)
{
    static atomic_uint last;
    unsigned serial = atomic_fetch_add(&last, 1) + 1;
    size_t used = (size_t)snprintf(out, size, "/proc/self/fd");
    for (; serial; serial >>= 1)
        used += (size_t)snprintf(out + used, size - used, serial & 1 ? "//." : "/.");
    snprintf(out + used, size - used, "/%d", file);
}

static gg_status module_open(struct gg_module_impl *module, const void *bytes, size_t nbytes)
{
    char path[256];
    module->file =
        (int)syscall(SYS_memfd_create, "gpuglue-module", MFD_CLOEXEC); /* glibc has it since 2.27 */
    if (module->file < 0)
        return host_api->fail(GG_ERR_DEVICE, NULL,
                              "cannot create a file in memory for the image: %s", strerror(errno));
    if (!file_write(module->file, bytes, nbytes))
        return host_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for an image of %zu bytes",
                              nbytes);
    file_unique_path(module->file, path, sizeof path);
    module->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module->handle)
        return host_api->fail(GG_ERR_INVALID_ARGUMENT, NULL, "the shared object: %s", dlerror());
    return GG_OK;
}

static gg_status module_check_table(struct gg_module_impl *module)
{
    const struct gg_host_kernels *table = dlsym(module->handle, "gg_host_kernels");
    Dl_info info;
    if (!table || !dladdr(table, &info))
        return host_api->fail(
            GG_ERR_INVALID_ARGUMENT, NULL,
            "the shared object has no table gg_host_kernels: gpuglue.compile generates it from "
            "CUDA source, and gpuglue/host_kernel.h documents it");
    if (table->magic != GG_HOST_KERNELS_MAGIC || table->abi != GG_HOST_KERNELS_ABI)
        return host_api->fail(
            GG_ERR_INVALID_ARGUMENT, NULL,
            "the shared object's table of kernels has ABI %u, expected %u: compile it again",
            table->abi, GG_HOST_KERNELS_ABI);
    module->table = table;
    module->kernels = calloc(table->count ? table->count : 1, sizeof *module->kernels);
    if (!module->kernels)
        return host_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for a module");
    for (size_t i = 0; i < table->count; i++)
        module->kernels[i] = (struct gg_kernel_impl){module, table->kernels[i]};
    return GG_OK;
}

gg_status host_module_load(struct gg_device_impl *device, const struct gg_image *image,
                           const void *bytes, size_t nbytes, struct gg_module_impl **out)
{
    gg_status status = image_check(image);
    if (status)
        return status;
    struct gg_module_impl *module = calloc(1, sizeof *module);
    if (!module)
        return host_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for a module");
    module->device = device;
    pthread_mutex_init(&module->lock, NULL);
    status = module_open(module, bytes, nbytes);
    if (!status)
        status = module_check_table(module);
    if (status)
        host_module_unload(module);
    else
        *out = module;
    return status;
}

void host_module_unload(struct gg_module_impl *module)
{
    for (size_t i = 0; i < module->global_count; i++)
        host_block_remove_global(module->device, module->globals[i]);
    if (module->handle)
        dlclose(module->handle);
    if (module->file >= 0)
        close(module->file);
    pthread_mutex_destroy(&module->lock);
    free(module->globals);
    free(module->kernels);
    free(module);
}

/* ---- variables ---- */

/* With the lock held. */
static bool module_register_global(struct gg_module_impl *module, void *pointer, size_t nbytes)
{
    for (size_t i = 0; i < module->global_count; i++)
        if (module->globals[i] == pointer)
            return true;
    void **globals = realloc(module->globals, (module->global_count + 1) * sizeof *globals);
    if (!globals)
        return false;
    module->globals = globals;
    if (!host_block_add_global(module->device, pointer, nbytes))
        return false;
    globals[module->global_count++] = pointer;
    return true;
}

/* gpuglue.compile puts the source into a namespace, so the symbol of `x` is _ZN7gg_user1xE, and _ZN1a1xE is
 * _ZN7gg_user1a1xE. NULL without memory. */
static char *module_global_symbol(const char *name)
{
    const bool nested = !strncmp(name, NESTED, strlen(NESTED));
    char *symbol = NULL;
    int size = nested ? asprintf(&symbol, NESTED USER_SPACE "%s", name + strlen(NESTED))
                      : asprintf(&symbol, NESTED USER_SPACE "%zu%sE", strlen(name), name);
    return size < 0 ? NULL : symbol;
}

static void *module_find(struct gg_module_impl *module, const char *name)
{
    char *symbol = module_global_symbol(name);
    void *found = symbol ? dlsym(module->handle, symbol) : NULL;
    free(symbol);
    return found ? found : dlsym(module->handle, name);
}

gg_status host_module_global(struct gg_module_impl *module, const char *name, void **pointer,
                             size_t *nbytes)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *found = module_find(module, name);
    /* of this object, not of a library that it is linked to; and not a function */
    if (!found || !dladdr1(found, &info, (void **)(uintptr_t)&symbol, RTLD_DL_SYMENT) || !symbol ||
        info.dli_saddr != found || ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || !symbol->st_size)
        return GG_NOT_READY;
    Dl_info own;
    if (!dladdr(module->table, &own) || own.dli_fbase != info.dli_fbase)
        return GG_NOT_READY;
    pthread_mutex_lock(&module->lock);
    const bool registered = module_register_global(module, found, symbol->st_size);
    pthread_mutex_unlock(&module->lock);
    if (!registered)
        return host_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory to list the variable");
    *pointer = found;
    *nbytes = symbol->st_size;
    return GG_OK;
}

/* ---- kernels ---- */

gg_status host_module_kernel(struct gg_module_impl *module, const char *name,
                             struct gg_kernel_impl **out)
{
    for (size_t i = 0; i < module->table->count; i++)
        if (!strcmp(module->table->kernels[i]->name, name)) {
            *out = &module->kernels[i];
            return GG_OK;
        }
    return GG_NOT_READY;
}

gg_status host_module_names(struct gg_module_impl *module,
                            void (*each)(void *user, const char *name), void *user)
{
    for (size_t i = 0; i < module->table->count; i++)
        each(user, module->table->kernels[i]->name);
    return GG_OK;
}

gg_status host_kernel_parameter(struct gg_kernel_impl *kernel, uint32_t index,
                                struct gg_parameter *parameter)
{
    if (kernel->entry->parameter_count < 0)
        return host_api->fail(GG_ERR_UNSUPPORTED, NULL, "%s does not describe its parameters",
                              kernel->entry->name);
    if (index >= (uint32_t)kernel->entry->parameter_count)
        return GG_NOT_READY;
    *parameter = kernel->entry->parameters[index];
    return GG_OK;
}
