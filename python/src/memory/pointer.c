/* pointer.c: what the drivers in use report of an address. */
#include "memory/pointer.h"
#include "runtime/device.h"

#include <stdio.h>

const char *py_kind_name(enum gg_memory_kind kind)
{
    switch (kind) {
    case GG_MEMORY_HOST:
        return "host";
    case GG_MEMORY_DEVICE:
        return "device";
    case GG_MEMORY_PINNED:
        return "pinned";
    case GG_MEMORY_MANAGED:
        return "managed";
    }
    return "unknown";
}

/* PyUnicode_FromFormat writes no 64-bit hexadecimals before 3.12, and %p as "(nil)" for 0. */
void py_format_address(char text[PY_ADDRESS_SIZE], const void *pointer)
{
    snprintf(text, PY_ADDRESS_SIZE, "0x%zx", (size_t)(uintptr_t)pointer);
}

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
    {"backend", py_doc_PointerInfo_backend}, {"device", py_doc_PointerInfo_device},
    {"kind", py_doc_PointerInfo_kind},       {"base", py_doc_PointerInfo_base},
    {"size", py_doc_PointerInfo_size},       {NULL, NULL},
};

static PyStructSequence_Desc info_desc = {
    .name = "gpuglue.PointerInfo",
    .doc = py_doc_PointerInfo,
    .fields = fields,
    .n_in_sequence = 5,
};

static int pointer_query(struct py_state *state, void *pointer, gg_device **device,
                         struct gg_pointer_info *info)
{
    *info = (struct gg_pointer_info){.struct_size = sizeof *info};
    if (py_device_current(state, device) || py_device_open(state, *device))
        return -1;
    gg_status status;
    PY_WITHOUT_GIL(status = gg_pointer_query(pointer, device, info));
    return py_check(state, status);
}

static PyObject *pointer_info(PyObject *module, PyObject *object)
{
    struct py_state *state = PyModule_GetState(module);
    struct gg_pointer_info info;
    gg_device *device;
    void *pointer;
    if (py_address_arg(state, object, &pointer) || pointer_query(state, pointer, &device, &info))
        return NULL;
    PyObject *values[] = {
        device ? PyUnicode_FromString(gg_device_backend(device)) : Py_NewRef(Py_None),
        device ? py_device_wrap(state, device) : Py_NewRef(Py_None),
        PyUnicode_FromString(py_kind_name(info.kind)),
        info.base ? PyLong_FromVoidPtr(info.base) : Py_NewRef(Py_None),
        info.base ? PyLong_FromSize_t(info.size) : Py_NewRef(Py_None),
    };
    return py_structseq_new(state->pointer_info_type, values, 5);
}

/* ---- checks ---- */

static int pointer_check_bounds(struct py_state *state, const void *pointer, size_t nbytes,
                                const struct gg_pointer_info *info)
{
    char address[PY_ADDRESS_SIZE], base[PY_ADDRESS_SIZE];
    uintptr_t at = (uintptr_t)pointer - (uintptr_t)info->base;
    if (!info->base || (at <= info->size && nbytes <= info->size - at))
        return 0;
    py_format_address(address, pointer);
    py_format_address(base, info->base);
    return PY_FAIL(state->invalid_argument,
                   "%zu bytes at %s go past the end of the allocation of %zu bytes at %s", nbytes,
                   address, info->size, base);
}

static int pointer_raise_unknown(struct py_state *state, const void *pointer)
{
    char address[PY_ADDRESS_SIZE];
    py_format_address(address, pointer);
    return PY_FAIL(
        state->invalid_argument,
        "no driver in use knows %s: it is ordinary host memory (see host_register()), was "
        "freed, or belongs to a backend that is not in use yet",
        address);
}

static int pointer_raise_device(struct py_state *state, const void *pointer, const gg_device *is,
                                const gg_device *wanted)
{
    char address[PY_ADDRESS_SIZE];
    py_format_address(address, pointer);
    return PY_FAIL(state->invalid_argument, "%s is memory of %s:%d, not of %s:%d", address,
                   gg_device_backend(is), (int)gg_device_ordinal(is), gg_device_backend(wanted),
                   (int)gg_device_ordinal(wanted));
}

int py_pointer_locate(struct py_state *state, const struct py_pointer *claim, gg_device **device,
                      enum gg_memory_kind *kind)
{
    struct gg_pointer_info info;
    gg_device *found;
    if (pointer_query(state, claim->pointer, &found, &info))
        return -1;
    if (!found && !claim->assumed)
        return pointer_raise_unknown(state, claim->pointer);
    if (found && claim->wanted && found != claim->wanted && info.kind == GG_MEMORY_DEVICE)
        return pointer_raise_device(state, claim->pointer, found, claim->wanted);
    *device = claim->wanted ? claim->wanted : found ? found : claim->assumed;
    *kind = found ? info.kind : GG_MEMORY_DEVICE;
    return found ? pointer_check_bounds(state, claim->pointer, claim->nbytes, &info) : 0;
}

int py_pointer_check(struct py_state *state, gg_device *device, void *pointer, size_t nbytes)
{
    struct gg_pointer_info info = {.struct_size = sizeof info};
    gg_device *found = NULL;
    char address[PY_ADDRESS_SIZE];
    if (!pointer)
        return PY_FAIL(
            state->invalid_argument,
            "the allocator returned a NULL pointer for %zu bytes of %s:%d: it must raise "
            "an exception if it has no memory",
            nbytes, gg_device_backend(device), (int)gg_device_ordinal(device));
    if (!gg_device_supports(device, GG_OP_pointer_info))
        return 0;
    if (py_check(state, gg_pointer_query(pointer, &found, &info)))
        return -1;
    if (found == device || (found && info.kind == GG_MEMORY_MANAGED))
        return pointer_check_bounds(state, pointer, nbytes, &info);
    py_format_address(address, pointer);
    return PY_FAIL(state->invalid_argument,
                   "the allocator returned %s, which is not memory of %s:%d", address,
                   gg_device_backend(device), (int)gg_device_ordinal(device));
}

static PyMethodDef functions[] = {
    {"pointer_info", pointer_info, METH_O, py_doc_pointer_info},
    {NULL, NULL, 0, NULL},
};

int py_pointer_add(PyObject *module, struct py_state *state)
{
    if (py_structseq_add(module, "PointerInfo", &info_desc, &state->pointer_info_type))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
