/* scale_threads.c: the rows in threads. All threads begin and end at the same time, and make as many calls as they can until then: if each
 * made a number of calls, the first would be done before the last began. */
#include "scale.h"

#include <pthread.h>

#define HALF 90  /* ns of an allocation, or of a release */
#define WALL 200 /* ns for each call of a row in one thread: 200 ms for a million */
#define CHECKED \
    16 /* calls between two looks at the clock; the block of the first is used by another stream */

enum work { ALLOC, AS_LONG, LOCK, NOTHING };
struct worker {
    pthread_t thread;
    enum work work;
    gg_stream *stream, *user;
    gg_memory *memory; /* of AS_LONG */
    struct tally *tally;
};

static pthread_barrier_t barrier; /* of all workers and the thread that starts them */
static uint64_t end;              /* set before the barrier */

static uint64_t timed_nothing(void)
{
    const uint64_t start = now_ns(), taken = now_ns() - start, again = now_ns();
    return taken + now_ns() - again;
}

/* Twice, as alloc + close does: with a lock that all threads share, no pool can be faster. */
static uint64_t timed_lock(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const uint64_t start = now_ns();
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    return now_ns() - start;
}

static uint64_t spin(void)
{
    const uint64_t start = now_ns();
    uint64_t now;
    do
        now = now_ns();
    while (now - start < HALF);
    return now - start;
}

static uint64_t timed_as_long(gg_memory *memory, gg_stream *user)
{
    const uint64_t taken = spin();
    if (user)
        check(gg_fill(memory, 0, "", 1, NBYTES, user), "fill");
    driver_ns = 0;
    return taken + spin();
}

static uint64_t timed_work(const struct worker *self, gg_stream *user)
{
    switch (self->work) {
    case ALLOC:
        return timed(self->stream, user);
    case AS_LONG:
        return timed_as_long(self->memory, user);
    case LOCK:
        return timed_lock();
    default:
        return timed_nothing();
    }
}

static void *work(void *argument)
{
    struct worker *self = argument;
    pthread_barrier_wait(&barrier);
    do {
        tally_add(self->tally, timed_work(self, self->user));
        for (int i = 1; i < CHECKED; i++)
            tally_add(self->tally, timed_work(self, NULL));
    } while (now_ns() < end);
    return NULL;
}

static struct worker *new_workers(long count, enum work of_each)
{
    struct worker *workers = calloc((size_t)count, sizeof *workers);
    if (!workers)
        exit(1);
    for (long i = 0; i < count; i++) {
        workers[i] = (struct worker){.work = of_each, .tally = tally_new()};
        if (of_each == ALLOC || of_each == AS_LONG) {
            workers[i].stream = new_stream();
            workers[i].user = new_stream();
        }
        if (of_each == AS_LONG)
            workers[i].memory = new_block(workers[i].stream);
    }
    return workers;
}

static void release_workers(struct worker *workers, long count)
{
    check(gg_device_synchronize(device), "synchronize");
    for (long i = 0; i < count; i++) {
        gg_memory_release(workers[i].memory);
        gg_stream_release(workers[i].stream);
        gg_stream_release(workers[i].user);
        free(workers[i].tally);
    }
    free(workers);
}

static void threads(long count, struct tally *tally, enum work of_each)
{
    struct worker *workers = new_workers(count, of_each);
    if (pthread_barrier_init(&barrier, NULL, (unsigned)count + 1))
        exit(1);
    for (long i = 0; i < count; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            exit(1);
    end = now_ns() + (uint64_t)calls * WALL;
    pthread_barrier_wait(&barrier);
    for (long i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        tally_merge(tally, workers[i].tally);
    }
    pthread_barrier_destroy(&barrier);
    release_workers(workers, count);
}

void in_threads(long count, struct tally *tally)
{
    threads(count, tally, ALLOC);
}

void nothing(long count, struct tally *tally)
{
    threads(count, tally, NOTHING);
}

void lock_alone(long count, struct tally *tally)
{
    threads(count, tally, LOCK);
}

void as_long(long count, struct tally *tally)
{
    threads(count, tally, AS_LONG);
}
