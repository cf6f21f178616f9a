/* alloc_target.h: where to allocate or run a copy: device= and stream= arguments. */
#ifndef GPUGLUE_PY_ALLOC_TARGET_H
#define GPUGLUE_PY_ALLOC_TARGET_H

#include "base/py.h"

struct py_alloc_target {
    gg_device *device;
    gg_stream *stream;         /* a reference unless the next is set; or NULL: the current one */
    struct py_stream *counted; /* a Stream that is busy until the target is closed; or NULL */
};

/* From device= and stream= together: without a device, a stream brings its own. The caller holds both until the target is
 * closed. -1 with an exception. */
int py_alloc_target_open(struct py_state *state, PyObject *device, PyObject *stream,
                         struct py_alloc_target *target);
void py_alloc_target_close(struct py_alloc_target *target);

/* Allocate: from the pool with the GIL held, which is faster than releasing it, else without it. NULL with an
 * exception. */
gg_memory *py_alloc_target_alloc(struct py_state *state, const struct py_alloc_target *target,
                                 enum gg_memory_kind kind, size_t nbytes);

#endif
