/* transfer.c: methods of GPUArray that copy its elements. */
#include "numpy/bridge.h"
#include "runtime/stream.h"
#include "memory/alloc.h"
#include "copy/fill.h"
#include "copy/transfer.h"
#include "array/array.h"

#define READBACK_LEAST ((size_t)1 << 20) /* bytes; smaller arrays are allocated by NumPy */

/* ---- get ---- */

/* Copy into @p dst, which has the same shape, dtype and order, and close it. */
static int array_fetch(struct py_state *state, struct py_array *array, struct py_operand *dst,
                       gg_stream *stream, uint32_t flags)
{
    struct py_operand src;
    py_operand_array(&src, array);
    return py_transfer_and_close(state, dst, &src, array->nbytes, stream, flags);
}

/* Of a type of no bytes, such as a field of dtype 'S0', NumPy makes elements of one byte, which nothing is copied to. */
static PyObject *readback_small(const struct py_array *array, bool fortran)
{
    PyObject *out = numpy_empty(array->dtype, array->ndim, array->shape, fortran);
    struct numpy_desc desc;
    if (out && !array->itemsize) {
        numpy_describe(out, &desc);
        memset(desc.data, 0, desc.nbytes);
    }
    return out;
}

/* A new host array. Large ones are in memory that is reused: see gg_readback_alloc. */
static PyObject *readback_array(struct py_state *state, struct py_array *array, uint32_t *flags)
{
    const bool fortran = array->f && !array->c;
    void *memory = NULL;
    int32_t fresh = 0;
    gg_status status;
    *flags = 0;
    if (array->nbytes < READBACK_LEAST)
        return readback_small(array, fortran);
    PY_WITHOUT_GIL(status = gg_readback_alloc(gg_memory_device(array->memory), array->nbytes,
                                              &memory, &fresh));
    if (status == GG_ERR_OUT_OF_MEMORY) /* perhaps of mappings, of which NumPy needs none */
        return numpy_empty(array->dtype, array->ndim, array->shape, fortran);
    if (py_check(state, status))
        return NULL;
    *flags = fresh ? (uint32_t)GG_COPY_DST_UNTOUCHED : 0u;
    return numpy_readback_array(array->dtype, array->ndim, array->shape, fortran, memory);
}

PyObject *py_array_to_host(struct py_state *state, struct py_array *array, gg_stream *stream)
{
    uint32_t flags;
    PyObject *out = readback_array(state, array, &flags);
    struct py_operand dst;
    int failed;
    if (!out)
        return NULL;
    if (array->c || array->f) {
        failed = py_transfer_down(state, array, out, numpy_data(out), stream, flags);
    } else {
        py_operand_ndarray(&dst, out);
        failed = array_fetch(state, array, &dst, stream, flags);
    }
    if (failed)
        Py_CLEAR(out);
    return out;
}

/* Into pinned memory of gpuglue, which is passed as such, so that the core keeps it until the copy has run. */
static PyObject *get_pinned(struct py_state *state, struct py_array *array, gg_stream *stream)
{
    struct py_layout layout;
    struct py_operand dst;
    gg_memory *memory = NULL;
    PyObject *out;
    py_array_layout(array, array->dtype, &layout);
    out = py_pinned_array(state, gg_memory_device(array->memory), &layout, &memory);
    py_layout_close(&layout);
    if (!out)
        return NULL;
    py_operand_ndarray(&dst, out);
    Py_CLEAR(dst.keep); /* so that the array itself needs no owner */
    gg_memory_retain(memory);
    dst.native = (struct gg_copy_operand){.memory = memory};
    if (array_fetch(state, array, &dst, stream, GG_COPY_ASYNC))
        Py_CLEAR(out);
    return out;
}

static PyObject *get_into(struct py_state *state, struct py_array *array, PyObject *out,
                          gg_stream *stream, uint32_t flags)
{
    struct py_operand dst, src;
    if (py_operand_open(state, &dst, out, true))
        return NULL;
    py_operand_array(&src, array);
    return py_transfer_matching(state, &dst, &src, stream, flags) ? NULL : Py_NewRef(out);
}

static PyObject *get(PyObject *self, const char *name, uint32_t flags, PyObject *const *args,
                     Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"out", "stream"};
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    struct py_stream_use use;
    PyObject *values[2], *out;
    if (py_parse(name, names, 2, 2, 0, args, nargs, kwnames, values) ||
        py_stream_use_begin(state, values[1], gg_memory_device(array->memory), &use))
        return NULL;
    if (py_given(values[0]))
        out = get_into(state, array, values[0], use.stream, flags);
    else if (flags & GG_COPY_ASYNC)
        out = get_pinned(state, array, use.stream);
    else
        out = py_array_to_host(state, array, use.stream);
    py_stream_use_end(&use);
    return out;
}

PY_FASTCALL(py_array_get)
{
    return get(self, "get", 0, args, nargs, kwnames);
}

PY_FASTCALL(py_array_get_async)
{
    return get(self, "get_async", GG_COPY_ASYNC, args, nargs, kwnames);
}

PyObject *py_array_tolist(PyObject *self, PyObject *Py_UNUSED(unused))
{
    PyObject *host = py_array_to_host(py_state_of(self), py_array_of(self), NULL), *list;
    if (!host)
        return NULL;
    list = PyObject_CallMethod(host, "tolist", NULL);
    Py_DECREF(host);
    return list;
}

/* ---- set ---- */

static int array_set(struct py_state *state, struct py_array *array, PyObject *source,
                     gg_stream *stream, uint32_t flags)
{
    const bool is_list = PyList_Check(source) || PyTuple_Check(source);
    PyObject *host = is_list ? numpy_asarray(source, array->dtype, 'K') : Py_NewRef(source);
    struct py_operand dst, src;
    int failed = !host || py_operands_open(state, &dst, (PyObject *)array, &src, host);
    Py_XDECREF(host); /* the operand keeps it */
    return failed ? -1 : py_transfer_matching(state, &dst, &src, stream, flags);
}

static PyObject *set(PyObject *self, const char *name, uint32_t flags, PyObject *const *args,
                     Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"a", "stream"};
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    struct py_stream_use use;
    PyObject *values[2];
    int failed;
    if (py_parse(name, names, 2, 2, 1, args, nargs, kwnames, values) ||
        py_stream_use_begin(state, values[1], gg_memory_device(array->memory), &use))
        return NULL;
    failed = array_set(state, array, values[0], use.stream, flags);
    py_stream_use_end(&use);
    return failed ? NULL : Py_NewRef(Py_None);
}

PY_FASTCALL(py_array_set)
{
    return set(self, "set", 0, args, nargs, kwnames);
}

PY_FASTCALL(py_array_set_async)
{
    return set(self, "set_async", GG_COPY_ASYNC, args, nargs, kwnames);
}

/* ---- on the device ---- */

PY_FASTCALL(py_array_fill)
{
    static const char *const names[] = {"value", "stream"};
    PyObject *values[2];
    if (py_parse("fill", names, 2, 2, 1, args, nargs, kwnames, values) ||
        py_fill_array(py_state_of(self), self, values[0], values[1]))
        return NULL;
    Py_RETURN_NONE;
}

int py_array_copy_from(struct py_state *state, struct py_array *to, PyObject *from,
                       gg_stream *stream)
{
    return array_set(state, to, from, stream, 0);
}

/* Takes over @p copy, which may be NULL. */
static PyObject *array_filled(struct py_state *state, PyObject *copy, struct py_array *array,
                              gg_stream *stream)
{
    if (copy && array_set(state, py_array_of(copy), (PyObject *)array, stream, 0))
        Py_CLEAR(copy);
    return copy;
}

PyObject *py_array_copy_at(struct py_state *state, struct py_array *array,
                           const struct py_alloc_target *target)
{
    PyObject *copy = py_array_empty_like(state, array, array->dtype, target);
    return array_filled(state, copy, array, target->stream);
}

PyObject *py_array_copy_in_order(struct py_state *state, struct py_array *array, bool fortran)
{
    const struct py_alloc_target target = py_array_target(array);
    struct py_layout layout;
    PyObject *copy;
    py_layout_set(&layout, array->dtype, array->ndim, array->shape, fortran);
    copy = py_array_empty(state, &layout, &target);
    py_layout_close(&layout);
    return array_filled(state, copy, array, NULL);
}

PY_FASTCALL(py_array_copy)
{
    static const char *const names[] = {"stream"};
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    struct py_alloc_target target = py_array_target(array);
    PyObject *values[1], *copy;
    if (py_parse("copy", names, 1, 1, 0, args, nargs, kwnames, values) ||
        py_stream_arg(state, values[0], target.device, &target.stream))
        return NULL;
    copy = py_array_copy_at(state, array, &target);
    py_alloc_target_close(&target);
    return copy;
}
