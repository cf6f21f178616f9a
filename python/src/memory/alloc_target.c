/* alloc_target.c: device= and stream= arguments together, and allocation for them. */
#include "base/owners.h"
#include "runtime/device.h"
#include "runtime/stream.h"
#include "memory/allocator.h"

int py_alloc_target_open(struct py_state *state, PyObject *device, PyObject *stream,
                         struct py_alloc_target *target)
{
    const bool has_stream = py_given(stream);
    target->stream = NULL;
    if (has_stream && (!py_given(device))) {
        if (py_stream_borrow(state, stream, NULL, &target->stream))
            return -1;
        target->device = gg_stream_device(target->stream);
        return 0;
    }
    if (py_device_arg(state, device, &target->device))
        return -1;
    return has_stream ? py_stream_arg(state, stream, target->device, &target->stream) : 0;
}

void py_alloc_target_close(struct py_alloc_target *target)
{
    gg_stream_release(target->stream);
    target->stream = NULL;
}

gg_memory *py_alloc_target_alloc(struct py_state *state, const struct py_alloc_target *target,
                                 enum gg_memory_kind kind, size_t nbytes)
{
    gg_memory *memory = NULL;
    gg_status status;
    if (state->allocator && kind == GG_MEMORY_DEVICE && nbytes)
        return py_allocator_alloc(state, target, nbytes);
    py_owners_drain(); /* released objects must not make this allocation fail */
    status = gg_memory_try_alloc(target->device, kind, nbytes, target->stream, &memory);
    if (!status)
        return memory;
    if (status != GG_NOT_READY)
        return py_raise(state, status), NULL;
    PY_WITHOUT_GIL(status = gg_memory_alloc(target->device, kind, nbytes, target->stream, &memory));
    return py_check(state, status) ? NULL : memory;
}
