/* staging_model.h: the measured speed of pageable copies in one direction of a device, by size: of the driver's own copy,
 * and of staging with each number of threads. It begins with an estimate and measures only the program's own copies. It
 * reads no clock and calls no other code. */
#ifndef GPUGLUE_STAGING_MODEL_H
#define GPUGLUE_STAGING_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GGI_STAGING_CLASSES 12 /* of sizes, by powers of two */
#define GGI_STAGING_SPACED 8   /* those below 32 MiB, once more for spaced copies */
#define GGI_STAGING_CHOICES 13 /* the driver, and 12 numbers of threads */

/* spaced: it follows the last copy so late that the copy threads may sleep, and that caches hold other bytes. */
struct ggi_staging_kind {
    size_t nbytes;
    bool spaced;
};

/* Rates are bytes per nanosecond, which is GB/s. */
struct ggi_staging_estimate {
    double recent, usual; /* of the last few copies, and of more */
    uint64_t at;          /* when the last of them ended; 0: there was none */
};

struct ggi_staging_model {
    double link; /* what the device's link can carry; 0: not known */
    int current[GGI_STAGING_CLASSES + GGI_STAGING_SPACED];
    struct ggi_staging_estimate of[GGI_STAGING_CLASSES + GGI_STAGING_SPACED][GGI_STAGING_CHOICES];
    double credit; /* nanoseconds that the next trial may cost */
    uint64_t tried_at, learned_at;
};

void ggi_staging_model_start(struct ggi_staging_model *model, double link);
/* How many threads, of at most @p most, should copy; 0: the driver. */
int ggi_staging_model_choose(struct ggi_staging_model *model, struct ggi_staging_kind kind,
                             int most, uint64_t now);
/* A copy by so many threads took @p ns nanoseconds. */
void ggi_staging_model_learn(struct ggi_staging_model *model, struct ggi_staging_kind kind,
                             int threads, uint64_t ns, uint64_t now);

#endif
