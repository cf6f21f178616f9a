/* dlpack_dtype.c: element types, NumPy's and DLPack's. */
#include "dlpack.h"
#include "numpy_bridge.h"

/* Those of ml_dtypes, by name. */
static const struct {
    const char *name;
    struct dl_dtype dtype;
} small[] = {
    {"bfloat16", {DL_BFLOAT, 16, 1}},
    {"float8_e3m4", {7, 8, 1}},
    {"float8_e4m3", {8, 8, 1}},
    {"float8_e4m3b11fnuz", {9, 8, 1}},
    {"float8_e4m3fn", {10, 8, 1}},
    {"float8_e4m3fnuz", {11, 8, 1}},
    {"float8_e5m2", {12, 8, 1}},
    {"float8_e5m2fnuz", {13, 8, 1}},
    {"float8_e8m0fnu", {DL_FLOAT8_LAST, 8, 1}},
};

static int refuse(PyObject *dtype, const char *why)
{
    PyErr_Format(PyExc_BufferError, "DLPack cannot describe the dtype %S: %s", dtype, why);
    return -1;
}

static int by_name(PyObject *dtype, struct dl_dtype *out)
{
    PyObject *name = PyObject_GetAttrString(dtype, "name");
    if (!name)
        return -1;
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        if (!PyUnicode_CompareWithASCIIString(name, small[i].name)) {
            *out = small[i].dtype;
            Py_DECREF(name);
            return 0;
        }
    Py_DECREF(name);
    return refuse(dtype, "use view() for one that is a number, such as uint8");
}

int py_dl_dtype(PyObject *dtype, struct dl_dtype *out)
{
    const struct numpy_kind kind = numpy_kind_of(dtype);
    static const struct {
        char letter;
        uint8_t code;
        Py_ssize_t longest;
    } plain[] = {{'f', DL_FLOAT, 8},
                 {'i', DL_INT, 8},
                 {'u', DL_UINT, 8},
                 {'c', DL_COMPLEX, 16},
                 {'b', DL_BOOL, 1}};
    if (!kind.native)
        return refuse(dtype, "its byte order is not the machine's");
    if (!kind.builtin)
        return by_name(dtype, out);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (plain[i].letter == kind.letter) {
            if (kind.itemsize > plain[i].longest)
                return refuse(dtype, "it has padding");
            *out = (struct dl_dtype){plain[i].code, (uint8_t)(kind.itemsize * 8), 1};
            return 0;
        }
    return refuse(dtype, "it is no number; use view() for one, such as int64 for dates");
}

static PyObject *from_ml_dtypes(const char *name)
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

PyObject *py_dl_numpy(struct dl_dtype dtype)
{
    static const char letters[] = {
        [DL_INT] = 'i', [DL_UINT] = 'u', [DL_FLOAT] = 'f', [DL_COMPLEX] = 'c', [DL_BOOL] = 'b'};
    PyObject *found = NULL;
    if (dtype.lanes != 1)
        return PyErr_Format(PyExc_BufferError,
                            "elements of %d lanes: gpuglue takes 1; append an axis instead",
                            (int)dtype.lanes);
    if (dtype.code < sizeof letters && letters[dtype.code] && dtype.bits % 8 == 0)
        found = numpy_plain_dtype(letters[dtype.code], dtype.bits / 8);
    if (found || PyErr_Occurred())
        return found;
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        if (small[i].dtype.code == dtype.code && small[i].dtype.bits == dtype.bits)
            return from_ml_dtypes(small[i].name);
    return PyErr_Format(PyExc_BufferError,
                        "DLPack elements of code %d and %d bits are no dtype that gpuglue knows",
                        (int)dtype.code, (int)dtype.bits);
}
