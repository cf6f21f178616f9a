/* copy_threads.c: the copy threads: how many, on which processors, when they sleep. A thread only moves bytes:
 * it calls no driver, allocates nothing and takes a lock only to sleep. */
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/process_state.h"
#include "base/processors.h"
#include "base/signals.h"
#include "transfer/copy_threads.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS_DEFAULT_MAX 16
#define STACK_SIZE ((size_t)512 << 10)
/* Threads that one thread wakes: a system call of 2 µs each. A woken one needs 50 µs or more on an idle processor, so it wakes others
 * only where there are many. */
#define WAKES 16u

/* Longer than the copy engine takes for a chunk, and than most programs need from one copy to the next: waking a
 * thread may take longer than a copy of 1 MiB. */
uint64_t ggi_copy_threads_spin_ns = 200000;

uint64_t ggi_copy_threads_retry_ns = 1000000000;

/* ---- how many ---- */

int ggi_copy_thread_count(void)
{
    const int cores = ggi_processor_count();
    return (int)ggi_env_value(GGI_ENV_COPY_THREADS,
                              cores < THREADS_DEFAULT_MAX ? cores : THREADS_DEFAULT_MAX);
}

/* ---- the queue ---- */

void ggi_copy_queue_cut(struct ggi_copy_queue *queue, uint64_t chunk, size_t part,
                        enum ggi_side caller)
{
    const unsigned slot = (unsigned)(chunk % queue->slots);
    struct ggi_host_copy_task *task = &queue->task[slot];
    const size_t least = ggi_box_bytes(&task->box) / GGI_CHUNK_PARTS_MAX;
    ptrdiff_t strides[GG_COPY_MAX_DIMS], dst, src;
    ggi_box_order(&task->box, caller, &dst, &src);
    task->dst += dst;
    task->src += src;
    ggi_box_pack(&task->box, false, GGI_DST, strides);
    do /* uneven axes make more parts than there are numbers for */
        ggi_cut_make(&task->cut, &task->box, strides, part);
    while (task->cut.count > GGI_CHUNK_PARTS_MAX && (part = part < least ? 2 * least : 2 * part));
    atomic_store_explicit(&queue->done[slot], 0, memory_order_relaxed);
    atomic_store_explicit(&queue->end[slot], chunk * GGI_CHUNK_PARTS_MAX + task->cut.count,
                          memory_order_relaxed);
}

/* No other thread has taken this number. */
static void queue_do_part(struct ggi_copy_queue *queue, unsigned slot, size_t part)
{
    const struct ggi_host_copy_task *task = &queue->task[slot];
    struct ggi_box box;
    ptrdiff_t dst, src;
    ggi_cut_chunk(&task->cut, &task->box, part, &box, &dst, &src);
    if (task->past_caches && !box.axes)
        ggi_copy_past_caches(task->dst + dst, task->src + src, box.run);
    else
        ggi_box_copy(task->dst + dst, task->src + src, &box);
    atomic_fetch_add_explicit(&queue->done[slot], 1, memory_order_release);
}

bool ggi_copy_queue_work(struct ggi_copy_queue *queue)
{
    for (;;) {
        uint64_t number = atomic_load(&queue->next), chunk = number / GGI_CHUNK_PARTS_MAX;
        if (chunk >= atomic_load(&queue->open))
            return false;
        unsigned slot = (unsigned)(chunk % atomic_load(&queue->slots));
        uint64_t end = atomic_load_explicit(&queue->end[slot], memory_order_relaxed);
        /* The values read are valid if `next` has not changed since: the slot is not reused before all parts of
         * the chunk are taken. */
        bool none = (end - 1) / GGI_CHUNK_PARTS_MAX != chunk || number >= end;
        uint64_t after = none ? (chunk + 1) * GGI_CHUNK_PARTS_MAX : number + 1;
        if (!atomic_compare_exchange_weak(&queue->next, &number, after) || none)
            continue;
        queue_do_part(queue, slot, (size_t)(number % GGI_CHUNK_PARTS_MAX));
        return true;
    }
}

/* ---- sleeping and waking ---- */

static void futex_call(_Atomic(uint32_t) *word, int operation, uint32_t value)
{
    syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

void ggi_copy_threads_wake(struct ggi_copy_threads *threads, int count)
{
    unsigned woken = 0;
    if (!atomic_load(&threads->sleeping))
        return;
    for (int rank = 1; rank < count && rank <= GGI_COPY_THREADS_MAX && woken < WAKES; rank++) {
        _Atomic(uint32_t) *asleep = &threads->asleep[rank - 1];
        if (!atomic_load(asleep) || !atomic_exchange(asleep, 0))
            continue;
        futex_call(asleep, FUTEX_WAKE_PRIVATE, 1);
        woken++;
    }
}

/* Lost-wakeup protocol: a thread sets `asleep` before its last check; the producer publishes `open` before it
 * reads `asleep`. All of it is sequentially consistent, or both might miss the other. */
void ggi_copy_queue_publish(struct ggi_copy_threads *threads, struct ggi_copy_queue *queue,
                            uint64_t open)
{
    atomic_store(&queue->open, open);
    ggi_copy_threads_wake(threads, atomic_load(&queue->threads));
}

/* ---- the threads ---- */

static bool queue_has_work(struct ggi_copy_queue *queue, int rank)
{
    return rank < atomic_load(&queue->threads) &&
           atomic_load(&queue->next) / GGI_CHUNK_PARTS_MAX < atomic_load(&queue->open);
}

static bool threads_have_work(struct ggi_copy_threads *threads, int rank)
{
    return atomic_load(&threads->stop) || queue_has_work(&threads->queue[0], rank) ||
           queue_has_work(&threads->queue[1], rank);
}

/* Sleep until another thread clears `asleep`, then pass the wake-up on. */
static void worker_sleep(struct ggi_copy_threads *threads, int rank)
{
    _Atomic(uint32_t) *asleep = &threads->asleep[rank - 1];
    atomic_store(asleep, 1);
    atomic_fetch_add(&threads->sleeping, 1);
    while (!threads_have_work(threads, rank) && atomic_load(asleep))
        futex_call(asleep, FUTEX_WAIT_PRIVATE, 1);
    atomic_store(asleep, 0);
    atomic_fetch_sub(&threads->sleeping, 1);
    for (int i = 0; i < 2; i++)
        ggi_copy_threads_wake(threads, atomic_load(&threads->queue[i].threads));
}

struct worker {
    struct ggi_copy_threads *threads;
    int rank; /* the calling thread has 0 */
};

/* One part of each queue in turn: the calling thread may not help. */
static bool worker_work(struct ggi_copy_threads *threads, int rank)
{
    bool worked = false;
    for (int i = 0; i < 2; i++)
        if (queue_has_work(&threads->queue[i], rank) && ggi_copy_queue_work(&threads->queue[i]))
            worked = true;
    return worked;
}

static void *worker_run(void *argument)
{
    const struct worker self = *(struct worker *)argument;
    struct ggi_copy_threads *threads = self.threads;
    uint64_t idle_since = 0;
    free(argument);
    while (!atomic_load(&threads->stop)) {
        uint64_t now;
        if (worker_work(threads, self.rank)) {
            idle_since = 0;
            continue;
        }
        now = ggi_now_ns();
        idle_since = idle_since ? idle_since : now;
        if (now - idle_since >= ggi_copy_threads_spin_ns) {
            worker_sleep(threads, self.rank);
            idle_since = 0;
        } else {
            sched_yield();
        }
    }
    return NULL;
}

/* ---- starting them ---- */

/* The processors of the node that the process may run on; the file holds "0-15,32-47". */
static bool processors_of_node(int32_t node, cpu_set_t *out)
{
    char path[80];
    cpu_set_t allowed;
    int first, last;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", (int)node);
    FILE *stream = node < 0 || !ggi_processors_get(&allowed) ? NULL : fopen(path, "re");
    CPU_ZERO(out);
    if (!stream)
        return false;
    while (fscanf(stream, "%d", &first) == 1) {
        if (fscanf(stream, "-%d", &last) != 1)
            last = first;
        for (; first >= 0 && first <= last && first < CPU_SETSIZE; first++)
            if (CPU_ISSET((size_t)first, &allowed))
                CPU_SET((size_t)first, out);
        if (fgetc(stream) != ',')
            break;
    }
    fclose(stream);
    return CPU_COUNT(out) > 0;
}

static bool worker_start(struct ggi_copy_threads *threads, const pthread_attr_t *attributes)
{
    pthread_t *thread = &threads->thread[threads->started];
    struct worker *worker = malloc(sizeof *worker);
    if (!worker)
        return false;
    *worker = (struct worker){threads, threads->started + 1};
    if (pthread_create(thread, attributes, worker_run, worker)) {
        free(worker);
        return false;
    }
    pthread_setname_np(*thread, "gpuglue-copy");
    threads->started++;
    return true;
}

/* Where the threads belong: near the device, or anywhere if too few of the process's processors are there. */
static bool threads_place(struct ggi_copy_threads *threads, int workers, cpu_set_t *out)
{
    return ggi_processors_get(&threads->allowed) &&
           ((processors_of_node(threads->node, out) && CPU_COUNT(out) >= workers) ||
            ggi_processors_get(out));
}

/* With the lock held: follow the process to other processors. */
static void threads_follow(struct ggi_copy_threads *threads)
{
    cpu_set_t allowed, processors;
    const uint64_t read_at = ggi_processors_read_at();
    if (!threads->started || threads->placed_at == read_at)
        return;
    threads->placed_at = read_at;
    if (!ggi_processors_get(&allowed) || CPU_EQUAL(&allowed, &threads->allowed) ||
        !threads_place(threads, threads->started, &processors))
        return;
    for (int i = 0; i < threads->started; i++)
        pthread_setaffinity_np(threads->thread[i], sizeof processors, &processors);
}

static bool threads_may_start(const struct ggi_copy_threads *threads, int workers)
{
    return workers > threads->started && !atomic_load(&threads->stop) &&
           (!threads->refused_at || ggi_now_ns() - threads->refused_at >= ggi_copy_threads_retry_ns);
}

/* Only the first refusal in a row is logged. */
static void threads_note_refusal(struct ggi_copy_threads *threads, int workers)
{
    const bool refused = threads->started < workers;
    if (refused && !threads->refused_at)
        ggi_log(GG_LOG_WARN, threads->backend,
                "the operating system refused to start a copy thread: copies use %d of %d threads",
                threads->started + 1, workers + 1);
    threads->refused_at = refused ? ggi_now_ns() : 0;
}

/* With the lock held. */
static void threads_start(struct ggi_copy_threads *threads, int workers)
{
    pthread_attr_t attributes;
    cpu_set_t processors;
    sigset_t before;
    if (pthread_attr_init(&attributes))
        return;
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    if (threads_place(threads, workers, &processors))
        pthread_attr_setaffinity_np(&attributes, sizeof processors, &processors);
    ggi_block_signals(&before);
    while (threads->started < workers && worker_start(threads, &attributes)) {
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    threads_note_refusal(threads, workers);
}

int ggi_copy_threads_start(struct ggi_copy_threads *threads, int count)
{
    const int workers = count - 1 < GGI_COPY_THREADS_MAX ? count - 1 : GGI_COPY_THREADS_MAX;
    pthread_mutex_lock(&threads->lock);
    if (threads_may_start(threads, workers))
        threads_start(threads, workers);
    threads_follow(threads);
    const int started = threads->started;
    pthread_mutex_unlock(&threads->lock);
    return started;
}

void ggi_copy_threads_stop(struct ggi_copy_threads *threads)
{
    pthread_mutex_lock(&threads->lock);
    atomic_store(&threads->stop, true);
    int count = threads->started;
    for (int i = 0; i < count; i++) {
        atomic_store(&threads->asleep[i], 0);
        futex_call(&threads->asleep[i], FUTEX_WAKE_PRIVATE, 1);
    }
    threads->started = 0;
    pthread_mutex_unlock(&threads->lock);
    for (int i = 0; i < count; i++)
        pthread_join(threads->thread[i], NULL);
}
