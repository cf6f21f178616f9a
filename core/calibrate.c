/* calibrate.c: when staging is worth it. Each direction of a device is measured once, after enough has been
 * copied for the time to be well spent: the vendor's own copy of pageable memory against the lane, with
 * one thread and more. */
#include "staging.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STAGED_LEAST ((size_t)256 << 10) /* smaller copies are the vendor's */
#define WORTH_MEASURING ((uint64_t)8 << 20)
#define SCRATCH ((size_t)32 << 20)
#define RUNS 3
#define FAILURES 8 /* … to measure, until the vendor copies for good */
#define BETTER_BY(staged, vendor) ((staged) + (staged) / 10 < (vendor)) /* 10 %: noise loses */

enum mode { AUTO, ALWAYS, NEVER };

static enum mode staging_mode;

static void find_mode(void)
{
    const char *text = secure_getenv("GPUGLUE_STAGING");
    if (!text || !*text || !strcmp(text, "auto"))
        return;
    if (!strcmp(text, "always"))
        staging_mode = ALWAYS;
    else if (!strcmp(text, "never"))
        staging_mode = NEVER;
    else
        ggi_log(GG_LOG_WARN, NULL,
                "GPUGLUE_STAGING is \"%.32s\", expected auto, always or never: using auto", text);
}

static enum mode mode(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_mode);
    return staging_mode;
}

/* ---- measuring ---- */

struct measure {
    struct ggi_lane *lane;
    enum gg_copy_kind kind;
    struct ggi_job job;
    struct ggi_box box;
    gg_status status;
};

static void by_vendor(struct measure *m)
{
    struct ggi_job *job = &m->job;
    m->status = job->device->ops->copy(job->stream->impl, job->dst.pointer, job->src.pointer,
                                       m->box.run, m->kind, true);
    ggi_stream_submitted(job->stream);
    gg_status finished = ggi_stream_settle(job->stream);
    if (!m->status)
        m->status = finished;
}

static void by_lane(struct measure *m, int threads)
{
    struct ggi_passage passage;
    ggi_passage_make(&passage, &m->job, m->kind);
    m->status = ggi_stage_in(m->lane, &passage, threads);
    if (!m->status)
        m->status = ggi_stream_settle(m->job.stream);
}

/* The shortest of a few; threads 0: the vendor's own. */
static uint64_t time_of(struct measure *m, size_t nbytes, int threads)
{
    uint64_t least = UINT64_MAX;
    m->box.run = m->job.nbytes = nbytes;
    for (int run = 0; run < RUNS && !m->status; run++) {
        uint64_t begin = ggi_now_ns();
        if (threads)
            by_lane(m, threads);
        else
            by_vendor(m);
        uint64_t time = ggi_now_ns() - begin;
        least = time < least ? time : least;
    }
    return least;
}

/* The fewest threads that are about as fast as any. */
static int best_threads(struct measure *m)
{
    uint64_t least = UINT64_MAX;
    int most = ggi_copy_threads(), best = 1;
    for (int threads = 1;; threads = 2 * threads < most ? 2 * threads : most) {
        uint64_t time = time_of(m, SCRATCH, threads);
        if (BETTER_BY(time, least) || (time < least && threads <= 2 * best)) {
            best = threads;
            least = time;
        }
        if (threads == most || m->status)
            return best;
    }
}

/* The smallest size from which on staging wins each time. */
static size_t smallest_worth(struct measure *m)
{
    size_t from = SIZE_MAX;
    for (size_t nbytes = SCRATCH; nbytes >= STAGED_LEAST && !m->status; nbytes /= 2) {
        uint64_t staged = time_of(m, nbytes, m->lane->best), vendor = time_of(m, nbytes, 0);
        if (m->status || !BETTER_BY(staged, vendor))
            break;
        from = nbytes;
    }
    return from;
}

static void measure_in(struct measure *m, gg_memory *memory, char *host)
{
    const bool up = m->kind == GG_COPY_H2D;
    struct ggi_end device_end = {
        .memory = memory, .pointer = gg_memory_pointer(memory), .device = true};
    struct ggi_end host_end = {.pointer = host};
    memset(host, 1, SCRATCH);
    m->job.dst = up ? device_end : host_end;
    m->job.src = up ? host_end : device_end;
    m->job.box = &m->box;
    m->lane->best = best_threads(m);
    m->lane->from = m->status ? SIZE_MAX : smallest_worth(m);
    ggi_log(GG_LOG_INFO, m->job.device->backend->name,
            "copies %s are staged from %zu bytes on, by %d threads", up ? "to the device" : "back",
            m->lane->from, m->lane->best);
}

/* On a stream of its own, so that nobody's work is in the way. */
static gg_status measure(struct gg_device *device, struct ggi_lane *lane, enum gg_copy_kind kind)
{
    struct measure m = {.lane = lane, .kind = kind, .job = {.device = device}};
    gg_memory *memory = NULL;
    char *host = mmap(NULL, SCRATCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (host == MAP_FAILED)
        return GG_ERR_OUT_OF_MEMORY;
    madvise(host, SCRATCH, MADV_HUGEPAGE);
    m.status = gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &m.job.stream);
    if (m.status)
        goto free_host;
    m.status = gg_memory_alloc(device, GG_MEMORY_DEVICE, SCRATCH, m.job.stream, &memory);
    if (m.status)
        goto release_stream;
    measure_in(&m, memory, host);
    gg_memory_release(memory);
release_stream:
    gg_stream_release(m.job.stream);
free_host:
    munmap(host, SCRATCH);
    return m.status;
}

/* What failed may succeed next time: nothing is known then, and nothing staged, until it has failed too
 * often. An interrupt is the caller's. */
static gg_status measure_once(struct gg_device *device, struct ggi_lane *lane,
                              enum gg_copy_kind kind)
{
    struct ggi_own own;
    ggi_own_begin(device, &own);
    gg_status status = ggi_lane_take(device, lane);
    if (!status) {
        if (!lane->measured)
            status = measure(device, lane, kind);
        if (!status)
            atomic_store(&lane->measured, true);
        ggi_lane_give(lane);
    }
    ggi_own_end(device, &own);
    if (status == GG_ERR_INTERRUPTED)
        return ggi_fail(status, "a copy was interrupted while it was measured");
    if (status && atomic_fetch_add(&lane->failures, 1) + 1 == FAILURES)
        atomic_store(&lane->measured, true);
    return GG_OK;
}

/* ---- the answers ---- */

/* The first to touch a page waits until it is there and zero: that is worth all threads. */
static bool touches_pages(const struct ggi_job *job)
{
    return job->flags & GG_COPY_FRESH && ggi_copy_threads() > 1;
}

/* Whether one way wins without measuring. */
static bool decided(const struct ggi_job *job, bool *out)
{
    const bool unlike = job->nbytes >= STAGED_LEAST && !(job->device->flags & GG_DEVICE_INTEGRATED);
    *out = mode() == ALWAYS || (mode() == AUTO && unlike && touches_pages(job));
    return *out || mode() != AUTO || !unlike; /* short, or the same memory twice */
}

gg_status ggi_staging_pays(const struct ggi_job *job, enum gg_copy_kind kind, bool *out)
{
    struct ggi_lane *lane = ggi_lane_of(job->device, kind);
    gg_status status = GG_OK;
    if (decided(job, out))
        return GG_OK;
    if (!atomic_load(&lane->measured)) {
        if (atomic_fetch_add(&lane->seen, job->nbytes) + job->nbytes < WORTH_MEASURING)
            return GG_OK;
        status = measure_once(job->device, lane, kind);
    }
    *out = !status && atomic_load(&lane->measured) && job->nbytes >= lane->from;
    return status;
}

int ggi_staging_threads(const struct ggi_job *job, enum gg_copy_kind kind)
{
    const struct ggi_lane *lane = ggi_lane_of(job->device, kind);
    bool known = mode() == AUTO && atomic_load(&lane->measured) && lane->best;
    return known && !touches_pages(job) ? lane->best : ggi_copy_threads();
}
