/* ipc.c: device memory of one process in another. */
#include "driver.h"

#include <string.h>

_Static_assert(sizeof(struct twin_ipc) == GG_IPC_NATIVE_SIZE, "the size of a handle");

gg_status twin_ipc_export(struct gg_device_impl *device, const void *pointer,
                          uint8_t native[GG_IPC_NATIVE_SIZE])
{
    struct twin_guard guard;
    struct twin_ipc handle;
    if (!twin_driver.ipc_export)
        return twin_missing(offsetof(struct twin_driver, ipc_export));
    int code = twin_enter(&guard, TWIN_AT_ipc_export, device, NULL);
    if (!code)
        code = twin_driver.ipc_export(&handle, (void *)(uintptr_t)pointer);
    twin_leave(&guard);
    if (code)
        return twin_fail(code, "a handle for other processes to the memory at %p", pointer);
    memcpy(native, &handle, sizeof handle);
    return GG_OK;
}

gg_status twin_ipc_open(struct gg_device_impl *device, const uint8_t native[GG_IPC_NATIVE_SIZE],
                        void **out)
{
    struct twin_guard guard;
    struct twin_ipc handle;
    void *pointer = NULL;
    if (!twin_driver.ipc_open || !twin_driver.ipc_close)
        return twin_missing(offsetof(struct twin_driver, ipc_open));
    memcpy(&handle, native, sizeof handle);
    int code = twin_enter(&guard, TWIN_AT_ipc_open, device, NULL);
    if (!code)
        code = twin_driver.ipc_open(&pointer, handle, twin.ipc_flags);
    twin_leave(&guard);
    if (code)
        return twin_fail(code, "opening memory of another process; is it alive, and its memory?");
    *out = pointer;
    return GG_OK;
}

gg_status twin_ipc_close(struct gg_device_impl *device, void *pointer)
{
    struct twin_guard guard;
    twin_forget(twin_enter(&guard, TWIN_AT_ipc_close, device, NULL),
                "entering a context to close memory of another process");
    const int code = twin_driver.ipc_close(pointer);
    twin_leave(&guard);
    if (!code || twin_is_gone(code))
        return GG_OK;
    return twin_fail(code, "closing memory of another process at %p", pointer);
}
