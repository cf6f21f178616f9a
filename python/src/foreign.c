/* foreign.c: memory that others own: page-locked where it lies, wrapped by its address, asked about. */
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
    return py_buffer_wrap(state, memory);
}

/* ---- pointer_info ---- */

static PyStructSequence_Field fields[] = {
    {"backend", "Name of the backend, or None for memory that no driver knows."},
    {"device", "The Device, or None."},
    {"kind", "'host', 'device', 'pinned' or 'managed'."},
    {"base", "Address of the driver's allocation, or None where it does not say."},
    {"size", "Its size in bytes, or None."},
    {NULL, NULL},
};

static PyStructSequence_Desc info_desc = {
    .name = "gpuglue.PointerInfo",
    .doc = "What the drivers in use know of a pointer, from pointer_info().",
    .fields = fields,
    .n_in_sequence = 5,
};

static int read_pointer(struct py_state *state, PyObject *object, void **out)
{
    uint64_t address;
    if (py_uint64(state, object, "ptr", &address))
        return -1;
    *out = (void *)(uintptr_t)address;
    return 0;
}

static int query(struct py_state *state, void *pointer, gg_device **device,
                 struct gg_pointer_info *info)
{
    *info = (struct gg_pointer_info){.struct_size = sizeof *info};
    if (py_device_current(state, device) || py_device_open(state, *device))
        return -1;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_pointer_query(pointer, device, info);
    PyEval_RestoreThread(thread);
    return py_check(state, status);
}

static PyObject *none_or(PyObject *(*make)(struct py_state *, gg_device *), struct py_state *state,
                         gg_device *device)
{
    return device ? make(state, device) : Py_NewRef(Py_None);
}

static PyObject *backend_text(struct py_state *state, gg_device *device)
{
    (void)state;
    return PyUnicode_FromString(gg_device_backend(device));
}

static PyObject *pointer_info(PyObject *module, PyObject *object)
{
    struct py_state *state = PyModule_GetState(module);
    struct gg_pointer_info info;
    gg_device *device;
    void *pointer;
    if (read_pointer(state, object, &pointer) || query(state, pointer, &device, &info))
        return NULL;
    PyObject *result = PyStructSequence_New(state->pointer_info_type);
    if (!result)
        return NULL;
    PyStructSequence_SetItem(result, 0, none_or(backend_text, state, device));
    PyStructSequence_SetItem(result, 1, none_or(py_device_wrap, state, device));
    PyStructSequence_SetItem(result, 2, PyUnicode_FromString(py_kind_name(info.kind)));
    PyStructSequence_SetItem(result, 3,
                             info.base ? PyLong_FromVoidPtr(info.base) : Py_NewRef(Py_None));
    PyStructSequence_SetItem(result, 4,
                             info.base ? PyLong_FromSize_t(info.size) : Py_NewRef(Py_None));
    if (PyErr_Occurred())
        Py_CLEAR(result);
    return result;
}

/* ---- from_ptr ---- */

struct foreign {
    void *pointer;
    size_t nbytes;
    gg_device *device;
    enum gg_memory_kind kind;
};

static int outside(struct py_state *state, const struct foreign *foreign,
                   const struct gg_pointer_info *info)
{
    char address[PY_ADDRESS_SIZE], base[PY_ADDRESS_SIZE];
    uintptr_t at = (uintptr_t)foreign->pointer - (uintptr_t)info->base;
    if (!info->base || (at <= info->size && foreign->nbytes <= info->size - at))
        return 0;
    py_address(address, foreign->pointer, 0);
    py_address(base, info->base, 0);
    py_invalid(state, "%zu bytes at %s leave the allocation of %zu bytes at %s", foreign->nbytes,
               address, info->size, base);
    return -1;
}

/* What the driver says of the pointer has to agree with what the caller says. */
static int identify(struct py_state *state, PyObject *given, struct foreign *foreign)
{
    struct gg_pointer_info info;
    gg_device *found, *wanted = NULL;
    char address[PY_ADDRESS_SIZE];
    if (given && given != Py_None &&
        (py_device_arg(state, given, &wanted) || py_device_open(state, wanted)))
        return -1;
    if (query(state, foreign->pointer, &found, &info))
        return -1;
    py_address(address, foreign->pointer, 0);
    if (!found) {
        py_invalid(state,
                   "no driver in use knows %s: it is ordinary host memory (see register()), was "
                   "freed, or belongs to a backend that was not used yet",
                   address);
        return -1;
    }
    if (wanted && found != wanted && info.kind == GG_MEMORY_DEVICE) {
        py_invalid(state, "%s is memory of %s:%d, not of %s:%d", address, gg_device_backend(found),
                   (int)gg_device_ordinal(found), gg_device_backend(wanted),
                   (int)gg_device_ordinal(wanted));
        return -1;
    }
    foreign->device = wanted ? wanted : found;
    foreign->kind = info.kind;
    return outside(state, foreign, &info);
}

int py_foreign_check(struct py_state *state, gg_device *device, void *pointer, size_t nbytes)
{
    struct foreign foreign = {.pointer = pointer, .nbytes = nbytes, .device = device};
    struct gg_pointer_info info = {.struct_size = sizeof info};
    gg_device *found = NULL;
    char address[PY_ADDRESS_SIZE];
    if (!gg_device_supports(device, GG_OP_pointer_info))
        return 0;
    if (py_check(state, gg_pointer_query(pointer, &found, &info)))
        return -1;
    if (found == device || (found && info.kind == GG_MEMORY_MANAGED))
        return outside(state, &foreign, &info);
    py_address(address, pointer, 0);
    py_invalid(state, "the allocator gave %s, which is no memory of %s:%d", address,
               gg_device_backend(device), (int)gg_device_ordinal(device));
    return -1;
}

static int read_size(struct py_state *state, PyObject *object, size_t *out)
{
    uint64_t size;
    if (py_uint64(state, object, "nbytes", &size))
        return -1;
    *out = (size_t)size;
    return 0;
}

PyObject *py_buffer_from_ptr(PyObject *type, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    static const char *const names[] = {"ptr", "nbytes", "device", "owner"};
    struct py_state *state = PyType_GetModuleState((PyTypeObject *)type);
    struct foreign foreign;
    gg_memory *memory = NULL;
    PyObject *values[4];
    if (py_parse("from_ptr", names, 4, 3, 2, args, nargs, kwnames, values) ||
        read_pointer(state, values[0], &foreign.pointer) ||
        read_size(state, values[1], &foreign.nbytes) || identify(state, values[2], &foreign))
        return NULL;
    PyObject *owner = values[3] && values[3] != Py_None ? Py_NewRef(values[3]) : NULL;
    gg_status status = gg_memory_wrap(foreign.device, foreign.kind, foreign.pointer, foreign.nbytes,
                                      owner ? py_owner_release : NULL, owner, &memory);
    if (py_check(state, status)) {
        Py_XDECREF(owner);
        return NULL;
    }
    return py_buffer_wrap(state, memory);
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
    if (!memory || py_parse("prefetch", names, 2, 2, 0, args, nargs, kwnames, values) ||
        read_place(self, values[0], &host) ||
        (values[1] && py_stream_arg(state, values[1], gg_memory_device(memory), &stream)))
        return NULL;
    memory = py_buffer_memory(self); /* the arguments' own code may have closed it */
    if (!memory) {
        gg_stream_release(stream);
        return NULL;
    }
    py_buffer_touch(self);
    gg_memory_retain(memory);
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
    {"pointer_info", pointer_info, METH_O,
     "pointer_info(ptr, /)\n--\n\n"
     "What the drivers in use know of an address: a PointerInfo. Base and size are those of the\n"
     "driver's allocation, of which a Buffer may be a part."},
    {NULL, NULL, 0, NULL},
};

int py_foreign_add(PyObject *module, struct py_state *state)
{
    state->pointer_info_type = PyStructSequence_NewType(&info_desc);
    if (!state->pointer_info_type ||
        PyModule_AddObjectRef(module, "PointerInfo", (PyObject *)state->pointer_info_type))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
