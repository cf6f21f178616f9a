/** @file
 *  Fills: the same bytes, written many times.
 *
 *  @par Ordering
 *  With stream NULL a fill is queued on the device's current stream, after unfinished work on the memory. With a stream,
 *  no implicit synchronization is added.
 *  @par Threads
 *  Any thread. */
#ifndef GG_FILL_H
#define GG_FILL_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Write copies of a pattern, one after the other.
 *
 *  @param memory        is retained until the work is complete
 *  @param offset        of the first copy, in bytes
 *  @param pattern       read before the call returns
 *  @param pattern_size  bytes of the pattern, 1 to 65536
 *  @param count         copies to write; 0 writes nothing
 *  @param stream        NULL: the current stream, after unfinished work on the memory
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  out of bounds, or a pattern of another size */
GG_API gg_status gg_fill(gg_memory *memory, size_t offset, const void *pattern, size_t pattern_size,
                         size_t count, gg_stream *stream);

/** Fill each element of a strided region. The device writes the elements. In pinned memory, and for a layout that takes too
 *  many device operations, the host writes them.
 *
 *  @param memory        is retained until the work is complete
 *  @param offset        of element [0, …, 0], in bytes
 *  @param strides       @p ndim numbers of bytes, as of the destination of gg_copy_nd; NULL: C-contiguous
 *  @param ndim          number of axes, 0 to GG_COPY_MAX_DIMS
 *  @param shape         @p ndim counts of elements
 *  @param pattern       read before the call returns
 *  @param pattern_size  bytes of the pattern and of an element
 *  @param stream        NULL: the current stream, after unfinished work on the memory
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  an element out of bounds, elements that overlap, or a pattern of another size
 *  @retval GG_ERR_INTERRUPTED       ended by the wait hook; queued work continues */
GG_API gg_status gg_fill_nd(gg_memory *memory, size_t offset, const ptrdiff_t *strides,
                            int32_t ndim, const size_t *shape, const void *pattern,
                            size_t pattern_size, gg_stream *stream);

GG_END_DECLS
#endif
