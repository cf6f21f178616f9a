/* test_threads.c: every function may be called from any thread. Most of this is for
 * ThreadSanitizer. */
#include "conformance.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define THREADS 8
#define RACERS 32

/* State that the threads of a test share. */
struct crowd {
    struct fixture *f;
    gg_stream *stream;
    gg_event *event;
    gg_memory *memory;
    unsigned shift; /* of sizes */
    int rounds;
    uint64_t end; /* of the rounds, by now_ns; 0: none. A GPU's driver takes milliseconds for a large pinned block. */
    atomic_int failures, next;
};

/* Runs @p body in THREADS threads at once; none of them may find an error. */
static void run_crowd(struct crowd *crowd, void *(*body)(void *))
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, crowd), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&crowd->failures), 0);
}

static void expect(struct crowd *crowd, bool right)
{
    if (!right)
        atomic_fetch_add(&crowd->failures, 1);
}

static void *round_trips(void *argument)
{
    struct crowd *crowd = argument;
    unsigned char value = (unsigned char)(1 + atomic_fetch_add(&crowd->next, 1)), got[256];
    for (int i = 0; i < 50; i++) {
        gg_memory *memory = NULL;
        memset(got, 0, sizeof got);
        expect(crowd, !gg_memory_alloc(crowd->f->device, GG_MEMORY_DEVICE, 256, NULL, &memory));
        expect(crowd, !fill_bytes(memory, value, crowd->stream));
        expect(crowd, !copy(host_at(got), at(memory, 0), 256, crowd->stream, 0));
        expect(crowd, got[0] == value && got[255] == value);
        gg_memory_release(memory);
    }
    return NULL;
}

static void threads_may_share_a_stream(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd = {.f = f, .stream = f->stream};
    run_crowd(&crowd, round_trips);
}

static void threads_may_share_the_default_stream(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd = {.f = f};
    run_crowd(&crowd, round_trips);
}

static void *share_memory(void *argument)
{
    struct crowd *crowd = argument;
    size_t part = (size_t)atomic_fetch_add(&crowd->next, 1) * 64;
    unsigned char value = (unsigned char)(part + 1), got[64];
    for (int i = 0; i < 50; i++) {
        expect(crowd, !gg_fill(crowd->memory, part, &value, 1, 64, NULL));
        expect(crowd, !copy(host_at(got), at(crowd->memory, part), 64, NULL, 0));
        expect(crowd, got[0] == value && got[63] == value);
        gg_memory_retain(crowd->memory);
        gg_memory_release(crowd->memory);
    }
    return NULL;
}

static void threads_may_share_memory(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd = {.f = f, .memory = new_memory(f, (size_t)THREADS * 64)};
    run_crowd(&crowd, share_memory);
}

#define PAGES (1 << 16)

static void unmap_pages(void *pages)
{
    munmap(pages, PAGES);
}

/* Mapped by the driver and by the test, the blocks become neighbours. */
static void *register_and_allocate(void *argument)
{
    struct crowd *crowd = argument;
    const int thread = atomic_fetch_add(&crowd->next, 1);
    for (int i = 0; i < crowd->rounds && (!crowd->end || now_ns() < crowd->end); i++) {
        gg_memory *pinned = NULL, *registered = NULL;
        void *pages = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        expect(crowd, !gg_memory_host_register(crowd->f->device, pages, PAGES, unmap_pages, pages,
                                               &registered));
        expect(crowd, !gg_memory_alloc(crowd->f->device, GG_MEMORY_PINNED,
                                       (size_t)PAGES << (crowd->shift + (unsigned)(i + thread) % 4),
                                       NULL, &pinned));
        gg_memory_release(registered);
        gg_memory_release(pinned);
        if (i % 4 == thread % 4)
            expect(crowd, !gg_device_trim(crowd->f->device));
    }
    return NULL;
}

static void threads_may_register_memory_while_others_allocate_pinned_memory(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_mem_register);
    struct crowd crowd = {.f = f, .rounds = 50};
    run_crowd(&crowd, register_and_allocate);
}

/* With the direct allocator: the driver frees each block, and another thread maps its addresses at once. */
static int register_beside_freed_memory(void)
{
    static struct fixture f;
    const bool full = getenv("GPUGLUE_TEST_FULL");
    const uint64_t end = now_ns() + (full ? 5000000000u : 1500000000u);
    struct crowd crowd = {.f = &f, .shift = 6, .rounds = full ? 2000 : 500, .end = end};
    pthread_t threads[THREADS];
    if (gg_device_get(NULL, 0, &f.device) || !gg_device_supports(f.device, GG_OP_mem_register))
        return scenario_without(GG_OP_mem_register);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, register_and_allocate, &crowd))
            return 3;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return atomic_load(&crowd.failures) > 0;
}

static void threads_may_register_memory_where_others_have_freed_theirs(void **state)
{
    char output[512];
    (void)state;
    const int result = start_scenario("register_beside_freed_memory", "GPUGLUE_ALLOCATOR", "direct",
                                      output, sizeof output);
    assert_string_equal(output, "");
    assert_int_equal(result, 0);
}

static void *own_streams(void *argument)
{
    struct crowd *crowd = argument;
    for (int i = 0; i < 20; i++) {
        gg_stream *stream = NULL;
        gg_event *event = NULL;
        expect(crowd, !gg_stream_create(crowd->f->device, 0, 0, &stream));
        expect(crowd, !gg_event_create(crowd->f->device, 0, &event));
        expect(crowd, !gg_stream_wait_stream(stream, crowd->stream));
        expect(crowd, !gg_event_record(event, stream));
        expect(crowd, !gg_stream_wait_event(crowd->stream, event));
        expect(crowd, gg_stream_query(stream) <= GG_NOT_READY);
        gg_stream_release(stream);
        expect(crowd, !gg_event_wait(event, GG_FOREVER));
        gg_event_release(event);
    }
    return NULL;
}

static void threads_may_create_and_release_streams_and_events(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd = {.f = f, .stream = f->stream};
    run_crowd(&crowd, own_streams);
}

static void *share_event(void *argument)
{
    struct crowd *crowd = argument;
    for (int i = 0; i < 50; i++) {
        expect(crowd, !gg_event_record(crowd->event, crowd->stream));
        expect(crowd, gg_event_query(crowd->event) <= GG_NOT_READY);
        expect(crowd, !gg_stream_wait_event(crowd->f->second, crowd->event));
        expect(crowd, !gg_event_wait(crowd->event, GG_FOREVER));
    }
    return NULL;
}

static void threads_may_share_an_event(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd = {.f = f, .stream = f->stream, .event = new_event(f, 0)};
    run_crowd(&crowd, share_event);
}

static void add_one(void *argument)
{
    atomic_fetch_add((atomic_int *)argument, 1);
}

static void *queue_host_functions(void *argument)
{
    struct crowd *crowd = argument;
    for (int i = 0; i < 200; i++)
        expect(crowd, !gg_stream_host_func(crowd->stream, add_one, &crowd->next));
    return NULL;
}

static void threads_may_queue_host_functions_on_one_stream(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd = {.f = f, .stream = f->stream};
    need(f, GG_OP_stream_host_func);
    run_crowd(&crowd, queue_host_functions);
    assert_int_equal(gg_stream_wait(f->stream, GG_FOREVER), GG_OK);
    assert_int_equal(atomic_load(&crowd.next), THREADS * 200);
}

static void *wait_for_all(void *argument)
{
    struct crowd *crowd = argument;
    atomic_fetch_add(&crowd->next, 1);
    expect(crowd, !gg_event_wait(crowd->event, GG_FOREVER));
    expect(crowd, !gg_stream_wait(crowd->stream, GG_FOREVER));
    return NULL;
}

static void *open_when_all_wait(void *argument)
{
    struct crowd *crowd = argument;
    while (atomic_load(&crowd->next) < THREADS)
        gg_stream_query(crowd->f->second);
    gate_open(crowd->f->gates[0]);
    return NULL;
}

static void threads_may_wait_for_the_same_work(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd = {.f = f, .stream = f->stream, .event = new_event(f, 0)};
    pthread_t opener;
    hold(f, f->stream);
    assert_int_equal(gg_event_record(crowd.event, f->stream), GG_OK);
    assert_int_equal(pthread_create(&opener, NULL, open_when_all_wait, &crowd), 0);
    run_crowd(&crowd, wait_for_all);
    pthread_join(opener, NULL);
}

static void *change_current(void *argument)
{
    struct crowd *crowd = argument;
    for (int i = 0; i < 200; i++) {
        gg_scope *scope = NULL;
        gg_stream *now = NULL;
        expect(crowd, !gg_scope_enter(crowd->f->device, crowd->stream, &scope));
        expect(crowd, !gg_current_stream(crowd->f->device, &now) && now == crowd->stream);
        expect(crowd, !gg_scope_leave(scope));
    }
    return NULL;
}

static void each_thread_has_its_own_scopes(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd = {.f = f, .stream = f->stream};
    run_crowd(&crowd, change_current);
}

/* No backend has all attributes: an error is reported through what the backend got from the library. */
static bool attributes_can_be_queried(gg_device *device)
{
    bool right = true;
    for (int i = 0; i < GG_ATTR_COUNT; i++) {
        int64_t value;
        const gg_status status = gg_device_attribute(device, (gg_attribute)i, &value);
        right = right && (!status || status == GG_ERR_UNSUPPORTED);
    }
    return right;
}

static void *ask(void *argument)
{
    struct crowd *crowd = argument;
    for (int i = 0; i < 20; i++) {
        struct gg_device_info info = {.struct_size = sizeof info};
        struct gg_reports *reports = NULL;
        gg_device *device = NULL;
        expect(crowd, !gg_device_info(crowd->f->device, &info));
        expect(crowd, !gg_device_find(backend_name(), &device) && device == crowd->f->device);
        expect(crowd, !gg_probe(GG_PASSIVE, &reports));
        gg_reports_free(reports);
        expect(crowd, attributes_can_be_queried(crowd->f->device));
        expect(crowd, !gg_device_synchronize(crowd->f->device));
    }
    return NULL;
}

static void threads_may_query_backends_and_devices(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd = {.f = f};
    run_crowd(&crowd, ask);
}

/* ---- the first use ---- */

static atomic_int racers_ready, race_failures;

static void *race(void *argument)
{
    gg_device *device = NULL;
    gg_stream *stream = NULL;
    gg_memory *memory = NULL;
    unsigned char value = 9, got = 0;
    (void)argument;
    atomic_fetch_add(&racers_ready, 1);
    while (atomic_load(&racers_ready) < RACERS)
        sched_yield();
    if (gg_current_device(&device) || gg_stream_create(device, 0, 0, &stream) ||
        gg_memory_alloc(device, GG_MEMORY_DEVICE, 1, NULL, &memory) ||
        gg_fill(memory, 0, &value, 1, 1, stream) ||
        copy(host_at(&got), at(memory, 0), 1, stream, 0) || got != value) {
        fprintf(stderr, "%s\n", last_error().message);
        atomic_fetch_add(&race_failures, 1);
    }
    gg_memory_release(memory);
    gg_stream_release(stream);
    return NULL;
}

static int first_use(void)
{
    pthread_t threads[RACERS];
    for (int i = 0; i < RACERS; i++)
        if (pthread_create(&threads[i], NULL, race, NULL))
            return 3;
    for (int i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    gg_shutdown(GG_FOREVER);
    return atomic_load(&race_failures) ? 1 : 0;
}

/* ---- the shutdown ---- */

struct busy_end {
    gg_device *device;
    gg_stream *stream, *held;
    gg_memory *memory;
    atomic_int next;
    atomic_int turns;
};

static gg_status one_turn(struct busy_end *end, int kind)
{
    gg_memory *memory = NULL;
    gg_stream *stream = NULL;
    gg_status status;
    switch (kind) {
    case 0:
        status = gg_memory_alloc(end->device, GG_MEMORY_DEVICE, 256, NULL, &memory);
        break;
    case 1:
        status = gg_stream_create(end->device, 0, 0, &stream);
        break;
    case 2:
        status = fill_bytes(end->memory, 1, end->stream);
        break;
    default:
        status = gg_stream_wait(end->held, GG_FOREVER);
    }
    gg_memory_release(memory);
    gg_stream_release(stream);
    return status;
}

/* Until the call is refused; each thread makes a different kind of call. */
static void *go_on(void *argument)
{
    struct busy_end *end = argument;
    int kind = atomic_fetch_add(&end->next, 1) % 4;
    gg_status status = GG_OK;
    while (!status) {
        atomic_fetch_add(&end->turns, 1);
        status = one_turn(end, kind);
    }
    return status == GG_ERR_SHUT_DOWN ? NULL : argument;
}

static int shut_down_under_threads(void)
{
    static struct busy_end end; /* its objects are left to the process */
    pthread_t threads[THREADS];
    static void *gate;
    void *problem = NULL;
    int problems = 0;
    gate = gate_new();
    if (gg_current_device(&end.device) || gg_stream_create(end.device, 1, 0, &end.stream) ||
        gg_stream_create(end.device, 1, 0, &end.held) ||
        gg_memory_alloc(end.device, GG_MEMORY_DEVICE, 64, NULL, &end.memory))
        return 1;
    if (gg_stream_host_func(end.held, gate_wait, gate))
        return scenario_without(GG_OP_stream_host_func);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, go_on, &end))
            return 3;
    while (atomic_load(&end.turns) < 10 * THREADS)
        sched_yield();
    gg_shutdown(GG_FOREVER);
    for (int i = 0; i < THREADS; i++)
        problems += pthread_join(threads[i], &problem) || problem;
    gate_open(gate);
    return problems;
}

static void a_shutdown_ends_calls_of_other_threads_and_is_silent(void **state)
{
    (void)state;
    assert_scenario_is_silent("shut_down_under_threads");
}

static void *wait_for_stream(void *stream)
{
    return gg_stream_wait(stream, GG_FOREVER) ? "the wait failed" : NULL;
}

/* A simulated driver complains of two threads that use one queue at once. */
static int queue_while_another_thread_waits(void)
{
    gg_device *device = NULL;
    gg_stream *stream = NULL;
    gg_memory *memory = NULL;
    void *gate = gate_new(), *problem = NULL;
    pthread_t thread;
    if (gg_device_get(NULL, 0, &device) || gg_stream_create(device, 0, 0, &stream) ||
        gg_memory_alloc(device, GG_MEMORY_DEVICE, 64, NULL, &memory))
        return 2;
    if (gg_stream_host_func(stream, gate_wait, gate))
        return scenario_without(GG_OP_stream_host_func);
    if (pthread_create(&thread, NULL, wait_for_stream, stream))
        return 3;
    bool right = true;
    for (int i = 0; i < 300; i++)
        right = right && !fill_bytes(memory, 1, stream) && gg_stream_query(stream) == GG_NOT_READY;
    gate_open(gate);
    pthread_join(thread, &problem);
    gg_stream_wait(stream, GG_FOREVER);
    gg_memory_release(memory);
    gg_stream_release(stream);
    gate_free(gate);
    return problem || !right ? 4 : 0;
}

static void work_may_be_queued_while_another_thread_waits(void **state)
{
    (void)state;
    assert_scenario_is_silent("queue_while_another_thread_waits");
}

static const struct scenario scenarios[] = {
    {"first_use", first_use},
    {"register_beside_freed_memory", register_beside_freed_memory},
    {"queue_while_another_thread_waits", queue_while_another_thread_waits},
    {"shut_down_under_threads", shut_down_under_threads}};

/* `make test-full` runs all of them. */
static void threads_may_race_for_the_first_use(void **state)
{
    const int races = getenv("GPUGLUE_TEST_FULL") ? 100 : 10;
    (void)state;
    for (int i = 0; i < races; i++)
        assert_scenario_is_silent("first_use");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(threads_may_share_a_stream),
    cmocka_unit_test(threads_may_share_the_default_stream),
    cmocka_unit_test(threads_may_share_memory),
    cmocka_unit_test(threads_may_register_memory_while_others_allocate_pinned_memory),
    cmocka_unit_test(threads_may_register_memory_where_others_have_freed_theirs),
    cmocka_unit_test(threads_may_create_and_release_streams_and_events),
    cmocka_unit_test(threads_may_share_an_event),
    cmocka_unit_test(threads_may_queue_host_functions_on_one_stream),
    cmocka_unit_test(threads_may_wait_for_the_same_work),
    cmocka_unit_test(work_may_be_queued_while_another_thread_waits),
    cmocka_unit_test(each_thread_has_its_own_scopes),
    cmocka_unit_test(threads_may_query_backends_and_devices),
    cmocka_unit_test(threads_may_race_for_the_first_use),
    cmocka_unit_test(a_shutdown_ends_calls_of_other_threads_and_is_silent),
};
SUITE_AND_SCENARIOS(threads, tests, scenarios);
