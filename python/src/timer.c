/* timer.c: timer: how long the device took for a with-block's work on a stream. */
#include "py.h"

#include <structmember.h>

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

PyDoc_STRVAR(
    timer_doc,
    "timer(stream=None)\n--\n\n"
    "`with timer(stream) as t:` measures, on the device, the work that the block queues on a\n"
    "stream (the current one if none is given). Afterwards `t.ms` waits for it and gives\n"
    "milliseconds.");

static PyObject *timer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", NULL};
    struct py_state *state = PyType_GetModuleState(type);
    PyObject *value = NULL;
    gg_stream *stream;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:timer", names, &value) ||
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

static void drop_events(struct py_timer *self)
{
    gg_event *start = self->start, *stop = self->stop;
    self->start = self->stop = NULL;
    gg_event_release(start);
    gg_event_release(stop);
}

/* The stream to measure, with a reference of its own. */
static int timed_stream(struct py_state *state, const struct py_timer *self, gg_stream **out)
{
    gg_device *device;
    *out = self->given;
    if (!self->given && (py_device_current(state, &device) || py_device_open(state, device) ||
                         py_check(state, gg_current_stream(device, out))))
        return -1;
    gg_stream_retain(*out);
    return 0;
}

static gg_status make_events(struct py_timer *self, gg_device *device)
{
    drop_events(self);
    gg_status status = gg_event_create(device, GG_EVENT_TIMING, &self->start);
    return status ? status : gg_event_create(device, GG_EVENT_TIMING, &self->stop);
}

static gg_status record(gg_event *event, gg_stream *stream)
{
    gg_event_retain(event);
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_event_record(event, stream);
    PyEval_RestoreThread(thread);
    gg_event_release(event);
    return status;
}

static PyObject *timer_enter(PyObject *object, PyObject *unused)
{
    struct py_state *state = py_state_of(object);
    struct py_timer *self = as_timer(object);
    gg_stream *stream;
    (void)unused;
    if (timed_stream(state, self, &stream))
        return NULL;
    gg_stream *before = self->stream;
    self->stream = stream;
    gg_stream_release(before);
    self->stopped = false;
    gg_status status = make_events(self, gg_stream_device(stream));
    if (!status)
        status = record(self->start, stream);
    return status ? py_raise(state, status) : Py_NewRef(object);
}

static PyObject *timer_exit(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    struct py_state *state = py_state_of(object);
    struct py_timer *self = as_timer(object);
    (void)args;
    (void)nargs;
    if (!self->stop)
        return py_invalid(state, "the timer was not started");
    gg_stream *stream = self->stream;
    gg_stream_retain(stream);
    gg_status status = record(self->stop, stream);
    gg_stream_release(stream);
    if (status)
        return py_raise(state, status);
    self->stopped = true;
    Py_RETURN_NONE;
}

static PyObject *timer_ms(PyObject *object, void *unused)
{
    struct py_state *state = py_state_of(object);
    const struct py_timer *self = as_timer(object);
    double milliseconds = 0;
    (void)unused;
    if (!self->stopped)
        return py_invalid(state, "the timer has not stopped: ask after the with-block");
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
    PyTypeObject *type = Py_TYPE(self);
    if (as_timer(self)->weakrefs)
        PyObject_ClearWeakRefs(self);
    drop_events(as_timer(self));
    gg_stream_release(as_timer(self)->stream);
    gg_stream_release(as_timer(self)->given);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"__enter__", timer_enter, METH_NOARGS, "__enter__($self)\n--\n\nRecord the start."},
    {"__exit__", PY_METHOD(timer_exit), METH_FASTCALL,
     "__exit__($self, *args)\n--\n\nRecord the stop; does not wait."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"ms", timer_ms, NULL, "Milliseconds between start and stop; waits for the stop.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct py_timer, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, PY_SLOT(timer_new)},
    {Py_tp_dealloc, PY_SLOT(timer_dealloc)},
    {Py_tp_doc, (void *)(uintptr_t)timer_doc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "gpuglue.timer",
    .basicsize = sizeof(struct py_timer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int py_timer_add(PyObject *module, struct py_state *state)
{
    return py_type_add(module, &spec, &state->timer_type);
}
