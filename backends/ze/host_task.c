/* host_task.c: host functions in stream order. From API 1.17 on the driver runs them. Below that the list
 * signals one event and waits for another, and a thread of the stream's own stands between the two. The
 * same brings in events of other drivers, which a list cannot wait for. */
#include "ze.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SIGNAL_TRIES 100

struct task {
    struct task *next;
    struct ze_point *after, *then;
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

/* ---- the end of the process: it takes the driver's library away, whatever threads are doing ---- */

enum { SLICE_NS = 10000000 }; /* how long a call may keep the end waiting */

static pthread_once_t watched = PTHREAD_ONCE_INIT;
static pid_t watching;
static atomic_int inside; /* threads that are in a call of the driver's */
static atomic_bool ended;

static void end_calls(void)
{
    if (getpid() != watching) /* a forked child has none of the threads */
        return;
    atomic_store(&ended, true);
    while (atomic_load(&inside))
        usleep(100);
}

static void watch_end(void)
{
    watching = getpid();
    atexit(end_calls);
}

/* Around calls of the driver's from a thread of ours. Once the process ends a thread stays here. */
static void enter_driver(void)
{
    atomic_fetch_add(&inside, 1);
    if (!atomic_load(&ended))
        return;
    atomic_fetch_sub(&inside, 1);
    for (;;)
        pause();
}

static void leave_driver(void)
{
    atomic_fetch_sub(&inside, 1);
}

/* ---- the thread ---- */

static struct task *next_task(struct ze_tasks *tasks)
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

/* Nobody else will signal it, so a driver that refuses is asked again. */
static int let_go_on(const struct task *task)
{
    int code = ze.event_signal(task->then->event);
    for (int tries = 1; tries < SIGNAL_TRIES && code && !ze_is_gone(code); tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        code = ze.event_signal(task->then->event);
    }
    return code;
}

/* After a failure the function does not run, but the stream must not wait for ever. */
static void run(struct task *task)
{
    int code = ZE_RESULT_NOT_READY;
    while (code == ZE_RESULT_NOT_READY) {
        enter_driver();
        code = ze_point_wait(task->after, SLICE_NS);
        leave_driver();
    }
    ze_forget(code, "waiting for a host function's turn");
    if (!code && task->function)
        task->function(task->argument);
    enter_driver();
    ze_forget(let_go_on(task), "ending a host function");
    ze_point_release(task->after);
    ze_point_release(task->then);
    leave_driver();
    free(task);
}

static void *run_tasks(void *argument)
{
    struct ze_tasks *tasks = argument;
    struct task *task;
    while ((task = next_task(tasks)))
        run(task);
    return NULL;
}

/* Signals are for the program's own threads; a fault of this one must still be reported. */
static int start_thread(struct ze_tasks *tasks)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failure = pthread_create(&tasks->thread, NULL, run_tasks, tasks);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failure)
        pthread_setname_np(tasks->thread, "gpuglue-ze");
    return failure ? ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY : 0;
}

static int new_tasks(struct ze_tasks **out)
{
    struct ze_tasks *tasks = calloc(1, sizeof *tasks);
    if (!tasks)
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    pthread_once(&watched, watch_end);
    pthread_mutex_init(&tasks->lock, NULL);
    pthread_cond_init(&tasks->wake, NULL);
    tasks->last = &tasks->first;
    const int code = start_thread(tasks);
    if (!code) {
        *out = tasks;
        return 0;
    }
    pthread_cond_destroy(&tasks->wake);
    pthread_mutex_destroy(&tasks->lock);
    free(tasks);
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
    pthread_cond_destroy(&tasks->wake);
    pthread_mutex_destroy(&tasks->lock);
    free(tasks);
}

/* ---- queueing ---- */

static void push(struct ze_tasks *tasks, struct task *task)
{
    pthread_mutex_lock(&tasks->lock);
    *tasks->last = task;
    tasks->last = &task->next;
    pthread_cond_signal(&tasks->wake);
    pthread_mutex_unlock(&tasks->lock);
}

static int prepare(struct gg_stream_impl *stream, struct task **out)
{
    struct task *task = calloc(1, sizeof *task);
    if (!task)
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    pthread_mutex_lock(&stream->lock);
    int code = stream->tasks ? 0 : new_tasks(&stream->tasks);
    pthread_mutex_unlock(&stream->lock);
    if (!code)
        code = ze_point_take(stream->device->driver, false, &task->then);
    if (code)
        free(task);
    else
        *out = task;
    return code;
}

/* With stream->task_lock held. The wait is appended first: what fails after it would hold the stream for
 * ever, and nothing can. */
static int queue_task(struct gg_stream_impl *stream, struct ze_point *after,
                      void (*function)(void *), void *argument)
{
    struct task *task = NULL;
    int code = prepare(stream, &task);
    if (code)
        return code;
    code = ze_stream_wait_point(stream, task->then);
    if (code) {
        ze_point_abandon(task->then);
        free(task);
        return code;
    }
    task->after = ze_point_retain(after);
    task->function = function;
    task->argument = argument;
    push(stream->tasks, task);
    return 0;
}

int ze_stream_task(struct gg_stream_impl *stream, struct ze_point *after, void (*function)(void *),
                   void *argument)
{
    pthread_mutex_lock(&stream->task_lock);
    const int code = queue_task(stream, after, function, argument);
    pthread_mutex_unlock(&stream->task_lock);
    return code;
}

/* ---- host functions ---- */

static int by_driver(struct gg_stream_impl *stream, void (*function)(void *), void *argument)
{
    int code = ze_append_begin(stream);
    if (!code)
        code = ze.append_host_func(stream->list, function, argument, NULL, NULL, 0, NULL);
    return ze_append_end(stream, code);
}

static int by_thread(struct gg_stream_impl *stream, void (*function)(void *), void *argument)
{
    struct ze_point *after = NULL;
    pthread_mutex_lock(&stream->task_lock);
    int code = ze_stream_mark(stream, &after);
    if (!code)
        code = queue_task(stream, after, function, argument);
    pthread_mutex_unlock(&stream->task_lock);
    ze_point_release(after);
    return code;
}

gg_status ze_stream_host_func(struct gg_stream_impl *stream, void (*function)(void *),
                              void *argument)
{
    struct ze_driver *driver = stream->device->driver;
    int code = ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    if (ze.append_host_func && !atomic_load(&driver->no_host_func))
        code = by_driver(stream, function, argument);
    if (ze_is_lacking(code)) {
        atomic_store(&driver->no_host_func, true);
        code = by_thread(stream, function, argument);
    }
    return code ? ze_fail(code, "queueing a host function") : GG_OK;
}
