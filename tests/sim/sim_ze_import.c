/* sim_ze_import.c: Level Zero: host memory that the client imports, as DriverHandle::importExternalPointer and
 * HostPointerManager of intel/compute-runtime. Imports are not counted, and are unknown to zeMemGetAllocProperties. */
#include "sim_ze.h"

#include <string.h>

static struct sim_alloc *import_at(uint64_t address)
{
    struct sim_alloc *alloc = sim_memory_find(address);
    return alloc && alloc->kind == SIM_REGISTERED ? alloc : NULL;
}

static bool disabled(void)
{
    return !sim_setting("GPUGLUE_SIM_ZE_IMPORT", 1);
}

static int import(uint64_t address, size_t size)
{
    const struct sim_block block = {.size = size};
    if (disabled())
        return SIM_UNSUPPORTED;
    if (!size || !address)
        return SIM_INVALID;
    const struct sim_alloc *begin = import_at(address), *end = import_at(address + size - 1);
    if (begin && begin == end)
        return SIM_OK;
    if (begin)
        return end ? (int)ZE_RESULT_ERROR_OVERLAPPING_REGIONS
                   : (int)ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE;
    return end ? (int)ZE_RESULT_ERROR_INVALID_SIZE : sim_memory_register(address, &block);
}

ze_result_t zexDriverImportExternalPointer(ze_driver_handle_t driver, void *pointer, size_t size)
{
    const ze_result_t result = ze_enter_driver("zexDriverImportExternalPointer", driver);
    return result ? result : ze_leave(import((uintptr_t)pointer, size));
}

/* Any address in the import will do. It does not wait. */
ze_result_t zexDriverReleaseImportedPointer(ze_driver_handle_t driver, void *pointer)
{
    ze_attempt_free(pointer);
    const ze_result_t result = ze_enter_driver("zexDriverReleaseImportedPointer", driver);
    if (result)
        return result;
    sim_command_wait_lost();
    struct sim_alloc *alloc = import_at((uintptr_t)pointer);
    if (!alloc)
        return ze_leave(disabled() ? SIM_UNSUPPORTED : SIM_INVALID);
    sim_memory_release(alloc);
    return ze_leave(SIM_OK);
}

ze_result_t zexDriverGetHostPointerBaseAddress(ze_driver_handle_t driver, void *pointer, void **base)
{
    const ze_result_t result = ze_enter_driver("zexDriverGetHostPointerBaseAddress", driver);
    if (result)
        return result;
    const struct sim_alloc *alloc = import_at((uintptr_t)pointer);
    if (!alloc)
        return ze_leave(disabled() ? SIM_UNSUPPORTED : SIM_INVALID);
    if (base)
        *base = (void *)(uintptr_t)alloc->base;
    return ze_leave(SIM_OK);
}

ze_result_t zeDriverGetExtensionFunctionAddress(ze_driver_handle_t hDriver, const char *name,
                                                void **ppFunctionAddress)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } known[] = {
        {"zexDriverImportExternalPointer", (void (*)(void))zexDriverImportExternalPointer},
        {"zexDriverReleaseImportedPointer", (void (*)(void))zexDriverReleaseImportedPointer},
        {"zexDriverGetHostPointerBaseAddress", (void (*)(void))zexDriverGetHostPointerBaseAddress}};
    const ze_result_t result = ze_enter_driver("zeDriverGetExtensionFunctionAddress", hDriver);
    if (result)
        return result;
    for (size_t i = 0; SIM_ZE_SINCE(7) && i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(name, known[i].name) != 0)
            continue;
        memcpy(ppFunctionAddress, &known[i].function, sizeof known[i].function);
        return ze_leave(SIM_OK);
    }
    return ze_leave(SIM_INVALID);
}
