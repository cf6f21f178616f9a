/* test_pool_size.c: the release threshold, limits, and out of memory. */
#include "pool_blocks.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

/* ---- the release threshold ---- */

static void a_trim_releases_everything(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < SIZES; i++)
        alloc_and_free(f, sizes[i], f->stream);
    gg_memory_release(alloc_pinned(f, 5000));
    assert_true(figures(f).cached_blocks >= 2);
    assert_int_equal(gg_trim(), GG_OK);
    assert_int_equal(figures(f).reserved_bytes, 0);
    assert_int_equal(figures(f).cached_bytes, 0);
    assert_int_equal(figures_of(f->device, GG_MEMORY_PINNED).reserved_bytes, 0);
}

static void a_trim_keeps_the_given_bytes_and_blocks_in_use(void **state)
{
    struct fixture *f = *state;
    gg_memory *used = alloc(f, 100, f->stream);
    keep(f, used);
    for (size_t i = 1; i <= 4; i++)
        alloc_and_free(f, i * BLOCK, f->stream);
    assert_int_equal(gg_pool_trim(f->device, GG_MEMORY_DEVICE, 7 * BLOCK), GG_OK);
    assert_true(figures(f).cached_bytes <= 7 * BLOCK && figures(f).cached_bytes >= 3 * BLOCK);
    assert_int_equal(gg_pool_trim(f->device, GG_MEMORY_DEVICE, 0), GG_OK);
    assert_int_equal(figures(f).cached_bytes, 0);
    assert_int_equal(fill_bytes(used, 3, f->stream), GG_OK);
    assert_filled(f, used, 100, 3);
}

static void a_trim_while_work_runs_waits_for_nothing(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    keep(f, memory);
    alloc_and_free(f, BLOCK, f->second);
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 9, f->stream), GG_OK);
    assert_int_equal(gg_trim(), GG_OK);
    assert_true(busy(f->stream));
    gate_open(gate);
    assert_filled(f, memory, BLOCK, 9);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(figures(f).cached_blocks + figures(f).retired_blocks, 0);
}

static void the_pool_keeps_no_more_than_its_threshold(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(gg_pool_set_release_threshold(f->device, GG_MEMORY_DEVICE, 4 * BLOCK), GG_OK);
    for (size_t i = 1; i <= 4; i++)
        alloc_and_free(f, i * BLOCK, f->stream);
    finish(f->stream); /* a wait passes the retired objects */
    uint64_t cached = figures(f).cached_bytes;
    assert_int_equal(gg_pool_set_release_threshold(f->device, GG_MEMORY_DEVICE, UINT64_MAX), GG_OK);
    assert_true(cached <= 4 * BLOCK);
}

/* ---- limits ---- */

static void end_of_limit(struct fixture *f)
{
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, 0), GG_OK);
}

static void an_allocation_beyond_the_limit_is_out_of_memory(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL;
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, 8 * BLOCK), GG_OK);
    gg_status first = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 6 * BLOCK, f->stream, &memory);
    gg_memory *second = NULL;
    gg_status refused = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 6 * BLOCK, f->stream, &second);
    struct gg_error error = last_error();
    gg_memory_release(memory);
    gg_status again = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 5 * BLOCK, f->second, &second);
    if (!again)
        keep(f, second);
    end_of_limit(f);
    assert_int_equal(first, GG_OK);
    assert_int_equal(refused, GG_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(error.message, "limit is 24.0 MiB (25165824 bytes)"));
    assert_non_null(strstr(error.message, "18.0 MiB (18874368 bytes) in 1 blocks are in use"));
    assert_int_equal(again, GG_OK); /* free blocks of another size were released */
}

static void a_limit_below_what_is_used_is_refused(void **state)
{
    struct fixture *f = *state;
    keep(f, alloc(f, BLOCK, f->stream));
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, BLOCK - 1),
                     GG_ERR_INVALID_ARGUMENT);
    assert_message_has("3145727");
    assert_message_has("in use");
    assert_int_equal(figures(f).limit, 0);
}

/* Where no memory is left, a busy stream's block is allocated to a stream that waits for it. */
static void at_the_limit_the_device_waits_for_the_block_of_a_busy_stream(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream), *next = NULL;
    void *pointer = gg_memory_pointer(memory), *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, figures(f).reserved_bytes),
                     GG_OK);
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, BLOCK, f->second, &next);
    end_of_limit(f);
    assert_int_equal(status, GG_OK);
    keep(f, next);
    assert_ptr_equal(gg_memory_pointer(next), pointer);
    assert_int_equal(fill_bytes(next, 2, f->second), GG_OK);
    assert_waits(f->second);
    gate_open(gate);
    assert_filled(f, next, BLOCK, 2);
}

static void at_the_limit_the_device_waits_for_a_block_with_several_users(void **state)
{
    struct fixture *f = *state;
    gg_stream *third = new_stream(f);
    gg_memory *memory = alloc(f, BLOCK, f->stream), *next = NULL;
    void *pointer = gg_memory_pointer(memory), *gate = hold(f, third);
    assert_int_equal(fill_bytes(memory, 1, third), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, figures(f).reserved_bytes),
                     GG_OK);
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, BLOCK, f->second, &next);
    end_of_limit(f);
    assert_int_equal(status, GG_OK);
    keep(f, next);
    assert_ptr_equal(gg_memory_pointer(next), pointer);
    assert_int_equal(fill_bytes(next, 2, f->second), GG_OK);
    assert_waits(f->second);
    gate_open(gate);
    assert_filled(f, next, BLOCK, 2);
}

/* ---- bad input ---- */

static void other_kinds_have_no_pool(void **state)
{
    struct fixture *f = *state;
    struct gg_pool_stats stats = {.struct_size = sizeof stats};
    assert_int_equal(gg_pool_stats(f->device, GG_MEMORY_HOST, &stats), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_pool_trim(f->device, GG_MEMORY_MANAGED, 0), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_pool_set_limit(f->device, (enum gg_memory_kind)9, 1),
                     GG_ERR_INVALID_ARGUMENT);
    stats.struct_size = 8;
    assert_int_equal(gg_pool_stats(f->device, GG_MEMORY_DEVICE, &stats), GG_ERR_INVALID_ARGUMENT);
}

/* ---- GPUGLUE_ALLOCATOR ---- */

static int keep_nothing(void)
{
    gg_device *device;
    gg_memory *memory = NULL;
    struct gg_pool_stats figures = {.struct_size = sizeof figures};
    if (gg_device_get(NULL, 0, &device))
        return 1;
    for (int i = 0; i < 10; i++) {
        if (gg_memory_alloc(device, GG_MEMORY_DEVICE, 100, NULL, &memory))
            return 2;
        gg_memory_release(memory);
    }
    if (gg_device_synchronize(device) || gg_pool_stats(device, GG_MEMORY_DEVICE, &figures))
        return 3;
    return figures.driver_calls == 20 && !figures.reserved_bytes ? 0 : 4;
}

static void the_direct_allocator_keeps_nothing(void **state)
{
    char output[256];
    (void)state;
    assert_int_equal(
        start_scenario("keep_nothing", "GPUGLUE_ALLOCATOR", "direct", output, sizeof output), 0);
}

/* ---- the user's allocator ---- */

static struct user_memory {
    gg_memory *whole;
    int allocs, frees;
    size_t given;
    gg_status answer;
    bool lies;
    gg_stream *stream;
} user_memory;

static gg_status user_alloc(void *user, gg_device *device, size_t nbytes, gg_stream *stream,
                            void **out)
{
    struct user_memory *self = user;
    (void)device;
    self->allocs++;
    self->given = nbytes;
    self->stream = stream;
    if (!self->answer)
        *out = self->lies ? NULL : gg_memory_pointer(self->whole);
    return self->answer;
}

static void user_free(void *user, gg_device *device, void *pointer, size_t nbytes)
{
    struct user_memory *self = user;
    (void)device;
    self->frees += pointer == gg_memory_pointer(self->whole) && nbytes == self->given;
}

static void set_user_allocator(struct fixture *f)
{
    static const struct gg_allocator allocator = {.struct_size = sizeof allocator,
                                                  .user = &user_memory,
                                                  .alloc = user_alloc,
                                                  .free = user_free};
    user_memory = (struct user_memory){.whole = new_memory(f, BLOCK)};
    assert_int_equal(gg_set_allocator(&allocator), GG_OK);
}

static void memory_of_the_users_allocator_is_returned_after_the_work(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL;
    set_user_allocator(f);
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 1000, f->stream, &memory);
    gg_set_allocator(NULL);
    assert_int_equal(status, GG_OK);
    assert_ptr_equal(gg_memory_pointer(memory), gg_memory_pointer(user_memory.whole));
    assert_ptr_equal(user_memory.stream, f->stream);
    void *gate = hold(f, f->second);
    assert_int_equal(fill_bytes(memory, 1, f->second), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(user_memory.frees, 0);
    gate_open(gate);
    finish(f->second);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(user_memory.frees, 1);
}

static void the_users_memory_is_allocated_in_the_order_of_its_stream(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL;
    set_user_allocator(f);
    void *gate = hold(f, f->stream); /* the earlier user of the block works on this stream */
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 1000, f->stream, &memory);
    gg_set_allocator(NULL);
    assert_int_equal(status, GG_OK);
    keep(f, memory);
    assert_int_equal(fill_bytes(memory, 1, f->second), GG_OK);
    assert_waits(f->second);
    gate_open(gate);
    finish(f->second);
}

static void assert_user_allocation_fails(struct fixture *f, size_t nbytes, gg_status expected,
                                         const char *message)
{
    gg_memory *const untouched = (gg_memory *)(uintptr_t)16;
    gg_memory *memory = untouched;
    gg_status status = gg_memory_alloc(f->device, GG_MEMORY_DEVICE, nbytes, NULL, &memory);
    gg_set_allocator(NULL);
    assert_int_equal(status, expected);
    assert_ptr_equal(memory, untouched);
    assert_message_has(message);
}

static void memory_of_the_users_allocator_is_checked(void **state)
{
    struct fixture *f = *state;
    set_user_allocator(f);
    user_memory.answer = GG_ERR_OUT_OF_MEMORY;
    assert_user_allocation_fails(f, 1000, GG_ERR_OUT_OF_MEMORY, "cannot allocate 1000 bytes");
    set_user_allocator(f);
    user_memory.lies = true;
    assert_user_allocation_fails(f, 1000, GG_ERR_INVALID_ARGUMENT, "NULL pointer");
    need_sizes(f, new_memory(f, 8));
    set_user_allocator(f);
    assert_user_allocation_fails(f, (size_t)1 << 40, GG_ERR_INVALID_ARGUMENT, "fewer bytes");
    assert_int_equal(user_memory.frees, 1);
}

static void an_allocator_requires_both_functions(void **state)
{
    const struct gg_allocator half = {.struct_size = sizeof half, .alloc = user_alloc};
    const struct gg_allocator small = {.struct_size = 8, .alloc = user_alloc, .free = user_free};
    (void)state;
    assert_int_equal(gg_set_allocator(&half), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_set_allocator(&small), GG_ERR_INVALID_ARGUMENT);
}

static int no_call_failed(const char *what)
{
    printf("%s: %s\n", what, last_error().message);
    return 1;
}

/* From the vendor's own pool, in the order of a stream: written and read back, on that stream and on
 * another, which waits for the allocation by itself. */
static int use_the_vendors_pool(void)
{
    gg_device *device;
    gg_stream *streams[2];
    gg_memory *pinned = NULL;
    if (gg_device_get(NULL, 0, &device) ||
        gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &streams[0]) ||
        gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &streams[1]) ||
        gg_memory_alloc(device, GG_MEMORY_PINNED, 4000, NULL, &pinned))
        return no_call_failed("set-up");
    for (int i = 0; i < 200; i++) {
        gg_memory *memory = NULL;
        gg_stream *home = streams[i % 2], *other = streams[i / 2 % 2];
        gg_status status = gg_memory_alloc(device, GG_MEMORY_DEVICE, 4000, home, &memory);
        if (status == GG_ERR_UNSUPPORTED && !gg_device_supports(device, GG_OP_mem_alloc_async))
            return scenario_without(GG_OP_mem_alloc_async);
        if (status || fill_bytes(memory, (unsigned char)i, other) ||
            copy(at(pinned, 0), at(memory, 0), 4000, other, GG_COPY_ASYNC))
            return no_call_failed("use");
        gg_memory_release(memory);
        if (gg_stream_wait(other, GG_FOREVER))
            return no_call_failed("wait");
        if (((unsigned char *)gg_memory_pointer(pinned))[3999] != (unsigned char)i)
            return no_call_failed("other bytes");
    }
    gg_memory_release(pinned);
    struct gg_pool_stats figures = {.struct_size = sizeof figures};
    if (gg_device_synchronize(device) || gg_device_trim(device) ||
        gg_pool_stats(device, GG_MEMORY_DEVICE, &figures))
        return no_call_failed("the end");
    return figures.driver_calls == 400 && !figures.reserved_bytes ? 0 : 2;
}

static int no_reserved_bytes(gg_device *device)
{
    struct gg_pool_stats figures = {.struct_size = sizeof figures};
    if (gg_device_synchronize(device) || gg_device_trim(device) ||
        gg_pool_stats(device, GG_MEMORY_DEVICE, &figures))
        return no_call_failed("the end");
    return figures.reserved_bytes ? 2 : 0;
}

/* A borrowed stream without an owner need not live longer than the call. */
static int free_after_the_end_of_the_stream(void)
{
    uint64_t handles[4];
    gg_device *device;
    gg_stream *ours, *borrowed;
    gg_memory *memory;
    if (gg_device_get(NULL, 0, &device) || !gg_device_supports(device, GG_OP_mem_alloc_async))
        return scenario_without(GG_OP_mem_alloc_async);
    if (gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &ours) ||
        gg_stream_native(ours, handles) ||
        gg_stream_borrow(device, handles[0], NULL, NULL, &borrowed) ||
        gg_memory_alloc(device, GG_MEMORY_DEVICE, 4000, borrowed, &memory) ||
        fill_bytes(memory, 1, borrowed) || gg_stream_wait(borrowed, GG_FOREVER))
        return no_call_failed("use");
    gg_stream_release(ours);
    if (gg_device_trim(device)) /* destroys it */
        return no_call_failed("trim");
    gg_memory_release(memory);
    gg_stream_release(borrowed);
    return no_reserved_bytes(device);
}

/* Work on the borrowed stream, which no other stream waits for, still writes to the memory. */
static int free_while_the_stream_is_busy(void)
{
    uint64_t handles[4];
    gg_device *device;
    gg_stream *ours, *borrowed;
    gg_memory *memory;
    if (gg_device_get(NULL, 0, &device) || !gg_device_supports(device, GG_OP_mem_alloc_async))
        return scenario_without(GG_OP_mem_alloc_async);
    void *gate = gate_new(), *pointer;
    if (gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &ours) ||
        gg_stream_native(ours, handles) ||
        gg_stream_borrow(device, handles[0], NULL, NULL, &borrowed) ||
        gg_memory_alloc(device, GG_MEMORY_DEVICE, 4000, borrowed, &memory) ||
        gg_stream_host_func(borrowed, gate_wait, gate) || fill_bytes(memory, 1, borrowed))
        return no_call_failed("use");
    pointer = gg_memory_pointer(memory);
    gg_memory_release(memory);
    if (gg_device_trim(device) || gg_memory_alloc(device, GG_MEMORY_DEVICE, 4000, NULL, &memory))
        return no_call_failed("another allocation");
    const bool again = gg_memory_pointer(memory) == pointer;
    gate_open(gate);
    gg_memory_release(memory);
    gg_stream_release(borrowed);
    gg_stream_release(ours);
    const int result = no_reserved_bytes(device); /* which waits for the device */
    gate_free(gate);
    return again ? puts("memory was allocated again that a stream still writes to"), 1 : result;
}

struct own_stream { /* a thread's use of its per-thread default stream */
    gg_device *device;
    void *gate, *pointer;
    atomic_int ready, end; /* ready: 1; -1 if it has no such stream, -2 after a failure */
};

static void *use_own_stream(void *argument)
{
    struct own_stream *own = argument;
    gg_stream *stream = NULL;
    gg_memory *memory = NULL;
    if (gg_stream_borrow(own->device, 2, NULL, NULL, &stream)) {
        atomic_store(&own->ready, -1);
        return NULL;
    }
    const bool failed = gg_stream_host_func(stream, gate_wait, own->gate) ||
                        gg_memory_alloc(own->device, GG_MEMORY_DEVICE, 4000, stream, &memory) ||
                        fill_bytes(memory, 1, stream);
    own->pointer = failed ? NULL : gg_memory_pointer(memory);
    gg_memory_release(memory);
    atomic_store(&own->ready, failed ? -2 : 1);
    while (!atomic_load(&own->end))
        sched_yield();
    gg_stream_release(stream);
    return NULL;
}

/* Each thread has a stream of its own behind the same handle. */
static int free_in_another_thread(void)
{
    static struct own_stream own;
    gg_stream *stream = NULL;
    gg_memory *memory = NULL;
    pthread_t thread;
    if (gg_device_get(NULL, 0, &own.device) ||
        !gg_device_supports(own.device, GG_OP_mem_alloc_async))
        return scenario_without(GG_OP_mem_alloc_async);
    own.gate = gate_new();
    if (pthread_create(&thread, NULL, use_own_stream, &own))
        return 3;
    while (!atomic_load(&own.ready))
        sched_yield();
    if (atomic_load(&own.ready) == -1) {
        pthread_join(thread, NULL);
        gate_free(own.gate);
        return not_here("handle 2 names no stream of this backend");
    }
    if (gg_device_trim(own.device) || gg_stream_borrow(own.device, 2, NULL, NULL, &stream) ||
        gg_memory_alloc(own.device, GG_MEMORY_DEVICE, 4000, stream, &memory) || !own.pointer)
        return no_call_failed("use");
    gate_open(own.gate);
    if (gg_memory_pointer(memory) == own.pointer)
        return puts("memory was allocated again that a stream still writes to"), 1;
    atomic_store(&own.end, 1);
    pthread_join(thread, NULL);
    gg_memory_release(memory);
    gg_stream_release(stream);
    const int result = no_reserved_bytes(own.device); /* which waits for the device */
    gate_free(own.gate);
    return result;
}

static void assert_silent_with_the_vendors_pool(const char *scenario)
{
    char output[512];
    int result = start_scenario(scenario, "GPUGLUE_ALLOCATOR", "async", output, sizeof output);
    assert_string_equal(output, "");
    assert_int_equal(result, 0);
}

static void the_async_allocator_uses_the_vendors_pool_or_reports_that_there_is_none(void **state)
{
    (void)state;
    assert_silent_with_the_vendors_pool("use_the_vendors_pool");
}

static void async_memory_of_a_borrowed_stream_is_not_freed_on_its_handle(void **state)
{
    (void)state;
    assert_silent_with_the_vendors_pool("free_after_the_end_of_the_stream");
}

static void async_memory_of_a_borrowed_stream_is_freed_after_its_work(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_stream_host_func);
    assert_silent_with_the_vendors_pool("free_while_the_stream_is_busy");
}

static void async_memory_of_a_per_thread_stream_is_freed_after_its_work(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_stream_host_func);
    assert_silent_with_the_vendors_pool("free_in_another_thread");
}

static const struct scenario scenarios[] = {
    {"use_the_vendors_pool", use_the_vendors_pool},
    {"free_after_the_end_of_the_stream", free_after_the_end_of_the_stream},
    {"free_while_the_stream_is_busy", free_while_the_stream_is_busy},
    {"free_in_another_thread", free_in_another_thread},
    {"keep_nothing", keep_nothing}};

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_trim_releases_everything),
    cmocka_unit_test(a_trim_keeps_the_given_bytes_and_blocks_in_use),
    cmocka_unit_test(a_trim_while_work_runs_waits_for_nothing),
    cmocka_unit_test(the_pool_keeps_no_more_than_its_threshold),
    cmocka_unit_test(an_allocation_beyond_the_limit_is_out_of_memory),
    cmocka_unit_test(a_limit_below_what_is_used_is_refused),
    cmocka_unit_test(at_the_limit_the_device_waits_for_the_block_of_a_busy_stream),
    cmocka_unit_test(at_the_limit_the_device_waits_for_a_block_with_several_users),
    cmocka_unit_test(other_kinds_have_no_pool),
    cmocka_unit_test(the_direct_allocator_keeps_nothing),
    cmocka_unit_test(memory_of_the_users_allocator_is_returned_after_the_work),
    cmocka_unit_test(memory_of_the_users_allocator_is_checked),
    cmocka_unit_test(an_allocator_requires_both_functions),
    cmocka_unit_test(the_async_allocator_uses_the_vendors_pool_or_reports_that_there_is_none),
    cmocka_unit_test(async_memory_of_a_borrowed_stream_is_not_freed_on_its_handle),
    cmocka_unit_test(async_memory_of_a_borrowed_stream_is_freed_after_its_work),
    cmocka_unit_test(async_memory_of_a_per_thread_stream_is_freed_after_its_work),
    cmocka_unit_test(the_users_memory_is_allocated_in_the_order_of_its_stream),
};
SUITE_AND_SCENARIOS(pool_size, tests, scenarios);
