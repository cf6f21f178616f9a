/* array_export.c: a GPUArray in memory that the host reaches, as host memory: buffer protocol,
 * __array_interface__, __array__. Pending work is waited for first. */
#include "array.h"
#include "dlpack.h"
#include "numpy_bridge.h"

static int refuse_device_memory(PyObject *type)
{
    PyErr_SetString(type,
                    "device memory cannot be read by the host: a.get() copies it to a NumPy array, "
                    "and cupy.from_dlpack(a) or torch.from_dlpack(a) use it where it is");
    return -1;
}

/* Once the host may look; -1 with an exception of @p type. */
static int reach(PyObject *self, PyObject *type)
{
    struct py_array *array = py_array_of(self);
    gg_status status;
    if (!py_host_reaches(array->memory))
        return refuse_device_memory(type);
    if (gg_memory_query(array->memory) == GG_OK)
        return 0;
    PyThreadState *thread = PyEval_SaveThread();
    status = gg_memory_wait(array->memory);
    PyEval_RestoreThread(thread);
    return py_check(py_state_of(self), status);
}

/* An ndarray over the same memory, which keeps this array. */
static PyObject *host_view(PyObject *self)
{
    struct py_array *array = py_array_of(self);
    char *first = gg_memory_pointer(array->memory);
    static char none[1];
    return numpy_strided(array->dtype, array->ndim, array->shape, array->strides,
                         first ? first + array->offset : none, !array->readonly, Py_NewRef(self));
}

/* Whether what is read back has the dtype that was written. Takes over @p back, and forgets what went wrong. */
static bool comes_back(PyObject *dtype, PyObject *back)
{
    const bool same = back && numpy_same_dtype(dtype, back);
    Py_XDECREF(back);
    PyErr_Clear();
    return same;
}

/* Neither of a buffer's formats nor of the interface's texts can name every type: NumPy would take what it reads
 * there for the truth, and then asks no __array__. */
static bool is_plain(PyObject *dtype)
{
    const struct numpy_kind kind = numpy_kind_of(dtype);
    return kind.builtin && kind.letter != 'V';
}

static bool buffer_tells(PyObject *array, PyObject *dtype)
{
    PyObject *memory, *back;
    struct numpy_view view;
    if (is_plain(dtype))
        return true;
    if (!numpy_kind_of(dtype).builtin)
        return false;
    memory = PyMemoryView_FromObject(array);
    back = memory ? numpy_from_memoryview(memory) : NULL;
    Py_XDECREF(memory);
    if (!back)
        return comes_back(dtype, NULL);
    numpy_look(back, &view);
    Py_INCREF(view.dtype);
    Py_DECREF(back);
    return comes_back(dtype, view.dtype);
}

static bool interface_tells(PyObject *interface, PyObject *dtype)
{
    PyObject *descr, *back;
    if (is_plain(dtype))
        return true;
    if (!numpy_kind_of(dtype).builtin)
        return false;
    descr = PyDict_GetItemString(interface, numpy_has_fields(dtype) ? "descr" : "typestr");
    return comes_back(dtype, descr && !numpy_dtype_to_cast(descr, &back) ? back : NULL);
}

/* NumPy knows every format and every flag: the buffer is that of an ndarray over the memory. */
int py_array_export(PyObject *self, Py_buffer *view, int flags)
{
    PyObject *array;
    int failed;
    view->obj = NULL; /* says "failed" */
    if (reach(self, PyExc_BufferError) || numpy_load())
        return -1;
    array = host_view(self);
    if (!array)
        return -1;
    if (flags & PyBUF_FORMAT && !buffer_tells(array, py_array_of(self)->dtype)) {
        PyErr_Format(PyExc_BufferError, "no buffer format tells dtype %S: numpy.asarray() does",
                     py_array_of(self)->dtype);
        failed = -1;
    } else
        failed = PyObject_GetBuffer(array, view, flags);
    Py_DECREF(array);
    return failed;
}

void py_array_unexport(PyObject *self, Py_buffer *view) /* the exporter is that ndarray */
{
    (void)self;
    (void)view;
}

PyObject *py_array_interface(PyObject *self, void *closure)
{
    PyObject *array, *interface;
    (void)closure;
    if (reach(self, PyExc_AttributeError) || numpy_load())
        return NULL;
    array = host_view(self);
    if (!array)
        return NULL;
    interface = PyObject_GetAttrString(array, "__array_interface__");
    Py_DECREF(array);
    if (!interface || interface_tells(interface, py_array_of(self)->dtype))
        return interface;
    Py_DECREF(interface);
    return PyErr_Format(PyExc_AttributeError,
                        "no __array_interface__ tells dtype %S: numpy.asarray() does",
                        py_array_of(self)->dtype);
}

/* copy: 1 always, 0 never, -1 if needed. Takes over @p array. */
static PyObject *as_asked(PyObject *array, PyObject *dtype, int copy)
{
    struct numpy_view view;
    PyObject *result;
    numpy_look(array, &view);
    if (!dtype || !numpy_casts(view.dtype, dtype)) {
        if (copy != 1)
            return array;
        result = numpy_contiguous(array, false);
    } else if (!copy)
        result = PyErr_Format(PyExc_ValueError,
                              "another dtype is had by a copy, which copy=False forbids");
    else
        result = PyObject_CallMethod(array, "astype", "O", dtype);
    Py_DECREF(array);
    return result;
}

/* By name; NumPy itself goes by the buffer protocol first. */
PY_FASTCALL(py_array_array)
{
    static const char *const names[] = {"dtype", "copy"};
    PyObject *values[2], *array, *dtype = NULL;
    int copy;
    if (py_parse("__array__", names, 2, 2, 0, args, nargs, kwnames, values) ||
        reach(self, PyExc_TypeError) || numpy_load())
        return NULL;
    copy = !values[1] || values[1] == Py_None ? -1 : PyObject_IsTrue(values[1]);
    if (PyErr_Occurred() ||
        (values[0] && values[0] != Py_None && numpy_dtype_to_cast(values[0], &dtype)))
        return NULL;
    array = host_view(self);
    if (array)
        array = as_asked(array, dtype, copy);
    Py_XDECREF(dtype);
    return array;
}

/* For _show.py, which does not wait. */
PyObject *py_is_pending(PyObject *module, PyObject *array)
{
    struct py_state *state = PyModule_GetState(module);
    if (!Py_IS_TYPE(array, state->array_type))
        return PyErr_Format(PyExc_TypeError, "expected a GPUArray, got %R", Py_TYPE(array));
    gg_status status = gg_memory_query(py_array_of(array)->memory);
    if (status && status != GG_NOT_READY)
        return py_raise(state, status);
    return PyBool_FromLong(status == GG_NOT_READY);
}
