/* box.c: shapes and strides of a copy: checked, sorted, joined, cut into chunks. */
#include "base/error.h"
#include "transfer/box.h"

#include <stdlib.h>

/* ---- from arguments ---- */

static gg_status box_overflows(const char *what)
{
    return ggi_fail(GG_ERR_INVALID_ARGUMENT, "copy: %s overflows 63 bits", what);
}

static gg_status box_count_bytes(int32_t ndim, const size_t *shape, size_t itemsize, size_t *nbytes)
{
    size_t total = itemsize;
    bool empty = false;
    for (int32_t i = 0; i < ndim; i++) {
        if (!shape[i])
            empty = true;
        else if (__builtin_mul_overflow(total, shape[i], &total) || total > PTRDIFF_MAX)
            return box_overflows("the size of all elements");
    }
    *nbytes = empty ? 0 : total;
    return GG_OK;
}

bool ggi_box_reach(const struct ggi_box *box, enum ggi_side side, struct ggi_reach *out)
{
    bool fits = true;
    *out = (struct ggi_reach){0, (ptrdiff_t)box->run};
    for (int i = 0; i < box->axes; i++) {
        ptrdiff_t stride = ggi_axis_stride(&box->axis[i], side), far;
        ptrdiff_t *end = stride < 0 ? &out->low : &out->high;
        fits = fits && !__builtin_mul_overflow((ptrdiff_t)(box->axis[i].count - 1), stride, &far) &&
               !__builtin_add_overflow(*end, far, end);
    }
    return fits;
}

static gg_status box_check_arguments(int32_t ndim, const size_t *shape, size_t itemsize)
{
    if (ndim < 0 || ndim > GG_COPY_MAX_DIMS)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "copy: %d axes: expected 0 to %d", (int)ndim,
                        GG_COPY_MAX_DIMS);
    if (!itemsize || itemsize > PTRDIFF_MAX)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "copy: elements of %zu bytes: expected at least 1",
                        itemsize);
    if (ndim && !shape)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "copy: the shape is a NULL pointer");
    return GG_OK;
}

/* Axes of one element are left out. */
static void box_take_axes(struct ggi_box *box, int32_t ndim, const size_t *shape,
                          const ptrdiff_t *dst, const ptrdiff_t *src, size_t itemsize)
{
    ptrdiff_t dense = (ptrdiff_t)itemsize;
    box->run = itemsize;
    box->axes = 0;
    for (int32_t i = ndim; i-- > 0; dense *= (ptrdiff_t)shape[i])
        if (shape[i] > 1)
            box->axis[box->axes++] =
                (struct ggi_axis){shape[i], dst ? dst[i] : dense, src ? src[i] : dense};
}

static bool box_overlaps_itself(const struct ggi_box *box);

gg_status ggi_box_make(struct ggi_box *box, int32_t ndim, const size_t *shape, const ptrdiff_t *dst,
                       const ptrdiff_t *src, size_t itemsize, size_t *nbytes)
{
    size_t total = 0;
    struct ggi_reach reach;
    gg_status status = box_check_arguments(ndim, shape, itemsize);
    if (!status)
        status = box_count_bytes(ndim, shape, itemsize, &total);
    *nbytes = 0;
    box->run = 0;
    box->axes = 0;
    if (status || !total)
        return status;
    box_take_axes(box, ndim, shape, dst, src, itemsize);
    if (!ggi_box_reach(box, GGI_DST, &reach))
        return box_overflows("the destination's extent");
    if (!ggi_box_reach(box, GGI_SRC, &reach))
        return box_overflows("the source's extent");
    if (dst && box_overlaps_itself(box))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "copy: elements of the destination overlap each other (a stride of 0, or "
                        "one that is too short); copy to separate memory first");
    *nbytes = total;
    return GG_OK;
}

/* ---- order ---- */

static bool axis_before(const struct ggi_axis *one, const struct ggi_axis *other, enum ggi_side main)
{
    enum ggi_side second = main == GGI_DST ? GGI_SRC : GGI_DST;
    size_t a = ggi_stride_size(ggi_axis_stride(one, main)),
           b = ggi_stride_size(ggi_axis_stride(other, main));
    if (a != b)
        return a > b;
    return ggi_stride_size(ggi_axis_stride(one, second)) >
           ggi_stride_size(ggi_axis_stride(other, second));
}

static void box_sort_axes(struct ggi_box *box, enum ggi_side main)
{
    for (int i = 1; i < box->axes; i++) {
        struct ggi_axis axis = box->axis[i];
        int at = i;
        for (; at > 0 && axis_before(&axis, &box->axis[at - 1], main); at--)
            box->axis[at] = box->axis[at - 1];
        box->axis[at] = axis;
    }
}

/* Join an axis that continues the run, or two axes that form one; false if there are none. */
static bool box_join_once(struct ggi_box *box)
{
    for (int i = 0; i < box->axes; i++) {
        const struct ggi_axis outer = box->axis[i];
        if (outer.dst == (ptrdiff_t)box->run && outer.src == (ptrdiff_t)box->run) {
            box->run *= outer.count;
            ggi_box_drop_axis(box, i);
            return true;
        }
        for (int j = 0; j < box->axes; j++) {
            struct ggi_axis *inner = &box->axis[j];
            if (i == j || outer.dst != (ptrdiff_t)inner->count * inner->dst ||
                outer.src != (ptrdiff_t)inner->count * inner->src)
                continue;
            inner->count *= outer.count;
            ggi_box_drop_axis(box, i);
            return true;
        }
    }
    return false;
}

void ggi_box_order(struct ggi_box *box, enum ggi_side main, ptrdiff_t *dst_shift,
                   ptrdiff_t *src_shift)
{
    *dst_shift = *src_shift = 0;
    for (int i = 0; i < box->axes; i++) {
        struct ggi_axis *axis = &box->axis[i];
        ptrdiff_t stride = ggi_axis_stride(axis, main),
                  other = main == GGI_DST ? axis->src : axis->dst;
        if (stride > 0 || (stride == 0 && other >= 0))
            continue;
        *dst_shift += (ptrdiff_t)(axis->count - 1) * axis->dst;
        *src_shift += (ptrdiff_t)(axis->count - 1) * axis->src;
        axis->dst = -axis->dst;
        axis->src = -axis->src;
    }
    while (box_join_once(box)) {
    }
    box_sort_axes(box, main);
}

size_t ggi_box_runs(const struct ggi_box *box)
{
    size_t total = 1;
    for (int i = 0; i < box->axes; i++)
        total *= box->axis[i].count;
    return total;
}

/* ---- does a destination overlap itself? ---- */

/* Sorted by stride, each axis steps over all axes inside it. True for any slice of an array. */
static bool box_nests(const struct ggi_box *box)
{
    size_t inner = box->run;
    for (int i = box->axes; i-- > 0;) {
        size_t stride = ggi_stride_size(box->axis[i].dst);
        if (stride < inner)
            return false;
        inner += (box->axis[i].count - 1) * stride;
    }
    return true;
}

static bool next_place(const struct ggi_box *box, size_t *index, size_t *offset)
{
    for (int i = box->axes; i-- > 0;) {
        size_t stride = ggi_stride_size(box->axis[i].dst);
        if (++index[i] < box->axis[i].count) {
            *offset += stride;
            return true;
        }
        index[i] = 0;
        *offset -= (box->axis[i].count - 1) * stride;
    }
    return false;
}

/* Mark each byte. Only strides that slicing cannot produce come here. */
static bool box_collides(const struct ggi_box *box, size_t span)
{
    size_t index[GG_COPY_MAX_DIMS] = {0}, offset = 0;
    unsigned char *seen = calloc(span / 8 + 1, 1);
    bool twice = !seen; /* out of memory: refuse */
    while (!twice) {
        for (size_t at = offset; !twice && at < offset + box->run; at++) {
            unsigned char bit = (unsigned char)(1u << at % 8);
            twice = seen[at / 8] & bit;
            seen[at / 8] |= bit;
        }
        if (!next_place(box, index, &offset))
            break;
    }
    free(seen);
    return twice;
}

static bool box_overlaps_itself(const struct ggi_box *box)
{
    struct ggi_box sorted = *box;
    struct ggi_reach reach;
    box_sort_axes(&sorted, GGI_DST);
    if (box_nests(&sorted))
        return false;
    ggi_box_reach(&sorted, GGI_DST, &reach);
    size_t span = (size_t)reach.high - (size_t)reach.low;
    return ggi_box_bytes(&sorted) > span || box_collides(&sorted, span);
}

/* ---- cutting ---- */

void ggi_box_pack(const struct ggi_box *box, bool once, enum ggi_side main,
                  ptrdiff_t strides[GG_COPY_MAX_DIMS])
{
    ptrdiff_t size = (ptrdiff_t)box->run;
    for (int i = box->axes; i-- > 0;) {
        bool still = once && !ggi_axis_stride(&box->axis[i], main);
        strides[i] = still ? 0 : size;
        if (!still)
            size *= (ptrdiff_t)box->axis[i].count;
    }
}

size_t ggi_box_span(const struct ggi_box *box, const ptrdiff_t *strides, int from)
{
    size_t span = box->run;
    for (int i = from; i < box->axes; i++)
        span += (box->axis[i].count - 1) * (size_t)strides[i];
    return span;
}

void ggi_cut_make(struct ggi_cut *cut, const struct ggi_box *box, const ptrdiff_t *strides,
                  size_t limit)
{
    int at = 0;
    while (at < box->axes && ggi_box_span(box, strides, at + 1) > limit)
        at++;
    size_t whole = at < box->axes ? box->axis[at].count : box->run;
    cut->axis = at;
    cut->step = limit < whole ? limit : whole;
    if (at < box->axes) {
        size_t inner = ggi_box_span(box, strides, at + 1), stride = (size_t)strides[at];
        size_t fit = stride ? 1 + (limit - inner) / stride : whole;
        cut->step = fit < whole ? fit : whole;
    }
    cut->groups = (whole - 1) / cut->step + 1;
    cut->count = cut->groups;
    for (int i = 0; i < at; i++)
        cut->count *= box->axis[i].count;
}

void ggi_cut_chunk(const struct ggi_cut *cut, const struct ggi_box *box, size_t index,
                   struct ggi_box *chunk, ptrdiff_t *dst, ptrdiff_t *src)
{
    bool of_run = cut->axis == box->axes;
    size_t whole = of_run ? box->run : box->axis[cut->axis].count;
    size_t first = index % cut->groups * cut->step, outer = index / cut->groups;
    size_t count = cut->step < whole - first ? cut->step : whole - first;
    *dst = (ptrdiff_t)first * (of_run ? 1 : box->axis[cut->axis].dst);
    *src = (ptrdiff_t)first * (of_run ? 1 : box->axis[cut->axis].src);
    for (int i = cut->axis; i-- > 0; outer /= box->axis[i].count) {
        *dst += (ptrdiff_t)(outer % box->axis[i].count) * box->axis[i].dst;
        *src += (ptrdiff_t)(outer % box->axis[i].count) * box->axis[i].src;
    }
    ggi_box_inner(chunk, box, cut->axis);
    *(of_run ? &chunk->run : &chunk->axis[0].count) = count;
}

/* ---- what one driver call copies ---- */

static bool axis_is_row(const struct ggi_axis *axis, size_t run)
{
    return run <= INT32_MAX && axis->count <= INT32_MAX && axis->dst >= (ptrdiff_t)run &&
           axis->src >= (ptrdiff_t)run && axis->dst <= INT32_MAX && axis->src <= INT32_MAX;
}

static bool axis_is_slice(const struct ggi_axis *axis, const struct ggi_axis *row)
{
    ptrdiff_t rows = (ptrdiff_t)row->count;
    return axis->count <= INT32_MAX && axis->dst <= INT32_MAX && axis->src <= INT32_MAX &&
           axis->dst >= rows * row->dst && axis->src >= rows * row->src &&
           axis->dst % row->dst == 0 && axis->src % row->src == 0;
}

static int box_best_slice(const struct ggi_box *box, int row)
{
    int best = -1;
    for (int i = 0; i < box->axes; i++)
        if (i != row && axis_is_slice(&box->axis[i], &box->axis[row]) &&
            (best < 0 || box->axis[i].count > box->axis[best].count))
            best = i;
    return best;
}

void ggi_box_tile(const struct ggi_box *box, bool regions, struct ggi_tiling *out)
{
    const size_t runs = ggi_box_runs(box);
    *out = (struct ggi_tiling){-1, -1, runs};
    for (int i = 0; regions && i < box->axes; i++) {
        if (!axis_is_row(&box->axis[i], box->run))
            continue;
        int slice = box_best_slice(box, i);
        size_t taken = box->axis[i].count * (slice < 0 ? 1 : box->axis[slice].count);
        if (runs / taken < out->calls)
            *out = (struct ggi_tiling){i, slice, runs / taken};
    }
}

bool ggi_box_step(const struct ggi_box *box, const struct ggi_tiling *tiling, size_t *index,
                  char **dst, const char **src)
{
    for (int i = box->axes; i-- > 0;) {
        const struct ggi_axis *axis = &box->axis[i];
        if (i == tiling->row || i == tiling->slice)
            continue;
        *dst += axis->dst;
        *src += axis->src;
        if (++index[i] < axis->count)
            return true;
        index[i] = 0;
        *dst -= (ptrdiff_t)axis->count * axis->dst;
        *src -= (ptrdiff_t)axis->count * axis->src;
    }
    return false;
}
