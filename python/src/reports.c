/* reports.c: what the core found of each backend, as Python objects; and which libgpuglue this is. */
#include "py.h"

#include <dlfcn.h>
#include <link.h>

static PyStructSequence_Field info_fields[] = {
    {"name", "backend, such as 'cuda'"},
    {"status", "'available', or one word for what is missing, such as 'library-not-found'"},
    {"reason", "a sentence that a user can act on; '' when available"},
    {"devices", "number of devices; None where this level of probing does not tell"},
    {"library", "path of the vendor's library, or ''"},
    {"version", "version of the vendor's library, or ''"},
    {"plugin", "path of the plugin, or '' (linked in, or not found)"},
    {"plugin_version", "version of the plugin, or ''"},
    {"found_by", "how the library was found: 'environment', 'already loaded', 'soname', …"},
    {"priority", "higher is preferred"},
    {"tried", "tuple of (path, outcome), in the order of the search"},
    {"notes", "tuple of further facts: masks that are set, other runtimes, two copies"},
    {NULL, NULL},
};

static PyStructSequence_Desc info_desc = {
    .name = "gpuglue.BackendInfo",
    .doc = "What was found of one backend.",
    .fields = info_fields,
    .n_in_sequence = 12,
};

PyObject *py_text(const char *bytes)
{
    return PyUnicode_DecodeUTF8(bytes ? bytes : "", bytes ? (Py_ssize_t)strlen(bytes) : 0,
                                "surrogateescape");
}

/* A tuple of pairs; NULL with an exception. */
static PyObject *tried_of(const struct gg_report *report)
{
    PyObject *result = PyTuple_New((Py_ssize_t)report->tried_count);
    for (size_t i = 0; result && i < report->tried_count; i++) {
        PyObject *path = py_text(report->tried[i].path),
                 *outcome = py_text(report->tried[i].outcome);
        PyObject *pair = path && outcome ? PyTuple_Pack(2, path, outcome) : NULL;
        Py_XDECREF(path);
        Py_XDECREF(outcome);
        if (!pair || PyTuple_SetItem(result, (Py_ssize_t)i, pair))
            Py_CLEAR(result);
    }
    return result;
}

static PyObject *notes_of(const struct gg_report *report)
{
    PyObject *result = PyTuple_New((Py_ssize_t)report->note_count);
    for (size_t i = 0; result && i < report->note_count; i++) {
        PyObject *note = py_text(report->notes[i]);
        if (!note || PyTuple_SetItem(result, (Py_ssize_t)i, note))
            Py_CLEAR(result);
    }
    return result;
}

static PyObject *count_of(const struct gg_report *report)
{
    return report->device_count < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(report->device_count);
}

static PyObject *info_of(struct py_state *state, const struct gg_report *report)
{
    PyObject *values[] = {
        py_text(report->name),
        py_text(gg_probe_status_name(report->status)),
        py_text(report->reason),
        count_of(report),
        py_text(report->library_path),
        py_text(report->library_version),
        py_text(report->plugin_path),
        py_text(report->plugin_version),
        py_text(report->found_by),
        PyLong_FromLong(report->priority),
        tried_of(report),
        notes_of(report),
    };
    PyObject *result = PyStructSequence_New(state->backend_info_type);
    bool failed = !result;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        failed |= !values[i];
        if (result)
            PyStructSequence_SetItem(result, (Py_ssize_t)i, values[i]); /* takes the reference */
        else
            Py_XDECREF(values[i]);
    }
    if (failed)
        Py_CLEAR(result);
    return result;
}

PyObject *py_reports_wrap(struct py_state *state, const struct gg_reports *reports)
{
    PyObject *result = PyTuple_New((Py_ssize_t)reports->count);
    for (size_t i = 0; result && i < reports->count; i++) {
        PyObject *info = info_of(state, &reports->report[i]);
        if (!info || PyTuple_SetItem(result, (Py_ssize_t)i, info))
            Py_CLEAR(result);
    }
    return result;
}

/* Where this file asks the loader to look for its libgpuglue: the RUNPATH written at build time. */
static const char *own_runpath(void)
{
    Dl_info here;
    ElfW(Addr) strings = 0, offset = 0;
    for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB)
            strings = entry->d_un.d_ptr;
        if (entry->d_tag == DT_RUNPATH || entry->d_tag == DT_RPATH)
            offset = entry->d_un.d_val;
    }
    if (!strings || !offset || !dladdr(_DYNAMIC, &here))
        return "";
    if (strings < (ElfW(Addr))here.dli_fbase) /* some loaders leave it relative */
        strings += (ElfW(Addr))here.dli_fbase;
    return (const char *)(strings + offset);
}

PyDoc_STRVAR(library_doc, "_library()\n--\n\n"
                          "(path of the libgpuglue that was loaded, its version, RUNPATH, version "
                          "built for): LD_LIBRARY_PATH may have led to another library's.");

static PyObject *library(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    const char *path = gg_library_path();
    return Py_BuildValue("(ssss)", path ? path : "", gg_version(), own_runpath(), GG_VERSION);
}

static PyMethodDef functions[] = {
    {"_library", library, METH_NOARGS, library_doc},
    {NULL, NULL, 0, NULL},
};

int py_reports_add(PyObject *module, struct py_state *state)
{
    state->backend_info_type = PyStructSequence_NewType(&info_desc);
    if (!state->backend_info_type ||
        PyModule_AddObjectRef(module, "BackendInfo", (PyObject *)state->backend_info_type))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
