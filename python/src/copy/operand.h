/* operand.h: source and destination of a copy, whatever Python object each is. */
#ifndef GPUGLUE_PY_OPERAND_H
#define GPUGLUE_PY_OPERAND_H

#include "copy/array_object.h"

enum py_operand_kind {
    PY_OPERAND_ARRAY,      /* a GPUArray */
    PY_OPERAND_BUFFER,     /* a Buffer: bytes */
    PY_OPERAND_NDARRAY,    /* an ndarray */
    PY_OPERAND_HOST_BUFFER /* another object with the buffer protocol */
};

struct py_operand {
    enum py_operand_kind kind;
    /* For gg_copy, without an owner. A GPUArray outlives the operand and keeps its memory; a Buffer may be closed,
     * so its memory is a reference. */
    struct gg_copy_operand native;
    PyObject *keep; /* a reference to the ndarray or memoryview that holds host memory; else NULL */
    PyObject *dtype;                   /* borrowed; NULL for bytes */
    const Py_ssize_t *shape, *strides; /* borrowed; strides NULL: contiguous */
    int ndim;
    Py_ssize_t itemsize;
    size_t nbytes;
    bool c, f;     /* contiguous in C order, in Fortran order */
    bool readonly; /* of host memory */
    bool view;     /* of memory in which bytes between its fields may belong to other fields */
};

/* Describe an object as the source or destination of a copy. Needs no close after a failure. */
int py_operand_open(struct py_state *state, struct py_operand *operand, PyObject *object,
                    bool destination);
void py_operand_array(struct py_operand *operand, struct py_array *array);
void py_operand_ndarray(struct py_operand *operand, PyObject *array);
void py_operand_close(struct py_operand *operand);
/* Open both; needs no close after a failure. */
int py_operands_open(struct py_state *state, struct py_operand *dst, PyObject *to,
                     struct py_operand *src, PyObject *from);
void py_operands_close(struct py_operand *dst, struct py_operand *src);

/* Whether the two match, and how many bytes to copy. */
int py_operands_match(struct py_state *state, struct py_operand *dst, struct py_operand *src,
                      size_t *nbytes);
/* Whether two arrays have one dtype; else a TypeError that names both and astype. */
int py_operands_same_dtype(const struct py_operand *dst, const struct py_operand *src);

#endif
