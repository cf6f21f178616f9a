/* sim_ze_event.c: Level Zero: event pools and events. An event has two states: a reset before
 * the wait has run makes the wait hang. */
#include "sim_ze.h"

enum { CONTEXT, COUNT, TAKEN, MOST_EVENTS = 64 * (SIM_POOL_ATTRIBUTES - TAKEN) };

ze_result_t zeEventPoolCreate(ze_context_handle_t hContext, const ze_event_pool_desc_t *desc,
                              uint32_t numDevices, ze_device_handle_t *phDevices,
                              ze_event_pool_handle_t *phEventPool)
{
    struct sim_context *context;
    const ze_result_t result = ze_enter_context("zeEventPoolCreate", hContext, &context);
    if (result)
        return result;
    if (!desc || !phEventPool || (numDevices && !phDevices))
        return ze_leave(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    if (desc->stype != ZE_STRUCTURE_TYPE_EVENT_POOL_DESC || desc->flags > 7)
        return ze_leave(ZE_RESULT_ERROR_INVALID_ENUMERATION);
    for (uint32_t i = 0; i < numDevices; i++)
        if (!ze_device(phDevices[i]))
            return ze_leave(SIM_BAD_HANDLE);
    struct sim_pool *pool = sim_table_take(&sim_pools);
    if (!pool || !desc->count || desc->count > MOST_EVENTS)
        return ze_leave(SIM_INVALID);
    pool->values[CONTEXT] = (uintptr_t)context;
    pool->values[COUNT] = desc->count;
    *phEventPool = (ze_event_pool_handle_t)(void *)pool;
    return ze_leave(SIM_OK);
}

ze_result_t zeEventPoolDestroy(ze_event_pool_handle_t hEventPool)
{
    ze_attempt(&sim_pools, hEventPool);
    const ze_result_t result = ze_enter("zeEventPoolDestroy");
    if (result)
        return result;
    struct sim_pool *pool = sim_table_find(&sim_pools, hEventPool);
    if (!pool)
        return ze_leave(SIM_BAD_HANDLE);
    for (struct sim_event *event = sim_table_next(&sim_events, NULL); event;
         event = sim_table_next(&sim_events, event))
        if (event->pool == pool)
            return ze_leave(SIM_ILLEGAL_STATE);
    sim_table_drop(&sim_pools, pool);
    return ze_leave(SIM_OK);
}

ze_result_t zeEventCreate(ze_event_pool_handle_t hEventPool, const ze_event_desc_t *desc,
                          ze_event_handle_t *phEvent)
{
    const ze_result_t result = ze_enter("zeEventCreate");
    if (result)
        return result;
    struct sim_pool *pool = sim_table_find(&sim_pools, hEventPool);
    if (!pool || !desc || !phEvent)
        return ze_leave(pool ? ZE_RESULT_ERROR_INVALID_NULL_POINTER
                             : ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
    if (desc->stype != ZE_STRUCTURE_TYPE_EVENT_DESC || desc->signal > 7 || desc->wait > 7)
        return ze_leave(ZE_RESULT_ERROR_INVALID_ENUMERATION);
    const uint64_t bit = (uint64_t)1 << desc->index % 64;
    if (desc->index >= pool->values[COUNT] || pool->values[TAKEN + desc->index / 64] & bit)
        return ze_leave(SIM_INVALID);
    struct sim_event *event = sim_table_take(&sim_events);
    if (!event)
        return ze_leave(SIM_NO_MEMORY);
    pool->values[TAKEN + desc->index / 64] |= bit;
    event->pool = pool;
    event->index = desc->index;
    *phEvent = (ze_event_handle_t)(void *)event;
    return ze_leave(SIM_OK);
}

ze_result_t zeEventDestroy(ze_event_handle_t hEvent)
{
    struct sim_event *event;
    ze_attempt(&sim_events, hEvent);
    const ze_result_t result = ze_enter_event("zeEventDestroy", hEvent, &event);
    if (result)
        return result;
    event->pool->values[TAKEN + event->index / 64] &= ~((uint64_t)1 << event->index % 64);
    sim_flag_destroy(event);
    return ze_leave(SIM_OK);
}

ze_result_t zeEventQueryStatus(ze_event_handle_t hEvent)
{
    struct sim_event *event;
    const ze_result_t result = ze_enter_event("zeEventQueryStatus", hEvent, &event);
    return result ? result : ze_leave(sim_flag_query(event));
}

ze_result_t zeEventHostSynchronize(ze_event_handle_t hEvent, uint64_t timeout)
{
    struct sim_event *event;
    const ze_result_t result = ze_enter_event("zeEventHostSynchronize", hEvent, &event);
    if (result)
        return result;
    return ze_leave(timeout ? sim_flag_wait(event, timeout) : sim_flag_query(event));
}

ze_result_t zeEventHostReset(ze_event_handle_t hEvent)
{
    struct sim_event *event;
    const ze_result_t result = ze_enter_event("zeEventHostReset", hEvent, &event);
    if (result)
        return result;
    sim_flag_reset(event);
    return ze_leave(SIM_OK);
}

ze_result_t zeEventHostSignal(ze_event_handle_t hEvent)
{
    struct sim_event *event;
    const ze_result_t result = ze_enter_event("zeEventHostSignal", hEvent, &event);
    if (result)
        return result;
    sim_flag_set(event);
    return ze_leave(SIM_OK);
}
