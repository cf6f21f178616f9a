/* box.h: a copy of N axes as plain numbers: what of it is contiguous, how it is cut, how the host does it. */
#ifndef GPUGLUE_BOX_H
#define GPUGLUE_BOX_H

#include <gpuglue/gpuglue.h>

#include <stdbool.h>

struct ggi_axis {
    size_t count; /* at least 2, but in a piece that was cut */
    ptrdiff_t dst, src;
};

/* Runs of bytes, contiguous on both sides, over axes, the outermost first. */
struct ggi_box {
    size_t run;
    int axes;
    struct ggi_axis axis[GG_COPY_MAX_DIMS];
};

/* How far the elements reach around the first: bytes [low, high), low <= 0. */
struct ggi_reach {
    ptrdiff_t low, high;
};

enum ggi_side { GGI_DST, GGI_SRC };

/* From the arguments of gg_copy_nd: axes of one element are left out; *nbytes is 0 where nothing is to be
 * copied. GG_ERR_INVALID_ARGUMENT for what overflows and for a destination that overlaps itself. */
gg_status ggi_box_make(struct ggi_box *box, int32_t ndim, const size_t *shape, const ptrdiff_t *dst,
                       const ptrdiff_t *src, size_t itemsize, size_t *nbytes);
void ggi_box_reach(const struct ggi_box *box, enum ggi_side side, struct ggi_reach *out);
/* Sort the axes by the strides of @p main, make those positive, and join what lies in one line on both
 * sides. The shifts say where the first element has gone. */
void ggi_box_order(struct ggi_box *box, enum ggi_side main, ptrdiff_t *dst_shift,
                   ptrdiff_t *src_shift);
size_t ggi_box_bytes(const struct ggi_box *box);

/* ---- cutting ---- */

/* Pieces of a box: ranges along one axis, at each place of the axes outside it. */
struct ggi_cut {
    int axis;    /* box->axes: the run itself is cut */
    size_t step; /* of that axis, or bytes */
    size_t groups, count;
};

/* Strides of a dense copy of the box, in the order of its axes; axes that stand still on @p main take no
 * room if @p once. */
void ggi_box_pack(const struct ggi_box *box, bool once, enum ggi_side main,
                  ptrdiff_t strides[GG_COPY_MAX_DIMS]);
/* Bytes from first to last of axes @p from and inward, where they lie @p strides apart. */
size_t ggi_box_span(const struct ggi_box *box, const ptrdiff_t *strides, int from);
/* Pieces of at most @p limit bytes, laid out with @p strides. */
void ggi_cut_make(struct ggi_cut *cut, const struct ggi_box *box, const ptrdiff_t *strides,
                  size_t limit);
/* Piece @p index, and where it begins on both sides. */
void ggi_cut_piece(const struct ggi_cut *cut, const struct ggi_box *box, size_t index,
                   struct ggi_box *piece, ptrdiff_t *dst, ptrdiff_t *src);

/* ---- by the host: gather.c ---- */

/* Copy it now. The two sides are apart. */
void ggi_box_copy(char *dst, const char *src, const struct ggi_box *box);

/* ---- by the device ---- */

/* Which axes one vendor call takes beside the run: -1 for none. The others are looped over. */
struct ggi_tiling {
    int row, slice;
    size_t calls;
};
void ggi_box_tile(const struct ggi_box *box, bool regions, struct ggi_tiling *out);

#endif
