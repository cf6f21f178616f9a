/* test_between.c: copies between two devices, of one backend or of two, both ways. */
#include "pairs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SLOT 65536u

static void *opened_by_hook;
static int open_the_gate(void)
{
    gate_open(opened_by_hook);
    return 0;
}

static gg_stream *held_stream_on(struct pair *pair, gg_device *device)
{
    gg_stream *stream = stream_on(pair, device);
    opened_by_hook = hold(pair->f, stream); /* opens once a call waits */
    gg_set_wait_hook(open_the_gate);
    return stream;
}

/* ---- bytes ---- */

static void move_sizes(struct pair *pair)
{
    static const size_t sizes[] = {1, 7, SLOT - 1, SLOT, SLOT + 1, 3 * MANY_BYTES + 5};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *bytes = malloc(sizes[i]), *back = calloc(1, sizes[i]);
        gg_memory *src = NULL, *dst = NULL;
        for (size_t k = 0; k < sizes[i]; k++)
            bytes[k] = (unsigned char)(k * 7 + k / 251 + i);
        assert_int_equal(gg_memory_alloc(pair->from, GG_MEMORY_DEVICE, sizes[i], NULL, &src), GG_OK);
        assert_int_equal(gg_memory_alloc(pair->to, GG_MEMORY_DEVICE, sizes[i], NULL, &dst), GG_OK);
        assert_int_equal(copy(at(src, 0), host_at(bytes), sizes[i], NULL, 0), GG_OK);
        assert_int_equal(copy(at(dst, 0), at(src, 0), sizes[i], NULL, 0), GG_OK);
        assert_int_equal(copy(host_at(back), at(dst, 0), sizes[i], NULL, 0), GG_OK);
        assert_memory_equal(back, bytes, sizes[i]);
        gg_memory_release(src);
        gg_memory_release(dst);
        free(bytes);
        free(back);
    }
}

static void bytes_are_copied_between_all_pairs_of_devices(void **state)
{
    for_each_pair(state, move_sizes);
}

static void move_at_offsets(struct pair *pair)
{
    gg_memory *src = filled_on(pair, pair->from, 1), *dst = filled_on(pair, pair->to, 2);
    unsigned char back[8];
    assert_int_equal(copy(at(src, 10), host_at("abcdef"), 6, NULL, 0), GG_OK);
    assert_int_equal(copy(at(dst, 3), at(src, 11), 4, NULL, 0), GG_OK);
    assert_int_equal(copy(host_at(back), at(dst, 0), 8, NULL, 0), GG_OK);
    assert_memory_equal(back, "\2\2\2bcde\2", 8);
    assert_int_equal(copy(at(dst, NBYTES), at(src, 0), 0, NULL, 0), GG_OK);
    assert_int_equal(copy(at(dst, 1), at(src, 0), NBYTES, NULL, 0), GG_ERR_INVALID_ARGUMENT);
}

static void offsets_apply_on_both_devices(void **state)
{
    for_each_pair(state, move_at_offsets);
}

/* One line of bytes once the axes are in order, which moves both first elements. */
static void move_backwards(struct pair *pair)
{
    unsigned char back[NBYTES];
    const size_t half = NBYTES / 2;
    gg_memory *src = filled_on(pair, pair->from, 1), *dst = filled_on(pair, pair->to, 2);
    struct gg_copy_operand to = at(dst, half - 1), from = at(src, half - 1);
    assert_int_equal(
        gg_copy_nd(&to, (ptrdiff_t[]){-1}, &from, (ptrdiff_t[]){-1}, 1, &half, 1, NULL, 0), GG_OK);
    assert_int_equal(copy(host_at(back), at(dst, 0), NBYTES, NULL, 0), GG_OK);
    for (size_t i = 0; i < NBYTES; i++)
        assert_int_equal(back[i], i < half ? 1 : 2);
}

static void a_contiguous_box_with_negative_strides_is_copied(void **state)
{
    for_each_pair(state, move_backwards);
}

/* ---- order ---- */

static void copy_behind_a_writer(struct pair *pair)
{
    gg_memory *src = filled_on(pair, pair->from, 1), *dst = filled_on(pair, pair->to, 2);
    gg_stream *writer = held_stream_on(pair, pair->from);
    assert_int_equal(fill_bytes(src, 3, writer), GG_OK);
    assert_int_equal(copy(at(dst, 0), at(src, 0), NBYTES, NULL, 0), GG_OK);
    assert_filled(pair->f, dst, NBYTES, 3);
}

static void a_copy_between_devices_waits_for_unfinished_work_on_its_source(void **state)
{
    for_each_pair(state, copy_behind_a_writer);
}

static void copy_over_a_writer(struct pair *pair)
{
    gg_memory *src = filled_on(pair, pair->from, 1), *dst = filled_on(pair, pair->to, 2);
    gg_stream *writer = held_stream_on(pair, pair->to);
    assert_int_equal(fill_bytes(dst, 3, writer), GG_OK);
    assert_int_equal(copy(at(dst, 0), at(src, 0), NBYTES, NULL, 0), GG_OK);
    assert_false(busy(writer));
    assert_filled(pair->f, dst, NBYTES, 1);
}

static void a_copy_between_devices_waits_for_unfinished_work_on_its_destination(void **state)
{
    for_each_pair_apart(state, copy_over_a_writer);
}

/* The work of an entered stream of either operand runs before the copy. */
static void copy_on_entered_streams(struct pair *pair)
{
    gg_memory *src = filled_on(pair, pair->from, 1), *dst = filled_on(pair, pair->to, 2);
    gg_stream *down = held_stream_on(pair, pair->from), *up = stream_on(pair, pair->to);
    gg_scope *from = NULL, *to = NULL;
    assert_int_equal(gg_scope_enter(pair->from, down, &from), GG_OK);
    assert_int_equal(gg_scope_enter(pair->to, up, &to), GG_OK);
    assert_int_equal(fill_bytes(src, 4, NULL), GG_OK);
    assert_int_equal(fill_bytes(dst, 5, NULL), GG_OK);
    assert_int_equal(copy(at(dst, 0), at(src, 0), NBYTES, NULL, GG_COPY_ASYNC), GG_OK);
    assert_false(busy(down));
    assert_false(busy(up));
    assert_int_equal(gg_scope_leave(to), GG_OK);
    assert_int_equal(gg_scope_leave(from), GG_OK);
    assert_filled(pair->f, dst, NBYTES, 4);
}

static void a_copy_between_devices_runs_on_both_current_streams_and_is_complete(void **state)
{
    for_each_pair_apart(state, copy_on_entered_streams);
}

/* A wait for the given stream proves that its earlier work ran before the copy. */
static void copy_on_a_stream(struct pair *pair)
{
    gg_memory *src = filled_on(pair, pair->from, 1), *dst = filled_on(pair, pair->to, 2);
    gg_stream *down = held_stream_on(pair, pair->from), *up;
    assert_int_equal(fill_bytes(src, 6, down), GG_OK);
    assert_int_equal(copy(at(dst, 0), at(src, 0), NBYTES, down, GG_COPY_ASYNC), GG_OK);
    assert_false(busy(down));
    assert_filled(pair->f, dst, NBYTES, 6);
    up = held_stream_on(pair, pair->to);
    assert_int_equal(fill_bytes(dst, 7, up), GG_OK);
    assert_int_equal(copy(at(dst, 0), at(src, 0), NBYTES, up, GG_COPY_ASYNC), GG_OK);
    assert_false(busy(up));
    assert_filled(pair->f, dst, NBYTES, 6);
}

static void a_given_stream_replaces_the_current_one_of_its_device(void **state)
{
    for_each_pair_apart(state, copy_on_a_stream);
}

/* An explicit stream waits for no other: the write of another stream to that operand is not
 * waited for. */
static void copy_beside_a_writer(struct pair *pair)
{
    gg_memory *src = filled_on(pair, pair->from, 1), *dst = filled_on(pair, pair->to, 2);
    gg_stream *given = stream_on(pair, pair->from), *writer = stream_on(pair, pair->from);
    void *gate = hold(pair->f, writer);
    assert_int_equal(fill_bytes(src, 3, writer), GG_OK);
    assert_int_equal(copy(at(dst, 0), at(src, 0), NBYTES, given, 0), GG_OK);
    assert_int_equal(first_byte(dst), 1);
    assert_true(busy(writer));
    gate_open(gate);
    finish(writer);
}

static void an_explicit_stream_adds_no_synchronization_on_its_device(void **state)
{
    for_each_pair(state, copy_beside_a_writer);
}

/* ---- refusals and failures ---- */

static void refuse_async(struct pair *pair)
{
    gg_memory *src = filled_on(pair, pair->from, 1), *dst = filled_on(pair, pair->to, 2);
    assert_int_equal(copy(at(dst, 0), at(src, 0), 1, NULL, GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC),
                     GG_ERR_UNSUPPORTED);
    assert_message_has("goes through the host, and the call waits for it");
    assert_message_has(gg_device_backend(pair->from));
    assert_message_has(gg_device_backend(pair->to));
    assert_int_equal(first_byte(dst), 2);
}

static void require_async_refuses_a_copy_between_devices_with_the_reason(void **state)
{
    for_each_pair_apart(state, refuse_async);
}

static void refuse_strided_async(struct pair *pair)
{
    gg_memory *src = filled_on(pair, pair->from, 1), *dst = filled_on(pair, pair->to, 2);
    const struct gg_copy_operand from = at(src, 0), to = at(dst, 0);
    const ptrdiff_t apart[] = {64, 2};
    assert_int_equal(gg_copy_nd(&to, apart, &from, apart, 2, (const size_t[]){4, 4}, 1,
                                stream_on(pair, pair->from), GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC),
                     GG_ERR_UNSUPPORTED);
    assert_message_has("to another device goes through the host");
    assert_int_equal(first_byte(dst), 2);
}

static void require_async_refuses_a_strided_copy_between_devices_with_the_reason(void **state)
{
    for_each_pair_apart(state, refuse_strided_async);
}

static void a_stream_of_a_third_device_is_refused(void **state)
{
    struct devices all = all_devices(*state);
    if (all.count < 3)
        skip_because("there are fewer than three devices");
    struct pair pair = {*state, all.device[0], all.device[1]};
    gg_memory *src = filled_on(&pair, pair.from, 1), *dst = filled_on(&pair, pair.to, 2);
    assert_int_equal(copy(at(dst, 0), at(src, 0), 1, stream_on(&pair, all.device[2]), 0),
                     GG_ERR_INVALID_ARGUMENT);
    assert_message_has("the stream belongs to");
    assert_int_equal(first_byte(dst), 2);
}

static int interrupt(void)
{
    return 1;
}

static void interrupt_it(struct pair *pair)
{
    atomic_int released = 0;
    gg_memory *src = filled_on(pair, pair->from, 1), *dst = filled_on(pair, pair->to, 2);
    gg_stream *held = stream_on(pair, pair->from);
    struct gg_copy_operand from = at(src, 0), to = at(dst, 0);
    void *gate = hold(pair->f, held);
    from.release = to.release = count_release;
    from.owner = to.owner = &released;
    gg_set_wait_hook(interrupt);
    assert_int_equal(copy(to, from, NBYTES, held, 0), GG_ERR_INTERRUPTED);
    gg_set_wait_hook(NULL);
    assert_int_equal(atomic_load(&released), 1); /* the source's stream waits for the queued work */
    gate_open(gate);
    finish(held);
    assert_int_equal(atomic_load(&released), 2);
    assert_int_equal(first_byte(dst), 2);
}

static void an_interrupted_copy_keeps_the_memory_of_queued_work_alive(void **state)
{
    for_each_pair_apart(state, interrupt_it);
}

/* ---- other memory of two devices ---- */

static void use_foreign_pinned(struct pair *pair)
{
    gg_memory *pinned = memory_on(pair, pair->from, GG_MEMORY_PINNED, MANY_BYTES);
    gg_memory *memory = memory_on(pair, pair->to, GG_MEMORY_DEVICE, MANY_BYTES);
    memset(gg_memory_pointer(pinned), 0x5a, MANY_BYTES);
    assert_int_equal(copy(at(memory, 0), at(pinned, 0), MANY_BYTES, NULL, 0), GG_OK);
    memset(gg_memory_pointer(pinned), 0, MANY_BYTES);
    assert_int_equal(copy(at(pinned, 0), at(memory, 0), MANY_BYTES, NULL, 0), GG_OK);
    assert_int_equal(*((unsigned char *)gg_memory_pointer(pinned) + MANY_BYTES - 1), 0x5a);
}

static void pinned_memory_of_another_device_can_be_copied(void **state)
{
    for_each_pair(state, use_foreign_pinned);
}

/* Two drivers share no events, so the host waits there. */
static void use_after_foreign_work(struct pair *pair)
{
    gg_memory *memory = filled_on(pair, pair->from, 1);
    gg_stream *foreign = held_stream_on(pair, pair->to);
    assert_int_equal(gg_memory_record_use(memory, foreign), GG_OK);
    assert_int_equal(fill_bytes(memory, 2, NULL), GG_OK);
    assert_filled(pair->f, memory, NBYTES, 2);
    assert_false(busy(foreign));
}

static void an_implicit_operation_waits_for_uses_recorded_on_another_device(void **state)
{
    for_each_pair(state, use_after_foreign_work);
}

/* ---- several threads ---- */

static void *shuttle(void *argument)
{
    struct pair *pair = argument;
    gg_memory *src = NULL, *dst = NULL;
    size_t nbytes = 20 * SLOT;
    gg_status status = gg_memory_alloc(pair->from, GG_MEMORY_DEVICE, nbytes, NULL, &src);
    if (!status)
        status = gg_memory_alloc(pair->to, GG_MEMORY_DEVICE, nbytes, NULL, &dst);
    if (!status)
        status = fill_bytes(src, 1, NULL);
    for (int i = 0; !status && i < 4; i++)
        status = copy(at(dst, 0), at(src, 0), nbytes, NULL, 0);
    gg_memory_release(src);
    gg_memory_release(dst);
    return (void *)(uintptr_t)status;
}

static void copies_in_both_directions_do_not_block_each_other(void **state)
{
    struct devices all = all_devices(*state);
    struct pair there = {*state, all.device[0], all.device[1]};
    struct pair back = {*state, all.device[1], all.device[0]};
    pthread_t threads[8];
    void *status;
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, shuttle, i % 2 ? &there : &back), 0);
    for (size_t i = 0; i < 8; i++) {
        pthread_join(threads[i], &status);
        assert_null(status);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bytes_are_copied_between_all_pairs_of_devices),
    cmocka_unit_test(offsets_apply_on_both_devices),
    cmocka_unit_test(a_contiguous_box_with_negative_strides_is_copied),
    cmocka_unit_test(a_copy_between_devices_waits_for_unfinished_work_on_its_source),
    cmocka_unit_test(a_copy_between_devices_waits_for_unfinished_work_on_its_destination),
    cmocka_unit_test(a_copy_between_devices_runs_on_both_current_streams_and_is_complete),
    cmocka_unit_test(a_given_stream_replaces_the_current_one_of_its_device),
    cmocka_unit_test(an_explicit_stream_adds_no_synchronization_on_its_device),
    cmocka_unit_test(require_async_refuses_a_copy_between_devices_with_the_reason),
    cmocka_unit_test(require_async_refuses_a_strided_copy_between_devices_with_the_reason),
    cmocka_unit_test(a_stream_of_a_third_device_is_refused),
    cmocka_unit_test(an_interrupted_copy_keeps_the_memory_of_queued_work_alive),
    cmocka_unit_test(pinned_memory_of_another_device_can_be_copied),
    cmocka_unit_test(an_implicit_operation_waits_for_uses_recorded_on_another_device),
    cmocka_unit_test(copies_in_both_directions_do_not_block_each_other),
};
SUITE(between, tests);
