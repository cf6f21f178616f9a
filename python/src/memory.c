/* memory.c: Buffer, a block of device or page-locked memory, and what makes one. */
#include "memory.h"
#include "layout.h"
#include "numpy_bridge.h"
#include "place.h"

#include <stdio.h>
#include <structmember.h>

static struct py_buffer *as_buffer(PyObject *self)
{
    return (struct py_buffer *)self;
}

gg_memory *py_buffer_memory(PyObject *self)
{
    gg_memory *memory = as_buffer(self)->memory;
    if (!memory)
        py_closed(py_state_of(self), "Buffer");
    return memory;
}

void py_buffer_touch(PyObject *self)
{
    as_buffer(self)->touched = true;
}

PyObject *py_buffer_wrap(struct py_state *state, gg_memory *memory)
{
    struct py_buffer *buffer = PyObject_New(struct py_buffer, state->buffer_type);
    if (!buffer) {
        gg_memory_release(memory);
        return NULL;
    }
    buffer->memory = memory;
    buffer->exposed = NULL;
    buffer->stream = NULL;
    buffer->touched = false;
    buffer->weakrefs = NULL;
    return (PyObject *)buffer;
}

PyObject *py_buffer_over(struct py_state *state, gg_memory *memory)
{
    PyObject *self = py_buffer_wrap(state, memory);
    if (self)
        py_buffer_touch(self);
    return self;
}

static void buffer_dealloc(PyObject *self)
{
    struct py_buffer *buffer = as_buffer(self);
    PyTypeObject *type = Py_TYPE(self);
    if (buffer->weakrefs)
        PyObject_ClearWeakRefs(self);
    gg_memory_release(buffer->memory);
    gg_memory_release(buffer->exposed);
    Py_XDECREF(buffer->stream);
    PyObject_Free(self);
    Py_DECREF(type); /* instances of a heap type own a reference to it */
}

/* ---- attributes ------------------------------------------------------------------------------ */

static PyObject *buffer_ptr(PyObject *self, void *closure)
{
    gg_memory *memory = py_buffer_memory(self);
    (void)closure;
    return memory ? PyLong_FromVoidPtr(gg_memory_pointer(memory)) : NULL;
}

static PyObject *buffer_as_parameter(PyObject *self, void *closure)
{
    gg_memory *memory = py_buffer_memory(self);
    (void)closure;
    return memory ? py_as_parameter((uintptr_t)gg_memory_pointer(memory)) : NULL;
}

static PyObject *buffer_nbytes(PyObject *self, void *closure)
{
    gg_memory *memory = py_buffer_memory(self);
    (void)closure;
    return memory ? PyLong_FromSize_t(gg_memory_size(memory)) : NULL;
}

static PyObject *buffer_device(PyObject *self, void *closure)
{
    gg_memory *memory = py_buffer_memory(self);
    (void)closure;
    return memory ? py_device_wrap(py_state_of(self), gg_memory_device(memory)) : NULL;
}

static PyObject *buffer_stream(PyObject *self, void *closure)
{
    PyObject *stream = as_buffer(self)->stream;
    (void)closure;
    if (!py_buffer_memory(self))
        return NULL;
    return Py_NewRef(stream ? stream : Py_None);
}

const char *py_kind_name(enum gg_memory_kind kind)
{
    switch (kind) {
    case GG_MEMORY_HOST:
        return "host";
    case GG_MEMORY_DEVICE:
        return "device";
    case GG_MEMORY_PINNED:
        return "pinned";
    case GG_MEMORY_MANAGED:
        return "managed";
    }
    return "unknown";
}

static PyObject *buffer_kind(PyObject *self, void *closure)
{
    gg_memory *memory = py_buffer_memory(self);
    (void)closure;
    return memory ? PyUnicode_FromString(py_kind_name(gg_memory_kind_of(memory))) : NULL;
}

/* PyUnicode_FromFormat writes no 64-bit hexadecimals before 3.12, and %p as "(nil)" for 0. */
void py_address(char text[PY_ADDRESS_SIZE], const void *pointer, size_t offset)
{
    snprintf(text, PY_ADDRESS_SIZE, "0x%zx", pointer ? (size_t)(uintptr_t)pointer + offset : 0);
}

static PyObject *buffer_repr(PyObject *self)
{
    gg_memory *memory = as_buffer(self)->memory;
    gg_device *device;
    char address[PY_ADDRESS_SIZE];
    if (!memory)
        return PyUnicode_FromString("<gpuglue.Buffer closed>");
    device = gg_memory_device(memory);
    py_address(address, gg_memory_pointer(memory), 0);
    return PyUnicode_FromFormat("<gpuglue.Buffer %zu bytes %s %s:%d ptr=%s>",
                                gg_memory_size(memory), py_kind_name(gg_memory_kind_of(memory)),
                                gg_device_backend(device), (int)gg_device_ordinal(device), address);
}

/* ---- methods --------------------------------------------------------------------------------- */

static PyObject *buffer_close(PyObject *self, PyObject *unused)
{
    struct py_buffer *buffer = as_buffer(self);
    gg_memory *memory = buffer->memory;
    (void)unused;
    buffer->memory = NULL;
    gg_memory_release(memory); /* exports and queued work hold references of their own */
    Py_RETURN_NONE;
}

static PyObject *buffer_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return py_buffer_memory(self) ? Py_NewRef(self) : NULL;
}

static PyObject *buffer_exit(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)args;
    (void)nargs;
    return buffer_close(self, NULL);
}

PyObject *py_record_use(struct py_state *state, gg_memory *memory, PyObject *object)
{
    gg_stream *stream = NULL;
    gg_status status;
    if (object == Py_None)
        return PyErr_Format(PyExc_TypeError, "record_use needs a stream, got None");
    gg_memory_retain(memory); /* a Buffer may be closed meanwhile, by the stream's own code too */
    if (py_stream_arg(state, object, gg_memory_device(memory), &stream)) {
        gg_memory_release(memory);
        return NULL;
    }
    PyThreadState *thread = PyEval_SaveThread();
    status = gg_memory_record_use(memory, stream);
    PyEval_RestoreThread(thread);
    py_check(state, status);
    gg_memory_release(memory);
    gg_stream_release(stream);
    return status ? NULL : Py_NewRef(Py_None);
}

static PyObject *buffer_record_use(PyObject *self, PyObject *stream)
{
    gg_memory *memory = py_buffer_memory(self);
    if (!memory)
        return NULL;
    py_buffer_touch(self);
    return py_record_use(py_state_of(self), memory, stream);
}

static PyObject *buffer_release_captured(PyObject *self, PyObject *unused)
{
    gg_memory *memory = py_buffer_memory(self);
    (void)unused;
    if (!memory)
        return NULL;
    gg_memory_release_captured(memory);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    buffer_doc,
    "A block of device or page-locked memory; made by alloc() and alloc_pinned().\n\n"
    "ctypes takes it as a pointer. Page-locked memory is also open to the host through the\n"
    "buffer protocol: numpy.asarray(buffer), memoryview(buffer). close(), or leaving a with\n"
    "block, makes it unusable; the memory itself goes back when the last view of it and the\n"
    "queued work are gone.");

static PyMethodDef buffer_methods[] = {
    {"close", buffer_close,
     METH_NOARGS, "close($self)\n--\n\nGive the memory back as soon as nothing uses it. Never waits; idempotent."},
    {"record_use", buffer_record_use, METH_O,
     "record_use($self, stream, /)\n--\n\n"
     "Announce work on this memory that gpuglue did not submit: all that stream has now."},
    {"release_captured", buffer_release_captured, METH_NOARGS,
     "release_captured($self)\n--\n\n"
     "Say that no captured graph that used this memory will run again, so that it may be freed."},
    {"from_ptr", PY_METHOD(py_buffer_from_ptr), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     "from_ptr($type, ptr, nbytes, device=None, *, owner=None)\n--\n\n"
     "A Buffer over memory that something else owns. The driver is asked what it is; owner is "
     "kept\n"
     "until the Buffer is closed and the queued work is done."},
    {"prefetch", PY_METHOD(py_buffer_prefetch), METH_FASTCALL | METH_KEYWORDS,
     "prefetch($self, device=None, stream=None)\n--\n\n"
     "Move managed memory to its device, or to 'host', in the order of a stream."},
    {"advise", PY_METHOD(py_buffer_advise), METH_FASTCALL | METH_KEYWORDS,
     "advise($self, advice, device=None)\n--\n\n"
     "Say how managed memory will be used: 'read_mostly', 'preferred_location', 'accessed_by', by\n"
     "its device or by 'host'."},
    {"ipc_handle", py_buffer_ipc_handle, METH_NOARGS,
     "ipc_handle($self)\n--\n\n"
     "An IpcHandle by which another process opens this device memory. Waits for the work on it "
     "that\n"
     "gpuglue knows of. UnsupportedError where the backend has no such handles."},
    {"__enter__", buffer_enter, METH_NOARGS, "__enter__($self)\n--\n\nThe buffer itself."},
    {"__exit__", PY_METHOD(buffer_exit), METH_FASTCALL, "__exit__($self, *args)\n--\n\nclose()."},
    {"__array__", PY_METHOD(py_buffer_array), METH_FASTCALL | METH_KEYWORDS,
     "__array__($self, dtype=None, copy=None)\n--\n\n"
     "Page-locked memory as an array of bytes; TypeError for device memory."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef buffer_attributes[] = {
    {"ptr", buffer_ptr, NULL, "Address of the first byte; 0 where there are none.", NULL},
    {"_as_parameter_", buffer_as_parameter, NULL, "The address as ctypes wants it.", NULL},
    {"nbytes", buffer_nbytes, NULL, "Size in bytes.", NULL},
    {"device", buffer_device, NULL, "The Device it belongs to.", NULL},
    {"stream", buffer_stream, NULL, "The Stream it was allocated for, or None.", NULL},
    {"kind", buffer_kind, NULL, "'device', 'pinned' or 'managed'.", NULL},
    {"__array_interface__", py_buffer_interface, NULL,
     "NumPy's description of page-locked memory; AttributeError for device memory.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef buffer_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct py_buffer, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot buffer_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)buffer_doc},
    {Py_tp_dealloc, PY_SLOT(buffer_dealloc)},
    {Py_tp_repr, PY_SLOT(buffer_repr)},
    {Py_tp_methods, buffer_methods},
    {Py_tp_getset, buffer_attributes},
    {Py_tp_members, buffer_members},
    {Py_bf_getbuffer, PY_SLOT(py_buffer_export)},
    {Py_bf_releasebuffer, PY_SLOT(py_buffer_unexport)},
    {0, NULL},
};

static PyType_Spec buffer_spec = {
    .name = "gpuglue.Buffer",
    .basicsize = sizeof(struct py_buffer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = buffer_slots,
};

int py_memory_add(PyObject *module, struct py_state *state)
{
    if (py_type_add(module, &buffer_spec, &state->buffer_type))
        return -1;
    /* NumPy's operators would otherwise compute silently over the buffer protocol. */
    if (PyObject_SetAttrString((PyObject *)state->buffer_type, "__array_ufunc__", Py_None))
        return -1;
    return PyModule_AddFunctions(module, py_alloc_functions);
}
