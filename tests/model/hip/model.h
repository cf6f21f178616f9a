/* model.h: the model's GPUs and queues. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "interface.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct gpu {
    char *aperture; /* where the GPU's address 0 is */
    set_event_function *set_event;
    void *event_data;
};

struct queue {
    struct gpu *gpu;
    struct queue_info info;
    atomic_bool ending, served;
};

/* ---- memory and signals ---- */

/* The GPU's address as this process sees it. Addresses beyond the aperture are the host's: the GPU accesses
 * them as with heterogeneous memory management. */
#define GPU_ADDRESS_BITS 38
static inline void *gpu_memory(const struct gpu *gpu, uint64_t address)
{
    return address >> GPU_ADDRESS_BITS ? (char *)(uintptr_t)address : gpu->aperture + address;
}

static inline struct signal *gpu_signal(const struct gpu *gpu, uint64_t handle)
{
    return gpu_memory(gpu, handle);
}

uint64_t model_clock(void);        /* ticks of 10 ns */
void model_relax(unsigned *turns); /* waits longer after more turns */

/* ---- queues ---- */

void aql_serve(struct queue *);
void sdma_serve(struct queue *);
/* Runs a dispatch to its end, or until the queue ends. */
void dispatch_run(struct queue *, const struct dispatch_packet *, uint64_t packet_address);

/* ---- control.c: the faults that a test requests, and the log ---- */

/* Waits while the queues are held; false once the queue ends or is lost. */
bool control_may_advance(struct queue *);
/* The number of bytes that may be allocated on a GPU that has `all`. */
uint64_t control_memory_limit(uint64_t all);
bool model_logs(void);
#define MODEL_LOG(...)              \
    do {                            \
        if (model_logs())           \
            model_log(__VA_ARGS__); \
    } while (0)
__attribute__((format(printf, 1, 2))) void model_log(const char *format, ...);
/* Ends the process: the model cannot continue. */
__attribute__((format(printf, 1, 2), noreturn)) void model_fail(const char *format, ...);

/* ---- model.c ---- */

/* The GPUs of the process, in the order of their nodes; NULL after the last. */
struct gpu *model_gpu(int ordinal);
int model_ordinal(const struct gpu *);

/* ---- threads.c: queues are executed by threads that were started before, because a program may forbid new ones ---- */

void threads_start(void);
void threads_serve(struct queue *);
/* Returns when no thread executes the queue any more. */
void threads_end(struct queue *);

/* ---- supplement.c ---- */

/* Reports a queue's failure to the program that created it, as the runtime does when the hardware reports one. */
void queue_report_lost(const struct queue *);

#endif
