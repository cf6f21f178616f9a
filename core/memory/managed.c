/* managed.c: managed memory: prefetch and placement hints. */
#include "base/error.h"
#include "runtime/call.h"
#include "runtime/scope.h"
#include "memory/uses.h"

static gg_status managed_check(gg_memory *memory, const char *what)
{
    gg_status status = ggi_device_check(memory->device);
    if (status)
        return status;
    if (memory->kind == GG_MEMORY_MANAGED)
        return GG_OK;
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s: expected managed memory, got %s memory: allocate it as managed memory",
                    what, memory->kind == GG_MEMORY_PINNED ? "pinned" : "device");
}

gg_status gg_memory_prefetch(gg_memory *memory, int to_host, gg_stream *stream)
{
    struct gg_device *device = memory->device;
    bool implicit, complete;
    gg_status status = managed_check(memory, "prefetch");
    if (!status)
        status = ggi_choose_stream(device, &stream, &implicit, &complete);
    if (status)
        return status;
    if (!device->ops->mem_prefetch)
        return ggi_unsupported(device, GG_OP_mem_prefetch);
    if (!memory->nbytes)
        return GG_OK;
    /* A driver would invalidate the capture, or prefetch at once. */
    if (ggi_stream_is_captured(stream))
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "stream is capturing: a prefetch cannot become part of a graph; prefetch "
                        "before the capture begins");
    status = ggi_memory_wait_before_use(memory, stream, implicit);
    if (status)
        return status;
    status = GGI_CALL(device, mem_prefetch, stream, memory->nbytes,
                      (stream->impl, memory->pointer, memory->nbytes, to_host != 0));
    ggi_memory_note_use(memory, stream, ggi_stream_submitted(stream), false);
    return !status && complete ? ggi_stream_synchronize(stream, true) : status;
}

gg_status gg_memory_advise(gg_memory *memory, enum gg_advice advice, int for_host)
{
    struct gg_device *device = memory->device;
    gg_status status = managed_check(memory, "advise");
    if (status)
        return status;
    if ((int)advice < GG_ADVICE_READ_MOSTLY || advice > GG_ADVICE_NOT_COARSE_GRAINED)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "advise: advice %d is unknown: expected %d to %d",
                        (int)advice, GG_ADVICE_READ_MOSTLY, GG_ADVICE_NOT_COARSE_GRAINED);
    if (!memory->nbytes)
        return GG_OK;
    return GGI_CALL_OPTIONAL(
        device, mem_advise, NULL, memory->nbytes,
        (atomic_load(&device->impl), memory->pointer, memory->nbytes, advice, for_host != 0));
}
