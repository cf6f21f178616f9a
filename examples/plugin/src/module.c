/* module.c: an image for the host is a shared object; its kernels stand in a table that it exports
 * (gpuglue/host_kernel.h). It is loaded out of memory, so that no file is left behind. */
#include "mine.h"

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

struct gg_module_impl {
    struct gg_device_impl *device;
    void *handle;
    int file; /* open as long as the handle: its number is the name by which the loader knows it */
    const struct gg_host_kernels *table;
    struct gg_kernel_impl *kernels; /* as many as in the table */
    pthread_mutex_t lock;
    void **lent; /* variables that were given out */
    size_t lent_count;
};

static gg_status refuse_image(const struct gg_image *image)
{
    struct utsname machine = {0};
    uname(&machine);
    return mine_api->fail(
        GG_ERR_INVALID_ARGUMENT, NULL,
        "the image is %s for %s, this device is %s: it takes a shared object for %s", image->word,
        image->arch[0] ? image->arch : "another architecture", machine.machine, machine.machine);
}

static bool is_ours(const struct gg_image *image)
{
    struct utsname machine = {0};
    uname(&machine);
    return image->format == GG_IMAGE_SHARED_OBJECT && !strcmp(image->arch, machine.machine);
}

/* ---- opening ---- */

static bool write_all(int file, const char *bytes, size_t nbytes)
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

/* The loader knows a library by its path, and a library that cannot be unloaded (with symbols that are unique
 * in the process) stays when its file's number serves another. So no path is used twice: a serial number
 * is written into it, a step that leads nowhere for each bit. */
static void unique_path(int file, char *out, size_t size)
{
    static atomic_uint last;
    unsigned serial = atomic_fetch_add(&last, 1) + 1;
    size_t used = (size_t)snprintf(out, size, "/proc/self/fd");
    for (; serial; serial >>= 1)
        used += (size_t)snprintf(out + used, size - used, serial & 1 ? "//." : "/.");
    snprintf(out + used, size - used, "/%d", file);
}

static gg_status open_object(struct gg_module_impl *module, const void *bytes, size_t nbytes)
{
    char path[256];
    module->file =
        (int)syscall(SYS_memfd_create, "gpuglue-module", MFD_CLOEXEC); /* glibc has it since 2.27 */
    if (module->file < 0)
        return mine_api->fail(GG_ERR_DEVICE, NULL, "no file in memory for the image: %s",
                              strerror(errno));
    if (!write_all(module->file, bytes, nbytes))
        return mine_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for an image of %zu bytes",
                              nbytes);
    unique_path(module->file, path, sizeof path);
    module->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module->handle)
        return mine_api->fail(GG_ERR_INVALID_ARGUMENT, NULL, "the shared object: %s", dlerror());
    return GG_OK;
}

static gg_status check_table(struct gg_module_impl *module)
{
    const struct gg_host_kernels *table = dlsym(module->handle, "gg_host_kernels");
    Dl_info info;
    if (!table || !dladdr(table, &info))
        return mine_api->fail(
            GG_ERR_INVALID_ARGUMENT, NULL,
            "the shared object has no table gg_host_kernels: gpuglue.compile makes "
            "one of CUDA source, gpuglue/host_kernel.h says how to write it");
    if (table->magic != GG_HOST_KERNELS_MAGIC || table->abi != GG_HOST_KERNELS_ABI)
        return mine_api->fail(
            GG_ERR_INVALID_ARGUMENT, NULL,
            "the shared object's table of kernels has ABI %u, this gpuglue has %u: "
            "compile it again",
            table->abi, GG_HOST_KERNELS_ABI);
    module->table = table;
    module->kernels = calloc(table->count ? table->count : 1, sizeof *module->kernels);
    if (!module->kernels)
        return mine_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for a module");
    for (size_t i = 0; i < table->count; i++)
        module->kernels[i] = (struct gg_kernel_impl){module, table->kernels[i]};
    return GG_OK;
}

gg_status mine_module_load(struct gg_device_impl *device, const struct gg_image *image,
                           const void *bytes, size_t nbytes, struct gg_module_impl **out)
{
    if (!is_ours(image))
        return refuse_image(image);
    struct gg_module_impl *module = calloc(1, sizeof *module);
    if (!module)
        return mine_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for a module");
    module->device = device;
    pthread_mutex_init(&module->lock, NULL);
    gg_status status = open_object(module, bytes, nbytes);
    if (!status)
        status = check_table(module);
    if (status)
        mine_module_unload(module);
    else
        *out = module;
    return status;
}

void mine_module_unload(struct gg_module_impl *module)
{
    for (size_t i = 0; i < module->lent_count; i++)
        mine_take_back(module->device, module->lent[i]);
    if (module->handle)
        dlclose(module->handle);
    if (module->file >= 0)
        close(module->file);
    pthread_mutex_destroy(&module->lock);
    free(module->lent);
    free(module->kernels);
    free(module);
}

/* ---- variables ---- */

/* With the lock held. */
static bool lend(struct gg_module_impl *module, void *pointer, size_t nbytes)
{
    for (size_t i = 0; i < module->lent_count; i++)
        if (module->lent[i] == pointer)
            return true;
    void **lent = realloc(module->lent, (module->lent_count + 1) * sizeof *lent);
    if (!lent)
        return false;
    module->lent = lent;
    if (!mine_lend(module->device, pointer, nbytes))
        return false;
    lent[module->lent_count++] = pointer;
    return true;
}

gg_status mine_module_global(struct gg_module_impl *module, const char *name, void **pointer,
                             size_t *nbytes)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *found = dlsym(module->handle, name);
    bool lent;
    /* of this object, not of one that it is linked to; and no function */
    if (!found || !dladdr1(found, &info, (void **)(uintptr_t)&symbol, RTLD_DL_SYMENT) || !symbol ||
        info.dli_saddr != found || (symbol->st_info & 15) != 1 || !symbol->st_size)
        return GG_NOT_READY;
    Dl_info own;
    if (!dladdr(module->table, &own) || own.dli_fbase != info.dli_fbase)
        return GG_NOT_READY;
    pthread_mutex_lock(&module->lock);
    lent = lend(module, found, symbol->st_size);
    pthread_mutex_unlock(&module->lock);
    if (!lent)
        return mine_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for the variable's note");
    *pointer = found;
    *nbytes = symbol->st_size;
    return GG_OK;
}

/* ---- kernels ---- */

gg_status mine_module_kernel(struct gg_module_impl *module, const char *name,
                             struct gg_kernel_impl **out)
{
    for (size_t i = 0; i < module->table->count; i++)
        if (!strcmp(module->table->kernels[i]->name, name)) {
            *out = &module->kernels[i];
            return GG_OK;
        }
    return GG_NOT_READY;
}

gg_status mine_module_names(struct gg_module_impl *module,
                            void (*each)(void *user, const char *name), void *user)
{
    for (size_t i = 0; i < module->table->count; i++)
        each(user, module->table->kernels[i]->name);
    return GG_OK;
}

gg_status mine_kernel_parameter(struct gg_kernel_impl *kernel, uint32_t index,
                                struct gg_parameter *parameter)
{
    if (kernel->told->parameter_count < 0)
        return mine_api->fail(GG_ERR_UNSUPPORTED, NULL, "%s does not tell its parameters",
                              kernel->told->name);
    if (index >= (uint32_t)kernel->told->parameter_count)
        return GG_NOT_READY;
    *parameter = kernel->told->parameters[index];
    return GG_OK;
}
