/* allocator.h: the user's allocator. */
#ifndef GPUGLUE_ALLOCATOR_H
#define GPUGLUE_ALLOCATOR_H

#include "place.h"

/* nbytes > 0 bytes from state->allocator, which is set; NULL with an exception. */
gg_memory *py_allocator_alloc(struct py_state *state, const struct py_place *place, size_t nbytes);

#endif
