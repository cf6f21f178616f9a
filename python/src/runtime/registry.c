/* registry.c: the backends and their devices. */
#include "runtime/registry.h"
#include "base/reports.h"
#include "runtime/device.h"

static int registry_probe(struct py_state *state, enum gg_probe_level level, struct gg_reports **out)
{
    gg_status status;
    if (py_registry_prepare(state))
        return -1;
    PY_WITHOUT_GIL(status = gg_probe(level, out));
    return py_check(state, status);
}

static PyObject *registry_reports(struct py_state *state, enum gg_probe_level level)
{
    struct gg_reports *reports;
    if (registry_probe(state, level, &reports))
        return NULL;
    PyObject *result = py_reports_wrap(state, reports);
    gg_reports_free(reports);
    return result;
}

/* use_backend() overrides the variable in the child processes too. */
static PyObject *registry_probe_isolated(const struct py_state *state, PyObject *timeout)
{
    PyObject *module = PyImport_ImportModule("gpuglue._probe");
    PyObject *overridden = state->backend_overridden ? Py_True : Py_False;
    if (!module)
        return NULL;
    PyObject *result = timeout ? PyObject_CallMethod(module, "isolated", "OO", overridden, timeout)
                               : PyObject_CallMethod(module, "isolated", "O", overridden);
    Py_DECREF(module);
    return result;
}

static PY_FASTCALL(backends)
{
    static const char *const names[] = {"probe", "timeout"};
    struct py_state *state = PyModule_GetState(self);
    PyObject *values[2];
    if (py_parse("backends", names, 2, 1, 0, args, nargs, kwnames, values))
        return NULL;
    if (!values[0])
        return registry_reports(state, GG_PASSIVE);
    if (!PyUnicode_Check(values[0]))
        return PyErr_Format(PyExc_TypeError, "probe must be a str, got %R", values[0]);
    if (!PyUnicode_CompareWithASCIIString(values[0], "passive"))
        return registry_reports(state, GG_PASSIVE);
    if (!PyUnicode_CompareWithASCIIString(values[0], "active"))
        return registry_reports(state, GG_ACTIVE);
    if (!PyUnicode_CompareWithASCIIString(values[0], "isolated"))
        return registry_probe_isolated(state, values[1]);
    return py_invalid(state, "probe is %R, expected 'passive', 'active' or 'isolated'", values[0]);
}

static int registry_append(PyObject *list, PyObject *item)
{
    int failed = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return failed;
}

static int registry_append_name(struct py_state *Py_UNUSED(state), PyObject *list,
                                const char *backend)
{
    return registry_append(list, py_str(backend));
}

static int registry_append_devices(struct py_state *state, PyObject *list, const char *backend)
{
    int32_t count;
    gg_device *device;
    gg_status status;
    PY_WITHOUT_GIL(status = gg_device_count(backend, &count));
    for (int32_t i = 0; !status && i < count; i++) {
        status = gg_device_get(backend, i, &device);
        if (!status && registry_append(list, py_device_wrap(state, device)))
            return -1;
    }
    return py_check(state, status);
}

/* A list of what @p append adds for each available backend. */
static PyObject *registry_list(struct py_state *state,
                               int (*append)(struct py_state *, PyObject *, const char *))
{
    struct gg_reports *reports;
    if (registry_probe(state, GG_ACTIVE, &reports))
        return NULL;
    PyObject *result = PyList_New(0);
    for (size_t i = 0; result && i < reports->count; i++)
        if (gg_report_at(reports, i)->status == GG_PROBE_AVAILABLE &&
            append(state, result, gg_report_at(reports, i)->name))
            Py_CLEAR(result);
    gg_reports_free(reports);
    return result;
}

static PyObject *available_backends(PyObject *module, PyObject *Py_UNUSED(unused))
{
    return registry_list(PyModule_GetState(module), registry_append_name);
}

static PY_FASTCALL(devices)
{
    static const char *const names[] = {"backend"};
    struct py_state *state = PyModule_GetState(self);
    PyObject *value;
    if (py_parse("devices", names, 1, 1, 0, args, nargs, kwnames, &value))
        return NULL;
    if (!py_given(value))
        return registry_list(state, registry_append_devices);
    if (!PyUnicode_Check(value))
        return PyErr_Format(PyExc_TypeError, "backend must be a str or None, got %R", value);
    const char *backend = py_utf8(state, value, "backend");
    if (!backend || py_registry_prepare(state))
        return NULL;
    PyObject *result = PyList_New(0);
    if (result && registry_append_devices(state, result, backend))
        Py_CLEAR(result);
    return result;
}

/* ---- for gpuglue/_discovery.py and __main__.py ---- */

static PyObject *register_plugin(PyObject *module, PyObject *path)
{
    return py_call_with_str(module, path, gg_register_plugin);
}

static PyObject *report_plugin_error(PyObject *module, PyObject *args)
{
    const char *name, *reason;
    if (!PyArg_ParseTuple(args, "ss:_report_plugin_error", &name, &reason))
        return NULL;
    return py_none(PyModule_GetState(module), gg_report_plugin_error(name, reason));
}

static PyObject *listed(PyObject *module, PyObject *Py_UNUSED(unused))
{
    return registry_reports(PyModule_GetState(module), GG_LISTED);
}

static PyObject *add_library_directory(PyObject *module, PyObject *directory)
{
    return py_call_with_str(module, directory, gg_add_library_directory);
}

PyMethodDef py_registry_functions[] = {
    {"backends", PY_METHOD(backends), METH_FASTCALL | METH_KEYWORDS, py_doc_backends},
    {"available_backends", available_backends, METH_NOARGS, py_doc_available_backends},
    {"devices", PY_METHOD(devices), METH_FASTCALL | METH_KEYWORDS, py_doc_devices},
    {"_register_plugin", register_plugin, METH_O,
     "_register_plugin(path, /)\n--\n\nRegister a plugin by its absolute path."},
    {"_report_plugin_error", report_plugin_error, METH_VARARGS,
     "_report_plugin_error(name, reason, /)\n--\n\nRecord why a plugin's entry point failed."},
    {"_listed", listed,
     METH_NOARGS, "_listed()\n--\n\nLike backends(), without probing any driver: which exist, which are excluded."},
    {"_add_library_directory", add_library_directory,
     METH_O, "_add_library_directory(path, /)\n--\n\nA directory to search for drivers before the loader's own."},
    {NULL, NULL, 0, NULL},
};
