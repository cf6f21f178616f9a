/* device.c: Device: what it is, waiting for it, making it current. */
#include "py.h"

#include <stdio.h>
#include <structmember.h>

/* ---- making one ----------------------------------------------------------------------------------- */

PyDoc_STRVAR(
    device_doc,
    "Device(device=None, *, pci=None, uuid=None)\n--\n\n"
    "A device: by name ('cuda:1', 'cuda'), by ordinal of the default backend, by PCI address,\n"
    "by UUID, or with no argument the current one. There is one object per device, which\n"
    "lives as long as the process. Finding one creates no context yet.\n\n"
    "`with device:` makes it current in this thread, in the vendor's sense too.");

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
        return py_invalid(state, "Device takes one of: a name or ordinal, pci=, uuid=");
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

PyDoc_STRVAR(
    for_local_rank_doc,
    "for_local_rank(backend=None, /)\n--\n\n"
    "The device for this process among those of its node: the local rank that Open MPI,\n"
    "Intel MPI, MPICH, MVAPICH, PALS, Flux, Slurm or torchrun put into the environment, modulo\n"
    "the number of devices. Device 0 where there is no launcher.");

static PyObject *device_for_local_rank(PyObject *type, PyObject *args)
{
    struct py_state *state = PyType_GetModuleState((PyTypeObject *)type);
    const char *backend = NULL;
    int32_t count = 0;
    gg_device *device = NULL;
    if (!PyArg_ParseTuple(args, "|z:for_local_rank", &backend) || py_prepare(state))
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

/* ---- what it is ------------------------------------------------------------------------------------- */

static int get_info(PyObject *self, struct gg_device_info *info)
{
    *info = (struct gg_device_info){.struct_size = sizeof *info};
    return py_check(py_state_of(self), gg_device_info(device_of(self), info));
}

/* name, arch and pci_bus_id; the closure says where the text is. */
static PyObject *device_text(PyObject *self, void *offset)
{
    struct gg_device_info info;
    if (get_info(self, &info))
        return NULL;
    const char *text = (const char *)&info + (uintptr_t)offset;
    return text[0] ? py_text(text) : Py_NewRef(Py_None);
}

static PyObject *device_uuid(PyObject *self, void *unused)
{
    struct gg_device_info info;
    char text[37], *at = text;
    (void)unused;
    if (get_info(self, &info))
        return NULL;
    if (!(info.flags & GG_DEVICE_HAS_UUID))
        Py_RETURN_NONE;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        at += snprintf(at, 3, "%02x", info.uuid[i]);
    }
    return PyUnicode_FromString(text);
}

static PyObject *device_numa_node(PyObject *self, void *unused)
{
    struct gg_device_info info;
    (void)unused;
    if (get_info(self, &info))
        return NULL;
    return info.numa_node < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(info.numa_node);
}

static PyObject *device_total_memory(PyObject *self, void *unused)
{
    struct gg_device_info info;
    (void)unused;
    return get_info(self, &info) ? NULL : PyLong_FromUnsignedLongLong(info.total_memory);
}

static PyObject *device_integrated(PyObject *self, void *unused)
{
    struct gg_device_info info;
    (void)unused;
    return get_info(self, &info) ? NULL : PyBool_FromLong(info.flags & GG_DEVICE_INTEGRATED);
}

static PyObject *device_backend(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(gg_device_backend(device_of(self)));
}

static PyObject *device_ordinal(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(gg_device_ordinal(device_of(self)));
}

static int add_attribute(struct py_state *state, PyObject *dict, gg_device *device,
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

static PyObject *device_attributes(PyObject *self, void *unused)
{
    PyObject *dict = PyDict_New();
    (void)unused;
    for (int which = 0; dict && which < GG_ATTR_COUNT; which++)
        if (add_attribute(py_state_of(self), dict, device_of(self), (gg_attribute)which))
            Py_CLEAR(dict);
    return dict;
}

/* Never raises: in a forked child, after the end, without a driver there is still the name. */
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

/* ---- what it does ------------------------------------------------------------------------------------ */

PyDoc_STRVAR(memory_info_doc,
             "memory_info($self)\n--\n\n"
             "(free, total) bytes of device memory now, after giving back what was "
             "released and is idle.");

PyDoc_STRVAR(synchronize_doc, "synchronize($self)\n--\n\n"
                              "Wait for all work of the device, also on streams that gpuglue does "
                              "not know.");

PyObject *py_device_synchronize(struct py_state *state, gg_device *device)
{
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_device_synchronize(device);
    PyEval_RestoreThread(thread);
    if (status)
        return py_raise(state, status);
    py_owners_drain();
    Py_RETURN_NONE;
}

static PyObject *device_synchronize(PyObject *self, PyObject *unused)
{
    (void)unused;
    return py_device_synchronize(py_state_of(self), device_of(self));
}

PyDoc_STRVAR(use_doc, "use($self)\n--\n\n"
                      "Make this the thread's current device, in the vendor's sense too, until the "
                      "next use().");

static PyObject *device_use(PyObject *self, PyObject *unused)
{
    struct py_state *state = py_state_of(self);
    (void)unused;
    if (py_device_open(state, device_of(self)) || py_check(state, gg_device_use(device_of(self))))
        return NULL;
    state->used = true;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    can_access_doc,
    "can_access($self, peer, /)\n--\n\n"
    "Whether work of each of the two devices can reach the memory of the other, so that a\n"
    "copy between them needs no host. Of another backend it never can.");

static PyObject *device_can_access(PyObject *self, PyObject *peer)
{
    struct py_state *state = py_state_of(self);
    gg_device *other;
    int32_t can = 0;
    if (py_device_arg(state, peer, &other))
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_device_can_access(device_of(self), other, &can);
    PyEval_RestoreThread(thread);
    return py_check(state, status) ? NULL : PyBool_FromLong(can);
}

static PyObject *device_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return py_scope_enter(py_state_of(self), self, device_of(self), NULL);
}

static PyObject *device_exit(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)args;
    (void)nargs;
    return py_scope_exit(py_state_of(self), self);
}

PyDoc_STRVAR(
    supports_doc,
    "supports($self, op, /)\n--\n\n"
    "Whether this device, driver and backend can do an operation, such as 'event_elapsed'\n"
    "or 'stream_host_func'.");

static PyObject *device_supports(PyObject *self, PyObject *op)
{
    if (!PyUnicode_Check(op))
        return PyErr_Format(PyExc_TypeError, "op must be a str, not %R", op);
    for (int i = 0; i < GG_OP_COUNT; i++)
        if (!PyUnicode_CompareWithASCIIString(op, gg_op_name((gg_op)i)))
            return PyBool_FromLong(gg_device_supports(device_of(self), (gg_op)i));
    return py_invalid(py_state_of(self), "there is no operation %R; see gpuglue/ops.def", op);
}

static PyObject *device_default_stream(PyObject *self, void *unused)
{
    struct py_state *state = py_state_of(self);
    gg_stream *stream;
    (void)unused;
    if (py_device_open(state, device_of(self)) ||
        py_check(state, gg_device_default_stream(device_of(self), &stream)))
        return NULL;
    gg_stream_retain(stream);
    return py_stream_wrap(state, stream);
}

static PyObject *device_per_thread_stream(PyObject *self, void *unused)
{
    struct py_state *state = py_state_of(self);
    const char *backend = gg_device_backend(device_of(self));
    gg_stream *stream;
    (void)unused;
    if (strcmp(backend, "cuda"))
        return PyErr_Format(state->unsupported,
                            "per-thread default streams exist on cuda only, this is %s:%d", backend,
                            (int)gg_device_ordinal(device_of(self)));
    if (py_device_open(state, device_of(self)) ||
        py_check(state, gg_stream_borrow(device_of(self), 2, NULL, NULL, &stream)))
        return NULL;
    return py_stream_wrap(state, stream);
}

static PyObject *device_pool(PyObject *self, void *kind)
{
    return py_pool_wrap(py_state_of(self), device_of(self), (enum gg_memory_kind)(intptr_t)kind);
}

static PyObject *device_priority_range(PyObject *self, void *unused)
{
    struct py_state *state = py_state_of(self);
    int32_t least, greatest;
    (void)unused;
    if (py_device_open(state, device_of(self)) ||
        py_check(state, gg_stream_priority_range(device_of(self), &least, &greatest)))
        return NULL;
    return Py_BuildValue("(ii)", (int)least, (int)greatest);
}

/* ---- the type ------------------------------------------------------------------------------------------ */

static void device_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (((struct py_device *)self)->weakrefs)
        PyObject_ClearWeakRefs(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"for_local_rank", device_for_local_rank, METH_VARARGS | METH_CLASS, for_local_rank_doc},
    {"memory_info", py_device_memory_info, METH_NOARGS, memory_info_doc},
    {"synchronize", device_synchronize, METH_NOARGS, synchronize_doc},
    {"use", device_use, METH_NOARGS, use_doc},
    {"supports", device_supports, METH_O, supports_doc},
    {"can_access", device_can_access, METH_O, can_access_doc},
    {"__enter__", device_enter, METH_NOARGS, "__enter__($self)\n--\n\nMake it current."},
    {"__exit__", PY_METHOD(device_exit), METH_FASTCALL,
     "__exit__($self, *args)\n--\n\nRestore exactly what was current before."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"backend", device_backend, NULL, "Name of the backend, such as 'cuda'.", NULL},
    {"ordinal", device_ordinal, NULL, "The vendor's own ordinal under its visibility mask.", NULL},
    {"index", device_ordinal, NULL, "The same as ordinal.", NULL},
    {"name", device_text, NULL, "The vendor's name of the device.",
     (void *)offsetof(struct gg_device_info, name)},
    {"arch", device_text, NULL, "Architecture that images are built for, such as 'sm_90'.",
     (void *)offsetof(struct gg_device_info, arch)},
    {"uuid", device_uuid, NULL, "UUID as 8-4-4-4-12 hex digits, or None.", NULL},
    {"pci_bus_id", device_text, NULL, "Such as '0000:65:00.0', or None.",
     (void *)offsetof(struct gg_device_info, pci_bus_id)},
    {"numa_node", device_numa_node, NULL, "NUMA node that it is attached to, or None.", NULL},
    {"total_memory", device_total_memory, NULL, "Device memory in bytes.", NULL},
    {"integrated", device_integrated, NULL, "Whether it shares the host's memory.", NULL},
    {"attributes", device_attributes, NULL,
     "A dict of the numbers this backend knows, such as warp_size and max_block_x.", NULL},
    {"default_stream", device_default_stream, NULL,
     "The stream of work without one: the legacy null stream on cuda and hip.", NULL},
    {"per_thread_stream", device_per_thread_stream, NULL,
     "CUDA's per-thread default stream; UnsupportedError on other backends.", NULL},
    {"stream_priority_range", device_priority_range, NULL,
     "(least, greatest) urgency for Stream(priority=), such as (0, -5).", NULL},
    {"pool", device_pool, NULL, "The Pool of its device memory.", (void *)(intptr_t)GG_MEMORY_DEVICE},
    {"pinned_pool", device_pool, NULL, "The Pool of page-locked memory for it.",
     (void *)(intptr_t)GG_MEMORY_PINNED},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct py_device, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, PY_SLOT(device_new)},   {Py_tp_dealloc, PY_SLOT(device_dealloc)},
    {Py_tp_repr, PY_SLOT(device_repr)}, {Py_tp_doc, (void *)(uintptr_t)device_doc},
    {Py_tp_methods, methods},           {Py_tp_getset, getters},
    {Py_tp_members, members},           {0, NULL},
};

static PyType_Spec spec = {
    .name = "gpuglue.Device",
    .basicsize = sizeof(struct py_device),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int py_device_add(PyObject *module, struct py_state *state)
{
    return py_type_add(module, &spec, &state->device_type);
}
