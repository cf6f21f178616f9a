/* test_copy_threads.c: the copy threads, without a device: the thread that holds a lane only
 * publishes chunks here, and waits. A hang is a lost wake-up, or a chunk that no thread copies. */
#include "../support/runner.h"

#include "base/process_state.h"
#include "transfer/copy_threads.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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
    ggi_copy_queue_cut(queue, chunk, part, GGI_DST);
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

static void the_caller_wakes_all_threads_itself(void **state)
{
    (void)state;
    assert_int_equal(ggi_copy_threads_start(threads, 5), 4);
    while (atomic_load(&threads->sleeping) < 4)
        sched_yield();
    ggi_copy_threads_spin_ns = UINT64_MAX; /* no thread sleeps again */
    ggi_copy_threads_wake(threads, 5);
    for (int rank = 1; rank < 5; rank++)
        assert_int_equal(threads->asleep[rank - 1], 0);
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

#define SIDE 64
#define ELEMENT ((ptrdiff_t)4)

/* A square, transposed; with the parts at @p part bytes, from the side of the caller's memory. */
static const struct ggi_host_copy_task *put_transposed(char *dst, const char *src, bool backwards,
                                                       size_t part, enum ggi_side caller)
{
    const ptrdiff_t row = SIDE * ELEMENT, last = (SIDE - 1) * row;
    struct ggi_copy_queue *queue = &threads->queue[0];
    struct ggi_host_copy_task *task = &queue->task[0];
    task->box.run = ELEMENT;
    task->box.axes = 2;
    task->box.axis[0] = (struct ggi_axis){SIDE, ELEMENT, row};
    task->box.axis[1] = (struct ggi_axis){SIDE, backwards ? -row : row, ELEMENT};
    task->dst = dst + (backwards ? last : 0);
    task->src = src;
    ggi_copy_queue_cut(queue, 0, part, caller);
    return task;
}

/* The bytes from the first to the last of part @p index on one side, from the side's first byte on. */
static struct ggi_reach range_of(const struct ggi_host_copy_task *task, size_t index,
                                 enum ggi_side side, const char *base)
{
    struct ggi_box box;
    struct ggi_reach reach;
    ptrdiff_t dst, src;
    ggi_cut_chunk(&task->cut, &task->box, index, &box, &dst, &src);
    assert_true(ggi_box_reach(&box, side, &reach));
    const ptrdiff_t first = side == GGI_DST ? task->dst + dst - base : task->src + src - base;
    return (struct ggi_reach){first + reach.low, first + reach.high};
}

/* Threads that write to the same cache lines slow each other down. */
static void parts_of_a_transposed_chunk_are_separate_ranges_of_the_callers_memory(void **state)
{
    static char to[SIDE * SIDE * ELEMENT], from[sizeof to];
    (void)state;
    for (int side = GGI_DST; side <= GGI_SRC; side++) {
        const struct ggi_host_copy_task *task =
            put_transposed(to, from, false, sizeof to / 8, (enum ggi_side)side);
        ptrdiff_t end = 0;
        assert_int_equal(task->cut.count, 8);
        for (size_t i = 0; i < task->cut.count; i++) {
            struct ggi_reach range =
                range_of(task, i, (enum ggi_side)side, side == GGI_DST ? to : from);
            assert_int_equal(range.low, end);
            end = range.high;
        }
        assert_int_equal(end, sizeof to);
    }
}

static void a_chunk_with_a_negative_stride_is_copied_by_its_parts(void **state)
{
    static uint32_t from[SIDE][SIDE], to[SIDE][SIDE];
    struct ggi_copy_queue *queue = &threads->queue[0];
    (void)state;
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
        from[i / SIDE][i % SIDE] = i;
    put_transposed((char *)to, (const char *)from, true, sizeof to / 8, GGI_DST);
    atomic_store(&queue->threads, 2);
    ggi_copy_queue_publish(threads, queue, 1);
    wait_for(queue, 0);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            assert_int_equal(to[SIDE - 1 - x][y], from[y][x]);
}

/* Whether the system refuses new threads of this process. */
static void refuse_threads(bool refuse)
{
    static struct rlimit before;
    if (refuse && getrlimit(RLIMIT_NPROC, &before))
        skip_because("the number of threads has no limit");
    struct rlimit limit = before;
    if (refuse)
        limit.rlim_cur = 0;
    if (setrlimit(RLIMIT_NPROC, &limit))
        skip_because("the number of threads cannot be limited");
}

static void a_thread_that_the_system_refused_is_started_later(void **state)
{
    (void)state;
    if (geteuid() == 0 && setuid(65534)) /* root has no such limits */
        skip_because("this process cannot become another user");
    ggi_copy_threads_retry_ns = UINT64_MAX;
    refuse_threads(true);
    assert_int_equal(ggi_copy_threads_start(threads, 5), 1);
    refuse_threads(false);
    assert_int_equal(ggi_copy_threads_start(threads, 5), 1); /* not each copy asks again */
    ggi_copy_threads_retry_ns = 0;
    assert_int_equal(ggi_copy_threads_start(threads, 5), 4);
    ggi_copy_threads_retry_ns = UINT64_MAX;
    assert_int_equal(ggi_copy_threads_start(threads, 6), 5); /* all is as before the refusal */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_worker_that_falls_asleep_misses_no_chunk, start_one_worker,
                                    stop_it),
    cmocka_unit_test_setup_teardown(the_caller_wakes_all_threads_itself, start_one_worker, stop_it),
    cmocka_unit_test_setup_teardown(a_chunk_may_have_the_maximum_number_of_parts, start_one_worker,
                                    stop_it),
    cmocka_unit_test_setup_teardown(a_worker_serves_both_queues, start_one_worker, stop_it),
    cmocka_unit_test_setup_teardown(
        parts_of_a_transposed_chunk_are_separate_ranges_of_the_callers_memory, start_one_worker,
        stop_it),
    cmocka_unit_test_setup_teardown(a_chunk_with_a_negative_stride_is_copied_by_its_parts,
                                    start_one_worker, stop_it),
    cmocka_unit_test_setup_teardown(a_thread_that_the_system_refused_is_started_later,
                                    start_one_worker, stop_it),
};
SUITE(copy_threads, tests);
