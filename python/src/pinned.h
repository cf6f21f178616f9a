/* pinned.h: NumPy arrays in page-locked memory; alloc.c. */
#ifndef GPUGLUE_PINNED_H
#define GPUGLUE_PINNED_H

#include "layout.h"

/* An uninitialised ndarray in page-locked memory of @p device; @p out gets its block, borrowed. */
PyObject *py_pinned_array(struct py_state *state, gg_device *device, const struct py_layout *layout,
                          gg_memory **out);

#endif
