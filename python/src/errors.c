/* errors.c: the exceptions, and how a failed status becomes one of them. */
#include "py.h"

struct exception {
    size_t slot;            /* where the state keeps it */
    size_t base;            /* the state's slot of its base, or its own: Exception */
    PyObject **second_base; /* a built-in that it is as well, or NULL */
    const char *name, *doc;
};

static const char *const attributes[] = {
    "status", "backend", "device",          "op",      "code", "name",
    "text",   "library", "library_version", "reports", NULL};

#define AT(member) offsetof(struct py_state, member)
static const struct exception exceptions[] = {
    {AT(error), AT(error), NULL, "gpuglue.Error",
     "What a driver or gpuglue itself refused or failed at.\n\n"
     "The message says all of it; where known, these attributes (else None) say it in parts:\n"
     "status (name of the gg_status), backend, device (ordinal), op, code, name and text (the\n"
     "driver's own number, name and sentence), library and library_version (which driver)."},
    {AT(out_of_memory), AT(error), &PyExc_MemoryError, "gpuglue.OutOfMemoryError",
     "The device, or page-locked host memory, has no room. Also a MemoryError."},
    {AT(invalid_argument), AT(error), &PyExc_ValueError, "gpuglue.InvalidArgumentError",
     "An argument is wrong, or the object was closed. Also a ValueError."},
    {AT(backend_unavailable), AT(error), NULL, "gpuglue.BackendUnavailableError",
     "No backend of those asked for can be used. `reports` holds what backends() says."},
    {AT(unsupported), AT(error), NULL, "gpuglue.UnsupportedError",
     "This device, driver or backend cannot do that; nothing was done."},
    {AT(device_error), AT(error), NULL, "gpuglue.DeviceError",
     "The driver reported an error, of this call or of work queued before."},
    {AT(device_lost), AT(device_error), NULL, "gpuglue.DeviceLostError",
     "The device can no longer be used by this process."},
    {AT(fork_error), AT(error), NULL, "gpuglue.ForkError",
     "The process was forked after the backend was initialised: start it with *spawn* instead."},
};

static PyObject **slot_at(struct py_state *state, size_t offset)
{
    return (PyObject **)(void *)((char *)state + offset);
}

/* The base of all has every attribute, so that none is ever missing. */
static PyObject *default_attributes(void)
{
    PyObject *dict = PyDict_New();
    for (const char *const *name = attributes; dict && *name; name++)
        if (PyDict_SetItemString(dict, *name, Py_None))
            Py_CLEAR(dict);
    return dict;
}

static PyObject *exception_new(struct py_state *state, const struct exception *row)
{
    PyObject *result = NULL, *bases, *dict = NULL;
    if (row->base == row->slot) {
        bases = PyTuple_Pack(1, PyExc_Exception);
        dict = default_attributes();
        if (!dict)
            goto drop_bases;
    } else if (row->second_base) {
        bases = PyTuple_Pack(2, *slot_at(state, row->base), *row->second_base);
    } else {
        bases = PyTuple_Pack(1, *slot_at(state, row->base));
    }
    if (bases)
        result = PyErr_NewExceptionWithDoc(row->name, row->doc, bases, dict);
    Py_XDECREF(dict);
drop_bases:
    Py_XDECREF(bases);
    return result;
}

static int warning_add(PyObject *module, struct py_state *state)
{
    state->no_device_warning = PyErr_NewExceptionWithDoc(
        "gpuglue.NoDeviceWarning", "No GPU was found; work runs on the host backend.",
        PyExc_RuntimeWarning, NULL);
    if (!state->no_device_warning)
        return -1;
    return PyModule_AddObjectRef(module, "NoDeviceWarning", state->no_device_warning);
}

int py_errors_add(PyObject *module, struct py_state *state)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof exceptions[0]; i++) {
        PyObject **slot = slot_at(state, exceptions[i].slot);
        *slot = exception_new(state, &exceptions[i]);
        if (!*slot || PyModule_AddObjectRef(module, strrchr(exceptions[i].name, '.') + 1, *slot))
            return -1;
    }
    return warning_add(module, state);
}

/* One switch and no default: the compiler asks for a new status here. */
static PyObject *exception_for(const struct py_state *state, gg_status status)
{
    switch (status) {
    case GG_ERR_INVALID_ARGUMENT:
    case GG_ERR_NO_SUCH_DEVICE:
    case GG_ERR_CLOSED:
        return state->invalid_argument;
    case GG_ERR_OUT_OF_MEMORY:
        return state->out_of_memory;
    case GG_ERR_UNSUPPORTED:
        return state->unsupported;
    case GG_ERR_UNAVAILABLE:
        return state->backend_unavailable;
    case GG_ERR_FORKED:
        return state->fork_error;
    case GG_ERR_DEVICE:
        return state->device_error;
    case GG_ERR_DEVICE_LOST:
        return state->device_lost;
    case GG_OK:
    case GG_NOT_READY:
    case GG_ERR_SHUT_DOWN:
    case GG_ERR_INTERRUPTED:
    case GG_ERR_INTERNAL:
        break;
    }
    return state->error;
}

/* Set an attribute and drop the value; a NULL value is an error that was raised already. */
static int set_attribute(PyObject *exception, const char *name, PyObject *value)
{
    int failed = value ? PyObject_SetAttrString(exception, name, value) : -1;
    Py_XDECREF(value);
    return failed;
}

static int set_text(PyObject *exception, const char *name, const char *text)
{
    if (!text[0])
        return 0;
    return set_attribute(exception, name,
                         PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"));
}

static int describe(PyObject *exception, const struct gg_error *error)
{
    if (set_text(exception, "backend", error->backend) || set_text(exception, "op", error->op) ||
        set_text(exception, "name", error->vendor_name) ||
        set_text(exception, "text", error->vendor_text) ||
        set_text(exception, "library", error->library_path) ||
        set_text(exception, "library_version", error->library_version))
        return -1;
    if (error->device >= 0 && set_attribute(exception, "device", PyLong_FromLong(error->device)))
        return -1;
    if (error->vendor_code)
        return set_attribute(exception, "code", PyLong_FromLongLong(error->vendor_code));
    return 0;
}

/* `text` and `more`, with a reference to text taken over; NULL stays NULL. */
static PyObject *joined(PyObject *text, PyObject *more)
{
    PyObject *result = text && more ? PyUnicode_Concat(text, more) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(more);
    return result;
}

/* A line for each file that was tried for a backend that was wanted. */
static PyObject *with_files(PyObject *text, const struct gg_report *report)
{
    if (report->status == GG_PROBE_AVAILABLE || report->status == GG_PROBE_DISABLED)
        return text;
    for (size_t i = 0; text && i < report->tried_count; i++)
        if (strcmp(report->tried[i].outcome, "opened"))
            text =
                joined(text, PyUnicode_FromFormat("\n    %s: tried %s: %s", report->name,
                                                  report->tried[i].path, report->tried[i].outcome));
    return text;
}

/* What each backend answered, or the one that was asked for: for people behind the message, for programs as records. Not by py_reports,
 * which would raise another exception where this one is being made. */
static PyObject *with_reports(struct py_state *state, PyObject *text, const char *backend,
                              PyObject **records)
{
    struct gg_reports *reports;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_probe(GG_PASSIVE, &reports);
    PyEval_RestoreThread(thread);
    if (status)
        return text;
    for (size_t i = 0; text && i < reports->count; i++)
        if (!backend[0] || !strcmp(backend, reports->report[i].name))
            text = with_files(text, &reports->report[i]);
    *records = py_reports_wrap(state, reports);
    gg_reports_free(reports);
    if (!*records)
        Py_CLEAR(text); /* whatever went wrong is raised instead */
    return text;
}

/* " [file.py:12]": the line of Python that is running; nothing where there is none. */
static PyObject *current_line(void)
{
    PyFrameObject *frame = PyEval_GetFrame(); /* borrowed */
    PyObject *code = frame ? (PyObject *)PyFrame_GetCode(frame) : NULL;
    PyObject *file = code ? PyObject_GetAttrString(code, "co_filename") : NULL, *line = NULL;
    if (file)
        line = PyUnicode_FromFormat(" [%S:%d]", file, PyFrame_GetLineNumber(frame));
    else if (!PyErr_Occurred())
        line = PyUnicode_FromString("");
    Py_XDECREF(file);
    Py_XDECREF(code);
    return line;
}

/* A driver's failure of a launch names its line: the kernel runs where no traceback goes. */
static bool tells_line(gg_status status, const struct gg_error *error)
{
    return (status == GG_ERR_DEVICE || status == GG_ERR_DEVICE_LOST) &&
           !strcmp(error->op, gg_op_name(GG_OP_kernel_launch));
}

static PyObject *exception_of(struct py_state *state, gg_status status, const struct gg_error *error)
{
    const char *text = error->message[0] ? error->message : gg_status_message(status);
    PyObject *message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    if (tells_line(status, error))
        message = joined(message, message ? current_line() : NULL);
    PyObject *records = NULL, *exception = NULL;
    if (status == GG_ERR_UNAVAILABLE)
        message = with_reports(state, message, error->backend, &records);
    if (message)
        exception = PyObject_CallFunctionObjArgs(exception_for(state, status), message, NULL);
    Py_XDECREF(message);
    if (exception &&
        (set_text(exception, "status", gg_status_name(status)) || describe(exception, error) ||
         (records && set_attribute(exception, "reports", Py_NewRef(records)))))
        Py_CLEAR(exception);
    Py_XDECREF(records);
    return exception;
}

PyObject *py_raise(struct py_state *state, gg_status status)
{
    struct gg_error error = {.struct_size = sizeof error};
    if (status == GG_ERR_INTERRUPTED && PyErr_Occurred())
        return NULL;
    gg_last_error(&error);
    if (error.status != status) /* of an earlier call: this status leaves no record */
        error = (struct gg_error){.struct_size = sizeof error, .device = -1};
    PyObject *exception = exception_of(state, status, &error);
    if (exception)
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    return NULL;
}

int py_check(struct py_state *state, gg_status status)
{
    if (status) {
        py_raise(state, status);
        return -1;
    }
    return 0;
}

PyObject *py_invalid(struct py_state *state, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    PyObject *message = PyUnicode_FromFormatV(format, arguments);
    va_end(arguments);
    if (message)
        PyErr_SetObject(state->invalid_argument, message);
    Py_XDECREF(message);
    return NULL;
}

PyObject *py_closed(struct py_state *state, const char *type)
{
    return py_invalid(state, "%s is closed", type);
}
