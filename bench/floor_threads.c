/* floor_threads.c: copies of pageable memory through pinned memory by several threads, in C, as simple as possible. One design, not a bound.
 * The threads wait asleep or spinning. Those that sleep are woken by the calling thread, all at the beginning of a copy, and stay awake until
 * its last part is taken.
 *
 * A copy is cut into chunks, each with one call of the driver, and a chunk into parts, which the threads take one after another. */
#include "floor.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define CHUNKS 7 /* of a copy, at most */
#define KIB ((size_t)1024)
#define SMALLEST_CHUNK (128 * KIB)
#define SMALLEST_PART (16 * KIB)
#define LARGEST_PART (512 * KIB)
#define PARTS 4 /* of a chunk, for each thread */
#define PAGE (4 * KIB)
#define LINE 64 /* bytes of a cache line */

/* The copy that runs. It changes only while no thread has a part of it. */
static struct {
    char *to;
    const char *from;
    size_t nbytes, chunk, part; /* a chunk is a multiple of a part */
    int chunks;
    bool past_caches;
} copy;

#define NO_PART UINT32_MAX /* beyond all parts of a copy */

/* A position is the number of a copy, in the upper half, and of a part in it. So positions only grow, and a thread that has
 * read one of an earlier copy cannot take a part with it. */
static uint64_t copies;
static _Alignas(LINE) _Atomic(uint64_t) next; /* the part that is taken next */
/* The parts before the first may be taken, those before the second are all; and how many threads take parts. */
static _Alignas(LINE) _Atomic(uint64_t) opened, end;
static _Atomic(int) takers;
static _Alignas(LINE) _Atomic(uint32_t) copied[CHUNKS]; /* parts of each chunk */

/* The calling thread is the first and has no entry in use. */
static struct {
    _Alignas(LINE) _Atomic(uint32_t) asleep;
    pthread_t thread;
} copiers[FLOOR_THREADS];
static int started = 1;
static _Atomic(int) spinning; /* so many threads spin */
static _Atomic(bool) ending;
static void *events[CHUNKS];

/* ---- parts ---- */

static void relax(void)
{
#if defined __SSE2__
    _mm_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

#ifdef __SSE2__
static void stream_line(__m128i *to, const __m128i *from)
{
    const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1),
                  c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
}
#endif

/* Write past the caches: the device reads pinned memory, and no processor does. */
static void copy_past_caches(char *to, const char *from, size_t nbytes)
{
#ifdef __SSE2__
    if ((uintptr_t)to % sizeof(__m128i) == 0) {
        for (; nbytes >= LINE; nbytes -= LINE, to += LINE, from += LINE)
            stream_line((__m128i *)(void *)to, (const __m128i *)(const void *)from);
        _mm_sfence();
    }
#endif
    memcpy(to, from, nbytes);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void copy_part(size_t part)
{
    const size_t at = part * copy.part, nbytes = least(copy.part, copy.nbytes - at);
    if (copy.past_caches)
        copy_past_caches(copy.to + at, copy.from + at, nbytes);
    else
        memcpy(copy.to + at, copy.from + at, nbytes);
    atomic_fetch_add(&copied[at / copy.chunk], 1);
}

/* Take a part and copy it; false if there is none for this thread. */
static bool help(int rank)
{
    uint64_t position = atomic_load(&next);
    do {
        if (rank >= atomic_load(&takers) || position >= atomic_load(&opened))
            return false;
    } while (!atomic_compare_exchange_weak(&next, &position, position + 1));
    copy_part((uint32_t)position);
    return true;
}

/* ---- threads ---- */

static bool all_taken(void)
{
    return atomic_load(&next) >= atomic_load(&end);
}

static bool stays_awake(int rank)
{
    return atomic_load(&ending) || rank < atomic_load(&spinning) ||
           (rank < atomic_load(&takers) && !all_taken());
}

static void futex(_Atomic(uint32_t) *word, int operation, uint32_t value)
{
    (void)syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

/* The thread marks itself as asleep before it checks once more; wake() reads the mark after there is something to do. So one of the two
 * sees the other. */
static void fall_asleep(int rank)
{
    _Atomic(uint32_t) *const asleep = &copiers[rank].asleep;
    atomic_store(asleep, 1);
    if (!stays_awake(rank))
        futex(asleep, FUTEX_WAIT_PRIVATE, 1);
    atomic_store(asleep, 0);
}

static void wake(int threads)
{
    for (int i = 1; i < threads; i++) {
        _Atomic(uint32_t) *const asleep = &copiers[i].asleep;
        if (atomic_load(asleep) && atomic_exchange(asleep, 0))
            futex(asleep, FUTEX_WAKE_PRIVATE, 1);
    }
}

static void *run(void *rank_given)
{
    const int rank = (int)(intptr_t)rank_given;
    while (!atomic_load(&ending)) {
        if (help(rank))
            continue;
        if (stays_awake(rank))
            relax();
        else
            fall_asleep(rank);
    }
    return NULL;
}

static int start_one(int rank)
{
    pthread_t *const thread = &copiers[rank].thread;
    const int code = pthread_create(thread, NULL, run, (void *)(intptr_t)rank);
    if (!code)
        (void)pthread_setname_np(*thread, "floor");
    return code;
}

int floor_start(int threads, bool spin)
{
    int code = 0;
    while (started < threads && !(code = start_one(started)))
        started++;
    if (!code) {
        atomic_store(&spinning, spin ? threads : 0);
        wake(threads);
    }
    return code;
}

int floor_started(void)
{
    return started;
}

void floor_rest(void)
{
    atomic_store(&spinning, 0);
}

void floor_stop(void)
{
    atomic_store(&ending, true);
    wake(started);
    while (started > 1)
        (void)pthread_join(copiers[--started].thread, NULL);
    atomic_store(&spinning, 0);
    atomic_store(&ending, false);
}

/* ---- a copy ---- */

static uint32_t parts_before(int chunk)
{
    const size_t nbytes = least((size_t)chunk * copy.chunk, copy.nbytes);
    return (uint32_t)((nbytes + copy.part - 1) / copy.part);
}

/* The parts of the first chunks may be taken from now on. */
static void open_chunks(int chunks)
{
    atomic_store(&opened, copies << 32 | parts_before(chunks));
}

static void begin(char *to, const char *from, size_t nbytes, int threads)
{
    size_t chunk = most((nbytes + CHUNKS - 1) / CHUNKS, SMALLEST_CHUNK), part;
    part = chunk / (PARTS * (size_t)threads) / PAGE * PAGE;
    part = least(most(part, SMALLEST_PART), LARGEST_PART);
    chunk = (chunk + part - 1) / part * part;
    copy.to = to, copy.from = from, copy.nbytes = nbytes;
    copy.chunk = chunk, copy.part = part;
    copy.chunks = (int)((nbytes + chunk - 1) / chunk);
    for (int i = 0; i < CHUNKS; i++)
        atomic_store(&copied[i], 0);
    atomic_store(&takers, threads);
    atomic_store(&next, ++copies << 32);
    atomic_store(&end, copies << 32 | parts_before(copy.chunks));
}

static bool is_copied(int chunk)
{
    return atomic_load(&copied[chunk]) == parts_before(chunk + 1) - parts_before(chunk);
}

static uint32_t copied_together(void)
{
    uint32_t sum = 0;
    for (int i = 0; i < CHUNKS; i++)
        sum += atomic_load(&copied[i]);
    return sum;
}

/* Let no more parts be taken, and wait for those that were: all of them, unless the driver has failed. */
static void finish(void)
{
    const uint32_t taken = (uint32_t)atomic_exchange(&next, copies << 32 | NO_PART);
    while (copied_together() != taken)
        relax();
}

static size_t begin_of(int chunk)
{
    return (size_t)chunk * copy.chunk;
}

static size_t bytes_of(int chunk)
{
    return least(copy.chunk, copy.nbytes - begin_of(chunk));
}

/* Queue each chunk when it is filled. */
int floor_copy_up(const struct raw *raw, const struct raw_driver *driver, const void *host,
                  size_t nbytes, int threads)
{
    const struct raw_bulk *const bulk = &raw->bulk;
    int code = 0, queued = 0;
    copy.past_caches = true;
    begin(bulk->pinned, host, nbytes, threads);
    open_chunks(copy.chunks);
    wake(threads);
    while (queued < copy.chunks && !code) {
        if (is_copied(queued)) {
            const size_t at = begin_of(queued);
            code = driver->h2d(bulk->memory + at, (char *)bulk->pinned + at, bytes_of(queued++),
                               raw->stream);
        } else if (!help(0)) {
            relax();
        }
    }
    finish();
    return code;
}

static int queue_down(const struct raw *raw, const struct raw_driver *driver, int chunk)
{
    const size_t at = begin_of(chunk);
    const int code = driver->d2h((char *)raw->bulk.pinned + at, raw->bulk.memory + at,
                                 bytes_of(chunk), raw->stream);
    return code ? code : driver->event_record(events[chunk], raw->stream);
}

/* Open each chunk when the device has copied it. */
static int open_as_they_arrive(const struct raw_driver *driver)
{
    int arrived = 0;
    while (arrived < copy.chunks || !all_taken()) {
        const int code =
            arrived < copy.chunks ? driver->event_query(events[arrived]) : RAW_NOT_READY;
        if (!code)
            open_chunks(++arrived);
        else if (code != RAW_NOT_READY)
            return code;
        else if (!help(0))
            relax();
    }
    return 0;
}

int floor_copy_down(const struct raw *raw, const struct raw_driver *driver, void *host,
                    size_t nbytes, int threads)
{
    int code = 0;
    copy.past_caches = false;
    begin(host, raw->bulk.pinned, nbytes, threads);
    wake(threads);
    for (int i = 0; i < copy.chunks && !code; i++)
        code = queue_down(raw, driver, i);
    if (!code)
        code = open_as_they_arrive(driver);
    finish();
    return code;
}

/* ---- events ---- */

int floor_make_events(const struct raw_driver *driver)
{
    int code = 0;
    for (int i = 0; i < CHUNKS && !code; i++)
        if (!events[i])
            code = driver->event_create(&events[i], 2);
    return code;
}

int floor_destroy_events(const struct raw_driver *driver)
{
    int code = 0;
    for (int i = 0; i < CHUNKS; i++) {
        if (events[i] && !code)
            code = driver->event_destroy(events[i]);
        events[i] = NULL;
    }
    return code;
}
