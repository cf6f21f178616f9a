/* layout.h: shape, dtype and order of an array that is to be made. */
#ifndef GPUGLUE_LAYOUT_H
#define GPUGLUE_LAYOUT_H

#include "py.h"

struct py_layout {
    PyObject *dtype; /* a reference; NULL until it is known */
    Py_ssize_t size; /* elements */
    size_t nbytes;
    int ndim;
    bool fortran;
    Py_ssize_t shape[PY_MAX_DIMS];
};

/* order= argument: one of C F A K in either case; NULL or None: @p usual. 0 with an exception. */
char py_order(PyObject *object, char usual);

/* Fill a layout from the arguments of empty() and its kin. Close it afterwards, if 0 was returned. */
int py_layout_open(struct py_state *state, struct py_layout *layout, PyObject *shape,
                   PyObject *dtype, PyObject *order);
/* The layout of an existing ndarray, contiguous in C or Fortran order. */
void py_layout_of(struct py_layout *layout, PyObject *array);
void py_layout_close(struct py_layout *layout);

/* One integer, not an array of them, which has __index__ too. */
bool py_is_index(PyObject *object);

/* Sizes as a tuple of ints. */
PyObject *py_sizes(const Py_ssize_t *sizes, int count);

#endif
