/* test_fill.c: patterns of any size over device and pinned memory. */
#include "conformance.h"

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

static void bytes_beside_a_fill_stay(void **state)
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

static void a_fill_of_nothing_does_nothing(void **state)
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

static void a_pattern_of_no_or_too_many_bytes_is_refused(void **state)
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

int main(int argc, char **argv)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_of_every_size_repeat),
        cmocka_unit_test(a_large_block_is_filled_to_its_end),
        cmocka_unit_test(bytes_beside_a_fill_stay),
        cmocka_unit_test(a_fill_may_begin_at_any_byte),
        cmocka_unit_test(pinned_memory_is_filled_too),
        cmocka_unit_test(a_fill_of_nothing_does_nothing),
        cmocka_unit_test(a_fill_past_the_end_is_refused),
        cmocka_unit_test(a_pattern_of_no_or_too_many_bytes_is_refused),
        cmocka_unit_test(the_pattern_is_read_before_the_call_returns),
        cmocka_unit_test(a_fill_returns_when_it_is_queued),
        cmocka_unit_test(a_null_pattern_is_refused),
    };
    return run_suite(argc, argv, "fill", tests, sizeof tests / sizeof tests[0]);
}
