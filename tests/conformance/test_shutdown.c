/* test_shutdown.c: a shutdown while another thread is inside a call, and calls after it. */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static void *reached, *over; /* gates: the other thread is inside its call; the shutdown is done */
static gg_op where;          /* that call */
static pthread_t leaver;     /* the thread that shuts down */

/* Called between the core's last check and the backend. */
static void stay_inside(void *user, const struct gg_trace *trace)
{
    (void)user;
    if (trace->op != where || pthread_equal(pthread_self(), leaver))
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

static void *wait_for_stream(void *stream)
{
    const gg_status status = gg_stream_wait(stream, GG_FOREVER);
    if (status)
        printf("%s\n", last_error().message);
    return status ? stream : NULL;
}

static const struct gg_tracer inside = {.struct_size = sizeof inside, .pre = stay_inside};

/* While another thread is inside @p call. */
static int shut_down_under(const struct gg_tracer *tracer, gg_op op, void *(*call)(void *),
                           void *argument)
{
    pthread_t thread;
    void *failed;
    reached = gate_new();
    over = gate_new();
    where = op;
    leaver = pthread_self();
    gg_set_tracer(tracer);
    if (pthread_create(&thread, NULL, call, argument))
        return 1;
    gate_wait(reached);
    gg_shutdown(2000000000u);
    gate_open(over);
    pthread_join(thread, &failed);
    return failed ? 1 : 0;
}

/* The core's part of the device still exists for that call. The core knows the thread that
 * opened the device: it may be the one that shuts down, or the one inside the call. */
static int shut_down(bool by_the_opener)
{
    gg_device *device;
    gg_stream *stream;
    if (gg_device_get(NULL, 0, &device) ||
        (by_the_opener && gg_device_default_stream(device, &stream)))
        return 1;
    return shut_down_under(&inside, GG_OP_stream_create, make_stream, device);
}

static int shut_down_under_a_call(void)
{
    return shut_down(true);
}

static int shut_down_under_the_openers_call(void)
{
    return shut_down(false);
}

/* The other thread has created no object on the device. */
static int shut_down_under_a_wait(void)
{
    gg_device *device;
    gg_stream *stream;
    if (gg_device_get(NULL, 0, &device) || gg_device_default_stream(device, &stream))
        return 1;
    return shut_down_under(&inside, GG_OP_stream_wait, wait_for_stream, stream);
}

static gg_stream *copying;
static atomic_int freed; /* blocks that went back to the driver */

static void *copy_from_a_slot(void *memory)
{
    char bytes[1000] = {1};
    const gg_status status = copy(at(memory, 0), host_at(bytes), sizeof bytes, copying, 0);
    if (status || atomic_load(&freed))
        printf("%s; %d blocks were freed\n", last_error().message, atomic_load(&freed));
    return status || atomic_load(&freed) ? memory : NULL;
}

static void count_frees(void *user, const struct gg_trace *trace)
{
    stay_inside(user, trace);
    if (trace->op == GG_OP_mem_free)
        atomic_fetch_add(&freed, 1);
}

/* The other thread has a slot of the pinned ring. */
static int shut_down_under_a_small_copy(void)
{
    static const struct gg_tracer tracer = {.struct_size = sizeof tracer, .pre = count_frees};
    gg_device *device;
    static gg_memory *memory; /* left to the process */
    if (gg_device_get(NULL, 0, &device) || gg_stream_create(device, 0, 0, &copying) ||
        gg_memory_alloc(device, GG_MEMORY_DEVICE, 1000, NULL, &memory))
        return 1;
    return shut_down_under(&tracer, GG_OP_copy, copy_from_a_slot, memory);
}

#define BLOCK ((size_t)3 << 20)

static int stay_outside(void)
{
    if (!pthread_equal(pthread_self(), leaver)) {
        gate_open(reached);
        gate_wait(over);
    }
    return 0;
}

static void *ask_for_memory(void *device)
{
    gg_memory *memory = NULL;
    return gg_memory_alloc(device, GG_MEMORY_DEVICE, 2 * BLOCK, NULL, &memory) == GG_ERR_SHUT_DOWN
               ? NULL
               : device;
}

/* The driver's own pool takes a block back before its work is finished: later uses are ordered after it. */
static bool is_taken_back(gg_device *device)
{
    struct gg_pool_stats stats = {.struct_size = sizeof stats};
    return uses_drivers_pool() && !gg_device_trim(device) &&
           !gg_pool_stats(device, GG_MEMORY_DEVICE, &stats) && !stats.reserved_bytes;
}

/* The pool's limit leaves no memory until a held stream has finished with a block. */
static int shut_down_under_a_wait_for_memory(void)
{
    gg_device *device;
    gg_stream *stream;
    gg_memory *memory = NULL;
    pthread_t thread;
    static void *held; /* left to the process */
    void *failed = NULL;
    held = gate_new();
    reached = gate_new();
    over = gate_new();
    leaver = pthread_self();
    if (gg_device_get(NULL, 0, &device) ||
        gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &stream))
        return 1;
    if (!gg_device_supports(device, GG_OP_stream_host_func))
        return scenario_without(GG_OP_stream_host_func);
    if (gg_memory_alloc(device, GG_MEMORY_DEVICE, BLOCK, stream, &memory) ||
        gg_pool_set_limit(device, GG_MEMORY_DEVICE, 2 * BLOCK) ||
        gg_stream_host_func(stream, gate_wait, held) || fill_bytes(memory, 1, stream))
        return 1;
    gg_memory_release(memory);
    if (is_taken_back(device)) {
        gate_open(held);
        return not_here("no allocation waits for a block of the driver's own pool");
    }
    gg_set_wait_hook(stay_outside);
    if (pthread_create(&thread, NULL, ask_for_memory, device))
        return 1;
    gate_wait(reached);
    gg_shutdown(0);
    gate_open(held); /* the block's work is finished */
    gate_open(over);
    pthread_join(thread, &failed);
    return failed ? 1 : 0;
}

static void a_call_in_progress_at_the_shutdown_can_use_its_device(void **state)
{
    (void)state;
    assert_scenario_is_silent("shut_down_under_a_call");
}

static void
a_call_in_progress_at_the_shutdown_in_the_thread_that_opened_the_device_can_use_it(void **state)
{
    (void)state;
    assert_scenario_is_silent("shut_down_under_the_openers_call");
}

static void a_wait_in_progress_at_the_shutdown_can_use_its_device(void **state)
{
    (void)state;
    assert_scenario_is_silent("shut_down_under_a_wait");
}

static void a_small_copy_in_progress_at_the_shutdown_keeps_its_pinned_memory(void **state)
{
    (void)state;
    assert_scenario_is_silent("shut_down_under_a_small_copy");
}

static void a_wait_for_memory_ends_at_the_shutdown(void **state)
{
    (void)state;
    assert_scenario_is_silent("shut_down_under_a_wait_for_memory");
}

/* A simulated driver ends the process when one of these is called. */
static int leave_after_the_shutdown(void)
{
    gg_device *device;
    gg_scope *scope;
    if (gg_device_get(NULL, 0, &device) || gg_scope_enter(device, NULL, &scope))
        return 1;
    gg_shutdown(0);
    setenv("GPUGLUE_SIM_CRASH", "cuCtxSetCurrent,hipSetDevice", 1);
    return gg_scope_leave(scope) ? 1 : 0;
}

static void a_scope_left_after_the_shutdown_calls_no_driver(void **state)
{
    (void)state;
    assert_scenario_is_silent("leave_after_the_shutdown");
}

static const struct scenario scenarios[] = {
    {"shut_down_under_a_call", shut_down_under_a_call},
    {"shut_down_under_the_openers_call", shut_down_under_the_openers_call},
    {"shut_down_under_a_wait", shut_down_under_a_wait},
    {"shut_down_under_a_small_copy", shut_down_under_a_small_copy},
    {"shut_down_under_a_wait_for_memory", shut_down_under_a_wait_for_memory},
    {"leave_after_the_shutdown", leave_after_the_shutdown}};

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_call_in_progress_at_the_shutdown_can_use_its_device),
    cmocka_unit_test(
        a_call_in_progress_at_the_shutdown_in_the_thread_that_opened_the_device_can_use_it),
    cmocka_unit_test(a_wait_in_progress_at_the_shutdown_can_use_its_device),
    cmocka_unit_test(a_small_copy_in_progress_at_the_shutdown_keeps_its_pinned_memory),
    cmocka_unit_test(a_wait_for_memory_ends_at_the_shutdown),
    cmocka_unit_test(a_scope_left_after_the_shutdown_calls_no_driver),
};
SUITE_AND_SCENARIOS(shutdown, tests, scenarios);
