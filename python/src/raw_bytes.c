/* raw_bytes.c: bytes of blocks at offsets, and blocks over bare addresses: what the compatibility modules
 * stand on, whose users keep addresses as numbers. Not exported by the package. */
#include "ends.h"
#include "memory.h"

static int size_argument(struct py_state *state, PyObject *object, const char *what, size_t *out)
{
    uint64_t value = 0;
    if (py_uint64(state, object, what, &value))
        return -1;
    *out = (size_t)value;
    return 0;
}

/* Where the end's bytes begin, moved on by @p offset; both kinds of ends have their own bound. */
static int move_on(struct py_state *state, struct py_end *end, size_t offset, size_t nbytes)
{
    if (!end->c && !end->f) {
        py_invalid(state, "the host memory of a copy must be contiguous");
        return -1;
    }
    if (offset > end->nbytes || nbytes > end->nbytes - offset) {
        py_invalid(state, "%zu bytes from offset %zu on do not fit into %zu", nbytes, offset,
                   end->nbytes);
        return -1;
    }
    end->end.offset += offset;
    return 0;
}

static int copy_between(struct py_state *state, PyObject *const *values, uint32_t flags)
{
    struct py_end dst, src;
    size_t to = 0, from = 0, nbytes = 0;
    gg_stream *stream = NULL;
    int failed = -1;
    if (size_argument(state, values[1], "dst_offset", &to) ||
        size_argument(state, values[3], "src_offset", &from) ||
        size_argument(state, values[4], "nbytes", &nbytes) ||
        py_end_open(state, &dst, values[0], true))
        return -1;
    if (py_end_open(state, &src, values[2], false))
        goto close_dst;
    gg_memory *memory = src.end.memory ? src.end.memory : dst.end.memory;
    if (!memory)
        py_invalid(state, "one end of a copy must be device memory");
    else if (!move_on(state, &dst, to, nbytes) && !move_on(state, &src, from, nbytes) &&
             !py_stream_arg(state, values[5], gg_memory_device(memory), &stream))
        failed = py_transfer(state, &dst, &src, nbytes, stream, flags);
    gg_stream_release(stream);
    py_end_close(&src);

close_dst:
    py_end_close(&dst);
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
    if (early < 0 || copy_between(state, args, early ? (uint32_t)GG_COPY_ASYNC : 0u))
        return NULL;
    Py_RETURN_NONE;
}

/* ---- boxes: rows of bytes, and layers of rows ---- */

enum { BOX_AXES = 3 }; /* layers, rows, bytes */

struct box_side {
    Py_ssize_t offset, strides[BOX_AXES];
};

/* What the side reaches must lie in the end: of host memory nobody else knows the size. */
static int reach(struct py_state *state, struct py_end *end, const struct box_side *side,
                 const size_t *shape)
{
    uint64_t last = (uint64_t)side->offset;
    bool fits = side->offset >= 0;
    for (int i = 0; i < BOX_AXES && fits; i++) {
        uint64_t step = 0;
        fits = side->strides[i] >= 0 &&
               !__builtin_mul_overflow(shape[i] - 1, (uint64_t)side->strides[i], &step) &&
               !__builtin_add_overflow(last, step, &last);
    }
    if (!fits || last >= end->nbytes) {
        py_invalid(state, "the rows of a copy do not fit into %zu bytes", end->nbytes);
        return -1;
    }
    return move_on(state, end, (size_t)side->offset, 1);
}

static int box_between(struct py_state *state, PyObject *const *ends, const struct box_side *sides,
                       const size_t *shape, PyObject *where, uint32_t flags)
{
    struct py_end dst, src;
    gg_stream *stream = NULL;
    int failed = -1;
    if (py_end_open(state, &dst, ends[0], true))
        return -1;
    if (py_end_open(state, &src, ends[1], false))
        goto close_dst;
    gg_memory *memory = src.end.memory ? src.end.memory : dst.end.memory;
    if (!memory)
        py_invalid(state, "one end of a copy must be device memory");
    else if (!reach(state, &dst, &sides[0], shape) && !reach(state, &src, &sides[1], shape) &&
             !py_stream_arg(state, where, gg_memory_device(memory), &stream))
        failed = py_transfer_box(state, &dst, sides[0].strides, &src, sides[1].strides, BOX_AXES,
                                 shape, stream, flags);
    gg_stream_release(stream);
    py_end_close(&src);

close_dst:
    py_end_close(&dst);
    return failed;
}

static PyObject *copy_box(PyObject *module, PyObject *args)
{
    PyObject *ends[2], *where;
    struct box_side to = {.strides = {0, 0, 1}}, from = to;
    Py_ssize_t layers, rows, width;
    int early;
    if (!PyArg_ParseTuple(args, "O(nnn)O(nnn)(nnn)Op:_copy_box", &ends[0], &to.offset,
                          &to.strides[0], &to.strides[1], &ends[1], &from.offset, &from.strides[0],
                          &from.strides[1], &layers, &rows, &width, &where, &early))
        return NULL;
    struct py_state *state = PyModule_GetState(module);
    if (layers < 0 || rows < 0 || width < 0)
        return py_invalid(state, "a copy of %zd x %zd x %zd bytes", layers, rows, width);
    const size_t shape[BOX_AXES] = {(size_t)layers, (size_t)rows, (size_t)width};
    const struct box_side sides[] = {to, from};
    if (layers && rows && width &&
        box_between(state, ends, sides, shape, where, early ? (uint32_t)GG_COPY_ASYNC : 0u))
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
    bool asked = false;
    if (memory)
        gg_memory_retain(memory); /* the stream's own code may close it */
    if (memory && !py_stream_arg(state, stream_object, gg_memory_device(memory), &stream)) {
        py_buffer_touch(buffer);
        asked = true;
        PyThreadState *thread = PyEval_SaveThread();
        status = gg_fill(memory, (size_t)offset, pattern.buf, (size_t)pattern.len, (size_t)count,
                         stream);
        PyEval_RestoreThread(thread);
    }
    gg_memory_release(memory);
    gg_stream_release(stream);
    PyBuffer_Release(&pattern);
    if (!asked)
        return NULL;
    if (status)
        return py_raise(state, status);
    Py_RETURN_NONE;
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
    PyThreadState *thread = PyEval_SaveThread(); /* a device may be opened */
    gg_status status = gg_memory_wrap(device, GG_MEMORY_DEVICE, (void *)(uintptr_t)pointer,
                                      (size_t)nbytes, py_owner_release, owner, &memory);
    PyEval_RestoreThread(thread);
    if (status) {
        Py_DECREF(owner);
        return py_raise(state, status);
    }
    return py_buffer_over(state, memory);
}

PyMethodDef py_raw_functions[] = {
    {"_copy_bytes", PY_METHOD(copy_bytes), METH_FASTCALL,
     "_copy_bytes(dst, dst_offset, src, src_offset, nbytes, stream, asynchronous, /)"},
    {"_copy_box", copy_box, METH_VARARGS,
     "_copy_box(dst, dst_place, src, src_place, shape, stream, asynchronous, /)\n--\n\n"
     "Layers of rows of bytes. A place is (offset, from layer to layer, from row to row)."},
    {"_fill_bytes", fill_bytes, METH_VARARGS,
     "_fill_bytes(buffer, offset, pattern, count, stream, /)"},
    {"_wrap_pointer", wrap_pointer, METH_VARARGS,
     "_wrap_pointer(pointer, nbytes, device, owner, /)\n--\n\nA Buffer that keeps the owner."},
    {NULL, NULL, 0, NULL},
};
