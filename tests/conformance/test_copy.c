/* test_copy.c: copies between the host, pinned and device memory: their bytes, when they return,
 * and what they refuse. test_order.c tests the stream on which they run. */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

#define SLOT 65536u

#define HALF (SLOT / 2)
static const size_t sizes[] = {1,        4,    7,        8,     4096,          HALF,
                               SLOT - 1, SLOT, SLOT + 1, 99999, MANY_BYTES + 3};

static void fill_pattern(unsigned char *bytes, size_t nbytes, unsigned seed)
{
    for (size_t i = 0; i < nbytes; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

static void *pattern(size_t nbytes, unsigned seed)
{
    unsigned char *bytes = malloc(nbytes);
    assert_non_null(bytes);
    fill_pattern(bytes, nbytes, seed);
    return bytes;
}

static void a_round_trip_keeps_the_bytes(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *to = calloc(1, sizes[i]), *from = pattern(sizes[i], (unsigned)i);
        gg_memory *memory = new_memory(f, sizes[i]);
        assert_int_equal(copy(at(memory, 0), host_at(from), sizes[i], NULL, 0), GG_OK);
        assert_int_equal(copy(host_at(to), at(memory, 0), sizes[i], NULL, 0), GG_OK);
        assert_memory_equal(to, from, sizes[i]);
        free(to);
        free(from);
    }
}

static void pinned_memory_is_copied_in_both_directions(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        gg_memory *from = new_pinned(f, sizes[i], 0), *to = new_pinned(f, sizes[i], 0);
        gg_memory *memory = new_memory(f, sizes[i]);
        fill_pattern(gg_memory_pointer(from), sizes[i], (unsigned)i);
        assert_int_equal(copy(at(memory, 0), at(from, 0), sizes[i], f->stream, 0), GG_OK);
        assert_int_equal(copy(at(to, 0), at(memory, 0), sizes[i], f->stream, 0), GG_OK);
        assert_memory_equal(gg_memory_pointer(to), gg_memory_pointer(from), sizes[i]);
    }
}

static void device_to_device_copies_move_the_bytes(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *to = calloc(1, sizes[i]), *from = pattern(sizes[i], (unsigned)i);
        gg_memory *a = new_memory_with(f, from, sizes[i]), *b = new_memory(f, sizes[i]);
        assert_int_equal(copy(at(b, 0), at(a, 0), sizes[i], f->stream, 0), GG_OK);
        read_back(f, b, to, sizes[i]);
        assert_memory_equal(to, from, sizes[i]);
        free(to);
        free(from);
    }
}

static void pinned_to_pinned_copies_move_the_bytes(void **state)
{
    struct fixture *f = *state;
    gg_memory *from = new_pinned(f, 999, 0x61), *to = new_pinned(f, 999, 0);
    assert_int_equal(copy(at(to, 0), at(from, 0), 999, f->stream, 0), GG_OK);
    finish(f->stream);
    assert_memory_equal(gg_memory_pointer(to), gg_memory_pointer(from), 999);
}

static void offsets_count_in_bytes_on_both_operands(void **state)
{
    struct fixture *f = *state;
    const char from[] = "0123456789";
    char to[8] = "-------";
    struct gg_copy_operand src = host_at(from), dst = host_at(to);
    gg_memory *memory = new_memory_with(f, "abcdefghij", 10);
    src.offset = 3;
    dst.offset = 1;
    assert_int_equal(copy(at(memory, 5), src, 2, f->stream, 0), GG_OK);
    assert_int_equal(copy(dst, at(memory, 3), 5, f->stream, 0), GG_OK);
    assert_string_equal(to, "-de34h-");
}

/* ---- zero bytes ---- */

static void copy_of_zero_bytes_does_nothing(void **state)
{
    struct fixture *f = *state;
    const unsigned char before[4] = {1, 2, 3, 4};
    unsigned char after[4] = {0};
    gg_memory *memory = new_memory_with(f, before, sizeof before);
    assert_int_equal(copy(at(memory, 0), at(memory, 0), 0, f->stream, 0), GG_OK);
    assert_int_equal(copy(at(memory, 4), host_at(before), 0, f->stream, 0), GG_OK);
    read_back(f, memory, after, sizeof after);
    assert_memory_equal(after, before, sizeof before);
}

static void zero_bytes_may_come_from_null_and_go_to_null(void **state)
{
    struct fixture *f = *state;
    gg_memory *none = new_memory(f, 0), *memory = new_memory(f, 4);
    assert_int_equal(copy(at(none, 0), host_at(NULL), 0, f->stream, 0), GG_OK);
    assert_int_equal(copy(host_at(NULL), at(none, 0), 0, NULL, 0), GG_OK);
    assert_int_equal(copy(at(memory, 0), at(none, 0), 0, f->stream, 0), GG_OK);
    assert_int_equal(copy(at(none, 0), at(none, 0), 0, f->stream, GG_COPY_ASYNC), GG_OK);
}

static void zero_bytes_between_two_pageable_operands_succeed(void **state)
{
    char a[4] = {0}, b[4] = {0};
    (void)state;
    assert_int_equal(copy(host_at(a), host_at(b), 0, NULL, 0), GG_OK);
    assert_int_equal(copy(host_at(NULL), host_at(NULL), 0, NULL, GG_COPY_ASYNC), GG_OK);
}

/* ---- refusals ---- */

static void a_copy_past_the_end_of_an_operand_is_refused(void **state)
{
    struct fixture *f = *state;
    char bytes[64] = {0};
    gg_memory *memory = new_memory(f, 32), *pinned = new_pinned(f, 32, 0);
    const size_t bad[][2] = {{0, 33}, {1, 32}, {32, 1}, {33, 0}, {SIZE_MAX, 2}, {2, SIZE_MAX}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t offset = bad[i][0], nbytes = bad[i][1];
        assert_int_equal(copy(at(memory, offset), host_at(bytes), nbytes, f->stream, 0),
                         GG_ERR_INVALID_ARGUMENT);
        assert_int_equal(copy(host_at(bytes), at(memory, offset), nbytes, f->stream, 0),
                         GG_ERR_INVALID_ARGUMENT);
        assert_int_equal(copy(at(pinned, offset), at(memory, 0), nbytes, f->stream, 0),
                         GG_ERR_INVALID_ARGUMENT);
        assert_message_has("32");
    }
}

static void overlapping_operands_are_refused(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 64);
    assert_int_equal(copy(at(memory, 8), at(memory, 0), 16, f->stream, 0), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(copy(at(memory, 0), at(memory, 15), 16, f->stream, 0), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(copy(at(memory, 0), at(memory, 0), 1, f->stream, 0), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("overlap");
}

static void adjacent_operands_do_not_overlap(void **state)
{
    struct fixture *f = *state;
    char to[9] = {0};
    gg_memory *memory = new_memory_with(f, "abcdefgh", 8);
    assert_int_equal(copy(at(memory, 4), at(memory, 0), 4, f->stream, 0), GG_OK);
    read_back(f, memory, to, 8);
    assert_string_equal(to, "abcdabcd");
}

static void two_pageable_operands_are_refused(void **state)
{
    struct fixture *f = *state;
    char a[4] = {0}, b[4] = {0};
    assert_int_equal(copy(host_at(a), host_at(b), 4, f->stream, 0), GG_ERR_INVALID_ARGUMENT);
}

static void a_null_host_operand_is_refused(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 4);
    assert_int_equal(copy(at(memory, 0), host_at(NULL), 4, f->stream, 0), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(copy(host_at(NULL), at(memory, 0), 4, f->stream, 0), GG_ERR_INVALID_ARGUMENT);
}

static void unknown_copy_flags_are_refused(void **state)
{
    struct fixture *f = *state;
    char byte = 0;
    gg_memory *memory = new_memory(f, 4);
    assert_fails(copy(at(memory, 0), host_at(&byte), 1, f->stream, 0x80000000u));
}

/* ---- when a copy returns ---- */

static void a_copy_to_the_host_is_complete_when_it_returns(void **state)
{
    struct fixture *f = *state;
    const uint32_t flags[] = {0, GG_COPY_ASYNC};
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        size_t nbytes = sizes[i / 2];
        unsigned char *to = calloc(1, nbytes), *from = pattern(nbytes, 5);
        gg_memory *memory = new_memory_with(f, from, nbytes);
        assert_int_equal(copy(host_at(to), at(memory, 0), nbytes, f->stream, flags[i % 2]), GG_OK);
        assert_memory_equal(to, from, nbytes);
        free(to);
        free(from);
    }
}

static void the_source_may_change_once_a_copy_has_returned(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *from = malloc(sizes[i]);
        gg_memory *memory = new_memory(f, sizes[i]);
        assert_non_null(from);
        memset(from, 0x11, sizes[i]);
        assert_int_equal(copy(at(memory, 0), host_at(from), sizes[i], f->stream, 0), GG_OK);
        memset(from, 0xee, sizes[i]);
        free(from);
        assert_filled(f, memory, sizes[i], 0x11);
    }
}

static void a_small_pageable_upload_is_queued(void **state)
{
    struct fixture *f = *state;
    unsigned char *from = pattern(SLOT, 9), *to = calloc(1, SLOT), *expected = pattern(SLOT, 9);
    gg_memory *memory = new_memory(f, SLOT);
    void *gate = hold(f, f->stream);
    assert_int_equal(copy(at(memory, 0), host_at(from), SLOT, f->stream, 0), GG_OK);
    assert_true(busy(f->stream));
    memset(from, 0, SLOT);
    free(from);
    gate_open(gate);
    read_back(f, memory, to, SLOT);
    assert_memory_equal(to, expected, SLOT);
    free(to);
    free(expected);
}

static void *opened_by_hook;

static int open_the_gate(void)
{
    gate_open(opened_by_hook);
    return 0;
}

/* All slots are in use, held by the gate, which opens when a call waits for one of them. */
static void more_small_uploads_than_slots_keep_their_bytes(void **state)
{
    struct fixture *f = *state;
    unsigned char from[100], to[100];
    gg_memory *memory = new_memory(f, 80 * sizeof from);
    opened_by_hook = hold(f, f->stream);
    gg_set_wait_hook(open_the_gate);
    for (unsigned i = 0; i < 80; i++) {
        fill_pattern(from, sizeof from, i * 3);
        assert_int_equal(
            copy(at(memory, i * sizeof from), host_at(from), sizeof from, f->stream, 0), GG_OK);
    }
    gate_open(opened_by_hook);
    for (unsigned i = 0; i < 80; i++) {
        fill_pattern(from, sizeof from, i * 3);
        assert_int_equal(copy(host_at(to), at(memory, i * sizeof to), sizeof to, f->stream, 0),
                         GG_OK);
        assert_memory_equal(to, from, sizeof to);
    }
}

static void an_asynchronous_copy_returns_before_it_has_run(void **state)
{
    struct fixture *f = *state;
    gg_memory *from = new_pinned(f, MANY_BYTES, 0x2c), *to = new_pinned(f, MANY_BYTES, 0);
    gg_memory *memory = new_memory(f, MANY_BYTES);
    void *gate = hold(f, f->stream);
    assert_int_equal(copy(at(memory, 0), at(from, 0), MANY_BYTES, f->stream, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(copy(at(to, 0), at(memory, 0), MANY_BYTES, f->stream, GG_COPY_ASYNC), GG_OK);
    assert_true(busy(f->stream));
    assert_int_equal(*(char *)gg_memory_pointer(to), 0);
    gate_open(gate);
    finish(f->stream);
    assert_memory_equal(gg_memory_pointer(to), gg_memory_pointer(from), MANY_BYTES);
}

static void a_pointer_into_pinned_memory_is_recognised(void **state)
{
    struct fixture *f = *state;
    gg_memory *pinned = new_pinned(f, MANY_BYTES, 0x4d), *memory = new_memory(f, MANY_BYTES);
    char *inside = (char *)gg_memory_pointer(pinned) + 16;
    void *gate = hold(f, f->stream);
    assert_int_equal(copy(at(memory, 0), host_at(inside), MANY_BYTES - 16, f->stream,
                          GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC),
                     GG_OK);
    assert_true(busy(f->stream));
    gate_open(gate);
    assert_filled(f, memory, MANY_BYTES - 16, 0x4d);
}

static void a_device_to_device_copy_returns_when_queued(void **state)
{
    struct fixture *f = *state;
    gg_memory *a = new_memory(f, MANY_BYTES), *b = new_memory(f, MANY_BYTES);
    assert_int_equal(fill_bytes(a, 1, f->stream), GG_OK);
    void *gate = hold(f, f->stream);
    assert_int_equal(copy(at(b, 0), at(a, 0), MANY_BYTES, f->stream, GG_COPY_ASYNC), GG_OK);
    assert_true(busy(f->stream));
    gate_open(gate);
}

/* ---- require_async ---- */

static void require_async_refuses_copies_that_would_wait(void **state)
{
    struct fixture *f = *state;
    const uint32_t flags = GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC;
    char *pageable = calloc(1, MANY_BYTES);
    gg_memory *memory = new_memory(f, MANY_BYTES);
    gg_status up = copy(at(memory, 0), host_at(pageable), MANY_BYTES, f->stream, flags);
    gg_status down = copy(host_at(pageable), at(memory, 0), MANY_BYTES, f->stream, flags);
    gg_status one = copy(host_at(pageable), at(memory, 0), 1, f->stream, flags);
    free(pageable);
    assert_int_equal(up, GG_ERR_UNSUPPORTED);
    assert_int_equal(down, GG_ERR_UNSUPPORTED);
    assert_int_equal(one, GG_ERR_UNSUPPORTED);
}

static void require_async_accepts_copies_that_can_be_queued(void **state)
{
    struct fixture *f = *state;
    const uint32_t flags = GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC;
    char small[16] = {0};
    gg_memory *pinned = new_pinned(f, MANY_BYTES, 0), *memory = new_memory(f, MANY_BYTES);
    void *gate = hold(f, f->stream);
    assert_int_equal(copy(at(memory, 0), host_at(small), sizeof small, f->stream, flags), GG_OK);
    assert_int_equal(copy(at(memory, 0), at(pinned, 0), MANY_BYTES, f->stream, flags), GG_OK);
    assert_int_equal(copy(at(pinned, 0), at(memory, 0), MANY_BYTES, f->stream, flags), GG_OK);
    gate_open(gate);
    finish(f->stream);
}

static int interrupt(void)
{
    return 1;
}

static void require_async_never_waits_between_two_pinned_blocks(void **state)
{
    struct fixture *f = *state;
    gg_memory *a = new_pinned(f, 16, 1), *b = new_pinned(f, 16, 2);
    void *gate = hold(f, f->stream);
    gg_status status;
    gg_set_wait_hook(interrupt); /* a call that waits returns GG_ERR_INTERRUPTED */
    status = copy(at(a, 0), at(b, 0), 16, f->stream, GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC);
    gate_open(gate);
    assert_true(status == GG_OK || status == GG_ERR_UNSUPPORTED);
}

static void
require_async_takes_a_copy_between_blocks_without_a_stream_where_it_need_not_wait(void **state)
{
    struct fixture *f = *state;
    struct gg_device_info info = {.struct_size = sizeof info};
    const uint32_t flags = GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC;
    gg_memory *a = new_memory(f, 64), *b = new_memory(f, 64);
    gg_status expected;
    gg_scope *scope = NULL;
    assert_int_equal(gg_fill(b, 0, "x", 1, 64, f->stream), GG_OK);
    finish(f->stream);
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    expected = info.flags & GG_DEVICE_SHARED_DEFAULT ? GG_OK : GG_ERR_UNSUPPORTED;
    assert_int_equal(copy(at(a, 0), at(b, 0), 64, NULL, flags), expected);
    assert_int_equal(gg_scope_enter(f->device, f->stream, &scope), GG_OK);
    assert_int_equal(copy(at(a, 0), at(b, 0), 64, NULL, flags), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_round_trip_keeps_the_bytes),
    cmocka_unit_test(pinned_memory_is_copied_in_both_directions),
    cmocka_unit_test(device_to_device_copies_move_the_bytes),
    cmocka_unit_test(pinned_to_pinned_copies_move_the_bytes),
    cmocka_unit_test(offsets_count_in_bytes_on_both_operands),
    cmocka_unit_test(copy_of_zero_bytes_does_nothing),
    cmocka_unit_test(zero_bytes_may_come_from_null_and_go_to_null),
    cmocka_unit_test(zero_bytes_between_two_pageable_operands_succeed),
    cmocka_unit_test(a_copy_past_the_end_of_an_operand_is_refused),
    cmocka_unit_test(overlapping_operands_are_refused),
    cmocka_unit_test(adjacent_operands_do_not_overlap),
    cmocka_unit_test(two_pageable_operands_are_refused),
    cmocka_unit_test(a_null_host_operand_is_refused),
    cmocka_unit_test(unknown_copy_flags_are_refused),
    cmocka_unit_test(a_copy_to_the_host_is_complete_when_it_returns),
    cmocka_unit_test(the_source_may_change_once_a_copy_has_returned),
    cmocka_unit_test(a_small_pageable_upload_is_queued),
    cmocka_unit_test(more_small_uploads_than_slots_keep_their_bytes),
    cmocka_unit_test(an_asynchronous_copy_returns_before_it_has_run),
    cmocka_unit_test(a_pointer_into_pinned_memory_is_recognised),
    cmocka_unit_test(a_device_to_device_copy_returns_when_queued),
    cmocka_unit_test(require_async_refuses_copies_that_would_wait),
    cmocka_unit_test(require_async_accepts_copies_that_can_be_queued),
    cmocka_unit_test(require_async_never_waits_between_two_pinned_blocks),
    cmocka_unit_test(
        require_async_takes_a_copy_between_blocks_without_a_stream_where_it_need_not_wait),
};
SUITE(copy, tests);
