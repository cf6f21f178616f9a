/* Level Zero face: the real headers, and how every entry point begins. SIM_ZE_API is the version that the
 * driver claims: 0x10003 (old) or 0x10011 (new). What is newer than Debian 12's headers is declared here,
 * under names of our own. */
#ifndef SIM_ZE_H
#define SIM_ZE_H

#pragma GCC visibility push(default)
#include <level_zero/ze_api.h>
#include <level_zero/ze_ddi.h>
#pragma GCC visibility pop

#include "sim_engine.h"

#define SIM_ZE_SINCE(minor) ((uint32_t)SIM_ZE_API >= (1u << 16 | (minor)))

enum {
    SIM_ZE_QUEUE_IN_ORDER = 2,         /* 1.7 */
    SIM_ZE_INIT_DRIVER_DESC = 0x20021, /* 1.10 */
    SIM_ZE_USABLE_MEMORY = 0x20041,    /* 1.14 */
    SIM_ZE_FILL_MOST = 4,              /* bytes of a pattern */
    SIM_ZE_QUEUES = 4
};

/* Count the call, inject a fault, take the lock; ze_leave gives it back and maps the engine's status. */
ze_result_t ze_enter(const char *name);
ze_result_t ze_leave(int status);
/* The same, and find the object. A list may be in one call at a time, as the specification says. */
ze_result_t ze_enter_list(const char *name, ze_command_list_handle_t handle,
                          struct sim_queue **list);
ze_result_t ze_leave_list(struct sim_queue *list, int status);
ze_result_t ze_enter_event(const char *name, ze_event_handle_t handle, struct sim_event **event);
ze_result_t ze_enter_context(const char *name, ze_context_handle_t handle,
                             struct sim_context **context);
ze_result_t ze_enter_device(const char *name, ze_device_handle_t handle, struct sim_device **device);
ze_result_t ze_enter_driver(const char *name, ze_driver_handle_t handle);
void ze_attempt(struct sim_table *table, const void *handle);

/* With the lock. */
struct sim_device *ze_device(ze_device_handle_t handle); /* NULL: no such device */
ze_driver_handle_t ze_driver(void);
struct sim_function;
int ze_prepare(struct sim_queue *list, const struct sim_function *function,
               const ze_group_count_t *groups, struct sim_work *work);

#pragma GCC visibility push(default)
/* Newer than the header; parameters are what theirs come down to. */
ze_result_t zeInitDrivers(uint32_t *count, ze_driver_handle_t *drivers, void *desc);
ze_result_t zeDeviceSynchronize(ze_device_handle_t device);
ze_result_t zeCommandListHostSynchronize(ze_command_list_handle_t list, uint64_t timeout);
ze_result_t zeCommandListIsImmediate(ze_command_list_handle_t list, ze_bool_t *immediate);
ze_result_t zeCommandListGetDeviceHandle(ze_command_list_handle_t list, ze_device_handle_t *device);
ze_result_t zeCommandListAppendHostFunction(ze_command_list_handle_t list, void (*function)(void *),
                                            void *data, const void *next, ze_event_handle_t signal,
                                            uint32_t count, ze_event_handle_t *waits);
ze_context_handle_t zeDriverGetDefaultContext(ze_driver_handle_t driver);
ze_result_t zelLoaderTranslateHandle(int kind, void *handle, void **out); /* of a loader */
#pragma GCC visibility pop

#endif
