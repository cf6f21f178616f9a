/* memory_export.c: page-locked memory seen as host memory: buffer protocol, __array_interface__.
 *
 * Each export holds a reference to the core's block, so that close() needs to know of none of them. */
#include "memory.h"
#include "numpy_bridge.h"

static bool on_host(const gg_memory *memory)
{
    enum gg_memory_kind kind = gg_memory_kind_of(memory);
    return kind == GG_MEMORY_PINNED || kind == GG_MEMORY_MANAGED;
}

/* Let queued work on the memory finish before the host looks. */
static int settle(PyObject *self, gg_memory *memory)
{
    struct py_buffer *buffer = (struct py_buffer *)self;
    if (!buffer->touched || !gg_memory_size(memory)) {
        buffer->touched = true; /* whoever has the address may use it from now on */
        return 0;
    }
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_memory_wait(memory);
    PyEval_RestoreThread(thread);
    return py_check(py_state_of(self), status);
}

/* The memory, with a reference, once the host may look at it; NULL with an exception of @p type. */
static gg_memory *reach(PyObject *self, PyObject *type)
{
    gg_memory *memory = py_buffer_memory(self);
    if (!memory)
        return NULL;
    if (!on_host(memory)) {
        PyErr_SetString(type, "device memory cannot be read by the host: copy it with "
                              "gpuglue.copy(destination, buffer) or GPUArray.get()");
        return NULL;
    }
    gg_memory_retain(memory);
    if (settle(self, memory)) {
        gg_memory_release(memory);
        return NULL;
    }
    return memory;
}

int py_buffer_export(PyObject *self, Py_buffer *view, int flags)
{
    static char none; /* NumPy and memoryview want an address even for no bytes */
    gg_memory *memory = reach(self, PyExc_BufferError);
    void *data;
    view->obj = NULL; /* says "failed" */
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

void py_buffer_unexport(PyObject *self, Py_buffer *view)
{
    (void)self;
    gg_memory_release(view->internal);
}

PyObject *py_buffer_interface(PyObject *self, void *closure)
{
    struct py_buffer *buffer = (struct py_buffer *)self;
    gg_memory *memory = reach(self, PyExc_AttributeError);
    PyObject *address, *interface;
    (void)closure;
    if (!memory)
        return NULL;
    address = PyLong_FromVoidPtr(gg_memory_pointer(memory));
    interface = address
                    ? Py_BuildValue("{s(n)sss(OO)si}", "shape", (Py_ssize_t)gg_memory_size(memory),
                                    "typestr", "|u1", "data", address, Py_False, "version", 3)
                    : NULL;
    Py_XDECREF(address);
    /* Whoever reads this keeps the Buffer object, but tells nobody when it is done. */
    gg_memory_release(buffer->exposed);
    buffer->exposed = memory;
    return interface;
}

/* NumPy itself goes by the buffer protocol; this is for those who call __array__ by name. */
static PyObject *as_asked(PyObject *array, PyObject *dtype, PyObject *copy)
{
    PyObject *result;
    if (dtype && dtype != Py_None)
        result = PyObject_CallMethod(array, "astype", "O", dtype);
    else if (copy == Py_True)
        result = numpy_contiguous(array, false);
    else
        return array;
    Py_DECREF(array);
    return result;
}

PyObject *py_buffer_array(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"dtype", "copy"};
    PyObject *values[2], *memoryview, *array;
    gg_memory *memory;
    if (py_parse("__array__", names, 2, 2, 0, args, nargs, kwnames, values))
        return NULL;
    memory = reach(self, PyExc_TypeError);
    if (!memory)
        return NULL;
    gg_memory_release(memory);
    memoryview = numpy_load() ? NULL : PyMemoryView_FromObject(self);
    if (!memoryview)
        return NULL;
    array = numpy_from_memoryview(memoryview);
    Py_DECREF(memoryview);
    return array ? as_asked(array, values[0], values[1]) : NULL;
}
