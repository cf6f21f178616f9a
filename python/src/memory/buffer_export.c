/* buffer_export.c: pinned memory as host memory: buffer protocol, __array_interface__.
 *
 * Each export holds a reference to the core's block, so that close() does not have to count them. */
#include "numpy/bridge.h"
#include "memory/buffer.h"

static bool buffer_is_host(const gg_memory *memory)
{
    enum gg_memory_kind kind = gg_memory_get_kind(memory);
    return kind == GG_MEMORY_PINNED || kind == GG_MEMORY_MANAGED;
}

/* Wait for queued work on the memory before the host reads it. */
static int buffer_wait(PyObject *self, gg_memory *memory)
{
    struct py_buffer *buffer = (struct py_buffer *)self;
    if (!buffer->touched || !gg_memory_size(memory)) {
        buffer->touched = true; /* any holder of the address may use it from now on */
        return 0;
    }
    gg_status status;
    PY_WITHOUT_GIL(status = gg_memory_wait(memory));
    return py_check(py_state_of(self), status);
}

/* A reference to the memory once the host may read it; NULL with an exception of @p type. */
static gg_memory *buffer_host_memory(PyObject *self, PyObject *type)
{
    gg_memory *memory = py_buffer_memory(self);
    if (!memory)
        return NULL;
    if (!buffer_is_host(memory)) {
        PyErr_SetString(type, "device memory cannot be read by the host: copy it with "
                              "gpuglue.copy(destination, buffer) or GPUArray.get()");
        return NULL;
    }
    gg_memory_retain(memory);
    if (buffer_wait(self, memory)) {
        gg_memory_release(memory);
        return NULL;
    }
    return memory;
}

int py_buffer_export(PyObject *self, Py_buffer *view, int flags)
{
    static char none; /* NumPy and memoryview want an address even for no bytes */
    gg_memory *memory = buffer_host_memory(self, PyExc_BufferError);
    void *data;
    view->obj = NULL; /* marks a failure */
    if (!memory)
        return -1;
    data = gg_memory_pointer(memory);
    if (PyBuffer_FillInfo(view, self, data ? data : &none, (Py_ssize_t)gg_memory_size(memory), 0,
                          flags)) {
        gg_memory_release(memory);
        return -1;
    }
    view->internal = memory;
    return 0;
}

void py_buffer_unexport(PyObject *Py_UNUSED(self), Py_buffer *view)
{
    gg_memory_release(view->internal);
}

PyObject *py_buffer_interface(PyObject *self, void *Py_UNUSED(closure))
{
    struct py_buffer *buffer = (struct py_buffer *)self;
    gg_memory *memory = buffer_host_memory(self, PyExc_AttributeError);
    PyObject *address, *interface;
    if (!memory)
        return NULL;
    address = PyLong_FromVoidPtr(gg_memory_pointer(memory));
    interface = address
                    ? Py_BuildValue("{s(n)sss(OO)si}", "shape", (Py_ssize_t)gg_memory_size(memory),
                                    "typestr", "|u1", "data", address, Py_False, "version", 3)
                    : NULL;
    Py_XDECREF(address);
    /* A reader of this keeps the Buffer object, but does not report when it is done with the memory. */
    gg_memory_release(buffer->exposed);
    buffer->exposed = memory;
    return interface;
}

/* For callers of __array__; NumPy itself uses the buffer protocol. */
static PyObject *buffer_convert(PyObject *array, PyObject *dtype, PyObject *copy)
{
    PyObject *result;
    if (py_given(dtype))
        result = PyObject_CallMethod(array, "astype", "O", dtype);
    else if (copy == Py_True)
        result = numpy_copy(array, false);
    else
        return array;
    Py_DECREF(array);
    return result;
}

PY_FASTCALL(py_buffer_array)
{
    static const char *const names[] = {"dtype", "copy"};
    PyObject *values[2], *memoryview, *array;
    gg_memory *memory;
    if (py_parse("__array__", names, 2, 2, 0, args, nargs, kwnames, values))
        return NULL;
    memory = buffer_host_memory(self, PyExc_TypeError);
    if (!memory)
        return NULL;
    gg_memory_release(memory);
    memoryview = numpy_load() ? NULL : PyMemoryView_FromObject(self);
    if (!memoryview)
        return NULL;
    array = numpy_from_memoryview(memoryview);
    Py_DECREF(memoryview);
    return array ? buffer_convert(array, values[0], values[1]) : NULL;
}
