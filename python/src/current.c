/* current.c: the current device and stream, with-blocks, and what a wait does about signals. */
#include "py.h"

#include <sys/syscall.h>
#include <unistd.h>

/* A with-block that is open. Kept per module and not per thread: a generator may be finished by
 * another thread than the one that began it. The GIL guards the list. */
struct py_scope {
    struct py_scope *outer;
    PyObject *object; /* a reference */
    unsigned long thread;
    gg_scope *scope;
};

/* ---- the current device ---------------------------------------------------------------------- */

/* The first call may initialise drivers, for a good part of a second. */
static int first_current(struct py_state *state, gg_device **out)
{
    if (py_prepare(state))
        return -1;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_current_device(out);
    PyEval_RestoreThread(thread);
    state->settled = !status;
    return py_check(state, status);
}

int py_device_current(struct py_state *state, gg_device **out)
{
    if (state->settled ? py_check(state, gg_current_device(out)) : first_current(state, out))
        return -1;
    return state->warned ? 0 : py_warn_no_device(state);
}

PyDoc_STRVAR(current_device_doc,
             "current_device()\n--\n\n"
             "The device that calls of this thread without one use, asked anew at each call: the\n"
             "innermost `with`, then Device.use(), then GPUGLUE_DEVICE, then the device that is\n"
             "current in the vendor's sense, then the default backend's first device that is not\n"
             "integrated, else its device 0.");

static PyObject *current_device(PyObject *module, PyObject *unused)
{
    struct py_state *state = PyModule_GetState(module);
    gg_device *device;
    (void)unused;
    if (py_device_current(state, &device))
        return NULL;
    return py_device_wrap(state, device);
}

PyDoc_STRVAR(
    current_stream_doc,
    "current_stream(device=None)\n--\n\n"
    "The stream that calls of this thread without one use on a device: the innermost stream\n"
    "entered by `with`, else the device's default stream.");

static PyObject *current_stream(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                                PyObject *kwnames)
{
    static const char *const names[] = {"device"};
    struct py_state *state = PyModule_GetState(module);
    PyObject *value;
    gg_device *device;
    gg_stream *stream;
    if (py_parse("current_stream", names, 1, 1, 0, args, nargs, kwnames, &value) ||
        py_device_arg(state, value, &device) || py_device_open(state, device))
        return NULL;
    gg_status status = gg_current_stream(device, &stream);
    if (status)
        return py_raise(state, status);
    gg_stream_retain(stream);
    return py_stream_wrap(state, stream);
}

PyDoc_STRVAR(synchronize_doc,
             "synchronize(device=None)\n--\n\n"
             "Wait for all work of a device, also on streams that gpuglue does not know.");

static PyObject *synchronize(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    static const char *const names[] = {"device"};
    struct py_state *state = PyModule_GetState(module);
    PyObject *value;
    gg_device *device;
    if (py_parse("synchronize", names, 1, 1, 0, args, nargs, kwnames, &value) ||
        py_device_arg(state, value, &device))
        return NULL;
    return py_device_synchronize(state, device);
}

/* ---- with-blocks ------------------------------------------------------------------------------- */

static PyObject *enter(struct py_state *state, PyObject *self, gg_device *device, gg_stream *stream)
{
    if (py_device_open(state, device))
        return NULL;
    struct py_scope *entered = malloc(sizeof *entered);
    if (!entered)
        return PyErr_NoMemory();
    gg_status status = gg_enter(device, stream, &entered->scope);
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
    PyObject *entered = enter(state, self, device, stream);
    gg_stream_release(stream);
    return entered;
}

/* The innermost one of this thread, else one of a thread that is gone. */
static struct py_scope **find_scope(struct py_state *state, const PyObject *self)
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

PyObject *py_scope_exit(struct py_state *state, PyObject *self)
{
    struct py_scope **at = find_scope(state, self);
    if (!at)
        return py_invalid(state, "%R was not entered", self);
    struct py_scope *left = *at;
    gg_status status = gg_leave(left->scope);
    if (status)
        return py_raise(state, status);
    *at = left->outer;
    Py_DECREF(left->object); /* not the last one: the caller holds self */
    free(left);
    Py_RETURN_NONE;
}

bool py_scope_open(const struct py_state *state)
{
    unsigned long thread = PyThread_get_thread_ident();
    for (const struct py_scope *scope = state->scopes; scope; scope = scope->outer)
        if (scope->thread == thread)
            return true;
    return false;
}

/* ---- signals during a wait --------------------------------------------------------------------- */

/* Called by the core between two slices of a wait, without the GIL. Only the main thread handles
 * signals, so no other one is held up. A raised exception stays pending for py_raise. */
int py_interrupted(void)
{
    if (syscall(SYS_gettid) != getpid() || py_stopping())
        return 0;
    PyGILState_STATE gil = PyGILState_Ensure();
    int raised = PyErr_CheckSignals();
    PyGILState_Release(gil);
    return raised;
}

static PyMethodDef functions[] = {
    {"current_device", current_device, METH_NOARGS, current_device_doc},
    {"current_stream", PY_METHOD(current_stream), METH_FASTCALL | METH_KEYWORDS, current_stream_doc},
    {"synchronize", PY_METHOD(synchronize), METH_FASTCALL | METH_KEYWORDS, synchronize_doc},
    {NULL, NULL, 0, NULL},
};

int py_current_add(PyObject *module, struct py_state *state)
{
    (void)state;
    return PyModule_AddFunctions(module, functions);
}
