/* scale.c: alloc + close with many streams, with many blocks that queued work still uses, with many blocks in use, and
 * in many threads. Prints a table of nanoseconds: mean, median, 99.9th percentile, worst. */
#include <gpuglue/gpuglue.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NBYTES 4096

static gg_device *device;
static long calls = 200000;

static void check(gg_status status, const char *what)
{
    struct gg_error error = {.struct_size = sizeof error};
    if (!status)
        return;
    gg_last_error(&error);
    fprintf(stderr, "scale: %s: %s\n", what, error.message);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- figures ---- */

static int compare(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void show(const char *name, uint32_t *times, long count)
{
    double sum = 0;
    for (long i = 0; i < count; i++)
        sum += times[i];
    qsort(times, (size_t)count, sizeof *times, compare);
    printf("%-34s %10.0f %10u %10u %10u\n", name, sum / (double)count, times[count / 2],
           times[(long)((double)count * 0.999)], times[count - 1]);
    fflush(stdout);
}

static uint32_t *new_times(long count)
{
    uint32_t *times = malloc((size_t)count * sizeof *times);
    if (!times)
        exit(1);
    return times;
}

static gg_stream *new_stream(void)
{
    gg_stream *stream;
    check(gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &stream), "stream");
    return stream;
}

static gg_memory *new_block(gg_stream *stream)
{
    gg_memory *memory;
    check(gg_memory_alloc(device, GG_MEMORY_DEVICE, NBYTES, stream, &memory), "alloc");
    return memory;
}

/* One allocation and its release; @p user: a stream that uses the block in between, outside the measured time. */
static uint32_t timed(gg_stream *stream, gg_stream *user)
{
    uint64_t start = now_ns(), taken;
    gg_memory *memory = new_block(stream);
    taken = now_ns() - start;
    if (user)
        check(gg_fill(memory, 0, "", 1, NBYTES, user), "fill");
    start = now_ns();
    gg_memory_release(memory);
    return (uint32_t)(taken + now_ns() - start);
}

/* ---- rows ---- */

/* Each block is used by the next stream, so that it waits for that one after its release. */
static void with_streams(int count)
{
    gg_stream **streams = malloc((size_t)count * sizeof *streams);
    uint32_t *times = new_times(calls);
    char name[64];
    for (int i = 0; i < count; i++)
        streams[i] = new_stream();
    for (long i = 0; i < calls; i++)
        times[i] = timed(streams[i % count], streams[(i + 1) % count]);
    snprintf(name, sizeof name, "%d streams, each in use", count);
    show(name, times, calls);
    check(gg_device_synchronize(device), "synchronize");
    for (int i = 0; i < count; i++)
        gg_stream_release(streams[i]);
    free(streams);
    free(times);
    check(gg_device_trim(device), "trim");
}

static void beside_live(long count)
{
    gg_memory **live = malloc((size_t)(count + 1) * sizeof *live);
    uint32_t *times = new_times(calls);
    gg_stream *stream = new_stream();
    char name[64];
    for (long i = 0; i < count; i++)
        live[i] = new_block(stream);
    for (long i = 0; i < calls; i++)
        times[i] = timed(stream, NULL);
    snprintf(name, sizeof name, "beside %ld live blocks", count);
    show(name, times, calls);
    for (long i = 0; i < count; i++)
        gg_memory_release(live[i]);
    gg_stream_release(stream);
    free(live);
    free(times);
    check(gg_device_trim(device), "trim");
}

static void gate_wait(void *gate)
{
    while (sem_wait(gate)) {
    }
}

/* The released blocks are used by a stream that a host function holds. */
static void beside_retired(long count)
{
    gg_memory **blocks = malloc((size_t)(count + 1) * sizeof *blocks);
    uint32_t *times = new_times(calls);
    gg_stream *stream = new_stream(), *held = new_stream();
    sem_t gate;
    char name[64];
    sem_init(&gate, 0, 0);
    for (long i = 0; i < count; i++)
        blocks[i] = new_block(stream);
    if (gg_stream_host_func(held, gate_wait, &gate)) {
        printf("%-34s this device has no host functions\n", "beside retired blocks");
        return;
    }
    for (long i = 0; i < count; i++) {
        check(gg_memory_record_use(blocks[i], held), "record_use");
        gg_memory_release(blocks[i]);
    }
    for (long i = 0; i < calls; i++)
        times[i] = timed(stream, NULL);
    snprintf(name, sizeof name, "beside %ld retired blocks", count);
    show(name, times, calls);
    sem_post(&gate);
    check(gg_stream_wait(held, GG_FOREVER), "wait");
    for (long i = 0; i < calls; i++)
        times[i] = timed(stream, NULL);
    snprintf(name, sizeof name, "... after the work that used them");
    show(name, times, calls);
    gg_stream_release(held);
    gg_stream_release(stream);
    free(blocks);
    free(times);
    check(gg_device_trim(device), "trim");
}

struct worker {
    pthread_t thread;
    gg_stream *stream, *user;
    uint32_t *times;
    long count;
};

static void *work(void *argument)
{
    struct worker *self = argument;
    for (long i = 0; i < self->count; i++)
        self->times[i] = timed(self->stream, i % 16 ? NULL : self->user);
    return NULL;
}

static void in_threads(int count)
{
    struct worker *workers = calloc((size_t)count, sizeof *workers);
    const long each = calls / count;
    uint32_t *times = new_times(each * count);
    char name[64];
    for (int i = 0; i < count; i++)
        workers[i] = (struct worker){
            .stream = new_stream(), .user = new_stream(), .times = times + i * each, .count = each};
    for (int i = 0; i < count; i++)
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    for (int i = 0; i < count; i++)
        pthread_join(workers[i].thread, NULL);
    snprintf(name, sizeof name, "%d threads", count);
    show(name, times, each * count);
    check(gg_device_synchronize(device), "synchronize");
    for (int i = 0; i < count; i++) {
        gg_stream_release(workers[i].stream);
        gg_stream_release(workers[i].user);
    }
    free(times);
    free(workers);
    check(gg_device_trim(device), "trim");
}

int main(int argc, char **argv)
{
    const char *const only = argc > 2 ? argv[2] : "";
    static const struct row {
        const char *kind;
        void (*many)(long);
        void (*some)(int);
        long count;
    } rows[] = {
        {"streams", NULL, with_streams, 1},        {"streams", NULL, with_streams, 100},
        {"streams", NULL, with_streams, 1000},     {"live", beside_live, NULL, 1},
        {"live", beside_live, NULL, 10000},        {"live", beside_live, NULL, 100000},
        {"retired", beside_retired, NULL, 1},      {"retired", beside_retired, NULL, 10000},
        {"retired", beside_retired, NULL, 100000}, {"threads", NULL, in_threads, 1},
        {"threads", NULL, in_threads, 16},
    };
    if (argc > 1)
        calls = atol(argv[1]);
    check(gg_device_get(NULL, 0, &device), "device");
    printf("%-34s %10s %10s %10s %10s\n", "alloc + close, ns", "mean", "median", "99.9 %", "worst");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (*only && strcmp(only, rows[i].kind) != 0)
            continue;
        if (rows[i].some)
            rows[i].some((int)rows[i].count);
        else
            rows[i].many(rows[i].count);
    }
    gg_shutdown(0);
    return 0;
}
