/* sim_command.c: commands: reference-counted nodes that run after their dependencies, and are
 * delayed on purpose. */
#include "sim_engine.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct sim_command *sim_oldest;
static struct sim_command *newest;

enum { EARLY_ODDS = 8, MOST_POLLS = 4, POLLS_AT_ONCE = 16, PAUSE_NS = 20000 };

struct sim_command *sim_command_new(struct sim_context *context, const struct sim_work *work)
{
    struct sim_command *command = calloc(1, sizeof *command);
    if (!command)
        return NULL;
    command->work = *work;
    command->context = context;
    command->references = 1;
    command->serial = sim_serial();
    command->polls = 1 + (unsigned)sim_random(MOST_POLLS);
    return command;
}

bool sim_command_busy(const struct sim_command *command)
{
    return command && command->state != SIM_DONE;
}

void sim_command_drop(struct sim_command *command)
{
    if (!command || --command->references)
        return;
    free(command->needs);
    free(command->feeds);
    free(command);
}

static bool append(struct sim_command ***list, size_t *count, struct sim_command *item)
{
    if ((*count & (*count - 1)) == 0) { /* a power of two: the array is full */
        size_t room = *count ? *count * 2 : 1;
        struct sim_command **grown = realloc(*list, room * sizeof **list);
        if (!grown)
            return false;
        *list = grown;
    }
    (*list)[(*count)++] = item;
    return true;
}

int sim_command_need(struct sim_command *command, struct sim_command *earlier)
{
    if (!sim_command_busy(earlier))
        return SIM_OK;
    if (!append(&command->needs, &command->need_count, earlier))
        return SIM_NO_MEMORY;
    earlier->references++;
    if (!append(&earlier->feeds, &earlier->feed_count, command))
        return SIM_NO_MEMORY;
    command->references++;
    command->waiting++;
    return SIM_OK;
}

void sim_command_submit(struct sim_command *command)
{
    sim_record(command);
    command->references++; /* held by the list of unfinished commands */
    command->previous = newest;
    if (newest)
        newest->next = command;
    else
        sim_oldest = command;
    newest = command;
    if (!sim_random(EARLY_ODDS))
        sim_command_demand(command);
    sim_worker_wake();
}

/* Releases a held command and its dependencies. The dependencies of a released command are all
 * released. */
void sim_command_demand(struct sim_command *command)
{
    struct sim_command *open = NULL;
    if (!command || command->state != SIM_HELD)
        return;
    command->state = SIM_RELEASED;
    command->chain = NULL;
    open = command;
    while (open) {
        struct sim_command *current = open;
        open = current->chain;
        for (size_t i = 0; i < current->need_count; i++) {
            struct sim_command *need = current->needs[i];
            if (need->state != SIM_HELD)
                continue;
            need->state = SIM_RELEASED;
            need->chain = open;
            open = need;
        }
        if (!current->waiting)
            sim_worker_ready(current);
    }
}

static void unlink_command(struct sim_command *command)
{
    if (command->previous)
        command->previous->next = command->next;
    else
        sim_oldest = command->next;
    if (command->next)
        command->next->previous = command->previous;
    else
        newest = command->previous;
    command->next = command->previous = NULL;
}

void sim_command_finish(struct sim_command *command)
{
    command->state = SIM_DONE;
    unlink_command(command);
    for (size_t i = 0; i < command->feed_count; i++) {
        struct sim_command *fed = command->feeds[i];
        if (--fed->waiting == 0 && fed->state == SIM_RELEASED)
            sim_worker_ready(fed);
        sim_command_drop(fed);
    }
    command->feed_count = 0;
    for (size_t i = 0; i < command->need_count; i++)
        sim_command_drop(command->needs[i]);
    command->need_count = 0;
    pthread_cond_broadcast(&sim.changed);
    sim_command_drop(command);
}

void sim_pause_poll(int status)
{
    static _Thread_local unsigned unfinished;
    unfinished = status == SIM_NOT_READY ? unfinished + 1 : 0;
    if (unfinished > POLLS_AT_ONCE)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

bool sim_command_poll(struct sim_command *command)
{
    if (!sim_command_busy(command))
        return true;
    if (command->polls)
        command->polls--;
    if (!command->polls)
        sim_command_demand(command);
    return false;
}

void sim_command_wait(struct sim_command *command)
{
    if (!sim_command_busy(command))
        return;
    command->references++;
    sim_command_demand(command);
    while (command->state != SIM_DONE)
        pthread_cond_wait(&sim.changed, &sim.lock);
    sim_command_drop(command);
}

static bool uses_lost_device(const struct sim_command *command)
{
    const struct sim_work *work = &command->work;
    return command->state == SIM_RUNNING && command->context->lost && work->kind != SIM_WAIT &&
           (work->kind != SIM_HOST || work->host.kernel);
}

void sim_command_wait_lost(void)
{
    struct sim_command *command = sim_oldest;
    while (command) {
        if (!uses_lost_device(command)) {
            command = command->next;
            continue;
        }
        pthread_cond_wait(&sim.changed, &sim.lock);
        command = sim_oldest;
    }
}

static bool concerns(const struct sim_command *command, const struct sim_device *device,
                     const struct sim_context *context, uint64_t until)
{
    if (command->serial > until || (context && command->context != context))
        return false;
    return !device || command->context->device == device;
}

static void wait_all(const struct sim_device *device, const struct sim_context *context)
{
    uint64_t until = sim.serial;
    struct sim_command *command;
    for (command = sim_oldest; command; command = command->next)
        if (concerns(command, device, context, until))
            sim_command_demand(command);
    for (;;) {
        for (command = sim_oldest; command; command = command->next)
            if (concerns(command, device, context, until))
                break;
        if (!command)
            return;
        sim_command_wait(command);
    }
}

void sim_wait_device(const struct sim_device *device)
{
    wait_all(device, NULL);
}

void sim_wait_context(const struct sim_context *context)
{
    wait_all(NULL, context);
}
