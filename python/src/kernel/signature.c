/* signature.c: the types given to kernel.bind(), and the dimensions of launches. */
#include "numpy/bridge.h"
#include "kernel/kernel.h"

static bool parameter_from_code(char code, struct gg_parameter *out)
{
    static const struct {
        char code;
        uint32_t kind, size;
    } codes[] = {
        {'P', GG_PARAMETER_POINTER, 8},  {'b', GG_PARAMETER_SIGNED, 1},
        {'B', GG_PARAMETER_UNSIGNED, 1}, {'?', GG_PARAMETER_UNSIGNED, 1},
        {'h', GG_PARAMETER_SIGNED, 2},   {'H', GG_PARAMETER_UNSIGNED, 2},
        {'i', GG_PARAMETER_SIGNED, 4},   {'I', GG_PARAMETER_UNSIGNED, 4},
        {'l', GG_PARAMETER_SIGNED, 8},   {'L', GG_PARAMETER_UNSIGNED, 8},
        {'q', GG_PARAMETER_SIGNED, 8},   {'Q', GG_PARAMETER_UNSIGNED, 8},
        {'n', GG_PARAMETER_SIGNED, 8},   {'N', GG_PARAMETER_UNSIGNED, 8},
        {'e', GG_PARAMETER_FLOAT, 2},    {'f', GG_PARAMETER_FLOAT, 4},
        {'d', GG_PARAMETER_FLOAT, 8},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code) {
            *out = (struct gg_parameter){.kind = codes[i].kind, .size = codes[i].size};
            return true;
        }
    return false;
}

static uint32_t parameter_kind(char kind)
{
    switch (kind) {
    case 'f':
        return GG_PARAMETER_FLOAT;
    case 'i':
        return GG_PARAMETER_SIGNED;
    case 'u':
    case 'b':
        return GG_PARAMETER_UNSIGNED;
    default:
        return GG_PARAMETER_BYTES;
    }
}

/* 'P', another code of one letter, or what numpy.dtype takes. */
static int parameter_from_object(struct py_state *state, PyObject *item, struct gg_parameter *out)
{
    PyObject *dtype;
    if (PyUnicode_Check(item) && PyUnicode_GetLength(item) == 1) {
        Py_UCS4 letter = PyUnicode_ReadChar(item, 0);
        if (letter < 128 && parameter_from_code((char)letter, out))
            return 0;
        return PY_FAIL(state->invalid_argument,
                       "%R is not a type code: expected one of P b B ? h H i I l L q Q n N e f d",
                       item);
    }
    if (numpy_load() || numpy_dtype(item, &dtype))
        return -1;
    *out = (struct gg_parameter){.kind = parameter_kind(numpy_dtype_kind(dtype)),
                                 .size = (uint32_t)numpy_itemsize(dtype)};
    Py_DECREF(dtype);
    return 0;
}

int py_signature(struct py_state *state, PyObject *signature, struct gg_parameter **out,
                 int32_t *count)
{
    PyObject *items = PySequence_Tuple(signature);
    if (!items)
        return -1;
    const Py_ssize_t size = PyTuple_Size(items);
    struct gg_parameter *parameters = PyMem_Calloc(size ? (size_t)size : 1, sizeof *parameters);
    if (!parameters) {
        PyErr_NoMemory();
        goto drop_items;
    }
    for (Py_ssize_t i = 0; i < size; i++)
        if (parameter_from_object(state, PyTuple_GetItem(items, i), &parameters[i]))
            goto free_parameters;
    *out = parameters;
    *count = (int32_t)size;
    Py_DECREF(items);
    return 0;

free_parameters:
    PyMem_Free(parameters);
drop_items:
    Py_DECREF(items);
    return -1;
}

/* ---- shapes ---- */

static int launch_dim(struct py_state *state, PyObject *object, const char *what, uint32_t *out)
{
    int overflow = 0;
    const bool exact = PyLong_CheckExact(object);
    PyObject *number = exact ? object : PyNumber_Index(object);
    if (!number)
        return -1;
    const long long value = PyLong_AsLongLongAndOverflow(number, &overflow); /* an int: no error */
    if (!exact)
        Py_DECREF(number);
    if (overflow || value < 0 || value > UINT32_MAX)
        return PY_FAIL(state->invalid_argument, "%s of %R: expected numbers from %d to 2**32 - 1",
                       what, object, strcmp(what, "smem") ? 1 : 0);
    *out = (uint32_t)value;
    return 0;
}

__attribute__((noinline)) static int
launch_dims_of_sequence(struct py_state *state, PyObject *object, const char *what, uint32_t out[3])
{
    PyObject *items = PySequence_Tuple(object);
    if (!items)
        return PY_FAIL(PyExc_TypeError,
                       "%s must be an int or a sequence of one to three ints, got %R", what,
                       Py_TYPE(object));
    const Py_ssize_t size = PyTuple_Size(items);
    int failed = 0;
    if (size < 1 || size > 3) {
        py_invalid(state, "%s of %R: expected one to three numbers", what, object);
        failed = -1;
    }
    for (Py_ssize_t i = 0; i < size && !failed; i++)
        failed = launch_dim(state, PyTuple_GetItem(items, i), what, &out[i]);
    Py_DECREF(items);
    return failed;
}

int py_launch_dims(struct py_state *state, PyObject *object, const char *what, uint32_t out[3])
{
    out[0] = out[1] = out[2] = 1;
    return PyLong_CheckExact(object) || PyIndex_Check(object)
               ? launch_dim(state, object, what, &out[0])
               : launch_dims_of_sequence(state, object, what, out);
}
