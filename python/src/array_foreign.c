/* array_foreign.c: from an address, a shape and a dtype to a GPUArray. */
#include "array_foreign.h"
#include "array.h"
#include "memory.h"
#include "numpy_bridge.h"

static int refuse(const char *why, PyObject *object)
{
    PyErr_Format(PyExc_ValueError, "%s, got %R", why, object);
    return -1;
}

static int read_sizes(PyObject *object, Py_ssize_t *out, int *count)
{
    PyObject *tuple = py_is_index(object) ? PyTuple_Pack(1, object) : PySequence_Tuple(object);
    Py_ssize_t given;
    if (!tuple)
        return -1;
    given = PyTuple_Size(tuple);
    if (given > numpy_max_dims()) {
        Py_DECREF(tuple);
        return refuse("too many dimensions", object);
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

int py_foreign_layout(struct py_foreign *foreign, PyObject *shape, PyObject *strides)
{
    const Py_ssize_t itemsize = numpy_itemsize(foreign->dtype);
    Py_ssize_t bytes = itemsize;
    int count;
    if (read_sizes(shape, foreign->shape, &foreign->ndim))
        return -1;
    foreign->empty = !itemsize;
    for (int i = 0; i < foreign->ndim; i++) {
        if (foreign->shape[i] < 0)
            return refuse("a shape has lengths of 0 or more", shape);
        if (!foreign->shape[i])
            foreign->empty = true;
        else if (__builtin_mul_overflow(bytes, foreign->shape[i], &bytes))
            return refuse("the size of the shape does not fit in 63 bits", shape);
    }
    if (!strides || strides == Py_None) {
        py_strides_contiguous(foreign->strides, foreign->shape, foreign->ndim, itemsize, false);
        return 0;
    }
    if (read_sizes(strides, foreign->strides, &count))
        return -1;
    return count == foreign->ndim ? 0 : refuse("strides need one number for each axis", strides);
}

/* From element 0: the first byte and the one behind the last. */
static int measure(const struct py_foreign *foreign, Py_ssize_t *low, Py_ssize_t *high)
{
    *low = 0;
    *high = foreign->empty ? 0 : numpy_itemsize(foreign->dtype);
    for (int i = 0; i < foreign->ndim && !foreign->empty; i++) {
        Py_ssize_t reach;
        if (__builtin_mul_overflow(foreign->shape[i] - 1, foreign->strides[i], &reach) ||
            __builtin_add_overflow(reach < 0 ? *low : *high, reach, reach < 0 ? low : high)) {
            PyErr_SetString(PyExc_ValueError, "the extent of the strides does not fit in 63 bits");
            return -1;
        }
    }
    return 0;
}

PyObject *py_foreign_wrap(struct py_state *state, const struct py_foreign *foreign,
                          gg_device *device, enum gg_memory_kind kind)
{
    Py_ssize_t low, high;
    gg_memory *memory = NULL;
    struct py_array *array;
    gg_status status;
    if (measure(foreign, &low, &high))
        return NULL;
    Py_XINCREF(foreign->owner);
    status = gg_memory_wrap(device, kind, foreign->empty ? NULL : foreign->first + low,
                            (size_t)(high - low), foreign->owner ? py_owner_release : NULL,
                            foreign->owner, &memory);
    if (status) {
        Py_XDECREF(foreign->owner);
        return py_raise(state, status);
    }
    array = py_array_over(state->array_type, memory, (size_t)-low, foreign->dtype, foreign->ndim,
                          foreign->shape, foreign->strides);
    gg_memory_release(memory);
    if (!array)
        return NULL;
    array->readonly = foreign->readonly;
    array->wrapped = true;
    array->base = Py_XNewRef(foreign->owner);
    return (PyObject *)array;
}

/* The producer's work is a use, which all that gpuglue does waits for; what else is on the current stream, the user's
 * own kernels above all, has to wait as after a __dlpack__ that got this stream. */
int py_foreign_follow(struct py_state *state, gg_device *device, uint64_t producer,
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
        status = gg_memory_order(memory, current);
    PyEval_RestoreThread(thread);
    return py_check(state, status);
}

/* ---- where an address is ---------------------------------------------------------------------- */

/* Any memory is the host's, and a driver that cannot tell is believed to have it where the caller says. */
int py_foreign_locate(struct py_state *state, const struct py_foreign *foreign, bool exactly,
                      gg_device **device, enum gg_memory_kind *kind)
{
    const struct py_vendor *vendor = py_vendor_of(*device);
    const bool host = vendor && vendor->device == DL_CPU;
    const bool believed = host || !gg_device_supports(*device, GG_OP_pointer_info);
    struct py_pointer asked = {.wanted = exactly ? *device : NULL,
                               .believed = believed ? *device : NULL};
    Py_ssize_t low, high;
    *kind = host ? GG_MEMORY_PINNED : GG_MEMORY_DEVICE;
    if (foreign->empty)
        return 0;
    if (measure(foreign, &low, &high))
        return -1;
    asked.pointer = foreign->first + low;
    asked.nbytes = (size_t)(high - low);
    if (py_pointer_locate(state, &asked, device, kind))
        return -1;
    vendor = py_vendor_of(*device);
    if (vendor && vendor->device == DL_CPU)
        *kind = GG_MEMORY_PINNED;
    return 0;
}
