/* transfer.c: from two ends that fit to calls of gg_copy.
 *
 * The core copies contiguous bytes. Where the layouts of the two ends differ, a contiguous array on
 * the host lies between them. */
#include "ends.h"
#include "numpy_bridge.h"

/* An asynchronous copy outlives the call: give the core a reference to the host's end. */
static void give_owner(struct py_end *end)
{
    if (!end->keep)
        return;
    end->end.owner = Py_NewRef(end->keep);
    end->end.release = py_owner_release;
}

static int transfer_direct(struct py_state *state, struct py_end *dst, struct py_end *src,
                           size_t nbytes, gg_stream *stream, uint32_t flags)
{
    gg_status status;
    py_owners_drain();
    if (flags & GG_COPY_ASYNC) {
        give_owner(dst);
        give_owner(src);
    }
    PyThreadState *thread = PyEval_SaveThread();
    status = gg_copy(&dst->end, &src->end, nbytes, stream, flags);
    PyEval_RestoreThread(thread);
    return py_check(state, status);
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

/* The source's elements in @p fortran or C order. */
static int open_packed(struct py_end *end, const struct py_end *src, bool fortran)
{
    const bool raw = src->kind == PY_END_RAW;
    PyObject *packed = raw ? PyBytes_FromObject(src->keep) : numpy_contiguous(src->keep, fortran);
    if (!packed)
        return -1;
    if (!raw)
        py_end_host(end, packed);
    else {
        *end = (struct py_end){.kind = PY_END_RAW, .keep = Py_NewRef(packed), .nbytes = src->nbytes};
        end->end.host = PyBytes_AsString(packed);
    }
    Py_DECREF(packed);
    return 0;
}

static int transfer_packed(struct py_state *state, struct py_end *dst, const struct py_end *src,
                           size_t nbytes, gg_stream *stream, uint32_t flags)
{
    struct py_end packed;
    int failed;
    if (open_packed(&packed, src, !dst->c))
        return -1;
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

static int receive_array(struct py_state *state, struct py_end *dst, struct py_end *src,
                         size_t nbytes, gg_stream *stream)
{
    struct py_end landing;
    PyObject *array = numpy_empty(dst->dtype, dst->ndim, dst->shape, !src->c);
    int failed;
    if (!array)
        return -1;
    py_end_host(&landing, array);
    failed =
        transfer_direct(state, &landing, src, nbytes, stream, 0) || numpy_assign(dst->keep, array);
    py_end_close(&landing);
    Py_DECREF(array);
    return failed ? -1 : 0;
}

/* Of a copy between two devices: whether the stream is the destination's. */
static bool is_for_dst(const struct py_end *dst, const gg_stream *stream)
{
    return stream && gg_stream_device(stream) == gg_memory_device(dst->end.memory);
}

static bool on_two_devices(const struct py_end *dst, const struct py_end *src)
{
    return gg_memory_device(dst->end.memory) != gg_memory_device(src->end.memory);
}

/* Between device arrays of different order: down, rearranged, up. Of two devices, each end has the stream
 * that it would have in gg_copy. */
static int transfer_reordered(struct py_state *state, struct py_end *dst, struct py_end *src,
                              size_t nbytes, gg_stream *stream)
{
    struct py_end landing;
    PyObject *array = numpy_empty(src->dtype, src->ndim, src->shape, !src->c);
    int failed;
    if (!array)
        return -1;
    py_end_host(&landing, array);
    bool two = on_two_devices(dst, src), for_dst = is_for_dst(dst, stream);
    gg_stream *down = two && for_dst ? NULL : stream, *up = two && !for_dst ? NULL : stream;
    failed = transfer_direct(state, &landing, src, nbytes, down, 0) ||
             transfer_packed(state, dst, &landing, nbytes, up, 0);
    py_end_close(&landing);
    Py_DECREF(array);
    return failed ? -1 : 0;
}

int py_transfer(struct py_state *state, struct py_end *dst, struct py_end *src, size_t nbytes,
                gg_stream *stream, uint32_t flags)
{
    if (!nbytes)
        return 0;
    if ((dst->c && src->c) || (dst->f && src->f))
        return transfer_direct(state, dst, src, nbytes, stream, flags);
    if (!src->end.memory)
        return transfer_packed(state, dst, src, nbytes, stream, flags);
    if (refuse_wait(state, flags))
        return -1;
    if (dst->end.memory)
        return transfer_reordered(state, dst, src, nbytes, stream);
    return dst->kind == PY_END_RAW ? receive_raw(state, dst, src, nbytes, stream)
                                   : receive_array(state, dst, src, nbytes, stream);
}
