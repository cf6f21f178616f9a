/* sized.c: structs of callers that were compiled with an older or a newer header. */
#include "sized.h"
#include "internal.h"

#include <string.h>

void ggi_sized_write(void *theirs, const void *full, size_t size)
{
    uint32_t *room = theirs;
    if (size > *room)
        size = *room;
    memcpy(theirs, full, size);
    *room = (uint32_t)size;
}

gg_status ggi_sized_refuse(const char *call, const char *type, const void *theirs, size_t first)
{
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s: struct_size is %u, expected at least %zu: set it to sizeof(struct %s)",
                    call, (unsigned)*(const uint32_t *)theirs, first, type);
}
