/* memory.h: what the files about Buffer share. */
#ifndef GPUGLUE_PY_MEMORY_H
#define GPUGLUE_PY_MEMORY_H

#include "py.h"

/* memory.c */
gg_memory *py_buffer_memory(PyObject *self); /* borrowed; NULL with an exception when closed */
void py_buffer_touch(PyObject *self);        /* work may be pending on it from now on */
PyObject *py_record_use(struct py_state *state, gg_memory *memory, PyObject *stream);

#define PY_ADDRESS_SIZE 20
void py_address(char text[PY_ADDRESS_SIZE], const void *pointer, size_t offset); /* "0x7f00" */

const char *py_kind_name(enum gg_memory_kind kind); /* "device" */

/* pointer.c */
int py_address_arg(struct py_state *state, PyObject *object, void **out);
/* What is said of an address. */
struct py_pointer {
    void *pointer;
    size_t nbytes;
    gg_device *wanted;   /* whose memory it must be; NULL: anybody's */
    gg_device *believed; /* whose it is where no driver in use knows it; NULL: then it is refused */
};
/* What the drivers in use say of it, which has to agree. -1 with an InvalidArgumentError. */
int py_pointer_locate(struct py_state *state, const struct py_pointer *asked, gg_device **device,
                      enum gg_memory_kind *kind);
/* Whether nbytes bytes at @p pointer are memory of @p device, as far as its driver says. -1 with an exception. */
int py_pointer_check(struct py_state *state, gg_device *device, void *pointer, size_t nbytes);

/* foreign.c */
PyObject *py_buffer_from_ptr(PyObject *type, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames);
PyObject *py_buffer_prefetch(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames);
PyObject *py_buffer_advise(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *kwnames);

/* ipc.c */
PyObject *py_buffer_ipc_handle(PyObject *self, PyObject *unused);

/* memory_export.c: page-locked memory as host memory */
int py_buffer_export(PyObject *self, Py_buffer *view, int flags);
void py_buffer_unexport(PyObject *self, Py_buffer *view);
PyObject *py_buffer_interface(PyObject *self, void *closure);
PyObject *py_buffer_array(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames);

/* alloc.c */
extern PyMethodDef py_alloc_functions[];

#endif
