/* sim_ze_enter.c: Level Zero: the start and the end of every entry point. */
#include "sim_ze.h"

#include <stdio.h>
#include <stdlib.h>

static ze_result_t code_of(int status)
{
    switch (status) {
    case SIM_OK:
        return ZE_RESULT_SUCCESS;
    case SIM_NOT_READY:
        return ZE_RESULT_NOT_READY;
    case SIM_NO_MEMORY:
        return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    case SIM_BAD_HANDLE:
        return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    case SIM_UNSUPPORTED:
        return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    case SIM_ILLEGAL_ADDRESS:
        return ZE_RESULT_ERROR_DEVICE_LOST;
    case SIM_CAPTURE_UNSUPPORTED:
        return (ze_result_t)SIM_ZE_CAPTURE_UNSUPPORTED;
    case SIM_ILLEGAL_STATE:
        return ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE;
    default:
        return status < 0 ? ZE_RESULT_ERROR_INVALID_ARGUMENT : (ze_result_t)status;
    }
}

static void lose(struct sim_context *context, ze_result_t code)
{
    if (code != ZE_RESULT_ERROR_DEVICE_LOST && code != ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET)
        return;
    pthread_mutex_lock(&sim.lock);
    sim_context_lose(context ? context : sim.devices[0].primary, (int)code);
    pthread_mutex_unlock(&sim.lock);
}

static ze_result_t enter(const char *name, struct sim_context *context)
{
    const ze_result_t fault = (ze_result_t)sim_fault(name);
    if (!sim_initialised() || sim_finished() || sim_forked())
        return ZE_RESULT_ERROR_UNINITIALIZED;
    if (fault) {
        lose(context, fault);
        return fault;
    }
    pthread_mutex_lock(&sim.lock);
    return ZE_RESULT_SUCCESS;
}

ze_result_t ze_enter(const char *name)
{
    return enter(name, NULL);
}

ze_result_t ze_leave(int status)
{
    pthread_mutex_unlock(&sim.lock);
    return code_of(status);
}

void ze_attempt(struct sim_table *table, const void *handle)
{
    struct sim_slot *slot;
    if (!sim_initialised() || sim_forked() || sim_finished())
        return;
    pthread_mutex_lock(&sim.lock);
    slot = sim_table_find(table, handle);
    if (slot)
        slot->attempted = true;
    pthread_mutex_unlock(&sim.lock);
}

/* Looked up before the call, so that a loss applies to the right device and concurrent use by two
 * threads is detected. intel/compute-runtime has no lock there: an append and a query at once corrupt
 * the list, which is an error of the client. */
static struct sim_queue *list_of(const void *handle)
{
    struct sim_queue *list;
    if (!sim_initialised() || sim_forked() || sim_finished())
        return NULL;
    pthread_mutex_lock(&sim.lock);
    list = sim_table_find(&sim_queues, handle);
    if (list && list->threads++) {
        fprintf(stderr, "gpuglue sim: two threads use one command list\n");
        abort();
    }
    pthread_mutex_unlock(&sim.lock);
    return list;
}

static void leave_list(struct sim_queue *list)
{
    if (list)
        list->threads--;
}

ze_result_t ze_enter_list(const char *name, ze_command_list_handle_t handle, struct sim_queue **list)
{
    struct sim_queue *found = list_of(handle);
    const ze_result_t result = enter(name, found ? found->context : NULL);
    if (result) {
        pthread_mutex_lock(&sim.lock);
        leave_list(found);
        pthread_mutex_unlock(&sim.lock);
        return result;
    }
    if (!found)
        return ze_leave(SIM_BAD_HANDLE);
    *list = found;
    return found->context->lost ? ze_leave_list(found, found->context->lost) : ZE_RESULT_SUCCESS;
}

ze_result_t ze_leave_list(struct sim_queue *list, int status)
{
    leave_list(list);
    return ze_leave(status);
}

ze_result_t ze_enter_event(const char *name, ze_event_handle_t handle, struct sim_event **event)
{
    const ze_result_t result = ze_enter(name);
    if (result)
        return result;
    *event = sim_table_find(&sim_events, handle);
    return *event ? ZE_RESULT_SUCCESS : ze_leave(SIM_BAD_HANDLE);
}

ze_result_t ze_enter_context(const char *name, ze_context_handle_t handle,
                             struct sim_context **context)
{
    const ze_result_t result = ze_enter(name);
    if (result)
        return result;
    *context = sim_table_find(&sim_contexts, handle);
    return *context ? ZE_RESULT_SUCCESS : ze_leave(SIM_BAD_HANDLE);
}

ze_result_t ze_enter_driver(const char *name, ze_driver_handle_t handle)
{
    const ze_result_t result = ze_enter(name);
    if (result)
        return result;
    return handle == ze_driver() ? ZE_RESULT_SUCCESS : ze_leave(SIM_BAD_HANDLE);
}

struct sim_device *ze_device(ze_device_handle_t handle)
{
    for (int i = 0; i < sim.device_count; i++)
        if ((void *)handle == (void *)&sim.devices[i])
            return &sim.devices[i];
    return NULL;
}

ze_result_t ze_enter_device(const char *name, ze_device_handle_t handle, struct sim_device **device)
{
    const ze_result_t result = ze_enter(name);
    if (result)
        return result;
    *device = ze_device(handle);
    return *device ? ZE_RESULT_SUCCESS : ze_leave(SIM_BAD_HANDLE);
}
