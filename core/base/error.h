/* error.h: each thread's record of its last error. */
#ifndef GPUGLUE_ERROR_H
#define GPUGLUE_ERROR_H

#include <gpuglue/backend.h>

#include <stdbool.h>

struct ggi_error_record {
    struct gg_error error;
    struct gg_error suppressed; /* the last error while errors were suppressed */
    int suppress_depth;
    bool first_loss; /* the last GG_ERR_DEVICE_LOST was the first one of its device */
    uint8_t ranks[GG_COMM_SIZE_MAX / 8]; /* bits: that the last GG_ERR_COMMUNICATOR names */
};
/* An error that another thread will report. */
struct ggi_kept_error {
    struct gg_error error;
    uint8_t ranks[GG_COMM_SIZE_MAX / 8];
};
/* Copy this thread's error. */
void ggi_error_keep(struct ggi_kept_error *out);
/* Make it this thread's error, and return its status. */
gg_status ggi_error_restore(const struct ggi_kept_error *kept);
/* This thread's; never NULL (threads share one if memory runs out). */
struct ggi_error_record *ggi_error_record(void);

/* Record an error of the core itself and return @p status. */
gg_status ggi_fail(gg_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
gg_status ggi_host_fail(gg_status status, const struct gg_vendor_error *error, const char *format,
                        ...) __attribute__((format(printf, 3, 4)));
gg_status ggi_fail_interrupted(void); /* the wait hook ended a wait */
/* Set the backend's name in the last error. */
void ggi_fail_names(const char *backend);
/* Adds to a count. While it is positive, failures do not change this thread's error: for releases and
 * internal queries. */
void ggi_suppress_errors(int delta);

#endif
