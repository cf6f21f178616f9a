/* backend_traits.h: how DLPack and the CUDA Array Interface name each backend's devices and streams. */
#ifndef GPUGLUE_PY_BACKEND_TRAITS_H
#define GPUGLUE_PY_BACKEND_TRAITS_H

#include "base/py.h"
#include <dlpack/dlpack.h>

struct py_backend_traits {
    const char *backend;
    DLDeviceType device, pinned, managed; /* of each kind of memory */
    bool has_ordinals;                    /* the device id is the ordinal; else it is 0 */
    bool has_streams;                     /* streams are passed as numbers */
    bool cuda_like;                       /* has the CUDA Array Interface */
    bool null_is_one; /* 1 is the default stream, 2 the per-thread one, and 0 is not valid */
    /* The device id is a position among all devices of SYCL, which the backend does not know: an address determines the
     * device of a tensor. */
    bool sycl_numbers;
};
/* NULL for a backend that no protocol knows. */
const struct py_backend_traits *py_traits_of(const gg_device *device);
const struct py_backend_traits *py_traits_or_error(const gg_device *device); /* BufferError */
/* The backend and the kind of memory of a DLPack device type, or NULL. Ordinary memory belongs to the host backend. */
const struct py_backend_traits *py_traits_of_type(DLDeviceType type, enum gg_memory_kind *kind);
/* The device of a DLPack device, and the kind of memory that its type names. BufferError and -1 if there is no
 * such device. */
int py_dl_device_find(struct py_state *state, DLDevice device, gg_device **out,
                      enum gg_memory_kind *kind);
/* The same for a tensor with elements at @p data; NULL: none. */
int py_dl_tensor_device(struct py_state *state, DLDevice device, const void *data, gg_device **out,
                        enum gg_memory_kind *kind);
DLDevice py_dl_device_of(const struct py_backend_traits *traits, const gg_memory *memory);
bool py_dl_is_host_type(DLDeviceType type); /* memory that the host reaches */

#endif
