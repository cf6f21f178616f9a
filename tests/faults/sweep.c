/* sweep.c: makes each vendor call of one program fail in turn, in a new process: once with an
 * error, once with out-of-memory and once with a lost device. For queries and waits, another trial
 * makes all their calls fail. Of each function the first call, the last call and a few at even
 * intervals fail, GPUGLUE_SWEEP_CALLS in all; with GPUGLUE_TEST_FULL=1 or with NAME each call fails in turn.
 * GPUGLUE_SWEEP_BESIDE is for a sweep beside another: what differs there, a variable without which that
 * runs or NAME=VALUE, separated by commas. Of a function that the program calls equally often there, only
 * the last call fails, with an error.
 *
 *     fault_sweep BACKEND [NAME]    all functions, or one
 *
 * It needs a simulated driver; without one it exits with 77. */
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_ONCE 4
#define HANG_SECONDS 600 /* a trial takes less than a second */
#define SHOWN 20         /* the number of complaints that are printed */
#define FEW 3            /* calls of one name that fail, if not all of them do, by default */
#define POLLED 200       /* a function with more calls is a poll, whose calls are alike */
#define POLLS 100        /* of a poll: the first calls, and as many at even intervals */

static struct sweep {
    const char *backend;
    const char *only; /* NULL: every name */
    bool full;        /* every call of a name, not a few */
    int few;
    const char *beside; /* what differs in the other sweep; NULL: there is none */
    bool as_other;      /* the trial that starts runs as in that */
    char directory[64];
    struct outcome baseline;
    struct trial trial[AT_ONCE];
    struct report found; /* the program's vendor calls */
    struct report other; /* those in the other sweep */
    int alike;           /* functions that it calls equally often */
    int injected[CLASSES], verdicts[VERDICTS];
    int complaints;
} sweep;

static const char *const verdict_names[VERDICTS] = {
    "right", "not reached", "crash", "hang", "host memory leaked", "vendor objects leaked",
    "wrong"};

/* ---- one process ---- */

static void describe(const struct fault *fault, char *out, size_t size)
{
    if (!fault->name[0])
        snprintf(out, size, "no fault");
    else
        snprintf(out, size, "%s, call %d%s: %s", fault->name, fault->nth,
                 fault->onwards ? " and all later" : "", class_name(fault->class));
}

static void change_variables(const char *changes)
{
    char change[1024];
    for (size_t length; *changes; changes += length + (changes[length] == ',')) {
        length = strcspn(changes, ",");
        if (length >= sizeof change)
            _exit(121);
        snprintf(change, sizeof change, "%.*s", (int)length, changes);
        char *value = strchr(change, '=');
        if (!value) {
            unsetenv(change);
            continue;
        }
        *value = '\0';
        setenv(change, value + 1, 1);
    }
}

static void become_trial(struct trial *trial)
{
    const struct fault *fault = &trial->fault;
    char path[160], rule[128];
    snprintf(path, sizeof path, "%s/output", trial->directory);
    if (!freopen(path, "w", stdout) || dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
        _exit(120);
    snprintf(path, sizeof path, "%s/report", trial->directory);
    setenv("GPUGLUE_SIM_REPORT", path, 1);
    if (fault->name[0]) {
        snprintf(rule, sizeof rule, "%s:%d%s=%d", fault->name, fault->nth,
                 fault->onwards ? "+" : "", code_of(fault->name, fault->class));
        setenv("GPUGLUE_SIM_FAIL", rule, 1);
    }
    if (sweep.as_other)
        change_variables(sweep.beside);
    alarm(HANG_SECONDS);
    run_program(sweep.backend, trial->outcome);
    exit(0);
}

static void start_trial(struct trial *trial, const struct fault *fault)
{
    char path[160];
    snprintf(path, sizeof path, "%s/report", trial->directory);
    unlink(path);
    memset(trial->outcome, 0, sizeof *trial->outcome);
    trial->fault = *fault;
    fflush(stdout);
    trial->child = fork();
    if (trial->child == 0)
        become_trial(trial);
    if (trial->child < 0) {
        perror("fork");
        exit(1);
    }
}

static void complain(const struct trial *trial, enum verdict verdict, const char *why)
{
    char text[160];
    describe(&trial->fault, text, sizeof text);
    if (++sweep.complaints > SHOWN && !getenv("GPUGLUE_SWEEP_VERBOSE"))
        return;
    printf("%s: %s: %s (%s)\n", sweep.backend, text, verdict_names[verdict], why);
    print_output(trial->directory);
}

static void count_reported(const char *name, bool reported)
{
    for (size_t i = 0; i < sweep.found.count; i++)
        if (!strcmp(sweep.found.name[i].name, name)) {
            sweep.found.name[i].reported += reported;
            sweep.found.name[i].silent += !reported;
        }
}

static void end_trial(struct trial *trial)
{
    char why[1400];
    bool reported;
    trial->child = 0;
    read_report(trial->directory, &trial->report);
    const enum verdict verdict = judge(trial, &sweep.baseline, &reported, why, sizeof why);
    if (verdict == RIGHT)
        count_reported(trial->fault.name, reported);
    sweep.verdicts[verdict]++;
    if (verdict != NOT_REACHED)
        sweep.injected[trial->fault.class]++;
    if (verdict != RIGHT && verdict != NOT_REACHED)
        complain(trial, verdict, why);
}

/* Waits until one of the running trials has ended and returns its place, which is then free. */
static struct trial *wait_for_one(void)
{
    int ended = 0;
    const pid_t child = wait(&ended);
    for (int i = 0; i < AT_ONCE; i++)
        if (child > 0 && sweep.trial[i].child == child) {
            sweep.trial[i].ended = ended;
            end_trial(&sweep.trial[i]);
            return &sweep.trial[i];
        }
    fprintf(stderr, "an unknown child process has ended\n");
    exit(1);
}

static struct trial *free_place(void)
{
    for (int i = 0; i < AT_ONCE; i++)
        if (!sweep.trial[i].child)
            return &sweep.trial[i];
    return wait_for_one();
}

/* ---- all trials ---- */

static void inject(const char *name, int nth, bool onwards)
{
    struct fault fault = {.nth = nth, .onwards = onwards};
    snprintf(fault.name, sizeof fault.name, "%s", name);
    for (int class = 0; class < CLASSES; class ++) {
        fault.class = (enum class) class;
        start_trial(free_place(), &fault);
    }
}

static void inject_one(const char *name, int nth)
{
    struct fault fault = {.nth = nth, .class = CLASS_ERROR};
    snprintf(fault.name, sizeof fault.name, "%s", name);
    start_trial(free_place(), &fault);
}

/* Whether the other sweep lets the same calls of this function fail. */
static bool is_alike(const char *name, int calls)
{
    return sweep.beside && !sweep.full && calls_of(&sweep.other, name) == calls;
}

static bool waits_or_queries(const char *name)
{
    return strstr(name, "Query") || strstr(name, "Synchronize");
}

static bool all_fail(int calls)
{
    return sweep.full ? calls <= POLLED : calls <= sweep.few;
}

/* The number of the @p i-th call that fails, or a number above @p calls at the end. */
static int chosen_call(int i, int calls)
{
    if (all_fail(calls) || (sweep.full && i < POLLS))
        return i + 1;
    if (sweep.few == 1 && !sweep.full)
        return calls + i;
    if (!sweep.full)
        return i < sweep.few ? 1 + (int)((int64_t)i * (calls - 1) / (sweep.few - 1)) : calls + 1;
    return POLLS + (i - POLLS + 1) * (calls / POLLS);
}

/* Checks the lists of functions whose failures may be silent. A failure of each function in
 * `sometimes` must have been reported; an entry without a silent failure is not needed. */
static void check_exemptions(void)
{
    for (size_t i = 0; i < sweep.found.count; i++) {
        const char *name = sweep.found.name[i].name;
        const int reported = sweep.found.name[i].reported, silent = sweep.found.name[i].silent;
        if (!(sweep.full || all_fail(sweep.found.name[i].calls)) || !(reported + silent))
            continue;
        if (is_alike(name, sweep.found.name[i].calls)) /* a single failure, which may be silent */
            continue;
        if (!reported && must_be_reported_once(name)) {
            printf("%s: %s: none of its failures is reported\n", sweep.backend, name);
            sweep.verdicts[WRONG]++;
        }
        if (!silent && is_exempt(name))
            printf("%s: %s: all its failures are reported\n", sweep.backend, name);
        if (reported && is_exempt(name) && !must_be_reported_once(name))
            printf("%s: %s: some of its failures are reported\n", sweep.backend, name);
    }
}

static void inject_into(const char *name, int calls)
{
    if (is_alike(name, calls)) {
        sweep.alike++;
        inject_one(name, calls);
        return;
    }
    for (int i = 0; chosen_call(i, calls) <= calls; i++)
        inject(name, chosen_call(i, calls), false);
    if (waits_or_queries(name))
        inject(name, 1, true);
}

static int inject_everywhere(void)
{
    const struct report *report = &sweep.found;
    int calls = 0;
    for (size_t i = 0; i < report->count; i++) {
        const char *name = report->name[i].name;
        const int count = report->name[i].calls;
        if (sweep.only && strcmp(sweep.only, name) != 0)
            continue;
        calls += count;
        inject_into(name, count);
    }
    for (int i = 0; i < AT_ONCE; i++)
        while (sweep.trial[i].child)
            wait_for_one();
    check_exemptions();
    return calls;
}

static void make_places(void)
{
    snprintf(sweep.directory, sizeof sweep.directory, "/tmp/gpuglue-sweep-XXXXXX");
    if (!mkdtemp(sweep.directory)) {
        perror(sweep.directory);
        exit(1);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        struct trial *trial = &sweep.trial[i];
        snprintf(trial->directory, sizeof trial->directory, "%s/%d", sweep.directory, i);
        trial->outcome = mmap(NULL, sizeof *trial->outcome, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (mkdir(trial->directory, 0700) || trial->outcome == MAP_FAILED) {
            perror("the directory of a trial");
            exit(1);
        }
    }
}

static void remove_places(void)
{
    static const char *const files[] = {"report", "output"};
    char path[160];
    for (int i = 0; i < AT_ONCE; i++) {
        for (int j = 0; j < 2; j++) {
            snprintf(path, sizeof path, "%s/%s", sweep.trial[i].directory, files[j]);
            unlink(path);
        }
        rmdir(sweep.trial[i].directory);
    }
    rmdir(sweep.directory);
}

/* Runs the program without a fault, which must succeed. Returns the simulated driver's report. */
static struct report run_without_fault(bool as_other)
{
    const struct fault none = {.name = ""};
    struct trial *trial = &sweep.trial[0];
    sweep.as_other = as_other;
    start_trial(trial, &none);
    sweep.as_other = false;
    while (trial->child)
        wait_for_one();
    sweep.baseline = *trial->outcome;
    for (int i = 0; i < sweep.baseline.count && getenv("GPUGLUE_SWEEP_VERBOSE"); i++)
        printf("%3d %-46s %s\n", i, sweep.baseline.result[i].name,
               gg_status_name((gg_status)sweep.baseline.result[i].status));
    for (size_t i = 0; i < trial->report.count && getenv("GPUGLUE_SWEEP_VERBOSE"); i++)
        printf("%5d %s\n", trial->report.name[i].calls, trial->report.name[i].name);
    sweep.injected[0] = sweep.verdicts[RIGHT] = 0;
    for (int i = 0; i < sweep.baseline.count; i++)
        if (sweep.baseline.result[i].unexpected) {
            printf("%s: no fault: %s: %s\n", sweep.backend, sweep.baseline.result[i].name,
                   sweep.baseline.result[i].message);
            sweep.verdicts[WRONG]++;
        }
    return trial->report;
}

static const char *selection(void)
{
    static char text[128];
    if (sweep.full)
        return "every call (200 of a polled function)";
    int length = snprintf(text, sizeof text, "%slast",
                          sweep.few == 1   ? ""
                          : sweep.few == 2 ? "first and "
                                           : "first, ");
    if (sweep.few > 2)
        length += snprintf(text + length, sizeof text - (size_t)length, " and %d call%s between",
                           sweep.few - 2, sweep.few == 3 ? "" : "s");
    if (sweep.beside)
        snprintf(text + length, sizeof text - (size_t)length,
                 ", only the last of the %d functions that another sweep calls equally often",
                 sweep.alike);
    return text;
}

static int few_from_environment(void)
{
    const char *text = getenv("GPUGLUE_SWEEP_CALLS");
    const int few = text ? atoi(text) : FEW;
    return few < 1 ? 1 : few;
}

static int summarize(int calls)
{
    const int *injected = sweep.injected, *verdicts = sweep.verdicts;
    const int bad = verdicts[CRASHED] + verdicts[HUNG] + verdicts[LEAKED_HOST_MEMORY] +
                    verdicts[LEAKED_VENDOR_OBJECTS] + verdicts[WRONG];
    printf(
        "%s, %s: %d vendor calls of %zu functions found; %d failures injected (%d errors, %d out "
        "of memory, %d device lost), %d not reached: crashes %d, hangs %d, host leaks %d, vendor "
        "leaks %d, wrong statuses %d\n",
        sweep.backend, selection(), calls, sweep.found.count,
        injected[0] + injected[1] + injected[2], injected[0], injected[1], injected[2],
        verdicts[NOT_REACHED], verdicts[CRASHED], verdicts[HUNG], verdicts[LEAKED_HOST_MEMORY],
        verdicts[LEAKED_VENDOR_OBJECTS], verdicts[WRONG]);
    return bad ? 1 : 0;
}

int main(int argc, char **argv)
{
    int result = 1;
    if (argc < 2) {
        fprintf(stderr, "usage: %s BACKEND [NAME]\n", argv[0]);
        return 2;
    }
    sweep.backend = argv[1];
    sweep.only = argc > 2 ? argv[2] : NULL;
    sweep.few = few_from_environment();
    sweep.full = sweep.only || getenv("GPUGLUE_TEST_FULL");
    sweep.beside = getenv("GPUGLUE_SWEEP_BESIDE");
    setenv("GPUGLUE_BACKEND", sweep.backend, 1);
    make_places();
    if (sweep.beside)
        sweep.other = run_without_fault(true);
    sweep.found = run_without_fault(false);
    if (!sweep.complaints && !sweep.found.there) {
        printf("%s: there is no report of a simulated driver\n", sweep.backend);
        result = getenv("GPUGLUE_REQUIRE") ? 1 : 77;
    } else if (!sweep.complaints) {
        const int calls = inject_everywhere();
        result = summarize(calls);
    }
    remove_places();
    return result;
}
