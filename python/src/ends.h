/* ends.h: the two ends of a copy, whatever Python object each is. */
#ifndef GPUGLUE_ENDS_H
#define GPUGLUE_ENDS_H

#include "py.h"

enum py_end_kind {
    PY_END_ARRAY, /* a GPUArray */
    PY_END_BLOCK, /* a Buffer: bytes */
    PY_END_HOST,  /* an ndarray */
    PY_END_RAW    /* another object with the buffer protocol */
};

struct py_end {
    enum py_end_kind kind;
    struct gg_end end; /* as gg_copy wants it, no owner; memory is an array's, which outlives the end and
                          keeps it, else with a reference of ours */
    PyObject *keep; /* a reference to what holds host memory: the ndarray, a memoryview; else NULL */
    PyObject *dtype;                   /* borrowed; NULL for bytes */
    const Py_ssize_t *shape, *strides; /* borrowed; strides NULL: as contiguous */
    int ndim;
    Py_ssize_t itemsize;
    size_t nbytes;
    bool c, f; /* contiguous in C order, in Fortran order */
};

/* Look at an object as the source or destination of a copy; closes itself on failure. */
int py_end_open(struct py_state *state, struct py_end *end, PyObject *object, bool destination);
void py_end_array(struct py_end *end, struct py_array *array);
void py_end_host(struct py_end *end, PyObject *array); /* an ndarray */
void py_end_close(struct py_end *end);

/* Whether the two fit, and how many bytes are to be copied. */
int py_ends_match(struct py_state *state, struct py_end *dst, struct py_end *src, size_t *nbytes);
/* Whether two arrays have one dtype; a TypeError that names both and astype. */
int py_ends_same_dtype(const struct py_end *dst, const struct py_end *src);

/* Copy, whatever the strides of two ends that fit. @p flags are gg_copy_flag. */
int py_transfer(struct py_state *state, struct py_end *dst, struct py_end *src, size_t nbytes,
                gg_stream *stream, uint32_t flags);

/* Copy bytes of any layout, which lie in the ends: nobody looks. */
int py_transfer_box(struct py_state *state, struct py_end *dst, const Py_ssize_t *dst_strides,
                    struct py_end *src, const Py_ssize_t *src_strides, int ndim,
                    const size_t *shape, gg_stream *stream, uint32_t flags);

#endif
