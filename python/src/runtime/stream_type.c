/* stream_type.c: the type Stream: its attributes, methods and slots. */
#include "base/foreign_names.h"
#include "base/owners.h"
#include "runtime/device.h"
#include "runtime/event.h"
#include "runtime/scope.h"

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"device", "nonblocking", "priority", NULL};
    struct py_state *state = PyType_GetModuleState(type);
    PyObject *where = NULL, *urgency = NULL;
    int nonblocking = 0;
    long long priority = 0;
    gg_device *device;
    gg_stream *stream;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OpO:Stream", names, &where, &nonblocking,
                                     &urgency)) {
        py_foreign_argument(kwargs, "non_blocking", "nonblocking=");
        return NULL;
    }
    if ((urgency && py_integer(state, urgency, "priority", INT32_MIN, INT32_MAX, &priority)) ||
        py_device_arg(state, where, &device))
        return NULL;
    const uint32_t flags = nonblocking ? GG_STREAM_NONBLOCKING : 0;
    gg_status status;
    PY_WITHOUT_GIL(status = gg_stream_create(device, flags, (int32_t)priority, &stream));
    return status ? py_raise(state, status) : py_stream_wrap(state, stream);
}

static PY_FASTCALL(stream_borrow)
{
    static const char *const names[] = {"obj", "device"};
    struct py_state *state = PyType_GetModuleState((PyTypeObject *)self);
    PyObject *values[2];
    gg_device *device = NULL;
    gg_stream *stream;
    if (py_parse("borrow", names, 2, 2, 1, args, nargs, kwnames, values) ||
        (py_given(values[1]) && py_device_arg(state, values[1], &device)) ||
        py_stream_borrow_on(state, values[0], device, &stream))
        return NULL;
    return py_stream_wrap(state, stream);
}

/* ---- waiting ---- */

/* Releasing the GIL costs more than a query of an idle stream, so query first. */
static gg_status stream_wait_idle(gg_stream *stream)
{
    gg_status status = gg_stream_query(stream);
    if (status != GG_NOT_READY)
        return status;
    gg_stream_retain(stream);
    PY_WITHOUT_GIL(status = gg_stream_wait(stream, GG_FOREVER));
    gg_stream_release(stream);
    return status;
}

static PyObject *stream_synchronize(PyObject *self, PyObject *Py_UNUSED(unused))
{
    gg_stream *stream = py_stream_handle(self);
    if (!stream)
        return NULL;
    gg_status status = stream_wait_idle(stream);
    if (status)
        return py_raise(py_state_of(self), status);
    py_owners_drain();
    return py_callbacks_finish(py_state_of(self), self) ? NULL : Py_NewRef(Py_None);
}

static PyObject *stream_done(PyObject *self, void *Py_UNUSED(unused))
{
    gg_stream *stream = py_stream_handle(self);
    if (!stream)
        return NULL;
    gg_status status = gg_stream_query(stream);
    if (status > GG_NOT_READY)
        return py_raise(py_state_of(self), status);
    return Py_NewRef(status ? Py_False : Py_True);
}

static gg_status stream_wait_op(gg_event *event, gg_stream *stream)
{
    return gg_stream_wait_event(stream, event);
}

static PyObject *stream_wait_event(PyObject *self, struct py_event *event)
{
    gg_status status = py_event_with_stream(event, py_stream_of(self), stream_wait_op);
    return py_none(event->state, status);
}

static PyObject *stream_wait_stream(PyObject *self, gg_stream *stream, PyObject *object)
{
    struct py_state *state = py_state_of(self);
    gg_device *device = PyIndex_Check(object) ? gg_stream_device(stream) : NULL; /* else its own */
    gg_stream *other;
    gg_stream_retain(stream); /* Python code of the other one may close this one */
    if (py_stream_arg(state, object, device, &other)) {
        gg_stream_release(stream);
        return NULL;
    }
    gg_status status;
    PY_WITHOUT_GIL(status = gg_stream_wait_stream(stream, other));
    gg_stream_release(stream);
    gg_stream_release(other);
    return py_none(state, status);
}

static PyObject *stream_wait(PyObject *self, PyObject *other)
{
    gg_stream *stream = py_stream_handle(self);
    if (!stream)
        return NULL;
    if (!Py_IS_TYPE(other, py_stream_of(self)->state->event_type))
        return other == Py_None
                   ? PyErr_Format(PyExc_TypeError, "expected an Event or a stream, not None")
                   : stream_wait_stream(self, stream, other);
    struct py_event *event = (struct py_event *)(void *)other;
    if (event->event)
        return stream_wait_event(self, event);
    if (event->closed)
        return py_closed(py_state_of(self), "Event");
    Py_RETURN_NONE;
}

static PY_FASTCALL(stream_record)
{
    static const char *const names[] = {"event"};
    PyObject *value;
    gg_stream *stream = py_stream_handle(self);
    if (!stream || py_parse("record", names, 1, 1, 0, args, nargs, kwnames, &value))
        return NULL;
    return py_event_record(py_state_of(self), value == Py_None ? NULL : value, stream);
}

static PyObject *stream_completion(PyObject *self, PyObject *Py_UNUSED(unused))
{
    gg_stream *stream = py_stream_handle(self);
    return stream ? py_event_record(py_state_of(self), NULL, stream) : NULL;
}

/* ---- attributes ---- */

static int stream_native(PyObject *self, uint64_t *handle)
{
    uint64_t handles[4] = {0};
    gg_stream *stream = py_stream_handle(self);
    if (!stream || py_check(py_state_of(self), gg_stream_native(stream, handles)))
        return -1;
    *handle = handles[0];
    return 0;
}

static PyObject *stream_handle(PyObject *self, void *Py_UNUSED(unused))
{
    uint64_t handle;
    return stream_native(self, &handle) ? NULL : PyLong_FromUnsignedLongLong(handle);
}

static PyObject *stream_as_parameter(PyObject *self, void *Py_UNUSED(unused))
{
    uint64_t handle;
    return stream_native(self, &handle) ? NULL : py_c_void_p(handle);
}

static PyObject *stream_protocol(PyObject *self, PyObject *Py_UNUSED(unused))
{
    uint64_t handle;
    if (stream_native(self, &handle))
        return NULL;
    return Py_BuildValue("(iK)", 0, (unsigned long long)handle);
}

static PyMethodDef stream_protocol_def = {
    "__cuda_stream__", stream_protocol, METH_NOARGS,
    "__cuda_stream__()\n--\n\n(protocol version 0, native handle)."};

/* A getter, so that streams of other backends lack the attribute: other libraries test its presence. */
static PyObject *stream_cuda_stream(PyObject *self, void *Py_UNUSED(unused))
{
    gg_stream *stream = py_stream_handle(self);
    if (!stream)
        return NULL;
    const char *backend = gg_device_backend(gg_stream_device(stream));
    if (strcmp(backend, "cuda") && strcmp(backend, "hip"))
        return PyErr_Format(PyExc_AttributeError, "a stream of %s has no __cuda_stream__", backend);
    return PyCFunction_New(&stream_protocol_def, self);
}

static PyObject *stream_device(PyObject *self, void *Py_UNUSED(unused))
{
    gg_stream *stream = py_stream_handle(self);
    return stream ? py_device_wrap(py_state_of(self), gg_stream_device(stream)) : NULL;
}

/* Without the handle: a stream whose handle was read may be captured by other code, and gpuglue queries the driver
 * before each use. */
static PyObject *stream_repr(PyObject *self)
{
    const gg_stream *stream = py_stream_of(self)->stream;
    if (!stream)
        return PyUnicode_FromString("<gpuglue.Stream closed>");
    const gg_device *device = gg_stream_device(stream);
    return PyUnicode_FromFormat("<gpuglue.Stream on %s:%d>", gg_device_backend(device),
                                (int)gg_device_ordinal(device));
}

/* Two Python objects for one stream are equal; a closed one equals only itself. */
static PyObject *stream_compare(PyObject *self, PyObject *other, int op)
{
    if ((op != Py_EQ && op != Py_NE) || !Py_IS_TYPE(other, Py_TYPE(self)))
        Py_RETURN_NOTIMPLEMENTED;
    bool equal = self == other || (py_stream_of(self)->stream &&
                                   py_stream_of(self)->stream == py_stream_of(other)->stream);
    return PyBool_FromLong(equal == (op == Py_EQ));
}

static Py_hash_t stream_hash(PyObject *self)
{
    Py_hash_t hash = (Py_hash_t)((uintptr_t)py_stream_of(self)->identity >> 4);
    return hash == -1 ? -2 : hash;
}

/* ---- lifetime ---- */

static PyObject *stream_close(PyObject *self, PyObject *Py_UNUSED(unused))
{
    gg_stream *stream = py_stream_of(self)->stream;
    py_stream_of(self)->stream = NULL;
    if (py_stream_of(self)->busy && stream)
        py_stream_of(self)->closing = stream;
    else
        gg_stream_release(stream);
    Py_RETURN_NONE;
}

static PyObject *stream_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
    gg_stream *stream = py_stream_handle(self);
    return stream ? py_scope_enter(py_state_of(self), self, gg_stream_device(stream), stream) : NULL;
}

static void stream_dealloc(PyObject *self)
{
    if (py_stream_of(self)->weakrefs)
        PyObject_ClearWeakRefs(self);
    gg_stream_release(py_stream_of(self)->stream);
    py_object_free(self);
}

static PyObject *stream_from_handle(PyObject *type, PyObject *Py_UNUSED(args),
                                    PyObject *Py_UNUSED(kwargs))
{
    return py_foreign_call(type, "from_handle", "Stream.borrow(handle)");
}

static PyMethodDef methods[] = {
    {"borrow", PY_METHOD(stream_borrow), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     py_doc_Stream_borrow},
    {"synchronize", stream_synchronize, METH_NOARGS, py_doc_Stream_synchronize},
    {"wait", stream_wait, METH_O, py_doc_Stream_wait},
    {"record", PY_METHOD(stream_record), METH_FASTCALL | METH_KEYWORDS, py_doc_Stream_record},
    {"completion", stream_completion, METH_NOARGS, py_doc_Stream_completion},
    {"add_callback", py_stream_add_callback, METH_O, py_doc_Stream_add_callback},
    {"close", stream_close, METH_NOARGS, py_doc_Stream_close},
    {"__enter__", stream_enter, METH_NOARGS, py_doc_Stream___enter__},
    {"__exit__", PY_METHOD(py_scope_exit), METH_FASTCALL, py_doc_Stream___exit__},
    PY_FOREIGN_CALL("from_handle", stream_from_handle),
    PY_FOREIGN_DIR,
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"device", stream_device, NULL, py_doc_Stream_device, NULL},
    {"done", stream_done, NULL, py_doc_Stream_done, NULL},
    {"handle", stream_handle, NULL, py_doc_Stream_handle, NULL},
    {"__cuda_stream__", stream_cuda_stream, NULL, py_doc_Stream___cuda_stream__, NULL},
    {"_as_parameter_", stream_as_parameter, NULL, py_doc_Stream__as_parameter_, NULL},
    PY_FOREIGN("sync", "synchronize()"),
    PY_FOREIGN("query", "done"),
    PY_FOREIGN("is_done", "done"),
    PY_FOREIGN("wait_event", "wait(event)"),
    PY_FOREIGN("wait_for_event", "wait(event)"),
    PY_FOREIGN("wait_stream", "wait(stream)"),
    PY_FOREIGN("record_event", "record(event)"),
    PY_FOREIGN("ptr", "handle"),
    PY_FOREIGN("cuda_stream", "handle"),
    PY_FOREIGN("use", "`with stream:`"),
    PY_FOREIGN("begin_capture", "`with capture(stream) as graph:`"),
    PY_FOREIGN("create_graph_builder", "`with capture(stream) as graph:`"),
    PY_FOREIGN("end_capture", "`with capture(stream) as graph:`"),
    PY_FOREIGN("submit_barrier", "wait(event)"),
    PY_FOREIGN("submit", "kernel(*args, grid=…, block=…, stream=stream)"),
    PY_FOREIGN("memcpy", "copy(target, source, stream=stream)"),
    PY_FOREIGN("launch_host_func", "add_callback(function)"),
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, PY_SLOT(stream_new)},
    {Py_tp_dealloc, PY_SLOT(stream_dealloc)},
    {Py_tp_repr, PY_SLOT(stream_repr)},
    {Py_tp_richcompare, PY_SLOT(stream_compare)},
    {Py_tp_hash, PY_SLOT(stream_hash)},
    {Py_tp_doc, (void *)(uintptr_t)py_doc_Stream},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_members, PY_WEAKLIST_MEMBERS(struct py_stream)},
    {0, NULL},
};

int py_stream_add(PyObject *module, struct py_state *state)
{
    return py_type_add(module, "gpuglue.Stream", sizeof(struct py_stream), Py_TPFLAGS_IMMUTABLETYPE,
                       slots, &state->stream_type);
}
