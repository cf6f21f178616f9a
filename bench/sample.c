/* sample.c: which instruction a thread executes at regular intervals. sample.py loads it as a library. It needs neither a profiler
 * nor its permissions. */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define MOST 65536
#define INTERVAL_NS 197000 /* no multiple of anything in the measured loops */

volatile int sample_on; /* set by the caller around what is measured */
static uintptr_t found[MOST];
static volatile int count;
static timer_t timer;

static void note(int signal, siginfo_t *info, void *context)
{
    const ucontext_t *at = context;
    (void)signal, (void)info;
    if (!sample_on || count == MOST)
        return;
#if defined __x86_64__
    found[count++] = (uintptr_t)at->uc_mcontext.gregs[16]; /* REG_RIP */
#else
    found[count++] = (uintptr_t)at->uc_mcontext.pc;
#endif
}

/* Of the calling thread, from now on. Returns 0, or -1. */
int sample_start(void)
{
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    const struct timespec interval = {.tv_nsec = INTERVAL_NS};
    const struct itimerspec timing = {interval, interval};
    event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
    count = 0;
    if (sigaction(SIGPROF, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer))
        return -1;
    return timer_settime(timer, 0, &timing, NULL);
}

int sample_stop(void)
{
    timer_delete(timer);
    return count;
}

/* "library function", or "library +offset" of a function that is not exported. */
void sample_name(int index, char *out, size_t size)
{
    Dl_info info;
    if (!dladdr((void *)found[index], &info) || !info.dli_fname) {
        snprintf(out, size, "? ?");
        return;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    const char *name = slash ? slash + 1 : info.dli_fname;
    if (info.dli_sname)
        snprintf(out, size, "%s %s", name, info.dli_sname);
    else
        snprintf(out, size, "%s +0x%zx", name, (size_t)(found[index] - (uintptr_t)info.dli_fbase));
}
