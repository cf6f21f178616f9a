/* ipc.c: device memory that is shared between processes. */
#include "driver.h"

#include <string.h>

_Static_assert(sizeof(struct cuhip_ipc) == GG_IPC_NATIVE_SIZE, "the size of a handle");

gg_status cuhip_ipc_export(struct gg_device_impl *device, const void *pointer,
                           uint8_t native[GG_IPC_NATIVE_SIZE])
{
    struct cuhip_ipc handle = {0}; /* a driver may leave the last bytes as they are */
    if (!cuhip_driver.ipc_export)
        return cuhip_missing(offsetof(struct cuhip_driver, ipc_export));
    const int code = CUHIP_IN_CONTEXT(ipc_export, device, NULL,
                                      cuhip_driver.ipc_export(&handle, (void *)(uintptr_t)pointer));
    if (code)
        return cuhip_fail(code, "a handle for other processes to the memory at %p", pointer);
    memcpy(native, &handle, sizeof handle);
    return GG_OK;
}

gg_status cuhip_ipc_open(struct gg_device_impl *device, const uint8_t native[GG_IPC_NATIVE_SIZE],
                         void **out)
{
    struct cuhip_ipc handle;
    void *pointer = NULL;
    if (!cuhip_driver.ipc_open || !cuhip_driver.ipc_close)
        return cuhip_missing(offsetof(struct cuhip_driver, ipc_open));
    memcpy(&handle, native, sizeof handle);
    const int code = CUHIP_IN_CONTEXT(ipc_open, device, NULL,
                                      cuhip_driver.ipc_open(&pointer, handle, cuhip.ipc_flags()));
    if (code)
        return cuhip_fail(
            code, "opening memory of another process: the process and its memory must still exist");
    *out = pointer;
    return GG_OK;
}

gg_status cuhip_ipc_close(struct gg_device_impl *device, void *pointer)
{
    const int code = CUHIP_RELEASE(ipc_close, device, NULL, cuhip_driver.ipc_close(pointer));
    return code ? cuhip_fail(code, "closing memory of another process at %p", pointer) : GG_OK;
}
