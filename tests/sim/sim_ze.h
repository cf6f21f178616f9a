/* sim_ze.h: Level Zero: the vendor's headers, and the code that every entry point shares.
 * SIM_ZE_API is the version that the driver reports: 0x10003 (old) or 0x10011 (new). Constants that
 * Debian 12's headers lack are declared here under other names. */
#ifndef SIM_ZE_H
#define SIM_ZE_H

#pragma GCC visibility push(default)
#include <level_zero/ze_api.h>
#include <level_zero/ze_ddi.h>
#pragma GCC visibility pop

#include "sim_engine.h"

/* Whether the compute queues run cooperative kernels: the old driver's device cannot. */
#define SIM_ZE_COOPERATIVE SIM_ZE_SINCE(7)
#define SIM_ZE_SINCE(minor) ((uint32_t)SIM_ZE_API >= (1u << 16 | (minor)))

enum {
    SIM_ZE_QUEUE_IN_ORDER = 2,         /* 1.7 */
    SIM_ZE_QUEUE_OFFLOAD = 4,          /* 1.14 */
    SIM_ZE_INIT_DRIVER_DESC = 0x20021, /* 1.10 */
    SIM_ZE_USABLE_MEMORY = 0x20041,    /* 1.14 */
    SIM_ZE_GRAPH_PROPERTIES = 0x20047, /* 1.17, as the next three */
    SIM_ZE_GRAPH_IMMUTABLE = 1,
    SIM_ZE_CAPTURE_UNSUPPORTED = 0x78000025,
    SIM_ZE_NOT_CAPTURING = 0x78000028,
    SIM_ZE_FILL_MOST = 4, /* bytes of a fill pattern; 1 on a copy queue */
    SIM_ZE_QUEUES = 4
};

/* Count the call, inject faults and take the lock; ze_leave releases it and maps the engine's
 * status to a ze_result_t. */
ze_result_t ze_enter(const char *name);
ze_result_t ze_leave(int status);
/* The same, and find the object. Only one thread at a time may use a list, as the specification
 * requires. */
ze_result_t ze_enter_list(const char *name, ze_command_list_handle_t handle,
                          struct sim_queue **list);
ze_result_t ze_leave_list(struct sim_queue *list, int status);
ze_result_t ze_enter_event(const char *name, ze_event_handle_t handle, struct sim_event **event);
ze_result_t ze_enter_context(const char *name, ze_context_handle_t handle,
                             struct sim_context **context);
ze_result_t ze_enter_device(const char *name, ze_device_handle_t handle, struct sim_device **device);
ze_result_t ze_enter_driver(const char *name, ze_driver_handle_t handle);
void ze_attempt(struct sim_table *table, const void *handle);
void ze_attempt_free(const void *pointer);

/* Call these with the lock held. */
struct sim_device *ze_device(ze_device_handle_t handle); /* NULL: no such device */
ze_driver_handle_t ze_driver(void);
void ze_ipc_forget(uint64_t address); /* that memory is freed */
bool ze_has_shared(void);             /* GPUGLUE_SIM_ZE_SHARED */
bool ze_has_copy_queue(void);         /* GPUGLUE_SIM_ZE_COPY */
bool ze_has_graphs(void);             /* GPUGLUE_SIM_ZE_GRAPHS */
struct sim_function;
uint32_t ze_most_groups(const struct sim_function *function);
int ze_prepare(struct sim_queue *list, const struct sim_function *function,
               const ze_group_count_t *groups, struct sim_work *work);

#pragma GCC visibility push(default)
/* Beside the specification: zex_driver.h of intel/compute-runtime. */
ze_result_t zexDriverImportExternalPointer(ze_driver_handle_t driver, void *pointer, size_t size);
ze_result_t zexDriverReleaseImportedPointer(ze_driver_handle_t driver, void *pointer);
ze_result_t zexDriverGetHostPointerBaseAddress(ze_driver_handle_t driver, void *pointer,
                                               void **base);
/* Newer than Debian 12's headers. Later headers declare them, some with types that Debian 12 lacks, so they have other names
 * in C. The parameters have the same ABI as the vendor's types. */
#define NAMED(name) __asm__(#name)
ze_result_t sim_zeInitDrivers(uint32_t *count, ze_driver_handle_t *drivers, void *desc)
    NAMED(zeInitDrivers);
ze_result_t sim_zeDeviceSynchronize(ze_device_handle_t device) NAMED(zeDeviceSynchronize);
ze_result_t sim_zeDeviceGetRootDevice(ze_device_handle_t device, ze_device_handle_t *root)
    NAMED(zeDeviceGetRootDevice);
ze_result_t sim_zeCommandListHostSynchronize(ze_command_list_handle_t list, uint64_t timeout)
    NAMED(zeCommandListHostSynchronize);
ze_result_t sim_zeCommandListIsImmediate(ze_command_list_handle_t list, ze_bool_t *immediate)
    NAMED(zeCommandListIsImmediate);
ze_result_t sim_zeCommandListGetDeviceHandle(ze_command_list_handle_t list,
                                             ze_device_handle_t *device)
    NAMED(zeCommandListGetDeviceHandle);
ze_result_t sim_zeCommandListAppendHostFunction(ze_command_list_handle_t list,
                                                void (*function)(void *), void *data,
                                                const void *next, ze_event_handle_t signal,
                                                uint32_t count, ze_event_handle_t *waits)
    NAMED(zeCommandListAppendHostFunction);
ze_result_t sim_zeCommandListBeginGraphCaptureExt(ze_command_list_handle_t list, const void *next)
    NAMED(zeCommandListBeginGraphCaptureExt);
ze_result_t sim_zeCommandListEndGraphCaptureExt(ze_command_list_handle_t list, const void *next,
                                                void **graph) NAMED(zeCommandListEndGraphCaptureExt);
ze_result_t sim_zeGraphInstantiateExt(void *graph, const void *next, void **executable)
    NAMED(zeGraphInstantiateExt);
ze_result_t sim_zeCommandListAppendGraphExt(ze_command_list_handle_t list, void *executable,
                                            const void *next, ze_event_handle_t signal,
                                            uint32_t count, ze_event_handle_t *waits)
    NAMED(zeCommandListAppendGraphExt);
ze_result_t sim_zeExecutableGraphDestroyExt(void *executable) NAMED(zeExecutableGraphDestroyExt);
ze_result_t sim_zeGraphDestroyExt(void *graph) NAMED(zeGraphDestroyExt);
ze_result_t sim_zeMemPutIpcHandle(ze_context_handle_t context, ze_ipc_mem_handle_t handle)
    NAMED(zeMemPutIpcHandle);
ze_context_handle_t sim_zeDriverGetDefaultContext(ze_driver_handle_t driver)
    NAMED(zeDriverGetDefaultContext);
ze_result_t zelLoaderTranslateHandle(int kind, void *handle, void **out); /* the loader's */
#pragma GCC visibility pop

#endif
