/* copy.h: what the files about copies share. */
#ifndef GPUGLUE_COPY_H
#define GPUGLUE_COPY_H

#include "box.h"
#include "internal.h"

/* An end, resolved. A host pointer into pinned memory of ours becomes that memory. */
struct ggi_end {
    const struct gg_end *end;
    gg_memory *memory; /* NULL: ordinary host memory */
    gg_memory *found;  /* the reference that ggi_pinned_find gave */
    char *pointer;     /* of the first element */
    struct ggi_reach reach;
    bool device;      /* on a device */
    bool page_locked; /* host memory that the copy's device reaches by itself */
};

struct ggi_job {
    struct ggi_end dst, src;
    size_t nbytes;
    struct ggi_box *box; /* NULL: nbytes in one line */
    gg_device *device;
    gg_stream *stream;
    uint32_t flags;
    bool implicit;  /* no stream was given */
    bool complete;  /* must have finished on the device when the call returns */
    bool capturing; /* the stream is: nothing runs, so nothing is counted */
    bool kept;      /* the ends' owners wait for a ticket */
};

/* ---- copy.c ---- */

/* Whether elements that reach so far around @p offset lie in the memory. */
gg_status ggi_check_inside(const gg_memory *memory, const char *what, size_t offset,
                           const struct ggi_reach *reach);
/* Queue a box, one piece of the job's, and count it; the device reaches both sides. */
gg_status ggi_submit(struct ggi_job *job, void *dst, const void *src, const struct ggi_box *box,
                     enum gg_copy_kind kind, uint64_t *ticket);
/* Count work that was queued for the job. */
void ggi_count(struct ggi_job *job, uint64_t *ticket);
/* The owners of the ends are needed until the ticket has passed; in a graph always. */
void ggi_keep_owners(struct ggi_job *job, uint64_t ticket);
/* Whether the vendor knows the pointer as page-locked memory. */
bool ggi_driver_knows(const struct ggi_job *job, const void *pointer);
/* Whether some pages of host memory are locked for other memory: drivers refuse such a range. */
bool ggi_end_is_mixed(const struct ggi_end *host);
gg_status ggi_refuse_waiting(const struct ggi_job *job, bool page_locked);
gg_status ggi_refuse_capture(void);

/* ---- a box on its way through pinned memory: copy_nd.c ---- */

struct ggi_passage {
    struct ggi_job *job; /* box ordered by the device's side */
    enum gg_copy_kind kind;
    bool whole; /* to the host: all bytes between first and last, of which the host picks */
    ptrdiff_t strides[GG_COPY_MAX_DIMS]; /* within a slot, by axis of the job's box */
};
struct ggi_piece {
    struct ggi_box box;
    char *dst;
    const char *src;
    const ptrdiff_t *strides;
};
void ggi_passage_make(struct ggi_passage *passage, struct ggi_job *job, enum gg_copy_kind kind);
void ggi_passage_piece(const struct ggi_passage *passage, const struct ggi_cut *cut, size_t index,
                       struct ggi_piece *piece);
/* What the host does of a piece: between the caller's memory and the slot. */
void ggi_piece_on_host(const struct ggi_passage *passage, const struct ggi_piece *piece,
                       struct ggi_box *box);
/* Queue what the device does of it. */
gg_status ggi_piece_submit(const struct ggi_passage *passage, const struct ggi_piece *piece,
                           void *slot, uint64_t *ticket);

/* ---- between devices: between.c ---- */

struct ggi_crossing {
    const struct gg_end *dst_end, *src_end;
    gg_memory *dst, *src; /* of two devices */
    char *to;
    const char *from;
    size_t nbytes;
    gg_stream *in, *out; /* of the destination's device, of the source's */
    bool wait_src,
        wait_dst;  /* no stream was given for that end: behind the work that is known of it */
    bool complete; /* no stream was given, and the call returns when all is finished */
    bool kept;     /* the owners of the ends wait for queued work */
};
/* Directly, queued on one stream; or through the host, finished on both devices when it returns.
 * @p stream: NULL, or of one of the two. */
gg_status ggi_copy_between(struct ggi_crossing *crossing, gg_stream *stream, uint32_t flags);
gg_status ggi_crossing_order(const struct ggi_crossing *crossing, gg_stream *for_src,
                             gg_stream *for_dst);

/* ---- directly: peer.c ---- */

/* Whether the two copy without the host. If not known yet, and @p may_ask, it is tried, which fails only where
 * it was interrupted. */
gg_status ggi_peer_is_direct(gg_device *dst, gg_device *src, bool may_ask, bool *out);
/* Whether the stream waits, or has waited, for a device that is lost: its wait may never end. */
bool ggi_peer_is_lost(gg_stream *stream);
/* @p stream: NULL, or one of the crossing's. */
gg_status ggi_copy_direct(struct ggi_crossing *crossing, gg_stream *stream, uint32_t flags);

/* ---- the ways: copy_flat.c for one line of bytes, copy_nd.c for a box ---- */

gg_status ggi_copy_flat(struct ggi_job *job);
gg_status ggi_copy_box(struct ggi_job *job);
/* The job's box through pinned memory of ours, by the lane or piece by piece through the ring. */
gg_status ggi_copy_through_host(struct ggi_job *job, enum gg_copy_kind kind);
/* Put the box in order; whether it turned out to be one line of bytes. */
bool ggi_box_is_line(struct ggi_job *job);
/* A box between two devices: packed on the host on its way. */
gg_status ggi_copy_box_between(struct ggi_job *job);

#endif
