/* test_copy_nd.c: copies of N axes with any strides, against a plain loop over all elements. */
#include "strided.h"

#include <stdlib.h>
#include <string.h>

/* ---- layouts ---- */

static void a_transposed_source_arrives_in_order(void **state)
{
    const struct request r = {
        .ndim = 2, .shape = {29, 31}, .itemsize = 4, .dst = {0, {124, 4}}, .src = {0, {4, 116}}};
    check_all(*state, &r, ROOM);
}

static void a_transposed_destination_is_filled_in_order(void **state)
{
    const struct request r = {
        .ndim = 2, .shape = {29, 31}, .itemsize = 4, .dst = {0, {4, 116}}, .src = {0, {124, 4}}};
    check_all(*state, &r, ROOM);
}

static void copying_every_other_row_does_not_change_the_others(void **state)
{
    const struct request r = {
        .ndim = 2, .shape = {7, 256}, .itemsize = 1, .dst = {0, {512, 1}}, .src = {256, {512, 1}}};
    check_all(*state, &r, ROOM);
}

static void copying_a_column_does_not_change_the_others(void **state)
{
    const struct request r = {
        .ndim = 1, .shape = {200}, .itemsize = 4, .dst = {8, {16}}, .src = {4, {20}}};
    check_all(*state, &r, ROOM);
}

static void negative_strides_reverse_an_axis(void **state)
{
    const struct request r = {.ndim = 2,
                              .shape = {10, 12},
                              .itemsize = 8,
                              .dst = {11 * 8, {96, -8}},
                              .src = {9 * 96, {-96, 8}}};
    check_all(*state, &r, ROOM);
}

static void a_source_stride_of_zero_repeats_the_value(void **state)
{
    const struct request r = {.ndim = 3,
                              .shape = {3, 5, 7},
                              .itemsize = 4,
                              .dst = {0, {140, 28, 4}},
                              .src = {16, {0, 4, 0}}};
    check_all(*state, &r, ROOM);
}

static void boxes_with_gaps_on_every_axis_are_copied(void **state)
{
    const struct request r = {.ndim = 3,
                              .shape = {3, 5, 24},
                              .itemsize = 1,
                              .dst = {3, {300, 60, 2}},
                              .src = {1, {480, 48, 1}}};
    check_all(*state, &r, ROOM);
}

static void a_box_without_axes_is_one_element(void **state)
{
    const struct request r = {.ndim = 0, .itemsize = 24, .dst = {5, {0}}, .src = {9, {0}}};
    check_all(*state, &r, 64);
}

static void without_strides_both_operands_are_contiguous(void **state)
{
    struct fixture *f = *state;
    const size_t shape[] = {4, 5};
    unsigned char from[40], to[40] = {0};
    fill_pattern(from, sizeof from, 3);
    gg_memory *memory = new_memory(f, sizeof from);
    struct gg_copy_operand device = at(memory, 0), src = host_at(from), dst = host_at(to);
    assert_int_equal(gg_copy_nd(&device, NULL, &src, NULL, 2, shape, 2, NULL, 0), GG_OK);
    assert_int_equal(gg_copy_nd(&dst, NULL, &device, NULL, 2, shape, 2, NULL, 0), GG_OK);
    assert_memory_equal(to, from, sizeof from);
}

static void an_empty_axis_copies_nothing(void **state)
{
    const struct request r = {.ndim = 3,
                              .shape = {3, 0, 7},
                              .itemsize = 4,
                              .dst = {0, {140, 28, 4}},
                              .src = {0, {140, 28, 4}}};
    check_all(*state, &r, 64);
    struct gg_copy_operand nothing = {0};
    assert_int_equal(run(&r, nothing, nothing, NULL, 0), GG_OK);
}

/* Larger than a slot, so that it is copied in chunks. */
static void a_strided_copy_of_several_chunks_is_complete(void **state)
{
    enum { ROWS = 300, COLUMNS = 310, BYTES = ROWS * COLUMNS * 4 };
    const struct request turned = {.ndim = 2,
                                   .shape = {ROWS, COLUMNS},
                                   .itemsize = 4,
                                   .dst = {0, {COLUMNS * 4, 4}},
                                   .src = {0, {4, ROWS * 4}}};
    const struct request thinned = {.ndim = 2,
                                    .shape = {ROWS / 2, COLUMNS},
                                    .itemsize = 4,
                                    .dst = {0, {2 * COLUMNS * 4, 4}},
                                    .src = {COLUMNS * 4, {2 * COLUMNS * 4, 4}}};
    check_all(*state, &turned, BYTES);
    check_all(*state, &thinned, BYTES);
}

/* ---- random layouts ---- */

static uint64_t seed;

static size_t draw(size_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (size_t)(seed >> 11) % below;
}

/* Each axis in turn steps over the extent of the earlier ones, sometimes with a gap: no overlap. */
static void draw_apart(struct request *r, struct layout *layout)
{
    ptrdiff_t size = (ptrdiff_t)r->itemsize;
    bool used[MOST] = {false};
    for (int n = 0; n < r->ndim; n++) {
        int axis = (int)draw((size_t)r->ndim);
        while (used[axis])
            axis = (axis + 1) % r->ndim;
        used[axis] = true;
        ptrdiff_t stride = size + (draw(3) ? 0 : (ptrdiff_t)draw(9));
        size = stride * (ptrdiff_t)(r->shape[axis] ? r->shape[axis] : 1);
        layout->strides[axis] = draw(3) ? stride : -stride;
    }
}

static void draw_any(struct request *r, struct layout *layout)
{
    for (int i = 0; i < r->ndim; i++)
        layout->strides[i] = draw(5) ? (ptrdiff_t)draw(121) - 60 : 0;
}

/* The first offset at which all elements are inside the memory; false if there is none. */
static bool fit(const struct request *r, struct layout *layout, size_t room)
{
    ptrdiff_t low = 0, high = (ptrdiff_t)r->itemsize;
    for (int i = 0; i < r->ndim; i++) {
        ptrdiff_t far = ((ptrdiff_t)r->shape[i] - 1) * layout->strides[i];
        if (r->shape[i])
            *(far < 0 ? &low : &high) += far;
    }
    layout->offset = (size_t)-low;
    return (size_t)(high - low) <= room;
}

static void draw_request(struct request *r, size_t room)
{
    static const size_t sizes[] = {1, 2, 3, 4, 8, 12, 16};
    do {
        r->ndim = (int)draw(6);
        r->itemsize = sizes[draw(sizeof sizes / sizeof sizes[0])];
        for (int i = 0; i < r->ndim; i++)
            r->shape[i] = draw(12) ? 1 + draw(6) : 0;
        draw_apart(r, &r->dst);
        if (draw(2))
            draw_apart(r, &r->src);
        else
            draw_any(r, &r->src);
    } while (!fit(r, &r->dst, room) || !fit(r, &r->src, room));
}

static void any_strides_copy_like_a_plain_loop(void **state)
{
    const int count = getenv("GPUGLUE_TEST_FULL") ? 2400 : 240;
    struct bench b = new_bench(*state, ROOM);
    struct request r;
    seed = 20261121;
    for (int i = 0; i < count; i++) {
        memset(&r, 0, sizeof r);
        draw_request(&r, ROOM);
        check(&b, &r, (enum pair)(i % PAIRS), draw(2) ? (uint32_t)GG_COPY_ASYNC : 0u);
    }
    free_bench(&b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_transposed_source_arrives_in_order),
    cmocka_unit_test(a_transposed_destination_is_filled_in_order),
    cmocka_unit_test(copying_every_other_row_does_not_change_the_others),
    cmocka_unit_test(copying_a_column_does_not_change_the_others),
    cmocka_unit_test(negative_strides_reverse_an_axis),
    cmocka_unit_test(a_source_stride_of_zero_repeats_the_value),
    cmocka_unit_test(boxes_with_gaps_on_every_axis_are_copied),
    cmocka_unit_test(a_box_without_axes_is_one_element),
    cmocka_unit_test(without_strides_both_operands_are_contiguous),
    cmocka_unit_test(an_empty_axis_copies_nothing),
    cmocka_unit_test(a_strided_copy_of_several_chunks_is_complete),
    cmocka_unit_test(any_strides_copy_like_a_plain_loop),
};
SUITE(copy_nd, tests);
