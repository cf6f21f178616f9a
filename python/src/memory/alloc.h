/* alloc.h: alloc(), alloc_pinned() and their like. */
#ifndef GPUGLUE_PY_ALLOC_H
#define GPUGLUE_PY_ALLOC_H

#include "numpy/layout.h"

extern PyMethodDef py_alloc_functions[];
/* An uninitialised ndarray in pinned memory of @p device; *out is its block, borrowed. */
PyObject *py_pinned_array(struct py_state *state, gg_device *device, const struct py_layout *layout,
                          gg_memory **out);

#endif
