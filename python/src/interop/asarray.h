/* asarray.h: asarray() and from_dlpack(): arrays of other libraries as GPUArrays. */
#ifndef GPUGLUE_PY_ASARRAY_H
#define GPUGLUE_PY_ASARRAY_H

#include "base/py.h"

/* The arguments of asarray(). */
struct py_asarray_request {
    gg_device *device; /* NULL: the device it is on */
    gg_device *alias;  /* NULL, or a host device for memory that only the host reaches */
    PyObject *dtype, *shape, *strides, *owner;
    int copy; /* 1 always, 0 never, -1 if needed */
};

extern PyMethodDef py_asarray_functions[];
/* An array of any library as a GPUArray, without a copy. Memory that only the host reaches is a TypeError, or with
 * @p host wrapped as memory of a host device. */
PyObject *py_wrap_array(struct py_state *state, PyObject *object, bool host);
/* An array of another library: 1 and a GPUArray, 2 and an ndarray where its memory is the host's, 0 for any other
 * object, -1 with an exception. */
int py_external_device_array(struct py_state *state, PyObject *object, PyObject **out);
/* assign.c: a[…] = value */
int py_array_assign_subscript(PyObject *self, PyObject *index, PyObject *value);

/* ---- asarray_address.c ---- */

/* Whether an object is an address: an int, or with shape= a NumPy integer. -1 with an exception. */
int py_is_address(PyObject *object, const struct py_asarray_request *request);
PyObject *py_from_address(struct py_state *state, PyObject *number,
                          const struct py_asarray_request *request, PyObject *owner);
/* An object with an address, a shape and a dtype as attributes, such as the arrays of PyCUDA, PybindGPU and torch:
 * 1 and an array, 0, -1. */
int py_from_pointer_object(struct py_state *state, PyObject *object,
                           const struct py_asarray_request *request, PyObject **out);

#endif
