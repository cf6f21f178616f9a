/* sim_nccl.h: the driver below the simulated NCCL and RCCL, and arithmetic. */
#ifndef SIM_NCCL_H
#define SIM_NCCL_H

#pragma GCC visibility push(default)
#ifdef SIM_RCCL
#define __HIP_PLATFORM_AMD__
#include <rccl/rccl.h>
typedef hipStream_t sim_stream;
#else
#include <nccl.h>
typedef cudaStream_t sim_stream;
#endif
#pragma GCC visibility pop

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define CHUNK ((size_t)64 << 10)

struct ncclComm {
    struct shared *shared;
    int size, rank, device;
    atomic_bool aborted;
    atomic_int running, inside; /* host functions; those that have begun */
    atomic_uint issued,
        served; /* turns: operations run in the order of the calls, also on several streams */
    ncclResult_t state;
    atomic_int connecting; /* calls that wait for a rank; an abort ends them */
    atomic_bool ended;     /* it stays in memory, so that its use is noticed */
    struct ncclComm *next; /* that has ended */
};

enum kind { K_ALL_REDUCE, K_REDUCE, K_REDUCE_SCATTER, K_BROADCAST, K_ALL_GATHER, K_SEND, K_RECV };

struct work {
    struct work *next; /* of its group */
    bool captured;
    unsigned turn; /* unless captured */
    enum kind kind;
    struct ncclComm *comm;
    void *stream;
    const void *src;
    void *dst;
    size_t count, unit;
    int type, op, root;
    char *from, *to; /* in host memory */
    size_t from_size, to_size;
    /* Of sim_nccl_work.c: */
    struct work *older, *first; /* first: of its group, when that was queued; else NULL */
    bool used;
};

/* Of the driver's simulation, which counts the call too. */
int sim_fault(const char *name);

/* ---- sim_nccl_meet.c ---- */

enum { MEET_NAME = 64 };
/* A new name of a file, at least MEET_NAME bytes. It is random, since the next process with the number of this one must not
 * meet in a file that a killed one has left. */
bool meet_name(char *name, size_t size);
/* As long as GPUGLUE_SIM_NCCL_SLOW says of this function, and GPUGLUE_SIM_NCCL_WORK of work on the device. */
void delay_call(const char *name);
void delay_work(void);

/* ---- sim_nccl_driver.c: of the driver that the process has loaded ---- */

/* Find its functions. */
bool driver_prepare(void);
/* The ordinal of the current device, or -1. */
int driver_device(void);
bool driver_captures(void *stream);
/* A device is lost, and host functions may not have run. */
bool driver_lost(void);
/* The function stands for a kernel. */
void driver_is_kernel(void (*function)(void *));
/* How many host functions of live graphs are these. */
int driver_captured(void (*function)(void *), int (*mine)(const void *, const void *),
                    const void *of);
/* Visit the host memory that queued work and graphs use: no more than the first byte of each source and destination, and what
 * host functions get. False: not known. */
bool driver_each_use(void (*visit)(const void *address));
int driver_to_host(void *to, const void *from, size_t nbytes, void *stream);
int driver_to_device(void *to, const void *from, size_t nbytes, void *stream);
int driver_host_function(void *stream, void (*function)(void *), void *data);

/* ---- sim_nccl_work.c ---- */

/* A copy of @p given, with buffers in host memory; NULL: there is none. */
struct work *work_new(const struct work *given);
/* All of this group is in the stream, or never will be. */
void work_is_queued(struct work *first);
/* Free what communicators that have ended have queued, unless the driver still uses it. */
void work_free_ended(void);

/* ---- sim_nccl_combine.c ---- */

size_t sim_nccl_size(int type);
/* out = in[0] op in[1] op …, which are one after the other. */
void sim_nccl_combine(void *out, const void *in, int inputs, size_t count, int type, int op);

#endif
