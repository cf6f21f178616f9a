/* sim_context.c: contexts: one primary context per device, contexts that the client creates, and
 * each thread's context stack. */
#include "sim_control.h"
#include "sim_engine.h"

#include <string.h>

enum { DEPTH = 64 };

struct current {
    struct sim_context *context;
    uint64_t id; /* distinguishes a context from a later one with the same handle */
};

static _Thread_local struct current stack[DEPTH];
static _Thread_local int depth;

static const size_t default_limits[SIM_LIMITS] = {1024, 8388608, 8388608, 2, 2048, 64, 0};

int sim_context_create(struct sim_device *device, bool primary, struct sim_context **out)
{
    int status;
    struct sim_context *context = sim_table_take(&sim_contexts);
    if (!context)
        return SIM_NO_MEMORY;
    context->device = device;
    context->primary = primary;
    context->references = 1;
    context->id = sim_serial();
    memcpy(context->limits, default_limits, sizeof default_limits);
    status = sim_queue_create(context, false, 0, &context->legacy);
    if (status) {
        sim_table_drop(&sim_contexts, context);
        return status;
    }
    context->legacy->legacy = true;
    context->legacy->slot.internal = true;
    *out = context;
    return SIM_OK;
}

void sim_context_destroy(struct sim_context *context)
{
    sim_wait_context(context);
    for (struct sim_event *event = sim_table_next(&sim_events, NULL); event;
         event = sim_table_next(&sim_events, event))
        if (event->context == context)
            sim_event_destroy(event);
    for (struct sim_queue *queue = sim_table_next(&sim_queues, NULL); queue;
         queue = sim_table_next(&sim_queues, queue))
        if (queue->context == context)
            sim_queue_destroy(queue);
    sim_memory_release_context(context);
    if (context->device->primary == context)
        context->device->primary = NULL;
    sim_table_drop(&sim_contexts, context);
}

struct sim_context *sim_context_top(void)
{
    return depth ? stack[depth - 1].context : NULL;
}

static bool top_is_alive(void)
{
    const struct current *top = &stack[depth - 1];
    return top->context->slot.alive && top->context->id == top->id;
}

int sim_context_push(struct sim_context *context)
{
    if (depth == DEPTH)
        return SIM_INVALID;
    stack[depth++] = (struct current){context, context->id};
    return SIM_OK;
}

struct sim_context *sim_context_pop(void)
{
    return depth ? stack[--depth].context : NULL;
}

int sim_context_replace(struct sim_context *context)
{
    if (depth)
        depth--;
    return context ? sim_context_push(context) : SIM_OK;
}

int sim_context_check(struct sim_context *context)
{
    if (!context)
        return SIM_NO_CONTEXT;
    if (!context->slot.alive || (context == sim_context_top() && !top_is_alive()))
        return SIM_CONTEXT_DESTROYED;
    return context->lost;
}

void sim_context_lose(struct sim_context *context, int code)
{
    if (!context->lost)
        context->lost = code;
    pthread_cond_broadcast(&sim.changed);
}

int sim_context_get_limit(struct sim_context *context, unsigned limit, size_t *value)
{
    if (!value || limit >= SIM_LIMITS)
        return SIM_INVALID;
    *value = context->limits[limit];
    return SIM_OK;
}

int sim_context_set_limit(struct sim_context *context, unsigned limit, size_t value)
{
    if (limit >= SIM_LIMITS)
        return SIM_INVALID;
    context->limits[limit] = value;
    return SIM_OK;
}

bool sim_any_lost(void)
{
    const struct sim_context *context = NULL;
    while ((context = sim_table_next(&sim_contexts, context)))
        if (context->lost)
            return true;
    return false;
}

int sim_lost(void)
{
    pthread_mutex_lock(&sim.lock);
    const int lost = sim_any_lost();
    pthread_mutex_unlock(&sim.lock);
    return lost;
}
