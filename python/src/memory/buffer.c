/* buffer.c: Buffer: the Python object of a block of memory. */
#include "memory/buffer.h"
#include "runtime/device.h"
#include "runtime/stream.h"

gg_memory *py_buffer_memory(PyObject *self)
{
    gg_memory *memory = py_buffer_of(self)->memory;
    if (!memory)
        py_closed(py_state_of(self), "Buffer");
    return memory;
}

void py_buffer_touch(PyObject *self)
{
    py_buffer_of(self)->touched = true;
}

PyObject *py_buffer_wrap(struct py_state *state, gg_memory *memory)
{
    struct py_buffer *buffer = PyObject_New(struct py_buffer, state->buffer_type);
    if (!buffer) {
        gg_memory_release(memory);
        return NULL;
    }
    buffer->memory = memory;
    buffer->exposed = NULL;
    buffer->stream = NULL;
    buffer->touched = false;
    buffer->weakrefs = NULL;
    return (PyObject *)buffer;
}

PyObject *py_buffer_wrap_in_use(struct py_state *state, gg_memory *memory)
{
    PyObject *self = py_buffer_wrap(state, memory);
    if (self)
        py_buffer_touch(self);
    return self;
}

PyObject *py_record_use(struct py_state *state, gg_memory *memory, PyObject *object)
{
    gg_stream *stream = NULL;
    gg_status status;
    if (object == Py_None)
        return PyErr_Format(PyExc_TypeError, "record_use needs a stream, got None");
    gg_memory_retain(memory); /* a Buffer may be closed meanwhile, also by Python code of the stream */
    if (py_stream_arg(state, object, gg_memory_device(memory), &stream)) {
        gg_memory_release(memory);
        return NULL;
    }
    PY_WITHOUT_GIL(status = gg_memory_record_use(memory, stream));
    py_check(state, status);
    gg_memory_release(memory);
    gg_stream_release(stream);
    return status ? NULL : Py_NewRef(Py_None);
}

bool py_host_accessible(const gg_memory *memory)
{
    return gg_memory_get_kind(memory) != GG_MEMORY_DEVICE ||
           py_is_host_device(gg_memory_device(memory));
}
