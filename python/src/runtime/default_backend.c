/* default_backend.c: the backend that is used where none is named, and the warning when that is host. */
#include "base/reports.h"
#include "runtime/device.h"
#include "runtime/registry.h"
#include "runtime/scope.h"

static int warn_once(struct py_state *state, const char *note)
{
    if (state->warned)
        return 0;
    state->warned = true;
    if (note && py_local_rank(state) != 0) { /* once per node is enough */
        if (!PyErr_Occurred())
            return 0;
        PyErr_Clear();
    }
    return note ? PyErr_WarnEx(state->no_device_warning, note, 1) : 0;
}

/* A thread inside a with-block or after set_current() has a device without a default, and must not decide one. */
int py_warn_no_device(struct py_state *state)
{
    const char *name, *note;
    if (state->warned || state->set_current_called || py_scope_is_open(state))
        return 0;
    return py_check(state, gg_default_backend(&name, &note)) ? -1 : warn_once(state, note);
}

static PyObject *default_backend(PyObject *module, PyObject *Py_UNUSED(unused))
{
    struct py_state *state = PyModule_GetState(module);
    const char *name, *note;
    gg_status status;
    if (py_registry_prepare(state))
        return NULL;
    PY_WITHOUT_GIL(status = gg_default_backend(&name, &note));
    return py_check(state, status) || warn_once(state, note) ? NULL : py_str(name);
}

PyObject *py_call_with_str(PyObject *module, PyObject *argument, gg_status (*function)(const char *))
{
    struct py_state *state = PyModule_GetState(module);
    const char *value = py_utf8(state, argument, "the argument");
    gg_status status;
    if (!value)
        return NULL;
    PY_WITHOUT_GIL(status = function(value));
    return py_none(state, status);
}

static PyObject *use_backend(PyObject *module, PyObject *selection)
{
    struct py_state *state = PyModule_GetState(module);
    if (py_registry_prepare(state))
        return NULL;
    PyObject *done = py_call_with_str(module, selection, gg_use_backend);
    if (done)
        state->warned = state->drivers_initialised = false;
    state->backend_overridden |= done != NULL;
    return done;
}

PyMethodDef py_default_backend_functions[] = {
    {"default_backend", default_backend, METH_NOARGS, py_doc_default_backend},
    {"use_backend", use_backend, METH_O, py_doc_use_backend},
    {NULL, NULL, 0, NULL},
};
