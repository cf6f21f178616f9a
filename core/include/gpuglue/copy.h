/** @file
 *  Copies between host memory, a device, and two devices.
 *
 *  @par Ordering
 *  With stream NULL a copy is queued on the current stream of its device, which first waits for unfinished work on either
 *  operand. With a stream, no implicit synchronization is added: the caller is responsible for the order.
 *
 *  A copy between two devices accepts a stream of either device. That stream replaces the device's current stream; the
 *  other operand is treated as with NULL. If the devices can access each other (gg_device_can_access), the copy runs on
 *  the given stream, else on the source's current stream, and is also ordered on the other device's current stream. If
 *  they cannot, the copy passes through the host, on one stream of each device.
 *  @par Threads
 *  Any thread. Two copies to the same bytes without an order between them are a data race, on the host and on the
 *  device. */
#ifndef GG_COPY_H
#define GG_COPY_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Source or destination of a copy: gpuglue's memory, or ordinary host memory. */
struct gg_copy_operand {
    gg_memory *memory; /**< NULL: host memory */
    void *host;        /**< first byte of the host memory if memory is NULL */
    size_t offset;     /**< in bytes, into either */
    /** Called once with the owner when the copy no longer needs the operand, also if the call fails. May be NULL. */
    void (*release)(void *owner);
    void *owner; /**< passed to release */
};

/** How a copy is made. */
enum gg_copy_flag {
    /** The call may return before the host side is complete (pinned operands only). */
    GG_COPY_ASYNC = 1,
    GG_COPY_REQUIRE_ASYNC =
        2, /**< GG_ERR_UNSUPPORTED if the call might wait: pageable memory above 64 KiB */
    GG_COPY_DST_UNTOUCHED = 4 /**< hint: the destination is host memory, not written since mmap */
};

/** Copy contiguous bytes.
 *
 *  Returns when the host side is complete (source read, destination written) or, with GG_COPY_ASYNC, when the copy is
 *  queued. A copy between devices through the host returns when it is complete. Up to 64 KiB from pageable memory are
 *  always queued, and up to 128 KiB may be: the bytes are first copied into gpuglue's own pinned memory.
 *
 *  Both memories are retained until the work is complete. Each operand's release is called exactly once, also on failure.
 *
 *  @param dst     where to write
 *  @param src     what to read; must not overlap the destination
 *  @param nbytes  bytes to copy; 0 copies nothing
 *  @param stream  see Ordering; NULL: the device's current stream, after unfinished work on the operands
 *  @param flags   of enum gg_copy_flag, or 0
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  out of bounds, or overlapping
 *  @retval GG_ERR_UNSUPPORTED       GG_COPY_REQUIRE_ASYNC, and the call would have to wait
 *  @retval GG_ERR_INTERRUPTED       ended by the wait hook; queued work continues */
GG_API gg_status gg_copy(const struct gg_copy_operand *dst, const struct gg_copy_operand *src,
                         size_t nbytes, gg_stream *stream, uint32_t flags);

/** Largest number of axes of gg_copy_nd and gg_fill_nd. */
#define GG_COPY_MAX_DIMS 64

/** Copy elements between any two layouts.
 *
 *  An operand's offset is that of element [0, …, 0]; element [i, j, …] lies i * strides[0] + j * strides[1] + … bytes after
 *  it. Strides have any sign and order, and need not be multiples of the itemsize. A stride of the source may be 0
 *  (broadcast); elements of the destination must not overlap. The three arrays are read before the call returns.
 *
 *  Ordering, ownership and the time of return are those of gg_copy, with one more reason to wait: a layout that the device
 *  cannot copy with a few operations passes through pinned memory and is rearranged by the host. That applies to pageable
 *  memory, and to other memory with short or very many rows. With GG_COPY_REQUIRE_ASYNC, and during stream capture, such
 *  a copy is split into up to 65536 device copies, or refused.
 *
 *  @param dst          where to write
 *  @param dst_strides  @p ndim numbers of bytes; NULL: C-contiguous
 *  @param src          what to read
 *  @param src_strides  @p ndim numbers of bytes; NULL: C-contiguous
 *  @param ndim         number of axes, 0 to GG_COPY_MAX_DIMS; 0 is one element
 *  @param shape        @p ndim counts of elements; a count of 0 copies nothing
 *  @param itemsize     bytes of an element
 *  @param stream       as for gg_copy
 *  @param flags        of enum gg_copy_flag, or 0
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  an element out of bounds, a size that overflows, a destination that overlaps itself
 *                                   or, by its bounds, the source
 *  @retval GG_ERR_UNSUPPORTED       the copy cannot be made without waiting
 *  @retval GG_ERR_INTERRUPTED       ended by the wait hook; queued work continues */
GG_API gg_status gg_copy_nd(const struct gg_copy_operand *dst, const ptrdiff_t *dst_strides,
                            const struct gg_copy_operand *src, const ptrdiff_t *src_strides,
                            int32_t ndim, const size_t *shape, size_t itemsize, gg_stream *stream,
                            uint32_t flags);

GG_END_DECLS
#endif
