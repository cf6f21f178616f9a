/* buffer.h: Buffer, a block of device or pinned memory. */
#ifndef GPUGLUE_PY_BUFFER_H
#define GPUGLUE_PY_BUFFER_H

#include "base/arguments.h"

struct py_buffer {
    PyObject_HEAD gg_memory *memory; /* NULL: closed */
    gg_memory *exposed; /* a reference for readers of __array_interface__; buffer_export.c */
    PyObject *stream;   /* the Stream it was allocated for, or NULL */
    bool touched;       /* work may be pending on it */
    PyObject *weakrefs;
};

static inline struct py_buffer *py_buffer_of(PyObject *self)
{
    return (struct py_buffer *)self;
}

int py_buffer_add(PyObject *module, struct py_state *state);
int py_ipc_add(PyObject *module, struct py_state *state); /* IpcHandle */
extern PyMethodDef py_host_register_functions[];          /* host_register */

/* ---- buffer.c ---- */

gg_memory *py_buffer_memory(PyObject *self); /* borrowed; NULL with an exception when closed */
void py_buffer_touch(PyObject *self);        /* work may be pending on it from now on */
PyObject *py_buffer_wrap(struct py_state *state, gg_memory *memory); /* takes over the reference */
/* The same for memory that may be in use. */
PyObject *py_buffer_wrap_in_use(struct py_state *state, gg_memory *memory);
bool py_host_accessible(const gg_memory *memory); /* the host reads and writes it directly */
/* record_use() of a Buffer or a GPUArray. */
PyObject *py_record_use(struct py_state *state, gg_memory *memory, PyObject *stream);

/* ---- methods, in the file that is named ---- */

PY_FASTCALL(py_buffer_from_ptr); /* external.c */
PY_FASTCALL(py_buffer_prefetch);
PY_FASTCALL(py_buffer_advise);
PyObject *py_buffer_ipc_handle(PyObject *self, PyObject *unused); /* ipc.c */
int py_buffer_export(PyObject *self, Py_buffer *view, int flags); /* buffer_export.c */
void py_buffer_unexport(PyObject *self, Py_buffer *view);
PyObject *py_buffer_interface(PyObject *self, void *closure);
PY_FASTCALL(py_buffer_array);

#endif
