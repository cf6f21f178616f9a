/* event.c: the Python object of an event: binding it to a device, and recording it. */
#include "runtime/event.h"
#include "runtime/device.h"

struct py_event *py_event_new(struct py_state *state, uint32_t flags)
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

/* Under the GIL, so that only one of two threads binds it. */
int py_event_bind(struct py_state *state, struct py_event *self, gg_device *device)
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
        return py_event_bind(state, self, device);
    return py_check(state, gg_event_create(device, self->flags, &self->event));
}

PyObject *py_event_record(struct py_state *state, PyObject *object, gg_stream *stream)
{
    if (object && !Py_IS_TYPE(object, state->event_type))
        return PyErr_Format(PyExc_TypeError, "event must be an Event or None, got %.200R", object);
    struct py_event *self = object ? py_event_of(Py_NewRef(object)) : py_event_new(state, 0);
    gg_status status;
    if (!self)
        return NULL;
    gg_stream_retain(stream);
    if (!self->event && py_event_bind(state, self, gg_stream_device(stream))) {
        Py_CLEAR(self);
    } else {
        gg_event *event = self->event;
        gg_event_retain(event);
        PY_WITHOUT_GIL(status = gg_event_record(event, stream)); /* may wait for a driver's lock */
        gg_event_release(event);
        if (py_check(state, status))
            Py_CLEAR(self);
    }
    gg_stream_release(stream);
    return (PyObject *)self;
}
