/* trace.c: looking on: what a tracer is told before and after each operation, and GPUGLUE_DEBUG. */
#include "internal.h"

_Atomic(const struct gg_tracer *) ggi_tracer;

gg_status gg_set_tracer(const struct gg_tracer *tracer)
{
    if (tracer && tracer->struct_size < sizeof *tracer)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_set_tracer: struct_size is %u, expected at least %u: set it to "
                        "sizeof(struct gg_tracer)",
                        (unsigned)tracer->struct_size, (unsigned)sizeof *tracer);
    atomic_store_explicit(&ggi_tracer, tracer, memory_order_release);
    return GG_OK;
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
}

_Atomic(bool) ggi_debug_sync;

/* Only what runs later on the device has a failure that would show elsewhere. */
static bool runs_later(gg_op op)
{
    return op == GG_OP_copy || op == GG_OP_fill || op == GG_OP_write_word ||
           op == GG_OP_kernel_launch;
}

gg_status ggi_sync_after(struct gg_device *device, gg_op op, const void *stream, gg_status status)
{
    gg_stream *on = (gg_stream *)(uintptr_t)stream;
    if (status || !on || !runs_later(op) || ggi_stream_capturing(on))
        return status;
    do
        status = device->ops->stream_wait(on->impl, GGI_SLICE_NS);
    while (status == GG_NOT_READY);
    return status;
}
