/* trace.c: what a tracer is told before and after each operation of a device. */
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
