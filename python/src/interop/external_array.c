/* external_array.c: a GPUArray over an address, a shape and a dtype. */
#include "interop/external_array.h"
#include "base/owners.h"
#include "numpy/bridge.h"
#include "runtime/device.h"
#include "memory/pointer.h"

static int external_raise(const char *why, PyObject *object)
{
    return PY_FAIL(PyExc_ValueError, "%s, got %R", why, object);
}

static int external_read_sizes(PyObject *object, Py_ssize_t *out, int *count)
{
    PyObject *tuple = py_is_index(object) ? PyTuple_Pack(1, object) : PySequence_Tuple(object);
    Py_ssize_t given;
    if (!tuple)
        return -1;
    given = PyTuple_Size(tuple);
    if (given > numpy_max_dims()) {
        Py_DECREF(tuple);
        return external_raise("too many dimensions", object);
    }
    *count = (int)given;
    for (Py_ssize_t i = 0; i < given; i++) {
        out[i] = PyNumber_AsSsize_t(PyTuple_GetItem(tuple, i), PyExc_OverflowError);
        if (out[i] == -1 && PyErr_Occurred()) {
            Py_DECREF(tuple);
            return -1;
        }
    }
    Py_DECREF(tuple);
    return 0;
}

int py_external_layout(struct py_external *external, PyObject *shape, PyObject *strides)
{
    const Py_ssize_t itemsize = numpy_itemsize(external->dtype);
    Py_ssize_t bytes = itemsize;
    int count;
    if (external_read_sizes(shape, external->shape, &external->ndim))
        return -1;
    external->empty = !itemsize;
    for (int i = 0; i < external->ndim; i++) {
        if (external->shape[i] < 0)
            return external_raise("a shape must have lengths of 0 or more", shape);
        if (!external->shape[i])
            external->empty = true;
        else if (__builtin_mul_overflow(bytes, external->shape[i], &bytes))
            return external_raise("the size of the shape does not fit in 63 bits", shape);
    }
    if (!py_given(strides)) {
        py_strides_contiguous(external->strides, external->shape, external->ndim, itemsize, false);
        return 0;
    }
    if (external_read_sizes(strides, external->strides, &count))
        return -1;
    return count == external->ndim
               ? 0
               : external_raise("strides must have one number for each axis", strides);
}

bool py_strides_extent(int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides,
                       Py_ssize_t itemsize, Py_ssize_t *low, Py_ssize_t *high)
{
    *low = 0;
    *high = itemsize;
    for (int i = 0; i < ndim; i++) {
        Py_ssize_t reach;
        if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
            __builtin_add_overflow(reach < 0 ? *low : *high, reach, reach < 0 ? low : high))
            return false;
    }
    Py_ssize_t size;
    return !__builtin_sub_overflow(*high, *low, &size);
}

bool py_extent_begin(uintptr_t element, Py_ssize_t low, Py_ssize_t high, char **out)
{
    uintptr_t begin, last;
    if (__builtin_add_overflow(element, low, &begin) ||
        __builtin_add_overflow(element, high - 1, &last))
        return false;
    *out = (char *)begin;
    return true;
}

/* @p begin: the address of the lowest byte; NULL where there are no elements. */
static int external_measure(const struct py_external *external, Py_ssize_t *low, Py_ssize_t *high,
                            char **begin)
{
    *low = *high = 0;
    *begin = NULL;
    if (external->empty)
        return 0;
    if (!py_strides_extent(external->ndim, external->shape, external->strides,
                           numpy_itemsize(external->dtype), low, high))
        return PY_FAIL(PyExc_ValueError, "the extent of the strides does not fit in 63 bits");
    if (!py_extent_begin((uintptr_t)external->first, *low, *high, begin))
        return PY_FAIL(PyExc_ValueError,
                       "an array at address %p, with bytes from %zd to %zd relative to it, leaves "
                       "the address space: check its strides",
                       external->first, *low, *high);
    return 0;
}

PyObject *py_external_wrap(struct py_state *state, const struct py_external *external,
                           gg_device *device, enum gg_memory_kind kind)
{
    Py_ssize_t low, high;
    char *begin;
    gg_memory *memory = NULL;
    struct py_array *array;
    gg_status status;
    if (external_measure(external, &low, &high, &begin))
        return NULL;
    Py_XINCREF(external->owner);
    status = gg_memory_wrap(device, kind, begin, (size_t)(high - low),
                            external->owner ? py_owner_release : NULL, external->owner, &memory);
    if (status) {
        Py_XDECREF(external->owner);
        return py_raise(state, status);
    }
    array = py_array_wrap(state->array_type, memory, (size_t)-low, external->dtype, external->ndim,
                          external->shape, external->strides);
    gg_memory_release(memory);
    if (!array)
        return NULL;
    array->readonly = external->readonly;
    array->wrapped = true;
    array->base = Py_XNewRef(external->owner);
    return (PyObject *)array;
}

/* The producer's work is recorded as a use, for which gpuglue's work waits. The current stream waits as well: the user's
 * own kernels on it must be ordered, as after a __dlpack__ that received this stream. */
int py_external_wait_producer(struct py_state *state, gg_device *device, uint64_t producer,
                              gg_memory *memory)
{
    gg_stream *stream, *current;
    gg_status status;
    PyThreadState *thread = PyEval_SaveThread();
    status = gg_stream_borrow(device, producer, NULL, NULL, &stream);
    if (!status) {
        status = gg_memory_record_use(memory, stream);
        gg_stream_release(stream);
    }
    if (!status)
        status = gg_current_stream(device, &current);
    if (!status)
        status = gg_stream_wait_memory(current, memory);
    PyEval_RestoreThread(thread);
    return py_check(state, status);
}

/* The host accepts any memory, and where a driver cannot report pointers, the device that the caller names is
 * assumed. */
int py_external_locate(struct py_state *state, const struct py_external *external, bool exactly,
                       gg_device **device, enum gg_memory_kind *kind)
{
    const bool host = py_is_host_device(*device);
    const bool assumed = host || !gg_device_supports(*device, GG_OP_pointer_info);
    struct py_pointer claim = {.wanted = exactly ? *device : NULL,
                               .assumed = assumed ? *device : NULL};
    Py_ssize_t low, high;
    char *begin;
    *kind = host ? GG_MEMORY_PINNED : GG_MEMORY_DEVICE;
    if (external->empty)
        return 0;
    if (external_measure(external, &low, &high, &begin))
        return -1;
    claim.pointer = begin;
    claim.nbytes = (size_t)(high - low);
    if (py_pointer_locate(state, &claim, device, kind))
        return -1;
    if (py_is_host_device(*device))
        *kind = GG_MEMORY_PINNED;
    return 0;
}
