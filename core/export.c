/* export.c: memory that others use: what they must wait for, and what is kept until they are done. */
#include "internal.h"

gg_status gg_memory_order(gg_memory *memory, gg_stream *stream)
{
    gg_status status = ggi_check(memory->device);
    if (!status)
        status = ggi_stream_check(stream);
    if (!status && stream->device->backend != memory->device->backend)
        status = ggi_fail(GG_ERR_INVALID_ARGUMENT,
                          "a stream of \"%s\" cannot wait for work on memory of \"%s\"",
                          stream->device->backend->name, memory->device->backend->name);
    return status ? status : ggi_memory_order(memory, stream);
}

gg_status gg_memory_query(gg_memory *memory)
{
    gg_status status = ggi_check(memory->device);
    if (status)
        return status;
    return ggi_memory_prune(memory, true) && !ggi_memory_handed(memory) ? GG_OK : GG_NOT_READY;
}

/* A stream of the device's own, on which several others can be waited for as one. */
static gg_status meeting_stream(gg_device *device, gg_stream **out)
{
    gg_stream *made, *none = NULL;
    gg_status status;
    *out = atomic_load(&device->meeting);
    if (*out)
        return GG_OK;
    status = gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &made);
    if (status)
        return status;
    *out = made;
    if (!atomic_compare_exchange_strong(&device->meeting, &none, made)) {
        gg_stream_release(made);
        *out = none;
    }
    return GG_OK;
}

/* Not a stream that another thread would take for its own, or whose owner nobody knows. */
static bool presentable(const gg_stream *stream, bool default_too)
{
    return !stream->of_thread && (!stream->borrowed || stream->release) &&
           (!stream->is_default || default_too);
}

gg_status gg_memory_pending(gg_memory *memory, uint32_t flags, gg_stream **out)
{
    gg_stream *only = NULL, *meeting;
    gg_status status = ggi_check(memory->device);
    if (status)
        return status;
    if (flags & ~(uint32_t)GG_PENDING_DEFAULT_TOO)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_memory_pending: flags 0x%x hold an unknown bit", (unsigned)flags);
    uint32_t count = ggi_memory_users(memory, &only);
    if (count == 1 && presentable(only, flags & GG_PENDING_DEFAULT_TOO)) {
        *out = only;
        return GG_OK;
    }
    gg_stream_release(only);
    if (!count) {
        *out = NULL;
        return GG_OK;
    }
    status = meeting_stream(memory->device, &meeting);
    if (!status)
        status = ggi_memory_order(memory, meeting);
    if (status)
        return status;
    gg_stream_retain(meeting);
    *out = meeting;
    return GG_OK;
}
