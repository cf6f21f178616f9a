/* raw_bytes.c: copies between offsets of memory blocks, and Buffers over bare addresses, for the compatibility
 * modules, whose users keep addresses as numbers. Not exported by the package. */
#include "base/owners.h"
#include "runtime/device.h"
#include "runtime/stream.h"
#include "memory/buffer.h"
#include "copy/fill.h"
#include "copy/transfer.h"

static int raw_read_size(struct py_state *state, PyObject *object, const char *what, size_t *out)
{
    uint64_t value = 0;
    if (py_uint64(state, object, what, &value))
        return -1;
    *out = (size_t)value;
    return 0;
}

/* Advance the first byte of an operand, and check that the bytes fit. */
static int raw_advance(struct py_state *state, struct py_operand *operand, size_t offset,
                       size_t nbytes)
{
    if (!operand->c && !operand->f)
        return PY_FAIL(state->invalid_argument, "the host memory of a copy must be contiguous");
    if (offset > operand->nbytes || nbytes > operand->nbytes - offset)
        return PY_FAIL(state->invalid_argument,
                       "%zu bytes from offset %zu do not fit into %zu bytes", nbytes, offset,
                       operand->nbytes);
    operand->native.offset += offset;
    return 0;
}

/* Open both operands and stream=. */
static int raw_open(struct py_state *state, struct py_operand *dst, PyObject *to,
                    struct py_operand *src, PyObject *from, PyObject *stream, gg_stream **out)
{
    if (py_operands_open(state, dst, to, src, from))
        return -1;
    gg_memory *memory = src->native.memory ? src->native.memory : dst->native.memory;
    if (!memory)
        py_invalid(state, "the source or destination of a copy must be device memory");
    else if (!py_stream_arg(state, stream, gg_memory_device(memory), out))
        return 0;
    py_operands_close(dst, src);
    return -1;
}

static int raw_copy(struct py_state *state, PyObject *const *values, uint32_t flags)
{
    struct py_operand dst, src;
    size_t to = 0, from = 0, nbytes = 0;
    gg_stream *stream;
    if (raw_read_size(state, values[1], "dst_offset", &to) ||
        raw_read_size(state, values[3], "src_offset", &from) ||
        raw_read_size(state, values[4], "nbytes", &nbytes) ||
        raw_open(state, &dst, values[0], &src, values[2], values[5], &stream))
        return -1;
    int failed = raw_advance(state, &dst, to, nbytes) || raw_advance(state, &src, from, nbytes) ||
                 py_transfer(state, &dst, &src, nbytes, stream, flags);
    gg_stream_release(stream);
    py_operands_close(&dst, &src);
    return failed;
}

static PyObject *copy_bytes(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    struct py_state *state = PyModule_GetState(module);
    if (nargs != 7) {
        PyErr_Format(PyExc_TypeError, "_copy_bytes takes 7 arguments, got %zd", nargs);
        return NULL;
    }
    const int early = PyObject_IsTrue(args[6]);
    if (early < 0 || raw_copy(state, args, early ? (uint32_t)GG_COPY_ASYNC : 0u))
        return NULL;
    Py_RETURN_NONE;
}

/* ---- rectangular regions: rows of bytes, and layers of rows ---- */

enum { REGION_AXES = 3 }; /* layers, rows, bytes */

struct region_side {
    Py_ssize_t offset, strides[REGION_AXES];
};

/* Check that the region lies within the operand: the core does not know the size of host memory. */
static int region_check(struct py_state *state, struct py_operand *operand,
                        const struct region_side *side, const size_t *shape)
{
    uint64_t last = (uint64_t)side->offset;
    bool fits = side->offset >= 0;
    for (int i = 0; i < REGION_AXES && fits; i++) {
        uint64_t step = 0;
        fits = side->strides[i] >= 0 &&
               !__builtin_mul_overflow(shape[i] - 1, (uint64_t)side->strides[i], &step) &&
               !__builtin_add_overflow(last, step, &last);
    }
    if (!fits || last >= operand->nbytes)
        return PY_FAIL(state->invalid_argument, "the rows of a copy do not fit into %zu bytes",
                       operand->nbytes);
    return raw_advance(state, operand, (size_t)side->offset, 1);
}

static int region_copy(struct py_state *state, PyObject *const *objects,
                       const struct region_side *sides, const size_t *shape, PyObject *where,
                       uint32_t flags)
{
    struct py_operand dst, src;
    gg_stream *stream;
    if (raw_open(state, &dst, objects[0], &src, objects[1], where, &stream))
        return -1;
    int failed = region_check(state, &dst, &sides[0], shape) ||
                 region_check(state, &src, &sides[1], shape) ||
                 py_transfer_region(state, &dst, sides[0].strides, &src, sides[1].strides,
                                    REGION_AXES, shape, stream, flags);
    gg_stream_release(stream);
    py_operands_close(&dst, &src);
    return failed;
}

static PyObject *copy_region(PyObject *module, PyObject *args)
{
    PyObject *objects[2], *where;
    struct region_side to = {.strides = {0, 0, 1}}, from = to;
    Py_ssize_t layers, rows, width;
    int early;
    if (!PyArg_ParseTuple(args, "O(nnn)O(nnn)(nnn)Op:_copy_region", &objects[0], &to.offset,
                          &to.strides[0], &to.strides[1], &objects[1], &from.offset,
                          &from.strides[0], &from.strides[1], &layers, &rows, &width, &where, &early))
        return NULL;
    struct py_state *state = PyModule_GetState(module);
    if (layers < 0 || rows < 0 || width < 0)
        return py_invalid(state, "a copy of %zd x %zd x %zd bytes: sizes must not be negative",
                          layers, rows, width);
    const size_t shape[REGION_AXES] = {(size_t)layers, (size_t)rows, (size_t)width};
    const struct region_side sides[] = {to, from};
    if (layers && rows && width &&
        region_copy(state, objects, sides, shape, where, early ? (uint32_t)GG_COPY_ASYNC : 0u))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *fill_bytes(PyObject *module, PyObject *args)
{
    struct py_state *state = PyModule_GetState(module);
    PyObject *buffer, *stream_object;
    Py_buffer pattern;
    Py_ssize_t offset, count;
    gg_stream *stream = NULL;
    if (!PyArg_ParseTuple(args, "O!ny*nO:_fill_bytes", state->buffer_type, &buffer, &offset,
                          &pattern, &count, &stream_object))
        return NULL;
    gg_memory *memory = py_buffer_memory(buffer);
    gg_status status = GG_ERR_INVALID_ARGUMENT;
    bool submitted = false;
    if (memory)
        gg_memory_retain(memory); /* Python code of the stream may close it */
    if (memory && !py_stream_arg(state, stream_object, gg_memory_device(memory), &stream)) {
        py_buffer_touch(buffer);
        submitted = true;
        PY_WITHOUT_GIL(status = gg_fill(memory, (size_t)offset, pattern.buf, (size_t)pattern.len,
                                        (size_t)count, stream));
    }
    gg_memory_release(memory);
    gg_stream_release(stream);
    PyBuffer_Release(&pattern);
    if (!submitted)
        return NULL;
    return py_none(state, status);
}

static PyObject *wrap_pointer(PyObject *module, PyObject *args)
{
    struct py_state *state = PyModule_GetState(module);
    unsigned long long pointer, nbytes;
    PyObject *where, *owner;
    gg_device *device;
    gg_memory *memory;
    if (!PyArg_ParseTuple(args, "KKOO:_wrap_pointer", &pointer, &nbytes, &where, &owner) ||
        py_device_arg(state, where, &device))
        return NULL;
    Py_INCREF(owner);
    /* this may open the device */
    gg_status status;
    PY_WITHOUT_GIL(status = gg_memory_wrap(device, GG_MEMORY_DEVICE, (void *)(uintptr_t)pointer,
                                           (size_t)nbytes, py_owner_release, owner, &memory));
    if (status) {
        Py_DECREF(owner);
        return py_raise(state, status);
    }
    return py_buffer_wrap_in_use(state, memory);
}

PyMethodDef py_raw_bytes_functions[] = {
    {"_copy_bytes", PY_METHOD(copy_bytes), METH_FASTCALL,
     "_copy_bytes(dst, dst_offset, src, src_offset, nbytes, stream, asynchronous, /)"},
    {"_copy_region", copy_region, METH_VARARGS,
     "_copy_region(dst, dst_place, src, src_place, shape, stream, asynchronous, /)\n--\n\n"
     "Copy layers of rows of bytes. A place is (offset, layer pitch, row pitch) in bytes."},
    {"_fill_bytes", fill_bytes, METH_VARARGS,
     "_fill_bytes(buffer, offset, pattern, count, stream, /)"},
    {"_wrap_pointer", wrap_pointer, METH_VARARGS,
     "_wrap_pointer(pointer, nbytes, device, owner, /)\n--\n\nA Buffer that keeps owner alive."},
    {NULL, NULL, 0, NULL},
};
