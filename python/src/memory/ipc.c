/* ipc.c: IpcHandle: device memory that another process opens. */
#include "base/owners.h"
#include "runtime/registry.h"
#include "memory/buffer.h"

struct py_ipc {
    PyObject_HEAD struct gg_ipc_handle handle;
};

static const struct gg_ipc_handle *ipc_handle(PyObject *self)
{
    return &((struct py_ipc *)self)->handle;
}

static PyObject *ipc_wrap(PyTypeObject *type, const struct gg_ipc_handle *handle)
{
    struct py_ipc *self = PyObject_New(struct py_ipc, type);
    if (self)
        self->handle = *handle;
    return (PyObject *)self;
}

/* Waits for tracked work: nothing orders the other process after it. */
PyObject *py_buffer_ipc_handle(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct py_state *state = py_state_of(self);
    struct gg_ipc_handle handle = {.struct_size = sizeof handle};
    gg_memory *memory = py_buffer_memory(self);
    if (!memory)
        return NULL;
    gg_memory_retain(memory); /* the Buffer may be closed meanwhile */
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_ipc_export(memory, &handle);
    if (!status)
        status = gg_memory_wait(memory);
    PyEval_RestoreThread(thread);
    py_check(state, status);
    gg_memory_release(memory);
    return status ? NULL : ipc_wrap(state->ipc_type, &handle);
}

/* ---- construction, opening ---- */

static PyObject *ipc_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"data", NULL};
    const char *data;
    Py_ssize_t size;
    struct gg_ipc_handle handle;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y#:IpcHandle", names, &data, &size))
        return NULL;
    if (size != (Py_ssize_t)sizeof handle)
        return py_invalid(PyType_GetModuleState(type),
                          "an IpcHandle has %zu bytes, as bytes(handle) returns them; got %zd",
                          sizeof handle, size);
    memcpy(&handle, data, sizeof handle);
    return ipc_wrap(type, &handle);
}

static PyObject *ipc_open(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct py_state *state = py_state_of(self);
    const struct gg_ipc_handle handle = *ipc_handle(self);
    gg_memory *memory = NULL;
    if (py_registry_prepare(state))
        return NULL;
    py_owners_drain();
    gg_status status;
    PY_WITHOUT_GIL(status = gg_ipc_open(&handle, &memory));
    return py_check(state, status) ? NULL : py_buffer_wrap(state, memory);
}

/* ---- as bytes ---- */

static PyObject *ipc_bytes(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return PyBytes_FromStringAndSize((const char *)ipc_handle(self), sizeof(struct gg_ipc_handle));
}

static PyObject *ipc_reduce(PyObject *self, PyObject *unused)
{
    PyObject *bytes = ipc_bytes(self, unused);
    return bytes ? Py_BuildValue("(O(N))", Py_TYPE(self), bytes) : NULL;
}

static PyObject *ipc_compare(PyObject *self, PyObject *other, int operation)
{
    if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(self) != Py_TYPE(other))
        return Py_NewRef(Py_NotImplemented);
    const bool equal = !memcmp(ipc_handle(self), ipc_handle(other), sizeof(struct gg_ipc_handle));
    return PyBool_FromLong(equal == (operation == Py_EQ));
}

static Py_hash_t ipc_hash(PyObject *self)
{
    PyObject *bytes = ipc_bytes(self, NULL);
    const Py_hash_t hash = bytes ? PyObject_Hash(bytes) : -1;
    Py_XDECREF(bytes);
    return hash;
}

/* ---- attributes ---- */

static PyObject *ipc_backend(PyObject *self, void *Py_UNUSED(closure))
{
    char name[sizeof ipc_handle(self)->backend + 1] = "";
    memcpy(name, ipc_handle(self)->backend, sizeof name - 1);
    return PyUnicode_DecodeLatin1(name, (Py_ssize_t)strlen(name), NULL);
}

static PyObject *ipc_uuid(PyObject *self, void *Py_UNUSED(closure))
{
    return py_uuid(ipc_handle(self)->uuid);
}

static PyObject *ipc_nbytes(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(ipc_handle(self)->nbytes);
}

static PyObject *ipc_offset(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(ipc_handle(self)->offset);
}

static PyObject *ipc_repr(PyObject *self)
{
    PyObject *backend = ipc_backend(self, NULL), *uuid = ipc_uuid(self, NULL), *text = NULL;
    if (backend && uuid)
        text = PyUnicode_FromFormat("<gpuglue.IpcHandle %llu bytes %U device %U>",
                                    (unsigned long long)ipc_handle(self)->nbytes, backend, uuid);
    Py_XDECREF(backend);
    Py_XDECREF(uuid);
    return text;
}

static PyMethodDef methods[] = {
    {"open", ipc_open, METH_NOARGS, py_doc_IpcHandle_open},
    {"__bytes__", ipc_bytes, METH_NOARGS, py_doc_IpcHandle___bytes__},
    {"__reduce__", ipc_reduce, METH_NOARGS, py_doc_IpcHandle___reduce__},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"backend", ipc_backend, NULL, py_doc_IpcHandle_backend, NULL},
    {"device_uuid", ipc_uuid, NULL, py_doc_IpcHandle_device_uuid, NULL},
    {"nbytes", ipc_nbytes, NULL, py_doc_IpcHandle_nbytes, NULL},
    {"offset", ipc_offset, NULL, py_doc_IpcHandle_offset, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)py_doc_IpcHandle},
    {Py_tp_new, PY_SLOT(ipc_new)},
    {Py_tp_dealloc, PY_SLOT(py_object_free)},
    {Py_tp_repr, PY_SLOT(ipc_repr)},
    {Py_tp_hash, PY_SLOT(ipc_hash)},
    {Py_tp_richcompare, PY_SLOT(ipc_compare)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};

int py_ipc_add(PyObject *module, struct py_state *state)
{
    return py_type_add(module, "gpuglue.IpcHandle", sizeof(struct py_ipc), Py_TPFLAGS_IMMUTABLETYPE,
                       slots, &state->ipc_type);
}
