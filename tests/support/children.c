/* children.c: runs each test in a process, with a time limit, and reports the results. */
#include "children.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_JOBS 64

struct test {
    const char *suite, *name;
    char verdict[96]; /* empty if it passed */
    bool skipped;
    char *output; /* of a failed test, which is printed again at the end */
};

/* A running test. */
struct child {
    pid_t pid; /* also the id of its process group; 0: none */
    struct test *test;
    int output; /* a memfd, so that a write never blocks */
    bool timed_out;
    struct timespec started;
};

static struct test *tests;
static size_t test_count, test_room;
static struct child children[MOST_JOBS];
static sigset_t before; /* the signal mask of the children */

void children_add(const char *suite, const char *test)
{
    if (test_count == test_room) {
        test_room = test_room ? 2 * test_room : 256;
        tests = realloc(tests, test_room * sizeof *tests);
        if (!tests)
            abort();
    }
    tests[test_count++] = (struct test){.suite = suite, .name = test};
}

/* ---- starting and ending one ---- */

static void child_begin(int output, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    sigprocmask(SIG_SETMASK, &before, NULL);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    close(output);
}

static bool child_start(struct child *child, char *const arguments[])
{
    pid_t self = getpid();
    child->timed_out = false;
    child->output = memfd_create("output", MFD_CLOEXEC);
    clock_gettime(CLOCK_MONOTONIC, &child->started);
    fflush(NULL);
    child->pid = child->output < 0 ? -1 : fork();
    if (child->pid == 0) {
        child_begin(child->output, self);
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    if (child->pid > 0)
        setpgid(child->pid, child->pid); /* in both processes, because either may run first */
    return child->pid > 0;
}

static double seconds_since(const struct timespec *then)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) + 1e-9 * (double)(now.tv_nsec - then->tv_nsec);
}

static char *child_output(const struct child *child)
{
    off_t size = lseek(child->output, 0, SEEK_END);
    char *text = size < 0 ? NULL : calloc(1, (size_t)size + 1);
    if (text && pread(child->output, text, (size_t)size, 0) < size)
        text[0] = '\0';
    return text;
}

/* Kills the child's remaining processes before its pid can be reused. */
static int child_reap(struct child *child)
{
    int status = 0;
    kill(-child->pid, SIGKILL);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
    }
    child->pid = 0;
    return status;
}

/* ---- the report ---- */

/* The reason, from the output's line that begins with SKIP_MARK. */
static void judge_skip(struct test *test, const char *output)
{
    const char *reason = output ? strstr(output, SKIP_MARK) : NULL;
    test->skipped = reason != NULL;
    if (reason)
        snprintf(test->verdict, sizeof test->verdict, "%.*s",
                 (int)strcspn(reason + strlen(SKIP_MARK), "\n"), reason + strlen(SKIP_MARK));
    else
        snprintf(test->verdict, sizeof test->verdict, "it exits as skipped and gives no reason");
}

static void judge(struct test *test, int status, bool timed_out, long limit, const char *output)
{
    if (timed_out)
        snprintf(test->verdict, sizeof test->verdict, "it did not end in %ld s", limit);
    else if (WIFSIGNALED(status))
        snprintf(test->verdict, sizeof test->verdict, "it was killed by signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) == SKIPPED)
        judge_skip(test, output);
    else if (WEXITSTATUS(status) == 0)
        snprintf(test->verdict, sizeof test->verdict, "it ended the process");
    else if (WEXITSTATUS(status) != PASSED)
        snprintf(test->verdict, sizeof test->verdict, "exit status %d", WEXITSTATUS(status));
}

static bool has_failed(const struct test *test)
{
    return test->verdict[0] && !test->skipped;
}

static void report(const struct test *test, double seconds, const char *output, bool verbose)
{
    const char *word = !test->verdict[0] ? "ok" : test->skipped ? "skipped" : "FAILED";
    printf("%-7s %6.2f s  %s/%s%s%s\n", word, seconds, test->suite, test->name,
           test->verdict[0] ? ": " : "", test->verdict);
    if (output && (verbose || has_failed(test)))
        printf("%s\n", output);
    fflush(stdout);
}

static size_t count_reason(const char *reason)
{
    size_t count = 0;
    for (size_t i = 0; i < test_count; i++)
        count += tests[i].skipped && strcmp(tests[i].verdict, reason) == 0;
    return count;
}

static void report_skips(void)
{
    for (size_t i = 0; i < test_count; i++) {
        bool seen = !tests[i].skipped;
        for (size_t k = 0; k < i && !seen; k++)
            seen = tests[k].skipped && strcmp(tests[k].verdict, tests[i].verdict) == 0;
        if (!seen)
            printf("  %zu skipped: %s\n", count_reason(tests[i].verdict), tests[i].verdict);
    }
}

static void report_failure(const struct test *test)
{
    printf("  failed: %s/%s: %s\n", test->suite, test->name, test->verdict);
    if (test->output)
        printf("%s\n", test->output);
}

static int report_all(void)
{
    size_t failed = 0, skipped = 0;
    for (size_t i = 0; i < test_count; i++) {
        failed += has_failed(&tests[i]);
        skipped += tests[i].skipped;
    }
    report_skips();
    for (size_t i = 0; i < test_count; i++)
        if (has_failed(&tests[i]))
            report_failure(&tests[i]);
    printf("%zu passed, %zu failed, %zu skipped\n", test_count - failed - skipped, failed, skipped);
    return failed ? 1 : 0;
}

/* ---- all of them ---- */

static void start_test(struct child *child, struct test *test, const char *target)
{
    char path[256], *own = strdup(target);
    char program[] = "test", option[] = "--run-test";
    char *arguments[] = {program, own, option, path, NULL};
    snprintf(path, sizeof path, "%s/%s", test->suite, test->name);
    setenv("GPUGLUE_TEST_NAME", path, 1); /* for the reports of its processes */
    child->test = test;
    if (!child_start(child, arguments)) {
        perror("cannot start a process for a test");
        exit(1);
    }
    free(own);
}

static void end_test(struct child *child, const struct limits *limits)
{
    double seconds = seconds_since(&child->started);
    int status = child_reap(child);
    char *output = child_output(child);
    judge(child->test, status, child->timed_out, limits->seconds, output);
    report(child->test, seconds, output, limits->verbose);
    close(child->output);
    if (has_failed(child->test))
        child->test->output = output;
    else
        free(output);
}

static struct child *find_child(pid_t pid)
{
    for (size_t i = 0; i < MOST_JOBS; i++)
        if (children[i].pid == pid)
            return &children[i];
    return NULL;
}

/* Reaps a test that has ended; returns whether there was one. */
static bool end_one(const struct limits *limits)
{
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
        return false;
    struct child *child = find_child(info.si_pid);
    if (child)
        end_test(child, limits);
    return child != NULL;
}

static void kill_children(void)
{
    for (size_t i = 0; i < MOST_JOBS; i++)
        if (children[i].pid > 0)
            kill(-children[i].pid, SIGKILL);
}

static void end_late_ones(long limit)
{
    for (size_t i = 0; i < MOST_JOBS; i++)
        if (children[i].pid > 0 && seconds_since(&children[i].started) > (double)limit) {
            children[i].timed_out = true;
            kill(-children[i].pid, SIGKILL);
        }
}

/* Waits until a child has ended, but at most half a second, the resolution of time limits. */
static void wait_for_children(const sigset_t *signals)
{
    const struct timespec half = {.tv_nsec = 500000000};
    int signal = sigtimedwait(signals, NULL, &half);
    if (signal != SIGINT && signal != SIGTERM)
        return;
    kill_children();
    printf("ended by %s\n", strsignal(signal));
    exit(1);
}

static sigset_t block_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &before);
    return signals;
}

static size_t jobs_for(const struct limits *limits)
{
    cpu_set_t processors;
    long jobs = limits->jobs;
    if (!jobs)
        jobs = sched_getaffinity(0, sizeof processors, &processors) ? 1 : CPU_COUNT(&processors);
    return jobs < MOST_JOBS ? (size_t)jobs : MOST_JOBS;
}

int children_run(const char *target, const struct limits *limits)
{
    const sigset_t signals = block_signals();
    const size_t jobs = jobs_for(limits);
    size_t next = 0, running = 0;
    while (next < test_count || running) {
        for (; running < jobs && next < test_count; running++)
            start_test(find_child(0), &tests[next++], target);
        end_late_ones(limits->seconds);
        if (end_one(limits))
            running--;
        else
            wait_for_children(&signals);
    }
    return report_all();
}

int children_available(const char *target)
{
    char program[] = "test", option[] = "--run-available", *own = strdup(target);
    char *arguments[] = {program, own, option, NULL};
    struct child *child = &children[0];
    sigprocmask(SIG_BLOCK, NULL, &before);
    if (!child_start(child, arguments)) {
        perror("no process");
        return 1;
    }
    siginfo_t info;
    while (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT) && errno == EINTR) {
    }
    int status = child_reap(child);
    char *output = child_output(child);
    if (output && status)
        fputs(output, stderr);
    close(child->output);
    free(output);
    free(own);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
