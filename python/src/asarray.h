/* asarray.h: what asarray was asked for. */
#ifndef GPUGLUE_PY_ASARRAY_H
#define GPUGLUE_PY_ASARRAY_H

#include "array_foreign.h"

struct py_wish {
    gg_device *device; /* NULL: wherever it is */
    gg_device *alias;  /* NULL, or a host device for memory that only the host reaches */
    PyObject *dtype, *shape, *strides, *owner;
    int copy; /* 1 always, 0 never, -1 if needed */
};

/* asarray_address.c: whether an object is an address: an int, or with shape= an integer of NumPy's. -1 with an
 * exception. */
int py_is_address(PyObject *object, const struct py_wish *wish);
PyObject *py_from_address(struct py_state *state, PyObject *number, const struct py_wish *wish,
                          PyObject *owner);
/* An object that says its address, shape and dtype, as PyCUDA's, PybindGPU's and torch's arrays do: 1 and an array,
 * 0, -1. */
int py_from_pointer_object(struct py_state *state, PyObject *object, const struct py_wish *wish,
                           PyObject **out);

#endif
