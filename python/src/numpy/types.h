/* types.h: NumPy's C API, for the numpy_*.c files. All but
 * numpy/bridge.c, which loads it, define NO_IMPORT_ARRAY first. */
#ifndef GPUGLUE_NUMPY_TYPES_H
#define GPUGLUE_NUMPY_TYPES_H

#include "numpy/bridge.h"

#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL py_array_api /* one table for all of them */
#include <numpy/arrayobject.h>

_Static_assert(sizeof(npy_intp) == sizeof(Py_ssize_t), "NumPy's sizes are passed on as they are");

static inline PyArrayObject *as_array(PyObject *object)
{
    return (PyArrayObject *)object;
}

static inline PyArray_Descr *as_descr(PyObject *dtype)
{
    return (PyArray_Descr *)dtype;
}

static inline npy_intp *as_dims(const Py_ssize_t *shape) /* the API lacks the const, but only reads */
{
    return (npy_intp *)(uintptr_t)shape;
}

#endif
