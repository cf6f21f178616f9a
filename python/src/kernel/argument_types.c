/* argument_types.c: LocalMemory and RawArgument: arguments of a launch that no other type can express. */
#include "kernel/launch_args.h"

static PyObject *local_memory_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"nbytes", NULL};
    struct py_state *state = PyType_GetModuleState(type);
    PyObject *given;
    uint64_t nbytes;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:LocalMemory", names, &given) ||
        py_uint64(state, given, "nbytes", &nbytes))
        return NULL;
    if (!nbytes)
        return py_invalid(state, "LocalMemory: nbytes is 0, expected 1 or more");
    struct py_local_memory *self = PyObject_New(struct py_local_memory, state->local_memory_type);
    if (self)
        self->nbytes = (size_t)nbytes;
    return (PyObject *)self;
}

static PyObject *local_memory_repr(PyObject *self)
{
    return PyUnicode_FromFormat("gpuglue.LocalMemory(%zu)",
                                ((struct py_local_memory *)self)->nbytes);
}

static PyMemberDef local_memory_members[] = {
    {"nbytes", T_PYSSIZET, offsetof(struct py_local_memory, nbytes), READONLY,
     py_doc_LocalMemory_nbytes},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot local_memory_slots[] = {
    {Py_tp_new, PY_SLOT(local_memory_new)},
    {Py_tp_dealloc, PY_SLOT(py_object_free)},
    {Py_tp_repr, PY_SLOT(local_memory_repr)},
    {Py_tp_members, local_memory_members},
    {Py_tp_doc, (void *)(uintptr_t)py_doc_LocalMemory},
    {0, NULL},
};

static PyObject *raw_argument_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"bytes", NULL};
    struct py_state *state = PyType_GetModuleState(type);
    PyObject *object;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:RawArgument", names, &object))
        return NULL;
    PyObject *bytes = PyBytes_FromObject(object);
    if (!bytes && PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError,
                     "RawArgument takes bytes or another buffer, such as a NumPy scalar, got %R",
                     object);
    if (!bytes)
        return NULL;
    struct py_raw_argument *self = PyObject_New(struct py_raw_argument, state->raw_argument_type);
    if (!self) {
        Py_DECREF(bytes);
        return NULL;
    }
    self->bytes = bytes;
    return (PyObject *)self;
}

static void raw_argument_dealloc(PyObject *self)
{
    Py_DECREF(((struct py_raw_argument *)self)->bytes);
    py_object_free(self);
}

static PyType_Slot raw_argument_slots[] = {
    {Py_tp_new, PY_SLOT(raw_argument_new)},
    {Py_tp_dealloc, PY_SLOT(raw_argument_dealloc)},
    {Py_tp_doc, (void *)(uintptr_t)py_doc_RawArgument},
    {0, NULL},
};

int py_argument_types_add(PyObject *module, struct py_state *state)
{
    if (py_type_add(module, "gpuglue.LocalMemory", sizeof(struct py_local_memory),
                    Py_TPFLAGS_IMMUTABLETYPE, local_memory_slots, &state->local_memory_type))
        return -1;
    return py_type_add(module, "gpuglue.RawArgument", sizeof(struct py_raw_argument),
                       Py_TPFLAGS_IMMUTABLETYPE, raw_argument_slots, &state->raw_argument_type);
}
