/* kernel.h: what the files about Module and Kernel share. */
#ifndef GPUGLUE_PY_KERNEL_H
#define GPUGLUE_PY_KERNEL_H

#include "py.h"

struct py_module {
    PyObject_HEAD gg_module *module; /* NULL: closed */
    PyObject *names;                 /* {expression: name} of a compiled image, or NULL */
    PyObject *weakrefs;
};

struct py_kernel {
    PyObject_HEAD
        /* of vectorcall: its place is told to Python by a member */
        PyObject *(*call)(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);
    struct py_state *state; /* a load here, and a call in py_state_of */
    gg_kernel *kernel;
    PyObject *module;                      /* the Module */
    int32_t count;                         /* of parameters; -1: not known */
    bool bound;                            /* by bind(): the types are those below */
    const struct gg_parameter *parameters; /* the kernel's, or own */
    struct gg_parameter *own;
    struct gg_launch shape; /* where a call gives no other */
    bool has_grid, has_block;
    PyObject *weakrefs;
};

/* pack.c: the arguments of a launch, laid out. Most calls need no allocation. */
enum { PY_PACK_FEW = 24 };
struct py_pack {
    struct gg_launch launch; /* py_pack sets what is about arguments and memories */
    Py_ssize_t count;
    gg_stream *stream;    /* of the launch, borrowed; NULL: the current one */
    union py_slot *slots; /* a value of at most 16 bytes each */
    const void **arguments;
    size_t *sizes;
    gg_memory **memories; /* the arrays', which the caller of a launch holds, and those in held */
    gg_memory **held;     /* a reference each: a Buffer can be closed meanwhile */
    size_t held_count;
    Py_buffer *views; /* what longer values lie in */
    size_t view_count;
    PyObject **owned; /* arrays that were made of foreign ones */
    size_t owned_count;
    void *block; /* NULL: all is in few */
    union py_slot {
        unsigned char bytes[16];
        uint64_t word;
        double number;
        void *pointer;
    } few_slots[PY_PACK_FEW];
    const void *few_arguments[PY_PACK_FEW];
    size_t few_sizes[PY_PACK_FEW];
    gg_memory *few_memories[PY_PACK_FEW], *few_held[PY_PACK_FEW];
};
int py_pack(struct py_pack *pack, const struct py_kernel *kernel, PyObject *const *args,
            Py_ssize_t count, gg_stream *stream);
void py_pack_release(struct py_pack *pack);

/* ctypes_kind.c: 1 for a value of ctypes, else 0, or -1; @p kind is a scalar's as NumPy has it, else 0. */
int py_ctypes_kind(PyObject *object, char *kind);

/* kernel_foreign.c: an array of ours over another library's memory; @p stream, if any, waits for what that
 * library has pending. TypeError for memory of the host. */
PyObject *py_kernel_foreign(struct py_state *state, gg_device *device, gg_stream *stream,
                            PyObject *object);

/* kernel_module.c: gpuglue.raw(bytes): bytes that are an argument as they are. */
extern PyType_Spec py_raw_spec;
struct py_raw {
    PyObject_HEAD PyObject *bytes;
};

/* kernel.c */
extern PyType_Spec py_kernel_spec;
/* kernel_call.c: with the arguments as vectorcall gives them, and as a tuple and a dict */
int py_kernel_call_add(struct py_state *state);
PyObject *py_kernel_call(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *kwnames);
PyObject *py_kernel_call_tuple(PyObject *object, PyObject *args, PyObject *kwargs);
PyObject *py_parameters(const struct gg_parameter *parameters, int32_t count);
PyObject *py_kernel_wrap(struct py_state *state, gg_kernel *kernel, PyObject *module);
/* raw_bytes.c */
extern PyMethodDef py_raw_functions[];
/* local.c: gpuglue.local(bytes): memory that each block of a launch has to itself. */
extern PyType_Spec py_local_spec;
struct py_local {
    PyObject_HEAD size_t nbytes;
};
/* signature.c: "Pif", or a sequence of codes and dtypes: an array of PyMem_Malloc. */
int py_signature(struct py_state *state, PyObject *signature, struct gg_parameter **out,
                 int32_t *count);
/* An int or a sequence of at most three of them; the rest is 1. */
int py_dims(struct py_state *state, PyObject *object, const char *what, uint32_t out[3]);

#endif
