/* import.c: registered host memory, by functions that Intel's driver exports beside the specification. */
#include "ze.h"

/* The address of a function that takes the driver's own handle; NULL: this driver has none. */
static void *import_find(const struct ze_driver *driver, const char *name)
{
    void *function = NULL;
    if (!ze.extension_function || ze.extension_function(driver->handle, name, &function))
        return NULL;
    return function;
}

/* A driver may export the functions and have the feature disabled. An address that was not imported is another error. */
static bool import_works(const struct ze_import *import)
{
    int byte = 0;
    void *base = NULL;
    return import->add && import->release && import->base &&
           !ze_is_unsupported(import->base(import->driver, &byte, &base));
}

void ze_import_init(struct ze_driver *driver)
{
    struct ze_import *import = &driver->imports;
    if (!ze.loader_translate ||
        ze.loader_translate(ZEL_HANDLE_DRIVER, driver->handle, &import->driver))
        return;
    *(void **)&import->add = import_find(driver, "zexDriverImportExternalPointer");
    *(void **)&import->release = import_find(driver, "zexDriverReleaseImportedPointer");
    *(void **)&import->base = import_find(driver, "zexDriverGetHostPointerBaseAddress");
    import->works = import_works(import);
}

static gg_status import_check(const struct ze_import *import, void *pointer)
{
    void *base = NULL;
    if (!import->works)
        return ze_api->fail(GG_ERR_UNSUPPORTED, NULL,
                            "this driver does not export zexDriverImportExternalPointer: use "
                            "pinned memory of gpuglue (alloc_pinned) instead");
    if (import->base(import->driver, pointer, &base))
        return GG_OK;
    return ze_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                        "other code of this process has already imported the memory at %p: "
                        "release that import first",
                        base);
}

/* The driver counts no imports: one of a range that is imported already would be released twice. A kernel reaches the
 * memory only as an argument of its own, at an address that may differ, so it is for copies only. */
gg_status ze_mem_register(struct gg_device_impl *device, void *pointer, size_t nbytes)
{
    const struct ze_import *import = &device->driver->imports;
    gg_status status = import_check(import, pointer);
    if (status)
        return status;
    const int code = import->add(import->driver, pointer, nbytes);
    return code ? ze_fail(code, "importing %zu bytes at %p", nbytes, pointer) : GG_NOT_READY;
}

gg_status ze_mem_unregister(struct gg_device_impl *device, void *pointer)
{
    const struct ze_import *import = &device->driver->imports;
    const int code = import->works ? import->release(import->driver, pointer) : 0;
    if (!code || ze_is_shut_down(code))
        return GG_OK;
    return ze_fail(code, "releasing the imported memory at %p", pointer);
}
