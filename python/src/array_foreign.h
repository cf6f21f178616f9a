/* array_foreign.h: memory of other libraries, described by address, shape and type, as a GPUArray. */
#ifndef GPUGLUE_PY_ARRAY_FOREIGN_H
#define GPUGLUE_PY_ARRAY_FOREIGN_H

#include "dlpack.h"

/* What is known of foreign memory. */
struct py_foreign {
    char *first;     /* element 0; NULL where there are none */
    PyObject *dtype; /* a reference */
    PyObject *owner; /* kept until gpuglue needs the memory no more; borrowed; may be NULL */
    int ndim;
    bool readonly, empty;
    Py_ssize_t shape[PY_MAX_DIMS], strides[PY_MAX_DIMS]; /* strides in bytes */
};

/* foreign.c: shape and strides from tuples of ints (strides NULL or None: C order). dtype must be
 * set. -1 with an exception. */
int py_foreign_layout(struct py_foreign *foreign, PyObject *shape, PyObject *strides);
/* The array. On @p device, with a kind of memory the core can wrap. */
PyObject *py_foreign_wrap(struct py_state *state, const struct py_foreign *foreign,
                          gg_device *device, enum gg_memory_kind kind);
/* Work pending on a producer's stream, of which this is the handle: later work on the current stream, and gpuglue's
 * on every other, waits for it on the device. */
int py_foreign_follow(struct py_state *state, gg_device *device, uint64_t producer,
                      gg_memory *memory);
/* Ask the drivers in use where it is, and of what kind. An address that they do not know, or with @p exactly
 * one of another device than @p device, is an InvalidArgumentError; else *device becomes that. */
int py_foreign_locate(struct py_state *state, const struct py_foreign *foreign, bool exactly,
                      gg_device **device, enum gg_memory_kind *kind);

/* cuda_interface.c: an object with __cuda_array_interface__: 1 with an array, 0 without, -1. */
int py_from_cuda_interface(struct py_state *state, PyObject *object, gg_device *device,
                           PyObject **out);
/* asarray.c: an array of any library as a GPUArray, nothing copied. Memory that only the host reaches is
 * refused with a TypeError, or with @p host wrapped as that of a host device. */
PyObject *py_wrap_anything(struct py_state *state, PyObject *object, bool host);
int py_cuda_interface_add(struct py_state *state);

#endif
