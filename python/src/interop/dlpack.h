/* dlpack.h: DLPack tensors of GPUArrays, and GPUArrays of tensors. */
#ifndef GPUGLUE_PY_DLPACK_H
#define GPUGLUE_PY_DLPACK_H

#include "array/array.h"
#include "interop/backend_traits.h"

#define DL_NAME "dltensor"
#define DL_NAME_USED "used_dltensor"
#define DL_NAME_VERSIONED "dltensor_versioned"
#define DL_NAME_VERSIONED_USED "used_dltensor_versioned"
#define DL_EXCHANGE_NAME "dlpack_exchange_api"

/* ---- dlpack_dtype.c ---- */

/* -1 with a BufferError for a dtype that DLPack cannot describe. */
int py_dl_from_numpy(PyObject *dtype, DLDataType *out);
/* A new reference; BufferError for a type that NumPy cannot describe. */
PyObject *py_dl_to_numpy(DLDataType dtype);

/* ---- dlpack_tensor.c ---- */

/* A tensor over an array's memory, which the consumer uses on @p stream; NULL: on unknown streams. NULL with an
 * exception. */
DLManagedTensorVersioned *py_dl_export(const struct py_array *array, DLDevice device,
                                       gg_stream *stream, bool copied);
PyObject *py_dl_capsule(const struct py_array *array, DLDevice device, gg_stream *stream,
                        bool versioned, bool copied);
/* A tensor in C order over @p memory, which it takes over; NULL, without an exception, when out of memory. */
DLManagedTensorVersioned *py_dl_wrap_memory(gg_memory *memory, const DLTensor *like);

/* ---- dlpack_import.c ---- */

/* from_dlpack, on the producer's own device, without a copy. The producer makes @p stream wait; NULL: the current
 * one. */
PyObject *py_from_dlpack(struct py_state *state, PyObject *object, gg_stream *stream);
/* An array over a tensor, which is taken over in any case; *device is its device. */
PyObject *py_dl_import(struct py_state *state, DLManagedTensorVersioned *managed,
                       gg_device **device);

/* ---- dlpack_exchange.c ---- */

int py_exchange_add(struct py_state *state); /* GPUArray.__dlpack_c_exchange_api__ */
/* Through the exchange table of the object's type: 1 with an array in @p out, 0 without such a table, -1. */
int py_from_exchange(struct py_state *state, PyObject *object, PyObject **out);

/* ---- dlpack_export.c ---- */

PY_FASTCALL(py_array_dlpack);
PyObject *py_array_dlpack_device(PyObject *self, PyObject *unused);

#endif
