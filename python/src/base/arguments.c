/* arguments.c: argument parsing that all functions share: names, integers, attributes, pointers for ctypes. */
#include "base/arguments.h"

#include <stdio.h>

const char *py_utf8(struct py_state *state, PyObject *string, const char *what)
{
    Py_ssize_t length;
    if (!PyUnicode_Check(string)) {
        PyErr_Format(PyExc_TypeError, "%s must be a str, got %R", what, Py_TYPE(string));
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8AndSize(string, &length);
    if (!text || strlen(text) == (size_t)length)
        return text;
    py_invalid(state, "%s is %R, which contains a null character", what, string);
    return NULL;
}

static Py_ssize_t keyword_index(const char *const *names, Py_ssize_t count, PyObject *name)
{
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(name, &length);
    if (!text)
        PyErr_Clear(); /* a lone surrogate, which no name has */
    for (Py_ssize_t i = 0; text && i < count; i++)
        if (*text == *names[i] && !strcmp(text, names[i]))
            return strlen(names[i]) == (size_t)length ? i : -1;
    return -1;
}

static int raise_too_many_positional(const char *function, Py_ssize_t positional, Py_ssize_t given)
{
    return PY_FAIL(PyExc_TypeError, "%s() takes at most %zd positional argument%s (%zd given)",
                   function, positional, positional == 1 ? "" : "s", given);
}

static int parse_keywords(const char *function, const char *const *names, Py_ssize_t count,
                          PyObject *const *args, PyObject *kwnames, PyObject **values)
{
    Py_ssize_t given = PyTuple_Size(kwnames);
    for (Py_ssize_t k = 0; k < given; k++) {
        PyObject *name = PyTuple_GetItem(kwnames, k); /* borrowed */
        Py_ssize_t i = keyword_index(names, count, name);
        if (i < 0)
            return PY_FAIL(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'",
                           function, name);
        if (values[i])
            return PY_FAIL(PyExc_TypeError, "%s() got multiple values for argument '%s'", function,
                           names[i]);
        values[i] = args[k];
    }
    return 0;
}

int py_parse_any(const char *function, const char *const *names, Py_ssize_t count,
                 Py_ssize_t positional, Py_ssize_t required, PyObject *const *args,
                 Py_ssize_t nargs, PyObject *kwnames, PyObject **values)
{
    if (nargs > positional)
        return raise_too_many_positional(function, positional, nargs);
    for (Py_ssize_t i = 0; i < count; i++)
        values[i] = i < nargs ? args[i] : NULL;
    if (kwnames && parse_keywords(function, names, count, args + nargs, kwnames, values))
        return -1;
    for (Py_ssize_t i = nargs; i < required; i++)
        if (!values[i])
            return PY_FAIL(PyExc_TypeError, "%s() missing required argument '%s' (pos %zd)",
                           function, names[i], i + 1);
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

PyObject *py_safe_repr(PyObject *object)
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
        PyObject *shown = py_safe_repr(number);
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
    PyObject *shown = py_safe_repr(number);
    if (shown)
        py_invalid(state, "%s must be from %lld to %lld, got %S", what, least, most, shown);
    Py_XDECREF(shown);
    Py_DECREF(number);
    return -1;
}

/* Where a function has no argtypes, ctypes truncates an int to a C int. */
PyObject *py_c_void_p(uint64_t pointer)
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

PyObject *py_uuid(const uint8_t uuid[16])
{
    char text[37], *at = text;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        at += snprintf(at, 3, "%02x", uuid[i]);
    }
    return PyUnicode_FromString(text);
}
