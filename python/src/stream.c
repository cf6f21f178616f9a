/* stream.c: Stream: work in order, and how streams of other libraries are taken. */
#include "py.h"

#include <structmember.h>

static struct py_stream *as_stream(PyObject *self)
{
    return (struct py_stream *)(void *)self;
}

/* The handle, or NULL with "Stream is closed". */
static gg_stream *open_stream(PyObject *self)
{
    gg_stream *stream = as_stream(self)->stream;
    if (!stream)
        py_closed(py_state_of(self), "Stream");
    return stream;
}

PyObject *py_stream_wrap(struct py_state *state, gg_stream *stream)
{
    struct py_stream *self = PyObject_New(struct py_stream, state->stream_type);
    if (!self) {
        gg_stream_release(stream);
        return NULL;
    }
    self->stream = stream;
    self->identity = stream;
    self->busy = 0;
    self->closing = NULL;
    self->weakrefs = NULL;
    return (PyObject *)self;
}

PyDoc_STRVAR(
    stream_doc,
    "Stream(device=None, nonblocking=False, priority=0)\n--\n\n"
    "Work that runs in the order in which it was queued. Unless nonblocking, it is also ordered\n"
    "with the legacy default stream (cuda, hip). Lower priorities (32-bit ints, clamped to\n"
    "Device.stream_priority_range) are more urgent.\n\n"
    "`with stream:` makes it the thread's current stream. Any thread may use or drop it.");

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"device", "nonblocking", "priority", NULL};
    struct py_state *state = PyType_GetModuleState(type);
    PyObject *where = NULL, *wish = NULL;
    int apart = 0; /* nonblocking */
    long long priority = 0;
    gg_device *device;
    gg_stream *stream;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OpO:Stream", names, &where, &apart, &wish) ||
        (wish && py_integer(state, wish, "priority", INT32_MIN, INT32_MAX, &priority)) ||
        py_device_arg(state, where, &device))
        return NULL;
    const uint32_t flags = apart ? GG_STREAM_NONBLOCKING : 0;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_stream_create(device, flags, (int32_t)priority, &stream);
    PyEval_RestoreThread(thread);
    return status ? py_raise(state, status) : py_stream_wrap(state, stream);
}

PyDoc_STRVAR(
    borrow_doc,
    "borrow(obj, device=None)\n--\n\n"
    "Use a stream that someone else owns: an object with __cuda_stream__, a stream of torch,\n"
    "CuPy or numba, or a native handle as int (on cuda and hip 0 and 1 are the legacy default\n"
    "stream, on cuda 2 is the per-thread one). The object is kept alive, and never\n"
    "destroyed. device=None means the object's own, else the current device.");

static PyObject *stream_borrow(PyObject *type, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames)
{
    static const char *const names[] = {"obj", "device"};
    struct py_state *state = PyType_GetModuleState((PyTypeObject *)type);
    PyObject *values[2];
    gg_device *device = NULL;
    gg_stream *stream;
    if (py_parse("borrow", names, 2, 2, 1, args, nargs, kwnames, values))
        return NULL;
    if (values[1] && values[1] != Py_None && py_device_arg(state, values[1], &device))
        return NULL;
    if (py_stream_borrow_on(state, values[0], device, &stream))
        return NULL;
    return py_stream_wrap(state, stream);
}

int py_stream_arg(struct py_state *state, PyObject *object, gg_device *device, gg_stream **out)
{
    if (!object || object == Py_None) {
        *out = NULL;
        return 0;
    }
    if (!Py_IS_TYPE(object, state->stream_type))
        return py_stream_borrow(state, object, device, out);
    *out = open_stream(object);
    if (!*out)
        return -1;
    gg_stream_retain(*out);
    return 0;
}

/* ---- waiting -------------------------------------------------------------------------------------- */

/* Letting go of the GIL costs more than asking an idle stream: ask first. */
static gg_status finish(gg_stream *stream)
{
    gg_status status = gg_stream_query(stream);
    if (status != GG_NOT_READY)
        return status;
    gg_stream_retain(stream);
    PyThreadState *thread = PyEval_SaveThread();
    status = gg_stream_wait(stream, GG_FOREVER);
    PyEval_RestoreThread(thread);
    gg_stream_release(stream);
    return status;
}

PyDoc_STRVAR(
    synchronize_doc,
    "synchronize($self)\n--\n\n"
    "Wait until all work queued so far is done. Raises what that work failed at. Ctrl-C ends\n"
    "the wait, not the work.");

static PyObject *stream_synchronize(PyObject *self, PyObject *unused)
{
    gg_stream *stream = open_stream(self);
    (void)unused;
    if (!stream)
        return NULL;
    gg_status status = finish(stream);
    if (status)
        return py_raise(py_state_of(self), status);
    py_owners_drain();
    Py_RETURN_NONE;
}

static PyObject *stream_done(PyObject *self, void *unused)
{
    gg_stream *stream = open_stream(self);
    (void)unused;
    if (!stream)
        return NULL;
    gg_status status = gg_stream_query(stream);
    if (status > GG_NOT_READY)
        return py_raise(py_state_of(self), status);
    return Py_NewRef(status ? Py_False : Py_True);
}

static gg_status make_wait(gg_event *event, gg_stream *stream)
{
    return gg_stream_wait_event(stream, event);
}

static PyObject *wait_event(PyObject *self, struct py_event *event)
{
    gg_status status = py_event_with_stream(event, as_stream(self), make_wait);
    if (status)
        return py_raise(py_state_of(self), status);
    Py_RETURN_NONE;
}

static PyObject *wait_stream(PyObject *self, gg_stream *stream, PyObject *object)
{
    struct py_state *state = py_state_of(self);
    gg_device *device = PyIndex_Check(object) ? gg_stream_device(stream) : NULL; /* else its own */
    gg_stream *other;
    gg_stream_retain(stream); /* the other one's own code may close this one */
    if (py_stream_arg(state, object, device, &other)) {
        gg_stream_release(stream);
        return NULL;
    }
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_stream_wait_stream(stream, other);
    PyEval_RestoreThread(thread);
    gg_stream_release(stream);
    gg_stream_release(other);
    if (status)
        return py_raise(state, status);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    wait_doc,
    "wait($self, other, /)\n--\n\n"
    "Later work of this stream waits, on the device, for what an Event recorded last or for\n"
    "all that another stream has now. An event that was never recorded is a no-op. Returns\n"
    "at once.");

static PyObject *stream_wait(PyObject *self, PyObject *other)
{
    gg_stream *stream = open_stream(self);
    if (!stream)
        return NULL;
    if (!Py_IS_TYPE(other, py_state_of(self)->event_type))
        return other == Py_None
                   ? PyErr_Format(PyExc_TypeError, "expected an Event or a stream, not None")
                   : wait_stream(self, stream, other);
    struct py_event *event = (struct py_event *)(void *)other;
    if (event->event)
        return wait_event(self, event);
    if (event->closed)
        return py_closed(py_state_of(self), "Event");
    Py_RETURN_NONE;
}

PyDoc_STRVAR(record_doc, "record($self, event=None)\n--\n\n"
                         "Mark the point that this stream has reached, in a new Event if none is "
                         "given. Returns the event.");

static PyObject *stream_record(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames)
{
    static const char *const names[] = {"event"};
    PyObject *value;
    gg_stream *stream = open_stream(self);
    if (!stream || py_parse("record", names, 1, 1, 0, args, nargs, kwnames, &value))
        return NULL;
    return py_event_record(py_state_of(self), value == Py_None ? NULL : value, stream);
}

/* ---- what it is --------------------------------------------------------------------------------------- */

static int native_handle(PyObject *self, uint64_t *handle)
{
    uint64_t handles[4] = {0};
    gg_stream *stream = open_stream(self);
    if (!stream || py_check(py_state_of(self), gg_stream_native(stream, handles)))
        return -1;
    *handle = handles[0];
    return 0;
}

static PyObject *stream_handle(PyObject *self, void *unused)
{
    uint64_t handle;
    (void)unused;
    return native_handle(self, &handle) ? NULL : PyLong_FromUnsignedLongLong(handle);
}

static PyObject *stream_as_parameter(PyObject *self, void *unused)
{
    uint64_t handle;
    (void)unused;
    return native_handle(self, &handle) ? NULL : py_as_parameter(handle);
}

static PyObject *cuda_stream(PyObject *self, PyObject *unused)
{
    uint64_t handle;
    (void)unused;
    if (native_handle(self, &handle))
        return NULL;
    return Py_BuildValue("(iK)", 0, (unsigned long long)handle);
}

static PyMethodDef cuda_stream_def = {
    "__cuda_stream__", cuda_stream, METH_NOARGS,
    "__cuda_stream__()\n--\n\n(protocol version 0, native handle)."};

/* A getter, so that other backends lack the attribute, which is what others test for. */
static PyObject *stream_cuda_stream(PyObject *self, void *unused)
{
    gg_stream *stream = open_stream(self);
    (void)unused;
    if (!stream)
        return NULL;
    const char *backend = gg_device_backend(gg_stream_device(stream));
    if (strcmp(backend, "cuda") && strcmp(backend, "hip"))
        return PyErr_Format(PyExc_AttributeError, "a stream of %s has no __cuda_stream__", backend);
    return PyCFunction_New(&cuda_stream_def, self);
}

static PyObject *stream_device(PyObject *self, void *unused)
{
    gg_stream *stream = open_stream(self);
    (void)unused;
    return stream ? py_device_wrap(py_state_of(self), gg_stream_device(stream)) : NULL;
}

static PyObject *stream_repr(PyObject *self)
{
    gg_stream *stream = as_stream(self)->stream;
    uint64_t handles[4] = {0};
    if (!stream)
        return PyUnicode_FromString("<gpuglue.Stream closed>");
    const gg_device *device = gg_stream_device(stream);
    const char *backend = gg_device_backend(device);
    int ordinal = gg_device_ordinal(device);
    if (gg_stream_native(stream, handles))
        return PyUnicode_FromFormat("<gpuglue.Stream on %s:%d>", backend, ordinal);
    return PyUnicode_FromFormat("<gpuglue.Stream %p on %s:%d>", (void *)(uintptr_t)handles[0],
                                backend, ordinal);
}

/* Two Python objects for one stream are equal; a closed one equals only itself. */
static PyObject *stream_compare(PyObject *self, PyObject *other, int op)
{
    if ((op != Py_EQ && op != Py_NE) || !Py_IS_TYPE(other, Py_TYPE(self)))
        Py_RETURN_NOTIMPLEMENTED;
    bool equal = self == other ||
                 (as_stream(self)->stream && as_stream(self)->stream == as_stream(other)->stream);
    return PyBool_FromLong(equal == (op == Py_EQ));
}

static Py_hash_t stream_hash(PyObject *self)
{
    Py_hash_t hash = (Py_hash_t)((uintptr_t)as_stream(self)->identity >> 4);
    return hash == -1 ? -2 : hash;
}

/* ---- its life -------------------------------------------------------------------------------------------- */

PyDoc_STRVAR(close_doc,
             "close($self)\n--\n\n"
             "Give the stream up; queued work still runs. Never waits. Closing again does "
             "nothing.");

static PyObject *stream_close(PyObject *self, PyObject *unused)
{
    gg_stream *stream = as_stream(self)->stream;
    (void)unused;
    as_stream(self)->stream = NULL;
    if (as_stream(self)->busy && stream)
        as_stream(self)->closing = stream;
    else
        gg_stream_release(stream);
    Py_RETURN_NONE;
}

static PyObject *stream_enter(PyObject *self, PyObject *unused)
{
    gg_stream *stream = open_stream(self);
    (void)unused;
    return stream ? py_scope_enter(py_state_of(self), self, gg_stream_device(stream), stream) : NULL;
}

static PyObject *stream_exit(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)args;
    (void)nargs;
    return py_scope_exit(py_state_of(self), self);
}

static void stream_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (as_stream(self)->weakrefs)
        PyObject_ClearWeakRefs(self);
    gg_stream_release(as_stream(self)->stream);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"borrow", PY_METHOD(stream_borrow), METH_FASTCALL | METH_KEYWORDS | METH_CLASS, borrow_doc},
    {"synchronize", stream_synchronize, METH_NOARGS, synchronize_doc},
    {"wait", stream_wait, METH_O, wait_doc},
    {"record", PY_METHOD(stream_record), METH_FASTCALL | METH_KEYWORDS, record_doc},
    {"close", stream_close, METH_NOARGS, close_doc},
    {"__enter__", stream_enter, METH_NOARGS,
     "__enter__($self)\n--\n\nMake it the current stream of this thread."},
    {"__exit__", PY_METHOD(stream_exit), METH_FASTCALL,
     "__exit__($self, *args)\n--\n\nRestore exactly what was current before."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"device", stream_device, NULL, "The Device it belongs to.", NULL},
    {"done", stream_done, NULL, "Whether all work queued so far is done.", NULL},
    {"handle", stream_handle, NULL, "The native handle as int, such as a CUstream.", NULL},
    {"__cuda_stream__", stream_cuda_stream, NULL, "Stream protocol; on cuda and hip only.", NULL},
    {"_as_parameter_", stream_as_parameter, NULL, "The handle, for ctypes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct py_stream, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, PY_SLOT(stream_new)},   {Py_tp_dealloc, PY_SLOT(stream_dealloc)},
    {Py_tp_repr, PY_SLOT(stream_repr)}, {Py_tp_richcompare, PY_SLOT(stream_compare)},
    {Py_tp_hash, PY_SLOT(stream_hash)}, {Py_tp_doc, (void *)(uintptr_t)stream_doc},
    {Py_tp_methods, methods},           {Py_tp_getset, getters},
    {Py_tp_members, members},           {0, NULL},
};

static PyType_Spec spec = {
    .name = "gpuglue.Stream",
    .basicsize = sizeof(struct py_stream),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int py_stream_add(PyObject *module, struct py_state *state)
{
    return py_type_add(module, &spec, &state->stream_type);
}
