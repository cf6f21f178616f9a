/* dlpack_tensor.c: tensors that are given out. They hold the core's block, not the Python object: they may be let
 * go on any thread, without the GIL, and after the interpreter's end. */
#include "array.h"
#include "dlpack.h"

/* ---- the struct that is given out ------------------------------------------------------------- */

struct exported {
    union {
        struct dl_managed legacy;
        struct dl_managed_versioned versioned;
    } as;
    gg_memory *memory;
    int64_t sizes[]; /* shape, then strides */
};

static void let_go(struct exported *exported)
{
    gg_memory_release(exported->memory);
    free(exported);
}

static void delete_legacy(struct dl_managed *self)
{
    let_go(self->context);
}

static void delete_versioned(struct dl_managed_versioned *self)
{
    let_go(self->context);
}

/* Whoever takes a capsule renames it. */
static void capsule_destructor(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, DL_NAME_VERSIONED)) {
        struct dl_managed_versioned *versioned = PyCapsule_GetPointer(capsule, DL_NAME_VERSIONED);
        versioned->deleter(versioned);
    } else if (PyCapsule_IsValid(capsule, DL_NAME)) {
        struct dl_managed *legacy = PyCapsule_GetPointer(capsule, DL_NAME);
        legacy->deleter(legacy);
    }
}

static int refuse_strides(const struct py_array *array)
{
    PyObject *strides = py_sizes(array->strides, array->ndim);
    if (strides)
        PyErr_Format(
            PyExc_BufferError,
            "DLPack counts strides in elements of %zd bytes, these are %R bytes: copy() the "
            "array first",
            array->itemsize, strides);
    Py_XDECREF(strides);
    return -1;
}

static int fill_tensor(const struct py_array *array, struct dl_device device, struct dl_dtype dtype,
                       int64_t *sizes, struct dl_tensor *out)
{
    char *first = gg_memory_pointer(array->memory);
    out->data = array->size ? first + array->offset : NULL;
    out->device = device;
    out->ndim = array->ndim;
    out->dtype = dtype;
    out->shape = sizes;
    out->strides = sizes + array->ndim;
    out->byte_offset = 0;
    for (int i = 0; i < array->ndim; i++) {
        out->shape[i] = array->shape[i];
        out->strides[i] = array->strides[i] / array->itemsize;
        if (array->shape[i] < 2)
            out->strides[i] = 1; /* says nothing, and some take it to say something */
        else if (array->strides[i] % array->itemsize)
            return refuse_strides(array);
    }
    return 0;
}

/* Without memory so far. NULL without an exception. */
static struct exported *blank(int ndim)
{
    return malloc(sizeof(struct exported) + 2 * (size_t)ndim * sizeof(int64_t));
}

static struct exported *export(const struct py_array *array, struct dl_device device, bool versioned)
{
    struct exported *exported;
    struct dl_dtype dtype;
    if (py_dl_dtype(array->dtype, &dtype))
        return NULL;
    exported = blank(array->ndim);
    if (!exported) {
        PyErr_NoMemory();
        return NULL;
    }
    if (fill_tensor(array, device, dtype, exported->sizes,
                    versioned ? &exported->as.versioned.tensor : &exported->as.legacy.tensor)) {
        free(exported);
        return NULL;
    }
    gg_memory_retain(array->memory);
    exported->memory = array->memory;
    gg_memory_record_use(array->memory, NULL); /* whoever has it uses streams of its own */
    return exported;
}

static struct dl_managed_versioned *versioned(struct exported *exported, uint64_t flags)
{
    exported->as.versioned.version = (struct dl_version){DL_MAJOR, DL_MINOR};
    exported->as.versioned.context = exported;
    exported->as.versioned.deleter = delete_versioned;
    exported->as.versioned.flags = flags;
    return &exported->as.versioned;
}

struct dl_managed_versioned *py_dl_export(const struct py_array *array, struct dl_device device,
                                          bool copied)
{
    struct exported *exported = export(array, device, true);
    if (!exported)
        return NULL;
    return versioned(exported, (array->readonly ? (uint64_t)DL_READ_ONLY : 0) |
                                   (copied ? (uint64_t)DL_IS_COPIED : 0));
}

struct dl_managed_versioned *py_dl_over(gg_memory *memory, const struct dl_tensor *like)
{
    struct exported *exported = blank(like->ndim);
    struct dl_tensor *tensor;
    int64_t run = 1;
    if (!exported)
        return NULL;
    tensor = &exported->as.versioned.tensor;
    *tensor = *like;
    tensor->data = gg_memory_pointer(memory);
    tensor->byte_offset = 0;
    tensor->shape = exported->sizes;
    tensor->strides = exported->sizes + like->ndim;
    for (int i = like->ndim - 1; i >= 0; i--) {
        tensor->shape[i] = like->shape[i];
        tensor->strides[i] = run;
        run *= like->shape[i] ? like->shape[i] : 1;
    }
    exported->memory = memory;
    gg_memory_record_use(memory, NULL); /* as above */
    return versioned(exported, 0);
}

static PyObject *legacy_capsule(const struct py_array *array, struct dl_device device)
{
    struct exported *exported = export(array, device, false);
    PyObject *capsule;
    if (!exported)
        return NULL;
    exported->as.legacy.context = exported;
    exported->as.legacy.deleter = delete_legacy;
    capsule = PyCapsule_New(&exported->as.legacy, DL_NAME, capsule_destructor);
    if (!capsule)
        let_go(exported);
    return capsule;
}

PyObject *py_dl_capsule(const struct py_array *array, struct dl_device device, bool versioned,
                        bool copied)
{
    struct dl_managed_versioned *managed;
    PyObject *capsule;
    if (!versioned)
        return legacy_capsule(array, device);
    managed = py_dl_export(array, device, copied);
    capsule = managed ? PyCapsule_New(managed, DL_NAME_VERSIONED, capsule_destructor) : NULL;
    if (managed && !capsule)
        managed->deleter(managed);
    return capsule;
}
