/* capi.c: the function table of gpuglue/python.h. */
#include "numpy/bridge.h"
#include "memory/buffer.h"
#include "interop/asarray.h"
#include "interop/dlpack.h"
#include "module/parts.h"

#include <gpuglue/python.h>

#include <dlfcn.h>

/* Sizes of the first version, which extensions may have been built with. */
enum { REQUEST_FIRST = 32, VIEW_FIRST = 104 };
_Static_assert(sizeof(struct gg_array_request) == REQUEST_FIRST &&
                   sizeof(struct gg_array_view) == VIEW_FIRST,
               "a struct has grown: read and write new members only where the caller's has them");
_Static_assert(offsetof(struct gg_python_api, array_from_object) == 16 &&
                   offsetof(struct gg_python_api, function) == 32,
               "rows stay where they are");

static struct py_state *capi_state; /* of the only module instance: sub-interpreters are not supported */

/* ---- checks of the request ---- */

static int array_raise(const char *what, const char *advice)
{
    return PY_FAIL(capi_state->invalid_argument, "the array is %s: %s", what, advice);
}

static int array_check_layout(const struct py_array *array, uint32_t flags)
{
    if (flags & GG_ARRAY_WRITABLE && array->readonly)
        return array_raise("read-only", "this function writes to it; pass a copy");
    if (flags & GG_ARRAY_C_CONTIGUOUS && !array->c)
        return array_raise("not contiguous in C order", "pass a contiguous copy");
    if (flags & GG_ARRAY_F_CONTIGUOUS && !array->f)
        return array_raise("not contiguous in Fortran order", "pass a copy in that order");
    return 0;
}

static int array_check_device(const struct py_array *array, const gg_device *wanted)
{
    const gg_device *device = gg_memory_device(array->memory);
    if (!wanted || device == wanted)
        return 0;
    return PY_FAIL(capi_state->invalid_argument,
                   "the array is on %s:%d, expected %s:%d: use to_device",
                   gg_device_backend(device), (int)gg_device_ordinal(device),
                   gg_device_backend(wanted), (int)gg_device_ordinal(wanted));
}

static int request_check(const struct gg_array_request *request, const struct gg_array_view *view)
{
    const uint32_t known = GG_ARRAY_WRITABLE | GG_ARRAY_C_CONTIGUOUS | GG_ARRAY_F_CONTIGUOUS |
                           GG_ARRAY_HOST | GG_ARRAY_NATIVE_STREAM;
    if (request->struct_size < REQUEST_FIRST || view->struct_size < VIEW_FIRST)
        return PY_FAIL(capi_state->invalid_argument,
                       "gg_array_from_object: struct_size must be set: begin with "
                       "GG_ARRAY_REQUEST and GG_ARRAY_VIEW");
    if (request->flags & ~known)
        return PY_FAIL(capi_state->invalid_argument,
                       "gg_array_from_object: flags 0x%x contain an unknown bit",
                       (unsigned)request->flags);
    return 0;
}

/* ---- the view ---- */

static int view_stream(const struct gg_array_request *request, gg_device *device, gg_stream **out)
{
    gg_stream *stream = request->stream;
    if (request->flags & GG_ARRAY_NATIVE_STREAM)
        return py_check(capi_state,
                        gg_stream_borrow(device, request->native_stream, NULL, NULL, out));
    if (!stream && py_check(capi_state, gg_current_stream(device, &stream)))
        return -1;
    if (gg_stream_device(stream) != device)
        return PY_FAIL(capi_state->invalid_argument,
                       "the stream and the array are on different devices");
    gg_stream_retain(stream);
    *out = stream;
    return 0;
}

static int view_describe_dtype(const struct py_array *array, struct gg_array_view *view)
{
    DLDataType dtype;
    view->code = GG_DTYPE_OTHER;
    view->bits = 0;
    if (!py_dl_from_numpy(array->dtype, &dtype)) {
        view->code = dtype.code;
        view->bits = dtype.bits;
        return 0;
    }
    if (!PyErr_ExceptionMatches(PyExc_BufferError))
        return -1;
    PyErr_Clear();
    return 0;
}

static int view_fill(struct py_array *array, gg_stream *stream, struct gg_array_view *view)
{
    char *first = gg_memory_pointer(array->memory);
    int64_t *sizes = malloc(2 * (size_t)array->ndim * sizeof *sizes + 1);
    uint64_t handles[4] = {0};
    if (!sizes)
        return PY_NO_MEMORY();
    if (view_describe_dtype(array, view) || py_check(capi_state, gg_stream_native(stream, handles))) {
        free(sizes);
        return -1;
    }
    for (int i = 0; i < array->ndim; i++) {
        sizes[i] = array->shape[i];
        sizes[array->ndim + i] = array->strides[i];
    }
    view->ndim = array->ndim;
    view->data = array->size && first ? first + array->offset : NULL;
    view->shape = sizes;
    view->strides = sizes + array->ndim;
    view->itemsize = (size_t)array->itemsize;
    view->size = (size_t)array->size;
    view->readonly = array->readonly;
    view->host = py_host_accessible(array->memory);
    view->device = gg_memory_device(array->memory);
    view->offset = array->offset;
    view->stream_handle = handles[0];
    view->internal = sizes;
    gg_memory_retain(array->memory);
    view->memory = array->memory;
    gg_stream_retain(stream);
    view->stream = stream;
    return 0;
}

static int view_open(struct py_array *array, const struct gg_array_request *request,
                     struct gg_array_view *view)
{
    gg_stream *stream;
    gg_status status;
    int failed;
    if (array_check_layout(array, request->flags) || array_check_device(array, request->device) ||
        view_stream(request, gg_memory_device(array->memory), &stream))
        return -1;
    PY_WITHOUT_GIL(status = gg_stream_wait_memory(stream, array->memory));
    failed = py_check(capi_state, status) || view_fill(array, stream, view);
    gg_stream_release(stream);
    return failed ? -1 : 0;
}

static int array_from_object(PyObject *object, const struct gg_array_request *request,
                             struct gg_array_view *view)
{
    PyObject *array;
    int failed;
    if (request_check(request, view) || numpy_load())
        return -1;
    array = py_wrap_array(capi_state, object, request->flags & GG_ARRAY_HOST);
    if (!array)
        return -1;
    failed = view_open(py_array_of(array), request, view);
    Py_DECREF(array);
    return failed;
}

static void array_view_release(struct gg_array_view *view)
{
    gg_memory *memory = view->memory;
    if (!memory)
        return;
    view->memory = NULL;
    gg_memory_record_use(memory, view->stream);
    gg_stream_release(view->stream);
    gg_memory_release(memory);
    free(view->internal);
    view->internal = view->data = NULL;
    view->shape = view->strides = NULL;
    view->stream = NULL;
}

/* A function of gpuglue.h, in the library that this module uses. */
static void (*function_named(const char *name))(void)
{
    Dl_info info;
    void *library, *found;
    void (*function)(void) = NULL;
    if (strncmp(name, "gg_", 3) || !dladdr((void *)(uintptr_t)gg_version, &info))
        return NULL;
    library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    found = library ? dlsym(library, name) : NULL;
    memcpy(&function, &found, sizeof found);
    if (library)
        dlclose(library); /* undoes the dlopen above */
    return function;
}

static const struct gg_python_api table = {
    .struct_size = sizeof table,
    .abi_major = GG_PYTHON_ABI_MAJOR,
    .abi_minor = GG_PYTHON_ABI_MINOR,
    .array_from_object = array_from_object,
    .array_view_release = array_view_release,
    .function = function_named,
};

int py_capi_add(PyObject *module, struct py_state *state)
{
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)&table, GG_PYTHON_CAPSULE, NULL);
    int failed;
    if (!capsule)
        return -1;
    capi_state = state;
    failed = PyModule_AddObjectRef(module, "_C_API", capsule);
    Py_DECREF(capsule);
    return failed;
}
