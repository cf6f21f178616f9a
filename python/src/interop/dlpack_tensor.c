/* dlpack_tensor.c: exported tensors. They hold the core's block, not the Python object, so that they can be deleted on
 * any thread, without the GIL, and after the interpreter has ended. */
#include "interop/dlpack.h"

struct exported {
    union {
        DLManagedTensor legacy;
        DLManagedTensorVersioned versioned;
    } as;
    gg_memory *memory;
    int64_t sizes[]; /* shape, then strides */
};

static void exported_free(struct exported *exported)
{
    gg_memory_release(exported->memory);
    free(exported);
}

static void exported_delete_legacy(DLManagedTensor *self)
{
    exported_free(self->manager_ctx);
}

static void exported_delete(DLManagedTensorVersioned *self)
{
    exported_free(self->manager_ctx);
}

/* A consumer renames the capsule that it takes. */
static void capsule_destructor(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, DL_NAME_VERSIONED)) {
        DLManagedTensorVersioned *versioned = PyCapsule_GetPointer(capsule, DL_NAME_VERSIONED);
        versioned->deleter(versioned);
    } else if (PyCapsule_IsValid(capsule, DL_NAME)) {
        DLManagedTensor *legacy = PyCapsule_GetPointer(capsule, DL_NAME);
        legacy->deleter(legacy);
    }
}

static int exported_raise_strides(const struct py_array *array)
{
    PyObject *strides = py_ssize_tuple(array->strides, array->ndim);
    if (strides)
        PyErr_Format(PyExc_BufferError,
                     "DLPack counts strides in elements, of %zd bytes here, but the strides are %R "
                     "bytes: copy() the array first",
                     array->itemsize, strides);
    Py_XDECREF(strides);
    return -1;
}

static int exported_fill(const struct py_array *array, DLDevice device, DLDataType dtype,
                         int64_t *sizes, DLTensor *out)
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
            out->strides[i] = 1; /* it has no meaning, but some consumers check it */
        else if (array->strides[i] % array->itemsize)
            return exported_raise_strides(array);
    }
    return 0;
}

/* Without memory yet. NULL without an exception. */
static struct exported *exported_alloc(int ndim)
{
    return malloc(sizeof(struct exported) + 2 * (size_t)ndim * sizeof(int64_t));
}

/* The consumer uses @p stream, or with NULL streams that gpuglue does not track. */
static void exported_share(gg_memory *memory, gg_stream *stream)
{
    if (!stream || gg_memory_share(memory, stream))
        gg_memory_record_use(memory, NULL);
}

static struct exported *exported_new(const struct py_array *array, DLDevice device,
                                     gg_stream *stream, bool versioned)
{
    struct exported *exported;
    DLDataType dtype;
    if (py_dl_from_numpy(array->dtype, &dtype))
        return NULL;
    exported = exported_alloc(array->ndim);
    if (!exported) {
        PyErr_NoMemory();
        return NULL;
    }
    if (exported_fill(array, device, dtype, exported->sizes,
                      versioned ? &exported->as.versioned.dl_tensor
                                : &exported->as.legacy.dl_tensor)) {
        free(exported);
        return NULL;
    }
    gg_memory_retain(array->memory);
    exported->memory = array->memory;
    exported_share(array->memory, stream);
    return exported;
}

static DLManagedTensorVersioned *exported_versioned(struct exported *exported, uint64_t flags)
{
    exported->as.versioned.version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    exported->as.versioned.manager_ctx = exported;
    exported->as.versioned.deleter = exported_delete;
    exported->as.versioned.flags = flags;
    return &exported->as.versioned;
}

DLManagedTensorVersioned *py_dl_export(const struct py_array *array, DLDevice device,
                                       gg_stream *stream, bool copied)
{
    struct exported *exported = exported_new(array, device, stream, true);
    if (!exported)
        return NULL;
    return exported_versioned(exported,
                              (array->readonly ? (uint64_t)DLPACK_FLAG_BITMASK_READ_ONLY : 0) |
                                  (copied ? (uint64_t)DLPACK_FLAG_BITMASK_IS_COPIED : 0));
}

DLManagedTensorVersioned *py_dl_wrap_memory(gg_memory *memory, const DLTensor *like)
{
    struct exported *exported = exported_alloc(like->ndim);
    DLTensor *tensor;
    int64_t run = 1;
    if (!exported)
        return NULL;
    tensor = &exported->as.versioned.dl_tensor;
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
    exported_share(memory, NULL);
    return exported_versioned(exported, 0);
}

static PyObject *legacy_capsule(const struct py_array *array, DLDevice device, gg_stream *stream)
{
    struct exported *exported = exported_new(array, device, stream, false);
    PyObject *capsule;
    if (!exported)
        return NULL;
    exported->as.legacy.manager_ctx = exported;
    exported->as.legacy.deleter = exported_delete_legacy;
    capsule = PyCapsule_New(&exported->as.legacy, DL_NAME, capsule_destructor);
    if (!capsule)
        exported_free(exported);
    return capsule;
}

PyObject *py_dl_capsule(const struct py_array *array, DLDevice device, gg_stream *stream,
                        bool versioned, bool copied)
{
    DLManagedTensorVersioned *managed;
    PyObject *capsule;
    if (!versioned)
        return legacy_capsule(array, device, stream);
    managed = py_dl_export(array, device, stream, copied);
    capsule = managed ? PyCapsule_New(managed, DL_NAME_VERSIONED, capsule_destructor) : NULL;
    if (managed && !capsule)
        managed->deleter(managed);
    return capsule;
}
