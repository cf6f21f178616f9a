/* test_graph.c: captures that gpuglue begins, and launches of the graphs that they become. */
#include "graphs.h"

#include <pthread.h>

static gg_graph *const untouched = (gg_graph *)(uintptr_t)16;

/* ---- what a launch does ---- */

static void captured_work_runs_at_each_launch(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    gg_graph *graph = filling(f, memory, 7, 1);
    assert_ptr_equal(gg_graph_device(graph), f->device);
    assert_filled(f, memory, NBYTES, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gg_graph_launch(graph, f->second), GG_OK);
        assert_filled(f, memory, NBYTES, 7);
        assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
        finish(f->stream);
    }
    gg_graph_release(graph);
}

static void a_captured_kernel_keeps_its_arguments(void **state)
{
    struct fixture *f = *state;
    struct scaling scaling;
    need(f, GG_OP_capture_begin);
    gg_kernel *kernel = kernel_of(f, "scale");
    make_scaling(f, &scaling);
    finish(f->stream);
    begin(f, f->stream);
    assert_int_equal(gg_kernel_launch(kernel, &scaling.call.launch, f->stream), GG_OK);
    gg_graph *graph = end(f->stream);
    scaling.by = 100;          /* read at the capture */
    gg_kernel_release(kernel); /* the graph keeps its code */
    collect(f);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    finish(f->stream);
    assert_floats(f, scaling.memory, 12);
    gg_graph_release(graph);
}

static void a_captured_copy_with_pinned_memory_is_repeated(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f), *pinned = new_pinned(f, NBYTES, 5);
    begin(f, f->stream);
    assert_int_equal(copy(at(memory, 0), at(pinned, 0), NBYTES, f->stream, GG_COPY_ASYNC), GG_OK);
    gg_graph *graph = end(f->stream);
    for (unsigned char value = 5; value < 8; value++) {
        memset(gg_memory_pointer(pinned), value, NBYTES);
        assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
        finish(f->stream);
        assert_filled(f, memory, NBYTES, value);
    }
    gg_graph_release(graph);
}

static void a_graph_without_work_can_be_launched(void **state)
{
    struct fixture *f = *state;
    begin(f, f->stream);
    gg_graph *graph = end(f->stream);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    finish(f->stream);
    gg_graph_release(graph);
}

static void a_stream_that_joins_a_capture_is_part_of_the_graph(void **state)
{
    struct fixture *f = *state;
    atomic_int released;
    gg_memory *memory = zeroed(f), *view = counted(f, memory, &released);
    gg_event *event = new_event(f, 0);
    begin(f, f->stream);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    assert_int_equal(gg_stream_wait_event(f->second, event), GG_OK);
    assert_int_equal(fill_bytes(view, 3, f->second), GG_OK);
    assert_int_equal(gg_stream_wait_stream(f->stream, f->second), GG_OK);
    gg_graph *graph = end(f->stream);
    gg_memory_release(view);
    collect(f);
    assert_int_equal(atomic_load(&released), 0);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    finish(f->stream);
    assert_filled(f, memory, NBYTES, 3);
    gg_graph_release(graph);
    collect(f);
    assert_int_equal(atomic_load(&released), 1);
}

static void memory_allocated_in_a_capture_belongs_to_the_graph(void **state)
{
    struct fixture *f = *state;
    gg_memory *inside = NULL, *memory = zeroed(f);
    begin(f, f->stream);
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, NBYTES, f->second, &inside),
                     GG_OK);
    assert_int_equal(fill_bytes(inside, 9, f->stream), GG_OK);
    assert_int_equal(copy(at(memory, 0), at(inside, 0), NBYTES, f->stream, 0), GG_OK);
    const void *pointer = gg_memory_pointer(inside);
    gg_memory_release(inside);
    gg_graph *graph = end(f->stream);
    for (int i = 0; i < 8; i++)
        assert_ptr_not_equal(gg_memory_pointer(new_memory(f, NBYTES)), pointer);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    finish(f->stream);
    assert_filled(f, memory, NBYTES, 9);
    gg_graph_release(graph);
}

/* ---- order ---- */

static void a_launch_is_queued_on_its_stream(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    gg_graph *graph = filling(f, memory, 2, 1);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    assert_true(busy(f->stream));
    assert_int_equal(gg_memory_query(memory), GG_NOT_READY);
    gate_open(gate);
    finish(f->stream);
    assert_int_equal(gg_memory_query(memory), GG_OK);
    gg_graph_release(graph);
}

static void an_implicit_operation_waits_for_a_launch(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f), *pinned = new_pinned(f, NBYTES, 0);
    gg_graph *graph = filling(f, memory, 2, 1);
    gg_scope *scope;
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    assert_int_equal(gg_scope_enter(f->device, f->second, &scope), GG_OK);
    assert_int_equal(copy(at(pinned, 0), at(memory, 0), NBYTES, NULL, GG_COPY_ASYNC), GG_OK);
    assert_true(busy(f->second));
    gate_open(gate);
    finish(f->second);
    assert_int_equal(((unsigned char *)gg_memory_pointer(pinned))[NBYTES - 1], 2);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    gg_graph_release(graph);
}

static void a_launch_without_a_stream_waits_for_all_its_memory(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    gg_graph *graph = filling(f, memory, 2, 1);
    gg_scope *scope;
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    assert_int_equal(gg_scope_enter(f->device, f->second, &scope), GG_OK);
    assert_int_equal(gg_graph_launch(graph, NULL), GG_OK);
    assert_true(busy(f->second));
    gate_open(gate);
    finish(f->second);
    assert_filled(f, memory, NBYTES, 2);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    gg_graph_release(graph);
}

static void a_launch_with_a_stream_waits_for_nothing_else(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    gg_graph *graph = filling(f, memory, 2, 1);
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    assert_int_equal(gg_graph_launch(graph, f->second), GG_OK);
    finish(f->second);
    assert_true(busy(f->stream));
    gate_open(gate);
    finish(f->stream);
    assert_filled(f, memory, NBYTES, 1);
    gg_graph_release(graph);
}

/* ---- what a graph holds ---- */

static void a_graph_holds_its_memory_until_its_launches_are_done(void **state)
{
    struct fixture *f = *state;
    atomic_int released;
    gg_memory *memory = zeroed(f), *view = counted(f, memory, &released);
    gg_graph *graph = filling(f, view, 4, 2);
    gg_memory_release(view);
    collect(f);
    assert_int_equal(atomic_load(&released), 0);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    gg_graph_release(graph);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), 0);
    gate_open(gate);
    finish(f->stream);
    assert_filled(f, memory, NBYTES, 4);
    collect(f);
    assert_int_equal(atomic_load(&released), 1);
}

static void a_graph_holds_the_owner_of_host_memory(void **state)
{
    struct fixture *f = *state;
    atomic_int released = 0;
    gg_memory *memory = zeroed(f), *pinned = new_pinned(f, NBYTES, 6);
    struct gg_copy_operand src = at(pinned, 0);
    src.release = count_release;
    src.owner = &released;
    begin(f, f->stream);
    assert_int_equal(copy(at(memory, 0), src, NBYTES, f->stream, GG_COPY_ASYNC), GG_OK);
    gg_graph *graph = end(f->stream);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    collect(f);
    assert_int_equal(atomic_load(&released), 0);
    assert_filled(f, memory, NBYTES, 6);
    gg_graph_release(graph);
    collect(f);
    assert_int_equal(atomic_load(&released), 1);
}

static void memory_of_a_released_graph_is_reused(void **state)
{
    struct fixture *f = *state;
    struct gg_memory_stats stats = {.struct_size = sizeof stats};
    gg_memory *memory = NULL;
    need(f, GG_OP_capture_begin);
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, NBYTES, f->stream, &memory),
                     GG_OK);
    gg_graph *graph = filling(f, memory, 4, 1);
    gg_memory_release(memory);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    gg_graph_release(graph);
    collect(f);
    assert_int_equal(gg_device_memory_stats(f->device, &stats), GG_OK);
    assert_int_equal(stats.retired_blocks, 0);
}

/* ---- captures that do not become a graph ---- */

static void a_dropped_capture_runs_nothing_and_holds_nothing(void **state)
{
    struct fixture *f = *state;
    atomic_int released;
    gg_memory *memory = zeroed(f), *view = counted(f, memory, &released);
    begin(f, f->stream);
    assert_int_equal(fill_bytes(view, 4, f->stream), GG_OK);
    gg_memory_release(view);
    assert_int_equal(gg_graph_end_capture(f->stream, NULL), GG_OK);
    collect(f);
    assert_int_equal(atomic_load(&released), 1);
    assert_filled(f, memory, NBYTES, 0);
    assert_int_equal(fill_bytes(memory, 5, f->stream), GG_OK); /* runs again */
    finish(f->stream);
    assert_filled(f, memory, NBYTES, 5);
}

static void a_capture_with_a_stream_that_was_not_joined_fails_at_its_end(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    gg_graph *graph = untouched;
    begin(f, f->stream);
    assert_int_equal(gg_stream_wait_stream(f->second, f->stream), GG_OK);
    assert_int_equal(fill_bytes(memory, 4, f->second), GG_OK);
    assert_int_equal(gg_graph_end_capture(f->stream, &graph), GG_ERR_UNSUPPORTED);
    assert_ptr_equal(graph, untouched);
    gg_graph_release(filling(f, memory, 1, 1)); /* both streams can be used again */
    finish(f->second);
}

static void an_invalidated_capture_fails_at_its_end(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_event_native);
    gg_memory *memory = zeroed(f);
    gg_graph *graph = untouched;
    gg_event *event = new_event(f, 0);
    gg_stream *joined = new_stream(f);
    assert_int_equal(gg_event_record(event, f->second), GG_OK);
    begin(f, f->stream);
    invalidate(f->stream, event, joined, memory);
    assert_int_equal(gg_graph_end_capture(f->stream, &graph), GG_ERR_UNSUPPORTED);
    assert_message_has("stream is capturing");
    assert_ptr_equal(graph, untouched);
    gg_graph_release(filling(f, memory, 1, 1));
    finish(f->stream);
}

/* ---- what is refused ---- */

static void the_default_stream_cannot_be_captured(void **state)
{
    struct fixture *f = *state;
    gg_stream *stream;
    need(f, GG_OP_capture_begin);
    assert_int_equal(gg_device_default_stream(f->device, &stream), GG_OK);
    assert_int_equal(gg_graph_begin_capture(stream), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("create a stream");
}

/* Only its own thread could end the capture. */
static void the_default_stream_of_a_thread_cannot_be_captured(void **state)
{
    struct fixture *f = *state;
    gg_stream *stream = NULL;
    need(f, GG_OP_capture_begin);
    if (gg_stream_borrow(f->device, 2, NULL, NULL, &stream))
        skip_because("the backend has no per-thread default stream");
    assert_int_equal(gg_graph_begin_capture(stream), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("create a stream");
    finish(stream);
    gg_stream_release(stream);
}

static void a_stream_is_captured_once_at_a_time(void **state)
{
    struct fixture *f = *state;
    begin(f, f->stream);
    assert_int_equal(gg_graph_begin_capture(f->stream), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("end that capture first");
    assert_int_equal(gg_graph_end_capture(f->stream, NULL), GG_OK);
}

static void the_end_of_no_capture_is_refused(void **state)
{
    struct fixture *f = *state;
    gg_graph *graph = untouched;
    assert_int_equal(gg_graph_end_capture(f->stream, &graph), GG_ERR_INVALID_ARGUMENT);
    assert_ptr_equal(graph, untouched);
}

static void a_graph_is_not_launched_into_a_capture(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    gg_graph *graph = filling(f, memory, 1, 1);
    begin(f, f->stream);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_ERR_UNSUPPORTED);
    assert_message_has("stream is capturing");
    gg_graph_release(end(f->stream)); /* the refusal did not invalidate it */
    gg_graph_release(graph);
}

static void a_capture_does_not_wait_for_unfinished_work_elsewhere(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    gg_scope *scope;
    need(f, GG_OP_capture_begin);
    void *gate = hold(f, f->second);
    assert_int_equal(fill_bytes(memory, 1, f->second), GG_OK);
    begin(f, f->stream);
    assert_int_equal(gg_scope_enter(f->device, f->stream, &scope), GG_OK);
    assert_int_equal(fill_bytes(memory, 2, NULL), GG_ERR_UNSUPPORTED);
    assert_message_has("synchronize that stream");
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    gg_graph_release(end(f->stream));
    gate_open(gate);
}

static void a_device_without_graphs_reports_it(void **state)
{
    struct fixture *f = *state;
    if (gg_device_supports(f->device, GG_OP_capture_begin))
        skip_because("the device has graphs");
    assert_int_equal(gg_graph_begin_capture(f->stream), GG_ERR_UNSUPPORTED);
    assert_message_has("capture_begin");
    assert_int_equal(fill_bytes(zeroed(f), 1, f->stream), GG_OK);
}

/* ---- updates ---- */

static void an_updated_graph_does_what_the_other_captured(void **state)
{
    struct fixture *f = *state;
    atomic_int released;
    need(f, GG_OP_graph_update);
    gg_memory *one = zeroed(f), *two = zeroed(f), *view = counted(f, two, &released);
    gg_graph *graph = filling(f, one, 1, 1), *other = filling(f, view, 2, 1);
    gg_memory_release(view);
    assert_int_equal(gg_graph_update(graph, other), GG_OK);
    gg_graph_release(other);
    collect(f);
    assert_int_equal(atomic_load(&released), 0); /* now the first graph holds it */
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    finish(f->stream);
    assert_filled(f, one, NBYTES, 0);
    assert_filled(f, two, NBYTES, 2);
    gg_graph_release(graph);
    collect(f);
    assert_int_equal(atomic_load(&released), 1);
}

static void an_updated_graph_can_update_others(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_graph_update);
    gg_memory *memory = zeroed(f);
    gg_graph *graphs[3];
    for (int i = 0; i < 3; i++)
        graphs[i] = filling(f, memory, (unsigned char)(i + 1), 1);
    assert_int_equal(gg_graph_update(graphs[1], graphs[2]), GG_OK);
    assert_int_equal(gg_graph_update(graphs[0], graphs[1]), GG_OK);
    assert_int_equal(gg_graph_update(graphs[0], graphs[0]), GG_OK);
    assert_int_equal(gg_graph_launch(graphs[0], f->stream), GG_OK);
    finish(f->stream);
    assert_filled(f, memory, NBYTES, 3);
    for (int i = 0; i < 3; i++)
        gg_graph_release(graphs[i]);
}

static void an_update_leaves_launches_in_flight_as_they_are(void **state)
{
    struct fixture *f = *state;
    atomic_int released;
    need(f, GG_OP_graph_update);
    gg_memory *one = zeroed(f), *two = zeroed(f), *view = counted(f, one, &released);
    gg_graph *graph = filling(f, view, 1, 1), *other = filling(f, two, 2, 1);
    gg_memory_release(view);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    assert_int_equal(gg_graph_update(graph, other), GG_OK);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), 0);
    gate_open(gate);
    finish(f->stream);
    assert_filled(f, one, NBYTES, 1);
    assert_filled(f, two, NBYTES, 0);
    collect(f);
    assert_int_equal(atomic_load(&released), 1);
    gg_graph_release(graph);
    gg_graph_release(other);
}

/* A copy from pinned memory, whose owner the graph holds. */
static gg_graph *copying(struct fixture *f, gg_memory *memory, atomic_int *released)
{
    struct gg_copy_operand src = at(new_pinned(f, NBYTES, 6), 0);
    atomic_store(released, 0);
    src.release = count_release;
    src.owner = released;
    begin(f, f->stream);
    assert_int_equal(copy(at(memory, 0), src, NBYTES, f->stream, GG_COPY_ASYNC), GG_OK);
    return end(f->stream);
}

static void an_update_keeps_the_owners_of_launches_in_flight(void **state)
{
    struct fixture *f = *state;
    atomic_int released, other_released;
    need(f, GG_OP_graph_update);
    gg_memory *memory = zeroed(f);
    gg_graph *graph = copying(f, memory, &released), *other = copying(f, memory, &other_released);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    assert_int_equal(gg_graph_update(graph, other), GG_OK);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), 0);
    gate_open(gate);
    finish(f->stream);
    collect(f);
    assert_int_equal(atomic_load(&released), 1);
    gg_graph_release(graph);
    gg_graph_release(other);
    collect(f);
    assert_int_equal(atomic_load(&other_released), 1);
}

static void an_update_from_other_work_is_refused_and_changes_nothing(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_graph_update);
    gg_memory *memory = zeroed(f);
    gg_graph *graph = filling(f, memory, 1, 1), *other = filling(f, memory, 2, 2);
    assert_int_equal(gg_graph_update(graph, other), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("differ");
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    finish(f->stream);
    assert_filled(f, memory, NBYTES, 1);
    gg_graph_release(graph);
    gg_graph_release(other);
}

/* ---- threads ---- */

struct launches {
    gg_graph *graph, *other;
    gg_stream *stream;
};

static void *launch_often(void *argument)
{
    struct launches *mine = argument;
    for (int i = 0; i < 50; i++)
        if (gg_graph_launch(mine->graph, mine->stream) ||
            (mine->other && gg_graph_update(mine->graph, mine->other)))
            return argument;
    return NULL;
}

static void threads_may_launch_and_update_the_same_graph(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_graph_update);
    gg_memory *memory = zeroed(f);
    gg_graph *graph = filling(f, memory, 3, 1), *other = filling(f, memory, 3, 1);
    struct launches work[] = {
        {graph, NULL, f->stream}, {graph, other, f->second}, {other, graph, new_stream(f)}};
    pthread_t threads[COUNT_OF(work)];
    void *failed;
    for (size_t i = 0; i < COUNT_OF(work); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, &work[i]), 0);
    for (size_t i = 0; i < COUNT_OF(work); i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
        finish(work[i].stream);
    }
    assert_filled(f, memory, NBYTES, 3);
    gg_graph_release(graph);
    gg_graph_release(other);
}

static void *end_there(void *stream)
{
    gg_graph *graph = NULL;
    gg_graph_end_capture(stream, &graph);
    return graph;
}

static void another_thread_may_end_a_capture(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    pthread_t thread;
    void *graph;
    begin(f, f->stream);
    assert_int_equal(fill_bytes(memory, 8, f->stream), GG_OK);
    assert_int_equal(pthread_create(&thread, NULL, end_there, f->stream), 0);
    pthread_join(thread, &graph);
    assert_non_null(graph);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    finish(f->stream);
    assert_filled(f, memory, NBYTES, 8);
    gg_graph_release(graph);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(captured_work_runs_at_each_launch),
    cmocka_unit_test(a_captured_kernel_keeps_its_arguments),
    cmocka_unit_test(a_captured_copy_with_pinned_memory_is_repeated),
    cmocka_unit_test(a_graph_without_work_can_be_launched),
    cmocka_unit_test(a_stream_that_joins_a_capture_is_part_of_the_graph),
    cmocka_unit_test(memory_allocated_in_a_capture_belongs_to_the_graph),
    cmocka_unit_test(a_launch_is_queued_on_its_stream),
    cmocka_unit_test(an_implicit_operation_waits_for_a_launch),
    cmocka_unit_test(a_launch_without_a_stream_waits_for_all_its_memory),
    cmocka_unit_test(a_launch_with_a_stream_waits_for_nothing_else),
    cmocka_unit_test(a_graph_holds_its_memory_until_its_launches_are_done),
    cmocka_unit_test(a_graph_holds_the_owner_of_host_memory),
    cmocka_unit_test(memory_of_a_released_graph_is_reused),
    cmocka_unit_test(a_dropped_capture_runs_nothing_and_holds_nothing),
    cmocka_unit_test(a_capture_with_a_stream_that_was_not_joined_fails_at_its_end),
    cmocka_unit_test(an_invalidated_capture_fails_at_its_end),
    cmocka_unit_test(the_default_stream_cannot_be_captured),
    cmocka_unit_test(the_default_stream_of_a_thread_cannot_be_captured),
    cmocka_unit_test(a_stream_is_captured_once_at_a_time),
    cmocka_unit_test(the_end_of_no_capture_is_refused),
    cmocka_unit_test(a_graph_is_not_launched_into_a_capture),
    cmocka_unit_test(a_capture_does_not_wait_for_unfinished_work_elsewhere),
    cmocka_unit_test(a_device_without_graphs_reports_it),
    cmocka_unit_test(an_updated_graph_does_what_the_other_captured),
    cmocka_unit_test(an_updated_graph_can_update_others),
    cmocka_unit_test(an_update_leaves_launches_in_flight_as_they_are),
    cmocka_unit_test(an_update_keeps_the_owners_of_launches_in_flight),
    cmocka_unit_test(an_update_from_other_work_is_refused_and_changes_nothing),
    cmocka_unit_test(threads_may_launch_and_update_the_same_graph),
    cmocka_unit_test(another_thread_may_end_a_capture),
};
SUITE(graph, tests);
