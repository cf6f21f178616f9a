/* py.h: what the files of python/src share: the module's state, the object structs, the small rules.
 *
 * Rules of this folder: a call parses once, in C; a method that may wait or submit lets go of the GIL,
 * and what it uses meanwhile stays: by a reference, by a count in an object that can be closed, or since an
 * argument that the caller holds keeps it; the error record is copied before any Python call. */
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
    PyObject *launch_options[4]; /* the names of a launch's keywords; kernel_call.c */
    PyTypeObject *stream_type, *array_type, *buffer_type, *event_type; /* what a launch looks at */
    PyTypeObject *device_type, *timer_type, *flags_type, *module_type, *kernel_type, *raw_type,
        *local_type;
    PyTypeObject *backend_info_type, *memory_info_type, *pool_type, *pool_stats_type,
        *pointer_info_type, *ipc_type;
    /* exceptions; errors.c */
    PyObject *error, *out_of_memory, *invalid_argument, *backend_unavailable, *unsupported,
        *device_error, *device_lost, *fork_error;
    PyObject *no_device_warning;
    PyObject *interface_keys[7]; /* of __cuda_array_interface__, in cuda_interface.c's order */
    PyObject *allocator;         /* the user's, or NULL: the pool */
    /* the one Python object of each gg_device; device.c */
    struct py_device **devices;
    Py_ssize_t device_count;
    struct py_scope *scopes; /* with-blocks that are open, of all threads; current.c */
    bool prepared;  /* plugins and directories of this environment were handed to the core */
    bool overruled; /* use_backend() was called */
    bool settled;   /* a current device was asked for before: drivers are initialised */
    bool used;      /* Device.use() was called: some thread's device is no default */
    bool warned;    /* NoDeviceWarning was given, or there is no reason for it */
};

static inline struct py_state *py_state_of(PyObject *self) /* of one of our (final) types */
{
    return PyType_GetModuleState(Py_TYPE(self));
}

/* A handle is NULL once the object was closed; py_closed raises then. */
struct py_device {
    PyObject_HEAD gg_device *device; /* immortal */
    bool opened;                     /* its context is there, so that calls no longer take long */
    PyObject *weakrefs;
};
struct py_stream {
    PyObject_HEAD gg_stream *stream;
    const void *identity; /* the stream's address, for the hash; not to be followed */
    uint32_t busy;        /* calls that use it without the GIL and without a reference */
    gg_stream *closing;   /* closed meanwhile: the last of them gives it back */
    PyObject *weakrefs;
};
struct py_event {
    PyObject_HEAD gg_event *event; /* also NULL while not bound to a device */
    struct py_state *state;        /* a load here, and a call in py_state_of */
    uint32_t flags;
    bool closed;
    uint32_t busy; /* as for a stream */
    gg_event *closing;
    PyObject *weakrefs;
};
struct py_buffer {
    PyObject_HEAD gg_memory *memory;
    gg_memory *exposed; /* a reference for those who took the bare address; memory.c */
    PyObject *stream;   /* the Stream it was allocated for, or NULL */
    bool touched;       /* work may be pending on it */
    PyObject *weakrefs;
};
#define PY_MAX_DIMS 64
struct py_array {
    PyObject_HEAD gg_memory *memory; /* a reference */
    size_t offset;                   /* of element 0, in bytes into memory */
    PyObject *dtype;                 /* a numpy.dtype */
    PyObject *base;                  /* the Buffer or array it views, or NULL */
    Py_ssize_t itemsize;
    Py_ssize_t size; /* elements */
    size_t nbytes;   /* of the elements */
    int ndim;
    bool c, f;     /* contiguous in C order, in Fortran order */
    bool readonly; /* someone else's memory, which is not to be written */
    bool unversioned; /* … or its producer's DLPack could not say: it goes on to others of that kind */
    bool wrapped;        /* over memory that gpuglue did not make */
    Py_ssize_t *shape;   /* ndim, then ndim strides in bytes; in few, or allocated */
    Py_ssize_t *strides; /* shape + ndim */
    Py_ssize_t few[8];
    gg_stream *exposed; /* whose handle was given out last, so that it stays good; or NULL */
    PyObject *weakrefs;
};

/* ---- errors.c ------------------------------------------------------------------------------------- */
int py_errors_add(PyObject *module, struct py_state *state);
/* Raise what gg_last_error says for a failed status; GG_ERR_INTERRUPTED leaves the pending exception
 * (KeyboardInterrupt) alone. Always returns NULL. */
PyObject *py_raise(struct py_state *state, gg_status status);
/* InvalidArgumentError (a ValueError) with a message of ours. Always returns NULL. */
PyObject *py_invalid(struct py_state *state, const char *format, ...);
/* InvalidArgumentError "Stream is closed". Always returns NULL. */
PyObject *py_closed(struct py_state *state, const char *type);

/* 0 for GG_OK, else py_raise and -1. */
int py_check(struct py_state *state, gg_status status);

/* ---- device.c, stream.c, event.c, current.c, registry.c ---------------------------------------------- */
int py_device_add(PyObject *module, struct py_state *state);
int py_stream_add(PyObject *module, struct py_state *state);
int py_event_add(PyObject *module, struct py_state *state);
int py_timer_add(PyObject *module, struct py_state *state);
int py_current_add(PyObject *module, struct py_state *state);  /* current_device, with-blocks */
int py_registry_add(PyObject *module, struct py_state *state); /* backends(), use_backend(), … */
int py_reports_add(PyObject *module, struct py_state *state);  /* BackendInfo */
/* Hand plugins and directories of this Python environment to the core, once. Before anything that
 * looks for backends. -1 with an exception. */
int py_prepare(struct py_state *state);
/* What the core found, as a tuple of BackendInfo. */
PyObject *py_reports(struct py_state *state, enum gg_probe_level level);
PyObject *py_reports_wrap(struct py_state *state, const struct gg_reports *reports);
/* What a str says, which lives as long as it does; a null character is refused with @p what. */
const char *py_name(struct py_state *state, PyObject *string, const char *what);
PyObject *py_text(const char *bytes); /* a str; '' for NULL */
/* gg_current_device, with all that the first call needs. -1 with an exception. */
int py_device_current(struct py_state *state, gg_device **out);
/* Wait for all of a device; None. */
PyObject *py_device_synchronize(struct py_state *state, gg_device *device);
/* Open the device's context without the GIL if this was not done: 0.1 s and more. -1 with an exception. */
int py_device_open(struct py_state *state, gg_device *device);
/* The Python object of a device (new reference). */
PyObject *py_device_wrap(struct py_state *state, gg_device *device);
/* device= argument: None or NULL → the current device; Device, int or "cuda:0". Borrowed by nature
 * (devices are immortal). Returns -1 with an exception. Emits NoDeviceWarning when auto fell to host. */
int py_device_arg(struct py_state *state, PyObject *object, gg_device **out);
/* Device by "pci" or "uuid"; the rank among the processes of this node (-1 with an exception). */
int py_device_by_address(struct py_state *state, const char *kind, PyObject *object,
                         gg_device **out);
long py_local_rank(struct py_state *state);
/* stream= argument: None or NULL → *out = NULL; a Stream (open) or anything Stream.borrow takes, which is on
 * @p device if it does not say where. *out is a new reference, to be released by gg_stream_release. -1 with an
 * exception. That it is a stream of the right device is left to the core. */
int py_stream_arg(struct py_state *state, PyObject *object, gg_device *device, gg_stream **out);
/* Stream.borrow: *out is a new reference. On the object's own device, else on @p device, NULL: the current one. */
int py_stream_borrow(struct py_state *state, PyObject *object, gg_device *device, gg_stream **out);
/* The same, but of no other device than @p device, unless that is NULL. */
int py_stream_borrow_on(struct py_state *state, PyObject *object, gg_device *device,
                        gg_stream **out);
/* Record @p event (NULL: a new one) on @p stream; the event as a new reference. */
PyObject *py_event_record(struct py_state *state, PyObject *event, gg_stream *stream);
/* A Python Stream for a core stream; takes over the reference. */
PyObject *py_stream_wrap(struct py_state *state, gg_stream *stream);
/* Enter / leave for `with device:` and `with stream:`; the innermost one of this thread is left. */
PyObject *py_scope_enter(struct py_state *state, PyObject *self, gg_device *device,
                         gg_stream *stream);
PyObject *py_scope_exit(struct py_state *state, PyObject *self);
bool py_scope_open(const struct py_state *state); /* whether this thread is inside one */
/* Run at most once after the default backend was decided: the warning if auto fell to host. */
int py_warn_no_device(struct py_state *state);
/* The core's wait hook: signals, on the main thread. */
int py_interrupted(void);

/* The end of a call that was counted in `busy`. */
static inline void py_stream_leave(struct py_stream *stream)
{
    if (--stream->busy || !stream->closing)
        return;
    gg_stream_release(stream->closing);
    stream->closing = NULL;
}
/* Run @p op on an open event and an open stream without the GIL; event.c. Counting the call in the two
 * objects, which the GIL protects, is cheaper than two references. */
gg_status py_event_with_stream(struct py_event *event, struct py_stream *stream,
                               gg_status (*op)(gg_event *event, gg_stream *stream));

/* ---- owners.c: Python objects kept by the core --------------------------------------------------------- */
/* A release callback for the core: gives back one reference to @p owner, from any thread, with or
 * without the GIL: it goes on a lock-free list that a pending call or py_owners_drain empties. After
 * finalisation it leaks on purpose. */
void py_owner_release(void *owner);
/* What the core gives back in a call, on the calling thread, is dropped behind it without a list: between these
 * two, which may be nested (a wait lets signal handlers run). The second needs the GIL. */
struct py_returned {
    struct py_returned *outer;
    PyObject *objects[4];
    int count;
};
void py_returned_begin(struct py_returned *returned);
void py_returned_end(struct py_returned *returned);
/* With the GIL held: drop what is on the list. Cheap when empty; called by allocs and copies. */
void py_owners_drain(void);
/* From now on owners are leaked: the interpreter is about to end. */
void py_owners_stop(void);
bool py_stopping(void);

/* ---- memory.c, copy.c, array.c ----------------------------------------------------------------------- */
int py_memory_add(PyObject *module, struct py_state *state);  /* Buffer, alloc, alloc_pinned, … */
int py_foreign_add(PyObject *module, struct py_state *state); /* register */
int py_pointer_add(PyObject *module, struct py_state *state); /* pointer_info */
int py_allocator_add(PyObject *module, struct py_state *state); /* use_allocator */
int py_pool_add(PyObject *module, struct py_state *state);      /* Pool, trim */
int py_ipc_add(PyObject *module, struct py_state *state);       /* IpcHandle */
PyObject *py_device_memory_info(PyObject *self, PyObject *unused);
PyObject *py_pool_wrap(struct py_state *state, gg_device *device, enum gg_memory_kind kind);
int py_copy_add(PyObject *module, struct py_state *state);   /* copy, fill */
int py_array_add(PyObject *module, struct py_state *state);  /* GPUArray, to_gpu, empty, … */
int py_kernel_add(PyObject *module, struct py_state *state); /* Module, Kernel, raw */
int py_capi_add(PyObject *module, struct py_state *state);   /* _C_API; capi.c */
PyObject *py_buffer_wrap(struct py_state *state, gg_memory *memory); /* takes over the reference */
/* The same for memory that may be in use already. */
PyObject *py_buffer_over(struct py_state *state, gg_memory *memory);

/* ---- shared argument parsing: arguments.c ------------------------------------------------------------- */
/* METH_FASTCALL|METH_KEYWORDS: put positional and keyword arguments into values[count], in the order
 * of names (NULL where not given); `positional` of them may be positional, `required` must be given.
 * -1 with a TypeError worded as Python words it. Names are compared by pointer first, then by text. */
int py_parse_any(const char *function, const char *const *names, Py_ssize_t count,
                 Py_ssize_t positional, Py_ssize_t required, PyObject *const *args,
                 Py_ssize_t nargs, PyObject *kwnames, PyObject **values);
static inline int py_parse(const char *function, const char *const *names, Py_ssize_t count,
                           Py_ssize_t positional, Py_ssize_t required, PyObject *const *args,
                           Py_ssize_t nargs, PyObject *kwnames, PyObject **values)
{
    if (nargs != count || nargs > positional || kwnames)
        return py_parse_any(function, names, count, positional, required, args, nargs, kwnames,
                            values);
    for (Py_ssize_t i = 0; i < count; i++) /* the usual case: all of them, by position */
        values[i] = args[i];
    return 0;
}
/* An attribute that may be missing: 1 and a new reference, 0, or -1 with another exception. */
int py_optional_attribute(PyObject *object, const char *name, PyObject **out);
/* An integer (anything with __index__) as 64 bits without sign. -1 with an InvalidArgumentError. */
int py_uint64(struct py_state *state, PyObject *object, const char *what, uint64_t *out);
/* The same from @p least to @p most. */
int py_integer(struct py_state *state, PyObject *object, const char *what, long long least,
               long long most, long long *out);
/* The repr, or a text for it where Python refuses one: an int of thousands of digits. */
PyObject *py_shown(PyObject *object);
/* What ctypes takes for a pointer whatever the argtypes: a ctypes.c_void_p. */
PyObject *py_as_parameter(uint64_t pointer);

/* ---- module.c ------------------------------------------------------------------------------------------ */
/* Make a heap type, keep it in *out and export it. */
int py_type_add(PyObject *module, PyType_Spec *spec, PyTypeObject **out);
/* ISO C has no cast from a function to void *; the slots of types and modules need one. */
#define PY_SLOT(function) ((void *)(uintptr_t)(function))
#define PY_METHOD(function) ((PyCFunction)(void (*)(void))(function))

#endif
