/* test_ended.c: work that ends without a result, while other threads queue work behind it. */
#include "inside.h"

#include "../support/gate.h"
#include "runtime/stream.h"

#include <gpuglue/event.h>
#include <gpuglue/stream.h>

#include <pthread.h>

#define WATCHER UINT64_C(4)

static gg_device *device;
static gg_stream *behind, *later; /* later was created last, and so is passed first */
static gg_event *event;           /* of behind */
static void *gate;

/* What another thread does at one point of the watcher's pass over the streams. */
static void (*at_query)(void), (*at_error)(void);

static void *run_step(void *step)
{
    void (*function)(void) = *(void (**)(void))step;
    function();
    return NULL;
}

/* The watcher's thread neither reports errors nor may it wait for itself. */
static void run_once(void (**step)(void))
{
    void (*function)(void) = *step;
    pthread_t thread;
    *step = NULL;
    if (!function)
        return;
    CHECK(pthread_create(&thread, NULL, run_step, &function) == 0);
    pthread_join(thread, NULL);
}

static gg_status (*query)(struct gg_stream_impl *stream);
static gg_status query_after_step(struct gg_stream_impl *stream)
{
    if (stream == behind->impl)
        run_once(&at_query);
    return query(stream);
}

/* Linked instead of the core's, which is __real_…: --wrap. */
void __real_ggi_stream_keep_error(gg_stream *stream, const struct ggi_kept_error *error);
void __wrap_ggi_stream_keep_error(gg_stream *stream, const struct ggi_kept_error *error);
void __wrap_ggi_stream_keep_error(gg_stream *stream, const struct ggi_kept_error *error)
{
    if (stream == behind)
        run_once(&at_error);
    __real_ggi_stream_keep_error(stream, error);
}

/* A stream whose work does not end before the gate opens, and which a watcher has. */
static void start(void)
{
    CHECK(gg_device_get("host", 0, &device) == GG_OK);
    CHECK(gg_stream_create(device, 0, 0, &behind) == GG_OK);
    CHECK(gg_stream_create(device, 0, 0, &later) == GG_OK);
    CHECK(gg_event_create(device, 0, &event) == GG_OK);
    gate = gate_new();
    CHECK(gg_stream_host_func(behind, gate_wait, gate) == GG_OK);
    ggi_stream_watch(behind, WATCHER, atomic_load(&behind->submitted));
    CHECK(gg_event_record(event, behind) == GG_OK);
    query = device->ops->stream_query;
    device->ops->stream_query = query_after_step;
}

/* The work fails, and then it ends. */
static void spread(void)
{
    struct ggi_kept_error kept = {.error = {.status = GG_ERR_COMMUNICATOR}};
    ggi_streams_end_work(device->backend, &(struct ggi_watcher){.bits = WATCHER}, &kept);
    CHECK(!at_query && !at_error); /* the step was run */
    gate_open(gate);
}

static gg_status step_status; /* of a call in the step, which may report the error as well */

static void check_failed(gg_status waited)
{
    CHECK(waited == GG_ERR_COMMUNICATOR || step_status == GG_ERR_COMMUNICATOR);
    CHECK(gg_stream_wait(behind, GG_FOREVER) == GG_ERR_COMMUNICATOR);
    gg_event_release(event);
    gg_stream_release(later);
    gg_stream_release(behind);
}

static void wait_for_event(void)
{
    step_status = gg_stream_wait_event(later, event);
}
static void a_stream_that_comes_to_wait_for_an_event_of_one_not_yet_reached(void)
{
    start();
    at_query = wait_for_event;
    spread();
    check_failed(gg_stream_wait(later, GG_FOREVER));
}

static void wait_for_stream(void)
{
    step_status = gg_stream_wait_stream(later, behind);
}
static void a_stream_that_comes_to_wait_for_one_not_yet_reached(void)
{
    start();
    at_error = wait_for_stream;
    spread();
    check_failed(gg_stream_wait(later, GG_FOREVER));
}

static void wait_by_new_stream(void)
{
    gg_stream_release(later);
    CHECK(gg_stream_create(device, 0, 0, &later) == GG_OK);
    wait_for_stream();
}
static void a_stream_that_is_created_meanwhile(void)
{
    start();
    at_error = wait_by_new_stream;
    spread();
    check_failed(gg_stream_wait(later, GG_FOREVER));
}

static void record_event(void)
{
    CHECK(gg_event_record(event, behind) == GG_OK);
}
static void an_event_that_is_recorded_meanwhile(void)
{
    start();
    at_error = record_event;
    spread();
    check_failed(gg_event_wait(event, GG_FOREVER));
}

static void close_later(void)
{
    step_status = gg_stream_wait_stream(later, behind);
    CHECK(gg_event_record(event, later) == GG_OK);
    gg_stream_release(later);
    later = NULL;
}
static void an_event_of_a_stream_that_is_closed(void)
{
    start();
    close_later();
    spread();
    check_failed(gg_event_wait(event, GG_FOREVER));
}

/* The stream `later` has its error when `behind` gets its own. */
static void take_error(void)
{
    gg_stream *third;
    CHECK(gg_stream_create(device, 0, 0, &third) == GG_OK);
    step_status = gg_stream_wait_stream(third, later);
    gg_stream_release(third);
}
static void an_error_that_is_taken_meanwhile(void)
{
    start();
    CHECK(gg_stream_wait_stream(later, behind) == GG_OK);
    at_error = take_error;
    spread();
    CHECK(step_status == GG_ERR_COMMUNICATOR);
    CHECK(gg_stream_wait(later, GG_FOREVER) == GG_OK); /* it is reported once */
    check_failed(GG_ERR_COMMUNICATOR);
}

/* ---- two watchers ---- */

#define OTHER UINT64_C(8)
static void *other_gate;

static void hold(gg_stream *stream, void *at, uint64_t watcher)
{
    CHECK(gg_stream_host_func(stream, gate_wait, at) == GG_OK);
    ggi_stream_watch(stream, watcher, atomic_load(&stream->submitted));
}

static void end_work_of(uint64_t watcher, bool leaves_work)
{
    const struct ggi_watcher ended = {.bits = watcher, .leaves_work = leaves_work};
    struct ggi_kept_error kept = {.error = {.status = GG_ERR_COMMUNICATOR}};
    ggi_streams_end_work(device->backend, &ended, &kept);
}

/* `later` has work of one watcher, then the event, then work of the other. */
static void start_both(void)
{
    CHECK(gg_device_get("host", 0, &device) == GG_OK);
    CHECK(gg_stream_create(device, 0, 0, &later) == GG_OK);
    CHECK(gg_event_create(device, 0, &event) == GG_OK);
    gate = gate_new();
    other_gate = gate_new();
    hold(later, gate, WATCHER);
    CHECK(gg_event_record(event, later) == GG_OK);
    hold(later, other_gate, OTHER);
}

static void end_both(gg_event *after, gg_status expected)
{
    gate_open(gate);
    CHECK(gg_event_wait(event, GG_FOREVER) == expected);
    gate_open(other_gate);
    CHECK(gg_event_wait(after, GG_FOREVER) == GG_ERR_COMMUNICATOR);
    CHECK(gg_stream_wait(later, GG_FOREVER) == GG_ERR_COMMUNICATOR);
    gg_event_release(after);
    gg_event_release(event);
    gg_stream_release(later);
}

static void only_what_is_behind_the_failed_work(bool leaves_work)
{
    gg_event *after;
    start_both();
    CHECK(gg_event_create(device, 0, &after) == GG_OK);
    CHECK(gg_event_record(after, later) == GG_OK);
    end_work_of(OTHER, leaves_work);
    CHECK(gg_event_query(event) == GG_NOT_READY);
    CHECK(gg_event_wait(event, 0) == GG_NOT_READY);
    end_both(after, GG_OK);
}
static void an_event_before_work_that_ends(void)
{
    only_what_is_behind_the_failed_work(false);
}
static void an_event_before_work_that_is_left(void)
{
    only_what_is_behind_the_failed_work(true);
}

/* The work of each fails; the stream has the error of the first, which no wait has reported. */
static void an_event_behind_the_second_failure(void)
{
    gg_event *after;
    start_both();
    CHECK(gg_event_create(device, 0, &after) == GG_OK);
    CHECK(gg_event_record(after, later) == GG_OK);
    end_work_of(OTHER, false);
    end_work_of(WATCHER, false);
    end_both(after, GG_ERR_COMMUNICATOR);
}

/* The work that ended is complete and no wait has reported it; only work of the other watcher is unfinished. */
static void an_event_behind_both(void)
{
    gg_event *after;
    start_both();
    CHECK(gg_event_create(device, 0, &after) == GG_OK);
    end_work_of(OTHER, false);
    gate_open(gate);
    gate_open(other_gate);
    while (!ggi_stream_is_complete(later, atomic_load(&later->submitted), true)) {
    }
    gate = other_gate = gate_new();
    hold(later, gate, WATCHER);
    CHECK(gg_event_record(after, later) == GG_OK);
    end_both(after, GG_OK);
}

#define CASE(name, body)           \
    static void name(void **state) \
    {                              \
        (void)state;               \
        in_child(body);            \
    }
CASE(a_stream_that_waits_for_an_event_while_errors_are_spread_has_the_error,
     a_stream_that_comes_to_wait_for_an_event_of_one_not_yet_reached)
CASE(a_stream_that_waits_for_another_while_errors_are_spread_has_the_error,
     a_stream_that_comes_to_wait_for_one_not_yet_reached)
CASE(a_stream_that_is_created_while_errors_are_spread_has_the_error,
     a_stream_that_is_created_meanwhile)
CASE(an_event_that_is_recorded_while_errors_are_spread_has_the_error,
     an_event_that_is_recorded_meanwhile)
CASE(an_event_of_a_closed_stream_has_the_error, an_event_of_a_stream_that_is_closed)
CASE(an_error_that_was_reported_while_errors_are_spread_is_not_spread_again,
     an_error_that_is_taken_meanwhile)
CASE(an_event_does_not_report_a_later_failure_of_another_watcher, an_event_before_work_that_ends)
CASE(an_event_does_not_report_later_work_that_another_watcher_left,
     an_event_before_work_that_is_left)
CASE(an_event_reports_the_second_failure_of_its_stream, an_event_behind_the_second_failure)
CASE(an_event_behind_work_of_another_watcher_reports_the_failure_before, an_event_behind_both)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_stream_that_waits_for_an_event_while_errors_are_spread_has_the_error),
    cmocka_unit_test(a_stream_that_waits_for_another_while_errors_are_spread_has_the_error),
    cmocka_unit_test(a_stream_that_is_created_while_errors_are_spread_has_the_error),
    cmocka_unit_test(an_event_that_is_recorded_while_errors_are_spread_has_the_error),
    cmocka_unit_test(an_event_of_a_closed_stream_has_the_error),
    cmocka_unit_test(an_error_that_was_reported_while_errors_are_spread_is_not_spread_again),
    cmocka_unit_test(an_event_does_not_report_a_later_failure_of_another_watcher),
    cmocka_unit_test(an_event_does_not_report_later_work_that_another_watcher_left),
    cmocka_unit_test(an_event_reports_the_second_failure_of_its_stream),
    cmocka_unit_test(an_event_behind_work_of_another_watcher_reports_the_failure_before),
};
SUITE(ended, tests);
