/* copy_job.h: one copy, with both operands resolved, and how its parts are submitted to the device. */
#ifndef GPUGLUE_COPY_JOB_H
#define GPUGLUE_COPY_JOB_H

#include "memory/memory.h"
#include "memory/uses.h"
#include "runtime/replay.h"
#include "transfer/box.h"

/* A host pointer into pinned memory that gpuglue allocated or locked is resolved to that memory. */
struct ggi_copy_operand {
    const struct gg_copy_operand *given; /* by the caller */
    gg_memory *memory;                   /* NULL: ordinary host memory */
    gg_memory *found;                    /* the reference that ggi_pinned_find returned */
    char *pointer;                       /* of the first element */
    struct ggi_reach reach;
    bool device; /* device memory */
    bool pinned; /* host memory that the job's device can access */
    bool shared; /* host memory that the driver knows, or a part of it */
};

struct ggi_copy_job {
    struct ggi_copy_operand dst, src;
    size_t nbytes;
    struct ggi_box *box;    /* without axes: nbytes in one line */
    enum gg_copy_kind kind; /* 0: between two host blocks */
    gg_device *device;
    gg_stream *stream;
    uint64_t result; /* of what it reads: ggi_memory_result */
    uint32_t flags;
    bool implicit;    /* no stream was given */
    bool complete;    /* must have finished on the device when the call returns */
    bool capturing;   /* the stream is captured: nothing runs, so there are no tickets */
    bool owners_kept; /* the operands' owners are released after a ticket */
    bool spaced;      /* struct ggi_staging_kind */
};

/* The operand in host memory of a copy between the host and a device. */
static inline struct ggi_copy_operand *ggi_copy_host(struct ggi_copy_job *job)
{
    return job->kind == GG_COPY_H2D ? &job->src : &job->dst;
}

/* Which side of the box the device reads or writes. */
static inline enum ggi_side ggi_copy_device_side(const struct ggi_copy_job *job)
{
    return job->kind == GG_COPY_D2H ? GGI_SRC : GGI_DST;
}

/* Whether elements that reach this far around @p offset are inside the memory. */
gg_status ggi_copy_check_range(const gg_memory *memory, const char *what, size_t offset,
                               const struct ggi_reach *reach);
/* So many driver calls are faster than packing by the host; copy engines are fast with rows of such length. */
#define GGI_COPY_CALLS_FEW 64u
#define GGI_COPY_CALLS_MOST 65536u /* for one copy, where the caller allows no other path */
#define GGI_COPY_RUN_LONG 256u     /* bytes */
/* How many driver calls copy the box. */
size_t ggi_copy_calls(const struct ggi_copy_job *job, const struct ggi_box *box);

/* Host memory for @p nbytes on their way between devices, or NULL with the error recorded. free() it. */
void *ggi_bounce_alloc(size_t nbytes);

/* ---- submission ---- */

/* One driver call for contiguous bytes. The caller counts it. */
static inline gg_status ggi_copy_call(gg_stream *stream, void *dst, const void *src, size_t nbytes,
                                      enum gg_copy_kind kind, bool pageable)
{
    return GGI_QUEUE(stream->device, copy, stream, nbytes, dst, src, nbytes, kind, pageable);
}
/* Queue a box, all of the job or a part, and count it; the device reaches both sides. */
gg_status ggi_copy_submit(struct ggi_copy_job *job, void *dst, const void *src,
                          const struct ggi_box *box, uint64_t *ticket);
/* The same without counting, for a box with axes. */
gg_status ggi_copy_submit_axes(struct ggi_copy_job *job, char *dst, const char *src,
                               const struct ggi_box *box);
/* Count work that writes to @p memory, or with NULL to memory of other code. Memory that was registered or wrapped outlives its
 * handle: an upload may then read it by its address. */
static inline uint64_t ggi_copy_count_write(gg_stream *stream, const gg_memory *memory)
{
    const bool own = memory && (memory->pool || memory->kind == GG_MEMORY_DEVICE);
    return own ? ggi_stream_counted(stream) : ggi_stream_submitted(stream);
}
/* Count work that was queued for the job: its ticket, or 0 in a capture. */
uint64_t ggi_copy_count(struct ggi_copy_job *job);
/* Release the owner once the stream has passed the ticket; 0: once the process ends, as a graph may run again. */
void ggi_copy_keep_owner(const struct ggi_copy_operand *operand, gg_stream *stream, uint64_t ticket);
void ggi_copy_keep_owners(struct ggi_copy_job *job, gg_stream *stream, uint64_t ticket);

/* ---- the whole job ---- */

/* copy_path.c: choose how the job is done, and do it. Both operands are on one device or on the host, and the axes
 * are in order. GG_NOT_READY: nothing was done; the job needs a bounce buffer. */
gg_status ggi_copy_run(struct ggi_copy_job *job);
/* copy_device.c: one line between two devices, directly or through the host. The job's stream: NULL, or one of
 * either device. */
gg_status ggi_copy_devices(struct ggi_copy_job *job);
/* A box between two devices, directly. GG_NOT_READY: nothing was done; the box goes through the host. */
gg_status ggi_copy_devices_strided(struct ggi_copy_job *job);

#endif
