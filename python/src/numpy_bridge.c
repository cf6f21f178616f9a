/* numpy_bridge.c: the only file that sees NumPy's C API.
 *
 * Built with NumPy 2 headers for the 1.23 API, so that one binary serves NumPy 1.24 and all of 2.x. */
#include "numpy_bridge.h"

#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL py_array_api /* shared with numpy_results.c */
#include <numpy/arrayobject.h>

_Static_assert(sizeof(npy_intp) == sizeof(Py_ssize_t), "NumPy's sizes are passed on as they are");

static PyArrayObject *as_array(PyObject *object)
{
    return (PyArrayObject *)object;
}

static PyArray_Descr *as_descr(PyObject *dtype)
{
    return (PyArray_Descr *)dtype;
}

static npy_intp *as_dims(const Py_ssize_t *shape) /* the API lacks the const, but only reads */
{
    return (npy_intp *)(uintptr_t)shape;
}

/* ---- loading --------------------------------------------------------------------------------- */

static int say_what_to_install(void)
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
        return say_what_to_install();
    Py_DECREF(numpy);
    return PyArray_ImportNumPyAPI() ? say_what_to_install() : 0;
}

static bool numpy_imported(void)
{
    PyObject *numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy"); /* borrowed */
    return numpy && numpy != Py_None;
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

bool numpy_is_scalar(PyObject *object)
{
    return PyArray_API && PyArray_CheckScalar(object);
}

int numpy_refuse_axis(Py_ssize_t axis, int ndim)
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

char numpy_kind(PyObject *dtype)
{
    return as_descr(dtype)->kind;
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

/* ---- looking --------------------------------------------------------------------------------- */

void numpy_look(PyObject *object, struct numpy_view *view)
{
    PyArrayObject *array = as_array(object);
    view->data = PyArray_DATA(array);
    view->dtype = (PyObject *)PyArray_DESCR(array);
    view->shape = PyArray_DIMS(array);
    view->strides = PyArray_STRIDES(array);
    view->ndim = PyArray_NDIM(array);
    view->nbytes = (size_t)PyArray_NBYTES(array);
    view->c = PyArray_IS_C_CONTIGUOUS(array);
    view->f = PyArray_IS_F_CONTIGUOUS(array);
    view->writeable = PyArray_ISWRITEABLE(array);
}

struct numpy_kind numpy_kind_of(PyObject *dtype)
{
    const PyArray_Descr *descr = as_descr(dtype);
    return (struct numpy_kind){.letter = descr->kind,
                               .itemsize = PyDataType_ELSIZE(descr),
                               .native = PyArray_ISNBO(descr->byteorder),
                               .builtin = PyTypeNum_ISUSERDEF(descr->type_num) == 0};
}

static int plain_number(char letter, Py_ssize_t itemsize)
{
    static const struct {
        char letter;
        Py_ssize_t itemsize;
        int number;
    } plain[] = {{'f', 4, NPY_FLOAT32},   {'f', 8, NPY_FLOAT64},    {'f', 2, NPY_FLOAT16},
                 {'i', 1, NPY_INT8},      {'i', 2, NPY_INT16},      {'i', 4, NPY_INT32},
                 {'i', 8, NPY_INT64},     {'u', 1, NPY_UINT8},      {'u', 2, NPY_UINT16},
                 {'u', 4, NPY_UINT32},    {'u', 8, NPY_UINT64},     {'b', 1, NPY_BOOL},
                 {'c', 8, NPY_COMPLEX64}, {'c', 16, NPY_COMPLEX128}};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (plain[i].letter == letter && plain[i].itemsize == itemsize)
            return plain[i].number;
    return -1;
}

PyObject *numpy_plain_dtype(char letter, Py_ssize_t itemsize)
{
    const int number = plain_number(letter, itemsize);
    if (number < 0 || numpy_load())
        return NULL;
    return (PyObject *)PyArray_DescrFromType(number);
}

/* Those of numbers are written here: to ask NumPy takes longer than all else of an interface. */
PyObject *numpy_typestr(PyObject *dtype)
{
    const struct numpy_kind kind = numpy_kind_of(dtype);
    char text[4] = {NPY_NATBYTE == NPY_LITTLE ? '<' : '>', kind.letter};
    if (kind.builtin && kind.native && kind.itemsize <= 16 && strchr("biufc", kind.letter)) {
        int length = 2;
        if (kind.itemsize == 1)
            text[0] = '|';
        if (kind.itemsize >= 10)
            text[length++] = '1';
        text[length++] = (char)('0' + kind.itemsize % 10);
        return PyUnicode_FromStringAndSize(text, length);
    }
    return PyObject_GetAttrString(dtype, "str");
}

Py_ssize_t numpy_itemsize(PyObject *dtype)
{
    return PyDataType_ELSIZE(as_descr(dtype));
}

bool numpy_same_dtype(PyObject *one, PyObject *other)
{
    return one == other || PyArray_EquivTypes(as_descr(one), as_descr(other));
}

/* ---- dtypes ---------------------------------------------------------------------------------- */

int numpy_check_dtype(PyObject *dtype)
{
    PyArray_Descr *descr = as_descr(dtype);
    if (descr->type_num == NPY_OBJECT || (PyDataType_REFCHK(descr) && descr->kind == 'V')) {
        PyErr_Format(
            PyExc_TypeError,
            "dtype %S holds Python objects, which have no meaning on a device: convert to a "
            "fixed-size dtype first, such as a.astype(float)",
            dtype);
        return -1;
    }
    if (PyDataType_REFCHK(descr)) {
        PyErr_Format(
            PyExc_TypeError,
            "dtype %S has no fixed size: convert to one that has, such as a.astype('S16') or "
            "a.astype('U16')",
            dtype);
        return -1;
    }
    if (PyDataType_HASSUBARRAY(descr)) {
        PyErr_Format(PyExc_TypeError,
                     "dtype %S is a subarray: give its base dtype and append its shape to yours",
                     dtype);
        return -1;
    }
    return 0;
}

/* 'S', 'U' and 'V' without a length: what NumPy makes of them when it makes an array. */
static PyObject *give_length(PyObject *dtype)
{
    const Py_ssize_t none = 0;
    PyObject *array, *sized;
    if (numpy_itemsize(dtype))
        return dtype;
    array = numpy_empty(dtype, 1, &none, false);
    Py_DECREF(dtype);
    if (!array)
        return NULL;
    sized = Py_NewRef((PyObject *)PyArray_DESCR(as_array(array)));
    Py_DECREF(array);
    return sized;
}

int numpy_dtype(PyObject *object, PyObject **out)
{
    PyArray_Descr *descr = NULL;
    PyObject *dtype;
    if (numpy_load())
        return -1;
    if (!PyArray_DescrConverter(object ? object : Py_None, &descr))
        return -1;
    if (numpy_check_dtype((PyObject *)descr)) {
        Py_DECREF(descr);
        return -1;
    }
    dtype = give_length((PyObject *)descr);
    if (!dtype)
        return -1;
    *out = dtype;
    return 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

PyObject *numpy_empty(PyObject *dtype, int ndim, const Py_ssize_t *shape, bool fortran)
{
    Py_INCREF(dtype); /* taken over */
    return PyArray_NewFromDescr(&PyArray_Type, as_descr(dtype), ndim, as_dims(shape), NULL, NULL,
                                fortran ? NPY_ARRAY_F_CONTIGUOUS : 0, NULL);
}

PyObject *numpy_over(PyObject *dtype, int ndim, const Py_ssize_t *shape, bool fortran, void *data,
                     PyObject *base)
{
    int flags = NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED;
    PyObject *array;
    Py_INCREF(dtype); /* taken over */
    flags |= fortran ? NPY_ARRAY_F_CONTIGUOUS : NPY_ARRAY_C_CONTIGUOUS;
    array = PyArray_NewFromDescr(&PyArray_Type, as_descr(dtype), ndim, as_dims(shape), NULL, data,
                                 flags, NULL);
    if (!array) {
        Py_DECREF(base);
        return NULL;
    }
    if (PyArray_SetBaseObject(as_array(array), base)) { /* takes over base, also on failure */
        Py_DECREF(array);
        return NULL;
    }
    return array;
}

PyObject *numpy_strided(PyObject *dtype, int ndim, const Py_ssize_t *shape,
                        const Py_ssize_t *strides, void *data, bool writeable, PyObject *base)
{
    PyObject *array;
    Py_INCREF(dtype); /* taken over */
    array = PyArray_NewFromDescr(&PyArray_Type, as_descr(dtype), ndim, as_dims(shape),
                                 as_dims(strides), data, writeable ? NPY_ARRAY_WRITEABLE : 0, NULL);
    if (!array) {
        Py_DECREF(base);
        return NULL;
    }
    if (PyArray_SetBaseObject(as_array(array), base)) { /* takes over base, also on failure */
        Py_DECREF(array);
        return NULL;
    }
    return array;
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

/* An array that is contiguous in neither order becomes one in C order. Takes over @p array. */
static PyObject *make_contiguous(PyObject *array)
{
    PyObject *copy;
    if (PyArray_IS_C_CONTIGUOUS(as_array(array)) || PyArray_IS_F_CONTIGUOUS(as_array(array)))
        return array;
    copy = numpy_contiguous(array, false);
    Py_DECREF(array);
    return copy;
}

PyObject *numpy_packed(PyObject *array)
{
    return make_contiguous(array);
}

PyObject *numpy_any(PyObject *object)
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

static PyObject *from_any(PyObject *object, PyObject *dtype, int flags)
{
    PyObject *array;
    if (dtype)
        flags |= NPY_ARRAY_FORCECAST; /* as np.asarray casts */
    Py_XINCREF(dtype);                /* taken over */
    array = PyArray_FromAny(object, as_descr(dtype), 0, 0, flags | NPY_ARRAY_ENSUREARRAY, NULL);
    return array ? make_contiguous(array) : NULL;
}

PyObject *numpy_from(PyObject *object, PyObject *dtype, char order)
{
    PyObject *memoryview, *array;
    if (PyArray_Check(object) || !PyBytes_Check(object))
        return from_any(object, dtype, order_flags(order));
    memoryview = PyMemoryView_FromObject(object); /* or NumPy would make one string of the bytes */
    if (!memoryview)
        return NULL;
    array = from_any(memoryview, dtype, order_flags(order));
    Py_DECREF(memoryview);
    return array;
}

PyObject *numpy_from_memoryview(PyObject *memoryview)
{
    return PyArray_FromAny(memoryview, NULL, 0, 0, 0, NULL);
}

PyObject *numpy_contiguous(PyObject *array, bool fortran)
{
    return PyArray_NewCopy(as_array(array), fortran ? NPY_FORTRANORDER : NPY_CORDER);
}

int numpy_assign(PyObject *destination, PyObject *source)
{
    return PyArray_CopyInto(as_array(destination), as_array(source));
}

PyObject *numpy_element(PyObject *dtype, PyObject *value)
{
    PyObject *element;
    if (!dtype) {
        element = PyArray_FromAny(value, NULL, 0, 0, NPY_ARRAY_ENSUREARRAY, NULL);
        if (element && PyArray_NDIM(as_array(element))) {
            PyErr_Format(PyExc_ValueError, "a fill value is one element, not %d-dimensional: %R",
                         PyArray_NDIM(as_array(element)), value);
            Py_DECREF(element);
            return NULL;
        }
        return element;
    }
    element = numpy_empty(dtype, 0, NULL, false);
    if (element && PyObject_SetItem(element, Py_Ellipsis, value)) {
        Py_DECREF(element);
        return NULL;
    }
    return element;
}

PyObject *numpy_arange(PyObject *start, PyObject *stop, PyObject *step, PyObject *dtype)
{
    Py_XINCREF(dtype); /* ArangeObj takes none over, but may replace what it is given */
    PyObject *array = PyArray_ArangeObj(start, stop, step, as_descr(dtype));
    Py_XDECREF(dtype);
    return array;
}
