/* gpuglue.h: one C interface to the GPUs of several vendors.
 *
 * A process asks which backends there are (gg_probe), takes a device (gg_device_find), and then
 * makes streams and events, allocates memory, copies and waits. Nothing here names a vendor.
 *
 * Every call that can fail returns a gg_status, 0 for success. Output parameters stand last and are
 * written on success only. What went wrong is in gg_last_error, per thread. Besides the errors that a
 * function names, one with a device or an object of it may return GG_ERR_FORKED (in a child of the
 * process that opened the device), GG_ERR_SHUT_DOWN, GG_ERR_UNSUPPORTED (gg_device_supports tells),
 * GG_ERR_DEVICE_LOST and what else the driver answers.
 *
 * Structs that begin with struct_size: set it to sizeof before the call. What both sides know is
 * written (or read), and struct_size then says how many bytes were written; what a longer struct of
 * the caller's has beyond stays as it was. One that is shorter than in the first version is refused
 * with GG_ERR_INVALID_ARGUMENT.
 *
 * Handles are reference counted: `create`, `alloc`, `borrow` and `wrap` give one reference to the
 * caller, `retain` adds one, `release` gives one back (NULL is allowed) and never waits: what the
 * device still uses goes on a list and is destroyed later. The caller of any other function holds a
 * reference for the duration of the call. Devices live as long as the process. Strings that are
 * returned are static. Pointers are not NULL unless it is allowed.
 *
 * A `release` callback that is handed in may be called from any thread and must not call gpuglue.
 *
 * Unless a function says otherwise it may be called from any thread at any time. */
#ifndef GPUGLUE_H
#define GPUGLUE_H

#include <gpuglue/base.h>
#include <gpuglue/kernel.h>
#include <gpuglue/probe.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices --------------------------------------------------------------------------------- */

enum gg_device_flag {
    GG_DEVICE_SHARED_DEFAULT =
        1, /* the default stream is the vendor's own, which every library uses */
    GG_DEVICE_INTEGRATED = 2,
    GG_DEVICE_HAS_UUID = 4,
    GG_DEVICE_LAZY = 8, /* counting it initialised nothing: a fork before its first use is harmless */
    GG_DEVICE_FREE_NEVER_WAITS = 16 /* freeing device memory does not wait for the device */
};

struct gg_device_info {
    uint32_t struct_size;
    uint32_t flags;
    char name[128];
    char arch[32];       /* "sm_90", "gfx942", … */
    char pci_bus_id[32]; /* "0000:65:00.0"; "" where there is none */
    uint8_t uuid[16];
    int32_t numa_node; /* -1: not known */
    uint32_t reserved;
    uint64_t total_memory; /* bytes */
};

/* Numbers of a device; what a backend does not know is GG_ERR_UNSUPPORTED. */
#define GG_ATTRIBUTES(X)                                  \
    X(WARP_SIZE, "warp_size")                             \
    X(MULTIPROCESSORS, "multiprocessors")                 \
    X(MAX_THREADS_PER_BLOCK, "max_threads_per_block")     \
    X(MAX_BLOCK_X, "max_block_x")                         \
    X(MAX_BLOCK_Y, "max_block_y")                         \
    X(MAX_BLOCK_Z, "max_block_z")                         \
    X(MAX_GRID_X, "max_grid_x")                           \
    X(MAX_GRID_Y, "max_grid_y")                           \
    X(MAX_GRID_Z, "max_grid_z")                           \
    X(SHARED_MEMORY_PER_BLOCK, "shared_memory_per_block") \
    X(CLOCK_KHZ, "clock_khz")                             \
    X(COMPUTE_MAJOR, "compute_major")                     \
    X(COMPUTE_MINOR, "compute_minor")                     \
    X(ASYNC_ENGINES, "async_engines")                     \
    X(MANAGED_MEMORY, "managed_memory")                   \
    X(CONCURRENT_KERNELS, "concurrent_kernels")           \
    X(SHARED_MEMORY_OPTIN, "shared_memory_optin")         \
    X(COOPERATIVE_LAUNCH, "cooperative_launch")
#define GG_ATTRIBUTE_ENUM(name, word) GG_ATTR_##name,
typedef enum gg_attribute { GG_ATTRIBUTES(GG_ATTRIBUTE_ENUM) GG_ATTR_COUNT } gg_attribute;
#undef GG_ATTRIBUTE_ENUM

/** How many devices @p backend has (NULL: the default backend). Initialises it. */
GG_API gg_status gg_device_count(const char *backend, int32_t *count);

/** Device @p ordinal of @p backend (NULL: the default backend): the vendor's own ordinal under its
 *  visibility variable. Creates no context yet. */
GG_API gg_status gg_device_get(const char *backend, int32_t ordinal, gg_device **out);

/** Device by name: "cuda:1", "1" (of the default backend), "cuda" (its device 0),
 *  "pci:0000:65:00.0" or "uuid:<32 hex digits, dashes allowed>". */
GG_API gg_status gg_device_find(const char *name, gg_device **out);

/** The name of the device's backend, such as "cuda". */
GG_API const char *gg_device_backend(const gg_device *device);

/** The vendor's ordinal, from 0. */
GG_API int32_t gg_device_ordinal(const gg_device *device);

/** Name, architecture, UUID, … Needs no context.
 *  Errors  GG_ERR_INVALID_ARGUMENT: struct_size. */
GG_API gg_status gg_device_info(gg_device *device, struct gg_device_info *info);

/** One number of a device, in the unit of its name, else a count. Needs no context.
 *  Errors  GG_ERR_UNSUPPORTED: not known; GG_ERR_INVALID_ARGUMENT: no such attribute. */
GG_API gg_status gg_device_attribute(gg_device *device, gg_attribute attribute, int64_t *value);

/** The word for an attribute, such as "warp_size"; "unknown" for another number. */
GG_API const char *gg_attribute_name(gg_attribute attribute);

/** Free and total bytes of device memory now, after giving back what was released and is idle. */
GG_API gg_status gg_device_memory_info(gg_device *device, uint64_t *free, uint64_t *total);

/** Wait for all work of the device, also that of streams gpuglue does not know. */
GG_API gg_status gg_device_synchronize(gg_device *device);

/** Whether the device can do @p op: from the table, the driver and the device. */
GG_API int gg_device_supports(gg_device *device, gg_op op);

/** Whether work of each of the two can reach the memory of the other, so that a copy between them needs no
 *  host; 1 for the device itself. Both are opened. That a driver says so is not relied on: the first copy
 *  between the two is tried out. */
GG_API gg_status gg_device_can_access(gg_device *device, gg_device *peer, int32_t *out);

/** Native handles of the device. Per backend: cuda CUdevice, CUcontext; hip the ordinal; ze ze_device,
 *  ze_context, ze_driver; host 0. */
GG_API gg_status gg_device_native(gg_device *device, uint64_t handles[4]);

/** The current device of this thread, asked anew at each call: innermost gg_enter, then
 *  gg_device_use, then GPUGLUE_DEVICE, then the device that is current in the vendor's sense, then
 *  the first device of the default backend that is not integrated, then its device 0. */
GG_API gg_status gg_current_device(gg_device **out);

/** The current stream of this thread on @p device: the innermost stream entered on it, or its default
 *  stream. Borrowed: valid while it is entered, the default stream for ever. */
GG_API gg_status gg_current_stream(gg_device *device, gg_stream **out);

/** Make @p device this thread's, in gpuglue's and in the vendor's sense, until the next call. */
GG_API gg_status gg_device_use(gg_device *device);

/** Enter a device, and a stream of it unless @p stream is NULL, until gg_leave on the same thread,
 *  which restores exactly what was current before. The scope holds references. Scopes may be left
 *  out of order (generators do). */
GG_API gg_status gg_enter(gg_device *device, gg_stream *stream, gg_scope **out);

/** End a scope, which is freed. On the thread that entered it.
 *  Errors  GG_ERR_INVALID_ARGUMENT: of another thread. */
GG_API gg_status gg_leave(gg_scope *scope);

/* ---- streams --------------------------------------------------------------------------------- */

enum gg_stream_flag { GG_STREAM_NONBLOCKING = 1 }; /* not ordered with the legacy default stream */

/** Create a stream. @p priority is in the vendor's sense (lower is more urgent) and is clamped. */
GG_API gg_status gg_stream_create(gg_device *device, uint32_t flags, int32_t priority,
                                  gg_stream **out);

/** Wrap a native stream that someone else owns. It is never destroyed. On cuda and hip 0 and 1 mean
 *  the legacy default stream; on cuda 2 is the per-thread one. @p release(@p owner) is called once
 *  when gpuglue is done with it, and not where this call fails; without an owner (release NULL) the caller keeps the stream alive
 *  only until each call returns, and gpuglue records an event at each use. */
GG_API gg_status gg_stream_borrow(gg_device *device, uint64_t native, void (*release)(void *owner),
                                  void *owner, gg_stream **out);

/** The device's default stream. Borrowed, lives as long as the process. */
GG_API gg_status gg_device_default_stream(gg_device *device, gg_stream **out);

/** Add a reference; give one back (NULL is allowed), after which queued work goes on. */
GG_API void gg_stream_retain(gg_stream *stream);
GG_API void gg_stream_release(gg_stream *stream);

/** The device that the stream was made on. */
GG_API gg_device *gg_stream_device(const gg_stream *stream);

/** Native handles, valid as long as the stream. cuda and hip: the stream; host: a number; ze: see
 *  docs/backends.md; what is not used is 0. */
GG_API gg_status gg_stream_native(gg_stream *stream, uint64_t handles[4]);

/** GG_OK when all work of the stream is done, GG_NOT_READY while it is not. */
GG_API gg_status gg_stream_query(gg_stream *stream);

/** Wait at most @p timeout_ns; GG_NOT_READY when the time has passed. 0 is a query. */
GG_API gg_status gg_stream_wait(gg_stream *stream, uint64_t timeout_ns);

/** Later work of @p stream waits, on the device, for what @p event recorded last. An event that was never recorded is a no-op. */
GG_API gg_status gg_stream_wait_event(gg_stream *stream, gg_event *event);

/** The same for all that @p other, perhaps of another device, has now. */
GG_API gg_status gg_stream_wait_stream(gg_stream *stream, gg_stream *other);

/** Queue a host function. It runs in order, on a thread of the driver's or of the backend's, and must
 *  call neither gpuglue nor the driver. */
GG_API gg_status gg_stream_host_func(gg_stream *stream, void (*function)(void *), void *argument);

/** Least and greatest urgency, such as 0 and -5. */
GG_API gg_status gg_stream_priority_range(gg_device *device, int32_t *least, int32_t *greatest);

/* ---- events ---------------------------------------------------------------------------------- */

enum gg_event_flag {
    GG_EVENT_TIMING = 1,  /* gg_event_elapsed may be asked */
    GG_EVENT_BLOCKING = 2 /* a wait sleeps at once instead of spinning first */
};

/** Create an event, not recorded yet. @p flags: enum gg_event_flag.
 *  Errors  GG_ERR_INVALID_ARGUMENT: a flag that is not known. */
GG_API gg_status gg_event_create(gg_device *device, uint32_t flags, gg_event **out);

/** Wrap a native event that someone else owns (see gg_stream_borrow). */
GG_API gg_status gg_event_borrow(gg_device *device, uint64_t native, void (*release)(void *owner),
                                 void *owner, gg_event **out);

/** Add a reference; give one back (NULL is allowed). */
GG_API void gg_event_retain(gg_event *event);
GG_API void gg_event_release(gg_event *event);

/** The device that the event was made on. */
GG_API gg_device *gg_event_device(const gg_event *event);

/** Native handles, valid as long as the event; what is not used is 0. */
GG_API gg_status gg_event_native(gg_event *event, uint64_t handles[4]);

/** Mark the point that @p stream (of the event's device) has reached. Recording again moves it. */
GG_API gg_status gg_event_record(gg_event *event, gg_stream *stream);

/** GG_OK when what the event recorded last is done (or nothing was), else GG_NOT_READY. */
GG_API gg_status gg_event_query(gg_event *event);

/** Wait for that, at most @p timeout_ns; GG_NOT_READY when the time has passed. */
GG_API gg_status gg_event_wait(gg_event *event, uint64_t timeout_ns);

/** Milliseconds from @p start to @p stop. GG_NOT_READY when either is not done.
 *  Errors  GG_ERR_INVALID_ARGUMENT: not recorded, not made for timing, or of two devices. */
GG_API gg_status gg_event_elapsed(gg_event *start, gg_event *stop, double *milliseconds);

/* ---- memory ---------------------------------------------------------------------------------- */

enum gg_memory_kind {
    GG_MEMORY_HOST,   /* ordinary (pageable) host memory; only as an answer */
    GG_MEMORY_DEVICE, /* on the device */
    GG_MEMORY_PINNED, /* page-locked host memory that the device reaches */
    GG_MEMORY_MANAGED /* moved by the driver */
};

/** Allocate @p nbytes of device, pinned or managed memory, aligned to at least 256. 0 bytes give a block with
 *  a NULL pointer. @p stream (NULL: the current one) is where the memory will first be used.
 *  Errors  GG_ERR_OUT_OF_MEMORY, with the sizes; what was released and idle was given back first.
 *          GG_ERR_UNSUPPORTED: the device has no managed memory. */
GG_API gg_status gg_memory_alloc(gg_device *device, enum gg_memory_kind kind, size_t nbytes,
                                 gg_stream *stream, gg_memory **out);

/** The same where no driver has to be asked and nothing is waited for: GG_NOT_READY where it has to be,
 *  and gg_memory_alloc may then take long. Takes well under a microsecond. */
GG_API gg_status gg_memory_try_alloc(gg_device *device, enum gg_memory_kind kind, size_t nbytes,
                                     gg_stream *stream, gg_memory **out);

/** Wrap memory that someone else owns. @p release(@p owner) is called once, from any thread, when
 *  the last reference and the queued work are gone; NULL: nothing to call. */
GG_API gg_status gg_memory_wrap(gg_device *device, enum gg_memory_kind kind, void *pointer,
                                size_t nbytes, void (*release)(void *owner), void *owner,
                                gg_memory **out);

/** Add a reference; give one back (NULL is allowed): the block is freed when its work is done. */
GG_API void gg_memory_retain(gg_memory *memory);
GG_API void gg_memory_release(gg_memory *memory);

/** The first byte: an address of the device, or of the host where the memory is pinned. NULL for 0
 *  bytes. Valid as long as the memory. */
GG_API void *gg_memory_pointer(const gg_memory *memory);

/** Bytes that were asked for, the kind that was asked for, and the device. */
GG_API size_t gg_memory_size(const gg_memory *memory);
GG_API enum gg_memory_kind gg_memory_kind_of(const gg_memory *memory);
GG_API gg_device *gg_memory_device(const gg_memory *memory);

/** Announce work on @p memory that gpuglue did not submit: all that @p stream has now. Without a stream
 *  (NULL): streams that gpuglue does not know use it, from now on; once released it is not used again
 *  before all is done that the device had by then. */
GG_API gg_status gg_memory_record_use(gg_memory *memory, gg_stream *stream);

/** Wrapped memory is there once @p stream has done what it has now, as what a stream-ordered allocator gives:
 *  its first use on another stream waits for that, where a stream is given, too. */
GG_API gg_status gg_memory_hand_out(gg_memory *memory, gg_stream *stream);

/** Wait until no work that gpuglue knows of uses @p memory; looks at the wait hook. */
GG_API gg_status gg_memory_wait(gg_memory *memory);

/** GG_OK when no work that gpuglue knows of uses @p memory, GG_NOT_READY while some does. Never waits. */
GG_API gg_status gg_memory_query(gg_memory *memory);

/** Later work of @p stream, of the same backend, waits on the device for all work on @p memory that
 *  gpuglue knows of: what an operation without a stream does by itself. */
GG_API gg_status gg_memory_order(gg_memory *memory, gg_stream *stream);

enum gg_pending_flag {
    GG_PENDING_DEFAULT_TOO = 1
}; /* the device's default stream is a good answer */

/** One stream behind which all unfinished work on @p memory is, for someone who will wait for it on the
 *  device: the one that has it, or else one of gpuglue's that was made to wait for all of them. NULL in
 *  @p out: nothing is pending. Else a reference. Never waits; asks the driver at most whether what was there before the memory
 *  was given out is done. */
GG_API gg_status gg_memory_pending(gg_memory *memory, uint32_t flags, gg_stream **out);

/** Memory that was used while a stream was captured into a graph is neither reused nor freed, since
 *  the graph may run again. Say that no such graph will. */
GG_API void gg_memory_release_captured(gg_memory *memory);

/** Page-lock host memory that exists, so that copies from and to it run in the background. The driver is
 *  told of these bytes alone; the system locks their pages. @p release(@p owner) is called once
 *  when they are unlocked: the memory must exist until then. Where the driver refuses to unlock it, it is
 *  never called, and the memory must exist for good.
 *  Errors  GG_ERR_INVALID_ARGUMENT: no bytes, or a page of it is page-locked by gpuglue already;
 *          GG_ERR_UNSUPPORTED where the backend cannot. */
GG_API gg_status gg_memory_register(gg_device *device, void *pointer, size_t nbytes,
                                    void (*release)(void *owner), void *owner, gg_memory **out);

/** Move managed memory to its device, or to the host, in the order of @p stream (as for gg_copy).
 *  Errors  GG_ERR_INVALID_ARGUMENT for other memory; GG_ERR_UNSUPPORTED. */
GG_API gg_status gg_memory_prefetch(gg_memory *memory, int to_host, gg_stream *stream);

/** How managed memory will be used. The location is its device, or the host. */
enum gg_advice {
    GG_ADVICE_READ_MOSTLY = 1,
    GG_ADVICE_NOT_READ_MOSTLY,
    GG_ADVICE_PREFERRED_LOCATION,
    GG_ADVICE_NO_PREFERRED_LOCATION,
    GG_ADVICE_ACCESSED_BY,
    GG_ADVICE_NOT_ACCESSED_BY
};
GG_API gg_status gg_memory_advise(gg_memory *memory, enum gg_advice advice, int for_host);

/** What a pointer points at. GG_MEMORY_HOST for memory that no driver knows. */
struct gg_pointer_info {
    uint32_t struct_size;
    enum gg_memory_kind kind;
    int32_t device; /* ordinal, or -1 */
    uint32_t reserved;
    void *base; /* of the allocation; NULL where the driver does not say */
    size_t size;
};

/** What the drivers of all backends in use know of @p pointer. @p device is NULL for memory that none
 *  knows. Base and size are those of the driver's allocation, of which a block of a pool is a part: a
 *  released block is still known while a pool keeps it. Set info->struct_size first.
 *  Errors  GG_ERR_INVALID_ARGUMENT: NULL. */
GG_API gg_status gg_pointer_query(const void *pointer, gg_device **device,
                                  struct gg_pointer_info *info);

/* Copies, fills, and memory for what is copied to the host. */
#include "copies.h"

/* ---- the end --------------------------------------------------------------------------------- */

/** While gpuglue waits it calls @p hook about every 50 ms, on the waiting thread and with no lock
 *  held; nonzero ends the wait with GG_ERR_INTERRUPTED. NULL: none. */
GG_API void gg_set_wait_hook(int (*hook)(void));

/** Waits up to @p timeout_ns for copies to the host on all devices, and lets go of what finished work
 *  kept. For a binding whose owners are let go of later than in their callback: call it, let go of
 *  them, and then shut down. */
GG_API void gg_settle(uint64_t timeout_ns);

/** Refuse new work, wait at most @p timeout_ns for copies to the host, destroy all that is idle, and
 *  then make no vendor call any more: later releases are no-ops. Idempotent. */
GG_API void gg_shutdown(uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#include <gpuglue/ipc.h>
#include <gpuglue/pool.h>

#endif
