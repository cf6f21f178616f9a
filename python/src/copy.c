/* copy.c: copy() and fill(). */
#include "ends.h"
#include "fill.h"
#include "memory.h"

/* Whose a native handle is: of a copy between devices the source's, else that of the one device. */
static gg_device *device_of(const struct py_end *dst, const struct py_end *src)
{
    return gg_memory_device(src->end.memory ? src->end.memory : dst->end.memory);
}

static int copy_flags(struct py_state *state, const struct py_end *dst, const struct py_end *src,
                      bool stream, bool require, uint32_t *flags)
{
    *flags =
        (stream ? (uint32_t)GG_COPY_ASYNC : 0u) | (require ? (uint32_t)GG_COPY_REQUIRE_ASYNC : 0u);
    if (!require || stream || (dst->end.memory && src->end.memory))
        return 0;
    py_invalid(state, "a copy without stream= waits until it is finished: give a stream with "
                      "require_async=True");
    return -1;
}

static int copy_ends(struct py_state *state, struct py_end *dst, struct py_end *src,
                     PyObject *object, bool require)
{
    gg_stream *stream = NULL;
    uint32_t flags = 0;
    size_t nbytes = 0;
    int failed;
    if (py_ends_match(state, dst, src, &nbytes) ||
        py_stream_arg(state, object, device_of(dst, src), &stream))
        return -1;
    failed = copy_flags(state, dst, src, stream != NULL, require, &flags) ||
             py_transfer(state, dst, src, nbytes, stream, flags);
    gg_stream_release(stream);
    return failed ? -1 : 0;
}

int py_copy_objects(struct py_state *state, PyObject *to, PyObject *from, PyObject *stream,
                    bool require)
{
    struct py_end dst, src;
    int failed;
    if (py_end_open(state, &dst, to, true))
        return -1;
    if (py_end_open(state, &src, from, false)) {
        py_end_close(&dst);
        return -1;
    }
    failed = copy_ends(state, &dst, &src, stream, require);
    py_end_close(&src);
    py_end_close(&dst);
    return failed;
}

static PyObject *copy(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"dst", "src", "stream", "require_async"};
    PyObject *values[4];
    int require;
    if (py_parse("copy", names, 4, 3, 2, args, nargs, kwnames, values))
        return NULL;
    require = values[3] ? PyObject_IsTrue(values[3]) : 0;
    if (require < 0 ||
        py_copy_objects(PyModule_GetState(module), values[0], values[1], values[2], require))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *fill(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"dst", "value", "stream"};
    struct py_state *state = PyModule_GetState(module);
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

static PyMethodDef functions[] = {
    {"copy", PY_METHOD(copy), METH_FASTCALL | METH_KEYWORDS,
     "copy(dst, src, stream=None, *, require_async=False)\n--\n\n"
     "Copy between GPUArrays, Buffers and host memory (NumPy arrays, anything with the buffer\n"
     "protocol); at least one end is a GPUArray or a Buffer.\n\n"
     "Between arrays shape and dtype must be equal. A Buffer is bytes: at least as many as the "
     "other\n"
     "end has. Without a stream the copy is finished for the host on return. With one it may "
     "still\n"
     "run, if the host's end is page-locked; require_async refuses where it would have to wait.\n\n"
     "Between two devices of one backend that reach each other the copy is direct, and queued "
     "like any\n"
     "other. Else it goes through the host and is finished on return. stream may be of either "
     "device."},
    {"fill", PY_METHOD(fill), METH_FASTCALL | METH_KEYWORDS,
     "fill(dst, value, stream=None)\n--\n\n"
     "Set each element of a GPUArray to value. In a Buffer value is an int from 0 to 255, or "
     "bytes\n"
     "that are repeated to its end."},
    {NULL, NULL, 0, NULL},
};

int py_copy_add(PyObject *module, struct py_state *state)
{
    (void)state;
    return PyModule_AddFunctions(module, functions);
}
