/* test_capture_waits.c: waits that a capture must not turn into waits for nothing, and that must not invalidate it: for events of
 * the capture, for work outside of it, and in threads that waited before it began. */
#include "graphs.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

/* ---- events of a capture ---- */

/* It only orders the captured work, also after the capture and whatever launches do. */
static void an_event_of_a_capture_is_not_reported_as_done(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    gg_event *event = new_event(f, GG_EVENT_TIMING);
    double elapsed;
    assert_int_equal(gg_event_record(event, f->stream), GG_OK); /* complete, but replaced */
    finish(f->stream);
    begin(f, f->stream);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    gg_graph *graph = end(f->stream);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    assert_int_equal(gg_event_query(event), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("recorded in a capture");
    assert_int_equal(gg_event_wait(event, GG_FOREVER), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_event_poll(event), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_event_elapsed(event, event, &elapsed), GG_ERR_INVALID_ARGUMENT);
    gate_open(gate);
    finish(f->stream);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    assert_int_equal(gg_event_wait(event, GG_FOREVER), GG_OK);
    gg_graph_release(graph);
}

static void a_wait_for_an_event_of_a_capture_that_has_ended_is_refused(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, 0);
    begin(f, f->stream);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    end_valid(f->stream);
    assert_true(gg_stream_wait_event(f->second, event) > GG_NOT_READY);
    assert_message_has("in a capture");
    begin(f, f->second);
    assert_int_equal(gg_stream_wait_event(f->second, event), GG_ERR_INVALID_ARGUMENT);
    end_valid(f->second);
    finish(f->second);
}

static void the_default_stream_does_not_join_a_capture(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, 0);
    gg_stream *stream;
    assert_int_equal(gg_device_default_stream(f->device, &stream), GG_OK);
    begin(f, f->stream);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    assert_int_equal(gg_stream_wait_event(stream, event), GG_ERR_INVALID_ARGUMENT);
    end_valid(f->stream);
}

static void a_query_of_an_event_of_the_capture_leaves_the_capture_valid(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, 0);
    begin(f, f->stream);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    assert_int_equal(gg_event_query(event), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_event_wait(event, GG_FOREVER), GG_ERR_INVALID_ARGUMENT);
    end_valid(f->stream);
}

static void *waits_for_memory(void *memory)
{
    return gg_memory_wait(memory) ? memory : NULL;
}

/* It has not run. A thread that does not capture waits for the work from before. */
static void memory_of_captured_work_is_not_waited_for_in_the_thread_that_captures(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f), *other = zeroed(f);
    pthread_t thread;
    void *failed = memory;
    begin(f, f->stream);
    assert_int_equal(gg_memory_wait(memory), GG_OK);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    assert_int_equal(gg_memory_query(memory), GG_NOT_READY);
    assert_int_equal(gg_memory_wait(memory), GG_ERR_UNSUPPORTED);
    assert_message_has("what is captured does not run yet");
    assert_int_equal(gg_memory_wait(other), GG_OK);
    assert_int_equal(pthread_create(&thread, NULL, waits_for_memory, memory), 0);
    pthread_join(thread, &failed);
    assert_null(failed);
    end_valid(f->stream);
    assert_int_equal(gg_memory_query(memory), GG_OK);
    assert_int_equal(gg_memory_wait(memory), GG_OK);
}

/* ---- work outside of the capture ---- */

static void a_captured_stream_does_not_wait_for_work_outside_and_stays_captured(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    gg_event *event = new_event(f, 0);
    gg_stream *first;
    assert_int_equal(gg_device_default_stream(f->device, &first), GG_OK);
    assert_int_equal(gg_event_record(event, f->second), GG_OK);
    begin(f, f->stream);
    assert_int_equal(gg_stream_wait_event(f->stream, event), GG_ERR_UNSUPPORTED);
    assert_message_has("outside of the capture");
    assert_int_equal(gg_stream_wait_stream(f->stream, f->second), GG_ERR_UNSUPPORTED);
    assert_message_has("outside of the capture");
    assert_int_equal(gg_stream_wait_stream(first, f->stream), GG_ERR_UNSUPPORTED);
    assert_int_equal(fill_bytes(memory, 2, f->stream), GG_OK);
    gg_graph *graph = end(f->stream);
    assert_int_equal(gg_graph_launch(graph, f->stream), GG_OK);
    finish(f->stream);
    assert_filled(f, memory, NBYTES, 2);
    gg_graph_release(graph);
}

/* Some drivers do not say whether others have recorded it elsewhere. */
static void a_shared_event_is_waited_for_in_the_capture_that_recorded_it(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    gg_event *event = new_event(f, 0);
    uint64_t handles[4];
    need(f, GG_OP_event_native);
    assert_int_equal(gg_event_native(event, handles), GG_OK);
    begin(f, f->stream);
    assert_int_equal(gg_stream_wait_stream(f->second, f->stream), GG_OK);
    assert_int_equal(fill_bytes(memory, 3, f->second), GG_OK);
    assert_int_equal(gg_event_record(event, f->second), GG_OK);
    assert_int_equal(gg_stream_wait_event(f->stream, event), GG_OK);
    end_valid(f->stream);
}

static void streams_of_two_captures_do_not_wait_for_each_other(void **state)
{
    struct fixture *f = *state;
    gg_event *event = new_event(f, 0);
    begin(f, f->stream);
    begin(f, f->second);
    assert_int_equal(gg_event_record(event, f->second), GG_OK);
    assert_int_equal(gg_stream_wait_event(f->stream, event), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_stream_wait_stream(f->stream, f->second), GG_ERR_UNSUPPORTED);
    end_valid(f->stream);
    end_valid(f->second);
}

/* Work on the default stream would invalidate the capture of a blocking stream; a poll of that work must not. */
static void a_poll_of_work_on_the_default_stream_leaves_a_blocking_capture_valid(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    gg_stream *blocking = NULL, *first;
    need(f, GG_OP_capture_begin);
    assert_int_equal(gg_device_default_stream(f->device, &first), GG_OK);
    assert_int_equal(gg_stream_create(f->device, 0, 0, &blocking), GG_OK);
    void *gate = hold(f, first);
    assert_int_equal(fill_bytes(memory, 1, first), GG_OK);
    begin(f, blocking);
    assert_int_equal(gg_memory_query(memory), GG_NOT_READY);
    assert_int_equal(gg_stream_query(first), GG_ERR_UNSUPPORTED);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    end_valid(blocking);
    gate_open(gate);
    assert_int_equal(gg_memory_wait(memory), GG_OK);
    gg_stream_release(blocking);
}

/* ---- streams of another device ---- */

static gg_stream *stream_of_another_device(struct fixture *f)
{
    gg_stream *stream = NULL;
    gg_device *device = other_device_of_backend(f);
    need(f, GG_OP_capture_begin);
    assert_int_equal(gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &stream), GG_OK);
    return stream;
}

static void a_stream_of_another_device_that_joined_is_not_queried(void **state)
{
    struct fixture *f = *state;
    gg_stream *joined = stream_of_another_device(f);
    begin(f, f->stream);
    assert_int_equal(gg_stream_wait_stream(joined, f->stream), GG_OK);
    assert_int_equal(gg_stream_query(joined), GG_ERR_UNSUPPORTED);
    assert_int_equal(gg_device_synchronize(gg_stream_device(joined)), GG_ERR_UNSUPPORTED);
    assert_message_has("stream is capturing");
    assert_int_equal(gg_stream_wait_stream(f->stream, joined), GG_OK);
    end_valid(f->stream);
    assert_int_equal(gg_device_synchronize(gg_stream_device(joined)), GG_OK);
    gg_stream_release(joined);
}

static void count_waits(void *user, const struct gg_trace *trace)
{
    if (trace->op == GG_OP_stream_wait_event)
        atomic_fetch_add((atomic_int *)user, 1);
}

static void work_on_another_device_is_ordered_within_a_capture(void **state)
{
    struct fixture *f = *state;
    static atomic_int waits;
    static struct gg_tracer tracer = {
        .struct_size = sizeof tracer, .user = &waits, .post = count_waits};
    gg_stream *one = stream_of_another_device(f), *two = NULL;
    gg_device *device = gg_stream_device(one);
    gg_memory *memory = NULL;
    assert_int_equal(gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &two), GG_OK);
    assert_int_equal(gg_memory_alloc(device, GG_MEMORY_DEVICE, NBYTES, one, &memory), GG_OK);
    assert_int_equal(gg_device_synchronize(device), GG_OK);
    begin(f, f->stream);
    assert_int_equal(gg_stream_wait_stream(one, f->stream), GG_OK);
    assert_int_equal(gg_stream_wait_stream(two, f->stream), GG_OK);
    assert_int_equal(fill_bytes(memory, 1, one), GG_OK);
    assert_int_equal(gg_set_tracer(&tracer), GG_OK);
    const gg_status status = gg_stream_wait_memory(two, memory);
    assert_int_equal(gg_set_tracer(NULL), GG_OK);
    assert_int_equal(gg_stream_wait_stream(f->stream, one), GG_OK);
    assert_int_equal(gg_stream_wait_stream(f->stream, two), GG_OK);
    end_valid(f->stream);
    assert_int_equal(status, GG_OK);
    assert_int_equal(atomic_load(&waits), 1);
    gg_memory_release(memory);
    gg_stream_release(one);
    gg_stream_release(two);
}

/* ---- the users of memory in a capture ---- */

static gg_stream *again(struct fixture *f, gg_stream *stream, atomic_int *owners)
{
    gg_stream *handle = NULL;
    uint64_t handles[4];
    assert_int_equal(gg_stream_native(stream, handles), GG_OK);
    assert_int_equal(gg_stream_borrow(f->device, handles[0], count_release, owners, &handle), GG_OK);
    return handle;
}

/* An operation waits for the other streams of the capture that use its memory: once for each, whatever the number of uses,
 * handles and other captures. */
static void a_stream_waits_once_for_another_of_its_capture(void **state)
{
    struct fixture *f = *state;
    static atomic_int waits, owners;
    static struct gg_tracer tracer = {
        .struct_size = sizeof tracer, .user = &waits, .post = count_waits};
    gg_memory *memory = zeroed(f), *other = zeroed(f);
    gg_stream *third = new_stream(f), *apart = new_stream(f);
    need(f, GG_OP_stream_borrow);
    begin(f, f->stream);
    assert_int_equal(gg_stream_wait_stream(f->second, f->stream), GG_OK);
    assert_int_equal(gg_stream_wait_stream(third, f->stream), GG_OK);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    begin(f, apart); /* a later capture, which uses both too */
    assert_int_equal(fill_bytes(memory, 1, apart), GG_OK);
    assert_int_equal(fill_bytes(other, 1, apart), GG_OK);
    for (int i = 0; i < 20; i++) {
        gg_stream *handle = again(f, third, &owners);
        assert_int_equal(fill_bytes(memory, 1, handle), GG_OK);
        assert_int_equal(fill_bytes(other, 1, handle), GG_OK);
        gg_stream_release(handle);
    }
    assert_int_equal(gg_set_tracer(&tracer), GG_OK);
    const gg_status status = gg_stream_wait_memory(f->second, memory);
    const int for_memory = atomic_exchange(&waits, 0);
    const gg_status again_status = gg_stream_wait_memory(f->second, other);
    assert_int_equal(gg_set_tracer(NULL), GG_OK);
    end_valid(apart);
    assert_int_equal(gg_stream_wait_stream(f->stream, f->second), GG_OK);
    assert_int_equal(gg_stream_wait_stream(f->stream, third), GG_OK);
    end_valid(f->stream);
    assert_int_equal(status, GG_OK);
    assert_int_equal(again_status, GG_OK);
    assert_int_equal(for_memory, 2);
    assert_int_equal(atomic_load(&waits), 1);
}

/* ---- waits that have begun ---- */

static struct {
    gg_stream *stream;
    void *gate;
    gg_status begun, ended;
    int calls;
} hooked;

/* Called in the wait: a capture begins and, some time later, ends. */
static int capture_from_the_hook(void)
{
    if (hooked.calls == 0)
        hooked.begun = gg_graph_begin_capture(hooked.stream);
    if (hooked.calls == 3) {
        hooked.ended = gg_graph_end_capture(hooked.stream, NULL);
        gate_open(hooked.gate);
    }
    hooked.calls++;
    return 0;
}

static void a_wait_for_memory_goes_on_while_its_stream_is_captured(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    need(f, GG_OP_capture_begin);
    hooked.stream = f->stream;
    hooked.gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    gg_set_wait_hook(capture_from_the_hook);
    const gg_status status = gg_memory_wait(memory);
    gg_set_wait_hook(NULL);
    gate_open(hooked.gate);
    assert_int_equal(hooked.begun, GG_OK);
    assert_int_equal(hooked.ended, GG_OK);
    assert_int_equal(status, GG_OK);
    assert_filled(f, memory, NBYTES, 1);
}

static void *wait_for_stream(void *stream)
{
    static gg_status status;
    status = gg_stream_wait(stream, GG_FOREVER);
    return &status;
}

/* A slice of the wait, which takes up to 50 ms, is in progress when the capture begins, or about to begin. */
static void a_wait_for_the_stream_in_another_thread_leaves_its_capture_valid(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = zeroed(f);
    need(f, GG_OP_capture_begin);
    need(f, GG_OP_stream_host_func);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *status, *gate = gate_new();
        assert_int_equal(gg_stream_host_func(f->stream, gate_wait, gate), GG_OK);
        assert_int_equal(pthread_create(&thread, NULL, wait_for_stream, f->stream), 0);
        begin(f, f->stream);
        assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
        gg_graph *graph = NULL;
        const gg_status ended = gg_graph_end_capture(f->stream, &graph);
        gate_open(gate);
        pthread_join(thread, &status);
        assert_int_equal(ended, GG_OK);
        assert_true(*(gg_status *)status == GG_OK || *(gg_status *)status == GG_ERR_UNSUPPORTED);
        gg_graph_release(graph);
        finish(f->stream);
        gate_free(gate);
        collect(f); /* AMD's runtime may wait for a host function when it destroys a stream */
    }
}

/* ---- a capture that fails beside other threads ---- */

struct waiter {
    gg_memory *memory;
    gg_stream *stream;
    pthread_mutex_t calls; /* locked while the thread is in a call */
    atomic_bool stop;
};

/* What makes a capture fail: see invalidate. Streams that wait for f->second, whose handle has been exported, query whether
 * they are captured. */
struct failure {
    gg_event *event;
    gg_stream *joined;
    gg_memory *memory;
};

static struct failure prepare_failure(struct fixture *f)
{
    uint64_t handles[4];
    need(f, GG_OP_event_native);
    need(f, GG_OP_capture_begin);
    const struct failure failure = {new_event(f, 0), new_stream(f), zeroed(f)};
    assert_int_equal(gg_stream_native(f->second, handles), GG_OK);
    assert_int_equal(gg_event_record(failure.event, f->stream), GG_OK);
    return failure;
}

static void *wait_for_memory(void *argument)
{
    struct waiter *waiter = argument;
    while (!atomic_load(&waiter->stop)) {
        pthread_mutex_lock(&waiter->calls);
        gg_stream_wait_memory(waiter->stream, waiter->memory);
        pthread_mutex_unlock(&waiter->calls);
        sched_yield();
    }
    return NULL;
}

static struct {
    atomic_bool ending, waited, overlapped;
    void *gate;
} failing;

static void *wait_for_memory_while_it_ends(void *argument)
{
    struct waiter *waiter = argument;
    while (!atomic_load(&failing.ending))
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    const gg_status status = gg_stream_wait_memory(waiter->stream, waiter->memory);
    atomic_store(&failing.waited, true);
    return status == GG_OK ? waiter : NULL;
}

/* The other thread has 50 ms for what must wait until the capture has ended. Then the work from before the capture goes on:
 * AMD's runtime may wait for it when it destroys a stream. */
static void give_others_time(void *user, const struct gg_trace *trace)
{
    (void)user;
    if (trace->op != GG_OP_capture_end)
        return;
    atomic_store(&failing.ending, true);
    for (int i = 0; i < 50 && !atomic_load(&failing.waited); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_store(&failing.overlapped, atomic_load(&failing.waited));
    gate_open(failing.gate);
}

static void a_stream_is_not_polled_while_its_failed_capture_ends(void **state)
{
    struct fixture *f = *state;
    static const struct gg_tracer tracer = {.struct_size = sizeof tracer, .pre = give_others_time};
    const struct failure failure = prepare_failure(f);
    struct waiter waiter = {.memory = zeroed(f), .stream = new_stream(f)};
    pthread_t thread;
    void *waited;
    gg_stream *stream = new_stream(f);
    assert_int_equal(gg_stream_wait_stream(stream, f->second), GG_OK);
    failing.gate = hold(f, stream);
    assert_int_equal(fill_bytes(waiter.memory, 1, stream), GG_OK);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_memory_while_it_ends, &waiter), 0);
    begin(f, stream);
    invalidate(stream, failure.event, failure.joined, failure.memory);
    assert_int_equal(gg_set_tracer(&tracer), GG_OK);
    const gg_status ended = gg_graph_end_capture(stream, NULL);
    assert_int_equal(gg_set_tracer(NULL), GG_OK);
    pthread_join(thread, &waited);
    assert_int_equal(ended, GG_ERR_UNSUPPORTED);
    assert_non_null(waited);
    assert_false(failing.overlapped);
    finish(stream);
}

static struct {
    pthread_t main;
    atomic_bool waits, left, begins, overlapped;
} queueing;

/* The thread is in the call that makes its stream wait, until the capture's begin is in the driver, or for 50 ms. */
static void stay_in_wait(void *user, const struct gg_trace *trace)
{
    (void)user;
    if (trace->op == GG_OP_capture_begin) {
        atomic_store(&queueing.overlapped, atomic_load(&queueing.waits));
        atomic_store(&queueing.begins, true);
    }
    if (trace->op != GG_OP_stream_wait_event || pthread_equal(pthread_self(), queueing.main))
        return;
    atomic_store(&queueing.waits, true);
    for (int i = 0; i < 50 && !atomic_load(&queueing.begins); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void leave_wait(void *user, const struct gg_trace *trace)
{
    (void)user;
    if (trace->op == GG_OP_stream_wait_event && !pthread_equal(pthread_self(), queueing.main))
        atomic_store(&queueing.waits, false);
}

static void *wait_once_for_memory(void *argument)
{
    struct waiter *waiter = argument;
    const gg_status status = gg_stream_wait_memory(waiter->stream, waiter->memory);
    atomic_store(&queueing.left, true);
    return status ? NULL : waiter;
}

/* The other thread's event was recorded before the capture. HIP would refuse the wait, or read a stream that the end destroys. */
static void a_capture_begins_after_waits_that_began_before_it(void **state)
{
    struct fixture *f = *state;
    static const struct gg_tracer tracer = {
        .struct_size = sizeof tracer, .pre = stay_in_wait, .post = leave_wait};
    struct waiter waiter = {.memory = zeroed(f), .stream = new_stream(f)};
    pthread_t thread;
    void *waited;
    gg_stream *stream = new_stream(f);
    need(f, GG_OP_capture_begin);
    queueing.main = pthread_self();
    void *gate = hold(f, stream);
    assert_int_equal(fill_bytes(waiter.memory, 1, stream), GG_OK);
    assert_int_equal(gg_set_tracer(&tracer), GG_OK);
    assert_int_equal(pthread_create(&thread, NULL, wait_once_for_memory, &waiter), 0);
    while (!atomic_load(&queueing.waits) && !atomic_load(&queueing.left))
        sched_yield();
    begin(f, stream);
    gg_graph *graph = end(stream);
    assert_int_equal(gg_set_tracer(NULL), GG_OK);
    gate_open(gate);
    pthread_join(thread, &waited);
    assert_non_null(waited);
    assert_false(queueing.overlapped);
    finish(stream);
    gg_graph_release(graph);
}

/* A backend may replace the native stream at the end. The stream waits for one whose handle others have, so that the driver
 * is asked whether it is captured. Each stream is destroyed, so that none is while the next gate is closed: AMD's runtime may wait
 * for a host function when it destroys a stream. So the other thread is in no call, which would keep the stream. */
static void other_streams_wait_for_earlier_work_while_a_capture_fails(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_stream_host_func);
    const struct failure failure = prepare_failure(f);
    struct waiter waiter = {
        .memory = zeroed(f), .stream = new_stream(f), .calls = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_memory, &waiter), 0);
    for (int i = 0; i < 300; i++) {
        gg_stream *stream = NULL;
        void *gate = gate_new();
        assert_int_equal(gg_stream_create(f->device, GG_STREAM_NONBLOCKING, 0, &stream), GG_OK);
        assert_int_equal(gg_stream_wait_stream(stream, f->second), GG_OK);
        assert_int_equal(gg_stream_host_func(stream, gate_wait, gate), GG_OK);
        assert_int_equal(fill_bytes(waiter.memory, 1, stream), GG_OK);
        assert_int_equal(gg_graph_begin_capture(stream), GG_OK);
        invalidate(stream, failure.event, failure.joined, failure.memory);
        gate_open(gate);
        assert_int_equal(gg_graph_end_capture(stream, NULL), GG_ERR_UNSUPPORTED);
        finish(stream);
        pthread_mutex_lock(&waiter.calls);
        gg_stream_release(stream);
        gate_free(gate);
        collect(f);
        pthread_mutex_unlock(&waiter.calls);
    }
    atomic_store(&waiter.stop, true);
    pthread_join(thread, NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_event_of_a_capture_is_not_reported_as_done),
    cmocka_unit_test(a_wait_for_an_event_of_a_capture_that_has_ended_is_refused),
    cmocka_unit_test(the_default_stream_does_not_join_a_capture),
    cmocka_unit_test(a_query_of_an_event_of_the_capture_leaves_the_capture_valid),
    cmocka_unit_test(memory_of_captured_work_is_not_waited_for_in_the_thread_that_captures),
    cmocka_unit_test(a_captured_stream_does_not_wait_for_work_outside_and_stays_captured),
    cmocka_unit_test(a_shared_event_is_waited_for_in_the_capture_that_recorded_it),
    cmocka_unit_test(streams_of_two_captures_do_not_wait_for_each_other),
    cmocka_unit_test(a_poll_of_work_on_the_default_stream_leaves_a_blocking_capture_valid),
    cmocka_unit_test(a_stream_of_another_device_that_joined_is_not_queried),
    cmocka_unit_test(work_on_another_device_is_ordered_within_a_capture),
    cmocka_unit_test(a_stream_waits_once_for_another_of_its_capture),
    cmocka_unit_test(a_wait_for_memory_goes_on_while_its_stream_is_captured),
    cmocka_unit_test(a_wait_for_the_stream_in_another_thread_leaves_its_capture_valid),
    cmocka_unit_test(a_stream_is_not_polled_while_its_failed_capture_ends),
    cmocka_unit_test(a_capture_begins_after_waits_that_began_before_it),
    cmocka_unit_test(other_streams_wait_for_earlier_work_while_a_capture_fails),
};
SUITE(capture_waits, tests);
