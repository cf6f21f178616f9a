/* staging.c: a transfer through a lane: which chunk is worked on, queued, finished. */
#include "staging.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PART_LEAST ((size_t)64 << 10)
#define PART_MOST ((size_t)512 << 10)
#define CHUNK_LEAST ((size_t)256 << 10)
#define SPINS 200u           /* looks without progress before the holder pauses */
#define PAUSE_NS 20000       /* then */
#define LONG_PAUSE_NS 500000 /* where nothing has moved for long: the device is busy with others */

/* ---- who has the lane ---- */

static void slice_from_now(struct timespec *until)
{
    clock_gettime(CLOCK_MONOTONIC, until);
    until->tv_nsec += (long)GGI_SLICE_NS;
    if (until->tv_nsec >= 1000000000) {
        until->tv_nsec -= 1000000000;
        until->tv_sec++;
    }
}

static gg_status hold(struct gg_device *device, struct ggi_lane *lane)
{
    gg_status status = GG_OK;
    pthread_mutex_lock(&lane->lock);
    while (!status && lane->held) {
        struct timespec until;
        slice_from_now(&until);
        pthread_cond_timedwait(&lane->free, &lane->lock, &until);
        pthread_mutex_unlock(&lane->lock);
        status = ggi_check(device);
        if (!status && ggi_interrupted())
            status = ggi_fail(GG_ERR_INTERRUPTED, "a copy was interrupted");
        pthread_mutex_lock(&lane->lock);
    }
    if (!status)
        lane->held = true;
    pthread_mutex_unlock(&lane->lock);
    return status;
}

static bool try_hold(struct ggi_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    bool got = !lane->held;
    lane->held = true;
    pthread_mutex_unlock(&lane->lock);
    return got;
}

gg_status ggi_lane_take(struct gg_device *device, struct ggi_lane *lane)
{
    gg_status status = hold(device, lane);
    if (status)
        return status;
    if (!lane->memory)
        status = ggi_lane_fill(device, lane);
    if (status)
        ggi_lane_give(lane);
    return status;
}

void ggi_lane_give(struct ggi_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    lane->held = false;
    pthread_cond_signal(&lane->free);
    pthread_mutex_unlock(&lane->lock);
}

void ggi_staging_settle(struct gg_device *device, uint64_t deadline)
{
    for (int i = 0; device->staging && i < 2; i++) {
        struct ggi_lane *lane = &device->staging->lane[i];
        pthread_mutex_lock(&lane->lock);
        while (lane->held && ggi_now_ns() < deadline) {
            struct timespec until;
            slice_from_now(&until);
            pthread_cond_timedwait(&lane->free, &lane->lock, &until);
        }
        pthread_mutex_unlock(&lane->lock);
    }
}

/* ---- one transfer ---- */

/* Chunks are numbered from `first`. Upwards a chunk is opened for the crew, queued when it is filled, and
 * finished when the device has it; downwards it is queued, opened when it has landed, and finished when
 * it was spread. */
struct transfer {
    struct ggi_lane *lane;
    const struct ggi_passage *passage;
    struct ggi_staging *staging;
    struct ggi_cut cut;
    uint64_t ticket; /* of what was queued last */
    size_t part;     /* bytes that one thread takes at a time */
    uint64_t first, opened, queued, finished, last;
    gg_status status;
    unsigned idle; /* looks since anything moved */
};

static unsigned slot_of(const struct transfer *t, uint64_t chunk)
{
    return (unsigned)(chunk % t->lane->slots);
}

static void piece_of(const struct transfer *t, uint64_t chunk, struct ggi_piece *piece)
{
    ggi_passage_piece(t->passage, &t->cut, (size_t)(chunk - t->first), piece);
}

static void fail(struct transfer *t, gg_status status)
{
    if (!t->status)
        t->status = status;
}

/* Let the crew have the next chunk. */
static void open_chunk(struct transfer *t)
{
    struct ggi_lane *lane = t->lane;
    uint64_t chunk = t->opened;
    unsigned slot = slot_of(t, chunk);
    struct ggi_load *load = &lane->load[slot];
    ptrdiff_t strides[GG_COPY_MAX_DIMS];
    struct ggi_piece piece;
    piece_of(t, chunk, &piece);
    ggi_piece_on_host(t->passage, &piece, &load->box);
    load->dst = t->passage->kind == GG_COPY_H2D ? lane->slot[slot] : piece.dst;
    load->src = t->passage->kind == GG_COPY_H2D ? piece.src : lane->slot[slot];
    ggi_box_pack(&load->box, false, GGI_DST, strides);
    size_t part = t->part, least = ggi_box_bytes(&load->box) / GGI_MOST_PARTS;
    do /* uneven axes make more parts than there are numbers for */
        ggi_cut_make(&load->cut, &load->box, strides, part);
    while (load->cut.count > GGI_MOST_PARTS && (part = part < least ? 2 * least : 2 * part));
    atomic_store_explicit(&lane->done[slot], 0, memory_order_relaxed);
    atomic_store_explicit(&lane->end[slot], chunk * GGI_MOST_PARTS + load->cut.count,
                          memory_order_relaxed);
    ggi_lane_open(t->staging, lane, ++t->opened);
}

static bool is_worked(const struct transfer *t, uint64_t chunk)
{
    unsigned slot = slot_of(t, chunk);
    return atomic_load_explicit(&t->lane->done[slot], memory_order_acquire) ==
           t->lane->load[slot].cut.count;
}

static void queue_chunk(struct transfer *t)
{
    struct ggi_job *job = t->passage->job;
    struct gg_device *device = job->device;
    unsigned slot = slot_of(t, t->queued);
    struct ggi_piece piece;
    piece_of(t, t->queued, &piece);
    gg_status status = ggi_check(device); /* the process may be ending */
    if (!status)
        status = ggi_piece_submit(t->passage, &piece, t->lane->slot[slot], &t->ticket);
    if (!status) {
        ggi_begin(device, GG_OP_event_record, job->stream, 0);
        status = device->ops->event_record(t->lane->event[slot], job->stream->impl);
        status = ggi_end(device, GG_OP_event_record, job->stream, 0, status);
    }
    t->queued++;
    if (status)
        fail(t, status);
}

static bool has_passed(struct transfer *t, uint64_t chunk)
{
    struct gg_device *device = t->passage->job->device;
    if (t->status) /* the stream will be waited for as a whole */
        return true;
    gg_status status = ggi_check(device);
    if (status) {
        fail(t, status);
        return true;
    }
    status = device->ops->event_query(t->lane->event[slot_of(t, chunk)]);
    if (status == GG_NOT_READY)
        return false;
    if (status)
        fail(t, ggi_op_failed(device, GG_OP_event_query, status));
    return true;
}

/* One step of each kind; whether anything moved. After a failure nothing new begins. */
static bool move_up(struct transfer *t)
{
    uint64_t before = t->opened + t->queued + t->finished;
    if (!t->status && t->opened < t->last && t->opened - t->finished < t->lane->slots)
        open_chunk(t);
    if (t->queued < t->opened && is_worked(t, t->queued)) {
        if (t->status)
            t->queued++;
        else
            queue_chunk(t);
    }
    if (t->finished < t->queued && has_passed(t, t->finished))
        t->finished++;
    return t->opened + t->queued + t->finished != before;
}

static bool move_down(struct transfer *t)
{
    uint64_t before = t->opened + t->queued + t->finished;
    if (!t->status && t->queued < t->last && t->queued - t->finished < t->lane->slots)
        queue_chunk(t);
    if (!t->status && t->opened < t->queued && has_passed(t, t->opened) && !t->status)
        open_chunk(t);
    if (t->finished < t->opened && is_worked(t, t->finished))
        t->finished++;
    return t->opened + t->queued + t->finished != before;
}

/* Of a device that was lost elsewhere meanwhile no event may ever say so, and the process may be ending. */
static gg_status still_there(struct gg_device *device)
{
    if (atomic_load(&device->gone))
        return ggi_op_failed(
            device, GG_OP_copy,
            ggi_fail(GG_ERR_DEVICE_LOST, "the device was lost while a copy was on its way"));
    return ggi_check(device);
}

static void pause_a_while(struct transfer *t)
{
    struct timespec pause = {0, t->idle > 20 * SPINS ? LONG_PAUSE_NS : PAUSE_NS};
    if (++t->idle > SPINS)
        nanosleep(&pause, NULL);
    if (t->idle % SPINS == 0 && !t->status)
        fail(t, still_there(t->passage->job->device));
}

static bool is_over(const struct transfer *t)
{
    if (!t->status)
        return t->finished == t->last;
    return t->passage->kind == GG_COPY_H2D ? t->queued == t->opened : t->finished == t->opened;
}

static size_t between(size_t value, size_t least, size_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Few chunks would leave engine and crew waiting for each other. A page that is not there yet is one
 * thread's: each that touches a huge page at once makes one and clears it, and all but one throw theirs away. */
static void cut(struct transfer *t, int threads, bool fresh)
{
    const struct ggi_job *job = t->passage->job;
    size_t chunk = between(job->nbytes / 8, fresh ? GGI_HUGE_PAGE : CHUNK_LEAST, GGI_STAGE_CHUNK);
    chunk &= ~((fresh ? GGI_HUGE_PAGE : (size_t)4096) - 1);
    ggi_cut_make(&t->cut, job->box, t->passage->strides, chunk);
    t->part = fresh ? GGI_HUGE_PAGE : between(chunk / (2 * (size_t)threads), PART_LEAST, PART_MOST);
    t->last = t->first + t->cut.count;
}

/* Every part was done. No worker may find an old chunk's number when its slot has a new one. */
static void close_lane(const struct transfer *t)
{
    struct ggi_lane *lane = t->lane;
    atomic_store(&lane->next, t->opened * GGI_MOST_PARTS);
    atomic_store(&lane->threads, 0);
}

/* Slots and memory are about to be let go, whatever the stream says. */
static void settle(struct ggi_job *job)
{
    struct gg_error first = ggi_thread()->error;
    ggi_stream_settle(job->stream);
    ggi_thread()->error = first;
}

gg_status ggi_stage_in(struct ggi_lane *lane, const struct ggi_passage *passage, int threads)
{
    struct ggi_job *job = passage->job;
    uint64_t first = atomic_load(&lane->open);
    struct transfer t = {.lane = lane,
                         .passage = passage,
                         .staging = job->device->staging,
                         .first = first,
                         .opened = first,
                         .queued = first,
                         .finished = first};
    const bool up = passage->kind == GG_COPY_H2D;
    const bool fresh = job->flags & GG_COPY_FRESH && job->nbytes >= GGI_HUGE_PAGE;
    const bool alone = !ggi_crew_start(t.staging, threads) || threads < 2;
    const bool along = alone || !fresh; /* making a page may take 1 ms */
    cut(&t, threads, fresh);
    atomic_store(&lane->threads, threads);
    while (!is_over(&t)) {
        bool moved = up ? move_up(&t) : move_down(&t);
        if (moved || (along && ggi_lane_work(lane)))
            t.idle = 0;
        else
            pause_a_while(&t);
    }
    close_lane(&t);
    if (!t.status)
        ggi_stream_advance(job->stream, t.ticket);
    else /* the first failure is the one to tell */
        settle(job);
    return t.status;
}

gg_status ggi_stage(const struct ggi_passage *passage)
{
    struct gg_device *device = passage->job->device;
    struct ggi_lane *lane = ggi_lane_of(device, passage->kind);
    gg_status status = ggi_lane_take(device, lane);
    if (status)
        return status;
    status = ggi_stage_in(lane, passage, ggi_staging_threads(passage->job, passage->kind));
    ggi_lane_give(lane);
    return status;
}

/* ---- its life ---- */

struct ggi_staging *ggi_staging_new(struct gg_device *device)
{
    struct ggi_staging *staging = calloc(1, sizeof *staging);
    pthread_condattr_t monotonic;
    if (!staging)
        return NULL;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    staging->device = device;
    for (int i = 0; i < 2; i++) {
        pthread_mutex_init(&staging->lane[i].lock, NULL);
        pthread_cond_init(&staging->lane[i].free, &monotonic);
        staging->lane[i].from = SIZE_MAX;
    }
    pthread_mutex_init(&staging->crew.lock, NULL);
    pthread_cond_init(&staging->crew.wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return staging;
}

void ggi_staging_trim(struct gg_device *device)
{
    for (int i = 0; i < 2; i++) {
        struct ggi_lane *lane = &device->staging->lane[i];
        if (!try_hold(lane))
            continue; /* somebody copies */
        ggi_lane_empty(device, lane);
        ggi_lane_give(lane);
    }
}

void ggi_staging_destroy(struct gg_device *device)
{
    ggi_staging_trim(device);
    ggi_crew_stop(&device->staging->crew);
}
