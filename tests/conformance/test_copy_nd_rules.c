/* test_copy_nd_rules.c: when copies of N axes return, and what they refuse. */
#include "strided.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- when a copy returns ---- */

static const struct request turned_small = {
    .ndim = 2, .shape = {16, 16}, .itemsize = 4, .dst = {0, {64, 4}}, .src = {0, {4, 64}}};

static void a_small_strided_upload_is_queued(void **state)
{
    struct fixture *f = *state;
    unsigned char from[1024], to[1024], expected[1024];
    fill_pattern(from, sizeof from, 9);
    reference(&turned_small, expected, from);
    gg_memory *memory = new_memory(f, sizeof from);
    void *gate = hold(f, f->stream);
    assert_int_equal(
        run(&turned_small, at(memory, 0), host_at(from), f->stream, GG_COPY_REQUIRE_ASYNC), GG_OK);
    memset(from, 0, sizeof from); /* the source was read */
    assert_true(busy(f->stream));
    gate_open(gate);
    read_back(f, memory, to, sizeof to);
    assert_memory_equal(to, expected, sizeof to);
}

static void rows_of_pinned_memory_are_queued(void **state)
{
    struct fixture *f = *state;
    const struct request r = {
        .ndim = 2, .shape = {8, 256}, .itemsize = 1, .dst = {0, {256, 1}}, .src = {0, {512, 1}}};
    gg_memory *pinned = new_pinned(f, ROOM, 0x42), *memory = new_memory(f, ROOM);
    void *gate = hold(f, f->stream);
    assert_int_equal(run(&r, at(memory, 0), at(pinned, 0), f->stream, GG_COPY_ASYNC), GG_OK);
    assert_true(busy(f->stream));
    gate_open(gate);
    assert_filled(f, memory, 8 * 256, 0x42);
}

static void a_strided_copy_between_blocks_returns_when_queued(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_copy_region); /* without it there may be too many copies to queue */
    gg_memory *from = new_memory(f, ROOM), *to = new_memory(f, ROOM);
    assert_int_equal(fill_bytes(from, 0x17, f->stream), GG_OK);
    void *gate = hold(f, f->stream);
    assert_int_equal(run(&turned_small, at(to, 0), at(from, 0), f->stream, 0), GG_OK);
    assert_true(busy(f->stream));
    gate_open(gate);
    assert_filled(f, to, 1024, 0x17);
}

static void the_source_may_change_once_a_strided_copy_has_returned(void **state)
{
    struct fixture *f = *state;
    const struct request r = {
        .ndim = 2, .shape = {512, 512}, .itemsize = 4, .dst = {0, {2048, 4}}, .src = {0, {4, 2048}}};
    unsigned char *from = malloc(MANY_BYTES);
    memset(from, 0x35, MANY_BYTES);
    gg_memory *memory = new_memory(f, MANY_BYTES);
    assert_int_equal(run(&r, at(memory, 0), host_at(from), f->stream, GG_COPY_ASYNC), GG_OK);
    memset(from, 0, MANY_BYTES);
    assert_filled(f, memory, MANY_BYTES, 0x35);
    free(from);
}

static void *closed_gate;

/* Called by the waiting thread. */
static int open_the_gate(void)
{
    if (closed_gate)
        gate_open(closed_gate);
    closed_gate = NULL;
    return 0;
}

/* The host itself gathers the elements, after the queued work has written them. */
static void pinned_memory_is_read_after_the_work_that_writes_it(void **state)
{
    struct fixture *f = *state;
    gg_memory *pinned = new_pinned(f, ROOM, 0), *from = new_memory(f, ROOM);
    gg_memory *to = new_memory(f, ROOM);
    assert_int_equal(fill_bytes(from, 0x29, f->stream), GG_OK);
    finish(f->stream);
    closed_gate = hold(f, f->stream);
    assert_int_equal(copy(at(pinned, 0), at(from, 0), ROOM, f->stream, GG_COPY_ASYNC), GG_OK);
    gg_set_wait_hook(open_the_gate);
    gg_status status = run(&turned_small, at(to, 0), at(pinned, 0), f->stream, 0);
    gg_set_wait_hook(NULL);
    open_the_gate();
    assert_int_equal(status, GG_OK);
    assert_filled(f, to, 1024, 0x29);
}

/* ---- refusals ---- */

static void assert_refused(const struct request *r, struct gg_copy_operand dst,
                           struct gg_copy_operand src, const char *part)
{
    assert_int_equal(run(r, dst, src, NULL, 0), GG_ERR_INVALID_ARGUMENT);
    assert_message_has(part);
}

static void elements_outside_the_memory_are_refused(void **state)
{
    struct fixture *f = *state;
    unsigned char host[ROOM] = {0};
    gg_memory *memory = new_memory(f, 100);
    struct request r = {.ndim = 1, .shape = {10}, .itemsize = 4, .dst = {0, {11}}, .src = {0, {4}}};
    assert_refused(&r, at(memory, 0), host_at(host), "103 bytes");
    r.dst = (struct layout){40, {-5}};
    assert_refused(&r, at(memory, 0), host_at(host), "45 bytes before");
    r.dst = (struct layout){45, {-5}};
    assert_int_equal(run(&r, at(memory, 0), host_at(host), NULL, 0), GG_OK);
}

static void a_destination_that_overlaps_itself_is_refused(void **state)
{
    struct fixture *f = *state;
    unsigned char host[ROOM] = {0};
    gg_memory *memory = new_memory(f, ROOM);
    struct request r = {
        .ndim = 2, .shape = {3, 4}, .itemsize = 4, .dst = {0, {0, 4}}, .src = {0, {16, 4}}};
    assert_refused(&r, at(memory, 0), host_at(host), "overlap each other");
    r.dst.strides[0] = 8;
    assert_refused(&r, at(memory, 0), host_at(host), "overlap each other");
}

/* Strides 2 and 3 interleave without overlap. */
static void an_unusual_destination_without_overlap_is_accepted(void **state)
{
    const struct request r = {
        .ndim = 2, .shape = {3, 2}, .itemsize = 1, .dst = {0, {2, 3}}, .src = {0, {2, 1}}};
    check_all(*state, &r, 64);
}

static void operands_with_overlapping_bounds_are_refused(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, ROOM);
    const struct request r = {
        .ndim = 1, .shape = {10}, .itemsize = 4, .dst = {0, {8}}, .src = {4, {8}}};
    assert_refused(&r, at(memory, 0), at(memory, 0), "overlap");
}

static void sizes_that_overflow_are_refused(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 64);
    char host[64] = {0};
    struct request r = {
        .ndim = 2, .shape = {SIZE_MAX / 2, 8}, .itemsize = 4, .dst = {0, {4, 4}}, .src = {0, {4, 4}}};
    assert_refused(&r, at(memory, 0), host_at(host), "overflows");
    r.shape[0] = 8;
    r.dst.strides[0] = PTRDIFF_MAX / 2;
    assert_refused(&r, at(memory, 0), host_at(host), "overflows");
    r.ndim = GG_COPY_MAX_DIMS + 1;
    assert_refused(&r, at(memory, 0), host_at(host), "65 axes");
    r.ndim = 0;
    r.itemsize = 0;
    assert_refused(&r, at(memory, 0), host_at(host), "at least 1");
}

static void require_async_refuses_a_strided_copy_that_would_wait(void **state)
{
    struct fixture *f = *state;
    const struct request r = {
        .ndim = 2, .shape = {512, 512}, .itemsize = 4, .dst = {0, {2048, 4}}, .src = {0, {4, 2048}}};
    unsigned char *from = calloc(1, MANY_BYTES);
    gg_memory *memory = new_memory(f, MANY_BYTES);
    assert_int_equal(
        run(&r, at(memory, 0), host_at(from), f->stream, GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC),
        GG_ERR_UNSUPPORTED);
    assert_message_has("pageable");
    free(from);
}

static void owners_of_strided_operands_are_released_once(void **state)
{
    struct fixture *f = *state;
    atomic_int released = 0;
    unsigned char from[1024] = {0};
    gg_memory *memory = new_memory(f, sizeof from);
    struct gg_copy_operand src = host_at(from), dst = at(memory, 0);
    src.release = dst.release = count_release;
    src.owner = dst.owner = &released;
    assert_int_equal(run(&turned_small, dst, src, f->stream, 0), GG_OK);
    finish(f->stream);
    assert_int_equal(atomic_load(&released), 2);
    dst.offset = 4096;
    assert_int_equal(run(&turned_small, dst, src, f->stream, 0), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(atomic_load(&released), 4);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_small_strided_upload_is_queued),
    cmocka_unit_test(rows_of_pinned_memory_are_queued),
    cmocka_unit_test(a_strided_copy_between_blocks_returns_when_queued),
    cmocka_unit_test(the_source_may_change_once_a_strided_copy_has_returned),
    cmocka_unit_test(pinned_memory_is_read_after_the_work_that_writes_it),
    cmocka_unit_test(elements_outside_the_memory_are_refused),
    cmocka_unit_test(a_destination_that_overlaps_itself_is_refused),
    cmocka_unit_test(an_unusual_destination_without_overlap_is_accepted),
    cmocka_unit_test(operands_with_overlapping_bounds_are_refused),
    cmocka_unit_test(sizes_that_overflow_are_refused),
    cmocka_unit_test(require_async_refuses_a_strided_copy_that_would_wait),
    cmocka_unit_test(owners_of_strided_operands_are_released_once),
};
SUITE(copy_nd_rules, tests);
