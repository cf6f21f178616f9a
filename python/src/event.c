/* event.c: Event: a point in a stream's work. */
#include "py.h"

#include <structmember.h>

static struct py_event *as_event(PyObject *self)
{
    return (struct py_event *)(void *)self;
}

static struct py_event *event_make(struct py_state *state, uint32_t flags)
{
    struct py_event *self = PyObject_New(struct py_event, state->event_type);
    if (!self)
        return NULL;
    self->event = NULL;
    self->state = state;
    self->flags = flags;
    self->closed = false;
    self->busy = 0;
    self->closing = NULL;
    self->weakrefs = NULL;
    return self;
}

/* Give an unbound event to a device, with the GIL held: two threads must not do it both. */
static int bind(struct py_state *state, struct py_event *self, gg_device *device)
{
    if (self->event)
        return 0;
    if (self->closed) {
        py_closed(state, "Event");
        return -1;
    }
    if (py_device_open(state, device))
        return -1;
    if (self->event || self->closed) /* by another thread while the device was being opened */
        return bind(state, self, device);
    return py_check(state, gg_event_create(device, self->flags, &self->event));
}

PyDoc_STRVAR(event_doc,
             "Event(device=None, timing=False, blocking=False)\n--\n\n"
             "A point in the work of a stream, to wait for, ask after or measure from. Without a\n"
             "device it is bound to that of its first record. timing=True allows elapsed_since;\n"
             "blocking=True lets a waiting thread sleep at once instead of spinning first.");

static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"device", "timing", "blocking", NULL};
    struct py_state *state = PyType_GetModuleState(type);
    PyObject *where = Py_None;
    int timing = 0, blocking = 0;
    gg_device *device;
    if ((kwargs || PyTuple_Size(args)) &&
        !PyArg_ParseTupleAndKeywords(args, kwargs, "|Opp:Event", names, &where, &timing, &blocking))
        return NULL;
    struct py_event *self =
        event_make(state, (timing ? GG_EVENT_TIMING : 0u) | (blocking ? GG_EVENT_BLOCKING : 0u));
    if (self && where != Py_None &&
        (py_device_arg(state, where, &device) || bind(state, self, device)))
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* ---- recording --------------------------------------------------------------------------------- */

/* The end of a call that was counted in `busy`. */
static void leave_event(struct py_event *event)
{
    if (--event->busy || !event->closing)
        return;
    gg_event_release(event->closing);
    event->closing = NULL;
}

gg_status py_event_with_stream(struct py_event *event, struct py_stream *stream,
                               gg_status (*op)(gg_event *event, gg_stream *stream))
{
    gg_event *native = event->event;
    gg_stream *on = stream->stream;
    event->busy++;
    stream->busy++;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = op(native, on);
    PyEval_RestoreThread(thread);
    py_stream_leave(stream);
    leave_event(event);
    return status;
}

/* Without the GIL: the driver may take a lock that another thread holds. */
static PyObject *record(struct py_state *state, struct py_event *self, gg_stream *stream)
{
    gg_event *event = self->event;
    gg_event_retain(event);
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_event_record(event, stream);
    PyEval_RestoreThread(thread);
    gg_event_release(event);
    return status ? py_raise(state, status) : Py_NewRef((PyObject *)self);
}

/* Takes over the reference to @p stream. */
static PyObject *record_on(struct py_state *state, struct py_event *self, gg_stream *stream)
{
    PyObject *result = NULL;
    if (self->event || !bind(state, self, gg_stream_device(stream)))
        result = record(state, self, stream);
    gg_stream_release(stream);
    return result;
}

PyObject *py_event_record(struct py_state *state, PyObject *object, gg_stream *stream)
{
    if (object && !Py_IS_TYPE(object, state->event_type))
        return PyErr_Format(PyExc_TypeError, "event must be an Event or None, not %.200R", object);
    struct py_event *self = object ? as_event(Py_NewRef(object)) : event_make(state, 0);
    if (!self)
        return NULL;
    gg_stream_retain(stream);
    PyObject *result = record_on(state, self, stream);
    Py_DECREF((PyObject *)self);
    return result;
}

/* stream= of record, or the current one of the event's device; a new reference. */
static int record_stream(struct py_state *state, const struct py_event *self, PyObject *value,
                         gg_stream **out)
{
    gg_device *device = self->event ? gg_event_device(self->event) : NULL;
    if (value && value != Py_None)
        return py_stream_arg(state, value, device, out);
    if ((!device && py_device_current(state, &device)) || py_device_open(state, device) ||
        py_check(state, gg_current_stream(device, out)))
        return -1;
    gg_stream_retain(*out);
    return 0;
}

/* The usual case: bound already, and a Stream of ours. */
static PyObject *record_fast(struct py_state *state, struct py_event *self, struct py_stream *stream)
{
    if (!stream->stream)
        return py_closed(state, "Stream");
    gg_status status = py_event_with_stream(self, stream, gg_event_record);
    return status ? py_raise(state, status) : Py_NewRef((PyObject *)self);
}

PyDoc_STRVAR(record_doc,
             "record($self, stream=None)\n--\n\n"
             "Mark the point that a stream of its device has reached, the current one if none is\n"
             "given. Recording again moves the mark. Returns the event.");

static PyObject *event_record(PyObject *object, PyObject *const *args, Py_ssize_t nargs,
                              PyObject *kwnames)
{
    static const char *const names[] = {"stream"};
    struct py_event *self = as_event(object);
    struct py_state *state = self->state;
    PyObject *value;
    gg_stream *stream;
    if (py_parse("record", names, 1, 1, 0, args, nargs, kwnames, &value))
        return NULL;
    if (self->closed)
        return py_closed(state, "Event");
    if (self->event && value && Py_IS_TYPE(value, state->stream_type))
        return record_fast(state, self, (struct py_stream *)(void *)value);
    if (record_stream(state, self, value, &stream))
        return NULL;
    return record_on(state, self, stream);
}

/* ---- asking and waiting ---------------------------------------------------------------------------- */

/* GG_OK for an event that was never recorded; GG_ERR_CLOSED for a closed one. */
static gg_status query(const struct py_event *self)
{
    if (self->event)
        return gg_event_query(self->event);
    return self->closed ? GG_ERR_CLOSED : GG_OK;
}

static PyObject *fail(PyObject *self, gg_status status)
{
    struct py_state *state = py_state_of(self);
    return as_event(self)->closed ? py_closed(state, "Event") : py_raise(state, status);
}

static PyObject *event_done(PyObject *self, void *unused)
{
    gg_status status = query(as_event(self));
    (void)unused;
    if (status > GG_NOT_READY)
        return fail(self, status);
    return Py_NewRef(status ? Py_False : Py_True);
}

static gg_status wait_for(gg_event *event)
{
    gg_event_retain(event);
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_event_wait(event, GG_FOREVER);
    PyEval_RestoreThread(thread);
    gg_event_release(event);
    return status;
}

PyDoc_STRVAR(synchronize_doc, "synchronize($self)\n--\n\n"
                              "Wait until the recorded point is reached; at once if nothing was "
                              "recorded. Ctrl-C ends the wait, not the work.");

static PyObject *event_synchronize(PyObject *self, PyObject *unused)
{
    gg_status status = query(as_event(self));
    (void)unused;
    if (status == GG_NOT_READY)
        status = wait_for(as_event(self)->event);
    if (status)
        return fail(self, status);
    py_owners_drain();
    Py_RETURN_NONE;
}

/* The handle, or NULL with an exception: closed, or not bound yet. */
static gg_event *bound_event(PyObject *self)
{
    gg_event *event = as_event(self)->event;
    if (event)
        return event;
    if (as_event(self)->closed)
        py_closed(py_state_of(self), "Event");
    else
        py_invalid(py_state_of(self), "the event was not recorded yet");
    return NULL;
}

PyDoc_STRVAR(
    elapsed_since_doc,
    "elapsed_since($self, start, /)\n--\n\n"
    "Milliseconds from what `start` recorded to what this event recorded. Both must be made\n"
    "with timing=True, of one device, recorded and done.");

static PyObject *event_elapsed_since(PyObject *self, PyObject *start)
{
    struct py_state *state = py_state_of(self);
    double milliseconds;
    if (!Py_IS_TYPE(start, state->event_type))
        return PyErr_Format(PyExc_TypeError, "start must be an Event, not %.200R", start);
    gg_event *first = bound_event(start), *last = first ? bound_event(self) : NULL;
    if (!last)
        return NULL;
    gg_status status = gg_event_elapsed(first, last, &milliseconds);
    if (status == GG_NOT_READY)
        return py_invalid(state, "the events are not both done: synchronize() the later one first");
    return status ? py_raise(state, status) : PyFloat_FromDouble(milliseconds);
}

/* ---- what it is ------------------------------------------------------------------------------------- */

static PyObject *event_device(PyObject *self, void *unused)
{
    (void)unused;
    if (as_event(self)->closed)
        return py_closed(py_state_of(self), "Event");
    if (!as_event(self)->event)
        Py_RETURN_NONE;
    return py_device_wrap(py_state_of(self), gg_event_device(as_event(self)->event));
}

static PyObject *event_handle(PyObject *self, void *unused)
{
    uint64_t handles[4] = {0};
    gg_event *event = bound_event(self);
    (void)unused;
    if (!event || py_check(py_state_of(self), gg_event_native(event, handles)))
        return NULL;
    return PyLong_FromUnsignedLongLong(handles[0]);
}

static PyObject *event_timing(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(as_event(self)->flags & GG_EVENT_TIMING);
}

static PyObject *event_blocking(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(as_event(self)->flags & GG_EVENT_BLOCKING);
}

static PyObject *event_repr(PyObject *object)
{
    const struct py_event *self = as_event(object);
    if (!self->event)
        return PyUnicode_FromFormat("<gpuglue.Event %s>", self->closed ? "closed" : "not recorded");
    const gg_device *device = gg_event_device(self->event);
    return PyUnicode_FromFormat("<gpuglue.Event on %s:%d%s>", gg_device_backend(device),
                                (int)gg_device_ordinal(device),
                                self->flags & GG_EVENT_TIMING ? ", timing" : "");
}

/* ---- its life ------------------------------------------------------------------------------------------ */

PyDoc_STRVAR(close_doc, "close($self)\n--\n\n"
                        "Give the event up. Never waits. Closing again does nothing.");

static PyObject *event_close(PyObject *self, PyObject *unused)
{
    gg_event *event = as_event(self)->event;
    (void)unused;
    as_event(self)->event = NULL;
    as_event(self)->closed = true;
    if (as_event(self)->busy && event)
        as_event(self)->closing = event;
    else
        gg_event_release(event);
    Py_RETURN_NONE;
}

static void event_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (as_event(self)->weakrefs)
        PyObject_ClearWeakRefs(self);
    gg_event_release(as_event(self)->event);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"record", PY_METHOD(event_record), METH_FASTCALL | METH_KEYWORDS, record_doc},
    {"synchronize", event_synchronize, METH_NOARGS, synchronize_doc},
    {"elapsed_since", event_elapsed_since, METH_O, elapsed_since_doc},
    {"close", event_close, METH_NOARGS, close_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"done", event_done, NULL, "Whether the recorded point is reached; True if never recorded.",
     NULL},
    {"device", event_device, NULL, "The Device it is bound to, or None before the first record.",
     NULL},
    {"handle", event_handle, NULL, "The native handle as int, such as a CUevent.", NULL},
    {"timing", event_timing, NULL, "Whether elapsed_since may be asked.", NULL},
    {"blocking", event_blocking, NULL, "Whether a wait sleeps at once.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct py_event, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, PY_SLOT(event_new)},   {Py_tp_dealloc, PY_SLOT(event_dealloc)},
    {Py_tp_repr, PY_SLOT(event_repr)}, {Py_tp_doc, (void *)(uintptr_t)event_doc},
    {Py_tp_methods, methods},          {Py_tp_getset, getters},
    {Py_tp_members, members},          {0, NULL},
};

static PyType_Spec spec = {
    .name = "gpuglue.Event",
    .basicsize = sizeof(struct py_event),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int py_event_add(PyObject *module, struct py_state *state)
{
    return py_type_add(module, &spec, &state->event_type);
}
