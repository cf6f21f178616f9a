/* event.h: Event. */
#ifndef GPUGLUE_PY_EVENT_H
#define GPUGLUE_PY_EVENT_H

#include "runtime/stream.h"

struct py_event {
    PyObject_HEAD gg_event *event; /* NULL: closed, or not bound to a device yet */
    struct py_state *state;        /* one load, where py_state_of is a call */
    uint32_t flags;
    bool closed;
    uint32_t busy; /* as in a stream */
    gg_event *closing;
    PyObject *weakrefs;
};

static inline struct py_event *py_event_of(PyObject *self)
{
    return (struct py_event *)(void *)self;
}

int py_event_add(PyObject *module, struct py_state *state);

/* ---- event.c ---- */

/* A new event, not bound to a device. */
struct py_event *py_event_new(struct py_state *state, uint32_t flags);
/* Bind an event to a device unless it is bound. -1 with an exception. */
int py_event_bind(struct py_state *state, struct py_event *self, gg_device *device);
/* Record @p event (NULL: a new one) on @p stream; the event as a new reference. */
PyObject *py_event_record(struct py_state *state, PyObject *event, gg_stream *stream);
/* The end of a call that was counted in `busy`. */
static inline void py_event_call_end(struct py_event *event)
{
    if (--event->busy || !event->closing)
        return;
    gg_event_release(event->closing);
    event->closing = NULL;
}

/* Run @p op on an open event and an open stream without the GIL. Counting the call in the two objects, which the
 * GIL protects, is cheaper than two references. */
static inline gg_status py_event_with_stream(struct py_event *event, struct py_stream *stream,
                                             gg_status (*op)(gg_event *event, gg_stream *stream))
{
    gg_event *native = event->event;
    gg_stream *on = stream->stream;
    gg_status status;
    event->busy++;
    stream->busy++;
    PY_WITHOUT_GIL(status = op(native, on));
    py_stream_call_end(stream);
    py_event_call_end(event);
    return status;
}

/* ---- await.c ---- */

int py_await_add(PyObject *module, struct py_state *state);
PyObject *py_event_await(PyObject *self);                             /* tp_as_async->am_await */
PyObject *py_stream_add_callback(PyObject *self, PyObject *function); /* a method of Stream */

#endif
