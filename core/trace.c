/* trace.c: looking on: what a tracer is told before and after each operation, and GPUGLUE_DEBUG. */
#include "internal.h"
#include "sized.h"

#include <inttypes.h>
#include <stddef.h>

/* Where the log is at level trace it is never NULL: one load then asks for both. */
_Atomic(const struct gg_tracer *) ggi_tracer;

static const struct gg_tracer log_alone = {.struct_size = sizeof log_alone};

gg_status gg_set_tracer(const struct gg_tracer *tracer)
{
    static const size_t first = offsetof(struct gg_tracer, post) + sizeof tracer->post;
    if (tracer && !ggi_sized_fits(tracer, first))
        return ggi_sized_refuse("gg_set_tracer", "gg_tracer", tracer, first);
    if (!tracer && ggi_log_on(GG_LOG_TRACE))
        tracer = &log_alone;
    atomic_store_explicit(&ggi_tracer, tracer, memory_order_release);
    return GG_OK;
}

void ggi_trace_start(void)
{
    const struct gg_tracer *none = NULL;
    if (ggi_log_on(GG_LOG_TRACE))
        atomic_compare_exchange_strong(&ggi_tracer, &none, &log_alone);
}

static struct gg_trace describe(struct gg_device *device, gg_op op, const void *stream,
                                uint64_t bytes, gg_status status)
{
    return (struct gg_trace){.struct_size = sizeof(struct gg_trace),
                             .op = op,
                             .backend = device->backend->name,
                             .device = device->ordinal,
                             .status = status,
                             .stream = stream,
                             .bytes = bytes};
}

void ggi_trace_pre(struct gg_device *device, gg_op op, const void *stream, uint64_t bytes)
{
    const struct gg_tracer *tracer = atomic_load_explicit(&ggi_tracer, memory_order_acquire);
    struct gg_trace trace = describe(device, op, stream, bytes, GG_OK);
    if (tracer && tracer->pre)
        tracer->pre(tracer->user, &trace);
}

void ggi_trace_post(struct gg_device *device, gg_op op, const void *stream, uint64_t bytes,
                    gg_status status)
{
    const struct gg_tracer *tracer = atomic_load_explicit(&ggi_tracer, memory_order_acquire);
    struct gg_trace trace = describe(device, op, stream, bytes, status);
    if (tracer && tracer->post)
        tracer->post(tracer->user, &trace);
    if (ggi_log_on(GG_LOG_TRACE))
        ggi_log(GG_LOG_TRACE, NULL, "%s %s:%d stream=0x%" PRIxPTR " bytes=%" PRIu64 " %s",
                gg_op_name(op), trace.backend, (int)trace.device, (uintptr_t)stream, bytes,
                gg_status_name(status));
}

_Atomic(bool) ggi_debug_sync;

/* Only what runs later on the device has a failure that would show elsewhere. */
static bool runs_later(gg_op op)
{
    return op == GG_OP_copy || op == GG_OP_copy_region || op == GG_OP_copy_peer ||
           op == GG_OP_fill || op == GG_OP_write_word || op == GG_OP_mem_prefetch ||
           op == GG_OP_kernel_launch;
}

/* What gpuglue does on its own account is nobody's to interrupt. */
static bool interrupted(void)
{
    return !ggi_thread()->quiet && ggi_interrupted();
}

gg_status ggi_sync_after(struct gg_device *device, gg_op op, const void *stream, gg_status status)
{
    gg_stream *on = (gg_stream *)(uintptr_t)stream;
    if (status || !on || !runs_later(op) || ggi_stream_capturing(on))
        return status;
    while ((status = device->ops->stream_wait(on->impl, GGI_SLICE_NS)) == GG_NOT_READY)
        if (interrupted())
            return ggi_fail(GG_ERR_INTERRUPTED,
                            "the wait was interrupted; the queued work goes on");
    return status;
}
