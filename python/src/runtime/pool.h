/* pool.h: Pool, and the memory of a device. */
#ifndef GPUGLUE_PY_POOL_H
#define GPUGLUE_PY_POOL_H

#include "base/arguments.h"

int py_pool_add(PyObject *module, struct py_state *state); /* Pool, trim */
PyObject *py_pool_wrap(struct py_state *state, gg_device *device, enum gg_memory_kind kind);
PyObject *py_device_memory_info(PyObject *self, PyObject *unused);

#endif
