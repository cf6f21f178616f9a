/* layout.h: shape, dtype and order of a new array. */
#ifndef GPUGLUE_LAYOUT_H
#define GPUGLUE_LAYOUT_H

#include "base/py.h"

#define PY_MAX_DIMS 64

struct py_layout {
    PyObject *dtype; /* a reference */
    Py_ssize_t size; /* elements */
    size_t nbytes;
    int ndim;
    bool fortran;
    Py_ssize_t shape[PY_MAX_DIMS];
};

/* order= argument: one of C F A K in either case; NULL or None: @p otherwise. 0 with an exception. */
char py_order(PyObject *object, char otherwise);

/* A layout from the arguments of empty() and similar functions. Close it afterwards, if 0 was returned. */
int py_layout_open(struct py_state *state, struct py_layout *layout, PyObject *shape,
                   PyObject *dtype, PyObject *order);
/* A layout whose size is known to fit. Close it afterwards. */
void py_layout_set(struct py_layout *layout, PyObject *dtype, int ndim, const Py_ssize_t *shape,
                   bool fortran);
void py_layout_close(struct py_layout *layout);

/* Whether an object is one integer. Arrays have __index__ too. */
bool py_is_index(PyObject *object);

/* A tuple of ints. */
PyObject *py_ssize_tuple(const Py_ssize_t *sizes, int count);

#endif
