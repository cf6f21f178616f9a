/* dtype.c: dtypes, through NumPy's C API: their properties, their type strings, and which ones a device can hold. */
#define NO_IMPORT_ARRAY /* numpy/bridge.c loads it */
#include "numpy/bridge.h"
#include "numpy/types.h"

/* ---- parts ---- */

char numpy_dtype_kind(PyObject *dtype)
{
    return as_descr(dtype)->kind;
}

struct numpy_dtype_info numpy_dtype_info(PyObject *dtype)
{
    const PyArray_Descr *descr = as_descr(dtype);
    return (struct numpy_dtype_info){.letter = descr->kind,
                                     .itemsize = PyDataType_ELSIZE(descr),
                                     .native = PyArray_ISNBO(descr->byteorder),
                                     .builtin = PyTypeNum_ISUSERDEF(descr->type_num) == 0};
}

static int builtin_type_number(char letter, Py_ssize_t itemsize)
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

PyObject *numpy_builtin_dtype(char letter, Py_ssize_t itemsize)
{
    const int number = builtin_type_number(letter, itemsize);
    if (number < 0 || numpy_load())
        return NULL;
    return (PyObject *)PyArray_DescrFromType(number);
}

/* Composed here for numbers: NumPy takes longer than the rest of an array interface. */
PyObject *numpy_typestr(PyObject *dtype)
{
    const struct numpy_dtype_info kind = numpy_dtype_info(dtype);
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

size_t numpy_alignment(PyObject *dtype)
{
    return (size_t)PyDataType_ALIGNMENT(as_descr(dtype));
}

bool numpy_same_dtype(PyObject *one, PyObject *other)
{
    return one == other || PyArray_EquivTypes(as_descr(one), as_descr(other));
}

/* ---- dtypes ---- */

int numpy_check_dtype(PyObject *dtype)
{
    PyArray_Descr *descr = as_descr(dtype);
    if (descr->type_num == NPY_OBJECT || (PyDataType_REFCHK(descr) && descr->kind == 'V'))
        return PY_FAIL(
            PyExc_TypeError,
            "dtype %S holds Python objects, which have no meaning on a device: convert to a "
            "fixed-size dtype first, such as a.astype(float)",
            dtype);
    if (PyDataType_REFCHK(descr))
        return PY_FAIL(
            PyExc_TypeError,
            "dtype %S has no fixed size: convert to one that has, such as a.astype('S16') or "
            "a.astype('U16')",
            dtype);
    if (PyDataType_HASSUBARRAY(descr))
        return PY_FAIL(
            PyExc_TypeError,
            "dtype %S is a subarray: use its base dtype, and append its shape to the array's",
            dtype);
    return 0;
}

/* 'S', 'U' and 'V' without a length: with the length that NumPy gives them in a new array. */
static PyObject *dtype_with_length(PyObject *dtype)
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

bool numpy_is_unsized(PyObject *dtype)
{
    return !numpy_itemsize(dtype) && !numpy_has_fields(dtype);
}

bool numpy_has_fields(PyObject *dtype)
{
    return PyDataType_HASFIELDS(as_descr(dtype));
}

int numpy_dtype_for_cast(PyObject *object, PyObject **out)
{
    PyArray_Descr *descr = NULL;
    if (numpy_load() || !PyArray_DescrConverter(object ? object : Py_None, &descr))
        return -1;
    if (numpy_check_dtype((PyObject *)descr)) {
        Py_DECREF(descr);
        return -1;
    }
    *out = (PyObject *)descr;
    return 0;
}

bool numpy_needs_cast(PyObject *from, PyObject *to)
{
    return numpy_is_unsized(to) ? numpy_dtype_kind(from) != numpy_dtype_kind(to)
                                : !numpy_same_dtype(from, to);
}

int numpy_dtype(PyObject *object, PyObject **out)
{
    PyObject *dtype;
    if (numpy_dtype_for_cast(object, &dtype))
        return -1;
    dtype = dtype_with_length(dtype);
    if (!dtype)
        return -1;
    *out = dtype;
    return 0;
}
