/* test_pool_model.c: the pool against a simple reference, over many random operations by several
 * threads.
 *
 * Each owner of a block writes a unique number to its first and last word on one stream, copies
 * it to pinned memory, perhaps on another stream that waits for the first, and releases the
 * block at once. If the pool reused a block before its earlier uses are ordered before the new
 * ones, a later owner's number would be found: the simulated drivers run work late and out of
 * order between streams.
 *
 * GPUGLUE_TEST_SEED chooses the run, GPUGLUE_TEST_FULL=1 ten times as many operations. */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4
#define STREAMS 4       /* of each thread */
#define LIVE 24         /* blocks that a thread may have at a time */
#define NOTES 64        /* pending copies, per thread */
#define OPERATIONS 2600 /* per thread; all: ten times as many, 104 000 in four threads */

struct block {
    gg_memory *memory;
    uintptr_t begin;
    size_t size;
};

struct note {
    gg_stream *stream; /* NULL: no copy is pending */
    uint32_t number;
};

struct worker {
    gg_device *device;
    uint64_t random;
    uint32_t next_number;
    gg_stream *streams[STREAMS];
    struct block blocks[LIVE];
    size_t live;
    gg_memory *pinned; /* two words for each copy */
    struct note notes[NOTES];
    size_t next_note;
    const char *problem;
    char detail[800];
};

/* ---- the reference: live blocks and their addresses ---- */

static struct {
    pthread_mutex_t lock;
    struct block all[THREADS * LIVE];
    size_t count;
    uint64_t blocks, bytes;
} model = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* NULL, or what is wrong with a block that was allocated. */
static const char *model_add(const struct block *block)
{
    const char *problem = block->begin % 256 ? "a block is not aligned" : NULL;
    pthread_mutex_lock(&model.lock);
    for (size_t i = 0; i < model.count && !problem; i++)
        if (block->begin < model.all[i].begin + model.all[i].size &&
            model.all[i].begin < block->begin + block->size)
            problem = "a block overlaps another one that is in use";
    model.all[model.count++] = *block;
    model.blocks++;
    model.bytes += block->size;
    pthread_mutex_unlock(&model.lock);
    return problem;
}

static void model_remove(const struct block *block)
{
    pthread_mutex_lock(&model.lock);
    for (size_t i = 0; i < model.count; i++)
        if (model.all[i].begin == block->begin) {
            model.all[i] = model.all[--model.count];
            break;
        }
    model.blocks--;
    model.bytes -= block->size;
    pthread_mutex_unlock(&model.lock);
}

/* ---- a worker's steps ---- */

static uint32_t draw(struct worker *worker, uint32_t below)
{
    worker->random ^= worker->random << 13;
    worker->random ^= worker->random >> 7;
    worker->random ^= worker->random << 17;
    return (uint32_t)(worker->random >> 32) % below;
}

static void found(struct worker *worker, const char *problem)
{
    if (worker->problem)
        return;
    worker->problem = problem;
    snprintf(worker->detail, sizeof worker->detail, "%s", last_error().message);
}

static void expect(struct worker *worker, gg_status status, const char *problem)
{
    if (status)
        found(worker, problem);
}

static gg_stream *any_stream(struct worker *worker)
{
    return worker->streams[draw(worker, STREAMS)];
}

/* A few sizes often, so that blocks are reused, and any size now and then. */
static size_t any_size(struct worker *worker)
{
    static const size_t common[] = {64, 1000, 4096, 65536, (size_t)1 << 20, (size_t)3 << 20};
    if (draw(worker, 4))
        return common[draw(worker, 6)];
    return 8 + draw(worker, 1u << (4 + draw(worker, 17)));
}

static void check_note(struct worker *worker, size_t at)
{
    struct note *note = &worker->notes[at];
    if (!note->stream)
        return;
    expect(worker, gg_stream_wait(note->stream, GG_FOREVER), "a wait failed");
    const uint32_t *words = (const uint32_t *)gg_memory_pointer(worker->pinned) + 2 * at;
    if (!worker->problem && (words[0] != note->number || words[1] != note->number)) {
        found(worker, "a block was used again before its earlier uses were over");
        snprintf(worker->detail, sizeof worker->detail, "expected %x, found %x and %x",
                 (unsigned)note->number, (unsigned)words[0], (unsigned)words[1]);
    }
    note->stream = NULL;
}

static void write_number(struct worker *worker, const struct block *block, uint32_t number,
                         gg_stream *stream)
{
    expect(worker, gg_fill(block->memory, 0, &number, 4, 1, stream), "a fill failed");
    expect(worker, gg_fill(block->memory, (block->size - 4) & ~(size_t)3, &number, 4, 1, stream),
           "a fill failed");
}

static void read_number(struct worker *worker, const struct block *block, uint32_t number,
                        gg_stream *stream)
{
    size_t note = worker->next_note++ % NOTES;
    check_note(worker, note);
    expect(worker,
           copy(at(worker->pinned, 8 * note), at(block->memory, 0), 4, stream, GG_COPY_ASYNC),
           "a copy failed");
    expect(worker,
           copy(at(worker->pinned, 8 * note + 4), at(block->memory, (block->size - 4) & ~(size_t)3),
                4, stream, GG_COPY_ASYNC),
           "a copy failed");
    worker->notes[note] = (struct note){stream, number};
}

/* A number is written on one stream and read on the same one, or on another that waits for it. */
static void use(struct worker *worker, const struct block *block)
{
    gg_stream *writes = any_stream(worker), *reads = draw(worker, 2) ? writes : any_stream(worker);
    uint32_t number = worker->next_number++;
    write_number(worker, block, number, writes);
    if (reads != writes)
        expect(worker, gg_stream_wait_stream(reads, writes), "a wait between streams failed");
    read_number(worker, block, number, reads);
    if (writes != reads) /* the next writer of this block may be any stream of ours */
        expect(worker, gg_stream_wait_stream(writes, reads), "a wait between streams failed");
}

static void allocate(struct worker *worker)
{
    struct block *block = &worker->blocks[worker->live];
    gg_stream *stream = draw(worker, 8) ? any_stream(worker) : NULL;
    if (worker->live == LIVE)
        return;
    block->size = any_size(worker);
    gg_status status =
        gg_memory_alloc(worker->device, GG_MEMORY_DEVICE, block->size, stream, &block->memory);
    if (status) {
        found(worker, "an allocation failed");
        return;
    }
    block->begin = (uintptr_t)gg_memory_pointer(block->memory);
    const char *problem = model_add(block);
    if (problem)
        found(worker, problem);
    worker->live++;
    use(worker, block);
}

static void release(struct worker *worker, size_t at)
{
    struct block block = worker->blocks[at];
    worker->blocks[at] = worker->blocks[--worker->live];
    model_remove(&block);
    gg_memory_release(block.memory);
}

static void renew_stream(struct worker *worker)
{
    gg_stream **stream = &worker->streams[draw(worker, STREAMS)];
    for (size_t i = 0; i < NOTES; i++)
        if (worker->notes[i].stream == *stream)
            check_note(worker, i);
    gg_stream_release(*stream);
    *stream = NULL;
    expect(worker,
           gg_stream_create(worker->device, draw(worker, 2) ? GG_STREAM_NONBLOCKING : 0, 0, stream),
           "no stream");
}

static void step(struct worker *worker)
{
    uint32_t what = draw(worker, 1000);
    if (what < 480)
        allocate(worker);
    else if (what < 985 && worker->live)
        release(worker, draw(worker, (uint32_t)worker->live));
    else if (what < 993)
        renew_stream(worker);
    else
        expect(worker, gg_pool_trim(worker->device, GG_MEMORY_DEVICE, draw(worker, 1u << 24)),
               "a trim failed");
}

static bool set_up(struct worker *worker)
{
    for (size_t i = 0; i < STREAMS && !worker->problem; i++)
        expect(worker,
               gg_stream_create(worker->device, i % 2 ? GG_STREAM_NONBLOCKING : 0, 0,
                                &worker->streams[i]),
               "no stream");
    expect(worker,
           gg_memory_alloc(worker->device, GG_MEMORY_PINNED, 8 * NOTES, NULL, &worker->pinned),
           "no pinned memory");
    return !worker->problem;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    const char *full = getenv("GPUGLUE_TEST_FULL");
    long operations = full && full[0] == '1' ? 10 * OPERATIONS : OPERATIONS;
    if (!set_up(worker))
        return NULL;
    for (long i = 0; i < operations && !worker->problem; i++)
        step(worker);
    for (size_t i = 0; i < NOTES; i++)
        check_note(worker, i);
    while (worker->live)
        release(worker, 0);
    for (size_t i = 0; i < STREAMS; i++)
        gg_stream_release(worker->streams[i]);
    gg_memory_release(worker->pinned);
    return NULL;
}

static uint64_t seed(void)
{
    const char *text = getenv("GPUGLUE_TEST_SEED");
    return text ? strtoull(text, NULL, 0) : 20261121;
}

static void run_workers(struct fixture *f, struct worker *workers, size_t count)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < count; i++) {
        workers[i].device = f->device;
        workers[i].random = (seed() + i) * 0x9e3779b97f4a7c15u | 1;
        workers[i].next_number = (uint32_t)(i + 1) << 24;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < count; i++)
        if (workers[i].problem)
            fail_msg("%s (%s); GPUGLUE_TEST_SEED=%llu", workers[i].problem, workers[i].detail,
                     (unsigned long long)seed());
}

/* Otherwise each allocation and each free is a call of the driver. */
static bool keeps_freed_memory(void)
{
    const char *allocator = getenv("GPUGLUE_ALLOCATOR");
    return !allocator || !allocator[0] || strcmp(allocator, "pool") == 0;
}

static void check_figures(struct fixture *f)
{
    struct gg_pool_stats figures = {.struct_size = sizeof figures};
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(gg_pool_stats(f->device, GG_MEMORY_DEVICE, &figures), GG_OK);
    assert_int_equal(figures.used_blocks, model.blocks);
    assert_int_equal(figures.used_bytes, model.bytes);
    assert_int_equal(figures.reserved_bytes, 0);
    if (keeps_freed_memory())
        assert_true(figures.driver_calls < figures.allocations);
    else
        assert_true(figures.driver_calls >= 2 * figures.allocations);
}

static void one_thread_agrees_with_the_model(void **state)
{
    static struct worker worker;
    run_workers(*state, &worker, 1);
    check_figures(*state);
}

static void four_threads_agree_with_the_model(void **state)
{
    static struct worker workers[THREADS];
    run_workers(*state, workers, THREADS);
    check_figures(*state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_thread_agrees_with_the_model),
    cmocka_unit_test(four_threads_agree_with_the_model),
};
SUITE(pool_model, tests);
