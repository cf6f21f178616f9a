/* alloc.c: alloc(), alloc_pinned(), alloc_managed(), and NumPy arrays in pinned memory. */
#include "memory/alloc.h"
#include "numpy/bridge.h"
#include "runtime/device.h"
#include "runtime/stream.h"
#include "memory/alloc_target.h"
#include "memory/buffer.h"

/* Out of memory, like any other size that the device does not have. */
static int alloc_raise_too_large(struct py_state *state, PyObject *number)
{
    PyObject *shown = py_safe_repr(number);
    if (shown)
        PyErr_Format(state->out_of_memory,
                     "nbytes is %S: expected at most %zd, the size of the address space", shown,
                     PY_SSIZE_T_MAX);
    Py_XDECREF(shown);
    return -1;
}

static int alloc_read_nbytes(struct py_state *state, PyObject *object, size_t *out)
{
    int overflow, failed;
    long long value =
        Py_IS_TYPE(object, &PyLong_Type) ? PyLong_AsLongLongAndOverflow(object, &overflow) : -1;
    *out = (size_t)value;
    if (value >= 0) /* the common case */
        return 0;
    if (!PyIndex_Check(object))
        return PY_FAIL(PyExc_TypeError, "nbytes must be an int, got %R", object);
    PyObject *number = PyNumber_Index(object);
    if (!number)
        return -1;
    (void)PyLong_AsLongLongAndOverflow(number, &overflow);
    failed = overflow > 0 ? alloc_raise_too_large(state, number)
                          : py_integer(state, number, "nbytes", 0, PY_SSIZE_T_MAX, &value);
    Py_DECREF(number);
    *out = (size_t)value;
    return failed;
}

/* The stream= argument as a Stream. */
static PyObject *alloc_stream_object(struct py_state *state, PyObject *given,
                                     const struct py_alloc_target *target)
{
    if (!target->stream)
        return NULL;
    if (PyObject_TypeCheck(given, state->stream_type))
        return Py_NewRef(given);
    gg_stream_retain(target->stream);
    return py_stream_wrap(state, target->stream);
}

static PyObject *alloc_buffer(struct py_state *state, const struct py_alloc_target *target,
                              enum gg_memory_kind kind, PyObject *nbytes, PyObject *stream)
{
    size_t size = 0;
    gg_memory *memory;
    PyObject *buffer;
    if (alloc_read_nbytes(state, nbytes, &size))
        return NULL;
    memory = py_alloc_target_alloc(state, target, kind, size);
    buffer = memory ? py_buffer_wrap(state, memory) : NULL;
    if (!buffer)
        return NULL;
    ((struct py_buffer *)buffer)->stream = alloc_stream_object(state, stream, target);
    if (target->stream && !((struct py_buffer *)buffer)->stream)
        Py_CLEAR(buffer);
    return buffer;
}

static PY_FASTCALL(alloc)
{
    static const char *const names[] = {"nbytes", "device", "stream"};
    struct py_state *state = PyModule_GetState(self);
    struct py_alloc_target target;
    PyObject *values[3], *buffer;
    if (py_parse("alloc", names, 3, 3, 1, args, nargs, kwnames, values) ||
        py_alloc_target_open(state, values[1], values[2], &target))
        return NULL;
    buffer = alloc_buffer(state, &target, GG_MEMORY_DEVICE, values[0], values[2]);
    py_alloc_target_close(&target);
    return buffer;
}

static PyObject *alloc_for_host(PyObject *module, const char *name, enum gg_memory_kind kind,
                                PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"nbytes", "device"};
    struct py_state *state = PyModule_GetState(module);
    struct py_alloc_target target;
    PyObject *values[2];
    if (py_parse(name, names, 2, 2, 1, args, nargs, kwnames, values) ||
        py_alloc_target_open(state, values[1], NULL, &target))
        return NULL;
    return alloc_buffer(state, &target, kind, values[0], NULL);
}

static PY_FASTCALL(alloc_pinned)
{
    return alloc_for_host(self, "alloc_pinned", GG_MEMORY_PINNED, args, nargs, kwnames);
}

static PY_FASTCALL(alloc_managed)
{
    return alloc_for_host(self, "alloc_managed", GG_MEMORY_MANAGED, args, nargs, kwnames);
}

PyObject *py_pinned_array(struct py_state *state, gg_device *device, const struct py_layout *layout,
                          gg_memory **out)
{
    const struct py_alloc_target target = {.device = device};
    gg_memory *memory = py_alloc_target_alloc(state, &target, GG_MEMORY_PINNED, layout->nbytes);
    PyObject *buffer, *memoryview;
    if (!memory)
        return NULL;
    *out = memory;
    buffer = py_buffer_wrap(state, memory);
    if (!buffer)
        return NULL;
    memoryview = PyMemoryView_FromObject(buffer); /* keeps the block even after buffer.close() */
    Py_DECREF(buffer);
    if (!memoryview)
        return NULL;
    return numpy_wrap(layout->dtype, layout->ndim, layout->shape, layout->fortran,
                      gg_memory_pointer(memory), memoryview);
}

static PyObject *pinned_array(PyObject *module, const char *name, PyObject *const *args,
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
        PY_WITHOUT_GIL(memset(gg_memory_pointer(memory), 0, layout.nbytes));
    }
    py_layout_close(&layout);
    return array;
}

static PY_FASTCALL(empty_pinned)
{
    return pinned_array(self, "empty_pinned", args, nargs, kwnames, false);
}

static PY_FASTCALL(zeros_pinned)
{
    return pinned_array(self, "zeros_pinned", args, nargs, kwnames, true);
}

PyMethodDef py_alloc_functions[] = {
    PY_FASTCALL_DEF("alloc", alloc, py_doc_alloc),
    PY_FASTCALL_DEF("alloc_pinned", alloc_pinned, py_doc_alloc_pinned),
    PY_FASTCALL_DEF("alloc_managed", alloc_managed, py_doc_alloc_managed),
    PY_FASTCALL_DEF("empty_pinned", empty_pinned, py_doc_empty_pinned),
    PY_FASTCALL_DEF("zeros_pinned", zeros_pinned, py_doc_zeros_pinned),
    {NULL, NULL, 0, NULL},
};
