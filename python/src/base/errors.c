/* errors.c: the exceptions, and how a failed status becomes one of them. */
#include "base/errors.h"
#include "base/reports.h"

struct exception {
    size_t slot;            /* its offset in the state */
    size_t base;            /* the offset of its base; its own for Exception */
    PyObject **second_base; /* a built-in as second base, or NULL */
    const char *name, *doc;
};

static const char *const exception_attributes[] = {
    "status", "backend", "device",          "op",      "code",  "name",
    "text",   "library", "library_version", "reports", "ranks", NULL};

#define AT(member) offsetof(struct py_state, member)
static const struct exception exceptions[] = {
    {AT(error), AT(error), NULL, "gpuglue.Error", py_doc_Error},
    {AT(out_of_memory), AT(error), &PyExc_MemoryError, "gpuglue.OutOfMemoryError",
     py_doc_OutOfMemoryError},
    {AT(invalid_argument), AT(error), &PyExc_ValueError, "gpuglue.InvalidArgumentError",
     py_doc_InvalidArgumentError},
    {AT(backend_unavailable), AT(error), NULL, "gpuglue.BackendUnavailableError",
     py_doc_BackendUnavailableError},
    {AT(unsupported), AT(error), NULL, "gpuglue.UnsupportedError", py_doc_UnsupportedError},
    {AT(device_error), AT(error), NULL, "gpuglue.DeviceError", py_doc_DeviceError},
    {AT(device_lost), AT(device_error), NULL, "gpuglue.DeviceLostError", py_doc_DeviceLostError},
    {AT(fork_error), AT(error), NULL, "gpuglue.ForkError", py_doc_ForkError},
    {AT(communicator_error), AT(error), NULL, "gpuglue.CommunicatorError", py_doc_CommunicatorError},
};

static PyObject **exception_slot(struct py_state *state, size_t offset)
{
    return (PyObject **)(void *)((char *)state + offset);
}

/* The base class has every attribute, so that none is ever missing. */
static PyObject *default_attributes(void)
{
    PyObject *dict = PyDict_New();
    for (const char *const *name = exception_attributes; dict && *name; name++)
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
        bases = PyTuple_Pack(2, *exception_slot(state, row->base), *row->second_base);
    } else {
        bases = PyTuple_Pack(1, *exception_slot(state, row->base));
    }
    if (bases)
        result = PyErr_NewExceptionWithDoc(row->name, row->doc, bases, dict);
    Py_XDECREF(dict);
drop_bases:
    Py_XDECREF(bases);
    return result;
}

static int exception_add_warning(PyObject *module, struct py_state *state)
{
    state->no_device_warning = PyErr_NewExceptionWithDoc(
        "gpuglue.NoDeviceWarning", py_doc_NoDeviceWarning, PyExc_RuntimeWarning, NULL);
    if (!state->no_device_warning)
        return -1;
    return PyModule_AddObjectRef(module, "NoDeviceWarning", state->no_device_warning);
}

int py_errors_add(PyObject *module, struct py_state *state)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof exceptions[0]; i++) {
        PyObject **slot = exception_slot(state, exceptions[i].slot);
        *slot = exception_new(state, &exceptions[i]);
        if (!*slot || PyModule_AddObjectRef(module, strrchr(exceptions[i].name, '.') + 1, *slot))
            return -1;
    }
    return exception_add_warning(module, state);
}

/* No default, so that the compiler reports a missing status. */
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
    case GG_ERR_COMMUNICATOR:
        return state->communicator_error;
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

/* Set an attribute and release the value; for NULL an exception is already set. */
static int exception_set(PyObject *exception, const char *name, PyObject *value)
{
    int failed = value ? PyObject_SetAttrString(exception, name, value) : -1;
    Py_XDECREF(value);
    return failed;
}

static int exception_set_text(PyObject *exception, const char *name, const char *text)
{
    if (!text[0])
        return 0;
    return exception_set(exception, name,
                         PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"));
}

static int exception_describe(PyObject *exception, const struct gg_error *error)
{
    if (exception_set_text(exception, "backend", error->backend) ||
        exception_set_text(exception, "op", error->op) ||
        exception_set_text(exception, "name", error->vendor_name) ||
        exception_set_text(exception, "text", error->vendor_text) ||
        exception_set_text(exception, "library", error->library_path) ||
        exception_set_text(exception, "library_version", error->library_version))
        return -1;
    if (error->device >= 0 && exception_set(exception, "device", PyLong_FromLong(error->device)))
        return -1;
    if (error->vendor_code)
        return exception_set(exception, "code", PyLong_FromLongLong(error->vendor_code));
    return 0;
}

/* The ranks that a failure of a communicator names. */
static PyObject *exception_ranks(void)
{
    int32_t ranks[GG_COMM_SIZE_MAX];
    const size_t count = gg_comm_failed_ranks(ranks, GG_COMM_SIZE_MAX);
    PyObject *result = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; result && i < count; i++) {
        PyObject *rank = PyLong_FromLong(ranks[i]);
        if (!rank || PyTuple_SetItem(result, (Py_ssize_t)i, rank))
            Py_CLEAR(result);
    }
    return result;
}

/* Concatenate two strings and release both; NULL stays NULL. */
static PyObject *message_append(PyObject *text, PyObject *more)
{
    PyObject *result = text && more ? PyUnicode_Concat(text, more) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(more);
    return result;
}

/* A line for each file that was tried for an enabled backend. */
static PyObject *message_add_files(PyObject *text, const struct gg_report *report)
{
    if (report->status == GG_PROBE_AVAILABLE || report->status == GG_PROBE_DISABLED)
        return text;
    for (size_t i = 0; text && i < report->tried_count; i++)
        if (strcmp(gg_tried_at(report, i)->outcome, "opened"))
            text = message_append(text, PyUnicode_FromFormat("\n    %s: tried %s: %s", report->name,
                                                             gg_tried_at(report, i)->path,
                                                             gg_tried_at(report, i)->outcome));
    return text;
}

/* Append the probe results of all backends, or of @p backend, to the message, and return them as records. On failure
 * that exception is raised instead. */
static PyObject *message_add_reports(struct py_state *state, PyObject *text, const char *backend,
                                     PyObject **records)
{
    struct gg_reports *reports;
    gg_status status;
    PY_WITHOUT_GIL(status = gg_probe(GG_PASSIVE, &reports));
    if (status)
        return text;
    for (size_t i = 0; text && i < reports->count; i++)
        if (!backend[0] || !strcmp(backend, gg_report_at(reports, i)->name))
            text = message_add_files(text, gg_report_at(reports, i));
    text = message_append(text, PyUnicode_FromString("\n`gpuglue doctor` names the cause, and "
                                                     "the command that corrects it"));
    *records = py_reports_wrap(state, reports);
    gg_reports_free(reports);
    if (!*records)
        Py_CLEAR(text); /* that failure is raised instead */
    return text;
}

/* " [file.py:12]": the Python line that is running; '' without one. */
static PyObject *message_source_line(void)
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

/* A driver error of a launch names its line: a kernel has no traceback of its own. */
static bool message_needs_line(gg_status status, const struct gg_error *error)
{
    return (status == GG_ERR_DEVICE || status == GG_ERR_DEVICE_LOST) &&
           !strcmp(error->op, gg_op_name(GG_OP_kernel_launch));
}

/* What begins with the name of a communicator's function in C gets that of Python. */
static PyObject *message_begin(const char *text)
{
    static const char *const names[][2] = {{"create: ", "Communicator: "},
                                           {"open_device: ", "Communicator: "},
                                           {"create_all: ", "from_devices: "},
                                           {"borrow: ", "from_handle: "},
                                           {"group_begin: ", "group: "}};
    const bool known = !strncmp(text, "gg_comm_", 8);
    const char *begin = "";
    text += known ? 8 : 0;
    for (size_t i = 0; known && !*begin && i < sizeof names / sizeof names[0]; i++)
        if (!strncmp(text, names[i][0], strlen(names[i][0]))) {
            text += strlen(names[i][0]);
            begin = names[i][1];
        }
    return PyUnicode_FromFormat("%s%s", begin, text);
}

static PyObject *exception_make(struct py_state *state, gg_status status,
                                const struct gg_error *error)
{
    const char *text = error->message[0] ? error->message : gg_status_message(status);
    PyObject *message = message_begin(text);
    if (message_needs_line(status, error))
        message = message_append(message, message ? message_source_line() : NULL);
    PyObject *records = NULL, *exception = NULL;
    if (status == GG_ERR_UNAVAILABLE)
        message = message_add_reports(state, message, error->backend, &records);
    if (message)
        exception = PyObject_CallFunctionObjArgs(exception_for(state, status), message, NULL);
    Py_XDECREF(message);
    if (exception &&
        (exception_set_text(exception, "status", gg_status_name(status)) ||
         exception_describe(exception, error) ||
         (status == GG_ERR_COMMUNICATOR && exception_set(exception, "ranks", exception_ranks())) ||
         (records && exception_set(exception, "reports", Py_NewRef(records)))))
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
    PyObject *exception = exception_make(state, status, &error);
    if (exception)
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    return NULL;
}

PyObject *py_invalid(struct py_state *state, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    PyErr_FormatV(state->invalid_argument, format, arguments);
    va_end(arguments);
    return NULL;
}

PyObject *py_closed(struct py_state *state, const char *type)
{
    return py_invalid(state, "%s is closed", type);
}
