/* transfer.c: copies between two operands that match, by gg_copy and gg_copy_nd.
 *
 * Packed here is only a non-contiguous host buffer copied to or from a Buffer, which has no strides. */
#include "copy/transfer.h"
#include "base/errors.h"
#include "base/owners.h"
#include "numpy/bridge.h"
#include "runtime/device.h"
#include "runtime/stream.h"

#include <stdlib.h>

/* A copy may outlive the call: an asynchronous one, one in a graph, one whose wait was interrupted. So the core gets
 * a reference to the host operand; mostly it releases it before it returns. */
static void operand_add_owner(struct py_operand *operand)
{
    if (!operand->keep)
        return;
    operand->native.owner = Py_NewRef(operand->keep);
    operand->native.release = py_owner_release;
}

static void transfer_begin(struct py_release_scope *scope)
{
    py_owners_drain();
    py_release_scope_begin(scope);
}

static int transfer_end(struct py_state *state, struct py_release_scope *scope, gg_status status)
{
    int failed = py_check(state, status);
    py_release_scope_end(scope);
    return failed;
}

/* A read that waited for its stream raises the errors of the callbacks there, when all has been read. */
static int transfer_raise(struct py_state *state, const struct gg_copy_operand *dst,
                          const struct gg_copy_operand *src, gg_stream *stream, uint32_t flags)
{
    if (!py_callbacks_failed(state) || !src->memory ||
        flags & (GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC) ||
        (dst->memory && gg_memory_get_kind(dst->memory) != GG_MEMORY_PINNED))
        return 0;
    if (stream)
        return py_callbacks_raise_on(state, stream);
    if (py_stream_current(state, gg_memory_device(src->memory), &stream))
        return -1;
    const int failed = py_callbacks_raise_on(state, stream);
    gg_stream_release(stream);
    return failed;
}

/* Both operands have their owners. */
static int transfer_line(struct py_state *state, const struct gg_copy_operand *dst,
                         const struct gg_copy_operand *src, size_t nbytes, gg_stream *stream,
                         uint32_t flags)
{
    struct py_release_scope scope;
    gg_status status;
    transfer_begin(&scope);
    PY_WITHOUT_GIL(status = gg_copy(dst, src, nbytes, stream, flags));
    return transfer_end(state, &scope, status);
}

static int transfer_linear(struct py_state *state, struct py_operand *dst, struct py_operand *src,
                           size_t nbytes, gg_stream *stream, uint32_t flags)
{
    operand_add_owner(dst);
    operand_add_owner(src);
    return transfer_line(state, &dst->native, &src->native, nbytes, stream, flags);
}

/* Needs no operands with shapes, which most small copies would spend more on than on all else. */
int py_transfer_up(struct py_state *state, const struct py_array *array, PyObject *keep, void *host,
                   gg_stream *stream)
{
    if (!array->nbytes)
        return 0;
    const struct gg_copy_operand dst = {.memory = array->memory, .offset = array->offset};
    const struct gg_copy_operand src = {
        .host = host, .owner = Py_NewRef(keep), .release = py_owner_release};
    return transfer_line(state, &dst, &src, array->nbytes, stream, 0);
}

int py_transfer_down(struct py_state *state, const struct py_array *array, PyObject *keep,
                     void *host, gg_stream *stream, uint32_t flags)
{
    if (!array->nbytes)
        return 0;
    const struct gg_copy_operand src = {.memory = array->memory, .offset = array->offset};
    const struct gg_copy_operand dst = {
        .host = host, .owner = Py_NewRef(keep), .release = py_owner_release};
    return transfer_line(state, &dst, &src, array->nbytes, stream, flags)
               ? -1
               : transfer_raise(state, &dst, &src, stream, flags);
}

static int transfer_nd(struct py_state *state, struct py_operand *dst, const Py_ssize_t *dst_strides,
                       struct py_operand *src, const Py_ssize_t *src_strides, int ndim,
                       const size_t *shape, size_t itemsize, gg_stream *stream, uint32_t flags)
{
    struct py_release_scope scope;
    gg_status status;
    operand_add_owner(dst);
    operand_add_owner(src);
    transfer_begin(&scope);
    PY_WITHOUT_GIL(status = gg_copy_nd(&dst->native, dst_strides, &src->native, src_strides, ndim,
                                       shape, itemsize, stream, flags));
    return transfer_end(state, &scope, status);
}

int py_transfer_region(struct py_state *state, struct py_operand *dst, const Py_ssize_t *dst_strides,
                       struct py_operand *src, const Py_ssize_t *src_strides, int ndim,
                       const size_t *shape, gg_stream *stream, uint32_t flags)
{
    return transfer_nd(state, dst, dst_strides, src, src_strides, ndim, shape, 1, stream, flags)
               ? -1
               : transfer_raise(state, &dst->native, &src->native, stream, flags);
}

/* Copied to or from an array, a Buffer is an array in C order: it has no strides. */
static int transfer_strided(struct py_state *state, struct py_operand *dst, struct py_operand *src,
                            gg_stream *stream, uint32_t flags)
{
    const struct py_operand *array = dst->shape ? dst : src;
    return transfer_nd(state, dst, dst->strides, src, src->strides, array->ndim,
                       (const size_t *)(const void *)array->shape, (size_t)array->itemsize, stream,
                       flags);
}

static int transfer_check_async(struct py_state *state, uint32_t flags)
{
    if (!(flags & GG_COPY_REQUIRE_ASYNC))
        return 0;
    return PY_FAIL(state->unsupported,
                   "this copy cannot be asynchronous: the memory layouts of source and destination "
                   "differ, so it needs a copy on the host");
}

/* From a non-contiguous host buffer to a Buffer: its bytes in C order. */
static int transfer_from_host_buffer(struct py_state *state, struct py_operand *dst,
                                     const struct py_operand *src, size_t nbytes, gg_stream *stream,
                                     uint32_t flags)
{
    struct py_operand packed = {.kind = PY_OPERAND_HOST_BUFFER, .nbytes = nbytes};
    int failed;
    packed.keep = PyBytes_FromObject(src->keep);
    if (!packed.keep)
        return -1;
    packed.native.host = PyBytes_AsString(packed.keep);
    failed = transfer_linear(state, dst, &packed, nbytes, stream, flags);
    py_operand_close(&packed);
    return failed;
}

static int buffer_scatter(PyObject *memoryview, const void *bytes, size_t nbytes)
{
    Py_buffer view;
    int failed;
    if (PyObject_GetBuffer(memoryview, &view, PyBUF_STRIDED))
        return -1;
    failed = PyBuffer_FromContiguous(&view, bytes, (Py_ssize_t)nbytes, 'C');
    PyBuffer_Release(&view);
    return failed;
}

static int transfer_to_host_buffer(struct py_state *state, const struct py_operand *dst,
                                   struct py_operand *src, size_t nbytes, gg_stream *stream)
{
    struct py_operand packed = {.kind = PY_OPERAND_HOST_BUFFER, .nbytes = nbytes};
    int failed;
    packed.keep = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)nbytes);
    if (!packed.keep)
        return -1;
    packed.native.host = PyBytes_AsString(packed.keep);
    failed = transfer_linear(state, &packed, src, nbytes, stream, 0) ||
             buffer_scatter(dst->keep, packed.native.host, nbytes);
    py_operand_close(&packed);
    return failed ? -1 : 0;
}

/* Only the bytes that belong to fields: the others may be of fields that the view leaves out. */
static int transfer_fields(struct py_state *state, const struct py_operand *dst,
                           const struct py_operand *src, const struct numpy_run *runs, int count,
                           gg_stream *stream, uint32_t flags)
{
    const size_t *shape = (const size_t *)(const void *)dst->shape;
    for (int i = 0; i < count; i++) {
        struct py_operand to = *dst, from = *src;
        to.native.offset += (size_t)runs[i].first;
        from.native.offset += (size_t)runs[i].first;
        if (transfer_nd(state, &to, dst->strides, &from, src->strides, dst->ndim, shape,
                        (size_t)runs[i].count, stream, flags))
            return -1;
    }
    return 0;
}

static int transfer_whole(struct py_state *state, struct py_operand *dst, struct py_operand *src,
                          size_t nbytes, gg_stream *stream, uint32_t flags)
{
    if ((dst->c && src->c) || (dst->f && src->f))
        return transfer_linear(state, dst, src, nbytes, stream, flags);
    if (src->kind == PY_OPERAND_HOST_BUFFER)
        return transfer_from_host_buffer(state, dst, src, nbytes, stream, flags);
    if (dst->kind == PY_OPERAND_HOST_BUFFER)
        return transfer_check_async(state, flags)
                   ? -1
                   : transfer_to_host_buffer(state, dst, src, nbytes, stream);
    return transfer_strided(state, dst, src, stream, flags);
}

int py_transfer(struct py_state *state, struct py_operand *dst, struct py_operand *src,
                size_t nbytes, gg_stream *stream, uint32_t flags)
{
    struct numpy_run *runs = NULL;
    int failed, count = 0;
    if (!nbytes)
        return 0;
    if (dst->view && dst->dtype && src->dtype && numpy_field_runs(dst->dtype, &runs, &count))
        return -1;
    failed = runs ? transfer_fields(state, dst, src, runs, count, stream, flags)
                  : transfer_whole(state, dst, src, nbytes, stream, flags);
    free(runs);
    return failed ? -1 : transfer_raise(state, &dst->native, &src->native, stream, flags);
}

int py_transfer_and_close(struct py_state *state, struct py_operand *dst, struct py_operand *src,
                          size_t nbytes, gg_stream *stream, uint32_t flags)
{
    int failed = py_transfer(state, dst, src, nbytes, stream, flags);
    py_operands_close(dst, src);
    return failed;
}

int py_transfer_matching(struct py_state *state, struct py_operand *dst, struct py_operand *src,
                         gg_stream *stream, uint32_t flags)
{
    size_t nbytes = 0;
    int failed = py_operands_match(state, dst, src, &nbytes) ||
                 py_transfer(state, dst, src, nbytes, stream, flags);
    py_operands_close(dst, src);
    return failed ? -1 : 0;
}
