/* array_transfer.c: methods of GPUArray that move data. */
#include "array.h"
#include "ends.h"
#include "fill.h"
#include "memory.h"
#include "numpy_bridge.h"
#include "pinned.h"

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

static PyObject *get_new(struct py_state *state, struct py_array *array, gg_stream *stream)
{
    PyObject *out = numpy_empty(array->dtype, array->ndim, array->shape, !array->c);
    struct py_end dst;
    if (!out)
        return NULL;
    py_end_host(&dst, out);
    if (fetch(state, array, &dst, stream, 0))
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
        out = get_new(state, array, stream);
    gg_stream_release(stream);
    return out;
}

static PyObject *array_get(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *kwnames)
{
    return get(self, "get", 0, args, nargs, kwnames);
}

static PyObject *array_get_async(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                 PyObject *kwnames)
{
    return get(self, "get_async", GG_COPY_ASYNC, args, nargs, kwnames);
}

static PyObject *array_tolist(PyObject *self, PyObject *unused)
{
    PyObject *host = get_new(py_state_of(self), py_array_of(self), NULL), *list;
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
    if (py_end_open(state, &src, source, false))
        return -1;
    py_end_array(&dst, array);
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

static PyObject *array_set(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *kwnames)
{
    return set(self, "set", 0, args, nargs, kwnames);
}

static PyObject *array_set_async(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                 PyObject *kwnames)
{
    return set(self, "set_async", GG_COPY_ASYNC, args, nargs, kwnames);
}

/* ---- on the device --------------------------------------------------------------------------- */

static PyObject *array_fill(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames)
{
    static const char *const names[] = {"value", "stream"};
    PyObject *values[2];
    if (py_parse("fill", names, 2, 2, 1, args, nargs, kwnames, values) ||
        py_fill_array(py_state_of(self), self, values[0], values[1]))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *copy_at(struct py_state *state, struct py_array *array,
                         const struct py_place *place)
{
    struct py_layout layout;
    PyObject *copy;
    py_array_layout(array, &layout);
    copy = py_array_make(state, &layout, place);
    py_layout_close(&layout);
    if (copy && set_from(state, py_array_of(copy), (PyObject *)array, place->stream, 0))
        Py_CLEAR(copy);
    return copy;
}

static PyObject *array_copy(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames)
{
    static const char *const names[] = {"stream"};
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    struct py_place place = {.device = gg_memory_device(array->memory)};
    PyObject *values[1], *copy;
    if (py_parse("copy", names, 1, 1, 0, args, nargs, kwnames, values) ||
        py_stream_arg(state, values[0], place.device, &place.stream))
        return NULL;
    copy = copy_at(state, array, &place);
    py_place_close(&place);
    return copy;
}

static PyObject *array_record_use(PyObject *self, PyObject *stream)
{
    return py_record_use(py_state_of(self), py_array_of(self)->memory, stream);
}

static PyObject *array_release_captured(PyObject *self, PyObject *unused)
{
    (void)unused;
    gg_memory_release_captured(py_array_of(self)->memory);
    Py_RETURN_NONE;
}

static PyObject *array_array(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames)
{
    (void)self;
    (void)args;
    (void)nargs;
    (void)kwnames;
    return PyErr_Format(PyExc_TypeError, "a GPUArray is not converted to a NumPy array implicitly: "
                                         "call .get() to copy it to the host");
}

PyMethodDef py_array_methods[] = {
    {"get", PY_METHOD(array_get), METH_FASTCALL | METH_KEYWORDS,
     "get($self, out=None, stream=None)\n--\n\n"
     "The array's elements as a numpy.ndarray of the same order, or in out, which is returned.\n"
     "Finished on return; stream only says where it is ordered."},
    {"set", PY_METHOD(array_set), METH_FASTCALL | METH_KEYWORDS,
     "set($self, a, stream=None)\n--\n\n"
     "Copy from an array of equal shape and dtype. Its memory has been read on return."},
    {"get_async", PY_METHOD(array_get_async), METH_FASTCALL | METH_KEYWORDS,
     "get_async($self, out=None, stream=None)\n--\n\n"
     "Like get, but may return before the data is there if out is page-locked, as the array made\n"
     "without out is: synchronise the stream before looking."},
    {"set_async", PY_METHOD(array_set_async), METH_FASTCALL | METH_KEYWORDS,
     "set_async($self, a, stream=None)\n--\n\n"
     "Like set, but may return before a was read if it is page-locked: do not write to it before "
     "the\n"
     "stream has passed this point."},
    {"item", PY_METHOD(py_array_item), METH_FASTCALL,
     "item($self, *index)\n--\n\n"
     "One element as a Python scalar: the only one, or that at a flat index or one index per\n"
     "dimension. Only that element is copied."},
    {"tolist", array_tolist, METH_NOARGS,
     "tolist($self)\n--\n\nThe elements as nested lists of Python scalars."},
    {"fill", PY_METHOD(array_fill), METH_FASTCALL | METH_KEYWORDS,
     "fill($self, value, stream=None)\n--\n\nSet every element to value, cast as NumPy assigns "
     "it."},
    {"copy", PY_METHOD(array_copy), METH_FASTCALL | METH_KEYWORDS,
     "copy($self, stream=None)\n--\n\nA new array with the same elements, on the same device."},
    {"record_use", array_record_use, METH_O,
     "record_use($self, stream)\n--\n\n"
     "Announce work on this memory that gpuglue did not submit: all that stream has now."},
    {"release_captured", array_release_captured, METH_NOARGS,
     "release_captured($self)\n--\n\n"
     "Say that no captured graph that used this memory will run again, so that it may be freed."},
    {"__array__", PY_METHOD(array_array), METH_FASTCALL | METH_KEYWORDS,
     "__array__($self, *args)\n--\n\nRaises TypeError: copies to the host are made by get()."},
    {NULL, NULL, 0, NULL},
};
