/* sized.h: structs that begin with their size: see the top of gpuglue.h. */
#ifndef GPUGLUE_SIZED_H
#define GPUGLUE_SIZED_H

#include <gpuglue/gpuglue.h>

#include <stdbool.h>

/* Of a struct that the caller gave: whether it has what the first version had. */
static inline bool ggi_sized_fits(const void *theirs, size_t first)
{
    return *(const uint32_t *)theirs >= first;
}
/* Write as much of @p full (@p size bytes) as the caller's struct has room for, and say there how much
 * that is. The caller's fits. */
void ggi_sized_write(void *theirs, const void *full, size_t size);
/* The error of @p call for a @p type that does not fit. */
gg_status ggi_sized_refuse(const char *call, const char *type, const void *theirs, size_t first);

#endif
