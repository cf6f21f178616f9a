/* box.h: a copy of N axes as plain numbers: what of it is contiguous, how it is cut, how the host copies it. */
#ifndef GPUGLUE_BOX_H
#define GPUGLUE_BOX_H

#include <gpuglue/gpuglue.h>

#include <stdbool.h>
#include <string.h>

struct ggi_axis {
    size_t count; /* at least 2, except in a chunk that was cut */
    ptrdiff_t dst, src;
};

/* Runs of bytes, contiguous on both sides, over axes, the outermost first. Without axes: one line. A large
 * struct: copy and initialise only the axes that it has. */
struct ggi_box {
    size_t run;
    int axes;
    struct ggi_axis axis[GG_COPY_MAX_DIMS];
};

/* The bytes that the elements span around the first: [low, high), low <= 0. */
struct ggi_reach {
    ptrdiff_t low, high;
};

enum ggi_side { GGI_DST, GGI_SRC };

static inline ptrdiff_t ggi_axis_stride(const struct ggi_axis *axis, enum ggi_side side)
{
    return side == GGI_DST ? axis->dst : axis->src;
}

static inline size_t ggi_stride_size(ptrdiff_t stride)
{
    return stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
}

/* From the arguments of gg_copy_nd: axes of one element are left out; *nbytes is 0 where nothing is to be
 * copied. GG_ERR_INVALID_ARGUMENT where a size overflows or the destination overlaps itself. */
gg_status ggi_box_make(struct ggi_box *box, int32_t ndim, const size_t *shape, const ptrdiff_t *dst,
                       const ptrdiff_t *src, size_t itemsize, size_t *nbytes);
/* False if a sum overflows, which cannot happen to a box that was made. */
bool ggi_box_reach(const struct ggi_box *box, enum ggi_side side, struct ggi_reach *out);
/* Sort the axes by the strides of @p main, make those positive, and join axes that are contiguous on both
 * sides. The shifts are the bytes by which the first element moves. */
void ggi_box_order(struct ggi_box *box, enum ggi_side main, ptrdiff_t *dst_shift,
                   ptrdiff_t *src_shift);
size_t ggi_box_runs(const struct ggi_box *box);
static inline size_t ggi_box_bytes(const struct ggi_box *box)
{
    return box->run * ggi_box_runs(box);
}

/* The axes of @p box from @p first inward. */
static inline void ggi_box_inner(struct ggi_box *out, const struct ggi_box *box, int first)
{
    out->run = box->run;
    out->axes = box->axes - first;
    memcpy(out->axis, box->axis + first, (size_t)out->axes * sizeof out->axis[0]);
}

static inline void ggi_box_drop_axis(struct ggi_box *box, int at)
{
    box->axes--;
    memmove(&box->axis[at], &box->axis[at + 1], (size_t)(box->axes - at) * sizeof box->axis[0]);
}

/* ---- what one driver call copies ---- */

/* The axes that one call takes beside the run: -1 for none. The caller loops over the others. */
struct ggi_tiling {
    int row, slice;
    size_t calls;
};
void ggi_box_tile(const struct ggi_box *box, bool regions, struct ggi_tiling *out);
/* Step to the next index of the axes that are in no call; false after the last. */
bool ggi_box_step(const struct ggi_box *box, const struct ggi_tiling *tiling, size_t *index,
                  char **dst, const char **src);

/* ---- cutting ---- */

/* Chunks of a box: ranges along one axis, at each index of the axes outside it. */
struct ggi_cut {
    int axis;    /* box->axes: the run itself is cut */
    size_t step; /* of that axis, or bytes */
    size_t groups, count;
};

/* Strides of a dense copy of the box, in the order of its axes; with @p once, axes of stride 0 on @p main
 * take no space. */
void ggi_box_pack(const struct ggi_box *box, bool once, enum ggi_side main,
                  ptrdiff_t strides[GG_COPY_MAX_DIMS]);
/* Bytes from first to last of axes @p from and inward, where they are @p strides apart. */
size_t ggi_box_span(const struct ggi_box *box, const ptrdiff_t *strides, int from);
/* Chunks of at most @p limit bytes, laid out with @p strides. */
void ggi_cut_make(struct ggi_cut *cut, const struct ggi_box *box, const ptrdiff_t *strides,
                  size_t limit);
/* Chunk @p index, and where it begins on both sides. */
void ggi_cut_chunk(const struct ggi_cut *cut, const struct ggi_box *box, size_t index,
                   struct ggi_box *chunk, ptrdiff_t *dst, ptrdiff_t *src);

/* ---- by the host: box_copy.c ---- */

void ggi_box_copy_axes(char *dst, const char *src, const struct ggi_box *box);
/* Copy it now. The two sides do not overlap. */
static inline void ggi_box_copy(char *dst, const char *src, const struct ggi_box *box)
{
    if (box->axes)
        ggi_box_copy_axes(dst, src, box);
    else
        memcpy(dst, src, box->run);
}
/* memcpy that leaves nothing of @p dst in the caches, for memory that a device reads next: it reads faster from memory
 * than from another core's cache, and no line is fetched only to be overwritten. */
void ggi_copy_past_caches(char *dst, const char *src, size_t nbytes);

#endif
