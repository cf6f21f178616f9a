/* sized.h: structs that begin with their size, for callers built with an older or newer header. */
#ifndef GPUGLUE_SIZED_H
#define GPUGLUE_SIZED_H

#include <gpuglue/gpuglue.h>

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The size of a struct whose last member is @p member: that of the version which added it. */
#define GGI_SIZE_TO(type, member) (offsetof(type, member) + sizeof((type *)0)->member)

/* Whether the caller's struct has at least the size of the first version. */
static inline bool ggi_sized_fits(const void *theirs, size_t first)
{
    return *(const uint32_t *)theirs >= first;
}
/* Copy as much of @p full (@p size bytes) as fits the caller's struct, and set its struct_size to that. */
static inline void ggi_sized_write(void *theirs, const void *full, size_t size)
{
    uint32_t *room = (uint32_t *)theirs;
    if (size > *room)
        size = *room;
    memcpy(theirs, full, size);
    *room = (uint32_t)size;
}
/* The error of @p call for a @p type that is too small. */
gg_status ggi_sized_refuse(const char *call, const char *type, const void *theirs, size_t first);

#endif
