/* gather.c: a box of bytes copied by the host. Where the two sides run along different axes, tiles keep
 * both within the caches. */
#include "box.h"

#include <string.h>

#define TILE 32u /* elements along each axis: 32 lines of either side stay in the first cache */

/* The two innermost loops: along `fast` the destination is densest, along `slow` the source. */
struct plane {
    size_t run;
    struct ggi_axis slow, fast;
    bool apart; /* the two are different axes */
};

/* Inlined for each size, so that the copy of one element is one move. */
static inline __attribute__((always_inline)) void copy_tile(char *dst, const char *src, size_t rows,
                                                            size_t columns,
                                                            const struct plane *plane, size_t size)
{
    for (size_t y = 0; y < rows; y++) {
        char *to = dst + (ptrdiff_t)y * plane->slow.dst;
        const char *from = src + (ptrdiff_t)y * plane->slow.src;
        for (size_t x = 0; x < columns; x++) {
            memcpy(to, from, size);
            to += plane->fast.dst;
            from += plane->fast.src;
        }
    }
}

static void tile(char *dst, const char *src, size_t rows, size_t columns, const struct plane *plane)
{
    switch (plane->run) {
    case 1:
        copy_tile(dst, src, rows, columns, plane, 1);
        break;
    case 2:
        copy_tile(dst, src, rows, columns, plane, 2);
        break;
    case 4:
        copy_tile(dst, src, rows, columns, plane, 4);
        break;
    case 8:
        copy_tile(dst, src, rows, columns, plane, 8);
        break;
    case 16:
        copy_tile(dst, src, rows, columns, plane, 16);
        break;
    default:
        copy_tile(dst, src, rows, columns, plane, plane->run);
    }
}

static void copy_plane(char *dst, const char *src, const struct plane *plane)
{
    size_t rows = plane->slow.count, columns = plane->fast.count;
    size_t wide = plane->apart ? TILE : columns;
    for (size_t y = 0; y < rows; y += TILE)
        for (size_t x = 0; x < columns; x += wide)
            tile(dst + (ptrdiff_t)y * plane->slow.dst + (ptrdiff_t)x * plane->fast.dst,
                 src + (ptrdiff_t)y * plane->slow.src + (ptrdiff_t)x * plane->fast.src,
                 rows - y < TILE ? rows - y : TILE, columns - x < wide ? columns - x : wide, plane);
}

static size_t magnitude(ptrdiff_t stride)
{
    return stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
}

/* The axis with the shortest stride on a side; those that stand still come last. */
static int densest(const struct ggi_box *box, enum ggi_side side, int but)
{
    int best = -1;
    size_t least = 0;
    for (int i = 0; i < box->axes; i++) {
        size_t stride = magnitude(side == GGI_DST ? box->axis[i].dst : box->axis[i].src) - 1;
        if (i != but && (best < 0 || stride < least)) {
            best = i;
            least = stride;
        }
    }
    return best;
}

static void take(struct ggi_box *outer, int at, struct ggi_axis *axis)
{
    *axis = outer->axis[at];
    outer->axes--;
    memmove(&outer->axis[at], &outer->axis[at + 1],
            (size_t)(outer->axes - at) * sizeof outer->axis[0]);
}

/* Splits the two innermost loops off; what is left in @p outer is walked. */
static void split(struct ggi_box *outer, struct plane *plane)
{
    *plane = (struct plane){outer->run, {1, 0, 0}, {1, 0, 0}, false};
    if (!outer->axes)
        return;
    int fast = densest(outer, GGI_DST, -1), slow = densest(outer, GGI_SRC, -1);
    plane->apart = fast != slow;
    if (!plane->apart)
        slow = densest(outer, GGI_DST, fast);
    if (slow < 0) {
        take(outer, fast, &plane->fast);
        return;
    }
    take(outer, slow, &plane->slow);
    take(outer, fast - (fast > slow), &plane->fast);
}

void ggi_box_copy(char *dst, const char *src, const struct ggi_box *box)
{
    struct ggi_box outer;
    struct plane plane;
    size_t index[GG_COPY_MAX_DIMS] = {0};
    int at;
    outer.run = box->run;
    outer.axes = box->axes;
    memcpy(outer.axis, box->axis, (size_t)box->axes * sizeof box->axis[0]);
    split(&outer, &plane);
    do {
        copy_plane(dst, src, &plane);
        for (at = outer.axes; at-- > 0;) {
            const struct ggi_axis *axis = &outer.axis[at];
            dst += axis->dst;
            src += axis->src;
            if (++index[at] < axis->count)
                break;
            index[at] = 0;
            dst -= (ptrdiff_t)axis->count * axis->dst;
            src -= (ptrdiff_t)axis->count * axis->src;
        }
    } while (at >= 0);
}
