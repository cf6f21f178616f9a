/* transfer.h: copies between two operands. */
#ifndef GPUGLUE_PY_TRANSFER_H
#define GPUGLUE_PY_TRANSFER_H

#include "copy/operand.h"

/* Copy between operands that match, whatever their strides. @p flags are gg_copy_flag. */
int py_transfer(struct py_state *state, struct py_operand *dst, struct py_operand *src,
                size_t nbytes, gg_stream *stream, uint32_t flags);
/* The same, and close both. */
int py_transfer_and_close(struct py_state *state, struct py_operand *dst, struct py_operand *src,
                          size_t nbytes, gg_stream *stream, uint32_t flags);
/* Check that the operands match, copy, and close both. */
int py_transfer_matching(struct py_state *state, struct py_operand *dst, struct py_operand *src,
                         gg_stream *stream, uint32_t flags);

/* Copy all of an array from or to contiguous memory in the array's order, which the ndarray @p keep has. */
int py_transfer_up(struct py_state *state, const struct py_array *array, PyObject *keep, void *host,
                   gg_stream *stream);
int py_transfer_down(struct py_state *state, const struct py_array *array, PyObject *keep,
                     void *host, gg_stream *stream, uint32_t flags);

/* Copy a region of bytes of any strides; the caller checks that it lies within both operands. */
int py_transfer_region(struct py_state *state, struct py_operand *dst, const Py_ssize_t *dst_strides,
                       struct py_operand *src, const Py_ssize_t *src_strides, int ndim,
                       const size_t *shape, gg_stream *stream, uint32_t flags);

#endif
