/* threads.c: the threads that execute queues. */
#include "model.h"

#include <signal.h>

enum { THREADS = 12, WAITING = 128 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct queue *waiting[WAITING]; /* for a thread */
static int waiting_count, free_threads;

static struct queue *threads_take(void)
{
    pthread_mutex_lock(&lock);
    free_threads++;
    while (!waiting_count)
        pthread_cond_wait(&changed, &lock);
    free_threads--;
    struct queue *queue = waiting[--waiting_count];
    pthread_mutex_unlock(&lock);
    return queue;
}

static void *thread_main(void *data)
{
    (void)data;
    for (;;) {
        struct queue *queue = threads_take();
        if (queue->info.type == QUEUE_AQL)
            aql_serve(queue);
        else
            sdma_serve(queue);
        pthread_mutex_lock(&lock);
        queue->served = false;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* Signals are delivered to the program's own threads. */
static bool thread_start(void)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(&thread, NULL, thread_main, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

void threads_start(void)
{
    for (int n = 0; n < THREADS; n++)
        if (!thread_start())
            model_fail("no thread can be started for a queue");
}

void threads_serve(struct queue *queue)
{
    pthread_mutex_lock(&lock);
    const bool enough = free_threads > waiting_count;
    queue->served = true;
    waiting[waiting_count++] = queue;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (!enough && !thread_start())
        MODEL_LOG("queue %p waits for a thread", (void *)queue);
}

void threads_end(struct queue *queue)
{
    pthread_mutex_lock(&lock);
    while (queue->served)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}
