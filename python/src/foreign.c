/* foreign.c: memory that others own: page-locked where it lies, wrapped by its address; managed memory. */
#include "memory.h"
#include "place.h"

/* ---- register ---- */

/* The bytes of a writable buffer; the memoryview keeps it and its exporter. */
static PyObject *open_bytes(PyObject *object, Py_buffer *bytes)
{
    PyObject *view = PyMemoryView_FromObject(object);
    if (!view)
        return NULL;
    if (PyObject_GetBuffer(view, bytes, PyBUF_CONTIG)) {
        Py_DECREF(view);
        return NULL;
    }
    return view;
}

static PyObject *register_memory(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
                                 PyObject *kwnames)
{
    static const char *const names[] = {"obj", "device"};
    struct py_state *state = PyModule_GetState(module);
    PyObject *values[2], *view;
    gg_device *device;
    gg_memory *memory = NULL;
    Py_buffer bytes;
    if (py_parse("register", names, 2, 2, 1, args, nargs, kwnames, values) ||
        py_device_arg(state, values[1], &device))
        return NULL;
    view = open_bytes(values[0], &bytes);
    if (!view)
        return NULL;
    py_owners_drain();
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status =
        gg_memory_register(device, bytes.buf, (size_t)bytes.len, py_owner_release, view, &memory);
    PyEval_RestoreThread(thread);
    py_check(state, status);
    PyBuffer_Release(&bytes);
    if (status) {
        Py_DECREF(view);
        return NULL;
    }
    return py_buffer_over(state, memory);
}

/* ---- from_ptr ---- */

static int read_size(struct py_state *state, PyObject *object, size_t *out)
{
    uint64_t size;
    if (py_uint64(state, object, "nbytes", &size))
        return -1;
    *out = (size_t)size;
    return 0;
}

static int read_device(struct py_state *state, PyObject *object, gg_device **out)
{
    if (!object || object == Py_None)
        return 0;
    return py_device_arg(state, object, out) || py_device_open(state, *out) ? -1 : 0;
}

PyObject *py_buffer_from_ptr(PyObject *type, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    static const char *const names[] = {"ptr", "nbytes", "device", "owner"};
    struct py_state *state = PyType_GetModuleState((PyTypeObject *)type);
    struct py_pointer asked = {0};
    gg_device *device;
    enum gg_memory_kind kind;
    gg_memory *memory = NULL;
    PyObject *values[4];
    if (py_parse("from_ptr", names, 4, 3, 2, args, nargs, kwnames, values) ||
        py_address_arg(state, values[0], &asked.pointer) ||
        read_size(state, values[1], &asked.nbytes) || read_device(state, values[2], &asked.wanted) ||
        py_pointer_locate(state, &asked, &device, &kind))
        return NULL;
    PyObject *owner = values[3] && values[3] != Py_None ? Py_NewRef(values[3]) : NULL;
    gg_status status = gg_memory_wrap(device, kind, asked.pointer, asked.nbytes,
                                      owner ? py_owner_release : NULL, owner, &memory);
    if (py_check(state, status)) {
        Py_XDECREF(owner);
        return NULL;
    }
    return py_buffer_over(state, memory);
}

/* ---- managed memory ---- */

static int read_place(PyObject *self, PyObject *object, bool *host)
{
    struct py_state *state = py_state_of(self);
    gg_device *device = NULL, *own = gg_memory_device(py_buffer_memory(self));
    *host = object && PyUnicode_Check(object) && !PyUnicode_CompareWithASCIIString(object, "host");
    if (*host || !object || object == Py_None)
        return 0;
    if (py_device_arg(state, object, &device))
        return -1;
    if (device == own)
        return 0;
    py_invalid(state, "managed memory of %s:%d moves to its own device or to \"host\", not to %s:%d",
               gg_device_backend(own), (int)gg_device_ordinal(own), gg_device_backend(device),
               (int)gg_device_ordinal(device));
    return -1;
}

PyObject *py_buffer_prefetch(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    static const char *const names[] = {"device", "stream"};
    struct py_state *state = py_state_of(self);
    gg_memory *memory = py_buffer_memory(self);
    gg_stream *stream = NULL;
    PyObject *values[2];
    bool host;
    if (!memory || py_parse("prefetch", names, 2, 2, 0, args, nargs, kwnames, values))
        return NULL;
    gg_memory_retain(memory); /* the arguments' own code may close it */
    if (read_place(self, values[0], &host) ||
        (values[1] && py_stream_arg(state, values[1], gg_memory_device(memory), &stream)) ||
        !py_buffer_memory(self)) {
        gg_stream_release(stream);
        gg_memory_release(memory);
        return NULL;
    }
    py_buffer_touch(self);
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_memory_prefetch(memory, host, stream);
    PyEval_RestoreThread(thread);
    gg_memory_release(memory);
    py_check(state, status);
    gg_stream_release(stream);
    return status ? NULL : Py_NewRef(Py_None);
}

static int read_advice(struct py_state *state, PyObject *object, enum gg_advice *out)
{
    static const char *const words[] = {"read_mostly",        "not_read_mostly",
                                        "preferred_location", "no_preferred_location",
                                        "accessed_by",        "not_accessed_by"};
    for (int i = 0; i < 6 && PyUnicode_Check(object); i++)
        if (!PyUnicode_CompareWithASCIIString(object, words[i])) {
            *out = (enum gg_advice)(i + 1);
            return 0;
        }
    py_invalid(state,
               "advice must be 'read_mostly', 'preferred_location' or 'accessed_by', or one of "
               "them taken back ('not_read_mostly', 'no_preferred_location', 'not_accessed_by'), "
               "not %R",
               object);
    return -1;
}

PyObject *py_buffer_advise(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *kwnames)
{
    static const char *const names[] = {"advice", "device"};
    struct py_state *state = py_state_of(self);
    gg_memory *memory = py_buffer_memory(self);
    enum gg_advice advice;
    PyObject *values[2];
    bool host;
    if (!memory || py_parse("advise", names, 2, 2, 1, args, nargs, kwnames, values) ||
        read_advice(state, values[0], &advice) || read_place(self, values[1], &host))
        return NULL;
    memory = py_buffer_memory(self);
    if (!memory)
        return NULL;
    gg_memory_retain(memory);
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_memory_advise(memory, advice, host);
    PyEval_RestoreThread(thread);
    gg_memory_release(memory);
    return py_check(state, status) ? NULL : Py_NewRef(Py_None);
}

/* ---- the module's part ---- */

static PyMethodDef functions[] = {
    {"register", PY_METHOD(register_memory), METH_FASTCALL | METH_KEYWORDS,
     "register(obj, device=None)\n--\n\n"
     "Page-lock the memory of a writable, contiguous buffer (a NumPy array) where it lies, so "
     "that\n"
     "copies from and to it run in the background. Whole pages are locked; they are unlocked, and\n"
     "obj let go, when the Buffer is closed and the queued work is done. UnsupportedError where\n"
     "the device cannot."},
    {NULL, NULL, 0, NULL},
};

int py_foreign_add(PyObject *module, struct py_state *state)
{
    (void)state;
    return PyModule_AddFunctions(module, functions);
}
