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
/* A NumPy scalar or a 0-d ndarray. Imports nothing. */
bool numpy_is_scalar(PyObject *object);
/* NumPy's own truth value, which older ones take for an integer. Imports nothing. */
bool numpy_is_bool(PyObject *object);
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
/* The same, for what is there already: 'S', 'U' and 'V' without a length stay so. A cast, by numpy_from, gives them
 * the length that the data need. */
int numpy_dtype_to_cast(PyObject *object, PyObject **out);
bool numpy_lacks_length(PyObject *dtype);
bool numpy_has_fields(PyObject *dtype);
/* Whether elements of one type change when they become those of another, which may lack a length. */
bool numpy_casts(PyObject *from, PyObject *to);
int numpy_check_dtype(PyObject *dtype);
/* AxisError for an axis that there is not. Always returns -1. */
int numpy_refuse_axis(Py_ssize_t axis, int ndim);
/* A dtype in parts. */
struct numpy_kind {
    char letter; /* b i u f c S U V m M */
    Py_ssize_t itemsize;
    bool native;  /* the machine's byte order */
    bool builtin; /* NumPy's own, not of another package */
};
struct numpy_kind numpy_kind_of(PyObject *dtype);
/* NumPy's own dtype of a kind (b i u f c) and size, a new reference; NULL without an exception if there is
 * none. Loads NumPy. */
PyObject *numpy_plain_dtype(char letter, Py_ssize_t itemsize);
/* The dtype's text, such as "<f4". A new reference. */
PyObject *numpy_typestr(PyObject *dtype);
Py_ssize_t numpy_itemsize(PyObject *dtype);
size_t numpy_alignment(PyObject *dtype);
bool numpy_same_dtype(PyObject *one, PyObject *other);

/* New arrays: uninitialised; over memory that @p base (taken over, also on failure) keeps alive. */
PyObject *numpy_empty(PyObject *dtype, int ndim, const Py_ssize_t *shape, bool fortran);
PyObject *numpy_over(PyObject *dtype, int ndim, const Py_ssize_t *shape, bool fortran, void *data,
                     PyObject *base);

/* An ordinary array that owns its memory, which is @p memory of gg_result_alloc (taken over, also on
 * failure) and goes back there with the last view. numpy_results.c */
PyObject *numpy_result(PyObject *dtype, int ndim, const Py_ssize_t *shape, bool fortran,
                       void *memory);

/* np.asarray(object, dtype, order) with order one of C F A K; dtype NULL: as it is. Buffers, bytes too,
 * are taken as buffers. The result is a base-class ndarray, contiguous in C or Fortran order. */
PyObject *numpy_from(PyObject *object, PyObject *dtype, char order);
/* A view of a memoryview's memory with its shape and format. */
PyObject *numpy_from_memoryview(PyObject *memoryview);
/* np.asanyarray: what the object's elements are, with any strides; no copy where there need be none. */
PyObject *numpy_any(PyObject *object);
/* Contiguous in C or Fortran order: itself, or a copy. Takes over @p array. */
PyObject *numpy_packed(PyObject *array);
/* An array over memory that @p base (taken over, also on failure) keeps alive, with any strides. */
PyObject *numpy_strided(PyObject *dtype, int ndim, const Py_ssize_t *shape,
                        const Py_ssize_t *strides, void *data, bool writeable, PyObject *base);
/* Whether its memory is of its own making. */
bool numpy_owns(PyObject *array);
/* The ndarray that [name] gives of one element of @p dtype, the first axis of which is that of elements; @p view is a
 * look at it, @p offset where it begins in the element. */
PyObject *numpy_field(PyObject *dtype, PyObject *name, struct numpy_view *view, Py_ssize_t *offset);
/* A contiguous copy. */
PyObject *numpy_contiguous(PyObject *array, bool fortran);
/* destination[...] = source */
int numpy_assign(PyObject *destination, PyObject *source);

/* A 0-d array of @p dtype (NULL: what NumPy makes of it) that holds @p value. */
PyObject *numpy_element(PyObject *dtype, PyObject *value);
/* np.arange; absent arguments are NULL. */
PyObject *numpy_arange(PyObject *start, PyObject *stop, PyObject *step, PyObject *dtype);

#endif
