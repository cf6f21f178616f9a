/* stream.c: the Python object of a stream. */
#include "runtime/stream.h"

gg_stream *py_stream_handle(PyObject *self)
{
    gg_stream *stream = py_stream_of(self)->stream;
    if (!stream)
        py_closed(py_state_of(self), "Stream");
    return stream;
}

PyObject *py_stream_wrap(struct py_state *state, gg_stream *stream)
{
    struct py_stream *self = PyObject_New(struct py_stream, state->stream_type);
    if (!self) {
        gg_stream_release(stream);
        return NULL;
    }
    self->stream = stream;
    self->state = state;
    self->identity = stream;
    self->busy = 0;
    self->closing = NULL;
    self->weakrefs = NULL;
    return (PyObject *)self;
}
