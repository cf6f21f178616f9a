/* test_shortage.c: where memory is short, idle memory is found, also beside busy streams. */
#include "crowd.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- where memory is short ---- */

#define MANY_ROUNDS 65 /* more than there are allocations between two drains */

/* The stream is held until the wait for memory has made many rounds. */
static struct {
    struct fixture *f;
    gg_stream *stream;
    void *gate;
} slow;
static int rounds;

static int open_after_many_rounds(void)
{
    if (++rounds == MANY_ROUNDS) {
        gate_open(slow.gate);
        pass_unnoticed(slow.f, slow.stream);
    }
    return 0;
}

/* On a slow machine the wait ends before the rounds are over: then another one goes on with them. */
static gg_status alloc_in_many_rounds(struct fixture *f, enum gg_memory_kind kind,
                                      gg_stream *stream, gg_memory **out)
{
    gg_status status;
    gg_set_wait_hook(open_after_many_rounds);
    do
        status = gg_memory_alloc(f->device, kind, BLOCK, stream, out);
    while (status == GG_ERR_OUT_OF_MEMORY && rounds < MANY_ROUNDS + 20);
    gg_set_wait_hook(NULL);
    return status;
}

static void keep_slow(struct fixture *f, gg_stream *stream, void *gate)
{
    slow.f = f;
    slow.stream = stream;
    slow.gate = gate;
}

static void memory_that_becomes_free_after_many_rounds_is_found(void **state)
{
    struct fixture *f = *state;
    static atomic_int released;
    gg_memory *memory = alloc_pinned(f, BLOCK), *found = NULL;
    keep_slow(f, f->second, hold_first(f, f->second)); /* opened before that of f->stream */
    void *gate = hold(f, f->stream);
    gg_memory_release(wrap(f, f->stream, &released)); /* there is always something to drain */
    assert_int_equal(gg_memory_record_use(memory, f->second), GG_OK);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_PINNED,
                                       figures_of(f->device, GG_MEMORY_PINNED).reserved_bytes),
                     GG_OK);
    gg_memory_release(memory);
    const gg_status status = alloc_in_many_rounds(f, GG_MEMORY_PINNED, NULL, &found);
    gate_open(gate);
    assert_int_equal(status, GG_OK);
    assert_true(rounds >= MANY_ROUNDS);
    gg_memory_release(found);
}

/* The pool does not keep a block of this size: before it is freed, it waits for its use, then for its whole stream. */
static void a_large_block_may_wait_twice_for_its_stream(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL, *found = NULL;
    gg_stream *stream = new_stream(f);
    if (gg_memory_alloc(f->device, GG_MEMORY_DEVICE, (size_t)257 << 20, stream, &memory))
        skip_because("the device has less than 257 MiB");
    void *gate = hold(f, stream);
    gg_event *used = new_event(f, 0);
    assert_int_equal(gg_memory_record_use(memory, stream), GG_OK);
    assert_int_equal(gg_event_record(used, stream), GG_OK);
    gg_memory_release(memory);
    new_stream(f); /* drains: it waits for its use */
    keep_slow(f, stream, hold(f, stream));
    gate_open(gate);
    while (gg_event_query(used) == GG_NOT_READY)
        sched_yield();
    for (int i = 0; i < 8; i++) /* a simulated driver may report four times that the stream is busy */
        new_stream(f);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, figures(f).reserved_bytes),
                     GG_OK);
    const gg_status status = alloc_in_many_rounds(f, GG_MEMORY_DEVICE, f->second, &found);
    gate_open(slow.gate);
    assert_int_equal(status, GG_OK);
    gg_memory_release(found);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, 0), GG_OK);
}

static int interrupt_after_some_rounds(void)
{
    return ++rounds > 5;
}

static void idle_blocks_stay_usable_after_an_allocation_that_failed_beside_a_busy_stream(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory[2], *larger = NULL;
    for (int i = 0; i < 2; i++)
        memory[i] = alloc(f, BLOCK, f->second);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, figures(f).reserved_bytes),
                     GG_OK);
    gg_memory_release(memory[0]);
    gg_memory_release(memory[1]);
    finish(f->second);
    void *gate = hold(f, f->stream);
    gg_set_wait_hook(interrupt_after_some_rounds);
    if (!gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 2 * BLOCK, f->second, &larger))
        gg_memory_release(larger); /* blocks could be freed beside the busy stream */
    rounds = 0;
    const gg_status status =
        gg_memory_alloc(f->device, GG_MEMORY_DEVICE, BLOCK, f->second, &memory[0]);
    gg_set_wait_hook(NULL);
    gate_open(gate);
    assert_int_equal(status, GG_OK);
    gg_memory_release(memory[0]);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, 0), GG_OK);
}

/* A trim beside a busy stream, then an allocation within the limit: its status. */
static gg_status alloc_after_trim(struct fixture *f, enum gg_memory_kind kind, size_t nbytes)
{
    gg_stream *stream = kind == GG_MEMORY_DEVICE ? f->second : NULL;
    gg_memory *memory = NULL;
    assert_int_equal(gg_memory_alloc(f->device, kind, nbytes, stream, &memory), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(gg_pool_set_limit(f->device, kind, figures_of(f->device, kind).reserved_bytes),
                     GG_OK);
    finish(f->second);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_pool_trim(f->device, kind, 0), GG_OK);
    gg_set_wait_hook(interrupt_after_some_rounds);
    const gg_status status = gg_memory_alloc(f->device, kind, nbytes, stream, &memory);
    gg_set_wait_hook(NULL);
    gate_open(gate);
    if (!status)
        gg_memory_release(memory);
    assert_int_equal(gg_pool_set_limit(f->device, kind, 0), GG_OK);
    return status;
}

static void a_trimmed_block_is_used_again_where_memory_is_short(void **state)
{
    assert_int_equal(alloc_after_trim(*state, GG_MEMORY_DEVICE, BLOCK), GG_OK);
}

static void a_trimmed_slab_is_used_again_where_memory_is_short(void **state)
{
    assert_int_equal(alloc_after_trim(*state, GG_MEMORY_DEVICE, 4096), GG_OK);
}

static void trimmed_pinned_memory_is_used_again_where_memory_is_short(void **state)
{
    assert_int_equal(alloc_after_trim(*state, GG_MEMORY_PINNED, BLOCK), GG_OK);
}

static void a_release_threshold_does_not_add_memory_beside_a_busy_stream(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory[3];
    uint64_t most = 0;
    need_cached_blocks(f);
    assert_int_equal(gg_pool_set_release_threshold(f->device, GG_MEMORY_DEVICE, 2 * BLOCK), GG_OK);
    void *gate = hold(f, f->stream);
    for (int step = 0; step < 20; step++) {
        for (int i = 0; i < 3; i++)
            memory[i] = alloc(f, BLOCK, f->second);
        for (int i = 0; i < 3; i++)
            gg_memory_release(memory[i]);
        finish(f->second); /* drains */
        const uint64_t blocks = figures(f).reserved_bytes / BLOCK;
        most = blocks > most ? blocks : most;
    }
    gate_open(gate);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    const uint64_t left = figures(f).cached_bytes;
    assert_int_equal(gg_pool_set_release_threshold(f->device, GG_MEMORY_DEVICE, UINT64_MAX), GG_OK);
    assert_in_range(most, 1, 3);
    assert_in_range(left, 0, 2 * BLOCK);
}

static void the_block_of_an_idle_stream_comes_before_those_of_busy_ones(void **state)
{
    struct fixture *f = *state;
    static struct crowd crowd;
    need_crowd(f);
    gg_memory *memory[CROWD + 1];
    gg_stream *idle = new_stream(f), *stream = new_stream(f);
    make_crowd(f, &crowd);
    memory[CROWD] = alloc(f, BLOCK, idle);
    for (int i = 0; i < CROWD; i++)
        memory[i] = alloc(f, BLOCK, crowd.streams[i]);
    for (int i = 0; i <= CROWD; i++)
        gg_memory_release(memory[i]);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, figures(f).reserved_bytes),
                     GG_OK);
    gg_memory *found = alloc(f, BLOCK, stream);
    assert_int_equal(fill_bytes(found, 1, stream), GG_OK);
    finish(stream); /* although the others are held */
    gg_memory_release(found);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, 0), GG_OK);
    release_crowd(f, &crowd);
}

/* ---- a user's allocator ---- */

static gg_memory *whole; /* all that it has */
static int in_use;

/* What becomes idle when the allocator is asked for more. */
static struct {
    struct fixture *f;
    void *gate;
    bool other_drains;
    pthread_t thread;
    atomic_int drains;
} meanwhile;

static void linger(void *owner)
{
    (void)owner;
    atomic_store(&meanwhile.drains, 1);
    nanosleep(&(struct timespec){0, 50000000}, NULL); /* any time would do */
}

static void *drain_slowly(void *unused)
{
    gg_stream *stream = NULL;
    (void)unused;
    gg_stream_create(meanwhile.f->device, 0, 0, &stream);
    gg_stream_release(stream);
    return NULL;
}

/* Returns while another thread drains. */
static void let_another_thread_drain(struct fixture *f)
{
    static char bytes[64];
    gg_memory *memory = NULL;
    assert_int_equal(
        gg_memory_wrap(f->device, GG_MEMORY_DEVICE, bytes, sizeof bytes, linger, NULL, &memory),
        GG_OK);
    assert_int_equal(gg_memory_record_use(memory, f->stream), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(pthread_create(&meanwhile.thread, NULL, drain_slowly, NULL), 0);
    while (!atomic_load(&meanwhile.drains))
        sched_yield();
}

static gg_status alloc_only_one(void *user, gg_device *device, size_t nbytes, gg_stream *stream,
                                void **out)
{
    (void)user, (void)device, (void)nbytes;
    if (!in_use) {
        in_use = 1;
        *out = gg_memory_pointer(whole);
        return GG_OK;
    }
    if (meanwhile.gate) {
        gate_open(meanwhile.gate);
        pass_unnoticed(meanwhile.f, stream);
        if (meanwhile.other_drains)
            let_another_thread_drain(meanwhile.f);
        meanwhile.gate = NULL;
    }
    return GG_ERR_OUT_OF_MEMORY;
}

static void free_only_one(void *user, gg_device *device, void *pointer, size_t nbytes)
{
    (void)user, (void)device, (void)pointer, (void)nbytes;
    in_use = 0;
}

/* Its memory becomes idle when the second allocation asks for more. */
static void assert_gets_idle_memory_back(struct fixture *f, bool other_drains)
{
    static const struct gg_allocator allocator = {
        .struct_size = sizeof allocator, .alloc = alloc_only_one, .free = free_only_one};
    gg_memory *memory = NULL;
    whole = new_memory(f, BLOCK);
    finish(f->stream);
    meanwhile.f = f;
    meanwhile.other_drains = other_drains;
    assert_int_equal(gg_set_allocator(&allocator), GG_OK);
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, BLOCK, f->second, &memory);
    if (!status) {
        meanwhile.gate = hold(f, f->second);
        assert_int_equal(gg_memory_record_use(memory, f->second), GG_OK);
        gg_memory_release(memory);
        status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, BLOCK, f->second, &memory);
    }
    gg_set_allocator(NULL);
    if (other_drains)
        pthread_join(meanwhile.thread, NULL);
    assert_int_equal(status, GG_OK);
    gg_memory_release(memory);
}

static void a_users_allocator_gets_all_idle_memory_back_before_it_has_too_little(void **state)
{
    assert_gets_idle_memory_back(*state, false);
}

static void a_users_allocator_gets_its_memory_back_while_another_thread_drains(void **state)
{
    assert_gets_idle_memory_back(*state, true);
}

/* ---- a device without free memory ---- */

#define SMALL_DEVICE ((uint64_t)64 << 20)

/* Export, as many times as fill the device twice, memory whose users are not known. */
static int export_more_than_there_is(size_t nbytes)
{
    gg_device *device;
    uint64_t free = 0, total = 0;
    if (gg_device_get(NULL, 0, &device))
        return 1;
    if (!gg_device_supports(device, GG_OP_device_memory_info))
        return not_here("device_memory_info is not supported");
    if (gg_device_memory_info(device, &free, &total) || total > SMALL_DEVICE)
        return not_here("the device is not as small as is asked of a simulated one");
    for (uint64_t i = 0; i < 2 * SMALL_DEVICE / nbytes; i++) {
        gg_memory *memory = NULL;
        if (gg_memory_alloc(device, GG_MEMORY_DEVICE, nbytes, NULL, &memory) ||
            gg_memory_record_use(memory, NULL)) {
            printf("allocation %d: %s\n", (int)i, last_error().message);
            return 2;
        }
        gg_memory_release(memory);
    }
    return 0;
}

static int export_parts_of_segments(void)
{
    return export_more_than_there_is((size_t)512 << 10);
}

static int export_blocks_of_slabs(void)
{
    return export_more_than_there_is((size_t)64 << 10);
}

static int export_async(void)
{
    gg_device *device;
    setenv("GPUGLUE_ALLOCATOR", "async", 1);
    if (gg_device_get(NULL, 0, &device) || !gg_device_supports(device, GG_OP_mem_alloc_async))
        return scenario_without(GG_OP_mem_alloc_async);
    return export_more_than_there_is((size_t)8 << 20);
}

static void assert_silent_on_a_small_device(const char *scenario)
{
    char output[512], size[32];
    snprintf(size, sizeof size, "%llu", (unsigned long long)SMALL_DEVICE);
    const int result = start_scenario(scenario, "GPUGLUE_SIM_MEMORY", size, output, sizeof output);
    assert_string_equal(output, "");
    assert_int_equal(result, 0);
}

static void parts_of_segments_that_unknown_streams_used_are_reused_on_a_full_device(void **state)
{
    (void)state;
    assert_silent_on_a_small_device("export_parts_of_segments");
}

static void blocks_of_slabs_that_unknown_streams_used_are_reused_on_a_full_device(void **state)
{
    (void)state;
    assert_silent_on_a_small_device("export_blocks_of_slabs");
}

static void async_memory_that_unknown_streams_used_is_reused_on_a_full_device(void **state)
{
    (void)state;
    assert_silent_on_a_small_device("export_async");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_that_becomes_free_after_many_rounds_is_found),
    cmocka_unit_test(a_large_block_may_wait_twice_for_its_stream),
    cmocka_unit_test(idle_blocks_stay_usable_after_an_allocation_that_failed_beside_a_busy_stream),
    cmocka_unit_test(a_trimmed_block_is_used_again_where_memory_is_short),
    cmocka_unit_test(a_trimmed_slab_is_used_again_where_memory_is_short),
    cmocka_unit_test(trimmed_pinned_memory_is_used_again_where_memory_is_short),
    cmocka_unit_test(a_release_threshold_does_not_add_memory_beside_a_busy_stream),
    cmocka_unit_test(the_block_of_an_idle_stream_comes_before_those_of_busy_ones),
    cmocka_unit_test(a_users_allocator_gets_all_idle_memory_back_before_it_has_too_little),
    cmocka_unit_test(a_users_allocator_gets_its_memory_back_while_another_thread_drains),
    cmocka_unit_test(parts_of_segments_that_unknown_streams_used_are_reused_on_a_full_device),
    cmocka_unit_test(blocks_of_slabs_that_unknown_streams_used_are_reused_on_a_full_device),
    cmocka_unit_test(async_memory_that_unknown_streams_used_is_reused_on_a_full_device),
};
static const struct scenario scenarios[] = {{"waiting_crowd", waiting_crowd},
                                            {"export_parts_of_segments", export_parts_of_segments},
                                            {"export_blocks_of_slabs", export_blocks_of_slabs},
                                            {"export_async", export_async}};
SUITE_AND_SCENARIOS(shortage, tests, scenarios);
