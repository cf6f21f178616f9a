/* reports.c: what the core reports of each backend, as Python objects; and which libgpuglue is loaded. */
#include "base/reports.h"

#include <dlfcn.h>
#include <link.h>

static PyStructSequence_Field info_fields[] = {
    {"name", py_doc_BackendInfo_name},
    {"status", py_doc_BackendInfo_status},
    {"reason", py_doc_BackendInfo_reason},
    {"devices", py_doc_BackendInfo_devices},
    {"library", py_doc_BackendInfo_library},
    {"version", py_doc_BackendInfo_version},
    {"plugin", py_doc_BackendInfo_plugin},
    {"plugin_version", py_doc_BackendInfo_plugin_version},
    {"found_by", py_doc_BackendInfo_found_by},
    {"priority", py_doc_BackendInfo_priority},
    {"tried", py_doc_BackendInfo_tried},
    {"notes", py_doc_BackendInfo_notes},
    {NULL, NULL},
};

static PyStructSequence_Desc info_desc = {
    .name = "gpuglue.BackendInfo",
    .doc = py_doc_BackendInfo,
    .fields = info_fields,
    .n_in_sequence = 12,
};

PyObject *py_str(const char *bytes)
{
    return PyUnicode_DecodeUTF8(bytes ? bytes : "", bytes ? (Py_ssize_t)strlen(bytes) : 0,
                                "surrogateescape");
}

/* A tuple of pairs; NULL with an exception. */
static PyObject *report_tried(const struct gg_report *report)
{
    PyObject *result = PyTuple_New((Py_ssize_t)report->tried_count);
    for (size_t i = 0; result && i < report->tried_count; i++) {
        PyObject *path = py_str(gg_tried_at(report, i)->path),
                 *outcome = py_str(gg_tried_at(report, i)->outcome);
        PyObject *pair = path && outcome ? PyTuple_Pack(2, path, outcome) : NULL;
        Py_XDECREF(path);
        Py_XDECREF(outcome);
        if (!pair || PyTuple_SetItem(result, (Py_ssize_t)i, pair))
            Py_CLEAR(result);
    }
    return result;
}

static PyObject *report_notes(const struct gg_report *report)
{
    PyObject *result = PyTuple_New((Py_ssize_t)report->note_count);
    for (size_t i = 0; result && i < report->note_count; i++) {
        PyObject *note = py_str(report->notes[i]);
        if (!note || PyTuple_SetItem(result, (Py_ssize_t)i, note))
            Py_CLEAR(result);
    }
    return result;
}

static PyObject *report_device_count(const struct gg_report *report)
{
    return report->device_count < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(report->device_count);
}

static PyObject *report_wrap(struct py_state *state, const struct gg_report *report)
{
    PyObject *values[] = {
        py_str(report->name),         py_str(gg_probe_status_name(report->status)),
        py_str(report->reason),       report_device_count(report),
        py_str(report->library_path), py_str(report->library_version),
        py_str(report->plugin_path),  py_str(report->plugin_version),
        py_str(report->found_by),     PyLong_FromLong(report->priority),
        report_tried(report),         report_notes(report),
    };
    return py_structseq_new(state->backend_info_type, values,
                            (Py_ssize_t)(sizeof values / sizeof values[0]));
}

PyObject *py_reports_wrap(struct py_state *state, const struct gg_reports *reports)
{
    PyObject *result = PyTuple_New((Py_ssize_t)reports->count);
    for (size_t i = 0; result && i < reports->count; i++) {
        PyObject *info = report_wrap(state, gg_report_at(reports, i));
        if (!info || PyTuple_SetItem(result, (Py_ssize_t)i, info))
            Py_CLEAR(result);
    }
    return result;
}

/* The RUNPATH of this file: where the loader searches for its libgpuglue. */
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
    if (strings < (ElfW(Addr))here.dli_fbase) /* some loaders leave the address relative */
        strings += (ElfW(Addr))here.dli_fbase;
    return (const char *)(strings + offset);
}

PyDoc_STRVAR(library_doc,
             "_library()\n--\n\n"
             "(path of the loaded libgpuglue, its version, RUNPATH, version built for). "
             "LD_LIBRARY_PATH may have selected another package's libgpuglue.");

static PyObject *library_info(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    const char *path = gg_library_path();
    return Py_BuildValue("(ssss)", path ? path : "", gg_version(), own_runpath(), GG_VERSION);
}

static PyMethodDef functions[] = {
    {"_library", library_info, METH_NOARGS, library_doc},
    {NULL, NULL, 0, NULL},
};

int py_reports_add(PyObject *module, struct py_state *state)
{
    if (py_structseq_add(module, "BackendInfo", &info_desc, &state->backend_info_type))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
