/* managed.h: prefetch and advice for managed memory. */
#ifndef GG_MANAGED_H
#define GG_MANAGED_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Migrate managed memory to its device, or to the host if @p to_host is nonzero, in the order of
 *  @p stream (as for gg_copy).
 *  Errors  GG_ERR_INVALID_ARGUMENT: not managed memory; GG_ERR_UNSUPPORTED. */
GG_API gg_status gg_memory_prefetch(gg_memory *memory, int to_host, gg_stream *stream);

/* Hints about the use of managed memory. The location is its device or the host. */
enum gg_advice {
    GG_ADVICE_READ_MOSTLY = 1,
    GG_ADVICE_NOT_READ_MOSTLY,
    GG_ADVICE_PREFERRED_LOCATION,
    GG_ADVICE_NO_PREFERRED_LOCATION,
    GG_ADVICE_ACCESSED_BY,
    GG_ADVICE_NOT_ACCESSED_BY
};

/** Advise the driver how managed memory will be used, by its device or, if @p for_host is nonzero, by the
 *  host. Errors as gg_memory_prefetch. */
GG_API gg_status gg_memory_advise(gg_memory *memory, enum gg_advice advice, int for_host);

GG_END_DECLS
#endif
