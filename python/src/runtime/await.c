/* await.c: what gpuglue/_waiting.py is made of: polls of many events at once, and the callbacks of streams. */
#include "base/owners.h"
#include "runtime/event.h"

static const char capsule_name[] = "gpuglue.event";

/* ---- polls ---- */

static void held_release(PyObject *capsule)
{
    gg_event_release(PyCapsule_GetPointer(capsule, capsule_name));
}

/* _event_hold(event): a capsule with a reference, which remains if the event is closed. None: nothing is recorded. */
static PyObject *event_hold(PyObject *module, PyObject *object)
{
    struct py_state *state = PyModule_GetState(module);
    const struct py_event *self = py_event_of(object);
    if (self->closed)
        return py_closed(state, "Event");
    if (!self->event)
        Py_RETURN_NONE;
    PyObject *capsule = PyCapsule_New(self->event, capsule_name, held_release);
    if (capsule)
        gg_event_retain(self->event);
    return capsule;
}

struct polled {
    gg_event *event;
    gg_status status;
    PyObject *error;
};

/* From @p i on, up to the first that failed, whose error record must be read before the next call. */
static Py_ssize_t polled_until_failure(struct polled *polled, Py_ssize_t i, Py_ssize_t count)
{
    for (; i < count; i++) {
        polled[i].status = gg_event_poll(polled[i].event);
        if (polled[i].status > GG_NOT_READY)
            break;
    }
    return i;
}

static PyObject *polled_exception(struct py_state *state, gg_status status)
{
    PyObject *type, *value, *traceback;
    py_raise(state, status);
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
}

static void polled_query(struct py_state *state, struct polled *polled, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PY_WITHOUT_GIL(i = polled_until_failure(polled, i, count));
        if (i < count)
            polled[i].error = polled_exception(state, polled[i].status);
    }
}

static PyObject *polled_result(const struct polled *polled, Py_ssize_t count)
{
    PyObject *result = PyList_New(0);
    for (Py_ssize_t i = 0; result && i < count; i++) {
        if (polled[i].status == GG_NOT_READY)
            continue;
        PyObject *pair = Py_BuildValue("(nO)", i, polled[i].error ? polled[i].error : Py_None);
        if (!pair || PyList_Append(result, pair))
            Py_CLEAR(result);
        Py_XDECREF(pair);
    }
    return result;
}

/* _poll_events(capsules): a list of (index, exception or None), one for each event that is done or failed. */
static PyObject *events_poll(PyObject *module, PyObject *capsules)
{
    const Py_ssize_t count = PyList_Size(capsules);
    struct polled *polled = count < 0 ? NULL : calloc((size_t)count + 1, sizeof *polled);
    PyObject *result = NULL;
    if (!polled)
        return count < 0 ? NULL : PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        polled[i].event = PyCapsule_GetPointer(PyList_GetItem(capsules, i), capsule_name);
        if (!polled[i].event)
            goto done;
    }
    polled_query(PyModule_GetState(module), polled, count);
    py_owners_drain();
    result = polled_result(polled, count);
done:
    for (Py_ssize_t i = 0; i < count; i++)
        Py_XDECREF(polled[i].error);
    free(polled);
    return result;
}

/* _event_follows(capsule, earlier): see gg_event_follows. */
static PyObject *event_follows(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *event, *earlier;
    if (!PyArg_ParseTuple(args, "OO", &event, &earlier))
        return NULL;
    return PyBool_FromLong(gg_event_follows(PyCapsule_GetPointer(event, capsule_name),
                                            PyCapsule_GetPointer(earlier, capsule_name)));
}

/* ---- calls of _waiting.py ---- */

/* Asynchronous programs and callbacks alone need the module. */
static PyObject *waiting_member(const char *name)
{
    PyObject *module = PyImport_ImportModule("gpuglue._waiting");
    PyObject *member = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    return member;
}

PyObject *py_event_await(PyObject *self)
{
    PyObject *function = waiting_member("wait");
    PyObject *result = function ? PyObject_CallFunctionObjArgs(function, self, NULL) : NULL;
    Py_XDECREF(function);
    return result;
}

PyObject *py_stream_add_callback(PyObject *self, PyObject *callback)
{
    struct py_state *state = py_state_of(self);
    gg_stream *stream = py_stream_handle(self);
    if (!stream)
        return NULL;
    if (!PyCallable_Check(callback))
        return PyErr_Format(PyExc_TypeError, "the callback must be callable, got %.200R", callback);
    if (!state->callback_errors)
        state->callback_errors = waiting_member("_failed");
    if (!state->callback_wait)
        state->callback_wait = waiting_member("finish_callbacks");
    PyObject *function =
        state->callback_errors && state->callback_wait ? waiting_member("add_callback") : NULL;
    PyObject *result =
        function ? PyObject_CallFunctionObjArgs(function, self, callback, NULL) : NULL;
    Py_XDECREF(function);
    return result;
}

int py_callbacks_run(struct py_state *state, PyObject *waited)
{
    PyObject *result = PyObject_CallFunctionObjArgs(state->callback_wait, waited, NULL);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

int py_callbacks_raise(PyObject *waited)
{
    PyObject *function = waiting_member("raise_errors");
    PyObject *result = function ? PyObject_CallFunctionObjArgs(function, waited, NULL) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

int py_callbacks_raise_on(struct py_state *state, gg_stream *stream)
{
    gg_stream_retain(stream);
    PyObject *waited = py_stream_wrap(state, stream);
    const int failed = waited ? py_callbacks_raise(waited) : -1;
    Py_XDECREF(waited);
    return failed;
}

static PyMethodDef functions[] = {
    {"_event_hold", event_hold, METH_O, NULL},
    {"_poll_events", events_poll, METH_O, NULL},
    {"_event_follows", event_follows, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int py_await_add(PyObject *module, struct py_state *Py_UNUSED(state))
{
    return PyModule_AddFunctions(module, functions);
}
