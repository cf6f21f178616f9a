/* bridge.h: all that the module needs from NumPy, without NumPy's types. NumPy is loaded on first use: memory and
 * streams work without it. Call numpy_load before any other function here except numpy_is_array; having an ndarray
 * or a dtype proves that it was called. */
#ifndef GPUGLUE_NUMPY_BRIDGE_H
#define GPUGLUE_NUMPY_BRIDGE_H

#include "base/py.h"

/* The fields of an ndarray, borrowed from it. */
struct numpy_desc {
    void *data;
    PyObject *dtype;
    const Py_ssize_t *shape, *strides;
    int ndim;
    size_t nbytes;
    bool c, f; /* contiguous in C order, in Fortran order */
    bool writeable;
};

/* Import NumPy and its C API. -1 with an ImportError that names what to install. */
int numpy_load(void);

/* 1: an ndarray, 0: not, -1: an exception. Imports nothing: without NumPy there are no ndarrays. */
int numpy_is_array(PyObject *object);
bool numpy_is_exact(PyObject *object); /* an ndarray, not of a subclass; imports nothing */
/* The same, contiguous in C or Fortran order. */
bool numpy_is_contiguous(PyObject *object);
void *numpy_data(PyObject *array);
/* A NumPy scalar or a 0-d ndarray. Imports nothing. */
bool numpy_is_scalar(PyObject *object);
/* A NumPy bool, which older versions accept as an integer. Imports nothing. */
bool numpy_is_bool(PyObject *object);
void numpy_describe(PyObject *array, struct numpy_desc *desc);

/* A NumPy scalar: 1, with its bytes in @p out, its size and the letter of its kind; no bytes for kind 'V', or where
 * it is longer than @p room. 0: another object; imports nothing. -1: an exception. */
int numpy_scalar(PyObject *object, void *out, size_t room, size_t *size, char *kind);
char numpy_dtype_kind(PyObject *dtype); /* 'f', 'i', 'u', … */

/* The most dimensions that the running NumPy supports. */
int numpy_max_dims(void);

/* np.dtype(object) (NULL: float64) as a new reference in @p out. TypeError for dtypes that a device cannot hold:
 * objects, variable-width strings, subarrays. */
int numpy_dtype(PyObject *object, PyObject **out);
/* The same for a cast: 'S', 'U' and 'V' without a length stay so. numpy_asarray then gives them the length that the
 * data need. */
int numpy_dtype_for_cast(PyObject *object, PyObject **out);
bool numpy_is_unsized(PyObject *dtype);
bool numpy_has_fields(PyObject *dtype);
/* Whether a conversion changes elements; @p to may lack a length. */
bool numpy_needs_cast(PyObject *from, PyObject *to);
int numpy_check_dtype(PyObject *dtype);
/* Raise AxisError. Always returns -1. */
int numpy_raise_axis_error(Py_ssize_t axis, int ndim);
/* The properties of a dtype. */
struct numpy_dtype_info {
    char letter; /* b i u f c S U V m M */
    Py_ssize_t itemsize;
    bool native;  /* the machine's byte order */
    bool builtin; /* NumPy's own, not of another package */
};
struct numpy_dtype_info numpy_dtype_info(PyObject *dtype);
/* NumPy's dtype of a kind (b i u f c) and size, a new reference; NULL without an exception if there is none. Loads
 * NumPy. */
PyObject *numpy_builtin_dtype(char letter, Py_ssize_t itemsize);
/* The type string, such as "<f4". A new reference. */
PyObject *numpy_typestr(PyObject *dtype);
Py_ssize_t numpy_itemsize(PyObject *dtype);
size_t numpy_alignment(PyObject *dtype);
bool numpy_same_dtype(PyObject *one, PyObject *other);

/* New arrays: uninitialised; or over memory that @p base (taken over, also on failure) keeps alive. */
PyObject *numpy_empty(PyObject *dtype, int ndim, const Py_ssize_t *shape, bool fortran);
PyObject *numpy_wrap(PyObject *dtype, int ndim, const Py_ssize_t *shape, bool fortran, void *data,
                     PyObject *base);

/* An array that owns @p memory of gg_readback_alloc (taken over, also on failure), which is freed with the last
 * view. data_handler.c */
PyObject *numpy_readback_array(PyObject *dtype, int ndim, const Py_ssize_t *shape, bool fortran,
                               void *memory);

/* np.asarray(object, dtype, order) with order one of C F A K; dtype NULL: unchanged. Buffers, including bytes, are
 * read as buffers. The result is a base-class ndarray, contiguous in C or Fortran order. */
PyObject *numpy_asarray(PyObject *object, PyObject *dtype, char order);
/* A view of a memoryview's memory with its shape and format. */
PyObject *numpy_from_memoryview(PyObject *memoryview);
/* The object as an ndarray of any strides, without a copy where possible. */
PyObject *numpy_asanyarray(PyObject *object);
/* Contiguous in C or Fortran order: itself, or a copy. Takes over @p array. */
PyObject *numpy_ensure_contiguous(PyObject *array);
/* An array over memory that @p base (taken over, also on failure) keeps alive, with any strides. */
PyObject *numpy_wrap_strided(PyObject *dtype, int ndim, const Py_ssize_t *shape,
                             const Py_ssize_t *strides, void *data, bool writeable, PyObject *base);
/* Whether it owns its memory. */
bool numpy_owns_data(PyObject *array);
/* Bytes of an element, from the first one. */
struct numpy_run {
    Py_ssize_t first, count;
};
/* The bytes that fields cover, as runs, where there are other bytes between or after them; else @p out is NULL. Free it.
 * -1 with an exception. */
int numpy_field_runs(PyObject *dtype, struct numpy_run **out, int *count);
/* The ndarray array[name] of a one-element array of @p dtype; @p desc describes it, @p offset is that of the field
 * in the element. */
PyObject *numpy_field(PyObject *dtype, PyObject *name, struct numpy_desc *desc, Py_ssize_t *offset);
/* A contiguous copy. */
PyObject *numpy_copy(PyObject *array, bool fortran);

/* A 0-d array that holds @p value; @p dtype NULL: the dtype of the value. */
PyObject *numpy_0d(PyObject *dtype, PyObject *value);
/* np.arange; absent arguments are NULL. */
PyObject *numpy_arange(PyObject *start, PyObject *stop, PyObject *step, PyObject *dtype);

#endif
