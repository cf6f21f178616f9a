/* crew.c: the threads that copy along: how many, where they sit, when they sleep. A worker moves bytes
 * and nothing else: it calls no driver, allocates nothing and takes no lock but to sleep. */
#include "staging.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BY_DEFAULT 16
#define STACK_SIZE ((size_t)512 << 10)

/* Some 100 µs, as long as the engine takes for a chunk: so nobody sleeps in between. */
unsigned ggi_crew_looks = 300;

/* ---- how many ---- */

/* cpu.max of cgroup v2, or what v1 has in two files: processors, rounded up; 0: no limit. */
static long quota_of(const char *folder, const char *file, const char *period_file)
{
    char path[640];
    long quota = -1, period = 100000;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *stream = fopen(path, "re");
    if (!stream)
        return 0;
    int read = fscanf(stream, "%ld %ld", &quota, &period); /* "max 100000" gives none */
    fclose(stream);
    if (read == 1 && period_file) {
        snprintf(path, sizeof path, "%s/%s", folder, period_file);
        stream = fopen(path, "re");
        if (stream && fscanf(stream, "%ld", &period) != 1)
            period = 100000;
        if (stream)
            fclose(stream);
    }
    return read < 1 || quota <= 0 || period <= 0 ? 0 : (quota + period - 1) / period;
}

static long least_of(long one, long other)
{
    return !one || (other && other < one) ? other : one;
}

/* The tightest limit of the group and of those around it. */
static long quota_upwards(const char *root, char *group, const char *file, const char *period_file)
{
    char folder[600];
    long limit = 0;
    for (;;) {
        snprintf(folder, sizeof folder, "%s%s", root, strcmp(group, "/") != 0 ? group : "");
        limit = least_of(limit, quota_of(folder, file, period_file));
        char *last = strrchr(group, '/');
        if (!last || !group[0])
            return limit;
        *last = '\0';
    }
}

/* Lines are "0::/group" for v2 and "3:cpu,cpuacct:/group" for v1. */
static long cgroup_limit(void)
{
    char line[600];
    long limit = 0;
    FILE *stream = fopen("/proc/self/cgroup", "re");
    while (stream && fgets(line, sizeof line, stream)) {
        line[strcspn(line, "\n")] = '\0';
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        if (!names[1])
            limit = least_of(limit, quota_upwards("/sys/fs/cgroup", group, "cpu.max", NULL));
        else if (strstr(names, "cpu") && !strstr(names, "cpuset"))
            limit = least_of(limit, quota_upwards("/sys/fs/cgroup/cpu", group, "cpu.cfs_quota_us",
                                                  "cpu.cfs_period_us"));
    }
    if (stream)
        fclose(stream);
    return limit;
}

static int share_of_processor(void)
{
    cpu_set_t allowed;
    int cores = sched_getaffinity(0, sizeof allowed, &allowed) ? 1 : CPU_COUNT(&allowed);
    long limit = cgroup_limit();
    if (limit && limit < cores)
        cores = (int)limit;
    return cores < 1 ? 1 : cores > MOST_BY_DEFAULT ? MOST_BY_DEFAULT : cores;
}

static int threads_wanted;

static void find_threads(void)
{
    const char *text = secure_getenv("GPUGLUE_COPY_THREADS");
    char *end = NULL;
    threads_wanted = share_of_processor();
    if (!text || !*text)
        return;
    long count = strtol(text, &end, 10);
    if (*end || count < 1 || count > GGI_MOST_CREW)
        ggi_log(GG_LOG_WARN, NULL,
                "GPUGLUE_COPY_THREADS is \"%.32s\", expected 1 to %d: using %d, as many as this "
                "process has processors",
                text, GGI_MOST_CREW, threads_wanted);
    else
        threads_wanted = (int)count;
}

int ggi_copy_threads(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_threads);
    return threads_wanted;
}

/* ---- work ---- */

/* A part of a chunk. Its number was taken by nobody else. */
static void do_part(struct ggi_lane *lane, unsigned slot, size_t part)
{
    const struct ggi_load *load = &lane->load[slot];
    struct ggi_box piece;
    ptrdiff_t dst, src;
    ggi_cut_piece(&load->cut, &load->box, part, &piece, &dst, &src);
    ggi_box_copy(load->dst + dst, load->src + src, &piece);
    atomic_fetch_add_explicit(&lane->done[slot], 1, memory_order_release);
}

bool ggi_lane_work(struct ggi_lane *lane)
{
    for (;;) {
        uint64_t number = atomic_load(&lane->next), chunk = number / GGI_MOST_PARTS;
        if (chunk >= atomic_load(&lane->open))
            return false;
        unsigned slot = (unsigned)(chunk % atomic_load(&lane->slots));
        uint64_t end = atomic_load_explicit(&lane->end[slot], memory_order_relaxed);
        /* What was read is right if nobody has moved `next` since: the chunk is not done before all its
         * parts are taken, and until then its slot stays its own. */
        bool none = (end - 1) / GGI_MOST_PARTS != chunk || number >= end;
        uint64_t after = none ? (chunk + 1) * GGI_MOST_PARTS : number + 1;
        if (!atomic_compare_exchange_weak(&lane->next, &number, after) || none)
            continue;
        do_part(lane, slot, (size_t)(number % GGI_MOST_PARTS));
        return true;
    }
}

static bool has_work(struct ggi_lane *lane, int rank)
{
    return rank < atomic_load(&lane->threads) &&
           atomic_load(&lane->next) / GGI_MOST_PARTS < atomic_load(&lane->open);
}

static bool anything(struct ggi_staging *staging, int rank)
{
    return atomic_load(&staging->crew.stop) || has_work(&staging->lane[0], rank) ||
           has_work(&staging->lane[1], rank);
}

static void sleep_until_called(struct ggi_staging *staging, int rank)
{
    struct ggi_crew *crew = &staging->crew;
    pthread_mutex_lock(&crew->lock);
    atomic_fetch_add(&crew->sleeping, 1);
    while (!anything(staging, rank))
        pthread_cond_wait(&crew->wake, &crew->lock);
    atomic_fetch_sub(&crew->sleeping, 1);
    pthread_mutex_unlock(&crew->lock);
}

struct worker {
    struct ggi_staging *staging;
    int rank; /* the holder of a lane is 0 */
};

static void *work(void *argument)
{
    const struct worker self = *(struct worker *)argument;
    struct ggi_staging *staging = self.staging;
    free(argument);
    for (unsigned looks = 0; !atomic_load(&staging->crew.stop);) {
        bool worked = false;
        for (int i = 0; i < 2; i++)
            if (has_work(&staging->lane[i], self.rank) && ggi_lane_work(&staging->lane[i]))
                worked = true; /* a part of each in turn: who holds a lane may not help itself */
        looks = worked ? 0 : looks + 1;
        if (looks >= ggi_crew_looks) {
            sleep_until_called(staging, self.rank);
            looks = 0;
        } else if (!worked) {
            sched_yield();
        }
    }
    return NULL;
}

/* A worker counts itself as asleep before it looks for the last time, and a chunk is open before it is looked
 * who sleeps, in one order for all: else both may miss the other. */
void ggi_lane_open(struct ggi_staging *staging, struct ggi_lane *lane, uint64_t chunk)
{
    struct ggi_crew *crew = &staging->crew;
    atomic_store(&lane->open, chunk);
    if (!atomic_load(&crew->sleeping))
        return;
    pthread_mutex_lock(&crew->lock);
    pthread_cond_broadcast(&crew->wake);
    pthread_mutex_unlock(&crew->lock);
}

/* ---- where they sit ---- */

/* "0-15,32-47" of the node, as far as the process may run there. */
static bool processors_of(int32_t node, cpu_set_t *out)
{
    char path[80];
    cpu_set_t allowed;
    int first, last;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", (int)node);
    FILE *stream =
        node < 0 || sched_getaffinity(0, sizeof allowed, &allowed) ? NULL : fopen(path, "re");
    CPU_ZERO(out);
    if (!stream)
        return false;
    while (fscanf(stream, "%d", &first) == 1) {
        if (fscanf(stream, "-%d", &last) != 1)
            last = first;
        for (; first >= 0 && first <= last && first < CPU_SETSIZE; first++)
            if (CPU_ISSET((size_t)first, &allowed))
                CPU_SET((size_t)first, out);
        if (fgetc(stream) != ',')
            break;
    }
    fclose(stream);
    return CPU_COUNT(out) > 0;
}

static bool start_one(struct ggi_staging *staging, const pthread_attr_t *attributes)
{
    struct ggi_crew *crew = &staging->crew;
    struct worker *worker = malloc(sizeof *worker);
    if (!worker)
        return false;
    *worker = (struct worker){staging, crew->started + 1};
    if (pthread_create(&crew->thread[crew->started], attributes, work, worker)) {
        free(worker);
        return false;
    }
    pthread_setname_np(crew->thread[crew->started], "gpuglue-copy");
    crew->started++;
    return true;
}

/* Signals are for the program's own threads; a fault of these must still be reported. */
static void block_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

/* With the crew's lock held. */
static void start(struct ggi_staging *staging, int workers)
{
    struct ggi_crew *crew = &staging->crew;
    pthread_attr_t attributes;
    cpu_set_t processors;
    sigset_t before;
    if (pthread_attr_init(&attributes))
        return;
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    if (processors_of(crew->node, &processors))
        pthread_attr_setaffinity_np(&attributes, sizeof processors, &processors);
    block_signals(&before);
    while (crew->started < workers && start_one(staging, &attributes)) {
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (crew->started < workers)
        ggi_log(GG_LOG_WARN, staging->device->backend->name,
                "the system refused a copy thread: %d of %d will do", crew->started + 1,
                workers + 1);
    crew->wanted = workers; /* it is not asked again */
}

int ggi_crew_start(struct ggi_staging *staging, int threads)
{
    struct ggi_crew *crew = &staging->crew;
    pthread_mutex_lock(&crew->lock);
    if (threads - 1 > crew->wanted && !atomic_load(&crew->stop))
        start(staging, threads - 1 < GGI_MOST_CREW ? threads - 1 : GGI_MOST_CREW);
    const int started = crew->started;
    pthread_mutex_unlock(&crew->lock);
    return started;
}

void ggi_crew_stop(struct ggi_crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    atomic_store(&crew->stop, true);
    pthread_cond_broadcast(&crew->wake);
    int count = crew->started;
    crew->started = 0;
    pthread_mutex_unlock(&crew->lock);
    for (int i = 0; i < count; i++)
        pthread_join(crew->thread[i], NULL);
}
