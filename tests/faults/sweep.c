/* sweep.c: makes every vendor call of one program fail in turn, each in a process of its own, once with
 * an error, once with out-of-memory, once with a lost device. Calls are numbered per name; those that
 * query and wait fail from the first on as well.
 *
 *     fault_sweep BACKEND [NAME]    all names, or one
 *
 * Needs a simulated driver: without one it exits with 77. */
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_ONCE 4
#define HANG_SECONDS 60
#define SHOWN 20   /* complaints in full */
#define POLLED 200 /* who is called more often than that is polled: one poll is like the other */
#define POLLS 100  /* of those, the first and as many in even steps */

static struct sweep {
    const char *backend;
    const char *only; /* NULL: every name */
    char folder[64];
    struct outcome baseline;
    struct trial trial[AT_ONCE];
    struct report found; /* what the program calls */
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

static void become_trial(struct trial *trial)
{
    const struct fault *fault = &trial->fault;
    char path[160], rule[128];
    snprintf(path, sizeof path, "%s/output", trial->folder);
    if (!freopen(path, "w", stdout) || dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
        _exit(120);
    snprintf(path, sizeof path, "%s/report", trial->folder);
    setenv("GPUGLUE_SIM_REPORT", path, 1);
    if (fault->name[0]) {
        snprintf(rule, sizeof rule, "%s:%d%s=%d", fault->name, fault->nth,
                 fault->onwards ? "+" : "", code_of(fault->name, fault->class));
        setenv("GPUGLUE_SIM_FAIL", rule, 1);
    }
    alarm(HANG_SECONDS);
    run_program(sweep.backend, trial->outcome);
    exit(0);
}

static void start_trial(struct trial *trial, const struct fault *fault)
{
    char path[160];
    snprintf(path, sizeof path, "%s/report", trial->folder);
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
    print_output(trial->folder);
}

static void count_told(const char *name)
{
    for (size_t i = 0; i < sweep.found.count; i++)
        if (!strcmp(sweep.found.name[i].name, name))
            sweep.found.name[i].told++;
}

static void end_trial(struct trial *trial)
{
    char why[1400];
    bool told;
    trial->child = 0;
    read_report(trial->folder, &trial->report);
    const enum verdict verdict = judge(trial, &sweep.baseline, &told, why, sizeof why);
    if (told)
        count_told(trial->fault.name);
    sweep.verdicts[verdict]++;
    if (verdict != NOT_REACHED)
        sweep.injected[trial->fault.class]++;
    if (verdict != RIGHT && verdict != NOT_REACHED)
        complain(trial, verdict, why);
}

/* Waits until one of the running ones has ended. Returns its place, which is free then. */
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
    fprintf(stderr, "a process that nobody started has ended\n");
    exit(1);
}

static struct trial *free_place(void)
{
    for (int i = 0; i < AT_ONCE; i++)
        if (!sweep.trial[i].child)
            return &sweep.trial[i];
    return wait_for_one();
}

/* ---- all of them ---- */

static void inject(const char *name, int nth, bool onwards)
{
    struct fault fault = {.nth = nth, .onwards = onwards};
    snprintf(fault.name, sizeof fault.name, "%s", name);
    for (int class = 0; class < CLASSES; class ++) {
        fault.class = (enum class) class;
        start_trial(free_place(), &fault);
    }
}

static bool waits_or_queries(const char *name)
{
    return strstr(name, "Query") || strstr(name, "Synchronize");
}

static int next_call(int nth, int calls)
{
    return calls > POLLED && nth >= POLLS ? nth + calls / POLLS : nth + 1;
}

static void look_for_silence(void)
{
    for (size_t i = 0; i < sweep.found.count; i++) {
        const char *name = sweep.found.name[i].name;
        if ((sweep.only && strcmp(sweep.only, name) != 0) || sweep.found.name[i].told ||
            !must_be_told_once(name))
            continue;
        printf("%s: %s: nobody was told of any of its failures\n", sweep.backend, name);
        sweep.verdicts[WRONG]++;
    }
}

static int inject_everywhere(void)
{
    const struct report *report = &sweep.found;
    int calls = 0;
    for (size_t i = 0; i < report->count; i++) {
        const char *name = report->name[i].name;
        if (sweep.only && strcmp(sweep.only, name) != 0)
            continue;
        calls += report->name[i].calls;
        for (int nth = 1; nth <= report->name[i].calls; nth = next_call(nth, report->name[i].calls))
            inject(name, nth, false);
        if (waits_or_queries(name))
            inject(name, 1, true);
    }
    for (int i = 0; i < AT_ONCE; i++)
        while (sweep.trial[i].child)
            wait_for_one();
    look_for_silence();
    return calls;
}

static void make_places(void)
{
    snprintf(sweep.folder, sizeof sweep.folder, "/tmp/gpuglue-sweep-XXXXXX");
    if (!mkdtemp(sweep.folder)) {
        perror(sweep.folder);
        exit(1);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        struct trial *trial = &sweep.trial[i];
        snprintf(trial->folder, sizeof trial->folder, "%s/%d", sweep.folder, i);
        trial->outcome = mmap(NULL, sizeof *trial->outcome, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (mkdir(trial->folder, 0700) || trial->outcome == MAP_FAILED) {
            perror("a place for a process");
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
            snprintf(path, sizeof path, "%s/%s", sweep.trial[i].folder, files[j]);
            unlink(path);
        }
        rmdir(sweep.trial[i].folder);
    }
    rmdir(sweep.folder);
}

/* Without a fault, which must be right. Returns what the simulated driver saw. */
static struct report run_without_fault(void)
{
    const struct fault none = {.name = ""};
    struct trial *trial = &sweep.trial[0];
    start_trial(trial, &none);
    while (trial->child)
        wait_for_one();
    sweep.baseline = *trial->outcome;
    for (int i = 0; i < sweep.baseline.count && getenv("GPUGLUE_SWEEP_VERBOSE"); i++)
        printf("%3d %-46s %s\n", i, sweep.baseline.answer[i].name,
               gg_status_name((gg_status)sweep.baseline.answer[i].status));
    for (size_t i = 0; i < trial->report.count && getenv("GPUGLUE_SWEEP_VERBOSE"); i++)
        printf("%5d %s\n", trial->report.name[i].calls, trial->report.name[i].name);
    sweep.injected[0] = sweep.verdicts[RIGHT] = 0;
    return trial->report;
}

static int summarize(int calls)
{
    const int *injected = sweep.injected, *verdicts = sweep.verdicts;
    const int bad = verdicts[CRASHED] + verdicts[HUNG] + verdicts[LEAKED_HOST_MEMORY] +
                    verdicts[LEAKED_VENDOR_OBJECTS] + verdicts[WRONG];
    printf("%s: %d vendor calls of %zu functions found; %d failures injected (%d errors, %d out of "
           "memory, %d device lost), %d not reached: crashes %d, hangs %d, host leaks %d, vendor "
           "leaks %d, wrong statuses %d\n",
           sweep.backend, calls, sweep.found.count, injected[0] + injected[1] + injected[2],
           injected[0], injected[1], injected[2], verdicts[NOT_REACHED], verdicts[CRASHED],
           verdicts[HUNG], verdicts[LEAKED_HOST_MEMORY], verdicts[LEAKED_VENDOR_OBJECTS],
           verdicts[WRONG]);
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
    setenv("GPUGLUE_BACKEND", sweep.backend, 1);
    make_places();
    sweep.found = run_without_fault();
    if (!sweep.complaints && !sweep.found.there) {
        printf("%s: no simulated driver has reported\n", sweep.backend);
        result = getenv("GPUGLUE_REQUIRE") ? 1 : 77;
    } else if (!sweep.complaints) {
        const int calls = inject_everywhere();
        result = summarize(calls);
    }
    remove_places();
    return result;
}
