/* kernel.c: the Python object of a kernel. */
#include "kernel/kernel.h"

struct py_kernel *py_kernel_new(struct py_state *state, gg_kernel *kernel, PyObject *module,
                                struct gg_parameter *own, int32_t count)
{
    struct py_kernel *self = PyObject_New(struct py_kernel, state->kernel_type);
    if (!self) {
        PyMem_Free(own);
        return NULL;
    }
    gg_kernel_retain(kernel);
    self->call = py_kernel_call;
    self->state = state;
    self->kernel = kernel;
    self->module = Py_NewRef(module);
    self->count = own ? count : gg_kernel_parameter_count(kernel);
    self->bound = own != NULL;
    self->parameters = own ? own : gg_kernel_parameters(kernel);
    self->own = own;
    self->plan = NULL;
    self->shape = (struct gg_launch){.struct_size = sizeof self->shape};
    self->has_grid = self->has_block = false;
    self->weakrefs = NULL;
    if (self->count > 0 && !(self->plan = py_plan_make(self->parameters, self->count, &self->sizes)))
        Py_CLEAR(self);
    return self;
}

PyObject *py_kernel_parameters(const struct gg_parameter *parameters, int32_t count)
{
    static const char *const kinds[] = {"unknown", "signed",  "unsigned", "integer",
                                        "float",   "pointer", "bytes",    "local"};
    if (count < 0)
        Py_RETURN_NONE;
    PyObject *all = PyTuple_New(count);
    for (int32_t i = 0; all && i < count; i++) {
        const uint32_t kind = parameters[i].kind <= GG_PARAMETER_LOCAL ? parameters[i].kind : 0;
        PyObject *one = Py_BuildValue("(kks)", (unsigned long)parameters[i].offset,
                                      (unsigned long)parameters[i].size, kinds[kind]);
        if (!one || PyTuple_SetItem(all, i, one))
            Py_CLEAR(all);
    }
    return all;
}
