/* test_faults.c: after a call that fails, memory that the device still writes to stays
 * allocated, and the current device and context are unchanged. The simulated drivers inject the
 * faults by the vendors' function names; where a driver reads no such variable, a test is
 * skipped. */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NBYTES 4096u
#define SMALL_DEVICE "67108864"

static int wrong(const char *what)
{
    printf("%s (%s)\n", what, last_error().message);
    return 1;
}

#define NO_FAULTS "the driver takes no faults from the environment"
#define NO_HOST_FUNC "stream_host_func is not supported"

static void assert_silent_with(const char *name, const char *variable, const char *value)
{
    char output[4096];
    int result = start_scenario(name, variable, value, output, sizeof output);
    if (result || output[0])
        print_message("%s: exit %d: %s\n", name, result, output);
    assert_int_equal(result, 0);
    assert_string_equal(output, "");
}

struct scene {
    gg_device *device;
    gg_stream *stream;
    gg_memory *memory, *pinned;
};

static int set_scene(struct scene *scene)
{
    if (gg_device_get(NULL, 0, &scene->device) ||
        gg_stream_create(scene->device, GG_STREAM_NONBLOCKING, 0, &scene->stream) ||
        gg_memory_alloc(scene->device, GG_MEMORY_DEVICE, MANY_BYTES, NULL, &scene->memory) ||
        gg_memory_alloc(scene->device, GG_MEMORY_PINNED, NBYTES, NULL, &scene->pinned))
        return wrong("no scene");
    return 0;
}

static uint64_t kept_blocks(gg_device *device)
{
    struct gg_memory_stats stats = {.struct_size = sizeof stats};
    if (gg_device_trim(device) || gg_device_memory_stats(device, &stats))
        return UINT64_MAX;
    return stats.retired_blocks;
}

/* ---- a wait that fails ---- */

/* The first query is the one of this check, the second that of the copy's wait. */
static int fail_a_wait_on_pinned_memory(void)
{
    static struct scene scene; /* left to the process */
    atomic_int released = 0;
    static void *gate;
    struct gg_copy_operand dst, src;
    if (set_scene(&scene))
        return 1;
    if (gg_stream_query(scene.stream) <= GG_NOT_READY)
        return not_here(NO_FAULTS); /* this driver injects no faults */
    dst = (struct gg_copy_operand){
        .memory = scene.memory, .release = count_release, .owner = &released};
    src = (struct gg_copy_operand){
        .memory = scene.pinned, .release = count_release, .owner = &released};
    if (!gg_device_supports(scene.device, GG_OP_stream_host_func))
        return not_here(NO_HOST_FUNC);
    gate = gate_new();
    if (gg_stream_host_func(scene.stream, gate_wait, gate))
        return wrong("no gate");
    if (gg_copy(&dst, &src, NBYTES, scene.stream, 0) <= GG_NOT_READY)
        return wrong("the copy did not fail");
    gg_memory_release(scene.memory);
    gg_memory_release(scene.pinned);
    if (kept_blocks(scene.device) != 2 || atomic_load(&released))
        return wrong("released before the copy has run");
    gate_open(gate);
    if (gg_stream_wait(scene.stream, GG_FOREVER) || kept_blocks(scene.device) != 0)
        return wrong("the memory is not given back after the copy");
    return atomic_load(&released) == 2 ? 0 : wrong("the owners were not released once");
}

static void a_copy_whose_wait_fails_keeps_its_memory_until_it_has_run(void **state)
{
    (void)state;
    assert_silent_with("fail_a_wait_on_pinned_memory", "GPUGLUE_SIM_FAIL",
                       "cuStreamQuery:1=1,cuStreamQuery:2=1,hipStreamQuery:1=1,hipStreamQuery:2=1");
}

static unsigned char *written, last_byte;

static void look_at_last_byte(void *owner)
{
    (void)owner;
    last_byte = written[MANY_BYTES - 1];
}

/* The second query belongs to the wait before the transfer, the third to the wait after it. */
static int fail_a_wait_on_pageable_memory(void)
{
    static struct scene scene; /* left to the process */
    struct gg_copy_operand dst, src;
    gg_event *filled;
    written = calloc(1, MANY_BYTES);
    if (!written || set_scene(&scene))
        return 1;
    if (gg_stream_query(scene.stream) <= GG_NOT_READY)
        return not_here(NO_FAULTS);
    dst = (struct gg_copy_operand){.host = written, .release = look_at_last_byte};
    src = (struct gg_copy_operand){.memory = scene.memory};
    if (gg_event_create(scene.device, 0, &filled) || fill_bytes(scene.memory, 7, scene.stream) ||
        gg_event_record(filled, scene.stream) ||
        gg_event_wait(filled, GG_FOREVER)) /* queries the event, which is not counted here */
        return wrong("no fill");
    if (gg_copy(&dst, &src, MANY_BYTES, scene.stream, 0) <= GG_NOT_READY)
        return wrong("the copy did not fail");
    if (last_byte != 7)
        return wrong("released before the copy has run");
    gg_event_release(filled);
    free(written);
    return 0;
}

static void pageable_memory_is_released_after_the_transfer_even_if_the_wait_fails(void **state)
{
    (void)state;
    assert_silent_with("fail_a_wait_on_pageable_memory", "GPUGLUE_SIM_FAIL",
                       "cuStreamQuery:1=1,cuStreamQuery:3=1,hipStreamQuery:1=1,hipStreamQuery:3=1");
}

/* ---- a loss that one stream reports ---- */

/* Whether one of many new blocks is at @p pointer. */
static bool is_allocated_again(gg_device *device, const void *pointer)
{
    gg_memory *blocks[100] = {NULL};
    bool again = false;
    for (size_t i = 0; i < COUNT_OF(blocks); i++)
        again = gg_memory_alloc(device, GG_MEMORY_DEVICE, MANY_BYTES, NULL, &blocks[i]) ||
                gg_memory_pointer(blocks[i]) == pointer || again;
    for (size_t i = 0; i < COUNT_OF(blocks); i++)
        gg_memory_release(blocks[i]);
    return again;
}

/* The first query is that of this check, the second one of the pool. Both vendors have codes of a lost device that
 * they also return for one bad handle. */
static int report_a_loss_once(void)
{
    static struct scene scene; /* left to the process */
    static void *gate;
    if (set_scene(&scene))
        return 1;
    if (gg_stream_query(scene.stream) <= GG_NOT_READY)
        return not_here(NO_FAULTS);
    if (!gg_device_supports(scene.device, GG_OP_stream_host_func))
        return not_here(NO_HOST_FUNC);
    gate = gate_new();
    if (gg_stream_host_func(scene.stream, gate_wait, gate) ||
        fill_bytes(scene.memory, 1, scene.stream))
        return wrong("no work");
    const void *pointer = gg_memory_pointer(scene.memory);
    gg_memory_release(scene.memory);
    const bool again = is_allocated_again(scene.device, pointer);
    gate_open(gate);
    if (again)
        return wrong("memory was allocated again that the device still writes to");
    gg_stream_wait(scene.stream, GG_FOREVER); /* may report the failure of the query */
    if (gg_stream_wait(scene.stream, GG_FOREVER) || kept_blocks(scene.device) != 0)
        return wrong("the memory is not given back after the work");
    return 0;
}

static void memory_in_use_stays_where_one_stream_reports_a_loss_and_the_device_works(void **state)
{
    (void)state;
    assert_silent_with(
        "report_a_loss_once", "GPUGLUE_SIM_FAIL",
        "cuStreamQuery:1=1,cuStreamQuery:2=709,hipStreamQuery:1=1,hipStreamQuery:2=709");
}

/* ---- an unlock that fails ---- */

static gg_status of_unlocking;

static void note_unlocking(void *user, const struct gg_trace *trace)
{
    (void)user;
    if (trace->op == GG_OP_mem_unregister)
        of_unlocking = trace->status;
}

static int fail_an_unlock(void)
{
    static const struct gg_tracer tracer = {.struct_size = sizeof tracer, .post = note_unlocking};
    static unsigned char pages[3 * 65536]; /* whole pages of its own, wherever they begin */
    static atomic_int released;
    gg_device *device;
    gg_memory *memory = NULL;
    unsigned char *whole = pages + (65536 - (uintptr_t)pages % 65536);
    if (gg_device_get(NULL, 0, &device))
        return wrong("no device");
    if (!gg_device_supports(device, GG_OP_mem_register))
        return scenario_without(GG_OP_mem_register);
    if (gg_memory_host_register(device, whole, 65536, count_release, &released, &memory))
        return wrong("not registered");
    gg_set_tracer(&tracer);
    gg_memory_release(memory);
    if (gg_device_trim(device) || gg_device_synchronize(device) || gg_device_trim(device))
        return wrong("not trimmed");
    if (!of_unlocking)
        return not_here(NO_FAULTS);
    return atomic_load(&released) ? wrong("released while the driver considers it locked") : 0;
}

static void memory_that_cannot_be_unlocked_is_still_returned_to_its_owner(void **state)
{
    (void)state;
    assert_silent_with("fail_an_unlock", "GPUGLUE_SIM_FAIL",
                       "cuMemHostUnregister:1=1,hipHostUnregister:1=1");
}

/* ---- a shutdown ---- */

/* Streams unknown to gpuglue may use the memory, so it waits for all work of the device. */
static int fail_a_wait_of_the_shutdown(void)
{
    static unsigned char pages[2 * 65536];
    static atomic_int released;
    gg_device *device;
    gg_memory *memory = NULL;
    unsigned char *whole = pages + (65536 - (uintptr_t)pages % 65536);
    if (gg_device_get(NULL, 0, &device))
        return wrong("no device");
    if (!gg_device_supports(device, GG_OP_mem_register))
        return scenario_without(GG_OP_mem_register);
    if (gg_memory_host_register(device, whole, 65536, count_release, &released, &memory) ||
        gg_memory_record_use(memory, NULL))
        return wrong("not registered");
    gg_memory_release(memory);
    gg_shutdown(2000000000u);
    return atomic_load(&released) == 1 ? 0 : wrong("the owner was not released");
}

static void a_shutdown_waits_again_for_the_device_if_a_wait_fails(void **state)
{
    (void)state;
    assert_silent_with("fail_a_wait_of_the_shutdown", "GPUGLUE_SIM_FAIL",
                       "cuMemAlloc_v2:1=1,hipMalloc:1=1,zeDeviceSynchronize:1=2147483646");
}

/* ---- the current context ---- */

/* On a thread without a current context: the current device is 0, and the calls need another
 * one. Returns a description of the failure, or NULL. */
static void *fail_on_another_device(void *argument)
{
    gg_device *other = argument, *now = NULL;
    static gg_memory *memory;
    gg_memory *none = NULL;
    struct gg_device_info info = {.struct_size = sizeof info};
    gg_stream *stream = NULL;
    if (gg_device_info(other, &info) || gg_device_default_stream(other, &stream) ||
        gg_memory_alloc(other, GG_MEMORY_DEVICE, NBYTES, NULL, &memory))
        return "no memory";
    if (!gg_memory_alloc(other, GG_MEMORY_DEVICE, (size_t)info.total_memory * 2, NULL, &none) ||
        gg_current_device(&now) || gg_device_ordinal(now) != 0)
        return "an allocation that is too big changed what is current";
    if (!gg_fill(memory, 0, "x", 1, NBYTES, NULL))
        return ""; /* this driver injects no faults */
    if (gg_current_device(&now) || gg_device_ordinal(now) != 0)
        return "a fill that failed changed what is current";
    if (!copy(at(memory, 0), host_at("0123456789"), 10, NULL, 0) || gg_current_device(&now) ||
        gg_device_ordinal(now) != 0)
        return "a copy that failed changed what is current";
    if (gg_stream_query(stream) <= GG_NOT_READY || gg_current_device(&now) ||
        gg_device_ordinal(now) != 0)
        return "a query that failed changed what is current";
    return NULL;
}

static int fail_and_restore(void)
{
    int32_t count = 0;
    gg_device *other = NULL;
    pthread_t thread;
    void *problem = NULL;
    if (gg_device_count(NULL, &count))
        return wrong("no device");
    if (count < 2)
        return not_here("there is one device");
    if (gg_device_get(NULL, 1, &other) ||
        pthread_create(&thread, NULL, fail_on_another_device, other))
        return wrong("no other device");
    pthread_join(thread, &problem);
    if (!problem)
        return 0;
    return *(char *)problem ? wrong(problem) : not_here(NO_FAULTS);
}

static void a_failed_operation_restores_the_current_context(void **state)
{
    (void)state;
    assert_silent_with("fail_and_restore", "GPUGLUE_SIM_FAIL",
                       "cuMemsetD8Async:1+=1,cuMemcpyHtoDAsync_v2:1+=1,cuStreamQuery:1+=1,"
                       "hipMemsetD8Async:1+=1,hipMemcpyHtoDAsync:1+=1,hipStreamQuery:1+=1");
}

/* ---- the record ---- */

/* A query of a busy stream fails that no caller has requested. */
static int fail_a_look(void)
{
    static struct scene scene; /* left to the process */
    static void *gate;
    char before[sizeof last_error().message];
    if (set_scene(&scene))
        return 1;
    if (!gg_device_supports(scene.device, GG_OP_stream_host_func))
        return scenario_without(GG_OP_stream_host_func);
    gate = gate_new();
    if (gg_stream_host_func(scene.stream, gate_wait, gate))
        return wrong("no gate");
    if (!gg_fill(scene.memory, 0, NULL, 1, 1, scene.stream))
        return wrong("a pattern at NULL was taken");
    memcpy(before, last_error().message, sizeof before);
    gg_memory_release(scene.pinned); /* or there is nothing to query */
    if (gg_device_trim(scene.device))
        return wrong("no trim");
    if (strcmp(before, last_error().message) != 0)
        return wrong("an internal query of the core wrote the record");
    gate_open(gate);
    return gg_stream_query(scene.stream) <= GG_NOT_READY ? not_here(NO_FAULTS) : 0;
}

static void a_failed_internal_query_does_not_change_the_error_record(void **state)
{
    (void)state;
    assert_silent_with("fail_a_look", "GPUGLUE_SIM_FAIL",
                       "cuStreamQuery:1+=1,hipStreamQuery:1+=1,zeEventQueryStatus:1+=2147483646");
}

/* ---- out of memory ---- */

static void *opened_when_memory_is_out;
static atomic_int refusals;

static void open_when_refused(void *user, const struct gg_trace *trace)
{
    (void)user;
    if (trace->op != GG_OP_mem_alloc || trace->status != GG_ERR_OUT_OF_MEMORY)
        return;
    atomic_fetch_add(&refusals, 1);
    gate_open(opened_when_memory_is_out);
}

/* Most of the device's memory, released while work still uses it; the work ends when no memory
 * is left. */
static int use_most_of_it_twice(void)
{
    static const struct gg_tracer tracer = {.struct_size = sizeof tracer, .post = open_when_refused};
    static struct scene scene; /* left to the process */
    uint64_t free = 0, total = 0;
    static gg_memory *most, *again;
    if (set_scene(&scene))
        return 1;
    if (!gg_device_supports(scene.device, GG_OP_stream_host_func))
        return scenario_without(GG_OP_stream_host_func);
    if (!gg_device_supports(scene.device, GG_OP_device_memory_info))
        return scenario_without(GG_OP_device_memory_info);
    if (gg_device_memory_info(scene.device, &free, &total) ||
        gg_memory_alloc(scene.device, GG_MEMORY_DEVICE, (size_t)(free / 4 * 3), NULL, &most))
        return not_here("three quarters of the free memory cannot be allocated");
    opened_when_memory_is_out = gate_new();
    if (gg_stream_host_func(scene.stream, gate_wait, opened_when_memory_is_out) ||
        gg_fill(most, 0, "x", 1, 64, scene.stream))
        return wrong("no work");
    gg_memory_release(most);
    gg_set_tracer(&tracer);
    if (gg_memory_alloc(scene.device, GG_MEMORY_DEVICE, (size_t)(free / 4 * 3), NULL, &again))
        return wrong("released memory was not reused");
    if (atomic_load(&refusals) != 1)
        return wrong("there was memory enough");
    gg_set_tracer(NULL);
    gg_memory_release(again);
    return kept_blocks(scene.device) == 0 ? 0 : wrong("it is not given back");
}

static void out_of_memory_waits_for_released_memory_and_tries_again(void **state)
{
    (void)state;
    assert_silent_with("use_most_of_it_twice", "GPUGLUE_SIM_MEMORY", SMALL_DEVICE);
}

static const struct scenario scenarios[] = {
    {"fail_a_wait_on_pinned_memory", fail_a_wait_on_pinned_memory},
    {"fail_a_wait_on_pageable_memory", fail_a_wait_on_pageable_memory},
    {"report_a_loss_once", report_a_loss_once},
    {"fail_an_unlock", fail_an_unlock},
    {"fail_a_wait_of_the_shutdown", fail_a_wait_of_the_shutdown},
    {"fail_and_restore", fail_and_restore},
    {"fail_a_look", fail_a_look},
    {"use_most_of_it_twice", use_most_of_it_twice},
};

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_copy_whose_wait_fails_keeps_its_memory_until_it_has_run),
    cmocka_unit_test(pageable_memory_is_released_after_the_transfer_even_if_the_wait_fails),
    cmocka_unit_test(memory_in_use_stays_where_one_stream_reports_a_loss_and_the_device_works),
    cmocka_unit_test(memory_that_cannot_be_unlocked_is_still_returned_to_its_owner),
    cmocka_unit_test(a_shutdown_waits_again_for_the_device_if_a_wait_fails),
    cmocka_unit_test(a_failed_operation_restores_the_current_context),
    cmocka_unit_test(a_failed_internal_query_does_not_change_the_error_record),
    cmocka_unit_test(out_of_memory_waits_for_released_memory_and_tries_again),
};
SUITE_AND_SCENARIOS(faults, tests, scenarios);
