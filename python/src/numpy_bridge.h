/* numpy_bridge.h: all that this module asks of NumPy, without a NumPy type in sight.
 *
 * NumPy is loaded on first need: memory and streams work without it. Call numpy_load before any other
 * function here, except numpy_is_array; an object that passed as array or dtype is proof of it. */
#ifndef GPUGLUE_NUMPY_BRIDGE_H
#define GPUGLUE_NUMPY_BRIDGE_H

#include "py.h"

/* Where an ndarray keeps what. Everything is borrowed from the array. */
struct numpy_view {
    void *data;
    PyObject *dtype;
    const Py_ssize_t *shape, *strides;
    int ndim;
    size_t nbytes;
    bool c, f; /* contiguous in C order, in Fortran order */
    bool writeable;
};

/* Import NumPy and its C API. -1 with an ImportError that says what to install. */
int numpy_load(void);

/* 1: an ndarray, 0: not, -1: an exception. Imports nothing: without NumPy there are no ndarrays. */
int numpy_is_array(PyObject *object);
void numpy_look(PyObject *array, struct numpy_view *view);

/* A scalar of NumPy's: 1, its bytes in @p out, its size and the letter of its kind; of kind 'V', and where
 * it is longer than @p room, no bytes. 0: another object; imports nothing. -1: an exception. */
int numpy_scalar(PyObject *object, void *out, size_t room, size_t *size, char *kind);
char numpy_kind(PyObject *dtype); /* 'f', 'i', 'u', … */

/* How many dimensions the running NumPy takes. */
int numpy_max_dims(void);

/* The dtype that np.dtype(object) gives (NULL: float64), as a new reference in @p out. TypeError for
 * what has no place on a device: objects, variable-width strings, subarrays. */
int numpy_dtype(PyObject *object, PyObject **out);
int numpy_check_dtype(PyObject *dtype);
Py_ssize_t numpy_itemsize(PyObject *dtype);
bool numpy_same_dtype(PyObject *one, PyObject *other);

/* New arrays: uninitialised; over memory that @p base (taken over, also on failure) keeps alive. */
PyObject *numpy_empty(PyObject *dtype, int ndim, const Py_ssize_t *shape, bool fortran);
PyObject *numpy_over(PyObject *dtype, int ndim, const Py_ssize_t *shape, bool fortran, void *data,
                     PyObject *base);

/* np.asarray(object, dtype, order) with order one of C F A K; dtype NULL: as it is. Buffers, bytes too,
 * are taken as buffers. The result is a base-class ndarray, contiguous in C or Fortran order. */
PyObject *numpy_from(PyObject *object, PyObject *dtype, char order);
/* A view of a memoryview's memory with its shape and format. */
PyObject *numpy_from_memoryview(PyObject *memoryview);
/* A contiguous copy. */
PyObject *numpy_contiguous(PyObject *array, bool fortran);
/* destination[...] = source */
int numpy_assign(PyObject *destination, PyObject *source);

/* A 0-d array of @p dtype (NULL: what NumPy makes of it) that holds @p value. */
PyObject *numpy_element(PyObject *dtype, PyObject *value);
/* np.arange; absent arguments are NULL. */
PyObject *numpy_arange(PyObject *start, PyObject *stop, PyObject *step, PyObject *dtype);

#endif
