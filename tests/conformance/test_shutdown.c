/* test_shutdown.c: a shutdown while another thread is inside a call and the device is idle. Each test is
 * a scenario, for which this program is started again. What else a shutdown does is in test_life.c. */
#include "conformance.h"

#include <pthread.h>
#include <sched.h>

static _Thread_local bool observed;

/* Between the core's checks and the backend's function. */
static void wait_inside(void *gate, const struct gg_trace *trace)
{
    if (observed && trace->op == GG_OP_event_create)
        gate_wait(gate);
}

static void *create_event(void *device)
{
    gg_event *event = NULL;
    observed = true;
    gg_status status = gg_event_create(device, 0, &event);
    gg_event_release(event);
    return status ? device : NULL;
}

/* The thread that opens the device is known to it: whether that one shuts down or the other. */
static int shut_down_during_a_call(bool by_the_opener)
{
    static struct gg_tracer tracer = {.struct_size = sizeof tracer, .pre = wait_inside};
    gg_device *device = NULL;
    gg_stream *stream = NULL;
    pthread_t thread;
    void *problem = NULL;
    tracer.user = gate_new();
    if (gg_set_tracer(&tracer) || gg_device_get(NULL, 0, &device) ||
        (by_the_opener && gg_device_default_stream(device, &stream)) ||
        pthread_create(&thread, NULL, create_event, device))
        return 1;
    while (!gate_reached(tracer.user))
        sched_yield();
    gg_shutdown(GG_FOREVER);
    gate_open(tracer.user);
    pthread_join(thread, &problem);
    return problem ? 2 : 0; /* the call failed: the device was closed under it */
}

static int shut_down_by_the_opener(void)
{
    return shut_down_during_a_call(true);
}

static int shut_down_by_another(void)
{
    return shut_down_during_a_call(false);
}

static const struct scenario scenarios[] = {
    {"shut_down_by_the_opener", shut_down_by_the_opener},
    {"shut_down_by_another", shut_down_by_another},
};

static void a_shutdown_closes_no_device_that_another_thread_is_inside_of(void **state)
{
    (void)state;
    assert_scenario_is_silent("shut_down_by_the_opener");
}

static void a_shutdown_by_another_thread_closes_no_device_that_its_opener_is_inside_of(void **state)
{
    (void)state;
    assert_scenario_is_silent("shut_down_by_another");
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shutdown_closes_no_device_that_another_thread_is_inside_of),
        cmocka_unit_test(a_shutdown_by_another_thread_closes_no_device_that_its_opener_is_inside_of),
    };
    int scenario = run_scenario(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
    if (scenario >= 0)
        return scenario;
    return run_suite(argc, argv, "shutdown", tests, sizeof tests / sizeof tests[0]);
}
