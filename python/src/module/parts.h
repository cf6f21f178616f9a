/* parts.h: what module.c adds to the module from its own directory. */
#ifndef GPUGLUE_PY_PARTS_H
#define GPUGLUE_PY_PARTS_H

#include "base/py.h"

int py_array_add(PyObject *module, struct py_state *state); /* GPUArray */
int py_capi_add(PyObject *module, struct py_state *state);  /* _C_API */

#endif
