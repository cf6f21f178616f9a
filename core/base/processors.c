/* processors.c: the processors that the process may use: its affinity, and the quota of its control group. */
#include "base/processors.h"
#include "base/process_state.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPS "/sys/fs/cgroup" /* where version 2 is mounted; version 1 is below it */
#define PERIOD_DEFAULT 100000   /* of the kernel, in microseconds */

/* ---- the quota ---- */

const char *ggi_processors_root = "";

static FILE *quota_open(const char *directory, const char *name)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s%s/%s", ggi_processors_root, directory, name);
    return length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
}

/* Reads up to two numbers of a file of the group; "max" is none. Returns how many. */
static int quota_read(const char *group, const char *name, long *first, long *second)
{
    FILE *file = quota_open(group, name);
    if (!file)
        return 0;
    const int count = fscanf(file, "%ld %ld", first, second);
    fclose(file);
    return count;
}

/* The quota of one group in processors, rounded up; 0: none. */
static long quota_of_group(const char *group, bool unified)
{
    long quota = -1, period = PERIOD_DEFAULT, none;
    if (unified)
        quota_read(group, "cpu.max", &quota, &period);
    else if (quota_read(group, "cpu.cfs_quota_us", &quota, &none))
        quota_read(group, "cpu.cfs_period_us", &period, &none);
    return quota > 0 && period > 0 ? (quota - 1) / period + 1 : 0;
}

static long quota_tighter(long one, long other)
{
    return !one || (other && other < one) ? other : one;
}

/* The least quota of the group and of its parents, to the end of @p root. In a container the path may be that of the
 * machine; then the container's own group is at @p root. */
static long quota_of_path(const char *root, const char *path, bool unified)
{
    char group[PATH_MAX];
    long least = 0;
    const int length = snprintf(group, sizeof group, "%s%s", root, path);
    if (length < 0 || (size_t)length >= sizeof group)
        return quota_of_group(root, unified);
    for (;;) {
        least = quota_tighter(least, quota_of_group(group, unified));
        char *last = strrchr(group, '/');
        if (last < group + strlen(root))
            return least;
        *last = '\0';
    }
}

static bool list_has(char *list, const char *name)
{
    char *rest = NULL;
    for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        if (!strcmp(word, name))
            return true;
    return false;
}

/* "0::/path" is the group in version 2, "3:cpu,cpuacct:/path" one in version 1. */
static long quota_of_line(char *line)
{
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return 0;
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    if (!controllers[1])
        return quota_of_path(GROUPS, path, true);
    return list_has(controllers + 1, "cpu") ? quota_of_path(GROUPS "/cpu", path, false) : 0;
}

long ggi_processor_quota(void)
{
    char *line = NULL;
    size_t size = 0;
    long least = 0;
    FILE *file = quota_open("/proc/self", "cgroup");
    while (file && getline(&line, &size, file) > 0)
        least = quota_tighter(least, quota_of_line(line));
    free(line);
    if (file)
        fclose(file);
    return least;
}

static long quota;

static void quota_find(void)
{
    quota = ggi_processor_quota();
}

/* ---- the affinity ---- */

#define AFFINITY_NS 250000000u /* the process may be moved to other processors: read this often */
/* More than any kernel supports, because a kernel refuses a mask that is smaller than its own. */
#define CPUS_MAX 65536

static _Atomic(uint64_t) affinity_read_at;
static _Atomic(int) affinity_count;

/* Of the process's first thread, since others may have been bound to one processor each. */
bool ggi_processors_get(cpu_set_t *out)
{
    return !sched_getaffinity(getpid(), sizeof *out, out);
}

static int affinity_read(void)
{
    cpu_set_t allowed[CPUS_MAX / CPU_SETSIZE]; /* one mask: for the macros CPU_…_S */
    return sched_getaffinity(getpid(), sizeof allowed, allowed)
               ? 1
               : CPU_COUNT_S(sizeof allowed, allowed);
}

uint64_t ggi_processors_read_at(void)
{
    return atomic_load(&affinity_read_at);
}

int32_t ggi_processor_count(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const uint64_t now = ggi_now_ns(), before = atomic_load(&affinity_read_at);
    pthread_once(&once, quota_find);
    if (!before || now - before >= AFFINITY_NS) {
        atomic_store(&affinity_count, affinity_read());
        atomic_store(&affinity_read_at, now);
    }
    const int cores = atomic_load(&affinity_count);
    return quota && quota < cores ? (int32_t)quota : cores;
}
