/* test_pool_threads.c: many threads allocate and release at the same time, so that the pool's lock is contended. */
#include "pool_blocks.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define THREADS 8
#define ROUNDS 100000 /* so many that threads are interrupted while they have the lock */
#define STREAMS 200   /* that each thread closes */
#define HELD_ROUNDS 20000
#define PLACES 64
#define SMALLER 8192 /* bytes of blocks that other streams use */

struct shared {
    gg_device *device;
    gg_stream *stream;                   /* for all threads; NULL: each has its own */
    _Atomic(void *) in_use[THREADS];     /* the block of each thread */
    _Atomic(gg_memory *) passed[PLACES]; /* from one thread to another */
    _Atomic(int) failures;
    _Atomic(int) next_thread;
};

static void check(struct shared *shared, bool holds)
{
    if (!holds)
        atomic_fetch_add(&shared->failures, 1);
}

static gg_memory *take(struct shared *shared, size_t nbytes, gg_stream *stream)
{
    gg_memory *memory = NULL;
    check(shared, !gg_memory_alloc(shared->device, GG_MEMORY_DEVICE, nbytes, stream, &memory));
    return memory;
}

static void check_alone(struct shared *shared, int self, void *pointer)
{
    atomic_store(&shared->in_use[self], pointer);
    for (int i = 0; i < THREADS; i++)
        check(shared, i == self || atomic_load(&shared->in_use[i]) != pointer);
}

static void *alloc_and_release(void *argument)
{
    static const size_t sizes_of_one_class[] = {4096, 4000, 3900, 30000};
    struct shared *shared = argument;
    const int self = atomic_fetch_add(&shared->next_thread, 1);
    gg_stream *own = NULL, *stream = shared->stream;
    if (!stream)
        check(shared, !gg_stream_create(shared->device, GG_STREAM_NONBLOCKING, 0, &own));
    for (int i = 0; i < ROUNDS; i++) {
        gg_memory *memory = take(shared, sizes_of_one_class[i % 4], stream ? stream : own);
        check_alone(shared, self, gg_memory_pointer(memory));
        atomic_store(&shared->in_use[self], NULL);
        gg_memory_release(memory);
    }
    gg_stream_release(own);
    return NULL;
}

static void run(struct shared *shared, void *(*body)(void *))
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, shared), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&shared->failures), 0);
}

static void assert_counts(struct fixture *f, const struct gg_pool_stats *before,
                          uint64_t allocations)
{
    const struct gg_pool_stats after = figures(f);
    assert_int_equal(after.allocations - before->allocations, allocations);
    assert_int_equal(after.used_blocks, before->used_blocks);
    assert_int_equal(after.used_bytes, before->used_bytes);
    assert_true(after.used_peak < UINT64_MAX / 2);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(figures(f).reserved_bytes, 0);
}

static void threads_with_streams_of_their_own_are_counted_exactly(void **state)
{
    struct fixture *f = *state;
    static struct shared shared;
    const struct gg_pool_stats before = figures(f);
    shared.device = f->device;
    run(&shared, alloc_and_release);
    assert_counts(f, &before, (uint64_t)THREADS * ROUNDS);
}

/* Each fourth block is also used by another stream, so that it is retired. */
static void *alloc_and_retire(void *argument)
{
    struct shared *shared = argument;
    const int self = atomic_fetch_add(&shared->next_thread, 1);
    gg_stream *own = NULL, *user = NULL;
    check(shared, !gg_stream_create(shared->device, GG_STREAM_NONBLOCKING, 0, &own));
    check(shared, !gg_stream_create(shared->device, GG_STREAM_NONBLOCKING, 0, &user));
    for (int i = 0; i < ROUNDS; i++) {
        gg_memory *memory = take(shared, 4096, own);
        check_alone(shared, self, gg_memory_pointer(memory));
        if (i % 4 == 0)
            check(shared, !gg_memory_record_use(memory, user));
        atomic_store(&shared->in_use[self], NULL);
        gg_memory_release(memory);
    }
    gg_stream_release(user);
    gg_stream_release(own);
    return NULL;
}

static void blocks_that_other_streams_use_are_counted_exactly(void **state)
{
    struct fixture *f = *state;
    static struct shared shared;
    const struct gg_pool_stats before = figures(f);
    shared.device = f->device;
    run(&shared, alloc_and_retire);
    assert_counts(f, &before, (uint64_t)THREADS * ROUNDS);
    assert_int_equal(figures(f).retired_blocks, 0);
    assert_int_equal(figures(f).retired_bytes, 0);
}

static void *alloc_and_retire_all(void *argument)
{
    struct shared *shared = argument;
    gg_stream *own = NULL, *user = NULL;
    check(shared, !gg_stream_create(shared->device, GG_STREAM_NONBLOCKING, 0, &own));
    check(shared, !gg_stream_create(shared->device, GG_STREAM_NONBLOCKING, 0, &user));
    for (int i = 0; i < HELD_ROUNDS; i++) {
        gg_memory *memory = take(shared, SMALLER, own);
        check(shared, !gg_memory_record_use(memory, user));
        gg_memory_release(memory);
    }
    gg_stream_release(user);
    gg_stream_release(own);
    return NULL;
}

/* Each thread uses one block, and the stash of its stream has at most eight. */
static void the_most_in_use_does_not_count_what_was_released(void **state)
{
    struct fixture *f = *state;
    static struct shared shared;
    const struct gg_pool_stats before = figures(f);
    shared.device = f->device;
    run(&shared, alloc_and_retire_all);
    assert_in_range(figures(f).used_peak, SMALLER, before.used_peak + THREADS * 9 * SMALLER);
}

static void no_block_is_used_by_two_threads_of_one_stream(void **state)
{
    struct fixture *f = *state;
    static struct shared shared;
    const struct gg_pool_stats before = figures(f);
    shared.device = f->device;
    shared.stream = f->stream;
    run(&shared, alloc_and_release);
    assert_counts(f, &before, (uint64_t)THREADS * ROUNDS);
}

/* The stream is closed while another thread releases its block. */
static void *pass_blocks_of_closed_streams(void *argument)
{
    struct shared *shared = argument;
    const int self = atomic_fetch_add(&shared->next_thread, 1);
    for (int i = 0; i < STREAMS; i++) {
        gg_stream *stream = NULL;
        check(shared, !gg_stream_create(shared->device, GG_STREAM_NONBLOCKING, 0, &stream));
        for (int j = 0; j < 8; j++) {
            gg_memory *memory = take(shared, 4096, stream);
            gg_memory_release(atomic_exchange(&shared->passed[(self * 8 + i + j) % PLACES], memory));
        }
        gg_stream_release(stream);
    }
    return NULL;
}

static void blocks_of_closed_streams_return_to_the_pool(void **state)
{
    struct fixture *f = *state;
    static struct shared shared;
    const struct gg_pool_stats before = figures(f);
    shared.device = f->device;
    run(&shared, pass_blocks_of_closed_streams);
    for (int i = 0; i < PLACES; i++)
        gg_memory_release(atomic_exchange(&shared.passed[i], NULL));
    assert_counts(f, &before, (uint64_t)THREADS * STREAMS * 8);
}

/* Leaves a last block allocated. */
static void *alloc_and_hold(void *argument)
{
    struct shared *shared = argument;
    const int self = atomic_fetch_add(&shared->next_thread, 1);
    gg_stream *stream = NULL;
    check(shared, !gg_stream_create(shared->device, GG_STREAM_NONBLOCKING, 0, &stream));
    while (atomic_load(&shared->next_thread) < THREADS)
        sched_yield();
    for (int i = 0; i < HELD_ROUNDS; i++) {
        gg_memory_release(take(shared, 4096 - (size_t)i % 2 * 100, stream));
        if (i % 16 == 0) /* which closes the stashes of the others */
            figures_of(shared->device, GG_MEMORY_DEVICE);
    }
    atomic_store(&shared->passed[self], take(shared, 4000, stream));
    gg_stream_release(stream);
    return NULL;
}

static void counts_read_while_threads_allocate_leave_none_out(void **state)
{
    struct fixture *f = *state;
    for (int repeat = 0; repeat < 20; repeat++) {
        static struct shared shared;
        const struct gg_pool_stats before = figures(f);
        shared.device = f->device;
        atomic_store(&shared.next_thread, 0);
        run(&shared, alloc_and_hold);
        const struct gg_pool_stats held = figures(f);
        assert_int_equal(held.allocations - before.allocations, THREADS * (HELD_ROUNDS + 1));
        assert_int_equal(held.used_bytes - before.used_bytes, THREADS * 4000);
        for (int i = 0; i < THREADS; i++)
            gg_memory_release(atomic_exchange(&shared.passed[i], NULL));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(threads_with_streams_of_their_own_are_counted_exactly),
    cmocka_unit_test(blocks_that_other_streams_use_are_counted_exactly),
    cmocka_unit_test(the_most_in_use_does_not_count_what_was_released),
    cmocka_unit_test(no_block_is_used_by_two_threads_of_one_stream),
    cmocka_unit_test(blocks_of_closed_streams_return_to_the_pool),
    cmocka_unit_test(counts_read_while_threads_allocate_leave_none_out),
};
SUITE(pool_threads, tests);
