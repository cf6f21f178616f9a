/* fill.h: setting all elements. Each function returns -1 with an exception. */
#ifndef GPUGLUE_PY_FILL_H
#define GPUGLUE_PY_FILL_H

#include "copy/array_object.h"

int py_fill_array(struct py_state *state, PyObject *array, PyObject *value, PyObject *stream);
int py_fill_buffer(struct py_state *state, PyObject *buffer, PyObject *value, PyObject *stream);

/* Fill an array with zero bytes, or with the one element of an ndarray. */
int py_fill_zero(struct py_state *state, struct py_array *array, gg_stream *stream);
int py_fill_element(struct py_state *state, struct py_array *array, PyObject *element,
                    gg_stream *stream);

extern PyMethodDef py_copy_functions[]; /* copy, fill */
extern PyMethodDef py_raw_bytes_functions[];

#endif
