/* ipc.c: IpcHandle: device memory of one process for another. */
#include "memory.h"

#include <stdio.h>
#include <string.h>

struct py_ipc {
    PyObject_HEAD struct gg_ipc_handle handle;
};

static const struct gg_ipc_handle *handle_of(PyObject *self)
{
    return &((struct py_ipc *)self)->handle;
}

static PyObject *wrap(PyTypeObject *type, const struct gg_ipc_handle *handle)
{
    struct py_ipc *self = PyObject_New(struct py_ipc, type);
    if (self)
        self->handle = *handle;
    return (PyObject *)self;
}

/* The work that gpuglue knows of is done first: nothing will order the other process behind it. */
PyObject *py_buffer_ipc_handle(PyObject *self, PyObject *unused)
{
    struct py_state *state = py_state_of(self);
    struct gg_ipc_handle handle = {.struct_size = sizeof handle};
    gg_memory *memory = py_buffer_memory(self);
    (void)unused;
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
    return status ? NULL : wrap(state->ipc_type, &handle);
}

/* ---- making, opening ---- */

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
                          "an IpcHandle has %zu bytes, as bytes(handle) gives them; got %zd",
                          sizeof handle, size);
    memcpy(&handle, data, sizeof handle);
    return wrap(type, &handle);
}

static PyObject *ipc_open(PyObject *self, PyObject *unused)
{
    struct py_state *state = py_state_of(self);
    const struct gg_ipc_handle handle = *handle_of(self);
    gg_memory *memory = NULL;
    (void)unused;
    if (py_prepare(state))
        return NULL;
    py_owners_drain();
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_ipc_open(&handle, &memory);
    PyEval_RestoreThread(thread);
    return py_check(state, status) ? NULL : py_buffer_wrap(state, memory);
}

/* ---- as bytes ---- */

static PyObject *ipc_bytes(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBytes_FromStringAndSize((const char *)handle_of(self), sizeof(struct gg_ipc_handle));
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
    const bool equal = !memcmp(handle_of(self), handle_of(other), sizeof(struct gg_ipc_handle));
    return PyBool_FromLong(equal == (operation == Py_EQ));
}

static Py_hash_t ipc_hash(PyObject *self)
{
    PyObject *bytes = ipc_bytes(self, NULL);
    const Py_hash_t hash = bytes ? PyObject_Hash(bytes) : -1;
    Py_XDECREF(bytes);
    return hash;
}

/* ---- what it says ---- */

static void uuid_text(const uint8_t uuid[16], char text[37])
{
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *text++ = '-';
        text += snprintf(text, 3, "%02x", uuid[i]);
    }
}

static PyObject *ipc_backend(PyObject *self, void *closure)
{
    char name[sizeof handle_of(self)->backend + 1] = "";
    (void)closure;
    memcpy(name, handle_of(self)->backend, sizeof name - 1);
    return PyUnicode_DecodeLatin1(name, (Py_ssize_t)strlen(name), NULL);
}

static PyObject *ipc_uuid(PyObject *self, void *closure)
{
    char text[37];
    (void)closure;
    uuid_text(handle_of(self)->uuid, text);
    return PyUnicode_FromString(text);
}

static PyObject *ipc_nbytes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(handle_of(self)->nbytes);
}

static PyObject *ipc_offset(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(handle_of(self)->offset);
}

static PyObject *ipc_repr(PyObject *self)
{
    char text[37], nbytes[24];
    PyObject *backend = ipc_backend(self, NULL);
    uuid_text(handle_of(self)->uuid, text);
    snprintf(nbytes, sizeof nbytes, "%llu", (unsigned long long)handle_of(self)->nbytes);
    PyObject *shown = backend ? PyUnicode_FromFormat("<gpuglue.IpcHandle %s bytes %U device %s>",
                                                     nbytes, backend, text)
                              : NULL;
    Py_XDECREF(backend);
    return shown;
}

static void ipc_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyDoc_STRVAR(
    ipc_doc,
    "IpcHandle(data)\n--\n\n"
    "Device memory for another process of this machine, from Buffer.ipc_handle(). It can be "
    "pickled,\n"
    "and bytes(handle) are all of it. The exporter keeps its Buffer until the others have closed\n"
    "theirs: what it closes may be given to other work of its own.");

static PyMethodDef methods[] = {
    {"open", ipc_open, METH_NOARGS,
     "open($self)\n--\n\n"
     "The same memory in this process, as a Buffer. Not in the process that made the handle."},
    {"__bytes__", ipc_bytes, METH_NOARGS, "__bytes__($self)\n--\n\nAll of the handle."},
    {"__reduce__", ipc_reduce, METH_NOARGS, "__reduce__($self)\n--\n\nFor pickle."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"backend", ipc_backend, NULL, "Name of the backend, such as 'cuda'.", NULL},
    {"device_uuid", ipc_uuid, NULL, "UUID of the device that has the memory.", NULL},
    {"nbytes", ipc_nbytes, NULL, "Bytes of the memory.", NULL},
    {"offset", ipc_offset, NULL,
     "Where it begins in the driver's block, in bytes; the other process maps the block.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)ipc_doc},
    {Py_tp_new, PY_SLOT(ipc_new)},
    {Py_tp_dealloc, PY_SLOT(ipc_dealloc)},
    {Py_tp_repr, PY_SLOT(ipc_repr)},
    {Py_tp_hash, PY_SLOT(ipc_hash)},
    {Py_tp_richcompare, PY_SLOT(ipc_compare)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "gpuglue.IpcHandle",
    .basicsize = sizeof(struct py_ipc),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int py_ipc_add(PyObject *module, struct py_state *state)
{
    return py_type_add(module, &spec, &state->ipc_type);
}
