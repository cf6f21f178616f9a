/* place.c: device= and stream= arguments, and allocation there. */
#include "allocator.h"

int py_place_open(struct py_state *state, PyObject *device, PyObject *stream, struct py_place *place)
{
    const bool has_stream = stream && stream != Py_None;
    place->stream = NULL;
    if (has_stream && (!device || device == Py_None)) {
        if (py_stream_borrow(state, stream, NULL, &place->stream))
            return -1;
        place->device = gg_stream_device(place->stream);
        return 0;
    }
    if (py_device_arg(state, device, &place->device))
        return -1;
    return has_stream ? py_stream_arg(state, stream, place->device, &place->stream) : 0;
}

void py_place_close(struct py_place *place)
{
    gg_stream_release(place->stream);
    place->stream = NULL;
}

gg_memory *py_place_alloc(struct py_state *state, const struct py_place *place,
                          enum gg_memory_kind kind, size_t nbytes)
{
    gg_memory *memory = NULL;
    gg_status status;
    if (state->allocator && kind == GG_MEMORY_DEVICE && nbytes)
        return py_allocator_alloc(state, place, nbytes);
    py_owners_drain(); /* what nobody wants any more should not make this allocation fail */
    status = gg_memory_try_alloc(place->device, kind, nbytes, place->stream, &memory);
    if (!status)
        return memory;
    if (status != GG_NOT_READY)
        return py_raise(state, status), NULL;
    PyThreadState *thread = PyEval_SaveThread();
    status = gg_memory_alloc(place->device, kind, nbytes, place->stream, &memory);
    PyEval_RestoreThread(thread);
    return py_check(state, status) ? NULL : memory;
}
