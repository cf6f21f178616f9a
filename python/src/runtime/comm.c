/* comm.c: what gpuglue/_communicator.py is made of: communicators, and their operations on addresses. */
#include "base/arguments.h"
#include "runtime/device.h"
#include "runtime/registry.h"

static const char capsule_name[] = "gpuglue.communicator";

/* Without the GIL: the driver may wait for other ranks of this process, which may need it. */
static void comm_drop(PyObject *capsule)
{
    gg_comm *comm = PyCapsule_GetPointer(capsule, capsule_name);
    PY_WITHOUT_GIL(gg_comm_release(comm));
}

/* _comm_create(rank, size, host, port, id, timeout_ns, several_machines=False): a capsule. */
static PyObject *comm_create(PyObject *module, PyObject *args)
{
    struct gg_comm_options options = {.struct_size = sizeof options};
    unsigned long long timeout;
    int several = 0;
    gg_comm *comm;
    gg_status status;
    if (!PyArg_ParseTuple(args, "iisisK|p", &options.rank, &options.size, &options.host,
                          &options.port, &options.id, &timeout, &several))
        return NULL;
    options.timeout_ns = timeout;
    options.flags = several ? GG_COMM_SEVERAL_MACHINES : 0;
    PY_WITHOUT_GIL(status = gg_comm_create(&options, &comm));
    if (status)
        return py_raise(PyModule_GetState(module), status);
    PyObject *capsule = PyCapsule_New(comm, capsule_name, comm_drop);
    if (!capsule)
        gg_comm_release(comm);
    return capsule;
}

static PyObject *comm_of_split(gg_comm *comm)
{
    PyObject *capsule = PyCapsule_New(comm, capsule_name, comm_drop);
    if (capsule)
        return Py_BuildValue("Nii", capsule, (int)gg_comm_rank(comm), (int)gg_comm_size(comm));
    gg_comm_release(comm);
    return NULL;
}

/* _comm_split(capsule, color, key): (capsule, rank, size), or None for GG_COMM_NO_COLOR. */
static PyObject *comm_split(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    int color, key;
    gg_comm *part;
    gg_status status;
    if (!PyArg_ParseTuple(args, "Oii", &capsule, &color, &key))
        return NULL;
    gg_comm *comm = PyCapsule_GetPointer(capsule, capsule_name);
    if (!comm)
        return NULL;
    PY_WITHOUT_GIL(status = gg_comm_split(comm, color, key, &part));
    if (status || !part)
        return py_none(PyModule_GetState(module), status);
    return comm_of_split(part);
}

struct comm_arguments {
    gg_comm *comm;
    const char *operation;
    void *dst;
    const void *src;
    size_t count; /* elements of a reduction, else bytes of a block */
    int type, reduction, root;
    const char *type_name;
};

static gg_status comm_reduce(const struct comm_arguments *a)
{
    const gg_comm_type type = (gg_comm_type)a->type;
    const gg_comm_reduction reduction = (gg_comm_reduction)a->reduction;
    if (!strcmp(a->operation, "all_reduce"))
        return gg_comm_all_reduce(a->comm, a->dst, a->src, a->count, type, reduction);
    if (!strcmp(a->operation, "reduce"))
        return gg_comm_reduce(a->comm, a->dst, a->src, a->count, type, reduction, a->root);
    return gg_comm_reduce_scatter(a->comm, a->dst, a->src, a->count, type, reduction);
}

static gg_status comm_move(const struct comm_arguments *a)
{
    if (!strcmp(a->operation, "broadcast"))
        return gg_comm_broadcast(a->comm, a->dst, a->src, a->count, a->root);
    if (!strcmp(a->operation, "all_gather"))
        return gg_comm_all_gather(a->comm, a->dst, a->src, a->count);
    if (!strcmp(a->operation, "gather"))
        return gg_comm_gather(a->comm, a->dst, a->src, a->count, a->root);
    if (!strcmp(a->operation, "scatter"))
        return gg_comm_scatter(a->comm, a->dst, a->src, a->count, a->root);
    if (!strcmp(a->operation, "all_to_all"))
        return gg_comm_all_to_all(a->comm, a->dst, a->src, a->count);
    return gg_comm_barrier(a->comm);
}

static gg_status comm_run(const struct comm_arguments *a)
{
    gg_comm_set_type_name(
        a->comm, a->type_name); /* it fails as the operation does, which has a better name */
    return a->type < 0 ? comm_move(a) : comm_reduce(a);
}

/* _comm_collective(capsule, operation, dst, src, count, type, reduction, root, type_name); type -1 is no reduction. */
static PyObject *comm_collective(PyObject *module, PyObject *args)
{
    struct comm_arguments a;
    PyObject *capsule;
    unsigned long long dst, src, count;
    gg_status status;
    if (!PyArg_ParseTuple(args, "OsKKKiiis", &capsule, &a.operation, &dst, &src, &count, &a.type,
                          &a.reduction, &a.root, &a.type_name))
        return NULL;
    a.comm = PyCapsule_GetPointer(capsule, capsule_name);
    if (!a.comm)
        return NULL;
    a.dst = (void *)(uintptr_t)dst;
    a.src = (const void *)(uintptr_t)src;
    a.count = (size_t)count;
    PY_WITHOUT_GIL(status = comm_run(&a));
    return py_none(PyModule_GetState(module), status);
}

struct comm_message {
    gg_comm *comm;
    unsigned long long src, dst, src_nbytes, dst_nbytes;
    int to, from;
    const char *type_name;
};

static gg_status comm_exchange(const struct comm_message *m)
{
    const void *const data = (const void *)(uintptr_t)m->src;
    void *const room = (void *)(uintptr_t)m->dst;
    gg_comm_set_type_name(m->comm, m->type_name); /* as above */
    if (m->from < 0)
        return gg_comm_send(m->comm, data, (size_t)m->src_nbytes, m->to);
    if (m->to < 0)
        return gg_comm_recv(m->comm, room, (size_t)m->dst_nbytes, m->from);
    return gg_comm_send_recv(m->comm, data, (size_t)m->src_nbytes, m->to, room,
                             (size_t)m->dst_nbytes, m->from);
}

/* _comm_message(capsule, src, src_nbytes, to, dst, dst_nbytes, from, type_name): a rank of -1 leaves that side out. */
static PyObject *comm_message(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    struct comm_message m;
    gg_status status;
    if (!PyArg_ParseTuple(args, "OKKiKKis", &capsule, &m.src, &m.src_nbytes, &m.to, &m.dst,
                          &m.dst_nbytes, &m.from, &m.type_name))
        return NULL;
    m.comm = PyCapsule_GetPointer(capsule, capsule_name);
    if (!m.comm)
        return NULL;
    PY_WITHOUT_GIL(status = comm_exchange(&m));
    return py_none(PyModule_GetState(module), status);
}

/* _comm_open_device(capsule, device or None, transport): (transport, reason, library's path, version). */
static PyObject *comm_open_device(PyObject *module, PyObject *args)
{
    struct py_state *state = PyModule_GetState(module);
    struct gg_comm_device_options options = {.struct_size = sizeof options};
    PyObject *capsule, *device;
    const char *path;
    int32_t version;
    gg_status status;
    if (!PyArg_ParseTuple(args, "OOs", &capsule, &device, &options.transport))
        return NULL;
    gg_comm *comm = PyCapsule_GetPointer(capsule, capsule_name);
    if (!comm || (device != Py_None && py_device_arg(state, device, &options.device)))
        return NULL;
    PY_WITHOUT_GIL(status = gg_comm_open_device(comm, &options));
    if (status)
        return py_raise(state, status);
    gg_comm_library(comm, &path, &version);
    return Py_BuildValue("sssi", gg_comm_transport(comm), gg_comm_transport_reason(comm), path,
                         (int)version);
}

struct comm_creation {
    struct gg_comm_all_options options;
    gg_device **devices;
    gg_comm **comms;
};

/* (capsule, transport, reason, library's path, version), which has the reference. */
static PyObject *comm_tuple(gg_comm *comm)
{
    const char *path;
    int32_t version;
    PyObject *capsule = PyCapsule_New(comm, capsule_name, comm_drop);
    if (!capsule) {
        gg_comm_release(comm);
        return NULL;
    }
    gg_comm_library(comm, &path, &version);
    return Py_BuildValue("Nsssi", capsule, gg_comm_transport(comm), gg_comm_transport_reason(comm),
                         path, (int)version);
}

static PyObject *comm_list(gg_comm *const *comms, Py_ssize_t size)
{
    PyObject *list = PyList_New(size);
    for (Py_ssize_t rank = 0; rank < size; rank++) {
        PyObject *item = list ? comm_tuple(comms[rank]) : NULL;
        if (!list)
            gg_comm_release(comms[rank]);
        else if (!item || PyList_SetItem(list, rank, item))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *comm_create_list(struct py_state *state, struct comm_creation *self,
                                  PyObject *given)
{
    const Py_ssize_t size = PyList_Size(given);
    gg_status status;
    if (!self->devices || !self->comms)
        return PyErr_NoMemory();
    for (Py_ssize_t rank = 0; rank < size; rank++)
        if (py_device_arg(state, PyList_GetItem(given, rank), &self->devices[rank]))
            return NULL;
    self->options.struct_size = sizeof self->options;
    self->options.size = size > INT32_MAX ? INT32_MAX : (int32_t)size;
    self->options.devices = self->devices;
    PY_WITHOUT_GIL(status = gg_comm_create_all(&self->options, self->comms));
    return status ? py_raise(state, status) : comm_list(self->comms, size);
}

/* _comm_create_all(devices, transport, timeout_ns): for each rank (capsule, transport, reason, library's path, version). */
static PyObject *comm_create_all(PyObject *module, PyObject *args)
{
    struct comm_creation self = {.devices = NULL};
    PyObject *given;
    unsigned long long timeout;
    if (!PyArg_ParseTuple(args, "O!sK", &PyList_Type, &given, &self.options.transport, &timeout))
        return NULL;
    self.options.timeout_ns = timeout;
    self.devices = PyMem_New(gg_device *, (size_t)PyList_Size(given));
    self.comms = PyMem_New(gg_comm *, (size_t)PyList_Size(given));
    PyObject *made = comm_create_list(PyModule_GetState(module), &self, given);
    PyMem_Free(self.devices);
    PyMem_Free(self.comms);
    return made;
}

/* _comm_borrow(device, handle, timeout_ns): (capsule, rank, size, transport, library's path, version). */
static PyObject *comm_borrow(PyObject *module, PyObject *args)
{
    struct py_state *state = PyModule_GetState(module);
    gg_device *device;
    PyObject *given;
    unsigned long long handle, timeout;
    const char *path;
    int32_t version;
    gg_comm *comm;
    gg_status status;
    if (!PyArg_ParseTuple(args, "OKK", &given, &handle, &timeout) ||
        py_device_arg(state, given, &device))
        return NULL;
    PY_WITHOUT_GIL(status = gg_comm_borrow(device, handle, &comm));
    if (status)
        return py_raise(state, status);
    gg_comm_set_timeout(comm, timeout);
    PyObject *capsule = PyCapsule_New(comm, capsule_name, comm_drop);
    if (!capsule) {
        gg_comm_release(comm);
        return NULL;
    }
    gg_comm_library(comm, &path, &version);
    return Py_BuildValue("Niissi", capsule, (int)gg_comm_rank(comm), (int)gg_comm_size(comm),
                         gg_comm_transport(comm), path, (int)version);
}

static PyObject *comm_native(PyObject *module, PyObject *capsule)
{
    gg_comm *comm = PyCapsule_GetPointer(capsule, capsule_name);
    uint64_t native;
    if (!comm)
        return NULL;
    const gg_status status = gg_comm_native(comm, &native);
    return status ? py_raise(PyModule_GetState(module), status)
                  : PyLong_FromUnsignedLongLong(native);
}

static PyObject *comm_close_device(PyObject *module, PyObject *capsule)
{
    gg_comm *comm = PyCapsule_GetPointer(capsule, capsule_name);
    gg_status status;
    if (!comm)
        return NULL;
    PY_WITHOUT_GIL(status = gg_comm_close_device(comm));
    return py_none(PyModule_GetState(module), status);
}

static PyObject *comm_group_begin(PyObject *module, PyObject *capsule)
{
    gg_comm *comm = PyCapsule_GetPointer(capsule, capsule_name);
    return comm ? py_none(PyModule_GetState(module), gg_comm_group_begin(comm)) : NULL;
}

/* _comm_group_end(capsule, drop) */
static PyObject *comm_group_end(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    int drop;
    gg_status status;
    if (!PyArg_ParseTuple(args, "Op", &capsule, &drop))
        return NULL;
    gg_comm *comm = PyCapsule_GetPointer(capsule, capsule_name);
    if (!comm)
        return NULL;
    PY_WITHOUT_GIL(status = gg_comm_group_end(comm, drop));
    return py_none(PyModule_GetState(module), status);
}

static PyObject *comm_abort(PyObject *module, PyObject *capsule)
{
    gg_comm *comm = PyCapsule_GetPointer(capsule, capsule_name);
    return comm ? py_none(PyModule_GetState(module), gg_comm_abort(comm)) : NULL;
}

static PyMethodDef functions[] = {
    {"_comm_create", comm_create, METH_VARARGS, NULL},
    {"_comm_create_all", comm_create_all, METH_VARARGS, NULL},
    {"_comm_collective", comm_collective, METH_VARARGS, NULL},
    {"_comm_message", comm_message, METH_VARARGS, NULL},
    {"_comm_split", comm_split, METH_VARARGS, NULL},
    {"_comm_abort", comm_abort, METH_O, NULL},
    {"_comm_open_device", comm_open_device, METH_VARARGS, NULL},
    {"_comm_borrow", comm_borrow, METH_VARARGS, NULL},
    {"_comm_native", comm_native, METH_O, NULL},
    {"_comm_close_device", comm_close_device, METH_O, NULL},
    {"_comm_group_begin", comm_group_begin, METH_O, NULL},
    {"_comm_group_end", comm_group_end, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int py_comm_add(PyObject *module, struct py_state *Py_UNUSED(state))
{
    return PyModule_AddFunctions(module, functions);
}
