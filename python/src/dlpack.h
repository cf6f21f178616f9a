/* dlpack.h: DLPack 1.3 as far as it is used, declared by ourselves, and what our files about it share. */
#ifndef GPUGLUE_PY_DLPACK_H
#define GPUGLUE_PY_DLPACK_H

#include "py.h"

enum { DL_MAJOR = 1, DL_MINOR = 3 };

/* Device types. */
enum dl_device_type {
    DL_CPU = 1,
    DL_CUDA = 2,
    DL_CUDA_HOST = 3,
    DL_ROCM = 10,
    DL_ROCM_HOST = 11,
    DL_CUDA_MANAGED = 13,
    DL_ONE_API = 14
};

/* Codes of element types. From 7 on the floats of less than 16 bits. */
enum dl_code {
    DL_INT = 0,
    DL_UINT = 1,
    DL_FLOAT = 2,
    DL_BFLOAT = 4,
    DL_COMPLEX = 5,
    DL_BOOL = 6,
    DL_FLOAT8_FIRST = 7,
    DL_FLOAT8_LAST = 14
};

enum dl_flag { DL_READ_ONLY = 1, DL_IS_COPIED = 2, DL_SUBBYTE_PADDED = 4 };

struct dl_device {
    int32_t type; /* a C enum there */
    int32_t id;
};
struct dl_dtype {
    uint8_t code, bits;
    uint16_t lanes;
};
struct dl_tensor {
    void *data;
    struct dl_device device;
    int32_t ndim;
    struct dl_dtype dtype;
    int64_t *shape, *strides; /* strides in elements */
    uint64_t byte_offset;
};
struct dl_version {
    uint32_t major, minor;
};
struct dl_managed { /* before version 1 */
    struct dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
};
struct dl_managed_versioned {
    struct dl_version version;
    void *context;
    void (*deleter)(struct dl_managed_versioned *self);
    uint64_t flags;
    struct dl_tensor tensor;
};
_Static_assert(sizeof(struct dl_tensor) == 48 && sizeof(struct dl_managed) == 64 &&
                   sizeof(struct dl_managed_versioned) == 80,
               "DLPack's structs on a 64-bit machine");
_Static_assert(offsetof(struct dl_tensor, dtype) == 20 && offsetof(struct dl_tensor, shape) == 24 &&
                   offsetof(struct dl_managed_versioned, flags) == 24 &&
                   offsetof(struct dl_managed_versioned, tensor) == 32,
               "DLPack's structs on a 64-bit machine");

/* What a type may offer as __dlpack_c_exchange_api__: a capsule DL_EXCHANGE_NAME. */
struct dl_exchange_header {
    struct dl_version version;
    struct dl_exchange_header *previous; /* an older one, or NULL */
};
struct dl_exchange {
    struct dl_exchange_header header;
    int (*allocate)(struct dl_tensor *prototype, struct dl_managed_versioned **out, void *context,
                    void (*set_error)(void *context, const char *kind, const char *message));
    int (*from_object)(void *object, struct dl_managed_versioned **out);
    int (*to_object)(struct dl_managed_versioned *managed, void **out);
    int (*borrow)(void *object, struct dl_tensor *out);
    int (*current_stream)(int32_t device_type, int32_t device_id, void **out);
};
_Static_assert(sizeof(struct dl_exchange) == 56, "DLPack's exchange table");

#define DL_NAME "dltensor"
#define DL_NAME_USED "used_dltensor"
#define DL_NAME_VERSIONED "dltensor_versioned"
#define DL_NAME_VERSIONED_USED "used_dltensor_versioned"
#define DL_EXCHANGE_NAME "dlpack_exchange_api"

/* ---- vendors.c: each backend's conventions ---------------------------------------------------- */

struct py_vendor {
    const char *backend;
    int32_t device, pinned, managed; /* DLPack device types */
    bool numbered;                   /* the device's ordinal counts; else id is 0 */
    bool streams;                    /* streams are passed as numbers */
    bool cuda_like;                  /* has the CUDA Array Interface */
    bool null_is_one; /* the default stream is 1, 2 the per-thread one, and 0 nothing */
};
/* NULL for a backend that no protocol knows. */
const struct py_vendor *py_vendor_of(const gg_device *device);
const struct py_vendor *py_vendor_known(const gg_device *device); /* the same with a BufferError */
/* The backend whose memory a DLPack type is, and the kind of memory; NULL. Ordinary memory is that of the host's
 * backend. */
const struct py_vendor *py_vendor_of_type(int32_t type, enum gg_memory_kind *kind);
/* The device of a DLPack device, and the kind of memory that its type says. BufferError, -1 if there is
 * no such device here. CPU memory: on @p wanted, a device of the host's. */
int py_vendor_find(struct py_state *state, struct dl_device device, gg_device **out,
                   enum gg_memory_kind *kind);
struct dl_device py_vendor_device(const struct py_vendor *vendor, const gg_memory *memory);
/* Whether the host reads and writes the memory itself. */
bool py_host_reaches(const gg_memory *memory);
bool py_dl_is_host(int32_t type); /* of memory that the host reaches */

/* ---- dlpack_dtype.c ------------------------------------------------------------------------------ */

/* -1 with a BufferError for what DLPack has no name for. */
int py_dl_dtype(PyObject *dtype, struct dl_dtype *out);
/* A new reference; BufferError for what NumPy has no name for. */
PyObject *py_dl_numpy(struct dl_dtype dtype);

/* ---- dlpack_tensor.c ------------------------------------------------------------------------------ */

struct py_array;
/* A tensor over an array's memory. NULL with an exception. */
struct dl_managed_versioned *py_dl_export(const struct py_array *array, struct dl_device device,
                                          bool copied);
PyObject *py_dl_capsule(const struct py_array *array, struct dl_device device, bool versioned,
                        bool copied);
/* A tensor in C order over @p memory, which it takes over; NULL, without an exception, when out of memory. */
struct dl_managed_versioned *py_dl_over(gg_memory *memory, const struct dl_tensor *like);

/* ---- dlpack_import.c ------------------------------------------------------------------------------ */

/* from_dlpack, on the producer's own device, without a copy. @p stream: ours that the producer is to make
 * wait; NULL: the current one. */
PyObject *py_from_dlpack(struct py_state *state, PyObject *object, gg_stream *stream);
/* An array over a tensor, which is taken over in any case; @p device gets its device. */
PyObject *py_dl_import(struct py_state *state, struct dl_managed_versioned *managed,
                       gg_device **device);

/* ---- dlpack_exchange.c ---------------------------------------------------------------------------- */

int py_exchange_add(struct py_state *state); /* the table of GPUArray */
/* By the exchange table of the object's type: 1 with an array in @p out, 0 without such a table, -1. */
int py_from_exchange(struct py_state *state, PyObject *object, PyObject **out);

#endif
