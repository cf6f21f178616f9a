/* cuda_interface.h: the CUDA Array Interface. */
#ifndef GPUGLUE_PY_CUDA_INTERFACE_H
#define GPUGLUE_PY_CUDA_INTERFACE_H

#include "base/py.h"

int py_cuda_interface_add(struct py_state *state);
PyObject *py_array_cuda_interface(PyObject *self, void *closure);
/* An object with __cuda_array_interface__: 1 with an array, 0 without one, -1. */
int py_from_cuda_interface(struct py_state *state, PyObject *object, gg_device *device,
                           PyObject **out);

#endif
