/* place.c: device= and stream= arguments, and allocation there. */
#include "allocator.h"

/* The device of an open Stream object, or NULL for anything else. */
static gg_device *device_of(struct py_state *state, PyObject *stream)
{
    if (!stream || !PyObject_TypeCheck(stream, state->stream_type))
        return NULL;
    gg_stream *handle = ((struct py_stream *)stream)->stream;
    return handle ? gg_stream_device(handle) : NULL;
}

int py_place_open(struct py_state *state, PyObject *device, PyObject *stream, struct py_place *place)
{
    place->stream = NULL;
    place->device = !device || device == Py_None ? device_of(state, stream) : NULL;
    if (!place->device && py_device_arg(state, device, &place->device))
        return -1;
    if (stream && stream != Py_None)
        return py_stream_arg(state, stream, place->device, &place->stream);
    return 0;
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
