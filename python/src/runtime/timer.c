/* timer.c: Timer: the time the device takes for the work that a with-block queues on a stream. */
#include "runtime/device.h"
#include "runtime/stream.h"

struct py_timer {
    PyObject_HEAD gg_stream *given; /* NULL: the current one at each entry */
    gg_stream *stream; /* the one that was entered with: the block may change what is current */
    gg_event *start, *stop;
    bool stopped;
    PyObject *weakrefs;
};

static struct py_timer *as_timer(PyObject *self)
{
    return (struct py_timer *)(void *)self;
}

static PyObject *timer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", NULL};
    struct py_state *state = PyType_GetModuleState(type);
    PyObject *value = NULL;
    gg_stream *stream;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Timer", names, &value) ||
        py_stream_arg(state, value, NULL, &stream))
        return NULL;
    struct py_timer *self = PyObject_New(struct py_timer, type);
    if (!self) {
        gg_stream_release(stream);
        return NULL;
    }
    self->given = stream;
    self->stream = NULL;
    self->start = self->stop = NULL;
    self->stopped = false;
    self->weakrefs = NULL;
    return (PyObject *)self;
}

static void timer_release_events(struct py_timer *self)
{
    gg_event *start = self->start, *stop = self->stop;
    self->start = self->stop = NULL;
    gg_event_release(start);
    gg_event_release(stop);
}

static gg_status timer_create_events(struct py_timer *self, gg_device *device)
{
    timer_release_events(self);
    gg_status status = gg_event_create(device, GG_EVENT_TIMING, &self->start);
    return status ? status : gg_event_create(device, GG_EVENT_TIMING, &self->stop);
}

static gg_status timer_record(gg_event *event, gg_stream *stream)
{
    gg_event_retain(event);
    gg_status status;
    PY_WITHOUT_GIL(status = gg_event_record(event, stream));
    gg_event_release(event);
    return status;
}

static PyObject *timer_enter(PyObject *object, PyObject *Py_UNUSED(unused))
{
    struct py_state *state = py_state_of(object);
    struct py_timer *self = as_timer(object);
    gg_stream *stream;
    if (self->given)
        gg_stream_retain(stream = self->given);
    else if (py_stream_current(state, NULL, &stream))
        return NULL;
    gg_stream *before = self->stream;
    self->stream = stream;
    gg_stream_release(before);
    self->stopped = false;
    gg_status status = timer_create_events(self, gg_stream_device(stream));
    if (!status)
        status = timer_record(self->start, stream);
    return status ? py_raise(state, status) : Py_NewRef(object);
}

static PyObject *timer_exit(PyObject *object, PyObject *const *Py_UNUSED(args),
                            Py_ssize_t Py_UNUSED(nargs))
{
    struct py_state *state = py_state_of(object);
    struct py_timer *self = as_timer(object);
    if (!self->stop)
        return py_invalid(state, "the timer has not been started");
    gg_stream *stream = self->stream;
    gg_stream_retain(stream);
    gg_status status = timer_record(self->stop, stream);
    gg_stream_release(stream);
    if (status)
        return py_raise(state, status);
    self->stopped = true;
    Py_RETURN_NONE;
}

static PyObject *timer_ms(PyObject *object, void *Py_UNUSED(unused))
{
    struct py_state *state = py_state_of(object);
    const struct py_timer *self = as_timer(object);
    double milliseconds = 0;
    if (!self->stopped)
        return py_invalid(state, "the timer has not stopped: read ms after the with-block");
    gg_event *start = self->start, *stop = self->stop;
    gg_event_retain(start);
    gg_event_retain(stop);
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_event_wait(stop, GG_FOREVER);
    if (!status)
        status = gg_event_elapsed(start, stop, &milliseconds);
    PyEval_RestoreThread(thread);
    gg_event_release(start);
    gg_event_release(stop);
    return status ? py_raise(state, status) : PyFloat_FromDouble(milliseconds);
}

static void timer_dealloc(PyObject *self)
{
    if (as_timer(self)->weakrefs)
        PyObject_ClearWeakRefs(self);
    timer_release_events(as_timer(self));
    gg_stream_release(as_timer(self)->stream);
    gg_stream_release(as_timer(self)->given);
    py_object_free(self);
}

static PyMethodDef methods[] = {
    {"__enter__", timer_enter, METH_NOARGS, py_doc_Timer___enter__},
    {"__exit__", PY_METHOD(timer_exit), METH_FASTCALL, py_doc_Timer___exit__},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"ms", timer_ms, NULL, py_doc_Timer_ms, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, PY_SLOT(timer_new)},
    {Py_tp_dealloc, PY_SLOT(timer_dealloc)},
    {Py_tp_doc, (void *)(uintptr_t)py_doc_Timer},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_members, PY_WEAKLIST_MEMBERS(struct py_timer)},
    {0, NULL},
};

int py_timer_add(PyObject *module, struct py_state *state)
{
    return py_type_add(module, "gpuglue.Timer", sizeof(struct py_timer), Py_TPFLAGS_IMMUTABLETYPE,
                       slots, &state->timer_type);
}
