/* stream.c: a stream is a queue of commands and, from the first command on, a thread that runs them. */
#include "host.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ---- the worker ---- */

/* The next command, or NULL when the stream is to end. stream->lock is held. */
static struct host_command *next_command(struct gg_stream_impl *stream)
{
    struct host_command *command;
    while (!stream->first && !stream->stopping)
        pthread_cond_wait(&stream->work, &stream->lock);
    command = stream->first;
    if (command)
        stream->first = command->next;
    return command;
}

static void *run_worker(void *argument)
{
    struct gg_stream_impl *stream = argument;
    struct host_command *command;
    pthread_mutex_lock(&stream->lock);
    while ((command = next_command(stream))) {
        if (!command->brief) /* whoever sees what a brief one did must find it counted too */
            pthread_mutex_unlock(&stream->lock);
        command->run(command);
        if (!command->brief)
            pthread_mutex_lock(&stream->lock);
        command->next = stream->spare;
        stream->spare = command;
        stream->completed++;
        pthread_cond_broadcast(&stream->progress);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

/* Signals are for the program's own threads; a fault of this one must still be reported. */
static void block_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

/* stream->lock is held. */
static gg_status start_worker(struct gg_stream_impl *stream)
{
    sigset_t before;
    int failure;
    if (stream->started)
        return GG_OK;
    block_signals(&before);
    failure = pthread_create(&stream->worker, NULL, run_worker, stream);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure)
        return host_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "the stream's thread: %s",
                              strerror(failure));
    pthread_setname_np(stream->worker, "gpuglue-host");
    stream->started = true;
    return GG_OK;
}

/* ---- the queue ---- */

/* One that has run before, or a new one. stream->lock is held. */
static struct host_command *take_command(struct gg_stream_impl *stream)
{
    struct host_command *command = stream->spare;
    if (!command)
        return malloc(sizeof *command);
    stream->spare = command->next;
    return command;
}

static void append(struct gg_stream_impl *stream, struct host_command *command)
{
    command->next = NULL;
    if (stream->first)
        stream->last->next = command;
    else
        stream->first = command;
    stream->last = command;
    stream->submitted++;
    pthread_cond_signal(&stream->work);
}

gg_status host_submit(struct gg_stream_impl *stream, const struct host_command *work)
{
    struct host_command *command;
    gg_status status;
    pthread_mutex_lock(&stream->lock);
    status = start_worker(stream);
    if (status)
        goto unlock;
    command = take_command(stream);
    if (command) {
        *command = *work;
        append(stream, command);
    } else {
        status = host_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for a queued command");
    }

unlock:
    pthread_mutex_unlock(&stream->lock);
    return status;
}

/* What a command could not do is told once, to the first who asks after it. */
static gg_status outcome(struct gg_stream_impl *stream)
{
    const char *failure = atomic_load_explicit(&stream->failure, memory_order_acquire);
    if (failure && atomic_compare_exchange_strong(&stream->failure, &failure, NULL))
        return host_api->fail(GG_ERR_DEVICE, NULL, "%s", failure);
    return GG_OK;
}

gg_status host_stream_query(struct gg_stream_impl *stream)
{
    bool idle;
    pthread_mutex_lock(&stream->lock);
    idle = stream->completed == stream->submitted;
    pthread_mutex_unlock(&stream->lock);
    return idle ? outcome(stream) : GG_NOT_READY;
}

gg_status host_stream_wait(struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    uint64_t deadline = host_deadline(timeout_ns), ticket;
    bool in_time = true;
    pthread_mutex_lock(&stream->lock);
    ticket = stream->submitted; /* what others queue meanwhile is theirs to wait for */
    while (stream->completed < ticket && in_time)
        in_time = host_cond_wait(&stream->progress, &stream->lock, deadline);
    in_time = stream->completed >= ticket;
    pthread_mutex_unlock(&stream->lock);
    return in_time ? outcome(stream) : GG_NOT_READY;
}

/* ---- create and destroy ---- */

gg_status host_stream_default(struct gg_device_impl *device, struct gg_stream_impl **out)
{
    *out = device->default_stream;
    return GG_OK;
}

/* Nothing is ordered with the default stream here, so GG_STREAM_NONBLOCKING changes nothing. */
gg_status host_stream_create(struct gg_device_impl *device, uint32_t flags, int32_t priority,
                             struct gg_stream_impl **out)
{
    struct gg_stream_impl *stream;
    (void)priority;
    if (flags & ~(uint32_t)GG_STREAM_NONBLOCKING)
        return host_api->fail(GG_ERR_UNSUPPORTED, NULL, "stream flags 0x%x", (unsigned)flags);
    stream = calloc(1, sizeof *stream);
    if (!stream)
        return host_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for a stream");
    stream->device = device;
    pthread_mutex_init(&stream->lock, NULL);
    host_cond_init(&stream->work);
    host_cond_init(&stream->progress);
    host_object_add(device, &device->streams, &stream->object);
    *out = stream;
    return GG_OK;
}

static void end_worker(struct gg_stream_impl *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->stopping = true;
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
    if (stream->started)
        pthread_join(stream->worker, NULL);
}

void host_stream_destroy(struct gg_stream_impl *stream)
{
    struct gg_device_impl *device = stream->device;
    if (!host_object_drop(device, &device->streams, &stream->object))
        return; /* borrowed by someone */
    end_worker(stream);
    while (stream->spare) {
        struct host_command *command = stream->spare;
        stream->spare = command->next;
        free(command);
    }
    pthread_cond_destroy(&stream->progress);
    pthread_cond_destroy(&stream->work);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

gg_status host_stream_borrow(struct gg_device_impl *device, uint64_t native, uint32_t *flags,
                             int32_t *is_default, struct gg_stream_impl **out)
{
    struct host_object *found;
    if (native == (uint64_t)(uintptr_t)device->default_stream) {
        *is_default = 1;
        *flags = 0;
        return host_stream_default(device, out);
    }
    found = host_object_find(device, &device->streams, native);
    if (!found)
        return host_api->fail(GG_ERR_INVALID_ARGUMENT, NULL, "0x%llx is no stream of this device",
                              (unsigned long long)native);
    *out = (struct gg_stream_impl *)found;
    *is_default = 0;
    *flags = GG_STREAM_NONBLOCKING;
    return GG_OK;
}

gg_status host_stream_native(struct gg_stream_impl *stream, uint64_t handles[4])
{
    memset(handles, 0, 4 * sizeof *handles);
    handles[0] = (uint64_t)(uintptr_t)stream;
    return GG_OK;
}

gg_status host_stream_priority_range(struct gg_device_impl *device, int32_t *least,
                                     int32_t *greatest)
{
    (void)device;
    *least = *greatest = 0;
    return GG_OK;
}

/* ---- host functions ---- */

static void run_function(const struct host_command *command)
{
    command->function(command->argument);
}

gg_status host_stream_host_func(struct gg_stream_impl *stream, void (*function)(void *),
                                void *argument)
{
    const struct host_command work = {
        .run = run_function, .function = function, .argument = argument};
    return host_submit(stream, &work);
}
