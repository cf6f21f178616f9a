/* array.h: what the files about GPUArray share. */
#ifndef GPUGLUE_PY_ARRAY_H
#define GPUGLUE_PY_ARRAY_H

#include "layout.h"
#include "place.h"
#include "py.h"

static inline struct py_array *py_array_of(PyObject *self)
{
    return (struct py_array *)self;
}

/* array.c: a new, contiguous, uninitialised array. */
PyObject *py_array_make(struct py_state *state, const struct py_layout *layout,
                        const struct py_place *place);
/* The layout of an array that is there, for another of the same kind. */
void py_array_layout(const struct py_array *array, struct py_layout *layout);

/* array_new.c: GPUArray(...), to_gpu, empty, zeros, ones, full and their _like, arange */
PyObject *py_array_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);
extern PyMethodDef py_array_functions[];
/* array_like.c: the _like functions */
extern PyMethodDef py_like_functions[];
/* What full() and full_like() do: a new array of one value. dtype NULL: that of the value. */
PyObject *py_array_full(struct py_state *state, struct py_layout *layout,
                        const struct py_place *place, PyObject *value);
PyObject *py_array_zeros(struct py_state *state, const struct py_layout *layout,
                         const struct py_place *place);

extern PyGetSetDef py_array_attributes[]; /* array_attributes.c */
extern PyMethodDef py_array_methods[];    /* array_transfer.c */

/* array_item.c */
PyObject *py_array_item(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
int py_array_bool(PyObject *self);

#endif
