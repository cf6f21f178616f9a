/* test_borrowed.c: streams and events that others know too: by their native handles, or from other
 * threads. What they queue counts where all of a stream is meant. */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NBYTES 4096u
#define FEEDS 4000u

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

static void all_that_a_borrowed_stream_has_is_waited_for_whoever_queued_it(void **state)
{
    struct fixture *f = *state;
    gg_stream *borrowed = borrow(f, f->stream);
    gg_memory *memory = new_memory(f, NBYTES);
    void *gate;
    assert_int_equal(fill_bytes(memory, 1, borrowed), GG_OK); /* gpuglue has marked it once */
    finish(borrowed);
    gate = hold(f, f->stream); /* the work of somebody else */
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
        skip(); /* 2 means nothing to this backend */
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

static void work_on_a_per_thread_stream_is_waited_for_in_another_thread(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 64);
    gg_stream *stream = NULL;
    void *problem = "";
    pthread_t thread;
    need(f, GG_OP_stream_borrow);
    if (gg_stream_borrow(f->device, 2, NULL, NULL, &stream))
        skip();
    f->streams[f->stream_count++] = stream;
    opened_by_hook = hold(f, stream);
    assert_int_equal(fill_bytes(memory, 3, stream), GG_OK);
    gg_set_wait_hook(open_the_gate); /* called by who waits, and by nobody else */
    assert_int_equal(pthread_create(&thread, NULL, wait_for_memory, memory), 0);
    pthread_join(thread, &problem);
    assert_null(problem);
    assert_false(busy(stream));
}

/* ---- a stream that is fed meanwhile ---- */

struct feeder {
    gg_stream *stream;
    void *gates[FEEDS + 1];
    atomic_int stop, failures;
    atomic_uint fed;
};

/* The stream is never without work: each gate is opened when the next one stands behind it. */
static void *feed(void *argument)
{
    struct feeder *feeder = argument;
    unsigned i = 0;
    for (; i < FEEDS && !atomic_load(&feeder->stop); i++) {
        feeder->gates[i + 1] = gate_new();
        if (gg_stream_host_func(feeder->stream, gate_wait, feeder->gates[i + 1]))
            atomic_fetch_add(&feeder->failures, 1);
        gate_open(feeder->gates[i]);
        atomic_store(&feeder->fed, i + 1);
        usleep(500);
    }
    gate_open(feeder->gates[i]);
    return NULL;
}

static void work_that_is_queued_after_a_wait_began_is_not_waited_for(void **state)
{
    struct fixture *f = *state;
    struct feeder *feeder = calloc(1, sizeof *feeder);
    unsigned fed;
    pthread_t thread;
    need(f, GG_OP_stream_host_func);
    assert_non_null(feeder);
    feeder->stream = f->stream;
    feeder->gates[0] = gate_new();
    assert_int_equal(gg_stream_host_func(f->stream, gate_wait, feeder->gates[0]), GG_OK);
    assert_int_equal(pthread_create(&thread, NULL, feed, feeder), 0);
    finish(f->stream);
    fed = atomic_load(&feeder->fed);
    atomic_store(&feeder->stop, 1);
    pthread_join(thread, NULL);
    finish(f->stream);
    for (unsigned i = 0; i <= FEEDS && feeder->gates[i]; i++)
        gate_free(feeder->gates[i]);
    assert_int_equal(atomic_load(&feeder->failures), 0);
    free(feeder);
    assert_true(fed < FEEDS);
}

/* ---- the handle of an event ---- */

static uint64_t handle_of(gg_event *event)
{
    uint64_t handles[4] = {0};
    assert_int_equal(gg_event_native(event, handles), GG_OK);
    return handles[0];
}

static void a_released_event_is_not_reused_while_its_stream_has_not_passed_it(void **state)
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

int main(int argc, char **argv)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_a_borrowed_stream_has_is_waited_for_whoever_queued_it),
        cmocka_unit_test(the_per_thread_stream_is_refused_in_another_thread),
        cmocka_unit_test(work_on_a_per_thread_stream_is_waited_for_in_another_thread),
        cmocka_unit_test(work_that_is_queued_after_a_wait_began_is_not_waited_for),
        cmocka_unit_test(a_released_event_is_not_reused_while_its_stream_has_not_passed_it),
    };
    return run_suite(argc, argv, "borrowed", tests, sizeof tests / sizeof tests[0]);
}
