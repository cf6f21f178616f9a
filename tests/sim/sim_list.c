/* sim_list.c: command lists and two-state events. Each append makes one command for the work, one
 * for each event to wait for, and one that sets the event to signal. */
#include "sim_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Ends the process if memory runs out. */
static struct sim_command *node(const struct sim_queue *list, const struct sim_work *work)
{
    struct sim_command *command = sim_command_new(list->context, work);
    if (!command)
        abort();
    command->loose = list->loose;
    return command;
}

static void need(struct sim_command *command, struct sim_command *earlier)
{
    if (sim_command_need(command, earlier))
        abort();
}

/* ---- the open commands of a list */

static void forget_finished(struct sim_queue *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->open_count; i++) {
        if (sim_command_busy(list->open[i]))
            list->open[kept++] = list->open[i];
        else
            sim_command_drop(list->open[i]);
    }
    list->open_count = kept;
}

static void remember(struct sim_queue *list, struct sim_command *command)
{
    if (list->open_count == list->open_room) {
        list->open_room = list->open_room ? 2 * list->open_room : 16;
        list->open = realloc(list->open, list->open_room * sizeof(struct sim_command *));
        if (!list->open)
            abort();
    }
    command->references++;
    list->open[list->open_count++] = command;
}

static void replace(struct sim_command **kept, struct sim_command *command)
{
    command->references++;
    sim_command_drop(*kept);
    *kept = command;
}

/* ---- appending */

static struct sim_command *queue_wait(struct sim_queue *list, struct sim_command *earlier,
                                      struct sim_event *event)
{
    struct sim_work work = {.kind = SIM_WAIT};
    work.word = (struct sim_word){(uintptr_t)&event->state, 1, 8, SIM_EQUAL};
    struct sim_command *command = node(list, &work);
    need(command, earlier);
    need(command, event->signal);
    sim_command_submit(command);
    return command;
}

static struct sim_command *queue_signal(struct sim_queue *list, struct sim_command *after,
                                        struct sim_event *event)
{
    struct sim_work work = {.kind = SIM_WRITE};
    work.word = (struct sim_word){(uintptr_t)&event->state, 1, 8, SIM_EQUAL};
    struct sim_command *command = node(list, &work);
    need(command, after);
    sim_command_submit(command);
    replace(&event->signal, command);
    return command;
}

static struct sim_command *queue_work(struct sim_queue *list, const struct sim_append *append)
{
    struct sim_command *earlier = list->loose ? list->barrier : list->last;
    struct sim_command *command = node(list, &append->work);
    need(command, earlier);
    for (size_t i = 0; i < append->wait_count; i++) {
        struct sim_command *wait = queue_wait(list, earlier, append->waits[i]);
        need(command, wait);
        sim_command_drop(wait);
    }
    if (append->barrier && !append->wait_count)
        for (size_t i = 0; i < list->open_count; i++)
            need(command, list->open[i]);
    sim_command_submit(command);
    return command;
}

void sim_list_append(struct sim_queue *list, const struct sim_append *append)
{
    struct sim_command *command, *signal = NULL;
    forget_finished(list);
    command = queue_work(list, append);
    if (append->signal)
        signal = queue_signal(list, command, append->signal);
    if (append->barrier)
        replace(&list->barrier, command);
    replace(&list->last, signal ? signal : command);
    remember(list, command);
    if (signal)
        remember(list, signal);
    sim_command_drop(command);
    sim_command_drop(signal);
}

/* ---- waiting */

static struct timespec deadline_of(uint64_t timeout_ns)
{
    struct timespec until;
    const uint64_t most = (uint64_t)3600 * 1000000000u;
    const uint64_t left = timeout_ns < most ? timeout_ns : most;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(left / 1000000000u);
    until.tv_nsec += (long)(left % 1000000000u);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    return until;
}

static bool finished(struct sim_queue *list)
{
    forget_finished(list);
    return list->open_count == 0;
}

bool sim_list_poll(struct sim_queue *list)
{
    for (size_t i = list->open_count; i-- > 0;)
        sim_command_poll(list->open[i]);
    return finished(list);
}

int sim_list_wait(struct sim_queue *list, uint64_t timeout_ns)
{
    const struct timespec until = deadline_of(timeout_ns);
    int late = 0;
    for (size_t i = list->open_count; i-- > 0;)
        sim_command_demand(list->open[i]);
    while (!finished(list) && !late)
        late = pthread_cond_timedwait(&sim.changed, &sim.lock, &until);
    if (!finished(list))
        return SIM_NOT_READY;
    return list->context->lost;
}

/* The client may see the effect of work before its command has ended. */
static bool running(const struct sim_queue *list)
{
    for (size_t i = 0; i < list->open_count; i++)
        if (list->open[i]->state == SIM_RUNNING && list->open[i]->work.kind != SIM_WAIT)
            return true;
    return false;
}

void sim_list_destroy(struct sim_queue *list)
{
    while (running(list))
        pthread_cond_wait(&sim.changed, &sim.lock);
    if (!finished(list) && !sim_any_lost()) { /* after a loss it has to be destroyed as it is */
        fprintf(stderr, "gpuglue sim: a list with unfinished work is destroyed\n");
        abort();
    }
    for (size_t i = 0; i < list->open_count; i++)
        sim_command_drop(list->open[i]);
    free(list->open);
    sim_command_drop(list->barrier);
    list->open = NULL;
    list->barrier = NULL;
    sim_queue_destroy(list);
}

/* ---- two-state events */

static bool is_set(const struct sim_event *event)
{
    return __atomic_load_n(&event->state, __ATOMIC_ACQUIRE) != 0;
}

void sim_flag_set(struct sim_event *event)
{
    __atomic_store_n(&event->state, 1, __ATOMIC_RELEASE);
    sim_worker_retry();
    pthread_cond_broadcast(&sim.changed);
}

void sim_flag_reset(struct sim_event *event)
{
    __atomic_store_n(&event->state, 0, __ATOMIC_RELEASE);
    sim_command_drop(event->signal);
    event->signal = NULL;
}

/* A lost device never signals an event. */
static int lost(const struct sim_event *event)
{
    return event->signal && !sim_command_busy(event->signal) ? event->signal->context->lost : SIM_OK;
}

int sim_flag_query(struct sim_event *event)
{
    if (is_set(event))
        return SIM_OK;
    if (event->signal)
        sim_command_poll(event->signal);
    return lost(event) ? lost(event) : SIM_NOT_READY;
}

int sim_flag_wait(struct sim_event *event, uint64_t timeout_ns)
{
    const struct timespec until = deadline_of(timeout_ns);
    int late = 0;
    sim_command_demand(event->signal);
    while (!is_set(event) && !lost(event) && !late)
        late = pthread_cond_timedwait(&sim.changed, &sim.lock, &until);
    if (is_set(event))
        return SIM_OK;
    return lost(event) ? lost(event) : SIM_NOT_READY;
}

void sim_flag_destroy(struct sim_event *event)
{
    if (sim_command_busy(event->signal) && !is_set(event) && !sim_any_lost()) {
        fprintf(stderr, "gpuglue sim: an event is destroyed before its signal came\n");
        abort();
    }
    sim_command_drop(event->signal);
    event->signal = NULL;
    sim_table_drop(&sim_events, event);
}
