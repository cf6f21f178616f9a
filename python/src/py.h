/* py.h: what the files of python/src share: the module's state, the object structs, the small rules.
 *
 * Rules of this folder: a call parses once, in C; a method that may wait or submit lets go of the GIL
 * and holds references to what it uses meanwhile; the error record is copied before any Python call. */
#ifndef GPUGLUE_PY_H
#define GPUGLUE_PY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <gpuglue/gpuglue.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Everything that lives as long as the module. */
struct py_state {
    PyTypeObject *device_type, *stream_type, *event_type, *timer_type, *buffer_type, *array_type;
    PyTypeObject *attributes_type, *backend_info_type;
    /* exceptions; errors.c */
    PyObject *error, *out_of_memory, *invalid_argument, *backend_unavailable, *unsupported,
        *device_error, *device_lost, *fork_error;
    PyObject *no_device_warning;
    /* the one Python object of each gg_device; device.c */
    struct py_device **devices;
    Py_ssize_t device_count;
};

static inline struct py_state *py_state_of(PyObject *self) /* of one of our (final) types */
{
    return PyType_GetModuleState(Py_TYPE(self));
}

/* A handle is NULL once the object was closed; py_closed raises then. */
struct py_device {
    PyObject_HEAD
    gg_device *device; /* immortal */
    PyObject *weakrefs;
};
struct py_stream {
    PyObject_HEAD
    gg_stream *stream;
    PyObject *weakrefs;
};
struct py_event {
    PyObject_HEAD
    gg_event *event; /* also NULL while not bound to a device */
    uint32_t flags;
    bool closed;
    PyObject *weakrefs;
};
struct py_buffer {
    PyObject_HEAD
    gg_memory *memory;
    PyObject *stream; /* the Stream it was allocated for, or NULL */
    PyObject *weakrefs;
};
#define PY_MAX_DIMS 64
struct py_array {
    PyObject_HEAD
    gg_memory *memory;  /* a reference */
    size_t offset;      /* of element 0, in bytes into memory */
    PyObject *dtype;    /* a numpy.dtype */
    PyObject *base;     /* the Buffer or array it views, or NULL */
    Py_ssize_t itemsize;
    Py_ssize_t size;    /* elements */
    int ndim;
    Py_ssize_t *shape;  /* ndim, then ndim strides in bytes; NULL for 0-d */
    Py_ssize_t *strides;
    PyObject *weakrefs;
};

/* ---- errors.c ------------------------------------------------------------------------------------- */
int py_errors_add(PyObject *module, struct py_state *state);
/* Raise what gg_last_error says for a failed status; GG_ERR_INTERRUPTED leaves the pending exception
 * (KeyboardInterrupt) alone. Always returns NULL. */
PyObject *py_raise(struct py_state *state, gg_status status);
/* InvalidArgumentError (a ValueError) with a message of ours. Always returns NULL. */
PyObject *py_invalid(struct py_state *state, const char *format, ...);

/* ---- device.c, stream.c, event.c, current.c, registry.c ---------------------------------------------- */
int py_device_add(PyObject *module, struct py_state *state);
int py_stream_add(PyObject *module, struct py_state *state);
int py_event_add(PyObject *module, struct py_state *state);
int py_current_add(PyObject *module, struct py_state *state);  /* current_device, with-blocks */
int py_registry_add(PyObject *module, struct py_state *state); /* backends(), use_backend(), … */
/* The Python object of a device (new reference). */
PyObject *py_device_wrap(struct py_state *state, gg_device *device);
/* device= argument: None or NULL → the current device; Device, int or "cuda:0". Borrowed by nature
 * (devices are immortal). Returns -1 with an exception. Emits NoDeviceWarning when auto fell to host. */
int py_device_arg(struct py_state *state, PyObject *object, gg_device **out);
/* stream= argument: None or NULL → *out = NULL; a Stream (open) or anything Stream.borrow takes on
 * @p device. *out is a new reference, to be released by gg_stream_release. -1 with an exception. */
int py_stream_arg(struct py_state *state, PyObject *object, gg_device *device, gg_stream **out);
/* A Python Stream for a core stream; takes over the reference. */
PyObject *py_stream_wrap(struct py_state *state, gg_stream *stream);
/* Enter / leave for `with device:` and `with stream:`: a per-object stack is not needed, each thread
 * keeps its scopes; current.c. */
PyObject *py_scope_enter(struct py_state *state, PyObject *self, gg_device *device, gg_stream *stream);
PyObject *py_scope_exit(struct py_state *state, PyObject *self);
/* Run at most once after the default backend was decided: the warning if auto fell to host. */
int py_warn_no_device(struct py_state *state);

/* ---- owners.c: Python objects kept by the core --------------------------------------------------------- */
/* A release callback for the core: gives back one reference to @p owner, from any thread, with or
 * without the GIL: it goes on a lock-free list that a pending call or py_owners_drain empties. After
 * finalisation it leaks on purpose. */
void py_owner_release(void *owner);
/* With the GIL held: drop what is on the list. Cheap when empty; called by allocs and copies. */
void py_owners_drain(void);

/* ---- memory.c, copy.c, array.c ----------------------------------------------------------------------- */
int py_memory_add(PyObject *module, struct py_state *state); /* Buffer, alloc, alloc_pinned, … */
int py_copy_add(PyObject *module, struct py_state *state);   /* copy, fill */
int py_array_add(PyObject *module, struct py_state *state);  /* GPUArray, to_gpu, empty, … */
PyObject *py_buffer_wrap(struct py_state *state, gg_memory *memory); /* takes over the reference */

/* ---- shared argument parsing: arguments.c ------------------------------------------------------------- */
/* METH_FASTCALL|METH_KEYWORDS: put positional and keyword arguments into values[count], in the order
 * of names (NULL where not given); `positional` of them may be positional, `required` must be given.
 * -1 with a TypeError worded as Python words it. Names are compared by pointer first, then by text. */
int py_parse(const char *function, const char *const *names, Py_ssize_t count, Py_ssize_t positional,
             Py_ssize_t required, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
             PyObject **values);

#endif
