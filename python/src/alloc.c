/* alloc.c: alloc, alloc_pinned, and NumPy arrays in page-locked memory. */
#include "layout.h"
#include "memory.h"
#include "numpy_bridge.h"
#include "pinned.h"
#include "place.h"

/* Of a size as of one that the device has not: there is not that much memory. */
static int too_many_bytes(struct py_state *state, PyObject *number)
{
    PyObject *shown = py_shown(number);
    if (shown)
        PyErr_Format(state->out_of_memory,
                     "nbytes is %S: more than any address can reach, which are %zd bytes", shown,
                     PY_SSIZE_T_MAX);
    Py_XDECREF(shown);
    return -1;
}

static int read_nbytes(struct py_state *state, PyObject *object, size_t *out)
{
    int overflow, failed;
    long long value = 0;
    if (!PyIndex_Check(object)) {
        PyErr_Format(PyExc_TypeError, "nbytes must be an int, got %R", object);
        return -1;
    }
    PyObject *number = PyNumber_Index(object);
    if (!number)
        return -1;
    (void)PyLong_AsLongLongAndOverflow(number, &overflow);
    failed = overflow > 0 ? too_many_bytes(state, number)
                          : py_integer(state, number, "nbytes", 0, PY_SSIZE_T_MAX, &value);
    Py_DECREF(number);
    *out = (size_t)value;
    return failed;
}

/* The Stream that was given, as an object. */
static PyObject *stream_object(struct py_state *state, PyObject *given, const struct py_place *place)
{
    if (!place->stream)
        return NULL;
    if (PyObject_TypeCheck(given, state->stream_type))
        return Py_NewRef(given);
    gg_stream_retain(place->stream);
    return py_stream_wrap(state, place->stream);
}

static PyObject *alloc_at(struct py_state *state, const struct py_place *place,
                          enum gg_memory_kind kind, PyObject *nbytes, PyObject *stream)
{
    size_t size = 0;
    gg_memory *memory;
    PyObject *buffer;
    if (read_nbytes(state, nbytes, &size))
        return NULL;
    memory = py_place_alloc(state, place, kind, size);
    buffer = memory ? py_buffer_wrap(state, memory) : NULL;
    if (!buffer)
        return NULL;
    ((struct py_buffer *)buffer)->stream = stream_object(state, stream, place);
    if (place->stream && !((struct py_buffer *)buffer)->stream)
        Py_CLEAR(buffer);
    return buffer;
}

static PyObject *alloc(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"nbytes", "device", "stream"};
    struct py_state *state = PyModule_GetState(module);
    struct py_place place;
    PyObject *values[3], *buffer;
    if (py_parse("alloc", names, 3, 3, 1, args, nargs, kwnames, values) ||
        py_place_open(state, values[1], values[2], &place))
        return NULL;
    buffer = alloc_at(state, &place, GG_MEMORY_DEVICE, values[0], values[2]);
    py_place_close(&place);
    return buffer;
}

static PyObject *alloc_pinned(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                              PyObject *kwnames)
{
    static const char *const names[] = {"nbytes", "device"};
    struct py_state *state = PyModule_GetState(module);
    struct py_place place;
    PyObject *values[2];
    if (py_parse("alloc_pinned", names, 2, 2, 1, args, nargs, kwnames, values) ||
        py_place_open(state, values[1], NULL, &place))
        return NULL;
    return alloc_at(state, &place, GG_MEMORY_PINNED, values[0], NULL);
}

static PyObject *alloc_managed(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames)
{
    static const char *const names[] = {"nbytes", "device"};
    struct py_state *state = PyModule_GetState(module);
    struct py_place place;
    PyObject *values[2];
    if (py_parse("alloc_managed", names, 2, 2, 1, args, nargs, kwnames, values) ||
        py_place_open(state, values[1], NULL, &place))
        return NULL;
    return alloc_at(state, &place, GG_MEMORY_MANAGED, values[0], NULL);
}

PyObject *py_pinned_array(struct py_state *state, gg_device *device, const struct py_layout *layout,
                          gg_memory **out)
{
    const struct py_place place = {.device = device};
    gg_memory *memory = py_place_alloc(state, &place, GG_MEMORY_PINNED, layout->nbytes);
    PyObject *buffer, *memoryview;
    if (!memory)
        return NULL;
    *out = memory;
    buffer = py_buffer_wrap(state, memory);
    if (!buffer)
        return NULL;
    memoryview = PyMemoryView_FromObject(buffer); /* holds the block even after buffer.close() */
    Py_DECREF(buffer);
    if (!memoryview)
        return NULL;
    return numpy_over(layout->dtype, layout->ndim, layout->shape, layout->fortran,
                      gg_memory_pointer(memory), memoryview);
}

static PyObject *pinned_function(PyObject *module, const char *name, PyObject *const *args,
                                 Py_ssize_t nargs, PyObject *kwnames, bool zero)
{
    static const char *const names[] = {"shape", "dtype", "order", "device"};
    struct py_state *state = PyModule_GetState(module);
    struct py_layout layout;
    gg_device *device = NULL;
    gg_memory *memory = NULL;
    PyObject *values[4], *array;
    if (py_parse(name, names, 4, 4, 1, args, nargs, kwnames, values) ||
        py_layout_open(state, &layout, values[0], values[1], values[2]))
        return NULL;
    array = py_device_arg(state, values[3], &device)
                ? NULL
                : py_pinned_array(state, device, &layout, &memory);
    if (array && zero && layout.nbytes) {
        PyThreadState *thread = PyEval_SaveThread();
        memset(gg_memory_pointer(memory), 0, layout.nbytes);
        PyEval_RestoreThread(thread);
    }
    py_layout_close(&layout);
    return array;
}

static PyObject *empty_pinned(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                              PyObject *kwnames)
{
    return pinned_function(module, "empty_pinned", args, nargs, kwnames, false);
}

static PyObject *zeros_pinned(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                              PyObject *kwnames)
{
    return pinned_function(module, "zeros_pinned", args, nargs, kwnames, true);
}

PyMethodDef py_alloc_functions[] = {
    {"alloc", PY_METHOD(alloc), METH_FASTCALL | METH_KEYWORDS,
     "alloc(nbytes, device=None, stream=None)\n--\n\n"
     "Allocate device memory, aligned to at least 256 bytes; stream is where it is first used."},
    {"alloc_pinned", PY_METHOD(alloc_pinned), METH_FASTCALL | METH_KEYWORDS,
     "alloc_pinned(nbytes, device=None)\n--\n\n"
     "Allocate page-locked host memory, from and to which copies can run in the background."},
    {"alloc_managed", PY_METHOD(alloc_managed), METH_FASTCALL | METH_KEYWORDS,
     "alloc_managed(nbytes, device=None)\n--\n\n"
     "Allocate memory that the driver moves between host and device; see Buffer.prefetch and\n"
     "advise. UnsupportedError where the device has none."},
    {"empty_pinned", PY_METHOD(empty_pinned), METH_FASTCALL | METH_KEYWORDS,
     "empty_pinned(shape, dtype='float64', order='C', device=None)\n--\n\n"
     "An uninitialised numpy.ndarray in page-locked memory."},
    {"zeros_pinned", PY_METHOD(zeros_pinned), METH_FASTCALL | METH_KEYWORDS,
     "zeros_pinned(shape, dtype='float64', order='C', device=None)\n--\n\n"
     "A numpy.ndarray of zeros in page-locked memory."},
    {NULL, NULL, 0, NULL},
};
