/* test_copy_threads.c: the copy threads, without a device: the thread that holds a lane only
 * publishes chunks here, and waits. A hang is a lost wake-up, or a chunk that no thread copies. */
#include "../support/runner.h"

#include "base/process_state.h"
#include "transfer/copy_threads.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 8u
#define PART ((size_t)64)

static struct ggi_copy_threads *threads;

static int start_one_worker(void **state)
{
    (void)state;
    threads = calloc(1, sizeof *threads);
    if (!threads)
        return -1;
    pthread_mutex_init(&threads->lock, NULL);
    threads->node = -1;
    atomic_store(&threads->queue[0].slots, SLOTS);
    atomic_store(&threads->queue[1].slots, SLOTS);
    ggi_copy_threads_spin_ns = 0;
    return ggi_copy_threads_start(threads, 2) == 1 ? 0 : -1;
}

static int stop_it(void **state)
{
    (void)state;
    ggi_copy_threads_stop(threads);
    free(threads);
    return 0;
}

/* So many bytes in parts of @p part, as a chunk that is not published yet. */
static void put(struct ggi_copy_queue *queue, uint64_t chunk, char *dst, const char *src,
                size_t nbytes, size_t part)
{
    struct ggi_host_copy_task *task = &queue->task[chunk % SLOTS];
    task->box = (struct ggi_box){.run = nbytes};
    task->dst = dst;
    task->src = src;
    ggi_copy_queue_cut(queue, chunk, part);
}

static void wait_for(struct ggi_copy_queue *queue, uint64_t chunk)
{
    while (!ggi_copy_queue_is_done(queue, chunk))
        sched_yield();
}

static void a_worker_that_falls_asleep_misses_no_chunk(void **state)
{
    struct ggi_copy_queue *queue = &threads->queue[1];
    char from[PART] = "from", to[PART] = "";
    (void)state;
    /* On a busy machine each chunk may wait for its turn on a processor: fewer are enough then. */
    const uint64_t enough = ggi_now_ns() + 20 * UINT64_C(1000000000);
    for (uint64_t chunk = 0; chunk < 50000 && ggi_now_ns() < enough; chunk++) {
        atomic_store(&queue->threads, 2);
        put(queue, chunk, to, from, PART, PART);
        for (uint64_t i = 0; i < chunk % 512 * 4; i++)
            atomic_load(&queue->open); /* a little later each time */
        ggi_copy_queue_publish(threads, queue, chunk + 1);
        wait_for(queue, chunk);
        atomic_store(&queue->next, (chunk + 1) * GGI_CHUNK_PARTS_MAX);
        atomic_store(&queue->threads, 0);
    }
    assert_string_equal(to, "from");
}

static void a_chunk_may_have_the_maximum_number_of_parts(void **state)
{
    struct ggi_copy_queue *queue = &threads->queue[0];
    char from[GGI_CHUNK_PARTS_MAX * PART], to[sizeof from];
    (void)state;
    memset(from, 1, sizeof from);
    atomic_store(&queue->threads, 2);
    put(queue, 0, to, from, sizeof from, PART);
    assert_int_equal(queue->task[0].cut.count, GGI_CHUNK_PARTS_MAX);
    ggi_copy_queue_publish(threads, queue, 1);
    wait_for(queue, 0);
    assert_memory_equal(to, from, sizeof from);
}

/* The other queue's only part reads what the last part of this one writes. */
static void a_worker_serves_both_queues(void **state)
{
    static char from[SLOTS * GGI_CHUNK_PARTS_MAX * PART], to[sizeof from];
    const size_t chunk_bytes = GGI_CHUNK_PARTS_MAX * PART;
    char seen = 7;
    (void)state;
    memset(from, 1, sizeof from);
    for (uint64_t chunk = 0; chunk < SLOTS; chunk++)
        put(&threads->queue[0], chunk, to + chunk * chunk_bytes, from + chunk * chunk_bytes,
            chunk_bytes, PART);
    put(&threads->queue[1], 0, &seen, to + sizeof to - 1, 1, 1);
    ggi_copy_queue_publish(threads, &threads->queue[0], SLOTS);
    ggi_copy_queue_publish(threads, &threads->queue[1], 1);
    atomic_store(&threads->queue[1].threads, 2);
    atomic_store(&threads->queue[0].threads, 2);
    ggi_copy_threads_wake(threads, 2);
    wait_for(&threads->queue[1], 0);
    wait_for(&threads->queue[0], SLOTS - 1);
    assert_int_equal(seen, 0);
    assert_int_equal(to[sizeof to - 1], 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_worker_that_falls_asleep_misses_no_chunk, start_one_worker,
                                    stop_it),
    cmocka_unit_test_setup_teardown(a_chunk_may_have_the_maximum_number_of_parts, start_one_worker,
                                    stop_it),
    cmocka_unit_test_setup_teardown(a_worker_serves_both_queues, start_one_worker, stop_it),
};
SUITE(copy_threads, tests);
