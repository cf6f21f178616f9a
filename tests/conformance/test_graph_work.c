/* test_graph_work.c: graphs of many kinds of work, on several streams and devices. */
#include "graphs.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void launch_twice(gg_graph *graph, gg_stream *stream)
{
    assert_int_equal(gg_graph_launch(graph, stream), GG_OK);
    assert_int_equal(gg_graph_launch(graph, stream), GG_OK);
    finish(stream);
}

/* ---- the order of several streams ---- */

static gg_status copy_all(gg_memory *dst, gg_memory *src, gg_stream *stream)
{
    return copy(at(dst, 0), at(src, 0), NBYTES, stream, GG_COPY_ASYNC);
}

/* Two copies beside each other, between two fills of their source. */
static void a_graph_keeps_the_order_of_its_forks_and_joins(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_capture_begin);
    gg_memory *source = zeroed(f), *one = zeroed(f), *two = zeroed(f);
    gg_stream *third = new_stream(f);
    gg_event *filled = new_event(f, 0);
    begin(f, f->stream);
    assert_int_equal(fill_bytes(source, 1, f->stream), GG_OK);
    assert_int_equal(gg_event_record(filled, f->stream), GG_OK);
    assert_int_equal(gg_stream_wait_event(f->second, filled), GG_OK);
    assert_int_equal(gg_stream_wait_event(third, filled), GG_OK);
    assert_int_equal(copy_all(one, source, f->second), GG_OK);
    assert_int_equal(copy_all(two, source, third), GG_OK);
    assert_int_equal(gg_stream_wait_stream(f->stream, f->second), GG_OK);
    assert_int_equal(gg_stream_wait_stream(f->stream, third), GG_OK);
    assert_int_equal(fill_bytes(source, 2, f->stream), GG_OK);
    gg_graph *graph = end(f->stream);
    launch_twice(graph, f->second);
    assert_filled(f, one, NBYTES, 1);
    assert_filled(f, two, NBYTES, 1);
    assert_filled(f, source, NBYTES, 2);
    gg_graph_release(graph);
}

static void a_stream_that_two_captures_meet_in_is_in_the_first(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_capture_begin);
    gg_memory *memory = zeroed(f);
    gg_event *first = new_event(f, 0), *other = new_event(f, 0);
    gg_stream *apart = new_stream(f);
    begin(f, f->stream);
    begin(f, apart);
    assert_int_equal(gg_event_record(first, f->stream), GG_OK);
    assert_int_equal(gg_event_record(other, apart), GG_OK);
    assert_int_equal(gg_stream_wait_event(f->second, first), GG_OK);
    assert_int_equal(gg_stream_wait_event(f->second, other), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(fill_bytes(memory, 3, f->second), GG_OK);
    assert_int_equal(gg_stream_wait_stream(f->stream, f->second), GG_OK);
    end_valid(apart);
    gg_graph *graph = end(f->stream);
    launch_twice(graph, f->stream);
    assert_filled(f, memory, NBYTES, 3);
    gg_graph_release(graph);
}

/* A driver may give its address to the next one. */
static void an_event_that_is_destroyed_in_a_capture_leaves_nothing_behind(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_capture_begin);
    gg_memory *memory = zeroed(f);
    begin(f, f->stream);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    for (int i = 0; i < 40; i++) {
        gg_event *event = NULL;
        assert_int_equal(gg_event_create(f->device, i % 2 ? GG_EVENT_BLOCKING : 0, &event), GG_OK);
        assert_int_equal(gg_event_record(event, f->stream), GG_OK);
        gg_event_release(event);
        assert_int_equal(gg_device_trim(f->device), GG_OK);
        assert_int_equal(gg_event_create(f->device, i % 2 ? GG_EVENT_BLOCKING : 0, &event), GG_OK);
        assert_int_equal(gg_event_record(event, f->second), GG_OK);
        assert_int_equal(gg_stream_wait_event(f->second, event), GG_OK);
        gg_event_release(event);
    }
    finish(f->second); /* it has not joined */
    end_valid(f->stream);
}

/* ---- kinds of work ---- */

static void count_call(void *calls)
{
    atomic_fetch_add((atomic_int *)calls, 1);
}

/* Every second group of eight bytes, by one copy of a box where the backend has it. */
static gg_status copy_strided(gg_memory *dst, gg_memory *src, gg_stream *stream)
{
    static const ptrdiff_t strides[] = {16};
    static const size_t shape[] = {NBYTES / 16};
    const struct gg_copy_operand to = at(dst, 0), from = at(src, 0);
    return gg_copy_nd(&to, strides, &from, strides, 1, shape, 8, stream, GG_COPY_ASYNC);
}

static void a_graph_repeats_work_of_all_kinds_in_order(void **state)
{
    struct fixture *f = *state;
    struct scaling scaling;
    atomic_int calls = 0;
    float result[LENGTH];
    need(f, GG_OP_capture_begin);
    need(f, GG_OP_stream_host_func);
    gg_kernel *kernel = kernel_of(f, "scale");
    make_scaling(f, &scaling);
    gg_memory *pinned = new_pinned(f, sizeof result, 0), *box = zeroed(f), *ones = zeroed(f);
    finish(f->stream);
    begin(f, f->stream);
    assert_int_equal(gg_kernel_launch(kernel, &scaling.call.launch, f->stream), GG_OK);
    assert_int_equal(
        copy(at(pinned, 0), at(scaling.memory, 0), sizeof result, f->stream, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(fill_bytes(ones, 1, f->stream), GG_OK);
    assert_int_equal(copy_strided(box, ones, f->stream), GG_OK);
    const gg_status hosted = gg_stream_host_func(f->stream, count_call, &calls);
    gg_graph *graph = end(f->stream);
    launch_twice(graph, f->stream);
    memcpy(result, gg_memory_pointer(pinned), sizeof result);
    unsigned char bytes[NBYTES];
    read_back(f, box, bytes, sizeof bytes);
    assert_float_equal(result[0], 12, 0);
    assert_float_equal(result[LENGTH - 1], 12, 0);
    assert_int_equal(atomic_load(&calls), hosted ? 0 : 2);
    for (size_t i = 0; i < NBYTES; i++)
        assert_int_equal(bytes[i], i % 16 < 8);
    gg_graph_release(graph);
    gg_kernel_release(kernel);
}

/* ---- two devices ---- */

static void a_launch_orders_work_on_another_device(void **state)
{
    struct fixture *f = *state;
    gg_device *device = other_device_of_backend(f);
    gg_stream *joined = NULL;
    unsigned char got[NBYTES];
    need(f, GG_OP_capture_begin);
    gg_memory *there = NULL, *here = zeroed(f);
    assert_int_equal(gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &joined), GG_OK);
    assert_int_equal(gg_memory_alloc(device, GG_MEMORY_DEVICE, NBYTES, joined, &there), GG_OK);
    assert_int_equal(gg_device_synchronize(device), GG_OK);
    begin(f, f->stream);
    assert_int_equal(fill_bytes(here, 1, f->stream), GG_OK);
    assert_int_equal(gg_stream_wait_stream(joined, f->stream), GG_OK);
    assert_int_equal(fill_bytes(there, 2, joined), GG_OK);
    assert_int_equal(gg_stream_wait_stream(f->stream, joined), GG_OK);
    assert_int_equal(fill_bytes(here, 3, f->stream), GG_OK);
    gg_graph *graph = end(f->stream);
    void *gate = hold(f, f->second);
    assert_int_equal(gg_graph_launch(graph, f->second), GG_OK);
    assert_int_equal(gg_memory_query(there), GG_NOT_READY);
    gate_open(gate);
    finish(f->second);
    assert_int_equal(copy(host_at(got), at(there, 0), NBYTES, joined, 0), GG_OK);
    assert_int_equal(got[NBYTES - 1], 2);
    assert_filled(f, here, NBYTES, 3);
    gg_graph_release(graph);
    gg_memory_release(there);
    gg_stream_release(joined);
}

/* ---- forks of the process ---- */

static void a_child_cannot_end_the_capture_and_the_parent_can(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    int result = 0;
    begin(f, f->stream);
    assert_int_equal(fill_bytes(memory, 4, f->stream), GG_OK);
    const pid_t child = fork();
    if (!child)
        _exit(gg_graph_end_capture(f->stream, NULL) == GG_ERR_FORKED ? 0 : 1);
    waitpid(child, &result, 0);
    gg_graph *graph = end(f->stream);
    assert_int_equal(result, 0);
    launch_twice(graph, f->stream);
    assert_filled(f, memory, NBYTES, 4);
    gg_graph_release(graph);
}

/* The end of the capture makes a stream on the second device, and so examines what was released there. */
static void a_capture_of_two_devices_ends_beside_memory_that_its_stream_still_uses(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_capture_begin);
    need(f, GG_OP_stream_host_func);
    gg_device *other = other_device_of_backend(f);
    gg_stream *joined = NULL;
    gg_memory *here = zeroed(f), *there = NULL, *used = NULL;
    assert_int_equal(gg_stream_create(other, GG_STREAM_NONBLOCKING, 0, &joined), GG_OK);
    assert_int_equal(gg_memory_alloc(other, GG_MEMORY_DEVICE, NBYTES, joined, &there), GG_OK);
    assert_int_equal(gg_memory_alloc(other, GG_MEMORY_DEVICE, NBYTES, joined, &used), GG_OK);
    finish(joined);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_memory_record_use(used, f->stream),
                     GG_OK); /* as a copy between the devices */
    begin(f, f->stream);
    assert_int_equal(fill_bytes(here, 1, f->stream), GG_OK);
    assert_int_equal(gg_stream_wait_stream(joined, f->stream), GG_OK);
    assert_int_equal(fill_bytes(there, 2, joined), GG_OK);
    assert_int_equal(gg_stream_wait_stream(f->stream, joined), GG_OK);
    gg_memory_release(used);
    gg_graph *graph = end(f->stream);
    gate_open(gate);
    launch_twice(graph, f->stream);
    assert_filled(f, here, NBYTES, 1);
    gg_graph_release(graph);
    gg_memory_release(there);
    gg_stream_release(joined);
}

/* The fence of a second handle of the stream, which is closed in the capture, is another's event afterwards. */
static void work_of_other_streams_runs_after_a_handle_was_closed_in_a_capture(void **state)
{
    struct fixture *f = *state;
    uint64_t handles[4];
    gg_stream *handle = NULL, *recorded = new_stream(f), *waits = new_stream(f);
    need(f, GG_OP_capture_begin);
    need(f, GG_OP_stream_native);
    need(f, GG_OP_stream_borrow);
    gg_memory *memory = zeroed(f);
    assert_int_equal(gg_stream_native(f->stream, handles), GG_OK);
    begin(f, f->stream);
    assert_int_equal(gg_stream_borrow(f->device, handles[0], 0, 0, &handle), GG_OK);
    assert_int_equal(gg_stream_wait_stream(f->second, handle), GG_OK);
    assert_int_equal(gg_stream_wait_stream(f->stream, f->second), GG_OK);
    gg_stream_release(handle);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(gg_event_record(new_event(f, 0), recorded), GG_OK);
        assert_int_equal(gg_stream_wait_event(waits, f->events[f->event_count - 1]), GG_OK);
    }
    assert_int_equal(fill_bytes(memory, 5, waits), GG_OK);
    gg_graph_release(end(f->stream));
    finish(waits);
    assert_filled(f, memory, NBYTES, 5);
}

/* ---- patterns that the driver's fill has not ---- */

#define PATTERN_MAX 64
#define ELEMENTS 50

/* Elements of @p size bytes, @p step apart, from the byte @p offset on. */
static void check_captured_fill(struct fixture *f, size_t offset, size_t size, size_t step)
{
    gg_memory *memory = zeroed(f);
    unsigned char pattern[PATTERN_MAX], got[NBYTES], expected[NBYTES] = {0};
    for (size_t i = 0; i < size; i++)
        pattern[i] = (unsigned char)(i * 31 + size);
    for (size_t i = 0; i < ELEMENTS; i++)
        memcpy(expected + offset + i * step, pattern, size);
    begin(f, f->stream);
    if (step == size)
        assert_int_equal(gg_fill(memory, offset, pattern, size, ELEMENTS, f->stream), GG_OK);
    else
        assert_int_equal(gg_fill_nd(memory, offset, &(ptrdiff_t){(ptrdiff_t)step}, 1,
                                    &(size_t){ELEMENTS}, pattern, size, f->stream),
                         GG_OK);
    gg_graph *graph = end(f->stream);
    memset(pattern, 0xee, sizeof pattern); /* read at the capture */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fill_bytes(memory, 0, f->stream), GG_OK);
        assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
        read_back(f, memory, got, NBYTES);
        assert_memory_equal(got, expected, NBYTES);
    }
    gg_graph_release(graph);
}

static void a_captured_fill_with_a_longer_pattern_is_repeated(void **state)
{
    struct fixture *f = *state;
    check_captured_fill(f, 0, 8, 8);
    check_captured_fill(f, 16, 16, 16);
    check_captured_fill(f, 0, PATTERN_MAX, PATTERN_MAX);
    check_captured_fill(f, 1, 8, 8);
    check_captured_fill(f, 2, 6, 6);
    check_captured_fill(f, 0, 3, 3);
    check_captured_fill(f, 8, 8, 24);
}

static void a_captured_fill_with_a_pattern_of_many_pieces_is_refused(void **state)
{
    struct fixture *f = *state;
    static const unsigned char pattern[PATTERN_MAX + 4] = {1};
    gg_memory *memory = zeroed(f);
    begin(f, f->stream);
    assert_int_equal(gg_fill(memory, 0, pattern, sizeof pattern, 2, f->stream), GG_ERR_UNSUPPORTED);
    assert_message_has("a pattern of 68 bytes needs a copy from the host");
    assert_int_equal(gg_fill(memory, 1, pattern, 20, 2, f->stream), GG_ERR_UNSUPPORTED);
    end_valid(f->stream);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_graph_keeps_the_order_of_its_forks_and_joins),
    cmocka_unit_test(a_stream_that_two_captures_meet_in_is_in_the_first),
    cmocka_unit_test(an_event_that_is_destroyed_in_a_capture_leaves_nothing_behind),
    cmocka_unit_test(a_graph_repeats_work_of_all_kinds_in_order),
    cmocka_unit_test(a_launch_orders_work_on_another_device),
    cmocka_unit_test(a_capture_of_two_devices_ends_beside_memory_that_its_stream_still_uses),
    cmocka_unit_test(work_of_other_streams_runs_after_a_handle_was_closed_in_a_capture),
    cmocka_unit_test(a_captured_fill_with_a_longer_pattern_is_repeated),
    cmocka_unit_test(a_captured_fill_with_a_pattern_of_many_pieces_is_refused),
    cmocka_unit_test(a_child_cannot_end_the_capture_and_the_parent_can),
};
SUITE(graph_work, tests);
