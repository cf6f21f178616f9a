/* external.c: memory of other owners: pinned in place, wrapped by its address; managed memory. */
#include "base/owners.h"
#include "runtime/device.h"
#include "runtime/stream.h"
#include "memory/buffer.h"
#include "memory/pointer.h"

/* ---- host_register ---- */

/* Python's message says what is wrong with the buffer; add what is expected. */
static void writable_bytes_explain(void)
{
    PyObject *type, *reason, *trace;
    PyErr_Fetch(&type, &reason, &trace);
    PyErr_Format(
        type,
        "host_register needs writable memory that is contiguous in C order (%S): register a "
        "contiguous, writable copy",
        reason);
    Py_XDECREF(type);
    Py_XDECREF(reason);
    Py_XDECREF(trace);
}

/* The bytes of a writable buffer; the memoryview keeps it and its exporter. */
static PyObject *writable_bytes(PyObject *object, Py_buffer *bytes)
{
    PyObject *view = PyMemoryView_FromObject(object);
    if (!view)
        return NULL;
    if (PyObject_GetBuffer(view, bytes, PyBUF_CONTIG)) {
        writable_bytes_explain();
        Py_DECREF(view);
        return NULL;
    }
    return view;
}

static PY_FASTCALL(host_register)
{
    static const char *const names[] = {"obj", "device"};
    struct py_state *state = PyModule_GetState(self);
    PyObject *values[2], *view;
    gg_device *device;
    gg_memory *memory = NULL;
    Py_buffer bytes;
    if (py_parse("host_register", names, 2, 2, 1, args, nargs, kwnames, values) ||
        py_device_arg(state, values[1], &device))
        return NULL;
    view = writable_bytes(values[0], &bytes);
    if (!view)
        return NULL;
    py_owners_drain();
    gg_status status;
    PY_WITHOUT_GIL(status = gg_memory_host_register(device, bytes.buf, (size_t)bytes.len,
                                                    py_owner_release, view, &memory));
    py_check(state, status);
    PyBuffer_Release(&bytes);
    if (status) {
        Py_DECREF(view);
        return NULL;
    }
    return py_buffer_wrap_in_use(state, memory);
}

/* ---- from_ptr ---- */

static int external_read_size(struct py_state *state, PyObject *object, size_t *out)
{
    uint64_t size;
    if (py_uint64(state, object, "nbytes", &size))
        return -1;
    *out = (size_t)size;
    return 0;
}

static int external_read_device(struct py_state *state, PyObject *object, gg_device **out)
{
    if (!py_given(object))
        return 0;
    return py_device_arg(state, object, out) || py_device_open(state, *out) ? -1 : 0;
}

PY_FASTCALL(py_buffer_from_ptr)
{
    static const char *const names[] = {"ptr", "nbytes", "device", "owner"};
    struct py_state *state = PyType_GetModuleState((PyTypeObject *)self);
    struct py_pointer claim = {0};
    gg_device *device;
    enum gg_memory_kind kind;
    gg_memory *memory = NULL;
    PyObject *values[4];
    if (py_parse("from_ptr", names, 4, 3, 2, args, nargs, kwnames, values) ||
        py_address_arg(state, values[0], &claim.pointer) ||
        external_read_size(state, values[1], &claim.nbytes) ||
        external_read_device(state, values[2], &claim.wanted) ||
        py_pointer_locate(state, &claim, &device, &kind))
        return NULL;
    PyObject *owner = py_given(values[3]) ? Py_NewRef(values[3]) : NULL;
    gg_status status = gg_memory_wrap(device, kind, claim.pointer, claim.nbytes,
                                      owner ? py_owner_release : NULL, owner, &memory);
    if (py_check(state, status)) {
        Py_XDECREF(owner);
        return NULL;
    }
    return py_buffer_wrap_in_use(state, memory);
}

/* ---- managed memory ---- */

static int managed_read_location(PyObject *self, PyObject *object, bool *host)
{
    struct py_state *state = py_state_of(self);
    gg_device *device = NULL, *own = gg_memory_device(py_buffer_memory(self));
    *host = object && PyUnicode_Check(object) && !PyUnicode_CompareWithASCIIString(object, "host");
    if (*host || !py_given(object))
        return 0;
    if (py_device_arg(state, object, &device))
        return -1;
    if (device == own)
        return 0;
    return PY_FAIL(
        state->invalid_argument,
        "managed memory of %s:%d can be moved only to its own device or to \"host\", got %s:%d",
        gg_device_backend(own), (int)gg_device_ordinal(own), gg_device_backend(device),
        (int)gg_device_ordinal(device));
}

PY_FASTCALL(py_buffer_prefetch)
{
    static const char *const names[] = {"device", "stream"};
    struct py_state *state = py_state_of(self);
    gg_memory *memory = py_buffer_memory(self);
    gg_stream *stream = NULL;
    PyObject *values[2];
    bool host;
    if (!memory || py_parse("prefetch", names, 2, 2, 0, args, nargs, kwnames, values))
        return NULL;
    gg_memory_retain(memory); /* Python code of the arguments may close it */
    if (managed_read_location(self, values[0], &host) ||
        (values[1] && py_stream_arg(state, values[1], gg_memory_device(memory), &stream)) ||
        !py_buffer_memory(self)) {
        gg_stream_release(stream);
        gg_memory_release(memory);
        return NULL;
    }
    py_buffer_touch(self);
    gg_status status;
    PY_WITHOUT_GIL(status = gg_memory_prefetch(memory, host, stream));
    gg_memory_release(memory);
    py_check(state, status);
    gg_stream_release(stream);
    return status ? NULL : Py_NewRef(Py_None);
}

static int managed_read_advice(struct py_state *state, PyObject *object, enum gg_advice *out)
{
    static const char *const words[] = {
        "read_mostly", "not_read_mostly", "preferred_location", "no_preferred_location",
        "accessed_by", "not_accessed_by", "coarse_grained",     "not_coarse_grained"};
    for (int i = 0; i < 8 && PyUnicode_Check(object); i++)
        if (!PyUnicode_CompareWithASCIIString(object, words[i])) {
            *out = (enum gg_advice)(i + 1);
            return 0;
        }
    return PY_FAIL(
        state->invalid_argument,
        "advice must be 'read_mostly', 'preferred_location', 'accessed_by' or 'coarse_grained', or "
        "one of their opposites ('not_read_mostly', 'no_preferred_location', 'not_accessed_by', "
        "'not_coarse_grained'), not %R",
        object);
}

PY_FASTCALL(py_buffer_advise)
{
    static const char *const names[] = {"advice", "device"};
    struct py_state *state = py_state_of(self);
    gg_memory *memory = py_buffer_memory(self);
    enum gg_advice advice;
    PyObject *values[2];
    bool host;
    if (!memory || py_parse("advise", names, 2, 2, 1, args, nargs, kwnames, values) ||
        managed_read_advice(state, values[0], &advice) ||
        managed_read_location(self, values[1], &host))
        return NULL;
    memory = py_buffer_memory(self);
    if (!memory)
        return NULL;
    gg_memory_retain(memory);
    gg_status status;
    PY_WITHOUT_GIL(status = gg_memory_advise(memory, advice, host));
    gg_memory_release(memory);
    return py_none(state, status);
}

PyMethodDef py_host_register_functions[] = {
    PY_FASTCALL_DEF("host_register", host_register, py_doc_host_register),
    {NULL, NULL, 0, NULL},
};
