/* device_type.c: the type Device: its attributes, methods and slots. */
#include "base/foreign_names.h"
#include "base/reports.h"
#include "runtime/device.h"
#include "runtime/pool.h"
#include "runtime/registry.h"
#include "runtime/scope.h"
#include "runtime/stream.h"

/* ---- construction ---- */

static PyObject *device_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"device", "pci", "uuid", NULL};
    struct py_state *state = PyType_GetModuleState(type);
    PyObject *name = Py_None, *pci = Py_None, *uuid = Py_None;
    gg_device *device;
    int failed;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$OO:Device", names, &name, &pci, &uuid))
        return NULL;
    if ((name != Py_None) + (pci != Py_None) + (uuid != Py_None) > 1)
        return py_invalid(state, "Device takes only one of: a name or ordinal, pci=, uuid=");
    if (pci != Py_None)
        failed = py_device_by_address(state, "pci", pci, &device);
    else if (uuid != Py_None)
        failed = py_device_by_address(state, "uuid", uuid, &device);
    else
        failed = py_device_arg(state, name, &device);
    return failed ? NULL : py_device_wrap(state, device);
}

static gg_device *device_of(PyObject *self)
{
    return ((struct py_device *)self)->device;
}

static PyObject *device_for_local_rank(PyObject *type, PyObject *args)
{
    struct py_state *state = PyType_GetModuleState((PyTypeObject *)type);
    const char *backend = NULL;
    int32_t count = 0;
    gg_device *device = NULL;
    if (!PyArg_ParseTuple(args, "|z:for_local_rank", &backend) || py_registry_prepare(state))
        return NULL;
    long rank = py_local_rank(state);
    if (rank < 0)
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_device_count(backend, &count);
    if (!status)
        status = gg_device_get(backend, count > 0 ? (int32_t)(rank % count) : 0, &device);
    PyEval_RestoreThread(thread);
    if (status)
        return py_raise(state, status);
    if (!backend && py_warn_no_device(state))
        return NULL;
    return py_device_wrap(state, device);
}

static PyObject *device_from_torch(PyObject *Py_UNUSED(type), PyObject *given)
{
    PyObject *module = PyImport_ImportModule("gpuglue._sycl"), *device = NULL;
    if (module)
        device = PyObject_CallMethod(module, "from_torch", "O", given);
    Py_XDECREF(module);
    return device;
}

/* ---- attributes ---- */

static int device_info(PyObject *self, struct gg_device_info *info)
{
    *info = (struct gg_device_info){.struct_size = sizeof *info};
    return py_check(py_state_of(self), gg_device_info(device_of(self), info));
}

/* name, arch and pci_bus_id; the closure is the offset of the text. */
static PyObject *device_text(PyObject *self, void *offset)
{
    struct gg_device_info info;
    if (device_info(self, &info))
        return NULL;
    const char *text = (const char *)&info + (uintptr_t)offset;
    return text[0] ? py_str(text) : Py_NewRef(Py_None);
}

static PyObject *device_uuid(PyObject *self, void *Py_UNUSED(unused))
{
    struct gg_device_info info;
    if (device_info(self, &info))
        return NULL;
    return info.flags & GG_DEVICE_HAS_UUID ? py_uuid(info.uuid) : Py_NewRef(Py_None);
}

static PyObject *device_numa_node(PyObject *self, void *Py_UNUSED(unused))
{
    struct gg_device_info info;
    if (device_info(self, &info))
        return NULL;
    return info.numa_node < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(info.numa_node);
}

static PyObject *device_total_memory(PyObject *self, void *Py_UNUSED(unused))
{
    struct gg_device_info info;
    return device_info(self, &info) ? NULL : PyLong_FromUnsignedLongLong(info.total_memory);
}

static PyObject *device_integrated(PyObject *self, void *Py_UNUSED(unused))
{
    struct gg_device_info info;
    return device_info(self, &info) ? NULL : PyBool_FromLong(info.flags & GG_DEVICE_INTEGRATED);
}

static PyObject *device_backend(PyObject *self, void *Py_UNUSED(unused))
{
    return PyUnicode_FromString(gg_device_backend(device_of(self)));
}

static PyObject *device_ordinal(PyObject *self, void *Py_UNUSED(unused))
{
    return PyLong_FromLong(gg_device_ordinal(device_of(self)));
}

static int device_add_attribute(struct py_state *state, PyObject *dict, gg_device *device,
                                gg_attribute which)
{
    int64_t value;
    gg_status status = gg_device_attribute(device, which, &value);
    if (status == GG_ERR_UNSUPPORTED)
        return 0;
    if (status)
        return py_check(state, status);
    PyObject *number = PyLong_FromLongLong(value);
    int failed = number ? PyDict_SetItemString(dict, gg_attribute_name(which), number) : -1;
    Py_XDECREF(number);
    return failed;
}

static PyObject *device_attributes(PyObject *self, void *Py_UNUSED(unused))
{
    PyObject *dict = PyDict_New();
    for (int which = 0; dict && which < GG_ATTR_COUNT; which++)
        if (device_add_attribute(py_state_of(self), dict, device_of(self), (gg_attribute)which))
            Py_CLEAR(dict);
    return dict;
}

/* Never raises: in a forked child, after shutdown or without a driver the name still exists. */
static PyObject *device_repr(PyObject *self)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    gg_device *device = device_of(self);
    if (gg_device_info(device, &info))
        return PyUnicode_FromFormat("<gpuglue.Device %s:%d>", gg_device_backend(device),
                                    (int)gg_device_ordinal(device));
    return PyUnicode_FromFormat("<gpuglue.Device %s:%d '%s'>", gg_device_backend(device),
                                (int)gg_device_ordinal(device), info.name);
}

/* ---- methods ---- */

static PyObject *device_synchronize(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return py_device_synchronize(py_state_of(self), device_of(self));
}

static PyObject *device_set_current(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct py_state *state = py_state_of(self);
    if (py_device_open(state, device_of(self)) ||
        py_check(state, gg_device_set_current(device_of(self))))
        return NULL;
    state->set_current_called = true;
    Py_RETURN_NONE;
}

static PyObject *device_can_access(PyObject *self, PyObject *peer)
{
    struct py_state *state = py_state_of(self);
    gg_device *other;
    int32_t can = 0;
    if (py_device_arg(state, peer, &other))
        return NULL;
    gg_status status;
    PY_WITHOUT_GIL(status = gg_device_can_access(device_of(self), other, &can));
    return py_check(state, status) ? NULL : PyBool_FromLong(can);
}

static PyObject *device_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return py_scope_enter(py_state_of(self), self, device_of(self), NULL);
}

/* The names that are nearest to the given one; NULL with an exception. */
static PyObject *device_near_operations(PyObject *op)
{
    PyObject *difflib = PyImport_ImportModule("difflib"), *names = PyList_New(0), *near = NULL;
    bool good = difflib && names;
    for (int i = 0; good && i < GG_OP_COUNT; i++) {
        PyObject *name = PyUnicode_FromString(gg_op_name((gg_op)i));
        good = name && !PyList_Append(names, name);
        Py_XDECREF(name);
    }
    if (good)
        near = PyObject_CallMethod(difflib, "get_close_matches", "OOi", op, names, 1);
    Py_XDECREF(names);
    Py_XDECREF(difflib);
    return near;
}

static PyObject *device_fail_unknown(struct py_state *state, PyObject *op)
{
    PyObject *near = device_near_operations(op);
    if (!near)
        return NULL;
    PyObject *first = PyList_Size(near) > 0 ? PyList_GetItem(near, 0) : NULL;
    if (first)
        py_invalid(state, "unknown operation %R: did you mean %R? `gpuglue info --slots` lists all",
                   op, first);
    else
        py_invalid(state, "unknown operation %R: `gpuglue info --slots` lists all", op);
    Py_DECREF(near);
    return NULL;
}

static PyObject *device_supports(PyObject *self, PyObject *op)
{
    if (!PyUnicode_Check(op))
        return PyErr_Format(PyExc_TypeError, "op must be a str, got %R", op);
    for (int i = 0; i < GG_OP_COUNT; i++)
        if (!PyUnicode_CompareWithASCIIString(op, gg_op_name((gg_op)i)))
            return PyBool_FromLong(gg_device_supports(device_of(self), (gg_op)i));
    return device_fail_unknown(py_state_of(self), op);
}

static PyObject *device_default_stream(PyObject *self, void *Py_UNUSED(unused))
{
    struct py_state *state = py_state_of(self);
    gg_stream *stream;
    if (py_device_open(state, device_of(self)) ||
        py_check(state, gg_device_default_stream(device_of(self), &stream)))
        return NULL;
    gg_stream_retain(stream);
    return py_stream_wrap(state, stream);
}

static PyObject *device_per_thread_stream(PyObject *self, void *Py_UNUSED(unused))
{
    struct py_state *state = py_state_of(self);
    const char *backend = gg_device_backend(device_of(self));
    gg_stream *stream;
    if (strcmp(backend, "cuda"))
        return PyErr_Format(state->unsupported,
                            "only cuda has per-thread default streams, this device is %s:%d",
                            backend, (int)gg_device_ordinal(device_of(self)));
    if (py_device_open(state, device_of(self)) ||
        py_check(state, gg_stream_borrow(device_of(self), 2, NULL, NULL, &stream)))
        return NULL;
    return py_stream_wrap(state, stream);
}

static PyObject *device_native_handles(PyObject *self, void *Py_UNUSED(unused))
{
    struct py_state *state = py_state_of(self);
    uint64_t handles[4] = {0};
    Py_ssize_t count = 4;
    if (py_device_open(state, device_of(self)) ||
        py_check(state, gg_device_native(device_of(self), handles)))
        return NULL;
    while (count && !handles[count - 1])
        count--;
    if (!count && !strcmp(gg_device_backend(device_of(self)), "hip"))
        count = 1; /* its ordinal */
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        PyObject *handle = PyLong_FromUnsignedLongLong(handles[i]);
        if (!handle || PyTuple_SetItem(tuple, i, handle))
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *device_pool(PyObject *self, void *kind)
{
    return py_pool_wrap(py_state_of(self), device_of(self), (enum gg_memory_kind)(intptr_t)kind);
}

static PyObject *device_priority_range(PyObject *self, void *Py_UNUSED(unused))
{
    struct py_state *state = py_state_of(self);
    int32_t least, greatest;
    if (py_device_open(state, device_of(self)) ||
        py_check(state, gg_stream_priority_range(device_of(self), &least, &greatest)))
        return NULL;
    return Py_BuildValue("(ii)", (int)least, (int)greatest);
}

/* ---- the type ---- */

static void device_dealloc(PyObject *self)
{
    if (((struct py_device *)self)->weakrefs)
        PyObject_ClearWeakRefs(self);
    py_object_free(self);
}

static PyObject *device_count(PyObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    return py_foreign_call(type, "count", "len(devices())");
}

static PyMethodDef methods[] = {
    {"for_local_rank", device_for_local_rank, METH_VARARGS | METH_CLASS,
     py_doc_Device_for_local_rank},
    {"from_torch", device_from_torch, METH_O | METH_CLASS, py_doc_Device_from_torch},
    {"memory_info", py_device_memory_info, METH_NOARGS, py_doc_Device_memory_info},
    {"stats", py_device_stats, METH_NOARGS, py_doc_Device_stats},
    {"synchronize", device_synchronize, METH_NOARGS, py_doc_Device_synchronize},
    {"set_current", device_set_current, METH_NOARGS, py_doc_Device_set_current},
    {"supports", device_supports, METH_O, py_doc_Device_supports},
    {"can_access", device_can_access, METH_O, py_doc_Device_can_access},
    {"__enter__", device_enter, METH_NOARGS, py_doc_Device___enter__},
    {"__exit__", PY_METHOD(py_scope_exit), METH_FASTCALL, py_doc_Device___exit__},
    PY_FOREIGN_CALL("count", device_count),
    PY_FOREIGN_DIR,
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"backend", device_backend, NULL, py_doc_Device_backend, NULL},
    {"ordinal", device_ordinal, NULL, py_doc_Device_ordinal, NULL},
    {"index", device_ordinal, NULL, py_doc_Device_index, NULL},
    {"name", device_text, NULL, py_doc_Device_name, (void *)offsetof(struct gg_device_info, name)},
    {"arch", device_text, NULL, py_doc_Device_arch, (void *)offsetof(struct gg_device_info, arch)},
    {"uuid", device_uuid, NULL, py_doc_Device_uuid, NULL},
    {"pci_bus_id", device_text, NULL, py_doc_Device_pci_bus_id,
     (void *)offsetof(struct gg_device_info, pci_bus_id)},
    {"numa_node", device_numa_node, NULL, py_doc_Device_numa_node, NULL},
    {"total_memory", device_total_memory, NULL, py_doc_Device_total_memory, NULL},
    {"integrated", device_integrated, NULL, py_doc_Device_integrated, NULL},
    {"native_handles", device_native_handles, NULL, py_doc_Device_native_handles, NULL},
    {"attributes", device_attributes, NULL, py_doc_Device_attributes, NULL},
    {"default_stream", device_default_stream, NULL, py_doc_Device_default_stream, NULL},
    {"per_thread_stream", device_per_thread_stream, NULL, py_doc_Device_per_thread_stream, NULL},
    {"stream_priority_range", device_priority_range, NULL, py_doc_Device_stream_priority_range, NULL},
    {"pool", device_pool, NULL, py_doc_Device_pool, (void *)(intptr_t)GG_MEMORY_DEVICE},
    {"pinned_pool", device_pool, NULL, py_doc_Device_pinned_pool, (void *)(intptr_t)GG_MEMORY_PINNED},
    PY_FOREIGN("use", "`with device:` or set_current()"),
    PY_FOREIGN("sync", "synchronize()"),
    PY_FOREIGN("properties", "attributes"),
    PY_FOREIGN("compute_capability", "arch"),
    PY_FOREIGN("mem_info", "memory_info()"),
    PY_FOREIGN("allocate", "alloc(nbytes, device)"),
    PY_FOREIGN("create_stream", "Stream(device)"),
    PY_FOREIGN("create_event", "Event(device)"),
    PY_FOREIGN("push", "`with device:`"),
    PY_FOREIGN("pop", "`with device:`"),
    PY_FOREIGN("make_context", "`with device:`"),
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, PY_SLOT(device_new)},
    {Py_tp_dealloc, PY_SLOT(device_dealloc)},
    {Py_tp_repr, PY_SLOT(device_repr)},
    {Py_tp_doc, (void *)(uintptr_t)py_doc_Device},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_members, PY_WEAKLIST_MEMBERS(struct py_device)},
    {0, NULL},
};

int py_device_add(PyObject *module, struct py_state *state)
{
    return py_type_add(module, "gpuglue.Device", sizeof(struct py_device), Py_TPFLAGS_IMMUTABLETYPE,
                       slots, &state->device_type);
}
