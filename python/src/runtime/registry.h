/* registry.h: backends: finding them, and the default one. */
#ifndef GPUGLUE_PY_REGISTRY_H
#define GPUGLUE_PY_REGISTRY_H

#include "base/arguments.h"

extern PyMethodDef py_registry_functions[];                     /* backends(), devices(), … */
int py_lifecycle_add(PyObject *module, struct py_state *state); /* _shutdown() and the wait hook */
int py_comm_add(PyObject *module, struct py_state *state);      /* _comm_create() and its like */
int py_trace_add(PyObject *module, struct py_state *state);     /* _trace_start() and its like */
/* prepare.c: pass the plugins and directories of this Python environment to the core, once. Call it before
 * anything that searches for backends. -1 with an exception. */
int py_registry_prepare(struct py_state *state);
/* default_backend.c: default_backend(), use_backend() */
extern PyMethodDef py_default_backend_functions[];
/* Once the default backend is decided: issue NoDeviceWarning if "auto" chose host. At most once. */
int py_warn_no_device(struct py_state *state);
/* Call a core function that takes one string. None, or NULL with an exception. */
PyObject *py_call_with_str(PyObject *module, PyObject *argument,
                           gg_status (*function)(const char *));

#endif
