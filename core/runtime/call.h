/* call.h: around each call of a backend's table: the tracer, GPUGLUE_DEBUG, the error record. */
#ifndef GPUGLUE_CALL_H
#define GPUGLUE_CALL_H

#include "runtime/device.h"

/* Add the backend, the device and the operation to the error that the backend recorded. */
gg_status ggi_op_failed(struct gg_device *device, gg_op op, gg_status status);
/* The same for an operation that is not of the backend's table. */
gg_status ggi_named_op_failed(struct gg_device *device, const char *op, gg_status status);
/* After GG_ERR_DEVICE_LOST: whether the device is lost, so that all its memory may be freed. */
bool ggi_device_is_lost(struct gg_device *device);

/* What observes operations: bits, 0 if nothing does. */
enum { GGI_OBSERVED_TRACER = 1, GGI_OBSERVED_LOG = 2, GGI_OBSERVED_RECORDER = 4 };
extern _Atomic(uint32_t) ggi_observed;
/* GPUGLUE_DEBUG=sync: wait for each submission, so that the call that fails is the one that reports it. */
extern _Atomic(bool) ggi_debug_sync;
void ggi_call_init(void); /* before the first operation: sets both from the environment */

/* The recorder of gg_trace_start, which sees the device too. */
struct ggi_recorder {
    void (*pre)(struct gg_device *device, const struct gg_trace *trace);
    void (*post)(struct gg_device *device, const struct gg_trace *trace);
};
void ggi_set_recorder(const struct ggi_recorder *recorder); /* a static one; NULL: none */
/* Asynchronous operations on a stream: a later call would report their failure. */
bool ggi_op_is_submission(gg_op op);

/* Completes @p trace with what the device knows. */
void ggi_call_observe(struct gg_device *device, struct gg_trace *trace, bool after);
gg_status ggi_call_sync(struct gg_device *device, gg_op op, const void *stream, gg_status status);

/* Two loads if nothing observes and the call succeeds. */
static inline void ggi_call_begin_named(struct gg_device *device, gg_op op, const void *stream,
                                        uint64_t bytes, const char *name)
{
    if (atomic_load_explicit(&ggi_observed, memory_order_acquire))
        ggi_call_observe(
            device, &(struct gg_trace){.op = op, .stream = stream, .bytes = bytes, .name = name},
            false);
}
static inline gg_status ggi_call_end_named(struct gg_device *device, gg_op op, const void *stream,
                                           uint64_t bytes, const char *name, gg_status status)
{
    if (atomic_load_explicit(&ggi_debug_sync, memory_order_relaxed))
        status = ggi_call_sync(device, op, stream, status);
    if (atomic_load_explicit(&ggi_observed, memory_order_acquire))
        ggi_call_observe(
            device,
            &(struct gg_trace){
                .op = op, .status = status, .stream = stream, .bytes = bytes, .name = name},
            true);
    return status <= GG_NOT_READY ? status : ggi_op_failed(device, op, status);
}
static inline void ggi_call_begin(struct gg_device *device, gg_op op, const void *stream,
                                  uint64_t bytes)
{
    ggi_call_begin_named(device, op, stream, bytes, NULL);
}
static inline gg_status ggi_call_end(struct gg_device *device, gg_op op, const void *stream,
                                     uint64_t bytes, gg_status status)
{
    return ggi_call_end_named(device, op, stream, bytes, NULL, status);
}

/* The status of @p call, which is the operation: of the backend, or the core's own. */
#define GGI_CALL_AS(device, slot, stream, bytes, name, call)          \
    (ggi_call_begin_named(device, GG_OP_##slot, stream, bytes, name), \
     ggi_call_end_named(device, GG_OP_##slot, stream, bytes, name, call))
/* Call an operation: GGI_CALL(device, mem_free, NULL, nbytes, (impl, kind, pointer)) is its status. */
#define GGI_CALL(device, slot, stream, bytes, arguments) \
    GGI_CALL_AS(device, slot, stream, bytes, NULL, (device)->ops->slot arguments)
/* The same for an operation that the backend may lack. */
#define GGI_CALL_OPTIONAL(device, slot, stream, bytes, arguments)           \
    ((device)->ops->slot ? GGI_CALL(device, slot, stream, bytes, arguments) \
                         : ggi_unsupported(device, GG_OP_##slot))
/* The status of @p call with the thread's capture mode relaxed: it must not end a capture. Needs runtime/stream.h. */
#define GGI_RELAXED(device, call)                   \
    __extension__({                                 \
        struct ggi_internal_scope relaxed_;         \
        ggi_capture_relax_begin(device, &relaxed_); \
        const gg_status status_ = call;             \
        ggi_capture_relax_end(device, &relaxed_);   \
        status_;                                    \
    })
#define GGI_CALL_RELAXED(device, slot, stream, bytes, arguments) \
    GGI_RELAXED(device, GGI_CALL(device, slot, stream, bytes, arguments))

#endif
