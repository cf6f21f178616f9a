/* test_borrowed.c: streams and events with other users: through native handles, or from other
 * threads. Their work counts if a call waits for a whole stream. */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NBYTES 4096u

static gg_stream *borrow(struct fixture *f, gg_stream *stream)
{
    uint64_t handles[4] = {0};
    gg_stream *borrowed = NULL;
    need(f, GG_OP_stream_native);
    need(f, GG_OP_stream_borrow);
    assert_int_equal(gg_stream_native(stream, handles), GG_OK);
    assert_int_equal(gg_stream_borrow(f->device, handles[0], NULL, NULL, &borrowed), GG_OK);
    assert_true(f->stream_count < OWNED_ROOM);
    return f->streams[f->stream_count++] = borrowed;
}

static void a_wait_covers_all_work_of_a_borrowed_stream(void **state)
{
    struct fixture *f = *state;
    gg_stream *borrowed = borrow(f, f->stream);
    gg_memory *memory = new_memory(f, NBYTES);
    void *gate;
    assert_int_equal(fill_bytes(memory, 1, borrowed),
                     GG_OK); /* gpuglue has recorded an event there once */
    finish(borrowed);
    gate = hold(f, f->stream); /* work that gpuglue did not queue */
    assert_int_equal(gg_stream_wait_stream(f->second, borrowed), GG_OK);
    assert_int_equal(gg_stream_wait(f->second, 2000000), GG_NOT_READY);
    gate_open(gate);
    finish(f->second);
}

/* ---- the default stream of a thread ---- */

struct foreign {
    struct fixture *f;
    gg_stream *stream;
    gg_memory *memory;
    gg_event *event;
};

static void ignore(void *argument)
{
    (void)argument;
}

static void *use_in_another_thread(void *argument)
{
    const struct foreign *foreign = argument;
    const gg_status statuses[] = {
        gg_stream_query(foreign->stream),
        gg_stream_wait(foreign->stream, 0),
        gg_stream_host_func(foreign->stream, ignore, NULL),
        gg_stream_wait_event(foreign->stream, foreign->event),
        gg_stream_wait_stream(foreign->stream, foreign->f->second),
        gg_stream_wait_stream(foreign->f->second, foreign->stream),
        gg_event_record(foreign->event, foreign->stream),
        gg_memory_record_use(foreign->memory, foreign->stream),
        fill_bytes(foreign->memory, 1, foreign->stream),
        copy(at(foreign->memory, 0), host_at("x"), 1, foreign->stream, 0),
    };
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (statuses[i] != GG_ERR_INVALID_ARGUMENT)
            return "a call took it";
    return NULL;
}

static void the_per_thread_stream_is_refused_in_another_thread(void **state)
{
    struct fixture *f = *state;
    struct foreign foreign = {f, NULL, new_memory(f, 64), new_event(f, 0)};
    void *problem = "";
    pthread_t thread;
    need(f, GG_OP_stream_borrow);
    if (gg_stream_borrow(f->device, 2, NULL, NULL, &foreign.stream))
        skip_because("this backend has no per-thread default stream");
    f->streams[f->stream_count++] = foreign.stream;
    assert_int_equal(fill_bytes(foreign.memory, 3, foreign.stream), GG_OK);
    assert_int_equal(pthread_create(&thread, NULL, use_in_another_thread, &foreign), 0);
    pthread_join(thread, &problem);
    assert_null(problem);
    finish(foreign.stream);
    assert_filled(f, foreign.memory, 64, 3);
}

static void *wait_for_memory(void *memory)
{
    return gg_memory_wait(memory) ? "the wait failed" : NULL;
}

static void *opened_by_hook;

static int open_the_gate(void)
{
    gate_open(opened_by_hook);
    return 0;
}

static void another_thread_waits_for_work_on_a_per_thread_stream(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 64);
    gg_stream *stream = NULL;
    void *problem = "";
    pthread_t thread;
    need(f, GG_OP_stream_borrow);
    if (gg_stream_borrow(f->device, 2, NULL, NULL, &stream))
        skip_because("this backend has no per-thread default stream");
    f->streams[f->stream_count++] = stream;
    opened_by_hook = hold(f, stream);
    assert_int_equal(fill_bytes(memory, 3, stream), GG_OK);
    gg_set_wait_hook(open_the_gate); /* called by the waiting thread only */
    assert_int_equal(pthread_create(&thread, NULL, wait_for_memory, memory), 0);
    pthread_join(thread, &problem);
    assert_null(problem);
    assert_false(busy(stream));
}

/* ---- a stream that continuously gets new work ---- */

struct feeder {
    gg_stream *stream;
    void *gate; /* the last one on the stream */
    atomic_int stop, failures;
};

/* Add one more gate after the last one, then open the last one. */
static void feed_one(struct feeder *feeder)
{
    void *next = gate_new(), *last = feeder->gate;
    if (gg_stream_host_func(feeder->stream, gate_wait, next)) {
        atomic_fetch_add(&feeder->failures, 1);
        atomic_store(&feeder->stop, 1);
        gate_free(next);
        return;
    }
    feeder->gate = next;
    gate_open(last);
    while (!gate_reached(next))
        usleep(100);
    gate_free(last);
}

/* The stream is never without work. */
static void *feed(void *argument)
{
    struct feeder *feeder = argument;
    const uint64_t ends_at = now_ns() + HANG_NS;
    while (!atomic_load(&feeder->stop) && now_ns() < ends_at)
        feed_one(feeder);
    gate_open(feeder->gate);
    return NULL;
}

static void a_wait_ignores_work_that_is_queued_after_it_began(void **state)
{
    struct fixture *f = *state;
    struct feeder feeder = {.stream = f->stream};
    const uint64_t began = now_ns();
    bool stopped;
    pthread_t thread;
    need(f, GG_OP_stream_host_func);
    feeder.gate = gate_new();
    assert_int_equal(gg_stream_host_func(f->stream, gate_wait, feeder.gate), GG_OK);
    assert_int_equal(pthread_create(&thread, NULL, feed, &feeder), 0);
    finish(f->stream);
    stopped = now_ns() < began + HANG_NS;
    atomic_store(&feeder.stop, 1);
    pthread_join(thread, NULL);
    finish(f->stream);
    gate_free(feeder.gate);
    assert_int_equal(atomic_load(&feeder.failures), 0);
    assert_true(stopped); /* by the end of the wait, not by the end of the feeding */
}

/* ---- the handle of an event ---- */

static uint64_t handle_of(gg_event *event)
{
    uint64_t handles[4] = {0};
    assert_int_equal(gg_event_native(event, handles), GG_OK);
    return handles[0];
}

static void a_released_event_is_not_reused_before_its_stream_has_passed_it(void **state)
{
    struct fixture *f = *state;
    const uint32_t flags[] = {0, GG_EVENT_TIMING};
    void *gate = hold(f, f->stream);
    need(f, GG_OP_event_native);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        gg_event *event = NULL;
        uint64_t handle;
        assert_int_equal(gg_event_create(f->device, flags[i], &event), GG_OK);
        handle = handle_of(event);
        assert_int_equal(gg_event_record(event, f->stream), GG_OK);
        gg_event_release(event);
        assert_int_equal(gg_device_trim(f->device), GG_OK);
        for (int n = 0; n < OWNED_ROOM / 2; n++)
            assert_true(handle_of(new_event(f, flags[i])) != handle);
    }
    gate_open(gate);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_wait_covers_all_work_of_a_borrowed_stream),
    cmocka_unit_test(the_per_thread_stream_is_refused_in_another_thread),
    cmocka_unit_test(another_thread_waits_for_work_on_a_per_thread_stream),
    cmocka_unit_test(a_wait_ignores_work_that_is_queued_after_it_began),
    cmocka_unit_test(a_released_event_is_not_reused_before_its_stream_has_passed_it),
};
SUITE(borrowed, tests);
