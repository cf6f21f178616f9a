/* allocator.h: the user's allocator, set_allocator(). */
#ifndef GPUGLUE_PY_ALLOCATOR_H
#define GPUGLUE_PY_ALLOCATOR_H

#include "memory/alloc_target.h"

extern PyMethodDef py_allocator_functions[];
/* nbytes > 0 bytes from state->allocator, which is set; NULL with an exception. */
gg_memory *py_allocator_alloc(struct py_state *state, const struct py_alloc_target *target,
                              size_t nbytes);

#endif
