/* fill.h: setting all elements; fill.c. Each returns -1 with an exception. */
#ifndef GPUGLUE_FILL_H
#define GPUGLUE_FILL_H

#include "py.h"

int py_fill_array(struct py_state *state, PyObject *array, PyObject *value, PyObject *stream);
int py_fill_buffer(struct py_state *state, PyObject *buffer, PyObject *value, PyObject *stream);

/* Fill a new array whose stream is known; all bytes zero, or with the one element of an ndarray. */
int py_fill_zero(struct py_state *state, struct py_array *array, gg_stream *stream);
int py_fill_element(struct py_state *state, struct py_array *array, PyObject *element,
                    gg_stream *stream);

/* copy.c: copy(to, from, stream, require_async=require) */
int py_copy_objects(struct py_state *state, PyObject *to, PyObject *from, PyObject *stream,
                    bool require);

#endif
