/* stream.c: streams: a queue of commands and, from the first command on, a thread that runs them. */
#include "host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- a pause of the device ---- */

static bool streams_use_memory(struct host_object *streams)
{
    bool used = false;
    for (; streams && !used; streams = streams->next) {
        struct gg_stream_impl *stream = (struct gg_stream_impl *)streams;
        pthread_mutex_lock(&stream->lock);
        used = stream->uses_memory;
        pthread_mutex_unlock(&stream->lock);
    }
    return used;
}

static bool device_uses_memory(struct gg_device_impl *device)
{
    pthread_mutex_lock(&device->lock);
    const bool used = streams_use_memory(device->streams) || streams_use_memory(device->ending);
    pthread_mutex_unlock(&device->lock);
    return used;
}

void host_device_pause(struct gg_device_impl *device)
{
    pthread_mutex_lock(&device->pause_lock);
    atomic_store(&device->paused, true);
    while (device_uses_memory(device))
        pthread_cond_wait(&device->pause_changed, &device->pause_lock);
    pthread_mutex_unlock(&device->pause_lock);
}

void host_device_resume(struct gg_device_impl *device)
{
    pthread_mutex_lock(&device->pause_lock);
    atomic_store(&device->paused, false);
    pthread_cond_broadcast(&device->pause_changed);
    pthread_mutex_unlock(&device->pause_lock);
}

static void pause_wait(struct gg_device_impl *device)
{
    pthread_mutex_lock(&device->pause_lock);
    while (atomic_load(&device->paused))
        pthread_cond_wait(&device->pause_changed, &device->pause_lock);
    pthread_mutex_unlock(&device->pause_lock);
}

static void pause_notify(struct gg_device_impl *device)
{
    pthread_mutex_lock(&device->pause_lock);
    pthread_cond_broadcast(&device->pause_changed);
    pthread_mutex_unlock(&device->pause_lock);
}

/* ---- the worker ---- */

/* The next command; NULL when the worker must stop. stream->lock is held. */
static struct host_command *worker_next_command(struct gg_stream_impl *stream)
{
    while (!stream->first && !stream->stopping)
        pthread_cond_wait(&stream->work, &stream->lock);
    struct host_command *command = stream->first;
    if (command)
        stream->first = command->next;
    return command;
}

/* stream->lock is held before and after. The check and `uses_memory` are under one lock: a pause that begins later finds
 * the command running. */
static void worker_run(struct gg_stream_impl *stream, const struct host_command *command)
{
    struct gg_device_impl *device = stream->device;
    while (!command->unpaused && atomic_load(&device->paused)) {
        pthread_mutex_unlock(&stream->lock);
        pause_wait(device);
        pthread_mutex_lock(&stream->lock);
    }
    stream->uses_memory = !command->unpaused;
    pthread_mutex_unlock(&stream->lock);
    command->run(command);
    pthread_mutex_lock(&stream->lock);
    stream->uses_memory = false;
    if (atomic_load(&device->paused)) {
        pthread_mutex_unlock(&stream->lock);
        pause_notify(device);
        pthread_mutex_lock(&stream->lock);
    }
}

static void *worker_main(void *argument)
{
    struct gg_stream_impl *stream = argument;
    struct host_command *command;
    pthread_mutex_lock(&stream->lock);
    while ((command = worker_next_command(stream))) {
        if (command->brief) /* a thread that sees its effect must find it counted */
            command->run(command);
        else
            worker_run(stream, command);
        command->next = stream->spare;
        stream->spare = command;
        stream->completed++;
        pthread_cond_broadcast(&stream->progress);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

/* Faults of the thread must still be reported. */
static void block_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

/* Or the calling thread would pass on its own. */
static void attributes_place(pthread_attr_t *attributes, int32_t ordinal)
{
    struct host_processors processors;
    if (host_device_processors(ordinal, &processors))
        pthread_attr_setaffinity_np(attributes, sizeof processors.set, processors.set);
}

int host_thread_start(pthread_t *thread, int32_t ordinal, const char *name, void *(*run)(void *),
                      void *argument)
{
    pthread_attr_t attributes;
    sigset_t before;
    int failure = pthread_attr_init(&attributes);
    if (failure)
        return failure;
    attributes_place(&attributes, ordinal);
    block_signals(&before);
    failure = pthread_create(thread, &attributes, run, argument);
    if (failure == EINVAL || failure == EPERM) /* the processors have changed, or may not be set */
        failure = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (!failure)
        pthread_setname_np(*thread, name);
    return failure;
}

/* stream->lock is held. */
static gg_status worker_start(struct gg_stream_impl *stream)
{
    if (stream->started)
        return GG_OK;
    const int failure = host_thread_start(&stream->worker, stream->device->ordinal, "gpuglue-host",
                                          worker_main, stream);
    if (failure)
        return host_api->fail(
            GG_ERR_OUT_OF_MEMORY, NULL,
            "the stream's thread could not be started: %s. There may be no memory for "
            "its stack, or too many threads (see `ulimit -u`, and pids.max of the "
            "control group)",
            strerror(failure));
    stream->started = true;
    return GG_OK;
}

/* ---- the queue ---- */

/* A spare command, or a new one. stream->lock is held. */
static struct host_command *command_take(struct gg_stream_impl *stream)
{
    struct host_command *command = stream->spare;
    if (!command)
        return malloc(sizeof *command);
    stream->spare = command->next;
    return command;
}

static void queue_append(struct gg_stream_impl *stream, struct host_command *command)
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
    pthread_mutex_lock(&stream->lock);
    gg_status status = worker_start(stream);
    struct host_command *command = status ? NULL : command_take(stream);
    if (command) {
        *command = *work;
        queue_append(stream, command);
    } else if (!status) {
        status = host_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no memory for a queued command");
    }
    pthread_mutex_unlock(&stream->lock);
    return status;
}

/* The failure of a command is reported once, by the next query or wait. Unlocks stream->lock. */
static gg_status stream_take_failure(struct gg_stream_impl *stream)
{
    char failure[HOST_FAILURE_SIZE] = "";
    if (stream->failure[0])
        memcpy(failure, stream->failure, sizeof failure);
    stream->failure[0] = 0;
    pthread_mutex_unlock(&stream->lock);
    return failure[0] ? host_api->fail(GG_ERR_DEVICE, NULL, "%s", failure) : GG_OK;
}

/* Unlocks stream->lock. */
static gg_status stream_report(struct gg_stream_impl *stream, bool idle)
{
    if (idle)
        return stream_take_failure(stream);
    pthread_mutex_unlock(&stream->lock);
    return GG_NOT_READY;
}

gg_status host_stream_query(struct gg_stream_impl *stream)
{
    pthread_mutex_lock(&stream->lock);
    return stream_report(stream, stream->completed == stream->submitted);
}

gg_status host_stream_wait(struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    uint64_t deadline = host_deadline(timeout_ns);
    bool in_time = true;
    pthread_mutex_lock(&stream->lock);
    uint64_t ticket = stream->submitted; /* not for what other threads queue from now on */
    while (stream->completed < ticket && in_time)
        in_time = host_cond_wait(&stream->progress, &stream->lock, deadline);
    return stream_report(stream, stream->completed >= ticket);
}

/* ---- create and destroy ---- */

gg_status host_stream_default(struct gg_device_impl *device, struct gg_stream_impl **out)
{
    *out = device->default_stream;
    return GG_OK;
}

/* No stream is ordered with the default stream, so GG_STREAM_NONBLOCKING has no effect. */
gg_status host_stream_create(struct gg_device_impl *device, uint32_t flags, int32_t priority,
                             struct gg_stream_impl **out)
{
    (void)priority;
    if (flags & ~(uint32_t)GG_STREAM_NONBLOCKING)
        return host_api->fail(GG_ERR_UNSUPPORTED, NULL, "stream flags 0x%x", (unsigned)flags);
    struct gg_stream_impl *stream = calloc(1, sizeof *stream);
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

static void worker_stop(struct gg_stream_impl *stream)
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
        return;                                                /* still borrowed */
    host_object_add(device, &device->ending, &stream->object); /* its work goes on */
    worker_stop(stream);
    host_object_drop(device, &device->ending, &stream->object);
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
    if (native == (uint64_t)(uintptr_t)device->default_stream) {
        *is_default = 1;
        *flags = 0;
        return host_stream_default(device, out);
    }
    struct host_object *found = host_object_find(device, &device->streams, native);
    if (!found)
        return host_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                              "0x%llx is not a stream of this device: pass a gpuglue stream or its "
                              "handle, or none for the current stream",
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

static void run_host_func(const struct host_command *command)
{
    command->function(command->argument);
}

gg_status host_stream_host_func(struct gg_stream_impl *stream, void (*function)(void *),
                                void *argument)
{
    const struct host_command work = {
        .run = run_host_func, .unpaused = true, .function = function, .argument = argument};
    return host_submit(stream, &work);
}
