/* copy.h: copies between host memory, devices, and two devices. */
#ifndef GG_COPY_H
#define GG_COPY_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/* Source or destination of a copy: @p memory, or ordinary host memory at @p host. */
struct gg_copy_operand {
    gg_memory *memory;            /* NULL: host memory */
    void *host;                   /* first byte of the host memory if memory is NULL */
    size_t offset;                /* in bytes, into either */
    void (*release)(void *owner); /* called once when the copy no longer needs it; may be NULL */
    void *owner;
};

enum gg_copy_flag {
    /* The call may return before the host side is complete (page-locked operands only). */
    GG_COPY_ASYNC = 1,
    GG_COPY_REQUIRE_ASYNC = 2, /* GG_ERR_UNSUPPORTED if the call would have to wait */
    GG_COPY_DST_UNTOUCHED = 4  /* hint: the destination is host memory not written since mmap */
};

/** Copy @p nbytes from @p src to @p dst.
 *  Stream     NULL: the device's current stream, which first waits for unfinished work on either operand.
 *             Given: no implicit synchronization is added.
 *             Between two devices, @p stream may belong to either and replaces that device's current
 *             stream; the other operand is treated as with NULL. If the devices can access each other
 *             (gg_device_can_access) the copy runs on that stream, or on the source's, and is also
 *             ordered on the other device's current stream. Otherwise it passes through the host, on one
 *             stream of each device.
 *  Returns    when the host side is complete (source read, destination written), or, with GG_COPY_ASYNC,
 *             when the copy is queued. A copy between devices through the host returns when it is
 *             complete. Up to 64 KiB from pageable memory are always queued: the bytes are first copied
 *             into gpuglue's own pinned memory.
 *  Ownership  each operand's release is called exactly once, also on failure. Both memories are retained
 *             until the work is complete.
 *  Errors     GG_ERR_INVALID_ARGUMENT: out of bounds, or overlapping; GG_ERR_UNSUPPORTED;
 *             GG_ERR_INTERRUPTED: ended by the wait hook; queued work continues. */
GG_API gg_status gg_copy(const struct gg_copy_operand *dst, const struct gg_copy_operand *src,
                         size_t nbytes, gg_stream *stream, uint32_t flags);

#define GG_COPY_MAX_DIMS 64

/** Copy @p ndim axes of elements of @p itemsize bytes between any two layouts.
 *  Operands   an operand's offset is that of element [0, …, 0]; element [i, j, …] lies
 *             i * strides[0] + j * strides[1] + … bytes after it. Strides are in bytes, of any sign and
 *             order, and need not be multiples of @p itemsize. NULL strides: C-contiguous. A stride of
 *             the source may be 0 (broadcast); elements of the destination must not overlap.
 *  Shape      @p ndim (0 to GG_COPY_MAX_DIMS) counts. ndim 0 is one element; a count of 0 copies nothing.
 *             The three arrays are read before the call returns.
 *  Stream     as for gg_copy; flags too, with one more reason to wait: a layout that the device cannot
 *             copy with a few operations passes through pinned memory and is rearranged by the host. That
 *             applies to pageable memory, and to other memory with short or very many rows. With
 *             GG_COPY_REQUIRE_ASYNC, and during stream capture, such a copy is split into up to 65536
 *             device copies, or refused.
 *  Returns, Ownership  as gg_copy. Up to 64 KiB of pageable source are always queued.
 *  Errors     GG_ERR_INVALID_ARGUMENT: an element out of bounds, a size that overflows, a destination
 *             that overlaps itself or, by its bounds, the source; GG_ERR_UNSUPPORTED;
 *             GG_ERR_INTERRUPTED; errors of the device. */
GG_API gg_status gg_copy_nd(const struct gg_copy_operand *dst, const ptrdiff_t *dst_strides,
                            const struct gg_copy_operand *src, const ptrdiff_t *src_strides,
                            int32_t ndim, const size_t *shape, size_t itemsize, gg_stream *stream,
                            uint32_t flags);

GG_END_DECLS
#endif
