/* array_object.h: the fields of a GPUArray, which copies, fills and launches read. */
#ifndef GPUGLUE_PY_ARRAY_OBJECT_H
#define GPUGLUE_PY_ARRAY_OBJECT_H

#include "numpy/layout.h"

struct py_array {
    PyObject_HEAD gg_memory *memory; /* a reference */
    size_t offset;                   /* of element 0, in bytes into memory */
    char *address;                   /* of element 0 */
    PyObject *dtype;                 /* a numpy.dtype */
    PyObject *base;                  /* the Buffer or array it views, or NULL */
    Py_ssize_t itemsize;
    Py_ssize_t size; /* elements */
    size_t nbytes;   /* of the elements */
    int ndim;
    bool c, f;           /* contiguous in C order, in Fortran order */
    bool readonly;       /* external memory that must not be written */
    bool unversioned;    /* readonly comes from a DLPack tensor that could not declare it */
    bool wrapped;        /* over memory that gpuglue did not allocate */
    Py_ssize_t *shape;   /* ndim lengths, then ndim strides in bytes; inline_shape, or allocated */
    Py_ssize_t *strides; /* shape + ndim */
    Py_ssize_t inline_shape[8];
    gg_stream *exposed; /* the stream whose handle was exported last, kept valid; or NULL */
    PyObject *weakrefs;
};

static inline struct py_array *py_array_of(PyObject *self)
{
    return (struct py_array *)self;
}

#endif
