/* staging.c: copies a box through a lane, chunk by chunk: the host fills or empties a slot, the device copies it. */
#include "base/error.h"
#include "runtime/event.h"
#include "memory/memory.h"
#include "transfer/staging.h"

#include <sched.h>
#include <time.h>

/* ---- the plan ---- */

#define WASTE_MAX 4u /* bytes read for each byte of an element */

void ggi_staging_plan_make(struct ggi_staging_plan *plan, struct ggi_copy_job *job)
{
    const enum ggi_side side = ggi_copy_device_side(job);
    const struct ggi_box *box = job->box;
    ptrdiff_t strides[GG_COPY_MAX_DIMS];
    plan->job = job;
    ggi_box_pack(box, true, side, plan->strides);
    for (int i = 0; i < box->axes; i++)
        strides[i] = ggi_axis_stride(&box->axis[i], side);
    size_t packed = ggi_box_span(box, plan->strides, 0), span = ggi_box_span(box, strides, 0);
    plan->whole = job->kind == GG_COPY_D2H && span / WASTE_MAX <= packed &&
                  (box->run < GGI_COPY_RUN_LONG || ggi_copy_calls(job, box) > GGI_COPY_CALLS_FEW);
    for (int i = 0; plan->whole && i < box->axes; i++)
        plan->strides[i] = strides[i];
}

void ggi_staging_plan_chunk(const struct ggi_staging_plan *plan, const struct ggi_cut *cut,
                            size_t index, struct ggi_chunk *chunk)
{
    const struct ggi_copy_job *job = plan->job;
    ptrdiff_t dst, src;
    ggi_cut_chunk(cut, job->box, index, &chunk->box, &dst, &src);
    chunk->dst = job->dst.pointer + dst;
    chunk->src = job->src.pointer + src;
    chunk->strides = plan->strides + cut->axis;
}

/* The chunk's box with the slot on one side. */
static void chunk_use_slot(const struct ggi_chunk *chunk, enum ggi_side side, struct ggi_box *box)
{
    ggi_box_inner(box, &chunk->box, 0);
    for (int i = 0; i < box->axes; i++)
        *(side == GGI_DST ? &box->axis[i].dst : &box->axis[i].src) = chunk->strides[i];
}

void ggi_chunk_host_box(const struct ggi_staging_plan *plan, const struct ggi_chunk *chunk,
                        struct ggi_box *box)
{
    chunk_use_slot(chunk, ggi_copy_device_side(plan->job), box);
}

void ggi_chunk_device_box(const struct ggi_staging_plan *plan, const struct ggi_chunk *chunk,
                          struct ggi_box *box)
{
    const enum ggi_side side = ggi_copy_device_side(plan->job);
    ptrdiff_t no_shift;
    chunk_use_slot(chunk, side == GGI_DST ? GGI_SRC : GGI_DST, box);
    if (plan->whole) {
        box->run = ggi_box_span(&chunk->box, chunk->strides, 0);
        box->axes = 0;
    }
    for (int i = 0; i < box->axes; i++) /* an element repeated on the device is copied once */
        if (!ggi_axis_stride(&box->axis[i], side))
            box->axis[i].count = 1;
    ggi_box_order(box, side, &no_shift, &no_shift);
}

/* ---- a transfer ---- */

#define PART_MIN ((size_t)16 << 10)
#define PART_MAX ((size_t)512 << 10)
#define CHUNK_MIN ((size_t)128 << 10)
#define CHUNKS_MIN 6u /* so that the copy engine and the threads overlap */
/* In copies below this size the slots would still be in the threads' caches when they are reused. In a longer copy other
 * bytes have evicted them, and ordinary stores are faster. */
#define PAST_CACHES_MAX ((size_t)128 << 20)
#define CHECK_EVERY 256u /* polls without progress: is the device still usable? */
/* After so long without progress the caller sleeps between its polls: the threads are zeroing pages, or the device is busy
 * with other work. Not earlier, because even a short sleep takes longer than a chunk's copy. */
#define SPIN_NS 1000000u
#define PAUSE_NS 20000
#define LONG_SPIN_NS 10000000u
#define LONG_PAUSE_NS 500000

/* Chunks are numbered from `first`. To the device a chunk is opened for the copy threads, queued when they have
 * filled its slot, and finished when the device has copied it; to the host it is queued, opened when the device
 * has copied it, and finished when they have emptied its slot. */
struct transfer {
    struct ggi_lane *lane;
    const struct ggi_staging_plan *plan;
    struct ggi_cut cut;
    uint64_t ticket; /* of the last chunk */
    size_t part;     /* bytes that one thread takes at a time */
    uint64_t first, opened, queued, finished, last;
    gg_status status;
    unsigned idle;       /* polls without progress */
    uint64_t idle_since; /* when the first of them was */
};

static unsigned transfer_slot(const struct transfer *t, uint64_t number)
{
    return (unsigned)(number % t->lane->queue->slots);
}

static void transfer_chunk(const struct transfer *t, uint64_t number, struct ggi_chunk *chunk)
{
    ggi_staging_plan_chunk(t->plan, &t->cut, (size_t)(number - t->first), chunk);
}

static void transfer_fail(struct transfer *t, gg_status status)
{
    if (!t->status)
        t->status = status;
}

/* Publish the next chunk to the copy threads. */
static void transfer_open(struct transfer *t)
{
    struct ggi_lane *lane = t->lane;
    unsigned slot = transfer_slot(t, t->opened);
    struct ggi_host_copy_task *task = &lane->queue->task[slot];
    const bool up = t->plan->job->kind == GG_COPY_H2D;
    struct ggi_chunk chunk;
    transfer_chunk(t, t->opened, &chunk);
    ggi_chunk_host_box(t->plan, &chunk, &task->box);
    task->dst = up ? lane->slot[slot] : chunk.dst;
    task->src = up ? chunk.src : lane->slot[slot];
    task->past_caches = up && t->plan->job->nbytes < PAST_CACHES_MAX;
    ggi_copy_queue_cut(lane->queue, t->opened, t->part, up ? GGI_SRC : GGI_DST);
    ggi_copy_queue_publish(&t->plan->job->device->staging->threads, lane->queue, ++t->opened);
}

/* To the device: the next chunk whose event is queried. Where no slot is used again, that is the last one. */
static uint64_t transfer_awaited(const struct transfer *t, uint64_t number)
{
    return number + t->lane->queue->slots < t->last ? number : t->last - 1;
}

static void transfer_queue(struct transfer *t)
{
    struct ggi_copy_job *job = t->plan->job;
    struct gg_device *device = job->device;
    const bool up = job->kind == GG_COPY_H2D;
    unsigned slot = transfer_slot(t, t->queued);
    char *data = t->lane->slot[slot];
    struct ggi_chunk chunk;
    struct ggi_box box;
    transfer_chunk(t, t->queued, &chunk);
    ggi_chunk_device_box(t->plan, &chunk, &box);
    gg_status status = ggi_device_check(device); /* the process may be ending */
    if (!status)
        status =
            ggi_copy_submit(job, up ? chunk.dst : data, up ? data : chunk.src, &box, &t->ticket);
    if (!status && (!up || transfer_awaited(t, t->queued) == t->queued))
        status = GGI_CALL(device, event_record, job->stream, 0,
                          (t->lane->event[slot], job->stream->impl));
    t->queued++;
    if (status)
        transfer_fail(t, status);
}

static bool transfer_has_passed(struct transfer *t, uint64_t number)
{
    struct gg_device *device = t->plan->job->device;
    if (t->status) /* the stream will be waited for as a whole */
        return true;
    gg_status status = ggi_device_check(device);
    if (status) {
        transfer_fail(t, status);
        return true;
    }
    status = device->ops->event_query(t->lane->event[transfer_slot(t, number)]);
    if (status == GG_NOT_READY)
        return false;
    if (status)
        transfer_fail(t, ggi_op_failed(device, GG_OP_event_query, status));
    return true;
}

/* One step of each kind; returns whether there was progress. After a failure no chunk is started. */
static bool transfer_step_up(struct transfer *t)
{
    uint64_t before = t->opened + t->queued;
    if (!t->status && t->opened < t->last && t->opened - t->finished < t->lane->queue->slots)
        transfer_open(t);
    if (t->queued < t->opened && ggi_copy_queue_is_done(t->lane->queue, t->queued)) {
        if (t->status)
            t->queued++;
        else
            transfer_queue(t);
    }
    return t->opened + t->queued != before;
}

static bool transfer_step_down(struct transfer *t)
{
    uint64_t before = t->queued + t->finished;
    if (!t->status && t->queued < t->last && t->queued - t->finished < t->lane->queue->slots)
        transfer_queue(t);
    if (t->finished < t->opened && ggi_copy_queue_is_done(t->lane->queue, t->finished))
        t->finished++;
    return t->queued + t->finished != before;
}

/* Query the driver, if the next step needs it; returns whether there was progress. */
static bool transfer_ask_up(struct transfer *t)
{
    const uint64_t awaited = transfer_awaited(t, t->finished);
    const bool needed = t->queued == t->last || t->opened - t->finished == t->lane->queue->slots;
    if (!needed || awaited >= t->queued || !transfer_has_passed(t, awaited))
        return false;
    t->finished = awaited + 1;
    return true;
}

static bool transfer_ask_down(struct transfer *t)
{
    if (t->status || t->opened == t->queued || !transfer_has_passed(t, t->opened) || t->status)
        return false;
    transfer_open(t);
    return true;
}

/* One step. A query takes as long as to copy some KiB: to the device it is made only if there is nothing to copy. @p along: the
 * caller helps the threads. */
static bool transfer_move(struct transfer *t, bool along)
{
    struct ggi_copy_queue *queue = t->lane->queue;
    if (t->plan->job->kind == GG_COPY_H2D)
        return transfer_step_up(t) || (along && ggi_copy_queue_work(queue)) || transfer_ask_up(t);
    return transfer_step_down(t) || transfer_ask_down(t) || (along && ggi_copy_queue_work(queue));
}

/* An event of a device that another call found lost may never complete, and the process may be ending. */
static gg_status device_is_usable(struct gg_device *device)
{
    if (atomic_load(&device->gone))
        return ggi_op_failed(
            device, GG_OP_copy,
            ggi_fail(GG_ERR_DEVICE_LOST, "the device was lost while a copy was running"));
    return ggi_device_check(device);
}

static void transfer_pause(struct transfer *t)
{
    const uint64_t now = ggi_now_ns();
    if (!t->idle++)
        t->idle_since = now;
    const uint64_t idle_ns = now - t->idle_since;
    const struct timespec pause = {0, idle_ns > LONG_SPIN_NS ? LONG_PAUSE_NS : PAUSE_NS};
    if (idle_ns > SPIN_NS)
        nanosleep(&pause, NULL);
    else
        sched_yield();
    if ((idle_ns > SPIN_NS || t->idle % CHECK_EVERY == 0) && !t->status)
        transfer_fail(t, device_is_usable(t->plan->job->device));
}

static bool transfer_is_over(const struct transfer *t)
{
    if (!t->status)
        return t->finished == t->last;
    return t->plan->job->kind == GG_COPY_H2D ? t->queued == t->opened : t->finished == t->opened;
}

static size_t clamp(size_t value, size_t least, size_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Several parts for each thread, since one may start late. In untouched memory a part is one huge page:
 * threads that touched the same one at once would each zero a page, and all but one would be discarded. */
static void transfer_cut(struct transfer *t, int threads, bool fresh)
{
    const struct ggi_copy_job *job = t->plan->job;
    size_t chunk =
        clamp(job->nbytes / CHUNKS_MIN, fresh ? GGI_HUGE_PAGE : CHUNK_MIN, GGI_STAGING_CHUNK);
    chunk &= ~((fresh ? GGI_HUGE_PAGE : (size_t)4096) - 1);
    ggi_cut_make(&t->cut, job->box, t->plan->strides, chunk);
    t->part = fresh ? GGI_HUGE_PAGE : clamp(chunk / (4 * (size_t)threads), PART_MIN, PART_MAX);
    t->last = t->first + t->cut.count;
}

/* All parts are done. Skip the numbers left over, so that no thread takes an old chunk's part from a new one. */
static void transfer_close(const struct transfer *t)
{
    struct ggi_copy_queue *queue = t->lane->queue;
    atomic_store(&queue->next, t->opened * GGI_CHUNK_PARTS_MAX);
    atomic_store(&queue->threads, 0);
}

/* Wait until the device no longer uses slots and memory, but keep the first error. */
static void transfer_abandon(struct ggi_copy_job *job)
{
    struct gg_error first = ggi_error_record()->error;
    ggi_stream_synchronize_uninterruptible(job->stream);
    ggi_error_record()->error = first;
}

gg_status ggi_staging_run(struct ggi_lane *lane, const struct ggi_staging_plan *plan, int threads)
{
    struct ggi_copy_job *job = plan->job;
    uint64_t first = atomic_load(&lane->queue->open);
    struct transfer t = {.lane = lane,
                         .plan = plan,
                         .first = first,
                         .opened = first,
                         .queued = first,
                         .finished = first};
    const bool fresh = job->flags & GG_COPY_DST_UNTOUCHED && job->nbytes >= GGI_HUGE_PAGE;
    const bool alone =
        !ggi_copy_threads_start(&job->device->staging->threads, threads) || threads < 2;
    const bool along = alone || !fresh; /* zeroing a huge page may take 1 ms */
    transfer_cut(&t, threads, fresh);
    atomic_store(&lane->queue->threads, threads);
    ggi_copy_threads_wake(&job->device->staging->threads,
                          threads); /* while the first chunk is prepared */
    while (!transfer_is_over(&t)) {
        if (transfer_move(&t, along))
            t.idle = 0;
        else
            transfer_pause(&t);
    }
    transfer_close(&t);
    if (!t.status)
        ggi_stream_advance(job->stream, t.ticket);
    else
        transfer_abandon(job);
    return t.status;
}
