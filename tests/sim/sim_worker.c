/* sim_worker.c: the threads that run commands: one keeper thread, started at init, and as many
 * workers as commands that block at once. */
#include "sim_control.h"
#include "sim_engine.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

_Thread_local bool sim_in_host_function;

enum { TICK_NS = 1000000, PATIENCE_TICKS = 20, STACK_BYTES = 1 << 20 };

static pthread_cond_t work_ready = PTHREAD_COND_INITIALIZER;
static pthread_cond_t keeper_wake = PTHREAD_COND_INITIALIZER;
static struct sim_command *first, *last;             /* ready commands */
static struct sim_command *polled;                   /* commands that wait for a value in memory */
static void (*library_kernel)(void *data);           /* of the simulated RCCL */
static struct sim_command *held, **held_end = &held; /* host functions behind one that runs */
static bool host_function_runs;                      /* only with sim.serial_host */
static int ready_count, idle_count;
static sem_t thread_began; /* one thread starts at a time: under the lock */

static void *worker(void *unused);

/* As in the vendors' libraries, no signal of the client is delivered to these threads. Only their
 * own faults are not blocked. */
static void block_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

/* Every new thread calls this first, when the C library has set it up. */
static void thread_has_begun(void)
{
    sim_in_host_function = false; /* allocates the thread's copy */
    prctl(PR_SET_NAME, "gpuglue-sim");
    sem_post(&thread_began);
}

/* Waits until the thread runs: its first allocations must not meet a fork, after which the address sanitizer of older
 * compilers (gcc before 14) never ends an allocation in the child. */
static bool start_thread(void *(*body)(void *))
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t before;
    int failed;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    block_signals(&before);
    failed = pthread_create(&thread, &attributes, body, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    while (!failed && sem_wait(&thread_began) && errno == EINTR)
        ;
    return !failed;
}

void sim_is_kernel(void (*function)(void *data))
{
    pthread_mutex_lock(&sim.lock);
    library_kernel = function;
    pthread_mutex_unlock(&sim.lock);
}

static bool is_serial(const struct sim_command *command)
{
    return sim.serial_host && command->work.kind == SIM_HOST && !command->work.host.kernel &&
           command->work.host.run != library_kernel;
}

static bool hold_host_function(struct sim_command *command)
{
    if (!host_function_runs) {
        host_function_runs = true;
        return false;
    }
    command->chain = NULL;
    *held_end = command;
    held_end = &command->chain;
    return true;
}

static void run_next_host_function(void)
{
    struct sim_command *next = held;
    host_function_runs = false;
    if (!next)
        return;
    held = next->chain;
    if (!held)
        held_end = &held;
    sim_worker_ready(next);
}

void sim_worker_ready(struct sim_command *command)
{
    if (is_serial(command) && hold_host_function(command))
        return;
    const bool overtakes = command->loose && first && sim_random(2);
    command->chain = overtakes ? first : NULL;
    if (last && !overtakes)
        last->chain = command;
    else
        first = command;
    if (!overtakes)
        last = command;
    ready_count++;
    sim_worker_wake();
}

void sim_worker_wake(void)
{
    pthread_cond_signal(&keeper_wake);
    if (!ready_count || sim.hold)
        return;
    pthread_cond_broadcast(&work_ready);
    for (int missing = ready_count - idle_count; missing > 0; missing--) {
        if (!start_thread(worker))
            return;
        idle_count++; /* counts the new thread until it takes its first command */
    }
}

static struct sim_command *take(void)
{
    struct sim_command *command = first;
    first = command->chain;
    if (!first)
        last = NULL;
    command->chain = NULL;
    ready_count--;
    return command;
}

static void run_one(struct sim_command *command)
{
    const bool serial = is_serial(command);
    int status = SIM_OK;
    command->state = SIM_RUNNING;
    if (!command->context->lost || command->work.kind == SIM_FREE) {
        pthread_mutex_unlock(&sim.lock);
        status = sim_run(command);
        pthread_mutex_lock(&sim.lock);
    }
    if (status == SIM_NOT_READY) {
        command->chain = polled;
        polled = command;
        return;
    }
    if (status)
        sim_context_lose(command->context, status);
    sim_command_finish(command);
    if (serial)
        run_next_host_function();
}

static void *worker(void *unused)
{
    (void)unused;
    thread_has_begun();
    pthread_mutex_lock(&sim.lock);
    for (;;) {
        while (!first || sim.hold)
            pthread_cond_wait(&work_ready, &sim.lock);
        idle_count--;
        run_one(take());
        idle_count++;
    }
    return NULL;
}

static void retry_polled(void)
{
    struct sim_command *list = polled;
    polled = NULL;
    while (list) {
        struct sim_command *command = list;
        list = command->chain;
        command->state = SIM_RELEASED;
        sim_worker_ready(command);
    }
}

static void tick(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += TICK_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&keeper_wake, &sim.lock, &until);
}

/* Releases held work after a while, because a client may poll memory without any call. */
static void *keeper(void *unused)
{
    uint64_t seen = 0;
    int quiet = 0;
    (void)unused;
    thread_has_begun();
    pthread_mutex_lock(&sim.lock);
    for (;;) {
        while (!sim_oldest)
            pthread_cond_wait(&keeper_wake, &sim.lock);
        tick();
        if (polled)
            retry_polled();
        if (ready_count > idle_count) /* a thread could not be started */
            sim_worker_wake();
        quiet = seen == sim.serial ? quiet + 1 : 0;
        seen = sim.serial;
        if (quiet < PATIENCE_TICKS || sim.hold)
            continue;
        for (struct sim_command *command = sim_oldest; command; command = command->next)
            sim_command_demand(command);
    }
    return NULL;
}

void sim_worker_retry(void)
{
    retry_polled();
}

int sim_worker_start(void)
{
    if (sem_init(&thread_began, 0, 0))
        return SIM_NO_MEMORY;
    return start_thread(keeper) ? SIM_OK : SIM_NO_MEMORY;
}
