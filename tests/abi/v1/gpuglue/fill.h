/* fill.h: fills. */
#ifndef GG_FILL_H
#define GG_FILL_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Write @p count copies of the @p pattern_size bytes (1 to 65536) at @p pattern, starting @p offset
 *  bytes into @p memory. The pattern is read before the call returns. Stream as for gg_copy. */
GG_API gg_status gg_fill(gg_memory *memory, size_t offset, const void *pattern, size_t pattern_size,
                         size_t count, gg_stream *stream);

/** Fill each element of a strided region: @p pattern_size bytes each, laid out as the destination of
 *  gg_copy_nd. The device writes the elements. In pinned memory, and for a layout that takes too many
 *  device operations, the host writes them.
 *  Errors  as gg_copy_nd and gg_fill. */
GG_API gg_status gg_fill_nd(gg_memory *memory, size_t offset, const ptrdiff_t *strides,
                            int32_t ndim, const size_t *shape, const void *pattern,
                            size_t pattern_size, gg_stream *stream);

GG_END_DECLS
#endif
