/* scope.h: with-blocks of devices and streams. */
#ifndef GPUGLUE_PY_SCOPE_H
#define GPUGLUE_PY_SCOPE_H

#include "base/py.h"

/* __enter__ and __exit__; the innermost block of this thread is left. */
PyObject *py_scope_enter(struct py_state *state, PyObject *self, gg_device *device,
                         gg_stream *stream);
PyObject *py_scope_exit(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
bool py_scope_is_open(const struct py_state *state); /* whether this thread is inside one */

#endif
