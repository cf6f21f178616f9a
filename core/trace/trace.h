/* trace.h: what gg_trace_start records, by thread, until gg_trace_stop writes it to a file. */
#ifndef GPUGLUE_TRACE_H
#define GPUGLUE_TRACE_H

#include "runtime/event.h"
#include "runtime/stream.h"

#include <stdio.h>

/* One operation, or one range if backend is NULL. Times in nanoseconds of the monotonic clock. */
struct ggi_trace_record {
    uint64_t begin_ns, end_ns;
    uint64_t bytes, stream; /* stream: its serial number; 0 if there is none */
    const char *name;       /* of the kernel or the range; or NULL */
    const char *backend;
    gg_op op;
    int32_t device;
    gg_status status;
    float device_ms;        /* duration on the device; below 0 if it was not measured */
    double device_begin_ms; /* since the device's first measured operation */
};

#define GGI_TRACE_CHUNK 500
struct ggi_trace_chunk {
    struct ggi_trace_chunk *next; /* the one before it */
    size_t used;
    struct ggi_trace_record record[GGI_TRACE_CHUNK];
};

struct ggi_trace_thread {
    struct ggi_trace_thread *next;
    struct ggi_trace_chunk *chunks; /* newest first */
    long tid;
    char name[16];
};

/* ---- recorder.c: calls of session.c, one at a time ---- */

bool ggi_trace_session_is_open(void); /* false in a forked child */
void ggi_trace_session_begin(bool device_times);
/* Stop recording. The records stay until the session is freed. */
const struct ggi_trace_thread *ggi_trace_session_end(uint64_t *dropped);
void ggi_trace_session_free(void);

/* ---- trace_file.c ---- */

/* Write all records as a JSON object of the Trace Event Format. */
void ggi_trace_write(FILE *file, const struct ggi_trace_thread *threads, uint64_t dropped);

/* ---- trace_device.c: times on the device, by a pair of events around each operation ---- */

/* The first event; NULL if the operation is not measured: it does not run on a stream, or is captured. */
gg_event *ggi_trace_device_begin(struct gg_device *device, gg_op op, gg_stream *stream);
/* The second event. @p record gets the times once the operation is done; @p begin is taken over. */
void ggi_trace_device_end(gg_stream *stream, gg_event *begin, struct ggi_trace_record *record);
/* Fill in the times of all operations that are done, and forget the others. */
void ggi_trace_device_finish(void);
void ggi_trace_device_reset(void); /* forget everything, in a forked child */

/* ---- session.c ---- */

void ggi_trace_init(void); /* before the first operation: GPUGLUE_TRACE */
void ggi_trace_exit(void); /* at the shutdown: write what is being recorded */

#endif
