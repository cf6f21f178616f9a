/* copies.h: the part of gpuglue.h about copies, fills and the memory of results. Include that. */
#ifndef GPUGLUE_COPIES_H
#define GPUGLUE_COPIES_H

#include <gpuglue/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- memory for results ---------------------------------------------------------------------- */

/** Host memory of the calling process's own (a forked child has a copy of it) for copies from @p device,
 *  at least @p nbytes, aligned to 2 MiB. What was freed is given out again: its pages are there, and from
 *  its second use on they are locked for the device, where it can do that. *fresh says that the pages are
 *  not there yet: pass GG_COPY_FRESH to the copy that fills it. At most 1 GiB of freed memory is kept
 *  (GPUGLUE_RESULT_CACHE, in MiB); gg_device_trim gives it back. May call the driver.
 *  Errors  GG_ERR_OUT_OF_MEMORY. */
GG_API gg_status gg_result_alloc(gg_device *device, size_t nbytes, void **out, int32_t *fresh);

/** As realloc, for a result: also in a forked child and after the end, where nothing is locked.
 *  Errors  GG_ERR_OUT_OF_MEMORY; the old one is as it was. */
GG_API gg_status gg_result_resize(void *result, size_t nbytes, void **out);

/** Give it back: from any thread, never waits, calls no driver. NULL is nothing. */
GG_API void gg_result_free(void *result);

GG_API gg_device *gg_result_device(const void *result);

/** How many bytes it has, at least those that were asked for. */
GG_API size_t gg_result_size(const void *result);

/* ---- copies and fills ------------------------------------------------------------------------ */

/* One end of a copy: @p memory (device or pinned), or ordinary host memory at @p host. */
struct gg_end {
    gg_memory *memory;            /* NULL: host memory */
    void *host;                   /* the block's first byte, where memory is NULL */
    size_t offset;                /* bytes into either */
    void (*release)(void *owner); /* called once when the copy needs the end no more; may be NULL */
    void *owner;
};

enum gg_copy_flag {
    GG_COPY_ASYNC = 1, /* may return before the host side is finished (page-locked ends only) */
    GG_COPY_REQUIRE_ASYNC = 2, /* refuse (GG_ERR_UNSUPPORTED) where the call would have to wait */
    GG_COPY_FRESH = 4 /* a hint: the destination is host memory that nobody has written to yet */
};

/** Copy @p nbytes from @p src to @p dst.
 *  Stream     NULL: the current stream of the device, made to wait first for unfinished gpuglue work
 *             on either end. Given: nothing is inserted.
 *             Between two devices @p stream may be of either and then stands for that device's current
 *             one; the other end is as with NULL. Where they reach each other (gg_device_can_access) the
 *             copy runs on that stream, or on the source's, and takes its place among the other device's
 *             current one as well; else it goes through the host, on a stream of each.
 *  Returns    when the host side is finished (source read, destination written), or with
 *             GG_COPY_ASYNC when queued; through the host always when all is finished. Up to
 *             64 KiB from pageable memory is queued in any case: its bytes were copied into pinned
 *             memory of ours.
 *  Ownership  each end's release is called exactly once, also on failure; both memories are kept
 *             until the work has run.
 *  Errors     GG_ERR_INVALID_ARGUMENT (past an end, overlapping), GG_ERR_UNSUPPORTED,
 *             GG_ERR_INTERRUPTED (the wait hook said so; queued work goes on). */
GG_API gg_status gg_copy(const struct gg_end *dst, const struct gg_end *src, size_t nbytes,
                         gg_stream *stream, uint32_t flags);

/** Copy @p ndim axes of elements of @p itemsize bytes between any two layouts.
 *  Ends       an end's offset is that of element [0, …, 0]; element [i, j, …] lies i * strides[0] +
 *             j * strides[1] + … bytes behind it. Strides are in bytes, of any sign and order, and need
 *             not be multiples of @p itemsize. NULL strides: C-contiguous. A source's stride may be 0
 *             (one value for the whole axis); no two elements of a destination may overlap.
 *  Shape      @p ndim (0 to GG_COPY_MAX_DIMS) counts; with ndim 0 one element; with a count of 0 nothing
 *             is done. All three arrays are read before the call returns.
 *  Stream     as for gg_copy. flags too, with one more reason to wait: what no few of the device's own
 *             copies can do goes through pinned memory of gpuglue's, rearranged by the host. That is so
 *             for pageable memory, and for any other where each row is short or there are very many.
 *             With GG_COPY_REQUIRE_ASYNC, and on a stream that is being captured, such a copy is made of
 *             many small ones, up to 65536, or refused.
 *  Returns, Ownership  as gg_copy. Up to 64 KiB of pageable source is queued in any case.
 *  Errors     GG_ERR_INVALID_ARGUMENT (an element outside its memory, a size that overflows, a
 *             destination that overlaps itself or, by its bounds, the source), GG_ERR_UNSUPPORTED,
 *             GG_ERR_INTERRUPTED, and those of the device. */
#define GG_COPY_MAX_DIMS 64
GG_API gg_status gg_copy_nd(const struct gg_end *dst, const ptrdiff_t *dst_strides,
                            const struct gg_end *src, const ptrdiff_t *src_strides, int32_t ndim,
                            const size_t *shape, size_t itemsize, gg_stream *stream, uint32_t flags);

/** Write @p count copies of the @p pattern_size bytes (1 to 65536) at @p pattern, from @p offset on.
 *  The pattern is read before the call returns. Stream as for gg_copy. */
GG_API gg_status gg_fill(gg_memory *memory, size_t offset, const void *pattern, size_t pattern_size,
                         size_t count, gg_stream *stream);

/** The same for each element of an area: @p pattern_size bytes each, laid out as a destination of
 *  gg_copy_nd, by calls of the device's own.
 *  Errors  as gg_copy_nd and gg_fill. */
GG_API gg_status gg_fill_nd(gg_memory *memory, size_t offset, const ptrdiff_t *strides,
                            int32_t ndim, const size_t *shape, const void *pattern,
                            size_t pattern_size, gg_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
