/* errors.h: exceptions. A failed status becomes one of them. */
#ifndef GPUGLUE_PY_ERRORS_H
#define GPUGLUE_PY_ERRORS_H

#include "base/py.h"

int py_errors_add(PyObject *module, struct py_state *state);
/* Raise what gg_last_error records for a failed status. GG_ERR_INTERRUPTED keeps the pending exception
 * (KeyboardInterrupt). Always returns NULL. */
PyObject *py_raise(struct py_state *state, gg_status status);
/* Raise InvalidArgumentError (a ValueError). Always returns NULL. */
PyObject *py_invalid(struct py_state *state, const char *format, ...);
/* Raise InvalidArgumentError "Stream is closed". Always returns NULL. */
PyObject *py_closed(struct py_state *state, const char *type);
/* 0 for GG_OK, else py_raise and -1. */
static inline int py_check(struct py_state *state, gg_status status)
{
    if (status)
        py_raise(state, status);
    return status ? -1 : 0;
}
/* None for GG_OK, else py_raise and NULL. */
static inline PyObject *py_none(struct py_state *state, gg_status status)
{
    return status ? py_raise(state, status) : Py_NewRef(Py_None);
}

#endif
