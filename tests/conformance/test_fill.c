/* test_fill.c: patterns of any size over device and pinned memory. */
#include "conformance.h"

#include "strided.h"

#include <stdlib.h>
#include <string.h>

#define LARGEST 65536u

/* Fill @p count patterns of @p size bytes at @p offset and compare with the same made on the host. */
static void check_fill(struct fixture *f, gg_memory *memory, size_t offset, size_t size,
                       size_t count)
{
    size_t total = gg_memory_size(memory);
    unsigned char *expected = malloc(total), *got = malloc(total), *pattern = malloc(size);
    bool equal;
    assert_true(expected && got && pattern);
    memset(expected, 0xcc, total);
    for (size_t i = 0; i < size; i++)
        pattern[i] = (unsigned char)(i * 31 + size);
    for (size_t i = 0; i < count; i++)
        memcpy(expected + offset + i * size, pattern, size);
    assert_int_equal(fill_bytes(memory, 0xcc, f->stream), GG_OK);
    assert_int_equal(gg_fill(memory, offset, pattern, size, count, f->stream), GG_OK);
    read_back(f, memory, got, total);
    equal = memcmp(got, expected, total) == 0;
    free(expected);
    free(got);
    free(pattern);
    assert_true(equal);
}

static void patterns_of_every_size_repeat(void **state)
{
    struct fixture *f = *state;
    const size_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 1000, LARGEST};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        gg_memory *memory = new_memory(f, 4 * sizes[i]);
        check_fill(f, memory, 0, sizes[i], 4);
        check_fill(f, memory, 0, sizes[i], 1);
    }
}

static void a_large_block_is_filled_to_its_end(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 12 * 100000);
    check_fill(f, memory, 0, 12, 100000);
    check_fill(f, memory, 0, 8, 150000);
}

static void a_fill_does_not_change_the_bytes_beside_it(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 256);
    const size_t sizes[] = {1, 2, 4, 8, 3};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_fill(f, memory, 32, sizes[i], 5);
}

static void a_fill_may_begin_at_any_byte(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 512);
    const size_t sizes[] = {1, 2, 4, 8, 12};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t offset = 1; offset < 8; offset++)
            check_fill(f, memory, offset, sizes[i], 9);
}

static void pinned_memory_is_filled_too(void **state)
{
    struct fixture *f = *state;
    gg_memory *pinned = new_pinned(f, 100, 0);
    check_fill(f, pinned, 10, 4, 20);
    check_fill(f, pinned, 0, 5, 20);
}

static void a_fill_of_zero_bytes_does_nothing(void **state)
{
    struct fixture *f = *state;
    gg_memory *none = new_memory(f, 0), *memory = new_memory(f, 16);
    const unsigned char byte = 1;
    assert_int_equal(fill_bytes(memory, 7, f->stream), GG_OK);
    assert_int_equal(gg_fill(none, 0, &byte, 1, 0, f->stream), GG_OK);
    assert_int_equal(gg_fill(none, 0, &byte, 1, 0, NULL), GG_OK);
    assert_int_equal(gg_fill(memory, 16, &byte, 1, 0, f->stream), GG_OK);
    assert_filled(f, memory, 16, 7);
}

static void a_fill_past_the_end_is_refused(void **state)
{
    struct fixture *f = *state;
    const uint32_t word = 1;
    gg_memory *memory = new_memory(f, 16);
    const size_t bad[][2] = {{0, 5}, {1, 4}, {16, 1}, {17, 0}, {0, SIZE_MAX / 2}, {SIZE_MAX, 1}};
    assert_int_equal(fill_bytes(memory, 7, f->stream), GG_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(gg_fill(memory, bad[i][0], &word, 4, bad[i][1], f->stream),
                         GG_ERR_INVALID_ARGUMENT);
    assert_filled(f, memory, 16, 7);
}

static void a_pattern_of_zero_or_too_many_bytes_is_refused(void **state)
{
    struct fixture *f = *state;
    static const unsigned char pattern[LARGEST + 1];
    gg_memory *memory = new_memory(f, 2 * LARGEST);
    assert_int_equal(gg_fill(memory, 0, pattern, 0, 1, f->stream), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_fill(memory, 0, pattern, LARGEST + 1, 1, f->stream),
                     GG_ERR_INVALID_ARGUMENT);
    assert_message_has("65536");
}

static void the_pattern_is_read_before_the_call_returns(void **state)
{
    struct fixture *f = *state;
    const size_t sizes[] = {1, 4, 12};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char pattern[12];
        gg_memory *memory = new_memory(f, 120);
        void *gate = hold(f, f->stream);
        memset(pattern, 0x21, sizeof pattern);
        assert_int_equal(gg_fill(memory, 0, pattern, sizes[i], 120 / sizes[i], f->stream), GG_OK);
        memset(pattern, 0xde, sizeof pattern);
        gate_open(gate);
        assert_filled(f, memory, 120, 0x21);
    }
}

static void a_fill_returns_when_it_is_queued(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, MANY_BYTES);
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    assert_true(busy(f->stream));
    gate_open(gate);
}

static void a_null_pattern_is_refused(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 64);
    assert_int_equal(fill_bytes(memory, 5, f->stream), GG_OK);
    assert_int_equal(gg_fill(memory, 0, NULL, 4, 16, f->stream), GG_ERR_INVALID_ARGUMENT);
    finish(f->stream);
    assert_filled(f, memory, 64, 5);
}

/* ---- elements with gaps ---- */

/* Every element of the layout gets the pattern, and no byte between them; compared with a plain loop. */
static void check_apart(struct fixture *f, gg_memory *memory, const struct request *r)
{
    const size_t total = gg_memory_size(memory);
    const ptrdiff_t same[MOST] = {0};
    struct request one = *r;
    unsigned char *expected = malloc(total), *got = malloc(total), pattern[64];
    assert_true(expected && got && r->itemsize <= sizeof pattern);
    fill_pattern(pattern, sizeof pattern, 5);
    memset(expected, 0xcc, total);
    one.src.offset = 0;
    memcpy(one.src.strides, same, sizeof same);
    reference(&one, expected, pattern);
    assert_int_equal(fill_bytes(memory, 0xcc, f->stream), GG_OK);
    assert_int_equal(gg_fill_nd(memory, r->dst.offset, r->dst.strides, r->ndim, r->shape, pattern,
                                r->itemsize, f->stream),
                     GG_OK);
    read_back(f, memory, got, total);
    const bool equal = memcmp(got, expected, total) == 0;
    free(expected);
    free(got);
    assert_true(equal);
}

static const struct request apart[] = {
    {1, {7}, 4, {16, {12}}, {0}},
    {1, {9}, 1, {100, {-11}}, {0}},
    {2, {5, 6}, 2, {0, {64, 4}}, {0}},
    {2, {16, 8}, 8, {24, {8, 256}}, {0}}, /* transposed */
    {2, {4, 4}, 16, {1024, {-320, -16}}, {0}},
    {3, {3, 4, 5}, 3, {16, {400, -3, 40}}, {0}},
    {4, {2, 3, 2, 3}, 4, {0, {1024, 256, 64, 8}}, {0}},
    {5, {2, 2, 3, 2, 2}, 12, {8, {1500, 700, 200, 80, 24}}, {0}},
    {2, {3, 10}, 4, {0, {40, 4}}, {0}}, /* one line although it has two axes */
    {2, {4, 1}, 4, {0, {8, 999999}}, {0}},
    {0, {0}, 5, {3, {0}}, {0}},
};

static void a_strided_fill_writes_only_its_elements(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, ROOM), *pinned = new_pinned(f, ROOM, 0);
    for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++) {
        check_apart(f, memory, &apart[i]);
        check_apart(f, pinned, &apart[i]);
    }
}

/* More calls than a device without rectangular fills should make. */
static void a_strided_fill_writes_many_elements(void **state)
{
    struct fixture *f = *state;
    const struct request r = {2, {300, 300}, 4, {0, {2400, 8}}, {0}};
    check_apart(f, new_memory(f, 300 * 2400), &r);
}

static void a_strided_fill_is_queued(void **state)
{
    struct fixture *f = *state;
    const ptrdiff_t strides[] = {16};
    const size_t shape[] = {8};
    gg_memory *memory = new_memory(f, 128);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_fill_nd(memory, 0, strides, 1, shape, "ab", 2, f->stream), GG_OK);
    assert_true(busy(f->stream));
    gate_open(gate);
    finish(f->stream);
}

static void a_fill_outside_the_memory_or_over_itself_is_refused(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 64);
    const ptrdiff_t forth[] = {16}, back[] = {-16}, still[] = {0}, close[] = {2};
    const size_t four[] = {4}, five[] = {5}, huge[] = {SIZE_MAX / 2};
    assert_int_equal(gg_fill_nd(memory, 0, forth, 1, five, "abcd", 4, f->stream),
                     GG_ERR_INVALID_ARGUMENT);
    assert_message_has("do not fit into the memory's 64 bytes");
    assert_int_equal(gg_fill_nd(memory, 40, back, 1, four, "abcd", 4, f->stream),
                     GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_fill_nd(memory, 0, still, 1, four, "abcd", 4, f->stream),
                     GG_ERR_INVALID_ARGUMENT);
    assert_message_has("overlap each other");
    assert_int_equal(gg_fill_nd(memory, 0, close, 1, four, "abcd", 4, f->stream),
                     GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_fill_nd(memory, 0, forth, 1, huge, "abcd", 4, f->stream),
                     GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_fill_nd(memory, 0, forth, 1, four, NULL, 4, f->stream),
                     GG_ERR_INVALID_ARGUMENT);
}

static void a_strided_fill_without_elements_does_nothing(void **state)
{
    struct fixture *f = *state;
    const ptrdiff_t strides[] = {16, 4};
    const size_t shape[] = {3, 0};
    gg_memory *memory = new_memory(f, 8);
    assert_int_equal(gg_fill_nd(memory, 8, strides, 2, shape, "abcd", 4, f->stream), GG_OK);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(patterns_of_every_size_repeat),
    cmocka_unit_test(a_large_block_is_filled_to_its_end),
    cmocka_unit_test(a_fill_does_not_change_the_bytes_beside_it),
    cmocka_unit_test(a_fill_may_begin_at_any_byte),
    cmocka_unit_test(pinned_memory_is_filled_too),
    cmocka_unit_test(a_fill_of_zero_bytes_does_nothing),
    cmocka_unit_test(a_fill_past_the_end_is_refused),
    cmocka_unit_test(a_pattern_of_zero_or_too_many_bytes_is_refused),
    cmocka_unit_test(the_pattern_is_read_before_the_call_returns),
    cmocka_unit_test(a_fill_returns_when_it_is_queued),
    cmocka_unit_test(a_null_pattern_is_refused),
    cmocka_unit_test(a_strided_fill_writes_only_its_elements),
    cmocka_unit_test(a_strided_fill_writes_many_elements),
    cmocka_unit_test(a_strided_fill_is_queued),
    cmocka_unit_test(a_fill_outside_the_memory_or_over_itself_is_refused),
    cmocka_unit_test(a_strided_fill_without_elements_does_nothing),
};
SUITE(fill, tests);
