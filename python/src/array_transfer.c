/* array_transfer.c: methods of GPUArray that move its elements. */
#include "array.h"
#include "ends.h"
#include "fill.h"
#include "memory.h"
#include "numpy_bridge.h"
#include "pinned.h"

#define RESULT_LEAST ((size_t)1 << 20) /* bytes; smaller results are NumPy's own */

/* ---- get ------------------------------------------------------------------------------------- */

/* Copy into @p dst, which fits: same shape, dtype and order. */
static int fetch(struct py_state *state, struct py_array *array, struct py_end *dst,
                 gg_stream *stream, uint32_t flags)
{
    struct py_end src;
    int failed;
    py_end_array(&src, array);
    failed = py_transfer(state, dst, &src, array->nbytes, stream, flags);
    py_end_close(&src);
    return failed;
}

/* A new array on the host. Large ones live in memory that is used again: see gg_result_alloc. */
static PyObject *new_result(struct py_state *state, struct py_array *array, uint32_t *flags)
{
    const bool fortran = array->f && !array->c;
    void *memory = NULL;
    int32_t fresh = 0;
    gg_status status;
    *flags = 0;
    if (array->nbytes < RESULT_LEAST)
        return numpy_empty(array->dtype, array->ndim, array->shape, fortran);
    PyThreadState *thread = PyEval_SaveThread();
    status = gg_result_alloc(gg_memory_device(array->memory), array->nbytes, &memory, &fresh);
    PyEval_RestoreThread(thread);
    if (status == GG_ERR_OUT_OF_MEMORY) /* of mappings, perhaps, of which NumPy needs none */
        return numpy_empty(array->dtype, array->ndim, array->shape, fortran);
    if (py_check(state, status))
        return NULL;
    *flags = fresh ? (uint32_t)GG_COPY_FRESH : 0u;
    return numpy_result(array->dtype, array->ndim, array->shape, fortran, memory);
}

PyObject *py_array_to_host(struct py_state *state, struct py_array *array, gg_stream *stream)
{
    uint32_t flags;
    PyObject *out = new_result(state, array, &flags);
    struct py_end dst;
    if (!out)
        return NULL;
    py_end_host(&dst, out);
    if (fetch(state, array, &dst, stream, flags))
        Py_CLEAR(out);
    py_end_close(&dst);
    return out;
}

/* Page-locked memory of ours is named as such, so that the core keeps it until the copy has run. */
static PyObject *get_new_pinned(struct py_state *state, struct py_array *array, gg_stream *stream)
{
    struct py_layout layout;
    struct py_end dst;
    gg_memory *memory = NULL;
    PyObject *out;
    py_array_layout(array, &layout);
    out = py_pinned_array(state, gg_memory_device(array->memory), &layout, &memory);
    py_layout_close(&layout);
    if (!out)
        return NULL;
    py_end_host(&dst, out);
    Py_CLEAR(dst.keep); /* so that the array itself needs no owner */
    gg_memory_retain(memory);
    dst.end = (struct gg_end){.memory = memory};
    if (fetch(state, array, &dst, stream, GG_COPY_ASYNC))
        Py_CLEAR(out);
    py_end_close(&dst);
    return out;
}

static PyObject *get_into(struct py_state *state, struct py_array *array, PyObject *out,
                          gg_stream *stream, uint32_t flags)
{
    struct py_end dst, src;
    size_t nbytes = 0;
    int failed;
    if (py_end_open(state, &dst, out, true))
        return NULL;
    py_end_array(&src, array);
    failed = py_ends_match(state, &dst, &src, &nbytes) ||
             py_transfer(state, &dst, &src, nbytes, stream, flags);
    py_end_close(&src);
    py_end_close(&dst);
    return failed ? NULL : Py_NewRef(out);
}

static PyObject *get(PyObject *self, const char *name, uint32_t flags, PyObject *const *args,
                     Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"out", "stream"};
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    gg_stream *stream = NULL;
    PyObject *values[2], *out;
    if (py_parse(name, names, 2, 2, 0, args, nargs, kwnames, values) ||
        py_stream_arg(state, values[1], gg_memory_device(array->memory), &stream))
        return NULL;
    if (values[0] && values[0] != Py_None)
        out = get_into(state, array, values[0], stream, flags);
    else if (flags & GG_COPY_ASYNC)
        out = get_new_pinned(state, array, stream);
    else
        out = py_array_to_host(state, array, stream);
    gg_stream_release(stream);
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

PyObject *py_array_tolist(PyObject *self, PyObject *unused)
{
    PyObject *host = py_array_to_host(py_state_of(self), py_array_of(self), NULL), *list;
    (void)unused;
    if (!host)
        return NULL;
    list = PyObject_CallMethod(host, "tolist", NULL);
    Py_DECREF(host);
    return list;
}

/* ---- set ------------------------------------------------------------------------------------- */

static int set_from(struct py_state *state, struct py_array *array, PyObject *source,
                    gg_stream *stream, uint32_t flags)
{
    struct py_end dst, src;
    size_t nbytes = 0;
    int failed;
    if (py_end_open(state, &dst, (PyObject *)array, true))
        return -1;
    if (py_end_open(state, &src, source, false)) {
        py_end_close(&dst);
        return -1;
    }
    failed = py_ends_match(state, &dst, &src, &nbytes) ||
             py_transfer(state, &dst, &src, nbytes, stream, flags);
    py_end_close(&dst);
    py_end_close(&src);
    return failed;
}

static PyObject *set(PyObject *self, const char *name, uint32_t flags, PyObject *const *args,
                     Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"a", "stream"};
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    gg_stream *stream = NULL;
    PyObject *values[2];
    int failed;
    if (py_parse(name, names, 2, 2, 1, args, nargs, kwnames, values) ||
        py_stream_arg(state, values[1], gg_memory_device(array->memory), &stream))
        return NULL;
    failed = set_from(state, array, values[0], stream, flags);
    gg_stream_release(stream);
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

/* ---- on the device --------------------------------------------------------------------------- */

PY_FASTCALL(py_array_fill)
{
    static const char *const names[] = {"value", "stream"};
    PyObject *values[2];
    if (py_parse("fill", names, 2, 2, 1, args, nargs, kwnames, values) ||
        py_fill_array(py_state_of(self), self, values[0], values[1]))
        return NULL;
    Py_RETURN_NONE;
}

int py_array_copy_into(struct py_state *state, struct py_array *to, struct py_array *from,
                       gg_stream *stream)
{
    return set_from(state, to, (PyObject *)from, stream, 0);
}

int py_array_set_from(struct py_state *state, struct py_array *to, PyObject *source)
{
    return set_from(state, to, source, NULL, 0);
}

/* Takes over @p copy, which may be NULL. */
static PyObject *filled(struct py_state *state, PyObject *copy, struct py_array *array,
                        gg_stream *stream)
{
    if (copy && py_array_copy_into(state, py_array_of(copy), array, stream))
        Py_CLEAR(copy);
    return copy;
}

PyObject *py_array_copy_at(struct py_state *state, struct py_array *array,
                           const struct py_place *place)
{
    PyObject *copy = py_array_make_like(state, array, array->dtype, place);
    return filled(state, copy, array, place->stream);
}

PyObject *py_array_copy_in_order(struct py_state *state, struct py_array *array, bool fortran)
{
    const struct py_place place = {.device = gg_memory_device(array->memory)};
    struct py_layout layout;
    PyObject *copy;
    py_array_layout(array, &layout);
    layout.fortran = fortran;
    copy = py_array_make(state, &layout, &place);
    py_layout_close(&layout);
    return filled(state, copy, array, NULL);
}

PY_FASTCALL(py_array_copy)
{
    static const char *const names[] = {"stream"};
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    struct py_place place = {.device = gg_memory_device(array->memory)};
    PyObject *values[1], *copy;
    if (py_parse("copy", names, 1, 1, 0, args, nargs, kwnames, values) ||
        py_stream_arg(state, values[0], place.device, &place.stream))
        return NULL;
    copy = py_array_copy_at(state, array, &place);
    py_place_close(&place);
    return copy;
}
