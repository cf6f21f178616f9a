/* external_array.h: memory of other libraries, described by address, shape and dtype, as a GPUArray. */
#ifndef GPUGLUE_PY_EXTERNAL_ARRAY_H
#define GPUGLUE_PY_EXTERNAL_ARRAY_H

#include "array/array.h"

/* The description of external memory. */
struct py_external {
    char *first;     /* element 0; NULL where there are none */
    PyObject *dtype; /* a reference */
    PyObject *owner; /* kept until gpuglue no longer needs the memory; borrowed; may be NULL */
    int ndim;
    bool readonly, empty;
    Py_ssize_t shape[PY_MAX_DIMS], strides[PY_MAX_DIMS]; /* strides in bytes */
};

/* Read shape and strides from tuples of ints (strides NULL or None: C order). dtype must be set. -1 with an
 * exception. */
int py_external_layout(struct py_external *external, PyObject *shape, PyObject *strides);
/* The range of bytes that elements occupy, relative to element 0. False where it does not fit in 63 bits. */
bool py_strides_extent(int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides,
                       Py_ssize_t itemsize, Py_ssize_t *low, Py_ssize_t *high);
/* The address of the first byte of that range. False where it begins or ends outside the address space. */
bool py_extent_begin(uintptr_t element, Py_ssize_t low, Py_ssize_t high, char **out);
/* The array, on @p device, of a kind of memory that the core can wrap. */
PyObject *py_external_wrap(struct py_state *state, const struct py_external *external,
                           gg_device *device, enum gg_memory_kind kind);
/* Make later work wait, on the device, for work pending on a producer's native stream: work on the current stream,
 * and gpuglue's work on @p memory on any stream. */
int py_external_wait_producer(struct py_state *state, gg_device *device, uint64_t producer,
                              gg_memory *memory);
/* Query the drivers in use where the memory is, and of what kind; *device becomes its device. An address that they
 * do not know, or with @p exactly one of another device than *device, is an InvalidArgumentError. */
int py_external_locate(struct py_state *state, const struct py_external *external, bool exactly,
                       gg_device **device, enum gg_memory_kind *kind);

#endif
