/* local.c: gpuglue.local(nbytes): an argument that is memory which each block of a launch has to itself. */
#include "kernel.h"

#include <structmember.h>

static PyObject *local_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"nbytes", NULL};
    struct py_state *state = PyType_GetModuleState(type);
    PyObject *given;
    uint64_t nbytes;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:local", names, &given) ||
        py_uint64(state, given, "nbytes", &nbytes))
        return NULL;
    if (!nbytes)
        return py_invalid(state, "local memory of 0 bytes: expected 1 or more");
    struct py_local *self = PyObject_New(struct py_local, state->local_type);
    if (self)
        self->nbytes = (size_t)nbytes;
    return (PyObject *)self;
}

static void local_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *local_repr(PyObject *self)
{
    return PyUnicode_FromFormat("gpuglue.local(%zu)", ((struct py_local *)self)->nbytes);
}

static PyMemberDef members[] = {
    {"nbytes", T_PYSSIZET, offsetof(struct py_local, nbytes), READONLY, "Its size."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, PY_SLOT(local_new)},
    {Py_tp_dealloc, PY_SLOT(local_dealloc)},
    {Py_tp_repr, PY_SLOT(local_repr)},
    {Py_tp_members, members},
    {Py_tp_doc, "local(nbytes)\n--\n\n"
                "An argument of a kernel: memory which each block has to itself, where the image\n"
                "has such a parameter (OpenCL C's `local` pointers, on Level Zero)."},
    {0, NULL},
};

PyType_Spec py_local_spec = {
    .name = "gpuglue.local",
    .basicsize = sizeof(struct py_local),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
