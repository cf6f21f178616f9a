/* dlpack_dtype.c: dtypes of NumPy and element types of DLPack. */
#include "numpy/bridge.h"
#include "interop/dlpack.h"

/* Dtypes of ml_dtypes, by name. */
static const struct {
    const char *name;
    DLDataType dtype;
} ml_dtypes[] = {
    {"bfloat16", {kDLBfloat, 16, 1}},
    {"float8_e3m4", {7, 8, 1}},
    {"float8_e4m3", {8, 8, 1}},
    {"float8_e4m3b11fnuz", {9, 8, 1}},
    {"float8_e4m3fn", {10, 8, 1}},
    {"float8_e4m3fnuz", {11, 8, 1}},
    {"float8_e5m2", {12, 8, 1}},
    {"float8_e5m2fnuz", {13, 8, 1}},
    {"float8_e8m0fnu", {kDLFloat8_e8m0fnu, 8, 1}},
};

static int dtype_raise(PyObject *dtype, const char *why)
{
    return PY_FAIL(PyExc_BufferError, "DLPack cannot describe the dtype %S: %s", dtype, why);
}

static int dtype_by_name(PyObject *dtype, DLDataType *out)
{
    PyObject *name = PyObject_GetAttrString(dtype, "name");
    if (!name)
        return -1;
    for (size_t i = 0; i < sizeof ml_dtypes / sizeof ml_dtypes[0]; i++)
        if (!PyUnicode_CompareWithASCIIString(name, ml_dtypes[i].name)) {
            *out = ml_dtypes[i].dtype;
            Py_DECREF(name);
            return 0;
        }
    Py_DECREF(name);
    return dtype_raise(dtype, "use view() with a number type, such as uint8");
}

int py_dl_from_numpy(PyObject *dtype, DLDataType *out)
{
    const struct numpy_dtype_info kind = numpy_dtype_info(dtype);
    static const struct {
        char letter;
        uint8_t code;
        Py_ssize_t longest;
    } plain[] = {{'f', kDLFloat, 8},
                 {'i', kDLInt, 8},
                 {'u', kDLUInt, 8},
                 {'c', kDLComplex, 16},
                 {'b', kDLBool, 1}};
    if (!kind.native)
        return dtype_raise(dtype, "its byte order is not the machine's");
    if (!kind.builtin)
        return dtype_by_name(dtype, out);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (plain[i].letter == kind.letter) {
            if (kind.itemsize > plain[i].longest)
                return dtype_raise(dtype, "it has padding");
            *out = (DLDataType){plain[i].code, (uint8_t)(kind.itemsize * 8), 1};
            return 0;
        }
    return dtype_raise(
        dtype, "it is not a number; use view() with a number type, such as int64 for dates");
}

static PyObject *dtype_from_ml_dtypes(const char *name)
{
    PyObject *module = PyImport_ImportModule("ml_dtypes"), *type, *dtype = NULL;
    if (!module) {
        PyErr_Clear();
        return PyErr_Format(PyExc_BufferError,
                            "NumPy has no dtype %s of its own: install ml_dtypes", name);
    }
    type = PyObject_GetAttrString(module, name);
    Py_DECREF(module);
    if (!type) {
        PyErr_Clear();
        return PyErr_Format(PyExc_BufferError, "this ml_dtypes has no %s: install a newer one",
                            name);
    }
    if (numpy_dtype(type, &dtype))
        dtype = NULL;
    Py_DECREF(type);
    return dtype;
}

PyObject *py_dl_to_numpy(DLDataType dtype)
{
    static const char letters[] = {
        [kDLInt] = 'i', [kDLUInt] = 'u', [kDLFloat] = 'f', [kDLComplex] = 'c', [kDLBool] = 'b'};
    PyObject *found = NULL;
    if (dtype.lanes != 1)
        return PyErr_Format(PyExc_BufferError,
                            "elements have %d lanes, expected 1: append an axis instead",
                            (int)dtype.lanes);
    if (dtype.code < sizeof letters && letters[dtype.code] && dtype.bits % 8 == 0)
        found = numpy_builtin_dtype(letters[dtype.code], dtype.bits / 8);
    if (found || PyErr_Occurred())
        return found;
    for (size_t i = 0; i < sizeof ml_dtypes / sizeof ml_dtypes[0]; i++)
        if (ml_dtypes[i].dtype.code == dtype.code && ml_dtypes[i].dtype.bits == dtype.bits)
            return dtype_from_ml_dtypes(ml_dtypes[i].name);
    return PyErr_Format(PyExc_BufferError,
                        "gpuglue has no dtype for DLPack elements of code %d and %d bits",
                        (int)dtype.code, (int)dtype.bits);
}
