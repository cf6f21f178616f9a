/* sim_nccl.c: NCCL and RCCL for the simulated drivers, compiled against the vendors' own headers.
 *
 * Ranks are processes or threads. They meet in a file of shared memory whose name is in the id. An operation is a host function of the
 * stream: it publishes what the rank sends, waits for the other ranks, and combines. Device memory is reached through the
 * driver's own copies to and from host memory, on a stream of this library.
 *
 * Controls: GPUGLUE_SIM_FAIL, …_HANG and …_CRASH take the names of these functions; GPUGLUE_SIM_NCCL_VERSION is what
 * ncclGetVersion returns. Calls of the function GPUGLUE_SIM_NCCL_CONNECTS wait until their communicator is aborted, as for a
 * rank to which it connects; those of GPUGLUE_SIM_NCCL_SLOW, a name or name:milliseconds, take 0.3 s or that long. Work on the device takes
 * GPUGLUE_SIM_NCCL_WORK milliseconds more. A rank whose peer has died waits until it aborts, as
 * the real library does. Destroy and abort wait for graphs, as there (NCCL, src/init.cc: commDestroySync). A communicator that
 * is used later or meanwhile ends the process. */
#include "sim_nccl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 16, ID_MAGIC = 0x4c434e, TASKS = 64 };

/* ---- what the ranks share ---- */

struct mail { /* from one rank to another */
    atomic_uint sent, taken;
    size_t nbytes;
    char data[CHUNK];
};

struct shared {
    atomic_int joined, left;
    struct mail mail[RANKS][RANKS];
};

struct id {
    int magic;
    char name[MEET_NAME];
};

static _Thread_local int depth; /* of groups */
static _Thread_local struct work *group_first, *group_last;
static _Thread_local char last_error[200];

static ncclResult_t fail(ncclResult_t code, const char *text)
{
    snprintf(last_error, sizeof last_error, "%s", text);
    return code;
}

/* A failure with a code of its own has no text: the last one stays, as in the real libraries. */
#define ENTER(name)                                     \
    do {                                                \
        const int fault_ = sim_fault(name);             \
        if (fault_ == 999)                              \
            return fail(ncclInternalError, "injected"); \
        if (fault_)                                     \
            return (ncclResult_t)fault_;                \
    } while (0)

/* ---- creation ---- */

ncclResult_t ncclGetVersion(int *version)
{
    const char *own = getenv("GPUGLUE_SIM_NCCL_VERSION");
    ENTER("ncclGetVersion");
    *version = own ? atoi(own) : NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *out)
{
    struct id id = {.magic = ID_MAGIC};
    fail(ncclSuccess, "Missing \"iommu=pt\""); /* RCCL warns so of most machines */
    ENTER("ncclGetUniqueId");
    if (!meet_name(id.name, sizeof id.name))
        return fail(ncclSystemError, "no random number");
    memset(out, 0, sizeof *out);
    memcpy(out, &id, sizeof id);
    return ncclSuccess;
}

static struct shared *shared_open(const char *name)
{
    const int file = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *mapped = MAP_FAILED;
    if (file >= 0 && ftruncate(file, sizeof(struct shared)) == 0)
        mapped = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static void work_run(void *data);
static int work_is_of(const void *work, const void *comm);

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

ncclResult_t ncclCommInitRank(ncclComm_t *out, int size, ncclUniqueId given, int rank)
{
    struct id id;
    ENTER("ncclCommInitRank");
    delay_call("ncclCommInitRank");
    memcpy(&id, &given, sizeof id);
    if (id.magic != ID_MAGIC || size < 1 || size > RANKS || rank < 0 || rank >= size)
        return fail(ncclInvalidArgument, "wrong id, size or rank");
    struct ncclComm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return ncclSystemError;
    *comm = (struct ncclComm){.size = size, .rank = rank, .device = driver_device()};
    comm->shared = shared_open(id.name);
    if (comm->device < 0 || !comm->shared || !driver_prepare()) {
        const bool lost = comm->device < 0;
        free(comm);
        return fail(lost ? ncclUnhandledCudaError : ncclSystemError,
                    "no current device, or no shared memory");
    }
    driver_is_kernel(work_run);
    atomic_fetch_add(&comm->shared->joined, 1);
    while (atomic_load(&comm->shared->joined) < size)
        pause_briefly();
    if (rank == 0)
        shm_unlink(id.name);
    if (sim_fault("ncclCommInitRank_joined")) {
        munmap(comm->shared, sizeof *comm->shared);
        free(comm);
        return fail(ncclInternalError, "injected");
    }
    *out = comm;
    return ncclSuccess;
}

static _Atomic(struct ncclComm *) ended_first;

static void comm_check(struct ncclComm *comm)
{
    if (comm && atomic_load(&comm->ended)) {
        fprintf(stderr, "sim: a communicator was used after its end\n");
        abort();
    }
}

/* At the begin of a call, during which the communicator must not end. */
static ncclResult_t comm_enter(struct ncclComm *comm, const char *name)
{
    const char *connects = getenv("GPUGLUE_SIM_NCCL_CONNECTS");
    comm_check(comm);
    if (connects && !strcmp(connects, name)) {
        atomic_fetch_add(&comm->connecting, 1);
        while (!atomic_load(&comm->aborted))
            pause_briefly();
        atomic_fetch_sub(&comm->connecting, 1);
        return fail(ncclInternalError, "aborted");
    }
    delay_call(name);
    comm_check(comm);
    return ncclSuccess;
}

/* As the real library: a communicator is valid until it is destroyed, whatever others do. */
static void comm_end(struct ncclComm *comm)
{
    while ((atomic_load(&comm->running) && !driver_lost()) || atomic_load(&comm->connecting) ||
           driver_captured(work_run, work_is_of, comm))
        pause_briefly();
    /* What runs on a lost device ends at once, and what begins now finds the mark. */
    atomic_store(&comm->aborted, true);
    while (atomic_load(&comm->inside))
        pause_briefly();
    atomic_store(&comm->ended, true);
    munmap(comm->shared, sizeof *comm->shared);
    comm->next = atomic_load(&ended_first);
    while (!atomic_compare_exchange_weak(&ended_first, &comm->next, comm))
        ;
    work_free_ended();
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    comm_check(comm);
    ENTER("ncclCommDestroy");
    comm_end(comm);
    return ncclSuccess;
}

/* As the real library: it sets its flag first, and only what frees the communicator can fail. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    comm_check(comm);
    const int fault = sim_fault("ncclCommAbort");
    atomic_store(&comm->aborted, true);
    if (fault)
        return fail(ncclSystemError, "injected");
    comm_end(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    comm_check(comm);
    ENTER("ncclCommGetAsyncError");
    *state = comm->state;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *size)
{
    ENTER("ncclCommCount");
    *size = comm->size;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    ENTER("ncclCommUserRank");
    *rank = comm->rank;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    ENTER("ncclCommCuDevice");
    *device = comm->device;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled device error",
                                        "system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "in progress"};
    return result >= 0 && (size_t)result < sizeof texts / sizeof texts[0] ? texts[result]
                                                                          : "unknown";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return last_error;
}

/* ---- messages ---- */

/* False: aborted. */
static bool mail_put(struct ncclComm *comm, int to, const char *data, size_t nbytes, size_t *at)
{
    struct mail *mail = &comm->shared->mail[comm->rank][to];
    if (atomic_load(&mail->sent) != atomic_load(&mail->taken))
        return false;
    const size_t some = nbytes - *at < CHUNK ? nbytes - *at : CHUNK;
    memcpy(mail->data, data + *at, some);
    mail->nbytes = some;
    atomic_fetch_add(&mail->sent, 1);
    *at += some;
    return true;
}

static bool mail_get(struct ncclComm *comm, int from, char *data, size_t nbytes, size_t *at)
{
    struct mail *mail = &comm->shared->mail[from][comm->rank];
    if (atomic_load(&mail->sent) == atomic_load(&mail->taken))
        return false;
    const size_t some = mail->nbytes < nbytes - *at ? mail->nbytes : nbytes - *at;
    memcpy(data + *at, mail->data, some);
    atomic_fetch_add(&mail->taken, 1);
    *at += some;
    return true;
}

/* ---- operations: messages of a group that progress together ---- */

struct transfer {
    bool sends;
    int peer;
    char *data;
    size_t nbytes, at;
};

static void transfers_run(struct ncclComm *comm, struct transfer *transfers, int count)
{
    for (bool left = true; left && !atomic_load(&comm->aborted);) {
        bool moved = left = false;
        for (int i = 0; i < count; i++) {
            struct transfer *t = &transfers[i];
            bool earlier = false; /* messages between two ranks keep their order */
            for (int j = 0; j < i; j++)
                earlier =
                    earlier || (transfers[j].sends == t->sends && transfers[j].peer == t->peer &&
                                transfers[j].at < transfers[j].nbytes);
            if (t->at == t->nbytes)
                continue;
            left = true;
            if (!earlier)
                moved = (t->sends ? mail_put(comm, t->peer, t->data, t->nbytes, &t->at)
                                  : mail_get(comm, t->peer, t->data, t->nbytes, &t->at)) ||
                        moved;
        }
        if (left && !moved)
            pause_briefly();
    }
}

/* All ranks exchange @p size bytes with all, of which block r goes to rank r, or the same to each. */
static char *work_exchange(struct work *w, size_t size, bool blocks)
{
    struct ncclComm *comm = w->comm;
    struct transfer transfers[2 * RANKS];
    char *all = malloc((size_t)comm->size * size);
    if (!all)
        abort();
    for (int i = 0; i < comm->size; i++) {
        transfers[i] =
            (struct transfer){true, i, w->from + (blocks ? (size_t)i * size : 0), size, 0};
        transfers[comm->size + i] = (struct transfer){false, i, all + (size_t)i * size, size, 0};
    }
    transfers_run(comm, transfers, 2 * comm->size);
    return all;
}

static void work_combine(struct work *w)
{
    const size_t block = w->count * w->unit;
    char *all = work_exchange(w, block, w->kind == K_REDUCE_SCATTER);
    if (w->to)
        sim_nccl_combine(w->to, all, w->comm->size, w->count, w->type, w->op);
    free(all);
}

static void work_broadcast(struct work *w)
{
    struct ncclComm *comm = w->comm;
    struct transfer transfers[RANKS];
    int count = 0;
    for (int i = 0; comm->rank == w->root && i < comm->size; i++)
        if (i != w->root)
            transfers[count++] = (struct transfer){true, i, w->from, w->from_size, 0};
    if (comm->rank == w->root)
        memcpy(w->to, w->from, w->from_size);
    else
        transfers[count++] = (struct transfer){false, w->root, w->to, w->to_size, 0};
    transfers_run(comm, transfers, count);
}

static void work_collective(struct work *w)
{
    if (w->kind == K_BROADCAST) {
        work_broadcast(w);
    } else if (w->kind == K_ALL_GATHER) {
        char *all = work_exchange(w, w->from_size, false);
        memcpy(w->to, all, w->to_size);
        free(all);
    } else {
        work_combine(w);
    }
}

static int work_is_of(const void *work, const void *comm)
{
    return ((const struct work *)work)->comm == comm;
}

static void work_wait_for_turn(const struct work *first)
{
    struct ncclComm *comm = first->comm;
    while (!first->captured && atomic_load(&comm->served) != first->turn &&
           !atomic_load(&comm->aborted) && !driver_lost())
        pause_briefly();
}

/* The host function in the stream, between the copies to and from host memory. Graphs run it again. */
static void work_run(void *data)
{
    struct work *first = data;
    struct ncclComm *comm = first->comm;
    struct transfer transfers[TASKS];
    int count = 0;
    delay_work();
    atomic_fetch_add(&comm->inside, 1);
    work_wait_for_turn(first);
    for (struct work *w = first; w && !atomic_load(&comm->aborted); w = w->next)
        if (w->kind == K_SEND || w->kind == K_RECV)
            transfers[count++] =
                (struct transfer){w->kind == K_SEND, w->root, w->kind == K_SEND ? w->from : w->to,
                                  w->count * w->unit, 0};
        else
            work_collective(w);
    transfers_run(comm, transfers, count);
    if (!first->captured)
        atomic_fetch_add(&comm->served, 1);
    atomic_fetch_sub(&comm->inside, 1);
    if (!first->captured)
        atomic_fetch_sub(&comm->running, 1);
}

static ncclResult_t group_submit(struct work *first)
{
    int code = 0;
    for (struct work *w = first; w && !code; w = w->next)
        if (w->from_size)
            code = driver_to_host(w->from, w->src, w->from_size, w->stream);
    first->captured = driver_captures(first->stream);
    if (!first->captured) {
        atomic_fetch_add(&first->comm->running, 1);
        first->turn = atomic_fetch_add(&first->comm->issued, 1);
    }
    if (!code)
        code = driver_host_function(first->stream, work_run, first);
    if (code && !first->captured) {
        atomic_fetch_sub(&first->comm->issued, 1);
        atomic_fetch_sub(&first->comm->running, 1);
    }
    for (struct work *w = first; w && !code; w = w->next)
        if (w->to_size)
            code = driver_to_device(w->dst, w->to, w->to_size, w->stream);
    work_is_queued(first);
    return code ? fail(ncclUnhandledCudaError, "a driver call failed") : ncclSuccess;
}

static ncclResult_t work_add(struct work given)
{
    if (!given.comm || (given.count && given.root >= given.comm->size))
        return fail(ncclInvalidArgument, "wrong communicator or rank");
    if (!given.count)
        return ncclSuccess;
    struct work *w = work_new(&given);
    if (!w)
        return ncclSystemError;
    if (!depth)
        return group_submit(w);
    *(group_last ? &group_last->next : &group_first) = w;
    group_last = w;
    return ncclSuccess;
}

static ncclResult_t work_call(const char *name, struct work given)
{
    const ncclResult_t result = given.comm ? comm_enter(given.comm, name) : ncclSuccess;
    return result ? result : work_add(given);
}

ncclResult_t ncclGroupStart(void)
{
    ENTER("ncclGroupStart");
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    struct work *first = group_first;
    if (!depth)
        return fail(ncclInvalidUsage, "no group");
    depth--;
    group_first = group_last = NULL;
    ENTER("ncclGroupEnd");
    return first ? group_submit(first) : ncclSuccess;
}

#define TYPE_CHECK()                                                    \
    if (type < 0 || type >= ncclNumTypes || op < 0 || op >= ncclNumOps) \
    return fail(ncclInvalidArgument, "wrong type or operator")

ncclResult_t ncclAllReduce(const void *src, void *dst, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, sim_stream stream)
{
    ENTER("ncclAllReduce");
    TYPE_CHECK();
    return work_call("ncclAllReduce", (struct work){.kind = K_ALL_REDUCE,
                                                    .comm = comm,
                                                    .stream = stream,
                                                    .src = src,
                                                    .dst = dst,
                                                    .count = count,
                                                    .unit = sim_nccl_size((int)type),
                                                    .type = (int)type,
                                                    .op = (int)op});
}

ncclResult_t ncclReduce(const void *src, void *dst, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, sim_stream stream)
{
    ENTER("ncclReduce");
    TYPE_CHECK();
    return work_call("ncclReduce", (struct work){.kind = K_REDUCE,
                                                 .comm = comm,
                                                 .stream = stream,
                                                 .src = src,
                                                 .dst = dst,
                                                 .count = count,
                                                 .unit = sim_nccl_size((int)type),
                                                 .type = (int)type,
                                                 .op = (int)op,
                                                 .root = root});
}

ncclResult_t ncclReduceScatter(const void *src, void *dst, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, sim_stream stream)
{
    ENTER("ncclReduceScatter");
    TYPE_CHECK();
    return work_call("ncclReduceScatter", (struct work){.kind = K_REDUCE_SCATTER,
                                                        .comm = comm,
                                                        .stream = stream,
                                                        .src = src,
                                                        .dst = dst,
                                                        .count = count,
                                                        .unit = sim_nccl_size((int)type),
                                                        .type = (int)type,
                                                        .op = (int)op});
}

ncclResult_t ncclBroadcast(const void *src, void *dst, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, sim_stream stream)
{
    ENTER("ncclBroadcast");
    return work_call("ncclBroadcast", (struct work){.kind = K_BROADCAST,
                                                    .comm = comm,
                                                    .stream = stream,
                                                    .src = src,
                                                    .dst = dst,
                                                    .count = count,
                                                    .unit = sim_nccl_size((int)type),
                                                    .root = root});
}

ncclResult_t ncclAllGather(const void *src, void *dst, size_t count, ncclDataType_t type,
                           ncclComm_t comm, sim_stream stream)
{
    ENTER("ncclAllGather");
    return work_call("ncclAllGather", (struct work){.kind = K_ALL_GATHER,
                                                    .comm = comm,
                                                    .stream = stream,
                                                    .src = src,
                                                    .dst = dst,
                                                    .count = count,
                                                    .unit = sim_nccl_size((int)type)});
}

ncclResult_t ncclSend(const void *src, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      sim_stream stream)
{
    ENTER("ncclSend");
    return work_call("ncclSend", (struct work){.kind = K_SEND,
                                               .comm = comm,
                                               .stream = stream,
                                               .src = src,
                                               .count = count,
                                               .unit = sim_nccl_size((int)type),
                                               .root = peer});
}

ncclResult_t ncclRecv(void *dst, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      sim_stream stream)
{
    ENTER("ncclRecv");
    return work_call("ncclRecv", (struct work){.kind = K_RECV,
                                               .comm = comm,
                                               .stream = stream,
                                               .dst = dst,
                                               .count = count,
                                               .unit = sim_nccl_size((int)type),
                                               .root = peer});
}
