/* stream.h: Stream, and stream= arguments. */
#ifndef GPUGLUE_PY_STREAM_H
#define GPUGLUE_PY_STREAM_H

#include "base/arguments.h"

struct py_stream {
    PyObject_HEAD gg_stream *stream; /* NULL: closed */
    struct py_state *state;          /* that of its type */
    const void *identity;            /* the stream's address, for the hash; never dereferenced */
    uint32_t busy;                   /* calls that use it without the GIL and without a reference */
    gg_stream *closing;              /* closed meanwhile: the last of these calls releases it */
    PyObject *weakrefs;
};

static inline struct py_stream *py_stream_of(PyObject *self)
{
    return (struct py_stream *)(void *)self;
}

int py_stream_add(PyObject *module, struct py_state *state);
int py_timer_add(PyObject *module, struct py_state *state);
int py_graph_add(PyObject *module, struct py_state *state);

/* ---- stream.c ---- */

/* A Stream for a core stream; takes over the reference. */
PyObject *py_stream_wrap(struct py_state *state, gg_stream *stream);
/* The handle, borrowed, or NULL with "Stream is closed". */
gg_stream *py_stream_handle(PyObject *self);

/* The end of a call that was counted in `busy`. */
static inline void py_stream_call_end(struct py_stream *stream)
{
    if (--stream->busy || !stream->closing)
        return;
    gg_stream_release(stream->closing);
    stream->closing = NULL;
}

/* After a wait for @p waited, a Stream or a Device: wait for the callbacks that were added to it, and raise their
 * errors. Not for those that run at present on this thread. In await.c. */
int py_callbacks_run(struct py_state *state, PyObject *waited);

static inline int py_callbacks_finish(struct py_state *state, PyObject *waited)
{
    return state->callback_wait ? py_callbacks_run(state, waited) : 0;
}

/* After another wait, for an Event or for work of a stream: raise the errors of the callbacks before it that have run. Only if
 * there are any, which costs nothing in a process without callbacks. */
int py_callbacks_raise(PyObject *waited);
int py_callbacks_raise_on(struct py_state *state, gg_stream *stream);

static inline bool py_callbacks_failed(const struct py_state *state)
{
    return state->callback_errors && PyDict_Size(state->callback_errors) > 0;
}

/* ---- stream_borrow.c ---- */

/* stream= argument: None or NULL gives NULL; an open Stream, or any object that Stream.borrow takes, which is on
 * @p device if it does not name one. *out is a new reference. -1 with an exception. The core checks that the
 * stream belongs to the right device. */
int py_stream_arg(struct py_state *state, PyObject *object, gg_device *device, gg_stream **out);
/* The same for the time of a call whose caller holds @p object: a Stream is counted as busy, which is cheaper than a reference. */
struct py_stream_use {
    gg_stream *stream;         /* a reference unless the next is set; or NULL: the current one */
    struct py_stream *counted; /* or NULL */
};
/* No stream, or an open Stream. False: another object. */
static inline bool py_stream_use_plain(const struct py_state *state, PyObject *object,
                                       struct py_stream_use *use)
{
    *use = (struct py_stream_use){NULL, NULL};
    if (!py_given(object))
        return true;
    if (!Py_IS_TYPE(object, state->stream_type) || !py_stream_of(object)->stream)
        return false;
    use->counted = py_stream_of(object);
    use->counted->busy++;
    use->stream = use->counted->stream;
    return true;
}
static inline int py_stream_use_begin(struct py_state *state, PyObject *object, gg_device *device,
                                      struct py_stream_use *use)
{
    return py_stream_use_plain(state, object, use)
               ? 0
               : py_stream_arg(state, object, device, &use->stream);
}
static inline void py_stream_use_end(const struct py_stream_use *use)
{
    if (use->counted)
        py_stream_call_end(use->counted);
    else
        gg_stream_release(use->stream);
}
/* Stream.borrow: *out is a new reference, on the object's own device, else on @p device, NULL: the current one. */
int py_stream_borrow(struct py_state *state, PyObject *object, gg_device *device, gg_stream **out);
/* The same, but only of @p device unless that is NULL. */
int py_stream_borrow_on(struct py_state *state, PyObject *object, gg_device *device,
                        gg_stream **out);

#endif
