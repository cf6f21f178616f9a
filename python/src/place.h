/* place.h: where something is allocated or a copy runs: device= and stream= arguments. */
#ifndef GPUGLUE_PLACE_H
#define GPUGLUE_PLACE_H

#include "py.h"

struct py_place {
    gg_device *device;
    gg_stream *stream; /* a reference, or NULL: the current one */
};

/* device= and stream= together: without a device a stream brings its own. -1 with an exception. */
int py_place_open(struct py_state *state, PyObject *device, PyObject *stream,
                  struct py_place *place);
void py_place_close(struct py_place *place);

/* Allocate: from the pool with the GIL held, which is faster than letting it go, else without; NULL with
 * an exception. */
gg_memory *py_place_alloc(struct py_state *state, const struct py_place *place,
                          enum gg_memory_kind kind, size_t nbytes);

#endif
