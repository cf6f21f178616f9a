/* staging_model.h: what the copies of pageable memory in one direction of a device have shown so far: how fast the
 * driver is, and how fast staging is with so many threads, by size. It starts with a guess and learns from the copies
 * that the program makes, so nothing is ever copied only to be measured. It reads no clock and calls nothing. */
#ifndef GPUGLUE_STAGING_MODEL_H
#define GPUGLUE_STAGING_MODEL_H

#include <stddef.h>
#include <stdint.h>

#define GGI_STAGING_CLASSES 12 /* of sizes, by powers of two */
#define GGI_STAGING_CHOICES 13 /* the driver, and 12 numbers of threads */

/* Rates are bytes per nanosecond, which is GB/s. */
struct ggi_staging_estimate {
    double recent, usual; /* of the last few copies, and of more */
    uint64_t at;          /* when the last of them ended; 0: there was none */
};

struct ggi_staging_model {
    double link; /* what the device's link can carry; 0: not known */
    int current[GGI_STAGING_CLASSES];
    struct ggi_staging_estimate of[GGI_STAGING_CLASSES][GGI_STAGING_CHOICES];
    double credit; /* nanoseconds that the next trial may cost */
    uint64_t tried_at;
};

void ggi_staging_model_start(struct ggi_staging_model *model, double link);
/* How many threads, of at most @p most, should copy; 0: the driver. */
int ggi_staging_model_choose(struct ggi_staging_model *model, size_t nbytes, int most, uint64_t now);
/* A copy by so many threads took @p ns nanoseconds. */
void ggi_staging_model_learn(struct ggi_staging_model *model, size_t nbytes, int threads,
                             uint64_t ns, uint64_t now);

#endif
