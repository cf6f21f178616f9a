/* buffer_type.c: the type Buffer: its attributes, methods and slots. */
#include "base/foreign_names.h"
#include "base/owners.h"
#include "runtime/device.h"
#include "memory/alloc.h"
#include "memory/buffer.h"
#include "memory/pointer.h"

#include <stdio.h>
static void buffer_dealloc(PyObject *self)
{
    struct py_buffer *buffer = py_buffer_of(self);
    if (buffer->weakrefs)
        PyObject_ClearWeakRefs(self);
    gg_memory_release(buffer->memory);
    gg_memory_release(buffer->exposed);
    Py_XDECREF(buffer->stream);
    py_object_free(self);
    py_owners_drain();
}

/* ---- attributes ---- */

static PyObject *buffer_ptr(PyObject *self, void *Py_UNUSED(closure))
{
    gg_memory *memory = py_buffer_memory(self);
    return memory ? PyLong_FromVoidPtr(gg_memory_pointer(memory)) : NULL;
}

static PyObject *buffer_as_parameter(PyObject *self, void *Py_UNUSED(closure))
{
    gg_memory *memory = py_buffer_memory(self);
    return memory ? py_c_void_p((uintptr_t)gg_memory_pointer(memory)) : NULL;
}

static PyObject *buffer_nbytes(PyObject *self, void *Py_UNUSED(closure))
{
    gg_memory *memory = py_buffer_memory(self);
    return memory ? PyLong_FromSize_t(gg_memory_size(memory)) : NULL;
}

static PyObject *buffer_device(PyObject *self, void *Py_UNUSED(closure))
{
    gg_memory *memory = py_buffer_memory(self);
    return memory ? py_device_wrap(py_state_of(self), gg_memory_device(memory)) : NULL;
}

static PyObject *buffer_stream(PyObject *self, void *Py_UNUSED(closure))
{
    PyObject *stream = py_buffer_of(self)->stream;
    if (!py_buffer_memory(self))
        return NULL;
    return Py_NewRef(stream ? stream : Py_None);
}

static PyObject *buffer_kind(PyObject *self, void *Py_UNUSED(closure))
{
    gg_memory *memory = py_buffer_memory(self);
    return memory ? PyUnicode_FromString(py_kind_name(gg_memory_get_kind(memory))) : NULL;
}

static PyObject *buffer_numa_node(PyObject *self, void *Py_UNUSED(closure))
{
    gg_memory *memory = py_buffer_memory(self);
    const int32_t node = memory ? gg_memory_numa_node(memory) : -1;
    if (!memory)
        return NULL;
    return node < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(node);
}

static PyObject *buffer_repr(PyObject *self)
{
    gg_memory *memory = py_buffer_of(self)->memory;
    gg_device *device;
    char address[PY_ADDRESS_SIZE];
    if (!memory)
        return PyUnicode_FromString("<gpuglue.Buffer closed>");
    device = gg_memory_device(memory);
    py_format_address(address, gg_memory_pointer(memory));
    return PyUnicode_FromFormat("<gpuglue.Buffer %zu bytes %s %s:%d ptr=%s>",
                                gg_memory_size(memory), py_kind_name(gg_memory_get_kind(memory)),
                                gg_device_backend(device), (int)gg_device_ordinal(device), address);
}

/* ---- methods ---- */

static PyObject *buffer_close(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct py_buffer *buffer = py_buffer_of(self);
    gg_memory *memory = buffer->memory;
    buffer->memory = NULL;
    gg_memory_release(memory); /* exports and queued work hold references of their own */
    py_owners_drain();
    Py_RETURN_NONE;
}

static PyObject *buffer_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return py_buffer_memory(self) ? Py_NewRef(self) : NULL;
}

static PyObject *buffer_exit(PyObject *self, PyObject *const *Py_UNUSED(args),
                             Py_ssize_t Py_UNUSED(nargs))
{
    return buffer_close(self, NULL);
}

static PyObject *buffer_record_use(PyObject *self, PyObject *stream)
{
    gg_memory *memory = py_buffer_memory(self);
    if (!memory)
        return NULL;
    py_buffer_touch(self);
    return py_record_use(py_state_of(self), memory, stream);
}

static PyObject *buffer_release_captured(PyObject *self, PyObject *Py_UNUSED(unused))
{
    gg_memory *memory = py_buffer_memory(self);
    if (!memory)
        return NULL;
    gg_memory_release_captured(memory);
    Py_RETURN_NONE;
}

static PyMethodDef buffer_methods[] = {
    {"close", buffer_close, METH_NOARGS, py_doc_Buffer_close},
    {"record_use", buffer_record_use, METH_O, py_doc_Buffer_record_use},
    {"release_captured", buffer_release_captured, METH_NOARGS, py_doc_Buffer_release_captured},
    {"from_ptr", PY_METHOD(py_buffer_from_ptr), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     py_doc_Buffer_from_ptr},
    PY_FASTCALL_DEF("prefetch", py_buffer_prefetch, py_doc_Buffer_prefetch),
    PY_FASTCALL_DEF("advise", py_buffer_advise, py_doc_Buffer_advise),
    {"ipc_handle", py_buffer_ipc_handle, METH_NOARGS, py_doc_Buffer_ipc_handle},
    {"__enter__", buffer_enter, METH_NOARGS, py_doc_Buffer___enter__},
    {"__exit__", PY_METHOD(buffer_exit), METH_FASTCALL, py_doc_Buffer___exit__},
    PY_FASTCALL_DEF("__array__", py_buffer_array, py_doc_Buffer___array__),
    PY_FOREIGN_DIR,
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef buffer_attributes[] = {
    {"ptr", buffer_ptr, NULL, py_doc_Buffer_ptr, NULL},
    {"_as_parameter_", buffer_as_parameter, NULL, py_doc_Buffer__as_parameter_, NULL},
    {"nbytes", buffer_nbytes, NULL, py_doc_Buffer_nbytes, NULL},
    {"device", buffer_device, NULL, py_doc_Buffer_device, NULL},
    {"stream", buffer_stream, NULL, py_doc_Buffer_stream, NULL},
    {"kind", buffer_kind, NULL, py_doc_Buffer_kind, NULL},
    {"numa_node", buffer_numa_node, NULL, py_doc_Buffer_numa_node, NULL},
    {"__array_interface__", py_buffer_interface, NULL, py_doc_Buffer___array_interface__, NULL},
    PY_FOREIGN("free", "close()"),
    PY_FOREIGN("cpu", "copy(host_array, buffer)"),
    PY_FOREIGN("numpy", "copy(host_array, buffer)"),
    PY_FOREIGN("to", "copy(buffer_of_that_device, buffer)"),
    PY_FOREIGN("copy_to", "copy(target, buffer)"),
    PY_FOREIGN("copy_from", "copy(buffer, source)"),
    PY_FOREIGN("copy_from_host", "copy(buffer, source)"),
    PY_FOREIGN("copy_to_host", "copy(host_array, buffer)"),
    PY_FOREIGN("size", "nbytes"),
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot buffer_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)py_doc_Buffer},
    {Py_tp_dealloc, PY_SLOT(buffer_dealloc)},
    {Py_tp_repr, PY_SLOT(buffer_repr)},
    {Py_tp_methods, buffer_methods},
    {Py_tp_getset, buffer_attributes},
    {Py_tp_members, PY_WEAKLIST_MEMBERS(struct py_buffer)},
    {Py_bf_getbuffer, PY_SLOT(py_buffer_export)},
    {Py_bf_releasebuffer, PY_SLOT(py_buffer_unexport)},
    {0, NULL},
};

int py_buffer_add(PyObject *module, struct py_state *state)
{
    if (py_type_add(module, "gpuglue.Buffer", sizeof(struct py_buffer),
                    Py_TPFLAGS_DISALLOW_INSTANTIATION, buffer_slots, &state->buffer_type))
        return -1;
    /* Without this, NumPy's operators would compute on the host through the buffer protocol. */
    return PyObject_SetAttrString((PyObject *)state->buffer_type, "__array_ufunc__", Py_None);
}
