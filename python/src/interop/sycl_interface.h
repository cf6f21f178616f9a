/* sycl_interface.h: dpctl's interface of memory that SYCL knows. */
#ifndef GPUGLUE_PY_SYCL_INTERFACE_H
#define GPUGLUE_PY_SYCL_INTERFACE_H

#include "base/py.h"

PyObject *py_array_sycl_interface(PyObject *self, void *closure);
/* An object with __sycl_usm_array_interface__: 1 with an array, 0 without one, -1. */
int py_from_sycl_interface(PyObject *object, PyObject **out);

#endif
