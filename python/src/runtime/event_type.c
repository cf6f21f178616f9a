/* event_type.c: the type Event: its attributes, methods and slots. */
#include "base/foreign_names.h"
#include "base/owners.h"
#include "runtime/device.h"
#include "runtime/event.h"

static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"device", "timing", "blocking", NULL};
    struct py_state *state = PyType_GetModuleState(type);
    PyObject *where = Py_None;
    int timing = 0, blocking = 0;
    gg_device *device;
    Py_ssize_t count = PyTuple_Size(args);
    if (!kwargs && count == 1) /* the common case; parsing takes longer than all else here */
        where = PyTuple_GetItem(args, 0);
    else if ((kwargs || count) && !PyArg_ParseTupleAndKeywords(args, kwargs, "|Opp:Event", names,
                                                               &where, &timing, &blocking)) {
        py_foreign_argument(kwargs, "enable_timing", "timing=");
        return NULL;
    }
    struct py_event *self =
        py_event_new(state, (timing ? GG_EVENT_TIMING : 0u) | (blocking ? GG_EVENT_BLOCKING : 0u));
    if (self && where != Py_None &&
        (py_device_arg(state, where, &device) || py_event_bind(state, self, device)))
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* ---- recording ---- */

/* stream= of record, or the current one of the event's device; a new reference. */
static int event_stream_arg(struct py_state *state, const struct py_event *self, PyObject *value,
                            gg_stream **out)
{
    gg_device *device = self->event ? gg_event_device(self->event) : NULL;
    return py_given(value) ? py_stream_arg(state, value, device, out)
                           : py_stream_current(state, device, out);
}

/* The common case: already bound, and a Stream of gpuglue. */
static PyObject *event_record_fast(struct py_state *state, struct py_event *self,
                                   struct py_stream *stream)
{
    if (!stream->stream)
        return py_closed(state, "Stream");
    gg_status status = py_event_with_stream(self, stream, gg_event_record);
    return status ? py_raise(state, status) : Py_NewRef((PyObject *)self);
}

static PY_FASTCALL(event_record)
{
    static const char *const names[] = {"stream"};
    struct py_event *event = py_event_of(self);
    struct py_state *state = event->state;
    PyObject *value;
    gg_stream *stream;
    if (py_parse("record", names, 1, 1, 0, args, nargs, kwnames, &value))
        return NULL;
    if (event->closed)
        return py_closed(state, "Event");
    if (event->event && value && Py_IS_TYPE(value, state->stream_type))
        return event_record_fast(state, event, (struct py_stream *)(void *)value);
    if (event_stream_arg(state, event, value, &stream))
        return NULL;
    PyObject *result = py_event_record(state, self, stream);
    gg_stream_release(stream);
    return result;
}

/* ---- queries and waits ---- */

/* GG_OK for an event that was never recorded; GG_ERR_CLOSED for a closed one. */
static gg_status event_query(const struct py_event *self)
{
    if (self->event)
        return gg_event_query(self->event);
    return self->closed ? GG_ERR_CLOSED : GG_OK;
}

static PyObject *event_raise(PyObject *self, gg_status status)
{
    struct py_state *state = py_state_of(self);
    return py_event_of(self)->closed ? py_closed(state, "Event") : py_raise(state, status);
}

static PyObject *event_done(PyObject *self, void *Py_UNUSED(unused))
{
    gg_status status = event_query(py_event_of(self));
    if (status > GG_NOT_READY)
        return event_raise(self, status);
    return Py_NewRef(status ? Py_False : Py_True);
}

static gg_status event_wait(gg_event *event)
{
    gg_event_retain(event);
    gg_status status;
    PY_WITHOUT_GIL(status = gg_event_wait(event, GG_FOREVER));
    gg_event_release(event);
    return status;
}

static PyObject *event_synchronize(PyObject *self, PyObject *Py_UNUSED(unused))
{
    gg_status status = event_query(py_event_of(self));
    if (status == GG_NOT_READY)
        status = event_wait(py_event_of(self)->event);
    if (status)
        return event_raise(self, status);
    py_owners_drain();
    const bool failed = py_callbacks_failed(py_event_of(self)->state) && py_callbacks_raise(self);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* The handle, or NULL with an exception: closed, or not bound yet. */
static gg_event *event_bound(PyObject *self)
{
    gg_event *event = py_event_of(self)->event;
    if (event)
        return event;
    if (py_event_of(self)->closed)
        py_closed(py_state_of(self), "Event");
    else
        py_invalid(py_state_of(self), "the event has not been recorded yet");
    return NULL;
}

static PyObject *event_elapsed_since(PyObject *self, PyObject *start)
{
    struct py_state *state = py_state_of(self);
    double milliseconds;
    if (!Py_IS_TYPE(start, state->event_type))
        return PyErr_Format(PyExc_TypeError, "start must be an Event, got %.200R", start);
    gg_event *first = event_bound(start), *last = first ? event_bound(self) : NULL;
    if (!last)
        return NULL;
    gg_status status = gg_event_elapsed(first, last, &milliseconds);
    if (status == GG_NOT_READY)
        return py_invalid(state, "the events are not both done: synchronize() the later one first");
    return status ? py_raise(state, status) : PyFloat_FromDouble(milliseconds);
}

/* ---- attributes ---- */

static PyObject *event_device(PyObject *self, void *Py_UNUSED(unused))
{
    if (py_event_of(self)->closed)
        return py_closed(py_state_of(self), "Event");
    if (!py_event_of(self)->event)
        Py_RETURN_NONE;
    return py_device_wrap(py_state_of(self), gg_event_device(py_event_of(self)->event));
}

static PyObject *event_handle(PyObject *self, void *Py_UNUSED(unused))
{
    uint64_t handles[4] = {0};
    gg_event *event = event_bound(self);
    if (!event || py_check(py_state_of(self), gg_event_native(event, handles)))
        return NULL;
    return PyLong_FromUnsignedLongLong(handles[0]);
}

static PyObject *event_timing(PyObject *self, void *Py_UNUSED(unused))
{
    return PyBool_FromLong(py_event_of(self)->flags & GG_EVENT_TIMING);
}

static PyObject *event_blocking(PyObject *self, void *Py_UNUSED(unused))
{
    return PyBool_FromLong(py_event_of(self)->flags & GG_EVENT_BLOCKING);
}

static PyObject *event_repr(PyObject *object)
{
    const struct py_event *self = py_event_of(object);
    if (!self->event)
        return PyUnicode_FromFormat("<gpuglue.Event %s>", self->closed ? "closed" : "not recorded");
    const gg_device *device = gg_event_device(self->event);
    return PyUnicode_FromFormat("<gpuglue.Event on %s:%d%s>", gg_device_backend(device),
                                (int)gg_device_ordinal(device),
                                self->flags & GG_EVENT_TIMING ? ", timing" : "");
}

/* ---- lifetime ---- */

static PyObject *event_close(PyObject *self, PyObject *Py_UNUSED(unused))
{
    gg_event *event = py_event_of(self)->event;
    py_event_of(self)->event = NULL;
    py_event_of(self)->closed = true;
    if (py_event_of(self)->busy && event)
        py_event_of(self)->closing = event;
    else
        gg_event_release(event);
    Py_RETURN_NONE;
}

static void event_dealloc(PyObject *self)
{
    if (py_event_of(self)->weakrefs)
        PyObject_ClearWeakRefs(self);
    gg_event_release(py_event_of(self)->event);
    py_object_free(self);
}

static PyMethodDef methods[] = {
    {"record", PY_METHOD(event_record), METH_FASTCALL | METH_KEYWORDS, py_doc_Event_record},
    {"synchronize", event_synchronize, METH_NOARGS, py_doc_Event_synchronize},
    {"elapsed_since", event_elapsed_since, METH_O, py_doc_Event_elapsed_since},
    {"close", event_close, METH_NOARGS, py_doc_Event_close},
    PY_FOREIGN_DIR,
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"done", event_done, NULL, py_doc_Event_done, NULL},
    {"device", event_device, NULL, py_doc_Event_device, NULL},
    {"handle", event_handle, NULL, py_doc_Event_handle, NULL},
    {"timing", event_timing, NULL, py_doc_Event_timing, NULL},
    {"blocking", event_blocking, NULL, py_doc_Event_blocking, NULL},
    PY_FOREIGN("elapsed_time", "end.elapsed_since(start), in milliseconds"),
    PY_FOREIGN("time_since", "elapsed_since(start), in milliseconds"),
    PY_FOREIGN("time_till", "end.elapsed_since(start), in milliseconds"),
    PY_FOREIGN("sync", "synchronize()"),
    PY_FOREIGN("query", "done"),
    PY_FOREIGN("is_done", "done"),
    PY_FOREIGN("wait", "stream.wait(event)"),
    PY_FOREIGN("ptr", "handle"),
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, PY_SLOT(event_new)},
    {Py_tp_dealloc, PY_SLOT(event_dealloc)},
    {Py_tp_repr, PY_SLOT(event_repr)},
    {Py_am_await, PY_SLOT(py_event_await)},
    {Py_tp_doc, (void *)(uintptr_t)py_doc_Event},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_members, PY_WEAKLIST_MEMBERS(struct py_event)},
    {0, NULL},
};

int py_event_add(PyObject *module, struct py_state *state)
{
    return py_type_add(module, "gpuglue.Event", sizeof(struct py_event), Py_TPFLAGS_IMMUTABLETYPE,
                       slots, &state->event_type);
}
