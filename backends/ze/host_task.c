/* host_task.c: host functions in stream order. From API 1.17 on the driver runs them. Before that the list signals
 * one event and waits for another, and a thread of the stream runs the function in between. Waits for events of
 * other drivers work the same way, since a list cannot wait for them. */
#include "ze.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SIGNAL_TRIES 100

struct task {
    struct task *next;
    struct ze_pooled_event *after, *then;
    void (*function)(void *);
    void *argument;
};

struct ze_tasks {
    pthread_mutex_t lock; /* what follows */
    pthread_cond_t wake;
    struct task *first, **last;
    bool ending;
    pthread_t thread;
};

/* ---- exit: it unloads the driver while threads may still be in its functions ---- */

enum { SLICE_NS = 10000000 }; /* how long a call may delay the exit */

static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static pid_t exit_process;
static atomic_int exit_calls; /* threads inside a driver call */
static atomic_bool exit_begun;

static void exit_wait_for_calls(void)
{
    if (getpid() != exit_process) /* a forked child does not have the threads */
        return;
    atomic_store(&exit_begun, true);
    while (atomic_load(&exit_calls))
        usleep(100);
}

static void exit_register(void)
{
    exit_process = getpid();
    atexit(exit_wait_for_calls);
}

/* Before and after driver calls of a task thread. Once the process exits, the thread stays here. */
static void driver_call_begin(void)
{
    atomic_fetch_add(&exit_calls, 1);
    if (!atomic_load(&exit_begun))
        return;
    atomic_fetch_sub(&exit_calls, 1);
    for (;;)
        pause();
}

static void driver_call_end(void)
{
    atomic_fetch_sub(&exit_calls, 1);
}

/* ---- the thread ---- */

static struct task *task_pop(struct ze_tasks *tasks)
{
    pthread_mutex_lock(&tasks->lock);
    while (!tasks->first && !tasks->ending)
        pthread_cond_wait(&tasks->wake, &tasks->lock);
    struct task *task = tasks->first;
    if (task)
        tasks->first = task->next;
    if (!tasks->first)
        tasks->last = &tasks->first;
    pthread_mutex_unlock(&tasks->lock);
    return task;
}

/* Nothing else will signal the event, so a failed call is repeated. */
static int task_signal(const struct task *task)
{
    int code = ze.event_signal(task->then->event);
    for (int tries = 1; tries < SIGNAL_TRIES && code && !ze_is_shut_down(code); tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        code = ze.event_signal(task->then->event);
    }
    return code;
}

/* After a failure the function does not run, but the stream must not wait forever. */
static void task_run(struct task *task)
{
    int code = ZE_RESULT_NOT_READY;
    while (code == ZE_RESULT_NOT_READY) {
        driver_call_begin();
        code = ze_pooled_event_wait(task->after, SLICE_NS);
        driver_call_end();
    }
    ze_log_failure(code, "waiting to run a host function");
    if (!code && task->function)
        task->function(task->argument);
    driver_call_begin();
    ze_log_failure(task_signal(task), "ending a host function");
    ze_pooled_event_release(task->after);
    ze_pooled_event_release(task->then);
    driver_call_end();
    free(task);
}

static void *tasks_main(void *argument)
{
    struct ze_tasks *tasks = argument;
    struct task *task;
    while ((task = task_pop(tasks)))
        task_run(task);
    return NULL;
}

/* Signals are handled by the program's own threads. Faults of this thread must still be reported. */
static int tasks_start_thread(struct ze_tasks *tasks)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failure = pthread_create(&tasks->thread, NULL, tasks_main, tasks);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failure)
        pthread_setname_np(tasks->thread, "gpuglue-ze");
    return failure ? ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY : 0;
}

static void tasks_free(struct ze_tasks *tasks)
{
    pthread_cond_destroy(&tasks->wake);
    pthread_mutex_destroy(&tasks->lock);
    free(tasks);
}

static int tasks_new(struct ze_tasks **out)
{
    struct ze_tasks *tasks = calloc(1, sizeof *tasks);
    if (!tasks)
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    pthread_once(&exit_once, exit_register);
    pthread_mutex_init(&tasks->lock, NULL);
    pthread_cond_init(&tasks->wake, NULL);
    tasks->last = &tasks->first;
    const int code = tasks_start_thread(tasks);
    if (code)
        tasks_free(tasks);
    else
        *out = tasks;
    return code;
}

void ze_tasks_end(struct gg_stream_impl *stream)
{
    struct ze_tasks *tasks = stream->tasks;
    if (!tasks)
        return;
    pthread_mutex_lock(&tasks->lock);
    tasks->ending = true;
    pthread_cond_signal(&tasks->wake);
    pthread_mutex_unlock(&tasks->lock);
    pthread_join(tasks->thread, NULL);
    tasks_free(tasks);
}

/* ---- queueing ---- */

static void task_push(struct ze_tasks *tasks, struct task *task)
{
    pthread_mutex_lock(&tasks->lock);
    *tasks->last = task;
    tasks->last = &task->next;
    pthread_cond_signal(&tasks->wake);
    pthread_mutex_unlock(&tasks->lock);
}

static int task_new(struct gg_stream_impl *stream, struct task **out)
{
    struct task *task = calloc(1, sizeof *task);
    if (!task)
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    ze_stream_lock(stream);
    int code = stream->tasks ? 0 : tasks_new(&stream->tasks);
    pthread_mutex_unlock(&stream->lock);
    if (!code)
        code = ze_pooled_event_take(stream->device->driver, false, &task->then);
    if (code)
        free(task);
    else
        *out = task;
    return code;
}

/* stream->task_lock is held. The wait is appended first: a failure after it would block the stream forever, and
 * nothing after it can fail. */
static int task_queue(struct gg_stream_impl *stream, struct ze_pooled_event *after,
                      void (*function)(void *), void *argument)
{
    struct task *task = NULL;
    int code = task_new(stream, &task);
    if (code)
        return code;
    code = ze_stream_wait_pooled(stream, task->then);
    if (code) {
        ze_pooled_event_abandon(task->then);
        free(task);
        return code;
    }
    task->after = ze_pooled_event_retain(after);
    task->function = function;
    task->argument = argument;
    task_push(stream->tasks, task);
    return 0;
}

int ze_stream_task(struct gg_stream_impl *stream, struct ze_pooled_event *after,
                   void (*function)(void *), void *argument)
{
    pthread_mutex_lock(&stream->task_lock);
    const int code = task_queue(stream, after, function, argument);
    pthread_mutex_unlock(&stream->task_lock);
    return code;
}

/* ---- host functions ---- */

static int host_func_by_driver(struct gg_stream_impl *stream, void (*function)(void *),
                               void *argument)
{
    return ZE_APPEND(stream,
                     ze.append_host_func(stream->list, function, argument, NULL, NULL, 0, NULL));
}

static int host_func_by_thread(struct gg_stream_impl *stream, void (*function)(void *),
                               void *argument)
{
    struct ze_pooled_event *after = NULL;
    pthread_mutex_lock(&stream->task_lock);
    int code = ze_stream_record(stream, &after);
    if (!code)
        code = task_queue(stream, after, function, argument);
    pthread_mutex_unlock(&stream->task_lock);
    ze_pooled_event_release(after);
    return code;
}

gg_status ze_stream_host_func(struct gg_stream_impl *stream, void (*function)(void *),
                              void *argument)
{
    struct ze_driver *driver = stream->device->driver;
    int code = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    if (ze.append_host_func && !atomic_load(&driver->no_host_func))
        code = host_func_by_driver(stream, function, argument);
    if (ze_is_unsupported(code) && !stream->captured) {
        atomic_store(&driver->no_host_func, true);
        code = host_func_by_thread(stream, function, argument);
    }
    return code ? ze_fail(code, "enqueueing a host function") : GG_OK;
}
