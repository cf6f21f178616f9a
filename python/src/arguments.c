/* arguments.c: parsing shared by all functions: names, integers, attributes, pointers for ctypes. */
#include "py.h"

const char *py_name(struct py_state *state, PyObject *string, const char *what)
{
    Py_ssize_t length;
    if (!PyUnicode_Check(string)) {
        PyErr_Format(PyExc_TypeError, "%s is a str, got %R", what, Py_TYPE(string));
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8AndSize(string, &length);
    if (!text || strlen(text) == (size_t)length)
        return text;
    py_invalid(state, "%s is %R, which has a null character in it", what, string);
    return NULL;
}

static Py_ssize_t index_of(const char *const *names, Py_ssize_t count, PyObject *name)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (!PyUnicode_CompareWithASCIIString(name, names[i]))
            return i;
    return -1;
}

static int too_many(const char *function, Py_ssize_t positional, Py_ssize_t given)
{
    PyErr_Format(PyExc_TypeError, "%s() takes at most %zd positional argument%s (%zd given)",
                 function, positional, positional == 1 ? "" : "s", given);
    return -1;
}

static int parse_keywords(const char *function, const char *const *names, Py_ssize_t count,
                          PyObject *const *args, PyObject *kwnames, PyObject **values)
{
    Py_ssize_t given = PyTuple_Size(kwnames);
    for (Py_ssize_t k = 0; k < given; k++) {
        PyObject *name = PyTuple_GetItem(kwnames, k); /* borrowed */
        Py_ssize_t i = index_of(names, count, name);
        if (i < 0) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", function,
                         name);
            return -1;
        }
        if (values[i]) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'", function,
                         names[i]);
            return -1;
        }
        values[i] = args[k];
    }
    return 0;
}

int py_parse_any(const char *function, const char *const *names, Py_ssize_t count,
                 Py_ssize_t positional, Py_ssize_t required, PyObject *const *args,
                 Py_ssize_t nargs, PyObject *kwnames, PyObject **values)
{
    if (nargs > positional)
        return too_many(function, positional, nargs);
    for (Py_ssize_t i = 0; i < count; i++)
        values[i] = i < nargs ? args[i] : NULL;
    if (kwnames && parse_keywords(function, names, count, args + nargs, kwnames, values))
        return -1;
    for (Py_ssize_t i = nargs; i < required; i++)
        if (!values[i]) {
            PyErr_Format(PyExc_TypeError, "%s() missing required argument '%s' (pos %zd)", function,
                         names[i], i + 1);
            return -1;
        }
    return 0;
}

int py_optional_attribute(PyObject *object, const char *name, PyObject **out)
{
    *out = PyObject_GetAttrString(object, name);
    if (*out)
        return 1;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError))
        return -1;
    PyErr_Clear();
    return 0;
}

PyObject *py_shown(PyObject *object)
{
    PyObject *text = PyObject_Repr(object), *detail;
    if (text || !PyErr_ExceptionMatches(PyExc_ValueError))
        return text;
    PyErr_Clear();
    if (PyLong_Check(object)) {
        detail = PyObject_CallMethod(object, "bit_length", NULL);
        text = detail ? PyUnicode_FromFormat("an int of %S bits", detail) : NULL;
    } else {
        detail = PyType_GetName(Py_TYPE(object));
        text = detail ? PyUnicode_FromFormat("a %U that is too long to show", detail) : NULL;
    }
    Py_XDECREF(detail);
    return text;
}

int py_uint64(struct py_state *state, PyObject *object, const char *what, uint64_t *out)
{
    PyObject *number = PyNumber_Index(object);
    if (!number)
        return -1;
    unsigned long long value = PyLong_AsUnsignedLongLong(number);
    if (value == (unsigned long long)-1 && PyErr_Occurred()) {
        PyErr_Clear();
        PyObject *shown = py_shown(number);
        if (shown)
            py_invalid(state, "%s must be between 0 and 2**64 - 1, got %S", what, shown);
        Py_XDECREF(shown);
        Py_DECREF(number);
        return -1;
    }
    Py_DECREF(number);
    *out = value;
    return 0;
}

int py_integer(struct py_state *state, PyObject *object, const char *what, long long least,
               long long most, long long *out)
{
    int overflow;
    PyObject *number = PyNumber_Index(object);
    if (!number)
        return -1;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (!overflow && value >= least && value <= most) {
        Py_DECREF(number);
        *out = value;
        return 0;
    }
    PyObject *shown = py_shown(number);
    if (shown)
        py_invalid(state, "%s must be from %lld to %lld, got %S", what, least, most, shown);
    Py_XDECREF(shown);
    Py_DECREF(number);
    return -1;
}

/* A bare int would be cut to a C int where a function has no argtypes. */
PyObject *py_as_parameter(uint64_t pointer)
{
    PyObject *ctypes = PyImport_ImportModule("ctypes");
    if (!ctypes)
        return NULL;
    PyObject *type = PyObject_GetAttrString(ctypes, "c_void_p");
    Py_DECREF(ctypes);
    if (!type)
        return NULL;
    PyObject *result = PyObject_CallFunction(type, "K", (unsigned long long)pointer);
    Py_DECREF(type);
    return result;
}
