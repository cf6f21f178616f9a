/* registry.c: looking for backends, the choice of the default, and the end. */
#include "py.h"

/* ---- looking ------------------------------------------------------------------------------------- */

/* A first look imports Python code, hence not at import. The core is told once; _search has a lock of
 * its own for threads that meet here. */
int py_prepare(struct py_state *state)
{
    if (state->prepared)
        return 0;
    PyObject *search = PyImport_ImportModule("gpuglue._search");
    if (!search)
        return -1;
    PyObject *done = PyObject_CallMethod(search, "prepare", NULL);
    Py_DECREF(search);
    if (!done)
        return -1;
    Py_DECREF(done);
    state->prepared = true;
    return 0;
}

static int probe(struct py_state *state, enum gg_probe_level level, struct gg_reports **out)
{
    if (py_prepare(state))
        return -1;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_probe(level, out);
    PyEval_RestoreThread(thread);
    if (!status)
        return 0;
    py_raise(state, status);
    return -1;
}

PyObject *py_reports(struct py_state *state, enum gg_probe_level level)
{
    struct gg_reports *reports;
    if (probe(state, level, &reports))
        return NULL;
    PyObject *result = py_reports_wrap(state, reports);
    gg_reports_free(reports);
    return result;
}

/* The choice of use_backend() beats the variable in the child processes too. */
static PyObject *isolated(const struct py_state *state, PyObject *timeout)
{
    PyObject *module = PyImport_ImportModule("gpuglue._probe");
    if (!module)
        return NULL;
    PyObject *overruled = state->overruled ? Py_True : Py_False;
    PyObject *result = timeout ? PyObject_CallMethod(module, "isolated", "OO", overruled, timeout)
                               : PyObject_CallMethod(module, "isolated", "O", overruled);
    Py_DECREF(module);
    return result;
}

PyDoc_STRVAR(
    backends_doc,
    "backends(probe='passive', *, timeout=10.0)\n--\n\n"
    "A tuple of BackendInfo, one per backend, the preferred ones first.\n\n"
    "'passive' opens libraries but initialises no driver, so that a later fork is harmless\n"
    "(a backend in use already answers in full); 'active' initialises drivers and counts\n"
    "devices; 'isolated' does so in child processes, each with a time limit in seconds, so\n"
    "that a driver that hangs or crashes becomes a line of the answer.");

static PyObject *backends(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames)
{
    static const char *const names[] = {"probe", "timeout"};
    struct py_state *state = PyModule_GetState(module);
    PyObject *values[2];
    if (py_parse("backends", names, 2, 1, 0, args, nargs, kwnames, values))
        return NULL;
    if (!values[0])
        return py_reports(state, GG_PASSIVE);
    if (!PyUnicode_Check(values[0]))
        return PyErr_Format(PyExc_TypeError, "probe must be a str, not %R", values[0]);
    if (!PyUnicode_CompareWithASCIIString(values[0], "passive"))
        return py_reports(state, GG_PASSIVE);
    if (!PyUnicode_CompareWithASCIIString(values[0], "active"))
        return py_reports(state, GG_ACTIVE);
    if (!PyUnicode_CompareWithASCIIString(values[0], "isolated"))
        return isolated(state, values[1]);
    return py_invalid(state, "probe is %R, expected 'passive', 'active' or 'isolated'", values[0]);
}

static int append_name(PyObject *list, const struct gg_report *report)
{
    PyObject *name = py_text(report->name);
    int failed = name ? PyList_Append(list, name) : -1;
    Py_XDECREF(name);
    return failed;
}

PyDoc_STRVAR(available_backends_doc, "available_backends()\n--\n\n"
                                     "Names of the backends that have a device, the preferred ones "
                                     "first. Initialises drivers.");

static PyObject *available_backends(PyObject *module, PyObject *unused)
{
    struct py_state *state = PyModule_GetState(module);
    struct gg_reports *reports;
    (void)unused;
    if (probe(state, GG_ACTIVE, &reports))
        return NULL;
    PyObject *result = PyList_New(0);
    for (size_t i = 0; result && i < reports->count; i++)
        if (reports->report[i].status == GG_PROBE_AVAILABLE &&
            append_name(result, &reports->report[i]))
            Py_CLEAR(result);
    gg_reports_free(reports);
    return result;
}

static int append_devices(struct py_state *state, PyObject *list, const char *backend)
{
    int32_t count;
    gg_device *device;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_device_count(backend, &count);
    PyEval_RestoreThread(thread);
    for (int32_t i = 0; !status && i < count; i++) {
        status = gg_device_get(backend, i, &device);
        if (status)
            break;
        PyObject *object = py_device_wrap(state, device);
        int failed = object ? PyList_Append(list, object) : -1;
        Py_XDECREF(object);
        if (failed)
            return -1;
    }
    if (!status)
        return 0;
    py_raise(state, status);
    return -1;
}

static PyObject *all_devices(struct py_state *state)
{
    struct gg_reports *reports;
    if (probe(state, GG_ACTIVE, &reports))
        return NULL;
    PyObject *result = PyList_New(0);
    for (size_t i = 0; result && i < reports->count; i++)
        if (reports->report[i].status == GG_PROBE_AVAILABLE &&
            append_devices(state, result, reports->report[i].name))
            Py_CLEAR(result);
    gg_reports_free(reports);
    return result;
}

PyDoc_STRVAR(
    devices_doc,
    "devices(backend=None)\n--\n\n"
    "The devices of one backend, or of all that are available: the preferred backend first,\n"
    "then by ordinal, which is the vendor's own under its visibility variable.");

static PyObject *devices(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                         PyObject *kwnames)
{
    static const char *const names[] = {"backend"};
    struct py_state *state = PyModule_GetState(module);
    PyObject *value;
    if (py_parse("devices", names, 1, 1, 0, args, nargs, kwnames, &value))
        return NULL;
    if (!value || value == Py_None)
        return all_devices(state);
    if (!PyUnicode_Check(value))
        return PyErr_Format(PyExc_TypeError, "backend must be a str or None, not %R", value);
    const char *backend = py_name(state, value, "backend");
    if (!backend || py_prepare(state))
        return NULL;
    PyObject *result = PyList_New(0);
    if (result && append_devices(state, result, backend))
        Py_CLEAR(result);
    return result;
}

/* ---- the default ----------------------------------------------------------------------------------- */

/* A thread inside `with` or use() has its device without a default, and must not decide one. */
int py_warn_no_device(struct py_state *state)
{
    const char *name, *note;
    if (state->warned || state->used || py_scope_open(state))
        return 0;
    gg_status status = gg_default_backend(&name, &note);
    if (status) {
        py_raise(state, status);
        return -1;
    }
    state->warned = true;
    return note ? PyErr_WarnEx(state->no_device_warning, note, 1) : 0;
}

PyDoc_STRVAR(
    default_backend_doc,
    "default_backend()\n--\n\n"
    "Name of the backend used where none is named: use_backend(), else GPUGLUE_BACKEND,\n"
    "else the first with a device; decided once. BackendUnavailableError gives all reasons.");

static PyObject *default_backend(PyObject *module, PyObject *unused)
{
    struct py_state *state = PyModule_GetState(module);
    const char *name, *note;
    (void)unused;
    if (py_prepare(state))
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_default_backend(&name, &note);
    PyEval_RestoreThread(thread);
    if (status)
        return py_raise(state, status);
    if (!state->warned) {
        state->warned = true;
        if (note && PyErr_WarnEx(state->no_device_warning, note, 1))
            return NULL;
    }
    return py_text(name);
}

/* Call a core function that takes one string. */
static PyObject *with_text(PyObject *module, PyObject *argument, gg_status (*function)(const char *))
{
    struct py_state *state = PyModule_GetState(module);
    if (!PyUnicode_Check(argument))
        return PyErr_Format(PyExc_TypeError, "the argument must be a str, not %R", argument);
    const char *value = py_name(state, argument, "the argument");
    if (!value)
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = function(value);
    PyEval_RestoreThread(thread);
    if (status)
        return py_raise(state, status);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    use_backend_doc,
    "use_backend(selection, /)\n--\n\n"
    "Choose the default backend, whatever GPUGLUE_BACKEND says: 'auto', 'name[,name…]' (the\n"
    "first of these with a device, nothing else) or '^name[,name…]' (auto without those).");

static PyObject *use_backend(PyObject *module, PyObject *selection)
{
    struct py_state *state = PyModule_GetState(module);
    if (py_prepare(state))
        return NULL;
    PyObject *done = with_text(module, selection, gg_use_backend);
    if (done)
        state->warned = state->settled = false;
    state->overruled |= done != NULL;
    return done;
}

/* ---- for gpuglue/_search.py and __init__.py ---------------------------------------------------------- */

static PyObject *register_plugin(PyObject *module, PyObject *path)
{
    return with_text(module, path, gg_register_plugin);
}

static PyObject *refuse_plugin(PyObject *module, PyObject *args)
{
    const char *name, *reason;
    if (!PyArg_ParseTuple(args, "ss:_refuse_plugin", &name, &reason))
        return NULL;
    gg_status status = gg_refuse_plugin(name, reason);
    if (status)
        return py_raise(PyModule_GetState(module), status);
    Py_RETURN_NONE;
}

static PyObject *listed(PyObject *module, PyObject *unused)
{
    (void)unused;
    return py_reports(PyModule_GetState(module), GG_LISTED);
}

static PyObject *add_library_directory(PyObject *module, PyObject *directory)
{
    return with_text(module, directory, gg_add_library_directory);
}

PyDoc_STRVAR(shutdown_doc,
             "_shutdown()\n--\n\n"
             "For atexit: no new work, up to 2 s for copies to the host, then no call "
             "to any vendor's library.");

static PyObject *shut_down(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    gg_set_wait_hook(NULL);
    PyThreadState *thread = PyEval_SaveThread();
    gg_settle(2000000000u);
    PyEval_RestoreThread(thread);
    py_owners_drain(); /* what finished copies kept: blocks that a device would wait for */
    py_owners_stop();
    thread = PyEval_SaveThread();
    gg_shutdown(0);
    PyEval_RestoreThread(thread);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"backends", PY_METHOD(backends), METH_FASTCALL | METH_KEYWORDS, backends_doc},
    {"available_backends", available_backends, METH_NOARGS, available_backends_doc},
    {"devices", PY_METHOD(devices), METH_FASTCALL | METH_KEYWORDS, devices_doc},
    {"default_backend", default_backend, METH_NOARGS, default_backend_doc},
    {"use_backend", use_backend, METH_O, use_backend_doc},
    {"_register_plugin", register_plugin, METH_O,
     "_register_plugin(path, /)\n--\n\nBy absolute path."},
    {"_refuse_plugin", refuse_plugin, METH_VARARGS,
     "_refuse_plugin(name, reason, /)\n--\n\nOne that was announced and cannot be had."},
    {"_listed", listed,
     METH_NOARGS, "_listed()\n--\n\nAs backends(), without a look at any driver: who there is, who is excluded."},
    {"_add_library_directory", add_library_directory,
     METH_O, "_add_library_directory(path, /)\n--\n\nWhere vendors' libraries may be, before the bare names."},
    {"_shutdown", shut_down, METH_NOARGS, shutdown_doc},
    {NULL, NULL, 0, NULL},
};

int py_registry_add(PyObject *module, struct py_state *state)
{
    (void)state;
    return PyModule_AddFunctions(module, functions);
}
