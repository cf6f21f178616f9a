/* sim_event.c: events: an event refers to its last record; a wait uses the record it finds. */
#include "sim_engine.h"

int sim_event_create(struct sim_context *context, bool timing, struct sim_event **out)
{
    struct sim_event *event = sim_table_take(&sim_events);
    if (!event)
        return SIM_NO_MEMORY;
    event->context = context;
    event->timing = timing;
    *out = event;
    return SIM_OK;
}

void sim_event_destroy(struct sim_event *event)
{
    sim_command_drop(event->record);
    event->record = NULL;
    sim_table_drop(&sim_events, event);
}

static void set_record(struct sim_event *event, struct sim_command *command)
{
    sim_command_drop(event->record);
    event->record = command;
    event->capture_id = 0;
}

int sim_event_record(struct sim_event *event, struct sim_queue *queue, bool external)
{
    struct sim_command *command = NULL;
    int status;
    if (event->context != queue->context)
        return SIM_BAD_HANDLE;
    event->recorded_on = queue;
    event->recorded_id = queue->id;
    if (queue->capture) {
        if (external)
            return SIM_UNSUPPORTED;
        event->capture_id = queue->capture->id;
        event->captured_on = queue;
        return queue->capture->invalid ? SIM_CAPTURE_INVALIDATED : SIM_OK;
    }
    if (external)
        return SIM_INVALID;
    status = sim_queue_mark(queue, NULL, &command);
    if (status)
        return status;
    command->references++;
    set_record(event, command);
    return SIM_OK;
}

int sim_event_record_context(struct sim_event *event, struct sim_context *context)
{
    struct sim_command *command = NULL;
    int status;
    if (event->context != context)
        return SIM_BAD_HANDLE;
    status = sim_queue_mark_context(context, NULL, &command);
    if (!status)
        set_record(event, command);
    return status;
}

int sim_event_wait_on(struct sim_queue *queue, struct sim_event *event)
{
    if (queue->capture || sim_capture_find(event->capture_id))
        return sim_capture_wait(queue, event);
    if (!sim_command_busy(event->record))
        return SIM_OK;
    return sim_queue_mark(queue, event->record, NULL);
}

static int refuse_captured(const struct sim_event *event)
{
    struct sim_capture *capture = sim_capture_find(event->capture_id);
    if (!capture)
        return SIM_OK;
    capture->invalid = true;
    return SIM_CAPTURED_EVENT;
}

int sim_event_query(struct sim_event *event)
{
    int status = refuse_captured(event);
    if (!status && !sim_command_poll(event->record))
        status = SIM_NOT_READY;
    return status ? status : event->context->lost;
}

int sim_event_wait(struct sim_event *event)
{
    struct sim_context *context = event->context;
    int status = refuse_captured(event);
    if (!status)
        sim_command_wait(event->record);
    return status ? status : context->lost;
}

int sim_event_elapsed(const struct sim_event *start, const struct sim_event *stop, float *ms)
{
    if (!start->timing || !stop->timing || !start->record || !stop->record)
        return SIM_BAD_HANDLE;
    if (start->context->device != stop->context->device)
        return SIM_BAD_HANDLE;
    if (start == stop ? !sim_command_poll(start->record)
                      : sim_command_busy(start->record) || sim_command_busy(stop->record))
        return SIM_NOT_READY;
    *ms = (float)((double)(int64_t)(stop->record->time_ns - start->record->time_ns) * 1e-6);
    return start->context->lost;
}
