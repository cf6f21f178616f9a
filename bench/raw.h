/* raw.h: the driver functions of the baseline, and the functions that bench.py and raw_main.c call. */
#ifndef RAW_H
#define RAW_H

#include <stddef.h>
#include <stdint.h>

#define RAW_BURST 16      /* short calls per reading of the clock */
#define RAW_NOT_READY 600 /* CUDA_ERROR_NOT_READY */
#define RAW_KIB 1024u
#define RAW_MIB (1024u * RAW_KIB)

/* SLOT(name, symbol, parameters): the driver functions. */
#define RAW_DRIVER(SLOT)                                                                        \
    SLOT(init, "cuInit", (unsigned))                                                            \
    SLOT(version, "cuDriverGetVersion", (int *))                                                \
    SLOT(device_get, "cuDeviceGet", (int *, int))                                               \
    SLOT(device_name, "cuDeviceGetName", (char *, int, int))                                    \
    SLOT(retain, "cuDevicePrimaryCtxRetain", (void **, int))                                    \
    SLOT(release, "cuDevicePrimaryCtxRelease_v2", (int))                                        \
    SLOT(set_current, "cuCtxSetCurrent", (void *))                                              \
    SLOT(get_current, "cuCtxGetCurrent", (void **))                                             \
    SLOT(get_device, "cuCtxGetDevice", (int *))                                                 \
    SLOT(stream_create, "cuStreamCreateWithPriority", (void **, unsigned, int))                 \
    SLOT(stream_destroy, "cuStreamDestroy_v2", (void *))                                        \
    SLOT(stream_query, "cuStreamQuery", (void *))                                               \
    SLOT(stream_sync, "cuStreamSynchronize", (void *))                                          \
    SLOT(stream_wait, "cuStreamWaitEvent", (void *, void *, unsigned))                          \
    SLOT(event_create, "cuEventCreate", (void **, unsigned))                                    \
    SLOT(event_destroy, "cuEventDestroy_v2", (void *))                                          \
    SLOT(event_record, "cuEventRecord", (void *, void *))                                       \
    SLOT(event_query, "cuEventQuery", (void *))                                                 \
    SLOT(alloc, "cuMemAlloc_v2", (uint64_t *, size_t))                                          \
    SLOT(release_memory, "cuMemFree_v2", (uint64_t))                                            \
    SLOT(alloc_async, "cuMemAllocAsync", (uint64_t *, size_t, void *))                          \
    SLOT(free_async, "cuMemFreeAsync", (uint64_t, void *))                                      \
    SLOT(alloc_host, "cuMemHostAlloc", (void **, size_t, unsigned))                             \
    SLOT(release_host, "cuMemFreeHost", (void *))                                               \
    SLOT(h2d, "cuMemcpyHtoDAsync_v2", (uint64_t, const void *, size_t, void *))                 \
    SLOT(d2h, "cuMemcpyDtoHAsync_v2", (void *, uint64_t, size_t, void *))                       \
    SLOT(d2d, "cuMemcpyDtoDAsync_v2", (uint64_t, uint64_t, size_t, void *))                     \
    SLOT(pointer_attributes, "cuPointerGetAttributes", (unsigned, int *, void **, uint64_t))    \
    SLOT(module_load, "cuModuleLoadData", (void **, const void *))                              \
    SLOT(function, "cuModuleGetFunction", (void **, void *, const char *))                      \
    SLOT(launch, "cuLaunchKernel",                                                              \
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, \
          void **, void **))

#define RAW_MEMBER(name, symbol, parameters) int(*name) parameters;
struct raw_driver {
    RAW_DRIVER(RAW_MEMBER)
};
#undef RAW_MEMBER
extern struct raw_driver raw_cu;

/* Source and destination of large copies: the caller's memory, so that both sides copy the same bytes. */
struct raw_bulk {
    uint64_t memory, other; /* on the device */
    void *pinned, *pageable;
    size_t nbytes;
};

/* One device, and the stream that rows run on. */
struct raw {
    int device;
    void *context, *stream, *event, *spare;
    void *pinned; /* RAW_KIB bytes, for small copies */
    uint64_t memory;
    size_t alloc_bytes; /* of the rows alloc_free and alloc_free_async */
    char host[RAW_KIB];
    struct raw_bulk bulk;
    void *nothing, *sixteen; /* kernels: without parameters, and with 8 pointers and 8 words */
};

/* One row; `calls` of them are timed together. */
struct raw_row {
    const char *name;
    int (*call)(struct raw *raw);
    int calls;
    int bursts; /* in the program */
};
extern const struct raw_row raw_rows[]; /* the last has no name */

/* The message of the last failure. */
const char *raw_error(void);

/* Load the driver from that file and retain the primary context of the device; NULL on failure. This function and
 * those below restore the current context of the calling thread. */
struct raw *raw_open(const char *library, int ordinal);
void raw_close(struct raw *raw);

/* From now on call the functions of that library, of HIP on CUDA's driver, that the hip backend calls for the same work: its events
 * measure time, since a query asks for the time from an event to itself. Returns the driver's error code, or -1. A process that also
 * needs the driver's own functions loads this file twice, from two copies. */
int raw_through(struct raw *raw, const char *library);

/* Set the stream (a CUstream) and the memory of large copies, which may be NULL if there are none. */
int raw_use(struct raw *raw, void *stream, const struct raw_bulk *bulk);

/* Set the size for the rows alloc_free and alloc_free_async. */
void raw_alloc_bytes(struct raw *raw, size_t nbytes);

/* Make the context current in the calling thread permanently: C needs it for the legacy stream, so gpuglue gets
 * it too. */
int raw_stay(struct raw *raw);

/* Run that many bursts of a row and write the nanoseconds per call of each to ns. Returns the driver's error code, or
 * -1. */
int raw_run(struct raw *raw, const char *name, int bursts, double *ns);

#endif
