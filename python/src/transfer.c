/* transfer.c: from two ends that fit to calls of gg_copy and gg_copy_nd.
 *
 * Only a buffer that is no array and has gaps, beside a Buffer, is packed here: it has no strides. */
#include "ends.h"
#include "numpy_bridge.h"

/* A copy may outlive the call: an asynchronous one, one in a graph, one whose wait was interrupted. So the core has
 * a reference to the host's end; mostly it gives it back before it returns. */
static void give_owner(struct py_end *end)
{
    if (!end->keep)
        return;
    end->end.owner = Py_NewRef(end->keep);
    end->end.release = py_owner_release;
}

static PyThreadState *begin(struct py_end *dst, struct py_end *src, struct py_returned *returned)
{
    py_owners_drain();
    give_owner(dst);
    give_owner(src);
    py_returned_begin(returned);
    return PyEval_SaveThread();
}

static int end(struct py_state *state, PyThreadState *thread, struct py_returned *returned,
               gg_status status)
{
    PyEval_RestoreThread(thread);
    int failed = py_check(state, status);
    py_returned_end(returned);
    return failed;
}

static int transfer_direct(struct py_state *state, struct py_end *dst, struct py_end *src,
                           size_t nbytes, gg_stream *stream, uint32_t flags)
{
    struct py_returned returned;
    PyThreadState *thread = begin(dst, src, &returned);
    gg_status status = gg_copy(&dst->end, &src->end, nbytes, stream, flags);
    return end(state, thread, &returned, status);
}

int py_transfer_box(struct py_state *state, struct py_end *dst, const Py_ssize_t *dst_strides,
                    struct py_end *src, const Py_ssize_t *src_strides, int ndim,
                    const size_t *shape, gg_stream *stream, uint32_t flags)
{
    struct py_returned returned;
    PyThreadState *thread = begin(dst, src, &returned);
    gg_status status =
        gg_copy_nd(&dst->end, dst_strides, &src->end, src_strides, ndim, shape, 1, stream, flags);
    return end(state, thread, &returned, status);
}

/* Beside an array a block of bytes, which has no strides, is an array in C order. */
static int transfer_strided(struct py_state *state, struct py_end *dst, struct py_end *src,
                            gg_stream *stream, uint32_t flags)
{
    const struct py_end *array = dst->shape ? dst : src;
    const size_t *shape = (const size_t *)(const void *)array->shape;
    struct py_returned returned;
    PyThreadState *thread = begin(dst, src, &returned);
    gg_status status = gg_copy_nd(&dst->end, dst->strides, &src->end, src->strides, array->ndim,
                                  shape, (size_t)array->itemsize, stream, flags);
    return end(state, thread, &returned, status);
}

static int refuse_wait(struct py_state *state, uint32_t flags)
{
    if (!(flags & GG_COPY_REQUIRE_ASYNC))
        return 0;
    PyErr_SetString(state->unsupported,
                    "this copy cannot be asynchronous: the memory layouts of its "
                    "ends differ, so that it needs a copy on the host");
    return -1;
}

/* A buffer with gaps, beside a Buffer: its bytes in C order. */
static int send_raw(struct py_state *state, struct py_end *dst, const struct py_end *src,
                    size_t nbytes, gg_stream *stream, uint32_t flags)
{
    struct py_end packed = {.kind = PY_END_RAW, .nbytes = nbytes};
    int failed;
    packed.keep = PyBytes_FromObject(src->keep);
    if (!packed.keep)
        return -1;
    packed.end.host = PyBytes_AsString(packed.keep);
    failed = transfer_direct(state, dst, &packed, nbytes, stream, flags);
    py_end_close(&packed);
    return failed;
}

/* Spread contiguous bytes over a buffer that is not. */
static int scatter(PyObject *memoryview, const void *bytes, size_t nbytes)
{
    Py_buffer view;
    int failed;
    if (PyObject_GetBuffer(memoryview, &view, PyBUF_STRIDED))
        return -1;
    failed = PyBuffer_FromContiguous(&view, bytes, (Py_ssize_t)nbytes, 'C');
    PyBuffer_Release(&view);
    return failed;
}

static int receive_raw(struct py_state *state, struct py_end *dst, struct py_end *src,
                       size_t nbytes, gg_stream *stream)
{
    struct py_end landing = {.kind = PY_END_RAW, .nbytes = nbytes};
    int failed;
    landing.keep = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)nbytes);
    if (!landing.keep)
        return -1;
    landing.end.host = PyBytes_AsString(landing.keep);
    failed = transfer_direct(state, &landing, src, nbytes, stream, 0) ||
             scatter(dst->keep, landing.end.host, nbytes);
    py_end_close(&landing);
    return failed ? -1 : 0;
}

int py_transfer(struct py_state *state, struct py_end *dst, struct py_end *src, size_t nbytes,
                gg_stream *stream, uint32_t flags)
{
    if (!nbytes)
        return 0;
    if ((dst->c && src->c) || (dst->f && src->f))
        return transfer_direct(state, dst, src, nbytes, stream, flags);
    if (src->kind == PY_END_RAW)
        return send_raw(state, dst, src, nbytes, stream, flags);
    if (dst->kind == PY_END_RAW)
        return refuse_wait(state, flags) ? -1 : receive_raw(state, dst, src, nbytes, stream);
    return transfer_strided(state, dst, src, stream, flags);
}
