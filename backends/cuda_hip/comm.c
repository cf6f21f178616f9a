/* comm.c: collective operations, by NCCL or RCCL, which have the same functions. */
#include "comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COMM_OLDEST 21300 /* a send and a receive of the same rank, averages and captures work */
#define COMM_FLOAT8 22400
#define COMM_RETURN_SECONDS 1 /* a call that waits for no rank has returned */

struct gg_comm_impl {
    pthread_mutex_t lock; /* of the next two */
    void *native;         /* NULL: aborted */
    int calls;            /* threads that are in a call of it */
    pthread_cond_t left;  /* none is any more */
    struct gg_device_impl *device;
    int size, rank;
    bool owned;
};

static const struct gg_symbol comm_symbols[] = {
#define FN(slot, parameters, symbol, need) \
    {#symbol, offsetof(struct cuhip_comm_library, slot), need},
#define TEXT(slot, parameters, symbol, need) FN(slot, parameters, symbol, need)
#include "comm.def"
#undef FN
#undef TEXT
};

static struct cuhip_comm_library nccl; /* filled by comm_open, once */
static char comm_path[512];
static int comm_version;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- errors -------------------------------------------------------------------------------------- */

static const struct {
    gg_status status;
    const char *name;
} comm_codes[] = {
    [NCCL_DEVICE_ERROR] = {GG_ERR_DEVICE, "ncclUnhandledCudaError"},
    [NCCL_SYSTEM_ERROR] = {GG_ERR_COMMUNICATOR, "ncclSystemError"},
    [NCCL_INTERNAL_ERROR] = {GG_ERR_COMMUNICATOR, "ncclInternalError"},
    [NCCL_INVALID_ARGUMENT] = {GG_ERR_INVALID_ARGUMENT, "ncclInvalidArgument"},
    [NCCL_INVALID_USAGE] = {GG_ERR_INVALID_ARGUMENT, "ncclInvalidUsage"},
    [NCCL_REMOTE_ERROR] = {GG_ERR_COMMUNICATOR, "ncclRemoteError"},
    [NCCL_IN_PROGRESS] = {GG_ERR_COMMUNICATOR, "ncclInProgress"},
};

/* The library's last warning often has the reason, but it need not be of this failure: the library keeps older ones, such as
 * RCCL's of a kernel without "iommu=pt". */
static gg_status comm_fail(int code, const char *what)
{
    const bool known = code > 0 && (size_t)code < sizeof comm_codes / sizeof comm_codes[0];
    const struct gg_vendor_error error = {code, known ? comm_codes[code].name : NULL,
                                          nccl.error_text(code)};
    const char *last = nccl.last_error ? nccl.last_error(NULL) : NULL;
    return cuhip_api->fail(known ? comm_codes[code].status : GG_ERR_COMMUNICATOR, &error,
                           "%s with %s %d.%d.%d (%s)%s%.300s", what, cuhip.comm_name,
                           comm_version / 10000, comm_version / NCCL_PART % NCCL_PART,
                           comm_version % NCCL_PART, comm_path,
                           last && *last ? "; its last warning: " : "", last ? last : "");
}

static gg_status comm_fail_aborted(void)
{
    return cuhip_api->fail(GG_ERR_COMMUNICATOR, NULL, "the communicator is aborted");
}

/* ---- the library --------------------------------------------------------------------------------- */

static gg_status comm_resolve(const struct gg_library *library)
{
    struct cuhip_comm_library found;
    char reason[512] = "";
    int version = 0;
    if (cuhip_api->library_resolve(library, comm_symbols,
                                   sizeof comm_symbols / sizeof comm_symbols[0], &found, reason,
                                   sizeof reason) != GG_PROBE_AVAILABLE)
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL, "%s", reason);
    const int code = found.version(&version);
    if (code || version < COMM_OLDEST)
        return cuhip_api->fail(
            GG_ERR_UNSUPPORTED, NULL, "%s has version %d.%d.%d, expected %d.%d or newer: update it",
            library->path, version / 10000, version / NCCL_PART % NCCL_PART, version % NCCL_PART,
            COMM_OLDEST / 10000, COMM_OLDEST / NCCL_PART % NCCL_PART);
    nccl = found;
    snprintf(comm_path, sizeof comm_path, "%s", library->path);
    comm_version = version;
    return GG_OK;
}

static gg_status comm_open(const struct gg_library *library, int32_t *version)
{
    pthread_mutex_lock(&open_lock);
    const gg_status status = comm_version ? GG_OK : comm_resolve(library);
    pthread_mutex_unlock(&open_lock);
    if (!status)
        *version = comm_version;
    return status;
}

static gg_status comm_id(uint8_t id[GG_COMM_ID_SIZE])
{
    const int code = nccl.unique_id((struct cuhip_comm_id *)(void *)id);
    return code ? comm_fail(code, "making an id") : GG_OK;
}

/* ---- objects ------------------------------------------------------------------------------------- */

/* The code of @p call with the device's context, which the library uses. */
#define COMM_IN_CONTEXT(device, failed, call)                       \
    __extension__({                                                 \
        struct cuhip_scope scope_;                                  \
        const int entered_ = cuhip_context_switch(device, &scope_); \
        int code_ = NCCL_DEVICE_ERROR;                              \
        failed = entered_;                                          \
        if (!entered_)                                              \
            code_ = (call);                                         \
        cuhip_context_leave(&scope_);                               \
        code_;                                                      \
    })

static struct gg_comm_impl *comm_new(struct gg_device_impl *device)
{
    struct gg_comm_impl *comm = calloc(1, sizeof *comm);
    pthread_condattr_t clock;
    if (!comm)
        return NULL;
    comm->device = device;
    pthread_mutex_init(&comm->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&comm->left, &clock);
    pthread_condattr_destroy(&clock);
    return comm;
}

static void comm_delete(struct gg_comm_impl *comm)
{
    pthread_cond_destroy(&comm->left);
    pthread_mutex_destroy(&comm->lock);
    free(comm);
}

/* The library's communicator, which is not destroyed until comm_leave; NULL: aborted. */
static void *comm_enter(struct gg_comm_impl *comm)
{
    pthread_mutex_lock(&comm->lock);
    void *native = comm->native;
    comm->calls += native != NULL;
    pthread_mutex_unlock(&comm->lock);
    return native;
}

static void comm_leave(struct gg_comm_impl *comm)
{
    pthread_mutex_lock(&comm->lock);
    if (--comm->calls == 0)
        pthread_cond_broadcast(&comm->left);
    pthread_mutex_unlock(&comm->lock);
}

/* It waits for the other ranks. */
static gg_status comm_create(struct gg_device_impl *device, const uint8_t id[GG_COMM_ID_SIZE],
                             int32_t size, int32_t rank, struct gg_comm_impl **out)
{
    struct cuhip_comm_id name;
    struct gg_comm_impl *comm = comm_new(device);
    void *native = NULL;
    int failed;
    if (!comm)
        return cuhip_no_memory(sizeof *comm, "a communicator");
    memcpy(name.bytes, id, sizeof name.bytes);
    const int code = COMM_IN_CONTEXT(device, failed, nccl.init_rank(&native, size, name, rank));
    if (code) {
        comm_delete(comm);
        return failed ? cuhip_fail(failed, "creating a communicator")
                      : comm_fail(code, "creating a communicator");
    }
    comm->size = size;
    comm->rank = rank;
    comm->owned = true;
    comm->native = native;
    *out = comm;
    return GG_OK;
}

static gg_status comm_describe(struct gg_comm_impl *comm, void *native)
{
    int device = -1;
    int code = nccl.count(native, &comm->size);
    if (!code)
        code = nccl.user_rank(native, &comm->rank);
    if (!code)
        code = nccl.device(native, &device);
    if (code)
        return comm_fail(code, "reading what a handle is");
    if (device == comm->device->ordinal)
        return GG_OK;
    return cuhip_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                           "the handle belongs to device %d, expected %d", device,
                           (int)comm->device->ordinal);
}

static gg_status comm_borrow(struct gg_device_impl *device, uint64_t native, int32_t *size,
                             int32_t *rank, struct gg_comm_impl **out)
{
    struct gg_comm_impl *comm = comm_new(device);
    if (!comm)
        return cuhip_no_memory(sizeof *comm, "a communicator");
    gg_status status = comm_describe(comm, (void *)(uintptr_t)native);
    if (status) {
        comm_delete(comm);
        return status;
    }
    comm->native = (void *)(uintptr_t)native;
    *size = comm->size;
    *rank = comm->rank;
    *out = comm;
    return GG_OK;
}

/* Take the library's communicator: no later call uses it. The abort alone ends a call that waits for a rank; the library
 * does not wait for that call before it frees the communicator (NCCL, src/init.cc: commReclaim). So an abort gives calls that
 * only are on their way the time to return. A destroy waits until all have. */
static void *comm_take(struct gg_comm_impl *comm, bool abort)
{
    struct timespec until;
    int error = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += COMM_RETURN_SECONDS;
    pthread_mutex_lock(&comm->lock);
    void *native = comm->native;
    comm->native = NULL;
    while (comm->calls && !error)
        error = abort ? pthread_cond_timedwait(&comm->left, &comm->lock, &until)
                      : pthread_cond_wait(&comm->left, &comm->lock);
    comm->calls += native && abort; /* the abort is one, which a destroy waits for */
    pthread_mutex_unlock(&comm->lock);
    return native;
}

/* An abort first sets a flag in the host's memory, which ends the work, then makes its own device current (NCCL and RCCL,
 * src/init.cc). So it does not depend on the context, and nothing else would end the work. */
static void comm_destroy(struct gg_comm_impl *comm, int32_t abort)
{
    void *native = comm_take(comm, abort);
    int failed = 0, code = 0;
    if (native && comm->owned)
        code = COMM_IN_CONTEXT(comm->device, failed,
                               abort ? nccl.abort(native) : nccl.destroy(native));
    cuhip_log_failure(failed, "entering a context to release a communicator");
    if (failed && abort && !cuhip_is_shut_down(failed))
        code = nccl.abort(native);
    if (code)
        cuhip_api->log(GG_LOG_DEBUG, cuhip.name, "%s a communicator: %s",
                       abort ? "aborting" : "destroying", nccl.error_text(code));
    if (!abort)
        comm_delete(comm);
    else if (native)
        comm_leave(comm);
}

static gg_status comm_state(struct gg_comm_impl *comm)
{
    void *native = comm_enter(comm);
    int state = 0;
    if (!native)
        return comm_fail_aborted();
    const int code = nccl.async_error(native, &state);
    comm_leave(comm);
    if (code || (state && state != NCCL_IN_PROGRESS))
        return comm_fail(code ? code : state, "work on the device ended");
    return GG_OK;
}

static uint64_t comm_native(struct gg_comm_impl *comm)
{
    void *native = comm_enter(comm);
    if (native)
        comm_leave(comm);
    return (uintptr_t)native;
}

/* ---- operations ---------------------------------------------------------------------------------- */

/* A complex number is two elements; -1: the library has no such type. */
static const struct {
    int type;
    unsigned parts;
} comm_types[] = {
    [GG_COMM_INT8] = {NCCL_INT8, 1},
    [GG_COMM_UINT8] = {NCCL_UINT8, 1},
    [GG_COMM_INT16] = {-1, 0},
    [GG_COMM_UINT16] = {-1, 0},
    [GG_COMM_INT32] = {NCCL_INT32, 1},
    [GG_COMM_UINT32] = {NCCL_UINT32, 1},
    [GG_COMM_INT64] = {NCCL_INT64, 1},
    [GG_COMM_UINT64] = {NCCL_UINT64, 1},
    [GG_COMM_FLOAT16] = {NCCL_FLOAT16, 1},
    [GG_COMM_BFLOAT16] = {NCCL_BFLOAT16, 1},
    [GG_COMM_FLOAT32] = {NCCL_FLOAT32, 1},
    [GG_COMM_FLOAT64] = {NCCL_FLOAT64, 1},
    [GG_COMM_COMPLEX64] = {NCCL_FLOAT32, 2},
    [GG_COMM_COMPLEX128] = {NCCL_FLOAT64, 2},
    [GG_COMM_FLOAT8_E4M3] = {NCCL_FLOAT8_E4M3, 1},
    [GG_COMM_FLOAT8_E5M2] = {NCCL_FLOAT8_E5M2, 1},
};
static const int comm_reductions[] = {[GG_COMM_SUM] = NCCL_SUM,
                                      [GG_COMM_PROD] = NCCL_PROD,
                                      [GG_COMM_MIN] = NCCL_MIN,
                                      [GG_COMM_MAX] = NCCL_MAX,
                                      [GG_COMM_AVG] = NCCL_AVG};

static int32_t comm_reduces(gg_comm_type type, gg_comm_reduction reduction)
{
    if ((unsigned)type >= sizeof comm_types / sizeof comm_types[0] || comm_types[type].type < 0)
        return 0;
    if (comm_types[type].parts == 2)
        return reduction == GG_COMM_SUM || reduction == GG_COMM_AVG;
    return comm_types[type].type < NCCL_FLOAT8_E4M3 || comm_version >= COMM_FLOAT8;
}

struct comm_run {
    void *native, *stream;
    int size, rank;
};

static int comm_send(const struct comm_run *run, const char *src, size_t nbytes, int to)
{
    return nccl.send(src, nbytes, NCCL_UINT8, to, run->native, run->stream);
}
static int comm_recv(const struct comm_run *run, char *dst, size_t nbytes, int from)
{
    return nccl.recv(dst, nbytes, NCCL_UINT8, from, run->native, run->stream);
}

static int comm_exchange(const struct comm_run *run, const struct gg_comm_task *task)
{
    int code = 0;
    for (int rank = 0; rank < run->size && !code; rank++) {
        const size_t at = (size_t)rank * task->count;
        code = comm_send(run, (const char *)task->src + at, task->count, rank);
        if (!code)
            code = comm_recv(run, (char *)task->dst + at, task->count, rank);
    }
    return code;
}

/* A block that is in place moves nowhere. */
static int comm_gather(const struct comm_run *run, const struct gg_comm_task *task)
{
    const bool root = run->rank == task->root;
    char *mine = (char *)task->dst + (size_t)run->rank * task->count;
    const bool in_place = root && mine == task->src;
    int code = in_place ? 0 : comm_send(run, task->src, task->count, task->root);
    for (int rank = 0; root && rank < run->size && !code; rank++)
        if (!in_place || rank != run->rank)
            code = comm_recv(run, (char *)task->dst + (size_t)rank * task->count, task->count, rank);
    return code;
}

static int comm_scatter(const struct comm_run *run, const struct gg_comm_task *task)
{
    const bool root = run->rank == task->root;
    const char *mine = (const char *)task->src + (size_t)run->rank * task->count;
    const bool in_place = root && mine == task->dst;
    int code = in_place ? 0 : comm_recv(run, task->dst, task->count, task->root);
    for (int rank = 0; root && rank < run->size && !code; rank++)
        if (!in_place || rank != run->rank)
            code = comm_send(run, (const char *)task->src + (size_t)rank * task->count, task->count,
                             rank);
    return code;
}

static int comm_run_task(const struct comm_run *run, const struct gg_comm_task *task)
{
    const int type = comm_types[task->type].type, op = comm_reductions[task->reduction];
    const size_t count = task->count * comm_types[task->type].parts;
    switch (task->operation) {
    case GG_COMM_BROADCAST:
        return nccl.broadcast(task->src ? task->src : task->dst, task->dst, task->count, NCCL_UINT8,
                              task->root, run->native, run->stream);
    case GG_COMM_ALL_GATHER:
        return nccl.all_gather(task->src, task->dst, task->count, NCCL_UINT8, run->native,
                               run->stream);
    case GG_COMM_GATHER:
        return comm_gather(run, task);
    case GG_COMM_SCATTER:
        return comm_scatter(run, task);
    case GG_COMM_ALL_TO_ALL:
        return comm_exchange(run, task);
    case GG_COMM_SEND:
        return comm_send(run, task->src, task->count, task->root);
    case GG_COMM_RECV:
        return comm_recv(run, task->dst, task->count, task->root);
    case GG_COMM_ALL_REDUCE:
        return nccl.all_reduce(task->src, task->dst, count, type, op, run->native, run->stream);
    case GG_COMM_REDUCE:
        return nccl.reduce(task->src, task->dst, count, type, op, task->root, run->native,
                           run->stream);
    case GG_COMM_REDUCE_SCATTER:
        return nccl.reduce_scatter(task->src, task->dst, count, type, op, run->native, run->stream);
    case GG_COMM_SEND_RECV:
        break;
    }
    const int code = comm_send(run, task->src, task->count, task->root);
    return code ? code : comm_recv(run, task->dst, task->dst_count, task->from);
}

/* A group ends even if an operation in it has failed. */
static int comm_run_group(const struct comm_run *run, const struct gg_comm_task *tasks, size_t count)
{
    int code = nccl.group_start();
    if (code)
        return code;
    for (size_t i = 0; i < count && !code; i++)
        code = comm_run_task(run, &tasks[i]);
    const int ended = nccl.group_end();
    return code ? code : ended;
}

/* Whether a task is one call of the library, which needs no group around it. */
static bool comm_is_one_call(const struct gg_comm_task *task)
{
    const gg_comm_operation operation = task->operation;
    return operation != GG_COMM_GATHER && operation != GG_COMM_SCATTER &&
           operation != GG_COMM_ALL_TO_ALL && operation != GG_COMM_SEND_RECV;
}

/* The core lets one thread at a time into a communicator. Calls of different ones need no lock: the library collects a
 * group per thread, and holds no lock of the process while it waits for a rank (NCCL, src/group.cc; RCCL is alike). The
 * order of their work on a device is the program's to keep equal on all ranks, as the library's guide says. */
static gg_status comm_run(struct gg_comm_impl *comm, struct gg_stream_impl *stream,
                          const struct gg_comm_task *tasks, size_t count)
{
    const struct comm_run run = {comm_enter(comm), stream->native, comm->size, comm->rank};
    int failed;
    if (!run.native)
        return comm_fail_aborted();
    const int code =
        COMM_IN_CONTEXT(comm->device, failed,
                        count == 1 && comm_is_one_call(tasks) ? comm_run_task(&run, tasks)
                                                              : comm_run_group(&run, tasks, count));
    comm_leave(comm);
    if (!code)
        return GG_OK;
    return failed ? cuhip_fail(failed, "a collective operation")
                  : comm_fail(code, "a collective operation");
}

const struct gg_comm_ops *cuhip_comm_ops(void)
{
    static struct gg_comm_ops ops = {.struct_size = sizeof ops,
                                     .open = comm_open,
                                     .id = comm_id,
                                     .create = comm_create,
                                     .borrow = comm_borrow,
                                     .destroy = comm_destroy,
                                     .state = comm_state,
                                     .run = comm_run,
                                     .reduces = comm_reduces,
                                     .native = comm_native};
    ops.name = cuhip.comm_name;
    ops.library = &cuhip.comm_library;
    return &ops;
}
