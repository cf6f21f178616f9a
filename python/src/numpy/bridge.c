/* bridge.c: arrays, through NumPy's C API, which only the files of numpy/ include. Built with NumPy 2 headers for
 * the 1.23 API, so that one binary supports NumPy 1.24 and all of 2.x. */
#include "numpy/bridge.h"
#include "base/arguments.h"
#include "numpy/types.h"

/* ---- loading ---- */

static int numpy_raise_missing(void)
{
    PyObject *type, *value, *trace, *now_type, *now, *now_trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyErr_SetString(PyExc_ImportError, "GPUArray needs NumPy >= 1.24; install numpy");
    PyErr_Fetch(&now_type, &now, &now_trace);
    PyErr_NormalizeException(&now_type, &now, &now_trace);
    PyException_SetCause(now, value); /* takes over the reference */
    PyErr_Restore(now_type, now, now_trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return -1;
}

int numpy_load(void)
{
    PyObject *numpy;
    if (PyArray_API)
        return 0;
    /* Import by name first: NumPy's own import function prints a traceback when there is no NumPy. */
    numpy = PyImport_ImportModule("numpy");
    if (!numpy)
        return numpy_raise_missing();
    Py_DECREF(numpy);
    return PyArray_ImportNumPyAPI() ? numpy_raise_missing() : 0;
}

static bool numpy_imported(void)
{
    PyObject *numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy"); /* borrowed */
    return py_given(numpy);
}

int numpy_is_array(PyObject *object)
{
    if (!PyArray_API) {
        if (PyBytes_Check(object) || PyByteArray_Check(object) || !numpy_imported())
            return 0;
        if (numpy_load())
            return -1;
    }
    return PyArray_Check(object);
}

bool numpy_is_exact(PyObject *object)
{
    return PyArray_API && PyArray_CheckExact(object);
}

bool numpy_is_contiguous(PyObject *object)
{
    return numpy_is_exact(object) &&
           PyArray_FLAGS(as_array(object)) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
}

void *numpy_data(PyObject *array)
{
    return PyArray_DATA(as_array(array));
}

bool numpy_is_scalar(PyObject *object)
{
    return PyArray_API && PyArray_CheckScalar(object);
}

bool numpy_is_bool(PyObject *object)
{
    return PyArray_API && PyArray_IsScalar(object, Bool);
}

int numpy_raise_axis_error(Py_ssize_t axis, int ndim)
{
    PyObject *module = PyImport_ImportModule("numpy.exceptions"), *type, *error;
    if (!module) { /* before NumPy 1.25 */
        PyErr_Clear();
        module = PyImport_ImportModule("numpy");
    }
    type = module ? PyObject_GetAttrString(module, "AxisError") : NULL;
    error = type ? PyObject_CallFunction(type, "ni", axis, ndim) : NULL;
    if (error)
        PyErr_SetObject(type, error);
    Py_XDECREF(error);
    Py_XDECREF(type);
    Py_XDECREF(module);
    return -1;
}

int numpy_scalar(PyObject *object, void *out, size_t room, size_t *size, char *kind)
{
    if (!PyArray_API) {
        if (!numpy_imported())
            return 0;
        if (numpy_load())
            return -1;
    }
    if (!PyArray_IsScalar(object, Generic))
        return 0;
    PyArray_Descr *descr = PyArray_DescrFromScalar(object);
    if (!descr)
        return -1;
    *size = (size_t)PyDataType_ELSIZE(descr);
    *kind = descr->kind;
    Py_DECREF((PyObject *)descr);
    if (*kind != 'V' && *kind != 'U' && *kind != 'S' && *kind != 'O' && *size <= room)
        PyArray_ScalarAsCtype(object, out);
    return 1;
}

int numpy_max_dims(void)
{
    return PyArray_RUNTIME_VERSION >= NPY_2_0_API_VERSION ? 64 : 32;
}

/* ---- fields ---- */

void numpy_describe(PyObject *object, struct numpy_desc *desc)
{
    PyArrayObject *array = as_array(object);
    desc->data = PyArray_DATA(array);
    desc->dtype = (PyObject *)PyArray_DESCR(array);
    desc->shape = PyArray_DIMS(array);
    desc->strides = PyArray_STRIDES(array);
    desc->ndim = PyArray_NDIM(array);
    desc->nbytes = (size_t)PyArray_NBYTES(array);
    desc->c = PyArray_IS_C_CONTIGUOUS(array);
    desc->f = PyArray_IS_F_CONTIGUOUS(array);
    desc->writeable = PyArray_ISWRITEABLE(array);
}

/* ---- new arrays ---- */

PyObject *numpy_empty(PyObject *dtype, int ndim, const Py_ssize_t *shape, bool fortran)
{
    Py_INCREF(dtype); /* taken over */
    return PyArray_NewFromDescr(&PyArray_Type, as_descr(dtype), ndim, as_dims(shape), NULL, NULL,
                                fortran ? NPY_ARRAY_F_CONTIGUOUS : 0, NULL);
}

static PyObject *array_with_base(PyObject *dtype, int ndim, const Py_ssize_t *shape,
                                 const Py_ssize_t *strides, void *data, int flags, PyObject *base)
{
    PyObject *array;
    Py_INCREF(dtype); /* taken over */
    array = PyArray_NewFromDescr(&PyArray_Type, as_descr(dtype), ndim, as_dims(shape),
                                 as_dims(strides), data, flags, NULL);
    if (!array)
        Py_DECREF(base);
    else if (PyArray_SetBaseObject(as_array(array), base)) /* takes over base, also on failure */
        Py_CLEAR(array);
    return array;
}

PyObject *numpy_wrap(PyObject *dtype, int ndim, const Py_ssize_t *shape, bool fortran, void *data,
                     PyObject *base)
{
    const int order = fortran ? NPY_ARRAY_F_CONTIGUOUS : NPY_ARRAY_C_CONTIGUOUS;
    return array_with_base(dtype, ndim, shape, NULL, data,
                           NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED | order, base);
}

PyObject *numpy_wrap_strided(PyObject *dtype, int ndim, const Py_ssize_t *shape,
                             const Py_ssize_t *strides, void *data, bool writeable, PyObject *base)
{
    return array_with_base(dtype, ndim, shape, strides, data, writeable ? NPY_ARRAY_WRITEABLE : 0,
                           base);
}

static int order_flags(char order)
{
    switch (order) {
    case 'C':
        return NPY_ARRAY_C_CONTIGUOUS;
    case 'F':
        return NPY_ARRAY_F_CONTIGUOUS;
    default:
        return 0;
    }
}

PyObject *numpy_ensure_contiguous(PyObject *array)
{
    PyObject *copy;
    if (PyArray_IS_C_CONTIGUOUS(as_array(array)) || PyArray_IS_F_CONTIGUOUS(as_array(array)))
        return array;
    copy = numpy_copy(array, false);
    Py_DECREF(array);
    return copy;
}

PyObject *numpy_asanyarray(PyObject *object)
{
    PyObject *memoryview, *array;
    if (numpy_load())
        return NULL;
    if (!PyBytes_Check(object))
        return PyArray_FromAny(object, NULL, 0, 0, NPY_ARRAY_ENSUREARRAY, NULL);
    memoryview = PyMemoryView_FromObject(object);
    array = memoryview ? numpy_from_memoryview(memoryview) : NULL;
    Py_XDECREF(memoryview);
    return array;
}

static PyObject *array_from_any(PyObject *object, PyObject *dtype, int flags)
{
    PyObject *array;
    if (!dtype && PyArray_CheckExact(object) && PyArray_CHKFLAGS(as_array(object), flags))
        return numpy_ensure_contiguous(Py_NewRef(object)); /* as NumPy would */
    if (dtype)
        flags |= NPY_ARRAY_FORCECAST; /* as np.asarray casts */
    Py_XINCREF(dtype);                /* taken over */
    array = PyArray_FromAny(object, as_descr(dtype), 0, 0, flags | NPY_ARRAY_ENSUREARRAY, NULL);
    return array ? numpy_ensure_contiguous(array) : NULL;
}

PyObject *numpy_asarray(PyObject *object, PyObject *dtype, char order)
{
    PyObject *memoryview, *array;
    if (PyArray_Check(object) || !PyBytes_Check(object))
        return array_from_any(object, dtype, order_flags(order));
    memoryview = PyMemoryView_FromObject(object); /* NumPy would make one string of the bytes */
    if (!memoryview)
        return NULL;
    array = array_from_any(memoryview, dtype, order_flags(order));
    Py_DECREF(memoryview);
    return array;
}

PyObject *numpy_from_memoryview(PyObject *memoryview)
{
    return PyArray_FromAny(memoryview, NULL, 0, 0, 0, NULL);
}

PyObject *numpy_field(PyObject *dtype, PyObject *name, struct numpy_desc *desc, Py_ssize_t *offset)
{
    const Py_ssize_t one = 1;
    PyObject *element = numpy_empty(dtype, 1, &one, false);
    PyObject *field = element ? PyObject_GetItem(element, name) : NULL;
    if (field) {
        numpy_describe(field, desc);
        *offset = (char *)desc->data - (char *)PyArray_DATA(as_array(element));
    }
    Py_XDECREF(element);
    return field;
}

bool numpy_owns_data(PyObject *array)
{
    return PyArray_CHKFLAGS(as_array(array), NPY_ARRAY_OWNDATA);
}

PyObject *numpy_copy(PyObject *array, bool fortran)
{
    return PyArray_NewCopy(as_array(array), fortran ? NPY_FORTRANORDER : NPY_CORDER);
}

PyObject *numpy_0d(PyObject *dtype, PyObject *value)
{
    PyObject *element, *flat;
    if (!dtype) {
        element = PyArray_FromAny(value, NULL, 0, 0, NPY_ARRAY_ENSUREARRAY, NULL);
        if (element && PyArray_NDIM(as_array(element))) {
            PyErr_Format(PyExc_ValueError,
                         "a fill value must be one element, not %d-dimensional: %R",
                         PyArray_NDIM(as_array(element)), value);
            Py_DECREF(element);
            return NULL;
        }
        return element;
    }
    element = numpy_empty(dtype, 0, NULL, false);
    flat = element ? PyObject_CallMethod(element, "reshape", "i", 1) : NULL;
    /* As a[0] = value, with its errors. */
    if (!flat || PySequence_SetItem(flat, 0, value))
        Py_CLEAR(element);
    Py_XDECREF(flat);
    return element;
}

PyObject *numpy_arange(PyObject *start, PyObject *stop, PyObject *step, PyObject *dtype)
{
    Py_XINCREF(dtype); /* ArangeObj takes over no reference, but may replace this one */
    PyObject *array = PyArray_ArangeObj(start, stop, step, as_descr(dtype));
    Py_XDECREF(dtype);
    return array;
}
