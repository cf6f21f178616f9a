/* copy_threads.h: the threads that help to move bytes between staging slots and the caller's memory, and the
 * queues of chunks they take their work from. */
#ifndef GPUGLUE_COPY_THREADS_H
#define GPUGLUE_COPY_THREADS_H

#include "base/env.h"
#include "transfer/box.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define GGI_QUEUE_SLOTS 8u      /* of a queue */
#define GGI_CHUNK_PARTS_MAX 64u /* of a chunk */

/* What the host copies of one chunk. It is cut into parts, which threads take one by one. */
struct ggi_host_copy_task {
    struct ggi_box box;
    struct ggi_cut cut;
    char *dst;
    const char *src;
    bool past_caches; /* the device reads dst next */
};

/* Chunk numbers continue from one transfer to the next and are never reused. Chunk c uses slot c % slots;
 * part p of it is number c * GGI_CHUNK_PARTS_MAX + p. */
struct ggi_copy_queue {
    _Atomic(unsigned) slots;
    _Atomic(uint64_t) next;                  /* the part to be taken next */
    _Atomic(uint64_t) open;                  /* chunks below it may be worked on */
    _Atomic(uint64_t) end[GGI_QUEUE_SLOTS];  /* one past the last part of the slot's chunk */
    _Atomic(unsigned) done[GGI_QUEUE_SLOTS]; /* parts of it */
    struct ggi_host_copy_task task[GGI_QUEUE_SLOTS];
    _Atomic(int) threads; /* how many may work on it, with the calling thread */
};

struct ggi_copy_threads {
    const char *backend;                            /* for the log */
    pthread_mutex_t lock;                           /* to start and stop them */
    _Atomic(int) sleeping;                          /* how many; 0: there is none to be woken */
    _Atomic(uint32_t) asleep[GGI_COPY_THREADS_MAX]; /* by rank - 1: 1 until another thread wakes it */
    _Atomic(bool) stop;
    int started;
    uint64_t refused_at; /* when the system last refused to start one; 0: it did not, or has started them since */
    pthread_t thread[GGI_COPY_THREADS_MAX];
    cpu_set_t allowed;  /* the process's processors when the threads were placed */
    uint64_t placed_at; /* the reading of them that this is based on */
    int32_t node;       /* of memory, near the device; -1: not known */
    struct ggi_copy_queue queue[2];
};

/* How many threads may copy, with the calling one: GPUGLUE_COPY_THREADS, or the processors that this process may
 * use at present. */
int ggi_copy_thread_count(void);
/* Start up to @p count - 1 threads, as many as the system allows; returns how many there are. After a refusal the system
 * is asked again a second later. */
int ggi_copy_threads_start(struct ggi_copy_threads *threads, int count);
void ggi_copy_threads_stop(struct ggi_copy_threads *threads);
/* Wake the sleeping ones among @p count threads, 16 at most; each of those wakes more if there are others. */
void ggi_copy_threads_wake(struct ggi_copy_threads *threads, int count);
extern uint64_t ggi_copy_threads_spin_ns;  /* before an idle thread sleeps; tests lower it */
extern uint64_t ggi_copy_threads_retry_ns; /* from a refusal to the next attempt; tests change it */

/* Cut the task of @p chunk into parts of about @p part bytes. The queue's slot is free. @p caller: the side with the strides
 * of the caller's memory, of which each part is one range where they permit: threads that write to the same cache lines
 * slow each other down. */
void ggi_copy_queue_cut(struct ggi_copy_queue *queue, uint64_t chunk, size_t part,
                        enum ggi_side caller);
/* Chunks below @p open may be worked on. */
void ggi_copy_queue_publish(struct ggi_copy_threads *threads, struct ggi_copy_queue *queue,
                            uint64_t open);
/* Do one part of the open chunks; false when there is none left to take. */
bool ggi_copy_queue_work(struct ggi_copy_queue *queue);
static inline bool ggi_copy_queue_is_done(const struct ggi_copy_queue *queue, uint64_t chunk)
{
    const unsigned slot = (unsigned)(chunk % queue->slots);
    return atomic_load_explicit(&queue->done[slot], memory_order_acquire) ==
           queue->task[slot].cut.count;
}

#endif
