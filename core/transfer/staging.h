/* staging.h: large copies of pageable memory, cut into chunks that a few threads pass through the pinned slots of
 * a lane while the device's copy engine runs.
 *
 * The calling thread holds the lane, queues every chunk and helps to copy; the copy threads only move bytes
 * between slots and the caller's memory. All of it has finished when the call returns. */
#ifndef GPUGLUE_STAGING_H
#define GPUGLUE_STAGING_H

#include "transfer/copy_job.h"
#include "transfer/copy_threads.h"
#include "transfer/staging_model.h"

/* ---- lane.c: the two lanes of a device, one for each direction ---- */

#define GGI_STAGING_CHUNK ((size_t)4 << 20)    /* bytes of a slot */
#define GGI_STAGING_BUDGET ((size_t)128 << 20) /* pinned bytes of all lanes of the process */

struct ggi_lane {
    /* One thread at a time holds the lane. Only that thread uses the other members that are not atomic. */
    pthread_mutex_t lock;
    pthread_cond_t free;
    bool held;
    struct ggi_retired *memory; /* the slots; NULL: none */
    char *slot[GGI_QUEUE_SLOTS];
    struct gg_event_impl *event[GGI_QUEUE_SLOTS];
    struct ggi_copy_queue *queue; /* one of the two in `threads` */

    struct ggi_retired *used; /* the slots that a copy has used before */
    _Atomic(bool) started;
    struct ggi_staging_model model; /* with the lock held */
    _Atomic(uint64_t) seen;         /* bytes of copies before slots were worth it */
};

struct ggi_staging {
    struct ggi_lane lane[2]; /* to the device, to the host */
    struct ggi_copy_threads threads;
    _Atomic(uint64_t) ended_at; /* when the last copy of 256 KiB or more ended */
};

static inline struct ggi_lane *ggi_lane_of(struct gg_device *device, enum gg_copy_kind kind)
{
    return &device->staging->lane[kind == GG_COPY_D2H];
}

/* Acquire the lane and its slots; waits, calling the wait hook, while another thread holds it. GG_NOT_READY:
 * there is no pinned memory for slots. */
gg_status ggi_lane_acquire(struct gg_device *device, struct ggi_lane *lane);
void ggi_lane_release(struct ggi_lane *lane);

struct ggi_staging *ggi_staging_new(struct gg_device *device); /* without slots and threads yet */
/* Free the slots that no copy is using. */
void ggi_staging_trim(struct gg_device *device);
/* At shutdown: wait until running copies have ended, so that no thread calls the driver while it is unloaded. */
void ggi_staging_wait(struct gg_device *device, uint64_t deadline);
/* At shutdown, when all is idle: free the slots and stop the threads. */
void ggi_staging_destroy(struct gg_device *device);

/* ---- staging.c: how a box passes through pinned memory in chunks ---- */

struct ggi_staging_plan {
    struct ggi_copy_job *job; /* axes ordered by the device's side */
    bool whole; /* to the host: the device copies all bytes from first to last, the host the elements */
    ptrdiff_t strides[GG_COPY_MAX_DIMS]; /* within a slot, by axis of the job's box */
};
struct ggi_chunk {
    struct ggi_box box;
    char *dst;
    const char *src;
    const ptrdiff_t *strides;
};

void ggi_staging_plan_make(struct ggi_staging_plan *plan, struct ggi_copy_job *job);
void ggi_staging_plan_chunk(const struct ggi_staging_plan *plan, const struct ggi_cut *cut,
                            size_t index, struct ggi_chunk *chunk);
/* What the host copies of the chunk: between the caller's memory and the slot. */
void ggi_chunk_host_box(const struct ggi_staging_plan *plan, const struct ggi_chunk *chunk,
                        struct ggi_box *box);
/* What the device copies of it: between its memory and the slot. */
void ggi_chunk_device_box(const struct ggi_staging_plan *plan, const struct ggi_chunk *chunk,
                          struct ggi_box *box);

/* Copy the whole plan with @p threads threads. The caller holds the lane; the stream is idle. */
gg_status ggi_staging_run(struct ggi_lane *lane, const struct ggi_staging_plan *plan, int threads);

/* ---- staging_policy.c ---- */

/* Copy the job through its lane. GG_NOT_READY: nothing was done, since there is no pinned memory. */
gg_status ggi_staging_copy(struct ggi_copy_job *job);
/* The same if it is likely to be faster than the driver's own copy, else GG_NOT_READY. */
gg_status ggi_staging_copy_if_faster(struct ggi_copy_job *job);
/* The driver has copied the job since @p begin. */
void ggi_staging_learn_driver(struct ggi_copy_job *job, uint64_t begin);

#endif
