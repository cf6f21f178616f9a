/* backend.h: the contract between gpuglue's core and a backend plugin, and its author's manual.
 *
 * A plugin is a shared library gpuglue_<name>.so that links libc only and exports one symbol,
 * gg_backend_query. The core passes it what it may use of ours (struct gg_host_api) and gets a
 * descriptor with a table of operations back. examples/plugin/ is the folder to copy.
 *
 * The core checks every argument before it calls an operation: pointers are not NULL, objects belong
 * to the device, sizes are not 0, ranges are inside their memory, flags are known to the core. It may
 * call any operation on the same object from several threads; a vendor that forbids it needs a lock
 * inside that object, in the order kernel, stream, event pool, never held while waiting.
 *
 * An operation returns GG_OK, GG_NOT_READY where its comment says so, or what host->fail returned.
 * Output parameters are written on success only. Operations never print, never call back into the
 * core but through struct gg_host_api, and never raise a signal.
 *
 * Structs that cross the boundary begin with their size. Flag bits and enum values that a backend
 * does not know answer GG_ERR_UNSUPPORTED. */
#ifndef GPUGLUE_BACKEND_H
#define GPUGLUE_BACKEND_H

#include "gpuglue.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GG_BACKEND_MAGIC 0x42474747u /* "GGGB" */
#define GG_BACKEND_ABI_MAJOR 1       /* must be equal on both sides */
#define GG_BACKEND_ABI_MINOR 0       /* rows appended since */

/* The backend completes these; the core only passes the pointers on. */
struct gg_device_impl;
struct gg_stream_impl;
struct gg_event_impl;
struct gg_module_impl;
struct gg_kernel_impl;

enum gg_need { GG_REQUIRED, GG_OPTIONAL };

/* ---- what a plugin may use of the core --------------------------------------------------------- */

/* One symbol to be looked up: stored at (char *)target + offset, NULL where optional and absent. */
struct gg_symbol {
    const char *name;
    size_t offset;
    enum gg_need need;
};

/* What to look for. Names are SONAMEs, newest first, ended by NULL. */
struct gg_library_spec {
    uint32_t struct_size;
    uint32_t flags;           /* enum gg_library_flag */
    const char *const *names; /* "libcuda.so.1" */
    const char *variable;     /* "GPUGLUE_CUDA_LIBRARY": absolute path, final; NULL: none */
    const char *stem;         /* "libcuda": a mapped file so named is taken; NULL: do not look */
    const char *const *directories; /* absolute, tried after the bare names; "$VAR/lib" is expanded,
                                       '*' matches within the last parts, highest version first */
};
enum gg_library_flag {
    GG_LIBRARY_HANDED_IN =
        1, /* also in the directories of gg_add_library_directory, before the names */
    GG_LIBRARY_ONLY_MAPPED = 2, /* open nothing new: only a copy that the process already has */
    GG_LIBRARY_NO_SYSTEM = 4 /* neither by bare name nor in spec->directories: another user of the
                                same SONAME would be given that copy from then on */
};

/* A library that was found. The texts live as long as the process; it is never closed. */
struct gg_library {
    uint32_t struct_size;
    int32_t already_loaded;
    void *handle;     /* of dlopen */
    const char *path; /* the true path */
    const char *found_by; /* "environment", "already loaded", "search directory", "soname", "directory" */
};

/* Where a probe writes what it found. Texts are copied by the core when the probe returns; strings
 * are truncated, never overrun. The core has filled struct_size, log and named, and zeroed the rest. */
struct gg_probe_result {
    uint32_t struct_size;
    gg_probe_status status;
    int32_t device_count; /* -1 where it is not known */
    int32_t vendor_code;  /* the driver's answer, if it is the reason */
    char reason[512];     /* what is wrong and what to do about it; "" when available */
    char library_path[512];
    char library_version[32];
    char found_by[32];
    struct gg_probe_log *log; /* the core's; for library_open and note */
    /* Whether the user named this backend (GPUGLUE_BACKEND, gg_use_backend, a device's name) or it is
     * one of all. Where opening the vendor's library costs much and is clearly in vain, a backend that
     * was not named may leave it: it sets declined, and a status and reason that say so. The answer
     * then holds until the backend is named: then probe is called again. */
    int32_t named;
    int32_t declined;
};

struct gg_vendor_error {
    int64_t code;
    const char *name; /* "CUDA_ERROR_OUT_OF_MEMORY"; NULL: not known */
    const char *text; /* "out of memory"; NULL: not known */
};

struct gg_host_api {
    uint32_t struct_size;
    uint32_t core_abi; /* gg_abi() */
    /* One line at an enum gg_log_level. */
    void (*log)(int32_t level, const char *backend, const char *format, ...);
    /* Record what went wrong for this thread and return @p status. The core adds backend, operation,
     * device and library. @p error is NULL where no driver spoke. */
    gg_status (*fail)(gg_status status, const struct gg_vendor_error *error, const char *format,
                      ...);
    /* secure_getenv: NULL in a set-user-id process. */
    const char *(*get_env)(const char *name);
    /* The search, one for all vendors: variable, already mapped, handed-in directories, bare names,
     * directories. Every path tried is noted in @p log. GG_PROBE_AVAILABLE when found, else
     * LIBRARY_NOT_FOUND or LIBRARY_LOAD_FAILED with a reason of at most @p reason_size bytes. */
    gg_probe_status (*library_open)(const struct gg_library_spec *spec, struct gg_probe_log *log,
                                    struct gg_library *out, char *reason, size_t reason_size);
    /* Fill @p target from a list. SYMBOL_MISSING (naming it and the file) when a required one is not
     * there; GG_PROBE_AVAILABLE otherwise. */
    gg_probe_status (*library_resolve)(const struct gg_library *library,
                                       const struct gg_symbol *symbols, size_t count, void *target,
                                       char *reason, size_t reason_size);
    /* A further fact for the report: another runtime, a mask that is set, a missing device node. */
    void (*note)(struct gg_probe_log *log, const char *format, ...);
};

/* ---- the table of operations ----------------------------------------------------------------- */

enum gg_borrowed_flag { GG_STREAM_OF_THREAD = 0x100 }; /* an answer of stream_borrow only */
enum gg_copy_kind { GG_COPY_H2D = 1, GG_COPY_D2H = 2, GG_COPY_D2D = 3 };

/* Rows in slices, in bytes: row y of slice z begins z * slice + y * pitch behind an end's pointer. Each
 * figure is 1 to INT32_MAX; width <= pitch. With depth 1 the slices are 0; else they are multiples of
 * their pitch, and pitch * height <= slice. */
struct gg_region {
    uint32_t struct_size;
    uint32_t reserved;
    size_t width, height, depth; /* bytes of a row, rows of a slice, slices */
    size_t dst_pitch, dst_slice;
    size_t src_pitch, src_slice;
};

/* The slots stand in the order of ops.def, which also says which are required. */
struct gg_backend_ops {
    uint32_t struct_size; /* sizeof as compiled into the plugin; a shorter table reads as NULL */
    uint32_t reserved;

    /* -- backend -- */

    /* Find the vendor's library and, at GG_ACTIVE, initialise it and count devices. Called again to
     * go from passive to active; never twice at once. At GG_PASSIVE call nothing that initialises: a
     * library so found is GG_PROBE_NOT_PROBED. Always returns with result->status set. */
    void (*probe)(enum gg_probe_level level, struct gg_probe_result *result);

    /* -- device: @p ordinal is below the count of an active probe that was GG_PROBE_AVAILABLE -- */

    /* Name, arch, PCI, UUID, total memory, flags; the core finds the NUMA node. No context is made. */
    gg_status (*device_info)(int32_t ordinal, struct gg_device_info *info);
    /* A number; GG_ERR_UNSUPPORTED for one that the device does not know. No context is made. */
    gg_status (*device_attribute)(int32_t ordinal, gg_attribute attribute, int64_t *value);
    /* Make the device ready for the rest (retain its primary context, say). Once per ordinal. */
    gg_status (*device_open)(int32_t ordinal, struct gg_device_impl **out);
    /* Undo device_open at shutdown: everything of it was destroyed and all work is done. */
    void (*device_close)(struct gg_device_impl *device);
    gg_status (*device_memory_info)(struct gg_device_impl *device, uint64_t *free, uint64_t *total);
    /* Wait without limit for all work of the device. The core has waited for its own streams. */
    gg_status (*device_synchronize)(struct gg_device_impl *device);
    /* Record @p event behind all work of the device so far, also of streams that are not ours. */
    gg_status (*device_record)(struct gg_device_impl *device, struct gg_event_impl *event);
    gg_status (*device_native)(struct gg_device_impl *device, uint64_t handles[4]);
    /* Make the device current for the calling thread in the vendor's sense and say in *saved what was
     * (any value that device_leave understands, NULL too). For users' code and with-blocks only:
     * operations below switch and restore by themselves, on success and on error. */
    gg_status (*device_enter)(struct gg_device_impl *device, void **saved);
    /* Make current exactly what *saved says; @p saved may come from another device. */
    void (*device_leave)(void *saved);
    /* The ordinal whose context (the one that device_open uses) is current in this thread, or -1.
     * Fast, initialises nothing, and is called at every question for the current device. */
    int32_t (*device_current)(void);
    /* Exchange the calling thread's stream capture mode: relaxed != 0 asks for the mode in which
     * queries, allocs and frees leave other people's captures alone; *mode takes the previous one, and
     * is given back by the same call with relaxed = 0. The core wraps its own housekeeping in it. */
    gg_status (*capture_mode)(struct gg_device_impl *device, int32_t relaxed, int32_t *mode);

    /* -- memory -- */

    /* GG_MEMORY_DEVICE, GG_MEMORY_PINNED, or GG_MEMORY_MANAGED where there is such a thing (else
     * GG_ERR_UNSUPPORTED); nbytes > 0, aligned to 256 or more; the device reads and
     * writes pinned memory at the same address. GG_ERR_OUT_OF_MEMORY where it is that. */
    gg_status (*mem_alloc)(struct gg_device_impl *device, enum gg_memory_kind kind, size_t nbytes,
                           void **out);
    /* The memory is idle. May wait for the device; with GG_DEVICE_FREE_NEVER_WAITS only for pinned
     * memory. */
    gg_status (*mem_free)(struct gg_device_impl *device, enum gg_memory_kind kind, void *pointer);
    /* GG_MEMORY_HOST, and success, for a pointer that the driver does not know. */
    gg_status (*pointer_info)(struct gg_device_impl *device, const void *pointer,
                              struct gg_pointer_info *info);

    /* -- copy: stream-ordered, nbytes > 0, ranges valid and apart, returns when queued. Host memory of
     *    a copy with pageable != 0 is not page-locked: the vendor may make the call wait, and the core
     *    waits for the stream before it lets the memory go. -- */
    gg_status (*copy)(struct gg_stream_impl *stream, void *dst, const void *src, size_t nbytes,
                      enum gg_copy_kind kind, int32_t pageable);
    /* @p count copies of the pattern of 1, 2 or 4 bytes; @p dst is aligned to the pattern's size. */
    gg_status (*fill)(struct gg_stream_impl *stream, void *dst, uint32_t pattern,
                      uint32_t pattern_size, size_t count);

    /* -- stream -- */

    /* The device's default stream, owned by the device; the same pointer at each call. With
     * GG_DEVICE_SHARED_DEFAULT it is the vendor's own (the legacy null stream). */
    gg_status (*stream_default)(struct gg_device_impl *device, struct gg_stream_impl **out);
    gg_status (*stream_create)(struct gg_device_impl *device, uint32_t flags, int32_t priority,
                               struct gg_stream_impl **out);
    /* The stream is idle. For a borrowed one only what stream_borrow made is freed. */
    void (*stream_destroy)(struct gg_stream_impl *stream);
    /* Wrap a native handle (GG_STREAM_OF_THREAD in *flags: it means another stream in each thread, and
     * the core lets the calling thread alone use it); *flags also gets GG_STREAM_NONBLOCKING unless it is known to be ordered with the
     * default stream. For the device's default stream set *is_default and *out to what stream_default
     * gives. */
    gg_status (*stream_borrow)(struct gg_device_impl *device, uint64_t native, uint32_t *flags,
                               int32_t *is_default, struct gg_stream_impl **out);
    gg_status (*stream_native)(struct gg_stream_impl *stream, uint64_t handles[4]);
    /* GG_OK or GG_NOT_READY. Work that failed may be told once, as GG_ERR_DEVICE: the core keeps it for the
     * user where it asked on its own account. */
    gg_status (*stream_query)(struct gg_stream_impl *stream);
    /* Wait for all that is queued now; GG_NOT_READY when @p timeout_ns has passed. */
    gg_status (*stream_wait)(struct gg_stream_impl *stream, uint64_t timeout_ns);
    /* On the device; what the event recorded last by now. The event may be of another device. */
    gg_status (*stream_wait_event)(struct gg_stream_impl *stream, struct gg_event_impl *event);
    /* Whether the stream is being captured into a graph. Asked behind nearly every submission, and for the
     * core's own sake: a failure is an answer too, and records no detail. UNSUPPORTED: it cannot be told. */
    gg_status (*stream_capturing)(struct gg_stream_impl *stream, int32_t *capturing);
    gg_status (*stream_priority_range)(struct gg_device_impl *device, int32_t *least,
                                       int32_t *greatest);
    gg_status (*stream_host_func)(struct gg_stream_impl *stream, void (*function)(void *),
                                  void *argument);

    /* -- event: enum gg_event_flag. Recorded any number of times, each moving it. Query, wait and
     *    elapsed are called on recorded events only. -- */
    gg_status (*event_create)(struct gg_device_impl *device, uint32_t flags,
                              struct gg_event_impl **out);
    void (*event_destroy)(struct gg_event_impl *event); /* what it recorded last is done */
    gg_status (*event_borrow)(struct gg_device_impl *device, uint64_t native,
                              struct gg_event_impl **out);
    gg_status (*event_native)(struct gg_event_impl *event, uint64_t handles[4]);
    gg_status (*event_record)(struct gg_event_impl *event, struct gg_stream_impl *stream);
    gg_status (*event_query)(struct gg_event_impl *event);                     /* or GG_NOT_READY */
    gg_status (*event_wait)(struct gg_event_impl *event, uint64_t timeout_ns); /* or GG_NOT_READY */
    /* Milliseconds; GG_NOT_READY when either is not done. Both were made with GG_EVENT_TIMING. */
    gg_status (*event_elapsed)(struct gg_event_impl *start, struct gg_event_impl *stop,
                               double *milliseconds);

    /* Whether an optional slot that the table has works with this driver on this device (0 or 1).
     * NULL: what the table has works. */
    int32_t (*device_supports)(struct gg_device_impl *device, gg_op op);
    /* Write 8 bytes at @p dst, device or pinned memory aligned to 8, in stream order, without reading host
     * memory later: where a driver can do this it is cheaper than the smallest copy. The word is written
     * in one piece, after all that stands before it on the stream: the host may poll for it. */
    gg_status (*write_word)(struct gg_stream_impl *stream, void *dst, uint64_t value);

    /* -- memory that others own, managed memory, memory in the order of a stream -- */

    /* Page-lock the host's bytes, at any address, so that the device reaches them there. Their pages hold
     * nothing that is registered already; other bytes on them stay pageable to the driver. */
    gg_status (*mem_register)(struct gg_device_impl *device, void *pointer, size_t nbytes);
    /* What mem_register was given; idle. May wait for the device. */
    gg_status (*mem_unregister)(struct gg_device_impl *device, void *pointer);
    /* Managed memory: move it to the stream's device or to the host, in the order of the stream. */
    gg_status (*mem_prefetch)(struct gg_stream_impl *stream, const void *pointer, size_t nbytes,
                              int32_t to_host);
    /* Managed memory: how it will be used; the place it is about is the device or the host. */
    gg_status (*mem_advise)(struct gg_device_impl *device, const void *pointer, size_t nbytes,
                            enum gg_advice advice, int32_t for_host);
    /* Device memory from the vendor's own pool, ready when the stream comes to this point. */
    gg_status (*mem_alloc_async)(struct gg_stream_impl *stream, size_t nbytes, void **out);
    /* Its way back, in the order of the stream; all uses are ordered before. */
    gg_status (*mem_free_async)(struct gg_stream_impl *stream, void *pointer);
    /* -- boxes -- */

    /* Copy a box of bytes, stream-ordered, as copy does; host memory is page-locked. Without this slot the
     * core copies row by row. */
    gg_status (*copy_region)(struct gg_stream_impl *stream, void *dst, const void *src,
                             const struct gg_region *region, enum gg_copy_kind kind);

    /* -- module: code for the device. A kernel_impl belongs to its module and dies with it. -- */

    /* @p image is what the core read in the @p nbytes at @p bytes, which are not damaged as far as it
     * can tell. GG_ERR_INVALID_ARGUMENT, naming both, for one that the device does not take. */
    gg_status (*module_load)(struct gg_device_impl *device, const struct gg_image *image,
                             const void *bytes, size_t nbytes, struct gg_module_impl **out);
    /* No kernel of it is queued or runs; its memory is not in use. May wait for the device. */
    void (*module_unload)(struct gg_module_impl *module);
    /* GG_NOT_READY (for once "there is none") where the module has no variable of that name. */
    gg_status (*module_global)(struct gg_module_impl *module, const char *name, void **pointer,
                               size_t *nbytes);
    /* GG_NOT_READY where the module has no kernel of that name. */
    gg_status (*module_kernel)(struct gg_module_impl *module, const char *name,
                               struct gg_kernel_impl **out);
    /* Parameter @p index: offset and size, the kind where it is known. GG_NOT_READY behind the last;
     * GG_ERR_UNSUPPORTED where the driver tells nothing. */
    gg_status (*kernel_parameter)(struct gg_kernel_impl *kernel, uint32_t index,
                                  struct gg_parameter *parameter);
    gg_status (*kernel_attribute)(struct gg_kernel_impl *kernel, gg_kernel_attribute attribute,
                                  int64_t *value);
    gg_status (*kernel_occupancy)(struct gg_kernel_impl *kernel, uint32_t threads, size_t shared,
                                  int32_t *blocks);
    gg_status (*kernel_suggest)(struct gg_kernel_impl *kernel, size_t shared, uint32_t limit,
                                uint32_t *threads, uint32_t *blocks);
    /* Let launches have up to @p shared bytes of dynamic shared memory, more than the usual limit. */
    gg_status (*kernel_allow_shared)(struct gg_kernel_impl *kernel, uint32_t shared);
    /* The arguments' values are read before the call returns; stream and order are the core's. A value
     * is NULL, and its size that of the block's own memory, only where the image tells such parameters. */
    gg_status (*kernel_launch)(struct gg_stream_impl *stream, struct gg_kernel_impl *kernel,
                               const struct gg_launch *launch);
    /* Call @p each with the name of every kernel. */
    gg_status (*module_names)(struct gg_module_impl *module,
                              void (*each)(void *user, const char *name), void *user);

    /* -- peers: two open devices of this backend. All three or none. -- */

    /* Whether work of @p device can reach the memory of @p peer: 1 or 0. */
    gg_status (*peer_access)(struct gg_device_impl *device, struct gg_device_impl *peer,
                             int32_t *out);
    /* Let it. Called again for the same two it does nothing. */
    gg_status (*peer_enable)(struct gg_device_impl *device, struct gg_device_impl *peer);
    /* Copy from one to the other, on a stream of either; both ways were enabled. */
    gg_status (*copy_peer)(struct gg_stream_impl *stream, struct gg_device_impl *dst_device,
                           void *dst, struct gg_device_impl *src_device, const void *src,
                           size_t nbytes);

    /* -- memory of other processes -- */

    /* What another process needs to open device memory: @p pointer is what mem_alloc gave. The bytes mean
     * something to ipc_open only; the same memory gives the same ones. */
    gg_status (*ipc_export)(struct gg_device_impl *device, const void *pointer,
                            uint8_t native[GG_IPC_NATIVE_SIZE]);
    /* Map what another process, never this one, has exported of that device. The core opens nothing twice
     * before it was closed. */
    gg_status (*ipc_open)(struct gg_device_impl *device, const uint8_t native[GG_IPC_NATIVE_SIZE],
                          void **out);
    /* What ipc_open gave; idle. May wait for the device. */
    gg_status (*ipc_close)(struct gg_device_impl *device, void *pointer);
};

/* ---- the descriptor --------------------------------------------------------------------------- */

struct gg_backend_desc {
    uint32_t magic;       /* GG_BACKEND_MAGIC */
    uint32_t struct_size; /* sizeof as compiled into the plugin */
    uint16_t abi_major, abi_minor;
    int32_t priority;    /* in "auto": cuda 300, hip 200, ze 100; negative: only as a last resort */
    const char *name;    /* "cuda": [a-z][a-z0-9_]{0,14}, also the suffix of the file's name */
    const char *version; /* of the plugin */
    const struct gg_backend_ops *ops;
};

/** The only exported symbol of a plugin. @p core_abi is gg_abi(); @p host lives as long as the
 *  process. Returns 0 and the descriptor (static), or nonzero where it cannot serve that core.
 *  Must not open libraries, start threads or call a vendor. */
typedef int gg_backend_query_fn(uint32_t core_abi, const struct gg_host_api *host,
                                const struct gg_backend_desc **out);
GG_API int gg_backend_query(uint32_t core_abi, const struct gg_host_api *host,
                            const struct gg_backend_desc **out);

#ifdef __cplusplus
}
#endif
#endif
