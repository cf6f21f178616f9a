/** @file
 *  Prefetch and advice for managed memory.
 *
 *  @par Ordering
 *  A prefetch is queued on a stream, as a copy is (copy.h). Advice takes effect at once.
 *  @par Threads
 *  Any thread. */
#ifndef GG_MANAGED_H
#define GG_MANAGED_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Migrate managed memory in the order of a stream.
 *
 *  @param memory   managed memory
 *  @param to_host  0: to the memory's device; else to the host
 *  @param stream   as for gg_copy
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  not managed memory
 *  @retval GG_ERR_UNSUPPORTED       the device cannot prefetch */
GG_API gg_status gg_memory_prefetch(gg_memory *memory, int to_host, gg_stream *stream);

/** Hints about the use of managed memory. The location is its device or the host. */
enum gg_advice {
    GG_ADVICE_READ_MOSTLY = 1,       /**< rarely written: the location may keep a copy */
    GG_ADVICE_NOT_READ_MOSTLY,       /**< undoes GG_ADVICE_READ_MOSTLY */
    GG_ADVICE_PREFERRED_LOCATION,    /**< should stay at the location */
    GG_ADVICE_NO_PREFERRED_LOCATION, /**< undoes GG_ADVICE_PREFERRED_LOCATION */
    GG_ADVICE_ACCESSED_BY,     /**< the location should be able to access it without a fault */
    GG_ADVICE_NOT_ACCESSED_BY, /**< undoes GG_ADVICE_ACCESSED_BY */
    /** Only the end of a kernel makes its writes visible to others, which is faster. hip only; no effect elsewhere. */
    GG_ADVICE_COARSE_GRAINED,
    GG_ADVICE_NOT_COARSE_GRAINED /**< undoes GG_ADVICE_COARSE_GRAINED */
};

/** Advise the driver how managed memory will be used.
 *
 *  @param memory    managed memory
 *  @param advice    a hint
 *  @param for_host  0: used by the memory's device; else by the host
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  not managed memory
 *  @retval GG_ERR_UNSUPPORTED       the device takes no advice */
GG_API gg_status gg_memory_advise(gg_memory *memory, enum gg_advice advice, int for_host);

GG_END_DECLS
#endif
