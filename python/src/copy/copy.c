/* copy.c: copy() and fill(). */
#include "runtime/stream.h"
#include "copy/fill.h"
#include "copy/transfer.h"

/* The device of stream=: of a copy between devices the source's, else that of the one device. */
static gg_device *copy_stream_device(const struct py_operand *dst, const struct py_operand *src)
{
    return gg_memory_device(src->native.memory ? src->native.memory : dst->native.memory);
}

static int copy_flags(struct py_state *state, const struct py_operand *dst,
                      const struct py_operand *src, bool stream, bool require, uint32_t *flags)
{
    *flags =
        (stream ? (uint32_t)GG_COPY_ASYNC : 0u) | (require ? (uint32_t)GG_COPY_REQUIRE_ASYNC : 0u);
    if (!require || stream || (dst->native.memory && src->native.memory))
        return 0;
    return PY_FAIL(state->invalid_argument,
                   "a copy without stream= waits until it is complete: pass stream= with "
                   "require_async=True");
}

static int copy_operands(struct py_state *state, struct py_operand *dst, struct py_operand *src,
                         PyObject *object, bool require)
{
    gg_stream *stream = NULL;
    uint32_t flags = 0;
    size_t nbytes = 0;
    int failed;
    if (py_operands_match(state, dst, src, &nbytes) ||
        py_stream_arg(state, object, copy_stream_device(dst, src), &stream))
        return -1;
    failed = copy_flags(state, dst, src, stream != NULL, require, &flags) ||
             py_transfer(state, dst, src, nbytes, stream, flags);
    gg_stream_release(stream);
    return failed ? -1 : 0;
}

static int copy_objects(struct py_state *state, PyObject *to, PyObject *from, PyObject *stream,
                        bool require)
{
    struct py_operand dst, src;
    int failed;
    if (py_operands_open(state, &dst, to, &src, from))
        return -1;
    failed = copy_operands(state, &dst, &src, stream, require);
    py_operands_close(&dst, &src);
    return failed;
}

static PY_FASTCALL(copy)
{
    static const char *const names[] = {"dst", "src", "stream", "require_async"};
    PyObject *values[4];
    int require;
    if (py_parse("copy", names, 4, 3, 2, args, nargs, kwnames, values))
        return NULL;
    require = values[3] ? PyObject_IsTrue(values[3]) : 0;
    if (require < 0 ||
        copy_objects(PyModule_GetState(self), values[0], values[1], values[2], require))
        return NULL;
    Py_RETURN_NONE;
}

static PY_FASTCALL(fill)
{
    static const char *const names[] = {"dst", "value", "stream"};
    struct py_state *state = PyModule_GetState(self);
    PyObject *values[3];
    int failed;
    if (py_parse("fill", names, 3, 3, 2, args, nargs, kwnames, values))
        return NULL;
    if (PyObject_TypeCheck(values[0], state->array_type))
        failed = py_fill_array(state, values[0], values[1], values[2]);
    else if (PyObject_TypeCheck(values[0], state->buffer_type))
        failed = py_fill_buffer(state, values[0], values[1], values[2]);
    else
        return PyErr_Format(PyExc_TypeError, "fill takes a GPUArray or a Buffer, got %R",
                            Py_TYPE(values[0]));
    return failed ? NULL : Py_NewRef(Py_None);
}

PyMethodDef py_copy_functions[] = {
    PY_FASTCALL_DEF("copy", copy, py_doc_copy),
    PY_FASTCALL_DEF("fill", fill, py_doc_fill),
    {NULL, NULL, 0, NULL},
};
