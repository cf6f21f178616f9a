/* sim_ze_ipc.c: Level Zero: device memory shared between processes. A handle has a file descriptor, as in
 * intel/compute-runtime (IpcMemoryData, IpcOpaqueMemoryData): the old driver expects one of the importing process, the new one
 * has the exporter's process in the handle and fetches the file itself. The file contains the engine's handle. */
#include "sim_ipc.h"
#include "sim_ze.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ENGINE_HANDLE = 64, EXPORTS = 4096 };

struct __attribute__((packed)) driver_handle {
    uint64_t file, pool_offset;
    uint32_t process; /* the new driver's */
    uint8_t type, memory_type;
};

static struct {
    uint64_t address; /* 0: unused */
    int file;
    unsigned references;
} exports[EXPORTS];

static int write_file(const char *handle)
{
    const int file = memfd_create("gpuglue sim", MFD_CLOEXEC);
    if (file >= 0 && write(file, handle, ENGINE_HANDLE) == ENGINE_HANDLE)
        return file;
    if (file >= 0)
        close(file);
    return -1;
}

/* The old driver makes another file at each call. */
static int export_file(uint64_t address, int *file)
{
    char handle[ENGINE_HANDLE];
    int place = -1;
    for (int i = 0; i < EXPORTS; i++) {
        if (SIM_ZE_SINCE(6) && exports[i].address == address) {
            exports[i].references++;
            *file = exports[i].file;
            return SIM_OK;
        }
        if (!exports[i].address && place < 0)
            place = i;
    }
    const int status = sim_ipc_export(address, handle);
    if (status || place < 0)
        return status ? status : (int)SIM_NO_MEMORY;
    *file = write_file(handle);
    if (*file < 0)
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    exports[place].address = address;
    exports[place].file = *file;
    exports[place].references = 1;
    return SIM_OK;
}

static void drop(int place)
{
    close(exports[place].file);
    exports[place].address = 0;
}

/* A handle ends with its memory. */
void ze_ipc_forget(uint64_t address)
{
    for (int i = 0; i < EXPORTS; i++)
        if (exports[i].address == address)
            drop(i);
}

ze_result_t zeMemGetIpcHandle(ze_context_handle_t hContext, const void *ptr,
                              ze_ipc_mem_handle_t *pIpcHandle)
{
    struct sim_context *context;
    struct driver_handle made = {0};
    int file = -1;
    const ze_result_t result = ze_enter_context("zeMemGetIpcHandle", hContext, &context);
    if (result)
        return result;
    if (!pIpcHandle)
        return ze_leave(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    const int status = export_file((uintptr_t)ptr, &file);
    if (status)
        return ze_leave(status);
    made.file = (uint64_t)file;
    made.process = SIM_ZE_SINCE(7) ? (uint32_t)getpid() : 0;
    memcpy(pIpcHandle->data, &made, SIM_ZE_SINCE(7) ? sizeof made : 17);
    return ze_leave(SIM_OK);
}

ze_result_t sim_zeMemPutIpcHandle(ze_context_handle_t hContext, ze_ipc_mem_handle_t handle)
{
    struct sim_context *context;
    struct driver_handle given;
    const ze_result_t result = ze_enter_context("zeMemPutIpcHandle", hContext, &context);
    if (result)
        return result;
    if (!SIM_ZE_SINCE(6))
        return ze_leave(SIM_UNSUPPORTED);
    memcpy(&given, handle.data, sizeof given);
    for (int i = 0; i < EXPORTS; i++)
        if (exports[i].address && exports[i].file == (int)given.file && !--exports[i].references)
            drop(i);
    return ze_leave(SIM_OK);
}

/* The engine's handle that the file contains. */
static bool read_file(const struct driver_handle *given, char *handle)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", given->process ? (int)given->process : getpid(),
             (int)given->file);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const bool whole = file >= 0 && pread(file, handle, ENGINE_HANDLE, 0) == ENGINE_HANDLE;
    if (file >= 0)
        close(file);
    return whole;
}

ze_result_t zeMemOpenIpcHandle(ze_context_handle_t hContext, ze_device_handle_t hDevice,
                               ze_ipc_mem_handle_t handle, ze_ipc_memory_flags_t flags, void **pptr)
{
    struct sim_context *context;
    struct driver_handle given;
    char engine[ENGINE_HANDLE];
    uint64_t address = 0;
    const ze_result_t result = ze_enter_context("zeMemOpenIpcHandle", hContext, &context);
    if (result)
        return result;
    const struct sim_device *device = ze_device(hDevice);
    memcpy(&given, handle.data, sizeof given);
    given.process = SIM_ZE_SINCE(7) ? given.process : 0;
    if (!device || !pptr || flags || !read_file(&given, engine))
        return ze_leave(SIM_INVALID);
    const int status = sim_ipc_open(device->primary, engine, &address);
    if (status)
        return ze_leave(SIM_INVALID);
    *pptr = (void *)(uintptr_t)address;
    return ze_leave(SIM_OK);
}

/* As a free, it does not wait. */
ze_result_t zeMemCloseIpcHandle(ze_context_handle_t hContext, const void *ptr)
{
    struct sim_context *context;
    ze_attempt_free(ptr);
    const ze_result_t result = ze_enter_context("zeMemCloseIpcHandle", hContext, &context);
    if (result)
        return result;
    sim_command_wait_lost();
    struct sim_alloc *alloc = sim_memory_find((uintptr_t)ptr);
    if (!alloc || !alloc->imported || alloc->imported != (uintptr_t)ptr)
        return ze_leave(SIM_INVALID);
    sim_memory_release(alloc);
    return ze_leave(SIM_OK);
}
