/* model.c: the functions that libhsa-runtime64 calls: GPUs, and queues, each executed by a thread. */
#include "model.h"
#include "runtime.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 200, SHORT_SLEEPS = 2000, SHORT_US = 20, LONG_US = 500 };

uint64_t model_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 100000000 + (uint64_t)now.tv_nsec / 10;
}

void model_relax(unsigned *turns)
{
    if (++*turns > SPINS)
        usleep(*turns > SHORT_SLEEPS ? LONG_US : SHORT_US);
}

/* ---- GPUs ---- */

enum { GPUS = 8 };
static struct gpu *gpus[GPUS + 1];
static int gpu_count;

struct gpu *model_gpu(int ordinal)
{
    return gpus[ordinal];
}

int model_ordinal(const struct gpu *gpu)
{
    int ordinal = 0;
    while (gpus[ordinal] != gpu)
        ordinal++;
    return ordinal;
}

static struct gpu *create(void)
{
    if (gpu_count == GPUS)
        model_fail("there are at most %d GPUs", GPUS);
    threads_start();
    return gpus[gpu_count++] = calloc(1, sizeof(struct gpu));
}

/* The runtime never calls it. */
static void destroy(struct gpu *gpu)
{
    (void)gpu;
}

/* A forked child does not use the GPU, and copying the page tables of such a large range can fail. */
static void set_aperture(struct gpu *gpu, void *base, uint64_t size)
{
    gpu->aperture = base;
    madvise(base, size, MADV_DONTFORK);
}

static void memory_allocated(struct gpu *gpu, void *address, uint64_t size, uint32_t flags)
{
    MODEL_LOG("GPU %d: memory %p, %llu bytes, flags %x", model_ordinal(gpu), address,
              (unsigned long long)size, flags);
    runtime_allocated(flags);
}

static void memory_freed(struct gpu *gpu, void *address, uint64_t size)
{
    (void)gpu;
    MODEL_LOG("memory %p, %llu bytes: freed", address, (unsigned long long)size);
}

static void set_notify(struct gpu *gpu, void (*callback)(void *), void *data)
{
    (void)gpu;
    (void)callback;
    (void)data;
}

static void set_wait(struct gpu *gpu, void (*callback)(void *, uint64_t, uint64_t), void *data)
{
    (void)gpu;
    (void)callback;
    (void)data;
}

static void set_event(struct gpu *gpu, set_event_function *function, void *data)
{
    gpu->set_event = function;
    gpu->event_data = data;
}

/* The GPUs' own addresses begin at 0, so the program's memory must not be there, as the heap of a program at a fixed address is.
 * With a page behind the heap, malloc takes more memory elsewhere. */
__attribute__((constructor)) static void stop_heap(void)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t end = ((uintptr_t)sbrk(0) + page - 1) / page * page;
    if (!(end >> GPU_ADDRESS_BITS))
        mmap((void *)end, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

/* ---- queues ---- */

static struct queue *create_queue(struct gpu *gpu, const struct queue_info *info)
{
    struct queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->gpu = gpu;
    queue->info = *info;
    MODEL_LOG("GPU %d: queue %p of type %u, %u bytes", model_ordinal(gpu), (void *)queue,
              info->type, info->ring_bytes);
    threads_serve(queue);
    return queue;
}

static void destroy_queue(struct gpu *gpu, struct queue *queue)
{
    (void)gpu;
    atomic_store(&queue->ending, true);
    threads_end(queue);
    MODEL_LOG("queue %p: destroyed", (void *)queue);
    free(queue);
}

static const struct model_functions functions = {
    .major = INTERFACE_MAJOR,
    .minor = INTERFACE_MINOR,
    .create = create,
    .destroy = destroy,
    .set_aperture = set_aperture,
    .memory_allocated = memory_allocated,
    .memory_freed = memory_freed,
    .set_notify = set_notify,
    .set_wait = set_wait,
    .create_queue = create_queue,
    .set_event_function = set_event,
    .destroy_queue = destroy_queue,
};

__attribute__((visibility("default"))) const struct model_functions *get_hsakmt_model_functions(void)
{
    return &functions;
}
