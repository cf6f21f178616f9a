/* box_copy.c: a box of bytes copied by the host. Where the two sides have their short strides on
 * different axes, tiles keep both within the caches. */
#include "transfer/box.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define TILE 32u /* elements along each axis: 32 cache lines of each side fit the L1 cache */

/* The two innermost loops: the shortest stride of the destination is `fast`, of the source `slow`. */
struct plane {
    size_t run;
    struct ggi_axis slow, fast;
    bool apart; /* they are different axes: both sides want short strides */
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

static void plane_copy_tile(char *dst, const char *src, size_t rows, size_t columns,
                            const struct plane *plane)
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

static void plane_copy(char *dst, const char *src, const struct plane *plane)
{
    size_t rows = plane->slow.count, columns = plane->fast.count;
    size_t wide = plane->apart ? TILE : columns;
    for (size_t y = 0; y < rows; y += TILE)
        for (size_t x = 0; x < columns; x += wide)
            plane_copy_tile(dst + (ptrdiff_t)y * plane->slow.dst + (ptrdiff_t)x * plane->fast.dst,
                            src + (ptrdiff_t)y * plane->slow.src + (ptrdiff_t)x * plane->fast.src,
                            rows - y < TILE ? rows - y : TILE,
                            columns - x < wide ? columns - x : wide, plane);
}

/* The axis with the shortest stride on a side; strides of 0 come last. */
static int box_densest(const struct ggi_box *box, enum ggi_side side, int except)
{
    int best = -1;
    size_t least = 0;
    for (int i = 0; i < box->axes; i++) {
        size_t stride = ggi_stride_size(ggi_axis_stride(&box->axis[i], side)) - 1;
        if (i != except && (best < 0 || stride < least)) {
            best = i;
            least = stride;
        }
    }
    return best;
}

static void box_take_axis(struct ggi_box *outer, int at, struct ggi_axis *axis)
{
    *axis = outer->axis[at];
    ggi_box_drop_axis(outer, at);
}

/* Moves the two innermost loops to the plane; @p outer keeps the others. */
static void box_split_plane(struct ggi_box *outer, struct plane *plane)
{
    *plane = (struct plane){outer->run, {1, 0, 0}, {1, 0, 0}, false};
    if (!outer->axes)
        return;
    int fast = box_densest(outer, GGI_DST, -1), slow = box_densest(outer, GGI_SRC, -1);
    plane->apart = fast != slow;
    if (!plane->apart)
        slow = box_densest(outer, GGI_DST, fast);
    if (slow < 0) {
        box_take_axis(outer, fast, &plane->fast);
        return;
    }
    box_take_axis(outer, slow, &plane->slow);
    box_take_axis(outer, fast - (fast > slow), &plane->fast);
}

void ggi_box_copy_axes(char *dst, const char *src, const struct ggi_box *box)
{
    const struct ggi_tiling none = {-1, -1, 0};
    size_t index[GG_COPY_MAX_DIMS] = {0};
    struct ggi_box outer;
    struct plane plane;
    ggi_box_inner(&outer, box, 0);
    box_split_plane(&outer, &plane);
    do
        plane_copy(dst, src, &plane);
    while (ggi_box_step(&outer, &none, index, &dst, &src));
}

#ifdef __SSE2__
#define LINE 64u

void ggi_copy_past_caches(char *dst, const char *src, size_t nbytes)
{
    const size_t head = (size_t)(-(uintptr_t)dst & (LINE - 1)),
                 first = head < nbytes ? head : nbytes;
    memcpy(dst, src, first);
    for (dst += first, src += first, nbytes -= first; nbytes >= LINE; nbytes -= LINE) {
        const __m128i *from = (const __m128i *)(const void *)src;
        __m128i *to = (__m128i *)(void *)dst;
        const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1),
                      c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
        _mm_stream_si128(to, a);
        _mm_stream_si128(to + 1, b);
        _mm_stream_si128(to + 2, c);
        _mm_stream_si128(to + 3, d);
        dst += LINE;
        src += LINE;
    }
    _mm_sfence();
    memcpy(dst, src, nbytes);
}
#else
void ggi_copy_past_caches(char *dst, const char *src, size_t nbytes)
{
    memcpy(dst, src, nbytes);
}
#endif
