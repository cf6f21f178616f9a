/* staging.h: large copies of pageable memory, cut into chunks that a few threads pass through pinned slots
 * while the device's copy engine runs.
 *
 * A device has a lane for each direction and one crew of threads for both. Who copies holds the lane,
 * queues each chunk by itself and works along; the crew only moves bytes between slots and the caller's
 * memory. Nothing of it goes on when the call returns. */
#ifndef GPUGLUE_STAGING_H
#define GPUGLUE_STAGING_H

#include "copy.h"

#define GGI_STAGE_CHUNK ((size_t)4 << 20) /* bytes of a slot */
#define GGI_STAGE_SLOTS 8u                /* of a lane */
#define GGI_STAGE_LEAST 2u
#define GGI_STAGE_BUDGET ((size_t)128 << 20) /* pinned bytes of all lanes of the process */
#define GGI_MOST_PARTS 64u                   /* of a chunk */
#define GGI_MOST_CREW 64
#define GGI_HUGE_PAGE ((size_t)2 << 20) /* of the memory that results lie in */

/* Copying by the host, of one chunk. It is cut into parts, which threads take one by one. */
struct ggi_load {
    struct ggi_box box;
    struct ggi_cut cut;
    char *dst;
    const char *src;
};

struct ggi_lane {
    /* Who holds it; the rest is the holder's, but for what is atomic. */
    pthread_mutex_t lock;
    pthread_cond_t free;
    bool held;
    struct ggi_retired *memory; /* the slots, as what is given back one day; NULL: none */
    char *slot[GGI_STAGE_SLOTS];
    struct gg_event_impl *event[GGI_STAGE_SLOTS];
    _Atomic(unsigned) slots;

    /* Chunks are numbered through all transfers, so that no number comes twice. Chunk c lies in slot
     * c % slots; part p of it is number c * GGI_MOST_PARTS + p. */
    _Atomic(uint64_t) next;                  /* the part to be taken next */
    _Atomic(uint64_t) open;                  /* chunks below it may be worked on */
    _Atomic(uint64_t) end[GGI_STAGE_SLOTS];  /* behind the last part of the chunk that is there */
    _Atomic(unsigned) done[GGI_STAGE_SLOTS]; /* parts of it */
    struct ggi_load load[GGI_STAGE_SLOTS];
    _Atomic(int) threads; /* how many may work on it, its holder too */

    /* What was measured: staging is faster from so many bytes on, with so many threads. */
    _Atomic(bool) measured;
    size_t from; /* SIZE_MAX: never; written before measured, as best is */
    int best;
    _Atomic(uint64_t) seen; /* bytes copied so far: measuring has a price */
    _Atomic(int) failures;  /* to measure */
};

struct ggi_crew {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    _Atomic(int) sleeping;
    _Atomic(bool) stop;
    int started, wanted; /* wanted 0: not asked yet */
    pthread_t thread[GGI_MOST_CREW];
    int32_t node; /* of memory, near the device; -1: not known */
};

struct ggi_staging {
    struct gg_device *device;
    struct ggi_lane lane[2]; /* up, down */
    struct ggi_crew crew;
};

static inline struct ggi_lane *ggi_lane_of(struct gg_device *device, enum gg_copy_kind kind)
{
    return &device->staging->lane[kind == GG_COPY_D2H];
}

/* ---- staging.c ---- */

/* Hold the lane, with slots; waits for whoever has it, with the hook. GG_NOT_READY: there is no pinned
 * memory for slots, so take another way. */
gg_status ggi_lane_take(struct gg_device *device, struct ggi_lane *lane);
void ggi_lane_give(struct ggi_lane *lane);
/* Copy all of it, in a lane that is held, with so many threads. The stream has no other work. */
gg_status ggi_stage_in(struct ggi_lane *lane, const struct ggi_passage *passage, int threads);
/* The whole way; GG_NOT_READY as above, with nothing done. */
gg_status ggi_stage(const struct ggi_passage *passage);

/* ---- its life: staging.c, results.c ---- */

struct ggi_staging *ggi_staging_new(struct gg_device *device); /* without slots and threads yet */
/* Let go of the slots that no copy is using. */
void ggi_staging_trim(struct gg_device *device);
/* At shutdown: copies that are on their way end at their next look; wait for that, so that no thread calls
 * the driver while the process takes it away. */
void ggi_staging_settle(struct gg_device *device, uint64_t deadline);
/* At shutdown, when all is idle: of the threads, too. */
void ggi_staging_destroy(struct gg_device *device);

/* Give back the freed results that are kept for the device: results.c. */
void ggi_results_trim(struct gg_device *device);

/* ---- slots.c ---- */

gg_status ggi_lane_fill(struct gg_device *device, struct ggi_lane *lane);
void ggi_lane_empty(struct gg_device *device, struct ggi_lane *lane); /* held, nothing in flight */

/* ---- crew.c ---- */

/* How many threads may copy, the caller among them: GPUGLUE_COPY_THREADS, or the processor's share that
 * this process has. */
int ggi_copy_threads(void);
/* Have up to @p threads - 1 workers, as many as the system gives; how many there are. */
int ggi_crew_start(struct ggi_staging *staging, int threads);
/* Chunks below @p chunk may be worked on. */
void ggi_lane_open(struct ggi_staging *staging, struct ggi_lane *lane, uint64_t chunk);
extern unsigned ggi_crew_looks; /* for work, before a worker sleeps; tests make it sleep sooner */
void ggi_crew_stop(struct ggi_crew *crew);
/* Do one part of the lane's open chunks; false when there is none to be taken. */
bool ggi_lane_work(struct ggi_lane *lane);

/* ---- calibrate.c ---- */

/* Whether the copy is faster through the lane than by the vendor; measures at its time, which fails only where
 * it was interrupted. */
gg_status ggi_staging_pays(const struct ggi_job *job, enum gg_copy_kind kind, bool *out);
/* With how many threads. */
int ggi_staging_threads(const struct ggi_job *job, enum gg_copy_kind kind);

#endif
