/* scope.c: with-blocks of devices and streams. */
#include "runtime/scope.h"
#include "runtime/device.h"

/* An open with-block. Kept per module and not per thread: a generator may be finished by another thread than the
 * one that started it. The GIL guards the list. */
struct py_scope {
    struct py_scope *outer;
    PyObject *object; /* a reference */
    unsigned long thread;
    gg_scope *scope;
};

static PyObject *scope_push(struct py_state *state, PyObject *self, gg_device *device,
                            gg_stream *stream)
{
    if (py_device_open(state, device))
        return NULL;
    struct py_scope *entered = malloc(sizeof *entered);
    if (!entered)
        return PyErr_NoMemory();
    gg_status status = gg_scope_enter(device, stream, &entered->scope);
    if (status) {
        free(entered);
        return py_raise(state, status);
    }
    entered->object = Py_NewRef(self);
    entered->thread = PyThread_get_thread_ident();
    entered->outer = state->scopes;
    state->scopes = entered;
    return Py_NewRef(self);
}

PyObject *py_scope_enter(struct py_state *state, PyObject *self, gg_device *device,
                         gg_stream *stream)
{
    if (stream)
        gg_stream_retain(stream); /* another thread may close it while the device is opened */
    PyObject *entered = scope_push(state, self, device, stream);
    gg_stream_release(stream);
    return entered;
}

/* The innermost one of this thread, else one of a thread that has ended. */
static struct py_scope **scope_find(struct py_state *state, const PyObject *self)
{
    unsigned long thread = PyThread_get_thread_ident();
    struct py_scope **found = NULL;
    for (struct py_scope **at = &state->scopes; *at; at = &(*at)->outer) {
        if ((*at)->object != self)
            continue;
        if ((*at)->thread == thread)
            return at;
        found = at;
    }
    return found;
}

PyObject *py_scope_exit(PyObject *self, PyObject *const *Py_UNUSED(args),
                        Py_ssize_t Py_UNUSED(nargs))
{
    struct py_state *state = py_state_of(self);
    struct py_scope **at = scope_find(state, self);
    if (!at)
        return py_invalid(state, "%R was not entered", self);
    struct py_scope *left = *at;
    gg_status status = gg_scope_leave(left->scope);
    if (status)
        return py_raise(state, status);
    *at = left->outer;
    Py_DECREF(left->object); /* not the last one: the caller holds self */
    free(left);
    Py_RETURN_NONE;
}

bool py_scope_is_open(const struct py_state *state)
{
    unsigned long thread = PyThread_get_thread_ident();
    for (const struct py_scope *scope = state->scopes; scope; scope = scope->outer)
        if (scope->thread == thread)
            return true;
    return false;
}
