/* export.c: host views of a GPUArray in host-accessible memory: buffer protocol, __array_interface__, __array__.
 * Each waits for pending work first. */
#include "numpy/bridge.h"
#include "memory/buffer.h"
#include "array/array.h"

static int export_raise_device_memory(PyObject *type)
{
    return PY_FAIL(type,
                   "device memory cannot be read by the host: a.get() copies it to a NumPy array, "
                   "and cupy.from_dlpack(a) or torch.from_dlpack(a) use it in place");
}

/* The exception of a signal's handler that ended a wait. NumPy ignores any failure of the buffer protocol and uses the
 * next protocol, in the same call: that raises the exception again. The interpreter's next pending call clears it. Under
 * the GIL; only the main thread runs handlers. */
static struct {
    PyObject *array, *frame; /* compared only */
    int line;
    PyObject *type, *value, *traceback;
} interrupted;

static int interrupted_clear(void *Py_UNUSED(unused))
{
    interrupted.array = NULL;
    Py_CLEAR(interrupted.type);
    Py_CLEAR(interrupted.value);
    Py_CLEAR(interrupted.traceback);
    return 0;
}

/* Keep the exception that is set. */
static void interrupted_keep(PyObject *array)
{
    PyFrameObject *frame;
    interrupted_clear(NULL);
    if (Py_AddPendingCall(interrupted_clear, NULL))
        return;
    PyErr_Fetch(&interrupted.type, &interrupted.value, &interrupted.traceback);
    frame = PyEval_GetFrame();
    interrupted.array = array;
    interrupted.frame = (PyObject *)frame;
    interrupted.line = frame ? PyFrame_GetLineNumber(frame) : 0;
    PyErr_Restore(Py_XNewRef(interrupted.type), Py_XNewRef(interrupted.value),
                  Py_XNewRef(interrupted.traceback));
}

/* Whether the call that was interrupted goes on with another protocol; the exception is set then. */
static bool interrupted_again(PyObject *array)
{
    PyFrameObject *frame;
    if (interrupted.array != array)
        return false;
    frame = PyEval_GetFrame();
    if (interrupted.frame != (PyObject *)frame ||
        (frame && interrupted.line != PyFrame_GetLineNumber(frame)))
        return false;
    PyErr_Restore(Py_XNewRef(interrupted.type), Py_XNewRef(interrupted.value),
                  Py_XNewRef(interrupted.traceback));
    return true;
}

/* Wait until the host may read the memory; -1 with an exception of @p type. */
static int export_wait(PyObject *self, PyObject *type)
{
    struct py_array *array = py_array_of(self);
    gg_status status;
    if (!py_host_accessible(array->memory))
        return export_raise_device_memory(type);
    if (interrupted_again(self))
        return -1;
    if (gg_memory_query(array->memory) == GG_OK)
        return 0;
    PY_WITHOUT_GIL(status = gg_memory_wait(array->memory));
    py_check(py_state_of(self), status);
    if (status == GG_ERR_INTERRUPTED)
        interrupted_keep(self);
    return status ? -1 : 0;
}

/* An ndarray over the same memory, which keeps this array. */
static PyObject *export_ndarray(PyObject *self)
{
    struct py_array *array = py_array_of(self);
    char *first = gg_memory_pointer(array->memory);
    static char none[1];
    return numpy_wrap_strided(array->dtype, array->ndim, array->shape, array->strides,
                              first ? first + array->offset : none, !array->readonly,
                              Py_NewRef(self));
}

/* Whether the dtype that is read back equals the original. Takes over @p back, and clears any exception. */
static bool dtype_round_trips(PyObject *dtype, PyObject *back)
{
    const bool same = back && numpy_same_dtype(dtype, back);
    Py_XDECREF(back);
    PyErr_Clear();
    return same;
}

/* Neither buffer formats nor type strings can express every dtype. NumPy would trust a wrong one, and then not call
 * __array__. */
static bool dtype_is_plain(PyObject *dtype)
{
    const struct numpy_dtype_info kind = numpy_dtype_info(dtype);
    return kind.builtin && kind.letter != 'V';
}

static bool buffer_format_is_exact(PyObject *array, PyObject *dtype)
{
    PyObject *memory, *back;
    struct numpy_desc desc;
    if (dtype_is_plain(dtype))
        return true;
    if (!numpy_dtype_info(dtype).builtin)
        return false;
    memory = PyMemoryView_FromObject(array);
    back = memory ? numpy_from_memoryview(memory) : NULL;
    Py_XDECREF(memory);
    if (!back)
        return dtype_round_trips(dtype, NULL);
    numpy_describe(back, &desc);
    Py_INCREF(desc.dtype);
    Py_DECREF(back);
    return dtype_round_trips(dtype, desc.dtype);
}

static bool interface_is_exact(PyObject *interface, PyObject *dtype)
{
    PyObject *descr, *back;
    if (dtype_is_plain(dtype))
        return true;
    if (!numpy_dtype_info(dtype).builtin)
        return false;
    descr = PyDict_GetItemString(interface, numpy_has_fields(dtype) ? "descr" : "typestr");
    return dtype_round_trips(dtype, descr && !numpy_dtype_for_cast(descr, &back) ? back : NULL);
}

/* NumPy knows every format and every flag: the buffer is that of an ndarray over the memory. */
int py_array_export(PyObject *self, Py_buffer *view, int flags)
{
    PyObject *array;
    int failed;
    view->obj = NULL; /* marks a failure */
    if (export_wait(self, PyExc_BufferError) || numpy_load())
        return -1;
    array = export_ndarray(self);
    if (!array)
        return -1;
    if (flags & PyBUF_FORMAT && !buffer_format_is_exact(array, py_array_of(self)->dtype)) {
        PyErr_Format(PyExc_BufferError,
                     "the buffer protocol cannot express dtype %S: use numpy.asarray()",
                     py_array_of(self)->dtype);
        failed = -1;
    } else
        failed = PyObject_GetBuffer(array, view, flags);
    Py_DECREF(array);
    return failed;
}

PyObject *py_array_interface(PyObject *self, void *Py_UNUSED(closure))
{
    PyObject *array, *interface;
    if (export_wait(self, PyExc_AttributeError) || numpy_load())
        return NULL;
    array = export_ndarray(self);
    if (!array)
        return NULL;
    interface = PyObject_GetAttrString(array, "__array_interface__");
    Py_DECREF(array);
    if (!interface || interface_is_exact(interface, py_array_of(self)->dtype))
        return interface;
    Py_DECREF(interface);
    return PyErr_Format(PyExc_AttributeError,
                        "__array_interface__ cannot express dtype %S: use numpy.asarray()",
                        py_array_of(self)->dtype);
}

/* copy: 1 always, 0 never, -1 if needed. Takes over @p array. */
static PyObject *export_convert(PyObject *array, PyObject *dtype, int copy)
{
    struct numpy_desc desc;
    PyObject *result;
    numpy_describe(array, &desc);
    if (!dtype || !numpy_needs_cast(desc.dtype, dtype)) {
        if (copy != 1)
            return array;
        result = numpy_copy(array, false);
    } else if (!copy)
        result =
            PyErr_Format(PyExc_ValueError,
                         "a conversion to another dtype needs a copy, which copy=False forbids");
    else
        result = PyObject_CallMethod(array, "astype", "O", dtype);
    Py_DECREF(array);
    return result;
}

/* For callers of __array__; NumPy itself tries the buffer protocol first. */
PY_FASTCALL(py_array_array)
{
    static const char *const names[] = {"dtype", "copy"};
    PyObject *values[2], *array, *dtype = NULL;
    int copy;
    if (py_parse("__array__", names, 2, 2, 0, args, nargs, kwnames, values) ||
        export_wait(self, PyExc_TypeError) || numpy_load())
        return NULL;
    copy = !py_given(values[1]) ? -1 : PyObject_IsTrue(values[1]);
    if (PyErr_Occurred() || (py_given(values[0]) && numpy_dtype_for_cast(values[0], &dtype)))
        return NULL;
    array = export_ndarray(self);
    if (array)
        array = export_convert(array, dtype, copy);
    Py_XDECREF(dtype);
    return array;
}

/* For _repr.py, which does not wait. */
PyObject *py_array_is_pending(PyObject *module, PyObject *array)
{
    struct py_state *state = PyModule_GetState(module);
    if (!Py_IS_TYPE(array, state->array_type))
        return PyErr_Format(PyExc_TypeError, "expected a GPUArray, got %R", Py_TYPE(array));
    gg_status status = gg_memory_query(py_array_of(array)->memory);
    if (status && status != GG_NOT_READY)
        return py_raise(state, status);
    return PyBool_FromLong(status == GG_NOT_READY);
}

/* For modules that pass the memory to another process or to MPI. */
PyObject *py_array_wait(PyObject *module, PyObject *array)
{
    struct py_state *state = PyModule_GetState(module);
    if (!Py_IS_TYPE(array, state->array_type))
        return PyErr_Format(PyExc_TypeError, "expected a GPUArray, got %R", Py_TYPE(array));
    gg_status status;
    PY_WITHOUT_GIL(status = gg_memory_wait(py_array_of(array)->memory));
    if (status)
        return py_raise(state, status);
    Py_RETURN_NONE;
}
