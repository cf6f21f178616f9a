/* kernel.h: Kernel. */
#ifndef GPUGLUE_PY_KERNEL_H
#define GPUGLUE_PY_KERNEL_H

#include "base/arguments.h"
#include "kernel/launch_plan.h"

struct py_kernel {
    PyObject_HEAD
        /* vectorcall; its offset is a member of the type */
        PyObject *(*call)(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);
    struct py_state *state; /* one load, where py_state_of is a call */
    gg_kernel *kernel;
    PyObject *module;                      /* the Module */
    int32_t count;                         /* of parameters; -1: not known */
    bool bound;                            /* by bind(): the types are those below */
    const struct gg_parameter *parameters; /* the kernel's, or own */
    struct gg_parameter *own;
    struct py_plan *plan;   /* of the parameters; NULL: they are not known */
    const size_t *sizes;    /* of the parameters, if there is a plan: part of its memory */
    struct gg_launch shape; /* defaults of a call */
    bool has_grid, has_block;
    PyObject *weakrefs;
};

static inline struct py_kernel *py_kernel_of(PyObject *self)
{
    return (struct py_kernel *)self;
}

int py_kernel_add(PyObject *module, struct py_state *state);

/* ---- kernel.c ---- */

/* A Kernel object; retains the kernel. @p own: the parameters that replace the kernel's, from PyMem_Malloc and taken
 * over, or NULL. NULL with an exception. */
struct py_kernel *py_kernel_new(struct py_state *state, gg_kernel *kernel, PyObject *module,
                                struct gg_parameter *own, int32_t count);
/* ((offset, size, kind), …), or None for a count below 0. */
PyObject *py_kernel_parameters(const struct gg_parameter *parameters, int32_t count);

/* ---- call.c: as vectorcall passes arguments, and as a tuple and a dict ---- */

int py_kernel_call_add(struct py_state *state);
PyObject *py_kernel_call(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *kwnames);
PyObject *py_kernel_call_tuple(PyObject *object, PyObject *args, PyObject *kwargs);

/* ---- signature.c ---- */

/* "Pif", or a sequence of codes and dtypes: an array from PyMem_Malloc. */
int py_signature(struct py_state *state, PyObject *signature, struct gg_parameter **out,
                 int32_t *count);
/* An int or a sequence of at most three of them; the rest is 1. */
int py_launch_dims(struct py_state *state, PyObject *object, const char *what, uint32_t out[3]);

#endif
