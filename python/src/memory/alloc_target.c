/* alloc_target.c: device= and stream= arguments together, and allocation for them. */
#include "base/owners.h"
#include "runtime/device.h"
#include "runtime/stream.h"
#include "memory/allocator.h"

static int target_set_stream(struct py_state *state, PyObject *stream, gg_device *device,
                             struct py_alloc_target *target)
{
    struct py_stream_use use;
    if (py_stream_use_begin(state, stream, device, &use))
        return -1;
    target->stream = use.stream;
    target->counted = use.counted;
    return 0;
}

int py_alloc_target_open(struct py_state *state, PyObject *device, PyObject *stream,
                         struct py_alloc_target *target)
{
    const bool has_stream = py_given(stream), alone = has_stream && !py_given(device);
    *target = (struct py_alloc_target){NULL, NULL, NULL};
    if (!alone && py_device_arg(state, device, &target->device))
        return -1;
    if (has_stream && target_set_stream(state, stream, target->device, target))
        return -1;
    if (alone)
        target->device = gg_stream_device(target->stream);
    return 0;
}

void py_alloc_target_close(struct py_alloc_target *target)
{
    if (target->counted)
        py_stream_call_end(target->counted);
    else
        gg_stream_release(target->stream);
    target->counted = NULL;
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
