/* test_capture.c: captures that gpuglue begins, beside other work: of before the capture, of other threads, of streams that
 * have several handles. */
#include "graphs.h"

#include <pthread.h>

/* Only a stream that should not be busy depends on the time. */
static bool stays_busy(gg_stream *stream)
{
    return gg_stream_wait(stream, 50000000) == GG_NOT_READY;
}

/* ---- work from before the capture ---- */

/* Work on the stream that begins at gate_open, and then a capture of the stream. */
static void *begin_behind_work(struct fixture *f, gg_memory *memory)
{
    need(f, GG_OP_capture_begin);
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    begin(f, f->stream);
    return gate;
}

static void work_elsewhere_waits_for_work_from_before_a_capture(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f), *pinned = new_pinned(f, NBYTES, 0);
    gg_scope *scope;
    void *gate = begin_behind_work(f, memory);
    assert_int_equal(gg_scope_enter(f->device, f->second, &scope), GG_OK);
    assert_int_equal(copy(at(pinned, 0), at(memory, 0), NBYTES, NULL, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    assert_true(busy(f->second)); /* it runs, and is not captured */
    end_valid(f->stream);
    gate_open(gate);
    finish(f->second);
    assert_int_equal(((unsigned char *)gg_memory_pointer(pinned))[NBYTES - 1], 1);
}

/* A poll has recorded its event behind the first part of the work. */
static void work_elsewhere_waits_for_all_work_from_before_a_capture(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f), *pinned = new_pinned(f, NBYTES, 0);
    gg_scope *scope;
    need(f, GG_OP_capture_begin);
    void *first = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    assert_int_equal(gg_memory_query(memory), GG_NOT_READY);
    void *gate = begin_behind_work(f, memory);
    assert_int_equal(gg_scope_enter(f->device, f->second, &scope), GG_OK);
    assert_int_equal(copy(at(pinned, 0), at(memory, 0), NBYTES, NULL, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    gate_open(first);
    assert_true(stays_busy(f->second));
    end_valid(f->stream);
    gate_open(gate);
    finish(f->second);
    assert_int_equal(((unsigned char *)gg_memory_pointer(pinned))[NBYTES - 1], 1);
}

static void the_default_stream_waits_for_work_from_before_a_capture(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f), *pinned = new_pinned(f, NBYTES, 0);
    struct gg_device_info info = {.struct_size = sizeof info};
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    const bool returns_early = info.flags & GG_DEVICE_SHARED_DEFAULT; /* else with the work done */
    void *gate = begin_behind_work(f, memory);
    if (!returns_early)
        gate_open(gate);
    assert_int_equal(copy(at(pinned, 0), at(memory, 0), NBYTES, NULL, GG_COPY_ASYNC), GG_OK);
    end_valid(f->stream);
    if (returns_early)
        gate_open(gate);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(((unsigned char *)gg_memory_pointer(pinned))[NBYTES - 1], 1);
}

static void memory_can_be_waited_for_while_its_stream_is_captured(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    void *gate = begin_behind_work(f, memory);
    assert_int_equal(gg_memory_query(memory), GG_NOT_READY);
    gate_open(gate);
    assert_int_equal(gg_memory_wait(memory), GG_OK);
    assert_int_equal(gg_memory_query(memory), GG_OK);
    end_valid(f->stream);
}

static void a_completion_stream_of_earlier_work_is_not_captured(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    gg_stream *completion = NULL;
    void *gate = begin_behind_work(f, memory);
    assert_int_equal(gg_memory_completion_stream(memory, 0, &completion), GG_OK);
    assert_ptr_not_equal(completion, f->stream);
    assert_true(busy(completion));
    end_valid(f->stream);
    gate_open(gate);
    finish(completion);
    gg_stream_release(completion);
}

/* The driver would make an allocation from its own pool a part of the graph. The second stream has joined the capture. */
static void need_allocation_in_a_capture(struct fixture *f, gg_status status)
{
    if (!uses_drivers_pool())
        return;
    assert_int_equal(status, GG_ERR_UNSUPPORTED);
    assert_message_has("memory that the driver allocates there would belong to the graph");
    assert_int_equal(gg_stream_wait_stream(f->stream, f->second), GG_OK);
    gg_graph_release(end(f->stream)); /* the refused allocation has left the capture valid */
    skip_because("memory of the driver's own pool cannot be allocated in a capture");
}

/* A block that is allocated in the capture while earlier work still writes to it. */
static void a_launch_waits_for_work_from_before_the_allocation_of_its_memory(void **state)
{
    struct fixture *f = *state;
    gg_memory *old, *memory;
    need(f, GG_OP_capture_begin);
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, NBYTES, f->stream, &old), GG_OK);
    finish(f->stream);
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(old, 1, f->stream), GG_OK);
    const void *pointer = gg_memory_pointer(old);
    gg_memory_release(old);
    begin(f, f->stream);
    assert_int_equal(gg_stream_wait_stream(f->second, f->stream), GG_OK);
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, NBYTES, f->stream, &memory);
    need_allocation_in_a_capture(f, status);
    assert_int_equal(status, GG_OK);
    const bool same = gg_memory_pointer(memory) == pointer;
    status = fill_bytes(memory, 2, f->second);
    assert_int_equal(gg_stream_wait_stream(f->stream, f->second), GG_OK);
    gg_graph *graph = end(f->stream);
    if (!status)
        status = gg_graph_launch(graph, f->second);
    const bool waits = status || stays_busy(f->second);
    gate_open(gate);
    finish(f->second);
    gg_memory_release(memory);
    gg_graph_release(graph);
    if (!same)
        skip_because("the allocator did not reuse the block");
    assert_int_equal(status, GG_OK);
    assert_true(waits);
}

/* ---- several handles of one stream ---- */

static gg_stream *borrowed(struct fixture *f, gg_stream *stream, atomic_int *owner)
{
    gg_stream *again = NULL;
    uint64_t handles[4];
    need(f, GG_OP_stream_borrow);
    assert_int_equal(gg_stream_native(stream, handles), GG_OK);
    assert_int_equal(gg_stream_borrow(f->device, handles[0], count_release, owner, &again), GG_OK);
    return again;
}

static void work_by_another_handle_of_the_captured_stream_belongs_to_the_graph(void **state)
{
    struct fixture *f = *state;
    static atomic_int released, owners;
    gg_memory *memory = zeroed(f), *view = counted(f, memory, &released);
    need(f, GG_OP_capture_begin);
    gg_stream *again = borrowed(f, f->stream, &owners);
    begin(f, f->stream);
    assert_int_equal(fill_bytes(view, 2, again), GG_OK);
    gg_graph *graph = end(f->stream);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    assert_int_equal(gg_memory_query(view), GG_NOT_READY);
    gate_open(gate);
    finish(f->stream);
    assert_int_equal(gg_memory_query(view), GG_OK);
    gg_memory_release(view);
    collect(f);
    assert_int_equal(atomic_load(&released), 0);
    gg_graph_release(graph);
    collect(f);
    assert_int_equal(atomic_load(&released), 1);
    gg_stream_release(again);
}

static void a_captured_stream_keeps_its_capture_when_it_joins_another_handle(void **state)
{
    struct fixture *f = *state;
    static atomic_int released, owners; /* streams are destroyed when the fixture ends */
    gg_memory *memory = zeroed(f), *view = counted(f, memory, &released);
    need(f, GG_OP_capture_begin);
    gg_stream *one = borrowed(f, f->second, &owners), *two = borrowed(f, f->second, &owners);
    begin(f, f->stream);
    assert_int_equal(gg_stream_wait_stream(one, f->stream), GG_OK);
    assert_int_equal(gg_stream_wait_stream(f->stream, two), GG_OK);
    assert_int_equal(fill_bytes(view, 2, f->stream), GG_OK);
    gg_graph *graph = end(f->stream);
    gg_memory_release(view);
    collect(f);
    assert_int_equal(atomic_load(&released), 0);
    gg_graph_release(graph);
    collect(f);
    assert_int_equal(atomic_load(&released), 1);
    gg_stream_release(one);
    gg_stream_release(two);
}

/* ---- other threads ---- */

struct poller {
    gg_memory *memory;
    atomic_bool stop;
};

static void *poll_memory(void *argument)
{
    struct poller *poller = argument;
    while (!atomic_load(&poller->stop))
        gg_memory_query(poller->memory);
    return NULL;
}

static void polls_of_another_thread_do_not_invalidate_a_capture(void **state)
{
    struct fixture *f = *state;
    struct poller poller = {.memory = zeroed(f)};
    gg_memory *memory = zeroed(f);
    pthread_t thread;
    need(f, GG_OP_capture_begin);
    need(f, GG_OP_stream_host_func);
    assert_int_equal(pthread_create(&thread, NULL, poll_memory, &poller), 0);
    bool valid = true;
    for (int i = 0; i < 50 && valid; i++) {
        gg_graph *graph = NULL;
        void *gate = gate_new();
        gg_stream *stream = NULL;
        assert_int_equal(gg_stream_create(f->device, GG_STREAM_NONBLOCKING, 0, &stream), GG_OK);
        assert_int_equal(gg_stream_host_func(stream, gate_wait, gate), GG_OK);
        valid = !fill_bytes(poller.memory, 1, stream) && !gg_graph_begin_capture(stream);
        valid = valid && !fill_bytes(memory, 1, stream);
        valid = !gg_graph_end_capture(stream, &graph) && valid;
        gate_open(gate);
        finish(stream);
        gg_graph_release(graph);
        gg_stream_release(stream);
        gate_free(gate);
        collect(
            f); /* AMD's runtime may wait for a host function of another stream when it destroys one */
    }
    atomic_store(&poller.stop, true);
    pthread_join(thread, NULL);
    assert_true(valid);
}

/* ---- launches on several streams ---- */

static void launches_of_a_graph_on_two_streams_do_not_overlap(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    gg_graph *graph = filling(f, memory, 2, 1);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    assert_int_equal(gg_graph_launch(graph, f->second), GG_OK);
    assert_true(stays_busy(f->second));
    gate_open(gate);
    finish(f->second);
    assert_filled(f, memory, NBYTES, 2);
    gg_graph_release(graph);
}

/* ---- streams that cannot be replaced ---- */

static void an_error_names_a_stream_that_the_driver_leaves_captured(void **state)
{
    struct fixture *f = *state;
    uint64_t handles[4];
    need(f, GG_OP_capture_begin);
    need(f, GG_OP_event_native);
    gg_event *event = new_event(f, 0);
    gg_stream *joined = new_stream(f);
    gg_memory *memory = zeroed(f);
    assert_int_equal(gg_event_record(event, f->second), GG_OK);
    assert_int_equal(gg_stream_native(f->stream, handles), GG_OK); /* other code may have it */
    begin(f, f->stream);
    invalidate(f->stream, event, joined, memory);
    assert_int_equal(gg_graph_end_capture(f->stream, NULL), GG_ERR_UNSUPPORTED);
    const bool named = strstr(last_error().message, "create another stream");
    assert_int_equal(named, gg_stream_query(f->stream) != GG_OK);
}

/* ---- updates that the driver refuses ---- */

static void a_refused_update_changes_no_part_of_the_graph(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_graph_update);
    gg_memory *one = zeroed(f), *two = zeroed(f), *three = zeroed(f);
    begin(f, f->stream);
    assert_int_equal(fill_bytes(one, 1, f->stream), GG_OK);
    assert_int_equal(fill_bytes(two, 1, f->stream), GG_OK);
    gg_graph *graph = end(f->stream);
    begin(f, f->stream);
    assert_int_equal(fill_bytes(three, 2, f->stream), GG_OK);
    assert_int_equal(copy(at(two, 0), at(one, 0), NBYTES, f->stream, 0), GG_OK);
    gg_graph *other = end(f->stream);
    assert_int_equal(gg_graph_update(graph, other), GG_ERR_INVALID_ARGUMENT);
    gg_graph_release(other);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    finish(f->stream);
    assert_filled(f, three, NBYTES, 0);
    assert_filled(f, one, NBYTES, 1);
    assert_filled(f, two, NBYTES, 1);
    gg_graph_release(graph);
}

/* ---- calls that would invalidate the capture ---- */

static void a_query_of_the_captured_stream_is_refused_and_leaves_the_capture_valid(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    begin(f, f->stream);
    assert_int_equal(fill_bytes(memory, 3, f->stream), GG_OK);
    assert_int_equal(gg_stream_query(f->stream), GG_ERR_UNSUPPORTED);
    assert_message_has("stream is capturing");
    assert_int_equal(gg_stream_wait(f->stream, GG_FOREVER), GG_ERR_UNSUPPORTED);
    assert_int_equal(gg_device_synchronize(f->device), GG_ERR_UNSUPPORTED);
    assert_message_has("stream is capturing");
    gg_graph *graph = end(f->stream);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    finish(f->stream);
    assert_filled(f, memory, NBYTES, 3);
    gg_graph_release(graph);
}

static void a_query_of_a_stream_that_joined_leaves_the_capture_valid(void **state)
{
    struct fixture *f = *state;
    begin(f, f->stream);
    assert_int_equal(gg_stream_wait_stream(f->second, f->stream), GG_OK);
    assert_int_equal(gg_stream_query(f->second), GG_ERR_UNSUPPORTED);
    assert_int_equal(gg_stream_wait_stream(f->stream, f->second), GG_OK);
    end_valid(f->stream);
    assert_int_equal(gg_stream_query(f->second), GG_OK);
}

/* ---- work that a driver would run at once, or that would invalidate the capture ---- */

static void a_prefetch_is_captured_or_refused(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL;
    need(f, GG_OP_capture_begin);
    need(f, GG_OP_mem_prefetch);
    if (gg_memory_alloc(f->device, GG_MEMORY_MANAGED, NBYTES, NULL, &memory))
        skip_because("the device has no managed memory");
    begin(f, f->stream);
    const gg_status status = gg_memory_prefetch(memory, 0, f->stream);
    if (status)
        assert_message_has("stream is capturing");
    end_valid(f->stream);
    gg_memory_release(memory);
    assert_true(!status || status == GG_ERR_UNSUPPORTED);
}

static void count_call(void *calls)
{
    atomic_fetch_add((atomic_int *)calls, 1);
}

static void a_host_function_is_captured_or_refused(void **state)
{
    struct fixture *f = *state;
    atomic_int calls = 0;
    need(f, GG_OP_capture_begin);
    need(f, GG_OP_stream_host_func);
    begin(f, f->stream);
    const gg_status status = gg_stream_host_func(f->stream, count_call, &calls);
    if (status)
        assert_message_has("stream is capturing");
    gg_graph *graph = end(f->stream);
    finish(f->stream);
    assert_int_equal(atomic_load(&calls), 0); /* it did not run */
    assert_true(!status || status == GG_ERR_UNSUPPORTED);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    finish(f->stream);
    assert_int_equal(atomic_load(&calls), !status);
    gg_graph_release(graph);
}

static void a_cooperative_launch_is_captured_or_refused(void **state)
{
    struct fixture *f = *state;
    struct scaling scaling;
    need(f, GG_OP_capture_begin);
    gg_kernel *kernel = kernel_of(f, "scale");
    make_scaling(f, &scaling);
    scaling.call.launch.flags = GG_LAUNCH_COOPERATIVE;
    finish(f->stream);
    begin(f, f->stream);
    const gg_status status = gg_kernel_launch(kernel, &scaling.call.launch, f->stream);
    gg_graph *graph = end(f->stream);
    gg_kernel_release(kernel);
    finish(f->stream);
    assert_floats(f, scaling.memory, 3); /* it did not run */
    assert_true(!status || status == GG_ERR_UNSUPPORTED);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    finish(f->stream);
    assert_floats(f, scaling.memory, status ? 3 : 6);
    gg_graph_release(graph);
}

/* ---- order within a capture ---- */

static void count_waits(void *user, const struct gg_trace *trace)
{
    if (trace->op == GG_OP_stream_wait_event)
        atomic_fetch_add((atomic_int *)user, 1);
}

static void an_implicit_operation_follows_work_on_another_stream_of_its_capture(void **state)
{
    struct fixture *f = *state;
    static atomic_int waits;
    static struct gg_tracer tracer = {
        .struct_size = sizeof tracer, .user = &waits, .post = count_waits};
    gg_memory *memory = zeroed(f), *other = zeroed(f);
    gg_scope *scope;
    begin(f, f->stream);
    assert_int_equal(gg_stream_wait_stream(f->second, f->stream), GG_OK);
    assert_int_equal(fill_bytes(memory, 2, f->stream), GG_OK);
    assert_int_equal(gg_scope_enter(f->device, f->second, &scope), GG_OK);
    assert_int_equal(gg_set_tracer(&tracer), GG_OK);
    const gg_status status = copy(at(other, 0), at(memory, 0), NBYTES, NULL, GG_COPY_ASYNC);
    assert_int_equal(gg_set_tracer(NULL), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    assert_int_equal(gg_stream_wait_stream(f->stream, f->second), GG_OK);
    gg_graph *graph = end(f->stream);
    assert_int_equal(status, GG_OK);
    assert_int_equal(atomic_load(&waits), 1);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    finish(f->stream);
    assert_filled(f, other, NBYTES, 2);
    gg_graph_release(graph);
}

/* ---- the driver's own pool ---- */

struct frees {
    int done, failed;
};

static void count_frees(void *user, const struct gg_trace *trace)
{
    struct frees *frees = user;
    if (trace->op == GG_OP_mem_free_async)
        *(trace->status ? &frees->failed : &frees->done) += 1;
}

/* Memory that is released while the stream that it was allocated on is captured. */
static int free_async_in_a_capture(void)
{
    static struct frees frees;
    static struct gg_tracer tracer = {
        .struct_size = sizeof tracer, .user = &frees, .post = count_frees};
    gg_device *device;
    gg_stream *stream;
    gg_memory *memory;
    if (gg_device_get(NULL, 0, &device) || !gg_device_supports(device, GG_OP_mem_alloc_async))
        return scenario_without(GG_OP_mem_alloc_async);
    if (!gg_device_supports(device, GG_OP_capture_begin))
        return scenario_without(GG_OP_capture_begin);
    if (gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &stream) ||
        gg_memory_alloc(device, GG_MEMORY_DEVICE, MANY_BYTES, stream, &memory) ||
        gg_device_synchronize(device) || gg_set_tracer(&tracer) || gg_graph_begin_capture(stream))
        return 2;
    gg_memory_release(memory);
    if (gg_device_trim(device))
        return 3;
    if (frees.done || frees.failed)
        return printf("%d frees in the capture, %d failed\n", frees.done, frees.failed), 4;
    if (gg_graph_end_capture(stream, NULL) || gg_device_synchronize(device) ||
        gg_device_trim(device))
        return 5;
    gg_stream_release(stream);
    return frees.done == 1 && !frees.failed ? 0 : 6;
}

static void async_memory_is_freed_after_the_capture_of_its_stream(void **state)
{
    char output[512];
    (void)state;
    const int result = start_scenario("free_async_in_a_capture", "GPUGLUE_ALLOCATOR", "async",
                                      output, sizeof output);
    assert_string_equal(output, "");
    assert_int_equal(result, 0);
}

static const struct scenario scenarios[] = {
    {"free_async_in_a_capture", free_async_in_a_capture},
};

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(work_elsewhere_waits_for_work_from_before_a_capture),
    cmocka_unit_test(work_elsewhere_waits_for_all_work_from_before_a_capture),
    cmocka_unit_test(the_default_stream_waits_for_work_from_before_a_capture),
    cmocka_unit_test(memory_can_be_waited_for_while_its_stream_is_captured),
    cmocka_unit_test(a_completion_stream_of_earlier_work_is_not_captured),
    cmocka_unit_test(a_launch_waits_for_work_from_before_the_allocation_of_its_memory),
    cmocka_unit_test(work_by_another_handle_of_the_captured_stream_belongs_to_the_graph),
    cmocka_unit_test(a_captured_stream_keeps_its_capture_when_it_joins_another_handle),
    cmocka_unit_test(polls_of_another_thread_do_not_invalidate_a_capture),
    cmocka_unit_test(launches_of_a_graph_on_two_streams_do_not_overlap),
    cmocka_unit_test(an_error_names_a_stream_that_the_driver_leaves_captured),
    cmocka_unit_test(a_refused_update_changes_no_part_of_the_graph),
    cmocka_unit_test(a_query_of_the_captured_stream_is_refused_and_leaves_the_capture_valid),
    cmocka_unit_test(a_query_of_a_stream_that_joined_leaves_the_capture_valid),
    cmocka_unit_test(a_prefetch_is_captured_or_refused),
    cmocka_unit_test(a_host_function_is_captured_or_refused),
    cmocka_unit_test(a_cooperative_launch_is_captured_or_refused),
    cmocka_unit_test(an_implicit_operation_follows_work_on_another_stream_of_its_capture),
    cmocka_unit_test(async_memory_is_freed_after_the_capture_of_its_stream),
};
SUITE_AND_SCENARIOS(capture, tests, scenarios);
