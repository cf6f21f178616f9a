/* test_shutdown.c: a shutdown while another thread is inside a call, and what is left behind it. */
#include "conformance.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *reached, *over; /* gates: the other thread is inside its call; the shutdown is done */

/* Stands between the core's last check and the backend. */
static void stay_inside(void *user, const struct gg_trace *trace)
{
    (void)user;
    if (trace->op != GG_OP_stream_create)
        return;
    gate_open(reached);
    gate_wait(over);
}

static void *make_stream(void *argument)
{
    static gg_stream *stream; /* left to the process */
    const gg_status status = gg_stream_create(argument, 0, 0, &stream);
    if (status)
        printf("%s\n", last_error().message);
    return status ? argument : NULL;
}

/* The engine's part of the device is still there for it. The thread that opened the device is known to
 * the engine: it may be the one that shuts down, or the one inside. */
static int shut_down(bool by_the_opener)
{
    static const struct gg_tracer tracer = {.struct_size = sizeof tracer, .pre = stay_inside};
    gg_device *device;
    gg_stream *stream;
    pthread_t thread;
    void *failed;
    reached = gate_new();
    over = gate_new();
    if (gg_device_get(NULL, 0, &device) ||
        (by_the_opener && gg_device_default_stream(device, &stream)))
        return 1;
    gg_set_tracer(&tracer);
    if (pthread_create(&thread, NULL, make_stream, device))
        return 1;
    gate_wait(reached);
    gg_shutdown(2000000000u);
    gate_open(over);
    pthread_join(thread, &failed);
    return failed ? 1 : 0;
}

static int shut_down_under_a_call(void)
{
    return shut_down(true);
}

static int shut_down_under_the_openers_call(void)
{
    return shut_down(false);
}

static void a_call_that_is_under_way_at_the_shutdown_finds_its_device(void **state)
{
    (void)state;
    assert_scenario_is_silent("shut_down_under_a_call");
}

static void a_call_of_the_opener_that_is_under_way_at_the_shutdown_finds_its_device(void **state)
{
    (void)state;
    assert_scenario_is_silent("shut_down_under_the_openers_call");
}

/* A simulated driver ends the process at a call of these. */
static int leave_after_the_shutdown(void)
{
    gg_device *device;
    gg_scope *scope;
    if (gg_device_get(NULL, 0, &device) || gg_enter(device, NULL, &scope))
        return 1;
    gg_shutdown(0);
    setenv("GPUGLUE_SIM_CRASH", "cuCtxSetCurrent,hipSetDevice", 1);
    return gg_leave(scope) ? 1 : 0;
}

static void a_scope_left_after_the_shutdown_calls_no_driver(void **state)
{
    (void)state;
    assert_scenario_is_silent("leave_after_the_shutdown");
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"shut_down_under_a_call", shut_down_under_a_call},
        {"shut_down_under_the_openers_call", shut_down_under_the_openers_call},
        {"leave_after_the_shutdown", leave_after_the_shutdown}};
    struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_is_under_way_at_the_shutdown_finds_its_device),
        cmocka_unit_test(a_call_of_the_opener_that_is_under_way_at_the_shutdown_finds_its_device),
        cmocka_unit_test(a_scope_left_after_the_shutdown_calls_no_driver),
    };
    int scenario = run_scenario(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
    if (scenario >= 0)
        return scenario;
    return run_suite(argc, argv, "shutdown", tests, sizeof tests / sizeof tests[0]);
}
