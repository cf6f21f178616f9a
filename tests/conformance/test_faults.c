/* test_faults.c: what a call that fails leaves behind: nothing that the device still writes to is let
 * go, and what was current stays so. The faults are the simulated drivers' own, by the names that
 * either vendor gives to a function; where no such variable is read, a test is skipped. */
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

static void assert_silent_with(const char *name, const char *variable, const char *value)
{
    char output[4096];
    int result = start_scenario(name, variable, value, output, sizeof output);
    if (result == 77)
        skip();
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

/* The first query is this probe's, the second that of the copy's wait. */
static int fail_a_wait_on_pinned_memory(void)
{
    static struct scene scene; /* left to the process */
    atomic_int released = 0;
    static void *gate;
    struct gg_end dst, src;
    if (set_scene(&scene))
        return 1;
    if (gg_stream_query(scene.stream) <= GG_NOT_READY)
        return 77; /* nothing fails here by a variable */
    dst = (struct gg_end){.memory = scene.memory, .release = count_release, .owner = &released};
    src = (struct gg_end){.memory = scene.pinned, .release = count_release, .owner = &released};
    gate = gate_new();
    if (gg_stream_host_func(scene.stream, gate_wait, gate))
        return wrong("no gate");
    if (gg_copy(&dst, &src, NBYTES, scene.stream, 0) <= GG_NOT_READY)
        return wrong("the copy did not fail");
    gg_memory_release(scene.memory);
    gg_memory_release(scene.pinned);
    if (kept_blocks(scene.device) != 2 || atomic_load(&released))
        return wrong("let go before the copy has run");
    gate_open(gate);
    if (gg_stream_wait(scene.stream, GG_FOREVER) || kept_blocks(scene.device) != 0)
        return wrong("the memory is not given back after the copy");
    return atomic_load(&released) == 2 ? 0 : wrong("the owners were not released once");
}

static void a_copy_whose_wait_fails_keeps_what_it_needs_until_it_has_run(void **state)
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

/* The second query is that of the wait before the transfer, the third that of the wait behind it. */
static int fail_a_wait_on_pageable_memory(void)
{
    static struct scene scene; /* left to the process */
    struct gg_end dst, src;
    gg_event *filled;
    written = calloc(1, MANY_BYTES);
    if (!written || set_scene(&scene))
        return 1;
    if (gg_stream_query(scene.stream) <= GG_NOT_READY)
        return 77;
    dst = (struct gg_end){.host = written, .release = look_at_last_byte};
    src = (struct gg_end){.memory = scene.memory};
    if (gg_event_create(scene.device, 0, &filled) || fill_bytes(scene.memory, 7, scene.stream) ||
        gg_event_record(filled, scene.stream) ||
        gg_event_wait(filled, GG_FOREVER)) /* asks for the event, which is not counted here */
        return wrong("no fill");
    if (gg_copy(&dst, &src, MANY_BYTES, scene.stream, 0) <= GG_NOT_READY)
        return wrong("the copy did not fail");
    if (last_byte != 7)
        return wrong("let go before the copy has run");
    gg_event_release(filled);
    free(written);
    return 0;
}

static void pageable_memory_is_let_go_after_the_transfer_also_where_the_wait_fails(void **state)
{
    (void)state;
    assert_silent_with("fail_a_wait_on_pageable_memory", "GPUGLUE_SIM_FAIL",
                       "cuStreamQuery:1=1,cuStreamQuery:3=1,hipStreamQuery:1=1,hipStreamQuery:3=1");
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
    static unsigned char pages[3 * 65536]; /* whole ones of its own, wherever they begin */
    static atomic_int released;
    gg_device *device;
    gg_memory *memory = NULL;
    unsigned char *whole = pages + (65536 - (uintptr_t)pages % 65536);
    if (gg_device_get(NULL, 0, &device))
        return wrong("no device");
    if (!gg_device_supports(device, GG_OP_mem_register))
        return 77;
    if (gg_memory_register(device, whole, 65536, count_release, &released, &memory))
        return wrong("not registered");
    gg_set_tracer(&tracer);
    gg_memory_release(memory);
    if (gg_device_trim(device) || gg_device_synchronize(device) || gg_device_trim(device))
        return wrong("not trimmed");
    if (!of_unlocking)
        return 77; /* nothing fails here by a variable */
    return atomic_load(&released) ? wrong("let go while the driver takes it for locked") : 0;
}

static void what_cannot_be_unlocked_stays_its_owners(void **state)
{
    (void)state;
    assert_silent_with("fail_an_unlock", "GPUGLUE_SIM_FAIL",
                       "cuMemHostUnregister:1=1,hipHostUnregister:1=1");
}

/* ---- what is current ---- */

/* On a thread for which nobody has made anything current: what is current is device 0, which is not
 * the one that the calls need. Returns what is wrong, or NULL. */
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
        return ""; /* nothing fails here by a variable */
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
        return 77;
    if (gg_device_get(NULL, 1, &other) ||
        pthread_create(&thread, NULL, fail_on_another_device, other))
        return wrong("no other device");
    pthread_join(thread, &problem);
    if (!problem)
        return 0;
    return *(char *)problem ? wrong(problem) : 77;
}

static void what_is_current_is_restored_also_when_an_operation_fails(void **state)
{
    (void)state;
    assert_silent_with("fail_and_restore", "GPUGLUE_SIM_FAIL",
                       "cuMemsetD8Async:1+=1,cuMemcpyHtoDAsync_v2:1+=1,cuStreamQuery:1+=1,"
                       "hipMemsetD8Async:1+=1,hipMemcpyHtoDAsync:1+=1,hipStreamQuery:1+=1");
}

/* ---- the record ---- */

/* The look at a busy stream fails, on the engine's own account. */
static int fail_a_look(void)
{
    static struct scene scene; /* left to the process */
    static void *gate;
    char before[sizeof last_error().message];
    if (set_scene(&scene))
        return 1;
    gate = gate_new();
    if (gg_stream_host_func(scene.stream, gate_wait, gate))
        return wrong("no gate");
    if (!gg_fill(scene.memory, 0, NULL, 1, 1, scene.stream))
        return wrong("a pattern at NULL was taken");
    memcpy(before, last_error().message, sizeof before);
    gg_memory_release(scene.pinned); /* or there is nothing to look for */
    if (gg_device_trim(scene.device))
        return wrong("no trim");
    if (strcmp(before, last_error().message) != 0)
        return wrong("a look of the engine's own wrote the record");
    gate_open(gate);
    return gg_stream_query(scene.stream) <= GG_NOT_READY ? 77 : 0; /* did it fail? */
}

static void a_look_of_the_engine_that_fails_leaves_the_record_alone(void **state)
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

/* Most of the device, released while work still uses it, which ends when there is no more memory. */
static int use_most_of_it_twice(void)
{
    static const struct gg_tracer tracer = {.struct_size = sizeof tracer, .post = open_when_refused};
    static struct scene scene; /* left to the process */
    uint64_t free = 0, total = 0;
    static gg_memory *most, *again;
    if (set_scene(&scene))
        return 1;
    if (gg_device_memory_info(scene.device, &free, &total) ||
        gg_memory_alloc(scene.device, GG_MEMORY_DEVICE, (size_t)(free / 4 * 3), NULL, &most))
        return 77;
    opened_when_memory_is_out = gate_new();
    if (gg_stream_host_func(scene.stream, gate_wait, opened_when_memory_is_out) ||
        gg_fill(most, 0, "x", 1, 64, scene.stream))
        return wrong("no work");
    gg_memory_release(most);
    gg_set_tracer(&tracer);
    if (gg_memory_alloc(scene.device, GG_MEMORY_DEVICE, (size_t)(free / 4 * 3), NULL, &again))
        return wrong("what was released did not come back");
    if (atomic_load(&refusals) != 1)
        return wrong("there was memory enough");
    gg_set_tracer(NULL);
    gg_memory_release(again);
    return kept_blocks(scene.device) == 0 ? 0 : wrong("it is not given back");
}

static void out_of_memory_waits_for_what_was_released_and_tries_again(void **state)
{
    (void)state;
    assert_silent_with("use_most_of_it_twice", "GPUGLUE_SIM_MEMORY", SMALL_DEVICE);
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"fail_a_wait_on_pinned_memory", fail_a_wait_on_pinned_memory},
        {"fail_a_wait_on_pageable_memory", fail_a_wait_on_pageable_memory},
        {"fail_an_unlock", fail_an_unlock},
        {"fail_and_restore", fail_and_restore},
        {"fail_a_look", fail_a_look},
        {"use_most_of_it_twice", use_most_of_it_twice},
    };
    struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_whose_wait_fails_keeps_what_it_needs_until_it_has_run),
        cmocka_unit_test(pageable_memory_is_let_go_after_the_transfer_also_where_the_wait_fails),
        cmocka_unit_test(what_cannot_be_unlocked_stays_its_owners),
        cmocka_unit_test(what_is_current_is_restored_also_when_an_operation_fails),
        cmocka_unit_test(a_look_of_the_engine_that_fails_leaves_the_record_alone),
        cmocka_unit_test(out_of_memory_waits_for_what_was_released_and_tries_again),
    };
    int scenario = run_scenario(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
    if (scenario >= 0)
        return scenario;
    return run_suite(argc, argv, "faults", tests, sizeof tests / sizeof tests[0]);
}
