/* py.h: what every file of python/src shares: the module's state and the helpers for types and calls.
 *
 * Rules of this directory: a call parses its arguments once, in C. A method that may wait or submit work
 * releases the GIL; what it uses meanwhile stays alive through a reference, through a count in an object that
 * can be closed, or because the caller holds the argument. The error record is copied before any Python call. */
#ifndef GPUGLUE_PY_H
#define GPUGLUE_PY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <gpuglue/gpuglue.h>

#include "docstrings.h" /* made of python/docstrings */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

/* Everything that lives as long as the module. */
struct py_state {
    PyObject *launch_options[4]; /* names of a launch's keywords, interned; kernel/call.c */
    PyTypeObject *stream_type, *array_type, *buffer_type, *event_type; /* first: used by launches */
    PyTypeObject *device_type, *timer_type, *flags_type, *module_type, *kernel_type,
        *raw_argument_type, *local_memory_type, *graph_type;
    PyTypeObject *backend_info_type, *memory_info_type, *pool_type, *pool_stats_type,
        *pointer_info_type, *ipc_type, *device_stats_type, *process_stats_type;
    PyObject *error, *out_of_memory, *invalid_argument, *backend_unavailable, *unsupported,
        *device_error, *device_lost, *fork_error, *communicator_error, *no_device_warning;
    PyObject *interface_keys[7]; /* of __cuda_array_interface__, in the order of cuda_interface.c */
    PyObject *allocator;         /* set_allocator(), or NULL for the pool */
    PyObject *callback_wait;     /* finish_callbacks of gpuglue/_waiting.py; NULL: none was added */
    PyObject *callback_errors;   /* its dict of callbacks whose error no wait has raised; or NULL */
    struct py_device **devices;  /* the one Python object of each gg_device */
    Py_ssize_t device_count;
    struct py_scope *scopes; /* open with-blocks of all threads */
    int captures;            /* open ones of gpuglue.capture */
    bool prepared; /* plugins and directories of this environment were passed to the core */
    bool backend_overridden;  /* use_backend() was called */
    bool drivers_initialised; /* a current device was resolved before */
    bool set_current_called;  /* some thread's device does not come from the default backend */
    bool warned;              /* NoDeviceWarning was issued, or does not apply */
};

/* The state of the module that defines the (final) type of @p self. */
static inline struct py_state *py_state_of(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

/* ISO C has no cast from a function to void *; the slots of types and modules need one. */
#define PY_SLOT(function) ((void *)(uintptr_t)(function))
#define PY_METHOD(function) ((PyCFunction)(void (*)(void))(function))
/* A function that takes its arguments as a C array, and its row in a table of methods. */
#define PY_FASTCALL(name) \
    PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
#define PY_FASTCALL_DEF(name, function, doc)                          \
    {                                                                 \
        name, PY_METHOD(function), METH_FASTCALL | METH_KEYWORDS, doc \
    }
/* Raise an exception with a message, as PyErr_Format does; the value is -1. */
#define PY_FAIL(...) (PyErr_Format(__VA_ARGS__), -1)
#define PY_NO_MEMORY() (PyErr_NoMemory(), -1)
/* Run one statement without the GIL. */
#define PY_WITHOUT_GIL(statement)                    \
    do {                                             \
        PyThreadState *thread = PyEval_SaveThread(); \
        statement;                                   \
        PyEval_RestoreThread(thread);                \
    } while (0)
/* For weak references to the objects of a type: the member that locates their list, alone or in a table. */
#define PY_WEAKLIST_MEMBER(type)                                                   \
    {                                                                              \
        "__weaklistoffset__", T_PYSSIZET, offsetof(type, weakrefs), READONLY, NULL \
    }
#define PY_WEAKLIST_MEMBERS(type) \
    (PyMemberDef[])               \
    {                             \
        PY_WEAKLIST_MEMBER(type), \
        {                         \
            NULL, 0, 0, 0, NULL   \
        }                         \
    }

/* ---- type.c ---- */

/* Create a heap type of objects of @p size bytes, store it in *out and export it. Py_TPFLAGS_DEFAULT is added. */
int py_type_add(PyObject *module, const char *name, size_t size, unsigned long flags,
                PyType_Slot *slots, PyTypeObject **out);
/* Free an object of a heap type: the last step of every tp_dealloc, or all of it. */
void py_object_free(PyObject *self);
/* The same for a named tuple type. */
int py_structseq_add(PyObject *module, const char *name, PyStructSequence_Desc *desc,
                     PyTypeObject **out);
/* A named tuple of @p values, whose references are taken over; NULL if any of them is NULL. */
PyObject *py_structseq_new(PyTypeObject *type, PyObject *const *values, Py_ssize_t count);

#endif
