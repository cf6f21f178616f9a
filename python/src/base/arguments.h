/* arguments.h: argument parsing that all functions share. */
#ifndef GPUGLUE_PY_ARGUMENTS_H
#define GPUGLUE_PY_ARGUMENTS_H

#include "base/errors.h"

/* For PY_FASTCALL: put positional and keyword arguments into values[count], in the order of names (NULL where
 * absent); at most `positional` of them are positional, `required` must be given. -1 with a TypeError worded as
 * Python words it. */
int py_parse_any(const char *function, const char *const *names, Py_ssize_t count,
                 Py_ssize_t positional, Py_ssize_t required, PyObject *const *args,
                 Py_ssize_t nargs, PyObject *kwnames, PyObject **values);
static inline int py_parse(const char *function, const char *const *names, Py_ssize_t count,
                           Py_ssize_t positional, Py_ssize_t required, PyObject *const *args,
                           Py_ssize_t nargs, PyObject *kwnames, PyObject **values)
{
    if (nargs != count || nargs > positional || kwnames)
        return py_parse_any(function, names, count, positional, required, args, nargs, kwnames,
                            values);
    for (Py_ssize_t i = 0; i < count; i++) /* the common case: all of them, by position */
        values[i] = args[i];
    return 0;
}
/* Whether an optional argument was given and is not None. */
static inline bool py_given(PyObject *value)
{
    return value && value != Py_None;
}
/* An attribute that may be missing: 1 and a new reference, 0, or -1 with another exception. */
int py_optional_attribute(PyObject *object, const char *name, PyObject **out);
/* An integer (anything with __index__) as an unsigned 64-bit number. -1 with an InvalidArgumentError. */
int py_uint64(struct py_state *state, PyObject *object, const char *what, uint64_t *out);
/* An integer from @p least to @p most. */
int py_integer(struct py_state *state, PyObject *object, const char *what, long long least,
               long long most, long long *out);
/* The text of a str, which lives as long as the str. A null character in it is an error that names @p what. */
const char *py_utf8(struct py_state *state, PyObject *string, const char *what);
/* The repr, or a short text where Python refuses one: an int of thousands of digits. */
PyObject *py_safe_repr(PyObject *object);
/* A ctypes.c_void_p, which ctypes takes for a pointer whatever the argtypes. */
PyObject *py_c_void_p(uint64_t pointer);
/* A UUID as 8-4-4-4-12 hex digits. */
PyObject *py_uuid(const uint8_t uuid[16]);

#endif
