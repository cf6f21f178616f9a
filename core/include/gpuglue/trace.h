/** @file
 *  Callbacks around each device operation, and recordings of all of them.
 *
 *  @par Ordering
 *  Nothing here orders work. An operation has been queued, and need not be complete, when `post` is called.
 *  @par Threads
 *  The callbacks run on the thread that submits the operation, and may run on several threads at the same time. gpuglue may
 *  hold a lock of the stream during a callback: a callback must not wait for another thread that uses gpuglue. */
#ifndef GG_TRACE_H
#define GG_TRACE_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** One device operation, as passed to a tracer. */
struct gg_trace {
    uint32_t struct_size; /**< bytes that the library wrote */
    gg_op op;             /**< which operation */
    const char *backend;  /**< "cuda" */
    int32_t device;       /**< ordinal */
    gg_status status;     /**< result of the operation; GG_OK in `pre` */
    const void *stream;   /**< identifies the stream; NULL if the operation has none */
    uint64_t bytes;       /**< that the operation allocates, copies or fills; 0 for others */
    const char *name;     /**< of the kernel that is launched, during the callback; else NULL */
};
/** Functions that are called around each operation. */
struct gg_tracer {
    uint32_t struct_size; /**< sizeof(struct gg_tracer) */
    void *user;           /**< passed to both functions */
    /** Called before each operation, on the thread that submits it. May be NULL. */
    void (*pre)(void *user, const struct gg_trace *trace);
    /** Called after each operation, on the same thread. May be NULL. */
    void (*post)(void *user, const struct gg_trace *trace);
};

/** Install a tracer. Without one each operation costs a few extra loads. GPUGLUE_LOG=trace logs every operation
 *  independently of this.
 *
 *  @param tracer  must stay valid while it is installed and until calls already in progress have returned. NULL removes the
 *                 tracer
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  struct_size is too small */
GG_API gg_status gg_set_tracer(const struct gg_tracer *tracer);

/** Flags of gg_trace_start. */
enum gg_trace_flag {
    /** Measure on the device too: an event before and after each operation on a stream. Costs driver calls. */
    GG_TRACE_DEVICE_TIMES = 1
};

/** Record each operation and range of this process, until gg_trace_stop() or gg_shutdown() writes them to a file. It is JSON
 *  in the Trace Event Format, which Perfetto and chrome://tracing show.
 *
 *  Records are kept in memory, at most about 4.5 million (330 MiB); the file counts those dropped. A forked child records
 *  nothing until it starts a recording.
 *
 *  @param path   of the file, which is created or emptied at once. \%p is the process id, \%h the host's name, \%q{NAME} the
 *                environment variable NAME, and \%\% a percent sign: each rank of a job needs a file of its own
 *  @param flags  of enum gg_trace_flag, or 0. Operations that are captured, or not done when the recording stops, have no
 *                device times: synchronize first
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  a recording is in progress, an unknown flag, or the file cannot be created */
GG_API gg_status gg_trace_start(const char *path, uint32_t flags);

/** Stop recording and write the file. Operations in progress on other threads are not recorded.
 *
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  nothing is recorded, or the file cannot be written */
GG_API gg_status gg_trace_stop(void);

/** Begin a range of the calling thread: a named phase of the program. It appears in the recording, and in the vendor's
 *  profiler if a device of that vendor was opened before. Ranges nest, up to 64 deep. Without a recording and a profiler it
 *  costs a few loads.
 *
 *  @param name  in UTF-8; is copied */
GG_API void gg_range_push(const char *name);

/** End the innermost range of the calling thread; does nothing without one. */
GG_API void gg_range_pop(void);

GG_END_DECLS
#endif
