/* pointer.c: what an address is, as the drivers in use know it. */
#include "memory.h"
#include "place.h"

int py_address_arg(struct py_state *state, PyObject *object, void **out)
{
    uint64_t address;
    if (py_uint64(state, object, "ptr", &address))
        return -1;
    *out = (void *)(uintptr_t)address;
    return 0;
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
    if (py_address_arg(state, object, &pointer) || query(state, pointer, &device, &info))
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

/* ---- whose memory it is ---- */

static int outside(struct py_state *state, const void *pointer, size_t nbytes,
                   const struct gg_pointer_info *info)
{
    char address[PY_ADDRESS_SIZE], base[PY_ADDRESS_SIZE];
    uintptr_t at = (uintptr_t)pointer - (uintptr_t)info->base;
    if (!info->base || (at <= info->size && nbytes <= info->size - at))
        return 0;
    py_address(address, pointer, 0);
    py_address(base, info->base, 0);
    py_invalid(state, "%zu bytes at %s leave the allocation of %zu bytes at %s", nbytes, address,
               info->size, base);
    return -1;
}

static int refuse_unknown(struct py_state *state, const void *pointer)
{
    char address[PY_ADDRESS_SIZE];
    py_address(address, pointer, 0);
    py_invalid(state,
               "no driver in use knows %s: it is ordinary host memory (see register()), was "
               "freed, or belongs to a backend that was not used yet",
               address);
    return -1;
}

static int refuse_device(struct py_state *state, const void *pointer, const gg_device *is,
                         const gg_device *wanted)
{
    char address[PY_ADDRESS_SIZE];
    py_address(address, pointer, 0);
    py_invalid(state, "%s is memory of %s:%d, not of %s:%d", address, gg_device_backend(is),
               (int)gg_device_ordinal(is), gg_device_backend(wanted),
               (int)gg_device_ordinal(wanted));
    return -1;
}

int py_pointer_locate(struct py_state *state, const struct py_pointer *asked, gg_device **device,
                      enum gg_memory_kind *kind)
{
    struct gg_pointer_info info;
    gg_device *found;
    if (query(state, asked->pointer, &found, &info))
        return -1;
    if (!found && !asked->believed)
        return refuse_unknown(state, asked->pointer);
    if (found && asked->wanted && found != asked->wanted && info.kind == GG_MEMORY_DEVICE)
        return refuse_device(state, asked->pointer, found, asked->wanted);
    *device = asked->wanted ? asked->wanted : found ? found : asked->believed;
    *kind = found ? info.kind : GG_MEMORY_DEVICE;
    return found ? outside(state, asked->pointer, asked->nbytes, &info) : 0;
}

int py_pointer_check(struct py_state *state, gg_device *device, void *pointer, size_t nbytes)
{
    struct gg_pointer_info info = {.struct_size = sizeof info};
    gg_device *found = NULL;
    char address[PY_ADDRESS_SIZE];
    if (!gg_device_supports(device, GG_OP_pointer_info))
        return 0;
    if (py_check(state, gg_pointer_query(pointer, &found, &info)))
        return -1;
    if (found == device || (found && info.kind == GG_MEMORY_MANAGED))
        return outside(state, pointer, nbytes, &info);
    py_address(address, pointer, 0);
    py_invalid(state, "the allocator gave %s, which is no memory of %s:%d", address,
               gg_device_backend(device), (int)gg_device_ordinal(device));
    return -1;
}

/* ---- the module's part ---- */

static PyMethodDef functions[] = {
    {"pointer_info", pointer_info, METH_O,
     "pointer_info(ptr, /)\n--\n\n"
     "What the drivers in use know of an address: a PointerInfo. Base and size are those of the\n"
     "driver's allocation, of which a Buffer may be a part."},
    {NULL, NULL, 0, NULL},
};

int py_pointer_add(PyObject *module, struct py_state *state)
{
    state->pointer_info_type = PyStructSequence_NewType(&info_desc);
    if (!state->pointer_info_type ||
        PyModule_AddObjectRef(module, "PointerInfo", (PyObject *)state->pointer_info_type))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
