/* scale.h: the parts of scale.c: the rows, and what they have measured. */
#ifndef SCALE_H
#define SCALE_H

#include <gpuglue/gpuglue.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define NBYTES 4096

/* ---- scale.c ---- */

extern gg_device *device;
extern long calls; /* of a row */

void check(gg_status status, const char *what);
gg_stream *new_stream(void);
gg_memory *new_block(gg_stream *stream);

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Nanoseconds in which the driver allocated or freed memory in this thread: a tracer adds them. */
extern _Thread_local uint64_t driver_ns;

/* One allocation and its release; @p user: a stream that uses the block in between, outside the measured time. Leaves the driver's
 * part in driver_ns. */
uint64_t timed(gg_stream *stream, gg_stream *user);

/* ---- scale_tally.c: how often each time was measured ---- */

struct tally {
    double sum;
    long count;
    uint64_t worst, worst_driver; /* the longest call, and its driver_ns */
    long worst_at;                /* which call of its thread it was */
    uint32_t bins[];
};

struct figures {
    double mean;
    uint64_t median, most, worst, worst_driver; /* most: the 99.9th percentile */
    long worst_at;
};

struct tally *tally_new(void); /* to be freed with free() */
void tally_add(struct tally *self, uint64_t ns);
void tally_merge(struct tally *self, const struct tally *other);
struct figures tally_figures(const struct tally *self);

/* ---- rows: each adds what it has measured; nothing where it cannot run ---- */

/* scale_rows.c */
void own_blocks(long count, struct tally *tally);
void blocks_of_another(long count, struct tally *tally);
void own_blocks_and_polls(long count, struct tally *tally);
void record_and_query(long count, struct tally *tally);
void beside_live(long count, struct tally *tally);
void beside_retired(long count, struct tally *tally);
void after_retired(long count, struct tally *tally);
void large(long count, struct tally *tally);

/* scale_threads.c */
void in_threads(long count, struct tally *tally);
void lock_alone(long count, struct tally *tally);
void as_long(long count, struct tally *tally);
void nothing(long count, struct tally *tally);

#endif
