/* sim_queue.c: queues (streams): the dependencies of a command, with the null stream's rules. */
#include "sim_engine.h"

#include <stdlib.h>

enum { THREAD_QUEUES = 32 };

struct thread_queue {
    struct sim_context *context;
    struct sim_queue *queue;
    uint64_t id;
};

static _Thread_local struct thread_queue thread_queues[THREAD_QUEUES];

int sim_queue_create(struct sim_context *context, bool nonblocking, int priority,
                     struct sim_queue **out)
{
    struct sim_queue *queue = sim_table_take(&sim_queues);
    if (!queue)
        return SIM_NO_MEMORY;
    queue->context = context;
    queue->nonblocking = nonblocking;
    queue->priority = priority;
    queue->id = sim_serial();
    *out = queue;
    return SIM_OK;
}

/* Destroys the handle only, which the next queue reuses; queued work continues. */
void sim_queue_destroy(struct sim_queue *queue)
{
    sim_capture_forget(queue);
    sim_command_drop(queue->last);
    queue->last = NULL;
    sim_table_drop(&sim_queues, queue);
}

int sim_queue_per_thread(struct sim_context *context, struct sim_queue **out)
{
    struct thread_queue *spare = &thread_queues[0];
    int status;
    for (int i = 0; i < THREAD_QUEUES; i++) {
        struct thread_queue *known = &thread_queues[i];
        if (known->context == context && known->id == context->id) {
            *out = known->queue;
            return SIM_OK;
        }
        if (!known->context)
            spare = known;
    }
    status = sim_queue_create(context, false, 0, out);
    if (status)
        return status;
    (*out)->slot.internal = true;
    *spare = (struct thread_queue){context, *out, context->id};
    return SIM_OK;
}

/* The null stream waits for every earlier blocking stream, and blocking streams wait for it. */
static int order_with_null_stream(struct sim_command *command, const struct sim_queue *queue)
{
    struct sim_context *context = queue->context;
    int status = SIM_OK;
    if (queue->nonblocking)
        return SIM_OK;
    if (!queue->legacy)
        return sim_command_need(command, context->legacy->last);
    for (struct sim_command *other = sim_oldest; other && !status; other = other->next)
        if (other->context == context && other->blocking && other->tail)
            status = sim_command_need(command, other);
    return status;
}

static int unfinished(const struct sim_queue *queue)
{
    int count = 0;
    for (struct sim_command *command = sim_oldest; command; command = command->next)
        count += command->queue_id == queue->id;
    return count;
}

static void wait_for_room(const struct sim_queue *queue)
{
    while (sim.room && unfinished(queue) >= sim.room) {
        sim_command_demand(queue->last);
        sim.waiting++;
        pthread_cond_wait(&sim.changed, &sim.lock);
        sim.waiting--;
    }
    pthread_cond_broadcast(&sim.changed);
}

void sim_wait_for_others_room(void)
{
    while (sim.room_blocks && sim.waiting)
        pthread_cond_wait(&sim.changed, &sim.lock);
}

static int submit(struct sim_queue *queue, const struct sim_work *work, struct sim_command *after,
                  struct sim_command **out)
{
    struct sim_command *command;
    int status;
    wait_for_room(queue);
    command = sim_command_new(queue->context, work);
    if (!command)
        return SIM_NO_MEMORY;
    command->queue_id = queue->id;
    command->blocking = !queue->nonblocking;
    command->tail = true;
    status = sim_command_need(command, queue->last);
    if (!status)
        status = sim_command_need(command, after);
    if (!status)
        status = order_with_null_stream(command, queue);
    if (status) {
        sim_command_drop(command);
        return status;
    }
    if (queue->last)
        queue->last->tail = false;
    sim_command_drop(queue->last);
    queue->last = command; /* takes over the first reference */
    sim_command_submit(command);
    if (out)
        *out = command;
    return SIM_OK;
}

int sim_queue_submit(struct sim_queue *queue, const struct sim_work *work)
{
    int status;
    if (queue->capture)
        return sim_capture_work(queue, work);
    status = queue->legacy ? sim_capture_implicit(queue->context) : SIM_OK;
    if (!status)
        status = submit(queue, work, NULL, NULL);
    if (!status && work->kind == SIM_WRITE && sim_setting("GPUGLUE_SIM_PROMPT", 0))
        sim_command_wait(queue->last);
    return status;
}

int sim_queue_submit_uncaptured(struct sim_queue *queue, const struct sim_work *work)
{
    struct sim_capture *capture = queue->capture;
    queue->capture = NULL;
    const int status = sim_queue_submit(queue, work);
    queue->capture = capture;
    return status;
}

int sim_queue_mark(struct sim_queue *queue, struct sim_command *after, struct sim_command **out)
{
    static const struct sim_work mark = {.kind = SIM_MARK};
    int status = queue->legacy ? sim_capture_implicit(queue->context) : SIM_OK;
    return status ? status : submit(queue, &mark, after, out);
}

/* A mark after all queued work of the context. It is in no queue; the caller owns *out. */
int sim_queue_mark_context(struct sim_context *context, struct sim_command *after,
                           struct sim_command **out)
{
    static const struct sim_work mark = {.kind = SIM_MARK};
    struct sim_command *command = sim_command_new(context, &mark);
    int status;
    if (!command)
        return SIM_NO_MEMORY;
    status = sim_command_need(command, after);
    for (struct sim_command *other = sim_oldest; other && !status; other = other->next)
        if (other->context == context && other->tail)
            status = sim_command_need(command, other);
    if (status) {
        sim_command_drop(command);
        return status;
    }
    sim_command_submit(command);
    *out = command;
    return SIM_OK;
}

int sim_queue_query(struct sim_queue *queue)
{
    struct sim_command *last = queue->last;
    int status = sim_capture_refuse(queue);
    if (!status && queue->legacy) {
        status = sim_capture_implicit(queue->context);
        for (struct sim_command *other = sim_oldest; other && !status; other = other->next)
            if (other->context == queue->context && other->blocking && other->tail)
                last = other;
    }
    if (status)
        return status;
    if (!sim_command_poll(last))
        return SIM_NOT_READY;
    return queue->context->lost;
}

int sim_queue_wait(struct sim_queue *queue)
{
    struct sim_context *context = queue->context;
    struct sim_command *mark = NULL;
    int status = sim_capture_refuse(queue);
    if (!status && queue->legacy)
        status = sim_queue_mark(queue, NULL, &mark);
    if (!status)
        sim_command_wait(queue->last);
    return status ? status : context->lost;
}
