/** @file
 *  The contract between gpuglue's core and a backend plugin.
 *
 *  A plugin is a shared library gpuglue_<name>.so that links only libc and exports one symbol, gg_backend_query. The core
 *  passes it the services it may use (struct gg_host_api) and receives a descriptor with a table of operations.
 *  examples/plugin/ is a template.
 *
 *  @par Checks
 *  The core checks every argument before it calls an operation: pointers are not NULL, objects belong to the device, sizes
 *  are not 0, ranges are inside their memory, flags are known.
 *  @par Results
 *  An operation returns GG_OK, GG_NOT_READY where documented, or the result of host->fail. Output parameters are written on
 *  success only. Operations never print, never call the core except through struct gg_host_api, and never raise a signal.
 *  @par Versions
 *  Structs that cross the boundary begin with their size, and only members that both sides have are accessed. Arrays of
 *  structs that may grow have the size of an element. An unknown flag bit or enum value is GG_ERR_UNSUPPORTED.
 *  @par Ordering
 *  The core orders work between streams by stream_wait_event. An operation on a stream is queued on that stream, after all
 *  that was queued before.
 *  @par Threads
 *  The core may call any operation on the same object from several threads. If the vendor's library forbids that, the plugin
 *  keeps a lock in the object. It takes locks in the order kernel, stream, event pool, and never waits while it holds
 *  one. */
#ifndef GG_BACKEND_H
#define GG_BACKEND_H

#include "gpuglue.h"

GG_BEGIN_DECLS

/** gg_backend_desc::magic: "GGGB" */
#define GG_BACKEND_MAGIC 0x42474747u
/** Major version of the contract: must be equal on both sides. */
#define GG_BACKEND_ABI_MAJOR 1
/** Minor version of the contract: increases when slots are appended. */
#define GG_BACKEND_ABI_MINOR 0

/* Defined by the backend; the core only passes the pointers. */
struct gg_device_impl;
struct gg_stream_impl;
struct gg_event_impl;
struct gg_module_impl;
struct gg_kernel_impl;
struct gg_graph_impl;
struct gg_comm_impl;

/** Whether a symbol or an operation may be missing. */
enum gg_need {
    GG_REQUIRED, /**< it must be there */
    GG_OPTIONAL  /**< it may be missing */
};

/* ---- services of the core ------------------------------------------------------------------------ */

/** A symbol to resolve. Its address is stored at (char *)target + offset; NULL if optional and absent. The size never
 *  changes: plugins pass arrays of it. */
struct gg_symbol {
    const char *name;  /**< of the function */
    size_t offset;     /**< in bytes */
    enum gg_need need; /**< whether it may be absent */
};

/** A library to find. Names are SONAMEs, newest first, terminated by NULL. */
struct gg_library_spec {
    uint32_t struct_size;     /**< sizeof(struct gg_library_spec) */
    uint32_t flags;           /**< enum gg_library_flag */
    const char *const *names; /**< "libcuda.so.1" */
    const char *variable;     /**< "GPUGLUE_CUDA_LIBRARY": an absolute path; no other is tried */
    const char *stem; /**< "libcuda": use a file of this name that is already mapped; NULL: do not */
    /** Absolute paths, tried after the bare names. "$VAR/lib" is expanded; '*' matches within the last
     *  components, highest version first. */
    const char *const *directories;
};
/** How a library is searched. */
enum gg_library_flag {
    /** Also search the directories of gg_add_library_directory, before the names. */
    GG_LIBRARY_ADDED_DIRECTORIES = 1,
    GG_LIBRARY_ONLY_MAPPED = 2, /**< open nothing: only use a copy that the process has loaded */
    /** Search neither bare names nor spec->directories: opening a library there would give this copy to
     *  every later user of the same SONAME in the process. */
    GG_LIBRARY_NO_SYSTEM = 4
};

/** A library that was found. It is never closed, and the strings live as long as the process. */
struct gg_library {
    uint32_t struct_size;   /**< sizeof(struct gg_library) */
    int32_t already_loaded; /**< 1: the process had loaded it before */
    void *handle;           /**< from dlopen */
    const char *path;       /**< resolved path */
    const char *found_by; /**< "environment", "already loaded", "search directory", "soname", "directory" */
};

/** Result of a probe. The core sets struct_size, log and named, and zeroes the rest. It copies the strings
 *  when the probe returns; strings that are too long are truncated. */
struct gg_probe_result {
    uint32_t struct_size;     /**< sizeof(struct gg_probe_result) */
    gg_probe_status status;   /**< set by the probe */
    int32_t device_count;     /**< -1: unknown */
    int32_t vendor_code;      /**< the driver's error, if it is the reason */
    char reason[512];         /**< what is wrong and what to do; "" if available */
    char library_path[512];   /**< of the vendor's library; "" if none was found */
    char library_version[32]; /**< "13.0"; "" if it is unknown */
    char found_by[32];        /**< gg_library::found_by */
    struct gg_probe_log *log; /**< for library_open and note */
    int32_t named; /**< 1: the user selected this backend by name, as in GPUGLUE_BACKEND or a device's name */
    /** 1: the vendor's library was not opened, because the backend was not named, opening it is expensive, and it would
     *  clearly fail. status and reason say why. The result holds until the backend is named; then probe is called again. */
    int32_t declined;
};

/** An error of the vendor's library. */
struct gg_vendor_error {
    int64_t code;     /**< the number that the vendor's function returned */
    const char *name; /**< "CUDA_ERROR_OUT_OF_MEMORY"; NULL: unknown */
    const char *text; /**< "out of memory"; NULL: unknown */
};

/** What the core offers to a plugin. */
struct gg_host_api {
    uint32_t struct_size; /**< bytes of the core's struct */
    uint32_t core_abi;    /**< gg_abi() */
    /** Log one line at an enum gg_log_level. */
    void (*log)(int32_t level, const char *backend, const char *format, ...);
    /** Record an error of the calling thread and return @p status. The core adds backend, operation,
     *  device and library. @p error is NULL if no driver was involved. */
    gg_status (*fail)(gg_status status, const struct gg_vendor_error *error, const char *format,
                      ...);
    /** secure_getenv(3): NULL in a set-user-id process. */
    const char *(*get_env)(const char *name);
    /** Find a library: environment variable, already mapped, added directories, bare names, directories.
     *  Every path tried is recorded in @p log. GG_PROBE_AVAILABLE if found, else LIBRARY_NOT_FOUND or
     *  LIBRARY_LOAD_FAILED with a reason of at most @p reason_size bytes. */
    gg_probe_status (*library_open)(const struct gg_library_spec *spec, struct gg_probe_log *log,
                                    struct gg_library *out, char *reason, size_t reason_size);
    /** Resolve a list of symbols into @p target. SYMBOL_MISSING, naming symbol and file, if a required one
     *  is absent; GG_PROBE_AVAILABLE otherwise. */
    gg_probe_status (*library_resolve)(const struct gg_library *library,
                                       const struct gg_symbol *symbols, size_t count, void *target,
                                       char *reason, size_t reason_size);
    /** Add a fact to the report: another runtime, a visibility variable, a missing device node. */
    void (*note)(struct gg_probe_log *log, const char *format, ...);
    /** How many processors the process may use: those of its affinity, which may change, and no more than the quota of its
     *  control group, rounded up. At least 1. An older core has a smaller struct, without this function. */
    int32_t (*processor_count)(void);
};

/* ---- the table of operations ----------------------------------------------------------------- */

/** Flags of a borrowed stream, besides enum gg_stream_flag. */
enum gg_borrowed_flag {
    GG_STREAM_OF_THREAD = 0x100 /**< the handle means a different stream in each thread */
};
/** Direction of a copy. Pinned memory counts as host memory. */
enum gg_copy_kind {
    GG_COPY_H2D = 1, /**< host to device */
    GG_COPY_D2H = 2, /**< device to host */
    GG_COPY_D2D = 3  /**< within the device */
};

/** A box of rows in slices, in bytes: row y of slice z begins z * slice + y * pitch after the operand's
 *  pointer. Each number is 1 to INT32_MAX and width <= pitch. If depth is 1 the slices are 0; else they are
 *  multiples of their pitch and pitch * height <= slice. */
struct gg_region {
    uint32_t struct_size; /**< sizeof(struct gg_region) */
    uint32_t reserved;    /**< 0 */
    size_t width,         /**< bytes per row */
        height,           /**< rows per slice */
        depth;            /**< slices */
    size_t dst_pitch,     /**< bytes from a row of the destination to the next */
        dst_slice;        /**< bytes from a slice of the destination to the next */
    size_t src_pitch,     /**< bytes from a row of the source to the next */
        src_slice;        /**< bytes from a slice of the source to the next */
};

/** The functions of a profiler that shows ranges of the program. They are called from any thread, each pop on the
 *  thread of its push. Their results are ignored. */
struct gg_range_tool {
    uint32_t struct_size;          /**< sizeof(struct gg_range_tool) */
    uint32_t reserved;             /**< 0 */
    int (*push)(const char *name); /**< begin a range; NULL: no profiler listens */
    int (*pop)(void);              /**< end the innermost range of the thread */
};

/** The operations of a backend, in the order of ops.def, which also lists the required ones. */
struct gg_backend_ops {
    uint32_t struct_size; /**< sizeof as compiled into the plugin; slots beyond it are NULL */
    uint32_t reserved;    /**< 0 */

    /* -- backend -- */

    /** Find the vendor's library and, at GG_ACTIVE, initialise it and count devices. At GG_PASSIVE call nothing that
     *  initialises the library, and report a library that was found as GG_PROBE_NOT_PROBED. The core may call it again,
     *  to go from passive to active, but never concurrently. Must set result->status. */
    void (*probe)(enum gg_probe_level level, struct gg_probe_result *result);

    /* -- device: @p ordinal is below the count of an active probe that was GG_PROBE_AVAILABLE -- */

    /** Name, arch, PCI, UUID, total memory, flags; the core finds the NUMA node. Creates no context. */
    gg_status (*device_info)(int32_t ordinal, struct gg_device_info *info);
    /** GG_ERR_UNSUPPORTED for an attribute that the device does not know. Creates no context. */
    gg_status (*device_attribute)(int32_t ordinal, gg_attribute attribute, int64_t *value);
    /** Prepare the device for the other operations, such as retaining its primary context. Once per
     *  ordinal. */
    gg_status (*device_open)(int32_t ordinal, struct gg_device_impl **out);
    /** Undo device_open at shutdown. Its objects are destroyed and all work is complete. */
    void (*device_close)(struct gg_device_impl *device);
    /** Free and total memory. Also called after GG_ERR_DEVICE_LOST: if it returns this error too, or cannot report memory,
     *  the core frees memory that the device still uses. It must not wait, and must not invalidate a capture. */
    gg_status (*device_memory_info)(struct gg_device_impl *device, uint64_t *free, uint64_t *total);
    /** Wait for all work on the device. The core has already waited for its own streams. */
    gg_status (*device_synchronize)(struct gg_device_impl *device);
    /** Record @p event after all work queued on the device so far, on any stream. */
    gg_status (*device_record)(struct gg_device_impl *device, struct gg_event_impl *event);
    /** Native handles, valid as long as the device is open. Unused entries are 0. */
    gg_status (*device_native)(struct gg_device_impl *device, uint64_t handles[4]);
    /** Make the device current for the calling thread in the vendor's runtime and store in *saved what was
     *  current (any value that device_leave understands, including NULL). The core calls this only for
     *  scopes and gg_device_set_current. The operations below switch to the device and restore what was
     *  current by themselves, on success and on error. */
    gg_status (*device_enter)(struct gg_device_impl *device, void **saved);
    /** Restore exactly what @p saved describes; it may come from another device. */
    void (*device_leave)(void *saved);
    /** Ordinal of the device whose context (the one that device_open uses) is current in this thread, or
     *  -1. Initialises nothing. Called for every lookup of the current device, so it must be fast. */
    int32_t (*device_current)(void);
    /** Exchange the calling thread's stream capture mode. relaxed != 0 selects the mode in which queries,
     *  allocations and frees do not invalidate captures of other threads; *mode receives the previous one,
     *  which the same call with relaxed = 0 restores. The core does this around its internal operations. */
    gg_status (*capture_mode)(struct gg_device_impl *device, int32_t relaxed, int32_t *mode);

    /* -- memory -- */

    /** Allocate nbytes > 0 of GG_MEMORY_DEVICE, GG_MEMORY_PINNED or GG_MEMORY_MANAGED (GG_ERR_UNSUPPORTED
     *  if there is none), aligned to at least 256 bytes. The device accesses pinned memory at the host's
     *  address. GG_ERR_OUT_OF_MEMORY if memory is exhausted. */
    gg_status (*mem_alloc)(struct gg_device_impl *device, enum gg_memory_kind kind, size_t nbytes,
                           void **out);
    /** Free idle memory. May wait for the device; with GG_DEVICE_FREE_NEVER_WAITS only if the memory is
     *  pinned. With GG_DEVICE_FREE_WAITS freeing device memory always waits, and inside capture_mode it
     *  invalidates no capture. */
    gg_status (*mem_free)(struct gg_device_impl *device, enum gg_memory_kind kind, void *pointer);
    /** Success with GG_MEMORY_HOST for a pointer that the driver does not know. */
    gg_status (*pointer_info)(struct gg_device_impl *device, const void *pointer,
                              struct gg_pointer_info *info);

    /* -- copy -- */

    /** Copy in stream order; returns when queued. nbytes > 0, the ranges are valid and disjoint. With pageable != 0 the host
     *  memory is not pinned: the call may wait, and the core synchronizes the stream before it releases that
     *  memory. */
    gg_status (*copy)(struct gg_stream_impl *stream, void *dst, const void *src, size_t nbytes,
                      enum gg_copy_kind kind, int32_t pageable);
    /** Write @p count copies of a pattern of 1, 2 or 4 bytes. @p dst is aligned to the pattern's size. */
    gg_status (*fill)(struct gg_stream_impl *stream, void *dst, uint32_t pattern,
                      uint32_t pattern_size, size_t count);

    /* -- stream -- */

    /** The device's default stream, owned by the device; the same pointer at each call. With
     *  GG_DEVICE_SHARED_DEFAULT it is the vendor's own (CUDA's legacy default stream). */
    gg_status (*stream_default)(struct gg_device_impl *device, struct gg_stream_impl **out);
    /** @p flags: enum gg_stream_flag. @p priority is in the range of stream_priority_range. */
    gg_status (*stream_create)(struct gg_device_impl *device, uint32_t flags, int32_t priority,
                               struct gg_stream_impl **out);
    /** The stream is idle. For a borrowed stream, free only what stream_borrow allocated. */
    void (*stream_destroy)(struct gg_stream_impl *stream);
    /** Wrap a native handle. Set GG_STREAM_OF_THREAD in *flags if the handle means a different stream in
     *  each thread (the core then restricts it to the calling thread), and GG_STREAM_NONBLOCKING unless it
     *  is known to synchronize with the default stream. For the device's default stream set *is_default
     *  and *out to the result of stream_default. */
    gg_status (*stream_borrow)(struct gg_device_impl *device, uint64_t native, uint32_t *flags,
                               int32_t *is_default, struct gg_stream_impl **out);
    /** Native handles, valid as long as the stream. Unused entries are 0. */
    gg_status (*stream_native)(struct gg_stream_impl *stream, uint64_t handles[4]);
    /** GG_OK or GG_NOT_READY. An asynchronous error may be reported once, as GG_ERR_DEVICE: if an internal
     *  query of the core consumes it, the core stores it for the next user call. */
    gg_status (*stream_query)(struct gg_stream_impl *stream);
    /** Wait for all work queued now; GG_NOT_READY if @p timeout_ns is up. */
    gg_status (*stream_wait)(struct gg_stream_impl *stream, uint64_t timeout_ns);
    /** Wait on the device for the last recording of the event, which may be of another device. */
    gg_status (*stream_wait_event)(struct gg_stream_impl *stream, struct gg_event_impl *event);
    /** Whether the stream is being captured into a graph. Called after nearly every submission, unless the stream
     *  cannot be captured: stream_create made it, stream_native was never called, and it waited for no stream or
     *  event that may be captured. A failure records no error details. GG_ERR_UNSUPPORTED if the driver cannot
     *  report it now: a default stream then counts as captured. */
    gg_status (*stream_capturing)(struct gg_stream_impl *stream, int32_t *capturing);
    /** The least and the most urgent priority; lower is more urgent. */
    gg_status (*stream_priority_range)(struct gg_device_impl *device, int32_t *least,
                                       int32_t *greatest);
    /** Queue a host function, which runs in stream order on a thread of the driver or of the backend. */
    gg_status (*stream_host_func)(struct gg_stream_impl *stream, void (*function)(void *),
                                  void *argument);

    /* -- event: flags are enum gg_event_flag. An event may be recorded any number of times; each recording
     *    replaces the previous one. Query, wait and elapsed are called on recorded events only. -- */
    /** @p flags: enum gg_event_flag. */
    gg_status (*event_create)(struct gg_device_impl *device, uint32_t flags,
                              struct gg_event_impl **out);
    void (*event_destroy)(struct gg_event_impl *event); /**< the last recording is complete */
    /** Wrap a native event. event_destroy then frees only what this call allocated. */
    gg_status (*event_borrow)(struct gg_device_impl *device, uint64_t native,
                              struct gg_event_impl **out);
    /** Native handles, valid as long as the event. Unused entries are 0. */
    gg_status (*event_native)(struct gg_event_impl *event, uint64_t handles[4]);
    /** Record after all work queued so far on a stream of the same device. */
    gg_status (*event_record)(struct gg_event_impl *event, struct gg_stream_impl *stream);
    gg_status (*event_query)(struct gg_event_impl *event); /**< or GG_NOT_READY */
    gg_status (*event_wait)(struct gg_event_impl *event, uint64_t timeout_ns); /**< or GG_NOT_READY */
    /** Milliseconds; GG_NOT_READY if either is not complete. Both were created with GG_EVENT_TIMING. */
    gg_status (*event_elapsed)(struct gg_event_impl *start, struct gg_event_impl *stop,
                               double *milliseconds);

    /** Whether an optional slot of the table works with this driver on this device (0 or 1). If this slot
     *  is NULL, every slot of the table works. */
    int32_t (*device_supports)(struct gg_device_impl *device, gg_op op);
    /** Write 8 bytes to @p dst, in device or pinned memory aligned to 8, in stream order and without reading
     *  host memory later. Provide it where it is cheaper than the smallest copy. The word is written
     *  atomically after all earlier work on the stream: the host may poll for it. */
    gg_status (*write_word)(struct gg_stream_impl *stream, void *dst, uint64_t value);

    /* -- registered host memory, managed memory, stream-ordered allocation -- */

    /** Pin host memory at any address, so that the device accesses it there. Its pages hold no other
     *  registered memory; other bytes on them remain pageable for the driver. GG_NOT_READY: it is locked, but the
     *  device has it at another address, so that only copies may use it. */
    gg_status (*mem_register)(struct gg_device_impl *device, void *pointer, size_t nbytes);
    /** Undo mem_register of idle memory. May wait for the device. */
    gg_status (*mem_unregister)(struct gg_device_impl *device, void *pointer);
    /** Migrate managed memory to the stream's device or to the host, in stream order. */
    gg_status (*mem_prefetch)(struct gg_stream_impl *stream, const void *pointer, size_t nbytes,
                              int32_t to_host);
    /** Advise how managed memory will be used, by the device or by the host. */
    gg_status (*mem_advise)(struct gg_device_impl *device, const void *pointer, size_t nbytes,
                            enum gg_advice advice, int32_t for_host);
    /** Allocate device memory from the vendor's pool, in stream order. */
    gg_status (*mem_alloc_async)(struct gg_stream_impl *stream, size_t nbytes, void **out);
    /** Free it in stream order, after all its uses. */
    gg_status (*mem_free_async)(struct gg_stream_impl *stream, void *pointer);
    /* -- boxes -- */

    /** Copy a box in stream order, as copy does; host memory is pinned. With GG_COPY_D2D one side may be memory from
     *  mem_alloc of a device that peer_enable was called for in both directions: the core tests once whether such a copy
     *  arrives. Without this slot the core copies row by row. */
    gg_status (*copy_region)(struct gg_stream_impl *stream, void *dst, const void *src,
                             const struct gg_region *region, enum gg_copy_kind kind);

    /* -- module: a kernel_impl belongs to its module and is freed with it -- */

    /** @p image is the metadata that the core read from the @p nbytes at @p bytes. GG_ERR_INVALID_ARGUMENT,
     *  naming both architectures, for an image that the device does not accept. */
    gg_status (*module_load)(struct gg_device_impl *device, const struct gg_image *image,
                             const void *bytes, size_t nbytes, struct gg_module_impl **out);
    /** Unload a module whose kernels are not queued or running, and whose variables are not in use. May wait for the
     *  device. */
    void (*module_unload)(struct gg_module_impl *module);
    /** GG_NOT_READY here means that the module has no variable of that name. */
    gg_status (*module_global)(struct gg_module_impl *module, const char *name, void **pointer,
                               size_t *nbytes);
    /** GG_NOT_READY if the module has no kernel of that name. */
    gg_status (*module_kernel)(struct gg_module_impl *module, const char *name,
                               struct gg_kernel_impl **out);
    /** Offset, size and, if known, kind of parameter @p index. GG_NOT_READY after the last one;
     *  GG_ERR_UNSUPPORTED if the driver does not report parameters. */
    gg_status (*kernel_parameter)(struct gg_kernel_impl *kernel, uint32_t index,
                                  struct gg_parameter *parameter);
    /** GG_ERR_UNSUPPORTED for an attribute that the driver does not report. Sizes are in bytes. */
    gg_status (*kernel_attribute)(struct gg_kernel_impl *kernel, gg_kernel_attribute attribute,
                                  int64_t *value);
    /** Blocks of that many threads and bytes of dynamic shared memory that one multiprocessor runs at a time. */
    gg_status (*kernel_occupancy)(struct gg_kernel_impl *kernel, uint32_t threads, size_t shared,
                                  int32_t *blocks);
    /** Threads and blocks for the highest occupancy. @p limit: largest block to consider; 0: the device's limit. */
    gg_status (*kernel_suggest_block_size)(struct gg_kernel_impl *kernel, size_t shared,
                                           uint32_t limit, uint32_t *threads, uint32_t *blocks);
    /** Allow launches with up to @p shared bytes of dynamic shared memory, above the default limit. */
    gg_status (*kernel_allow_shared)(struct gg_kernel_impl *kernel, uint32_t shared);
    /** The values of the arguments are read before the call returns. A value is NULL, and its size is that
     *  of the block's local memory, only for parameters of kind LOCAL. */
    gg_status (*kernel_launch)(struct gg_stream_impl *stream, struct gg_kernel_impl *kernel,
                               const struct gg_launch *launch);
    /** Call @p each with the name of every kernel. */
    gg_status (*module_names)(struct gg_module_impl *module,
                              void (*each)(void *user, const char *name), void *user);

    /* -- peer access between two open devices of this backend: all three slots or none -- */

    /** Whether @p device can access the memory of @p peer: 1 or 0. */
    gg_status (*peer_access)(struct gg_device_impl *device, struct gg_device_impl *peer,
                             int32_t *out);
    /** Enable that access. Does nothing if it is enabled. */
    gg_status (*peer_enable)(struct gg_device_impl *device, struct gg_device_impl *peer);
    /** Copy between them, on a stream of either; access is enabled in both directions. */
    gg_status (*copy_peer)(struct gg_stream_impl *stream, struct gg_device_impl *dst_device,
                           void *dst, struct gg_device_impl *src_device, const void *src,
                           size_t nbytes);

    /* -- memory shared with other processes -- */

    /** Handle with which another process can open device memory from mem_alloc. Opaque to the core; equal
     *  for equal memory. May wait for the device. */
    gg_status (*ipc_export)(struct gg_device_impl *device, const void *pointer,
                            uint8_t native[GG_IPC_NATIVE_SIZE]);
    /** Map memory of that device which another process exported. The core does not open a handle again
     *  before it is closed. */
    gg_status (*ipc_open)(struct gg_device_impl *device, const uint8_t native[GG_IPC_NATIVE_SIZE],
                          void **out);
    /** Unmap idle memory from ipc_open. May wait for the device. */
    gg_status (*ipc_close)(struct gg_device_impl *device, void *pointer);

    /* -- statistics -- */

    /** Load, memory, power and so on of device @p ordinal, which need not be open. Every value of *stats is "unknown"
     *  when the call begins; set those that the vendor reports. stats->processes is an array of process_room
     *  entries. Load the vendor's management library at the first call, not in probe. Identify the device by its UUID or PCI
     *  address: such libraries ignore the visibility variables and number the devices differently. May be called on several
     *  threads at the same time; hold no lock while the vendor's library works. GG_ERR_UNSUPPORTED, with what was tried, if
     *  there is no such library or it does not know the device. */
    gg_status (*device_stats)(int32_t ordinal, struct gg_device_stats *stats);

    /* -- ranges -- */

    /** Find the vendor's profiler, if one listens in this process, and set its functions in *tool, whose other members
     *  the core has set. GG_OK also if there is none: then tool->push stays NULL. Called once per process, after the
     *  first device_open. It must not load a library for which there is no sign of a profiler. */
    gg_status (*range_tool)(struct gg_range_tool *tool);

    /* -- graphs: a backend has all of these slots or none; graph_update alone is optional. No two of these calls use
     * the same graph at a time. Without stream_capturing the core records the operations itself, and uses only
     * capture_begin, capture_end, graph_launch and graph_destroy: it queues the recorded operations once more, on a
     * stream that stream_create made for this, between capture_begin and capture_end. Then no event, no wait and no
     * other device is part of a capture, the graph is launched on streams that the backend created, and a failure
     * before the first launch is not an error: launches then queue the operations -- */

    /** Record the work that is queued on the stream from now on instead of running it, in relaxed mode: calls of any
     *  thread do not invalidate the capture. The stream is not captured yet, and is not the device's default stream. */
    gg_status (*capture_begin)(struct gg_stream_impl *stream);
    /** End a capture that capture_begin began on any thread. With @p out the recorded work becomes a graph that can be
     *  launched; NULL drops it. The stream is no longer captured, even if the call fails. */
    gg_status (*capture_end)(struct gg_stream_impl *stream, struct gg_graph_impl **out);
    /** Queue the graph's work, on a stream of the same device that is not captured. The core orders launches of one graph. */
    gg_status (*graph_launch)(struct gg_stream_impl *stream, struct gg_graph_impl *graph);
    /** Replace the work of later launches of @p graph by that of @p other. GG_ERR_INVALID_ARGUMENT, and no change, if
     *  they differ in more than the driver can change. Both remain valid and independent of each other. */
    gg_status (*graph_update)(struct gg_graph_impl *graph, struct gg_graph_impl *other);
    /** Destroy a graph whose launches are complete. */
    void (*graph_destroy)(struct gg_graph_impl *graph);
    /** Store the id of the stream's capture, even if other code began it. The id is the same for all handles and streams
     *  of the capture, and is never used again in the process. 0: the stream is not captured, or its capture is invalid. */
    gg_status (*capture_id)(struct gg_stream_impl *stream, uint64_t *id);

    /* -- SPIR-V, which the driver compiles: both slots or none -- */

    /** As module_load. The image and all inputs are SPIR-V. @p image has the kernels and constants of all of them,
     *  including the constants of @p options, which is a complete struct. GG_ERR_UNSUPPORTED if the driver does not link. */
    gg_status (*module_load_with)(struct gg_device_impl *device, const struct gg_image *image,
                                  const void *bytes, size_t nbytes,
                                  const struct gg_module_options *options,
                                  struct gg_module_impl **out);
    /** Store the size of the machine code in *nbytes. If @p binary is not NULL, it has that size: store the code. */
    gg_status (*module_binary)(struct gg_module_impl *module, void *binary, size_t *nbytes);

    /* -- memory -- */

    /** Whether pointer_info would report another kind than GG_MEMORY_HOST. Must not invalidate captures outside capture_mode
     *  either. GG_NOT_READY: unknown, and the core calls pointer_info. */
    gg_status (*pointer_known)(struct gg_device_impl *device, const void *pointer, int32_t *known);
};

/* ---- collective operations ------------------------------------------------------------------- */

/** Bytes of the id with which the ranks of a communicator find each other. */
#define GG_COMM_ID_SIZE 128

/** One operation of a communicator. Sizes are in elements for reductions, and in bytes for all others. */
struct gg_comm_task {
    uint32_t struct_size;        /**< sizeof(struct gg_comm_task) */
    gg_comm_operation operation; /**< which one */
    void *dst;                   /**< what the operation writes, or NULL */
    const void *src;             /**< what it reads, or NULL */
    size_t count;                /**< of a block */
    size_t dst_count;            /**< GG_COMM_SEND_RECV: of what is received */
    gg_comm_type type;           /**< of a reduction */
    gg_comm_reduction reduction; /**< likewise */
    int32_t root;                /**< of the operation; the other rank of a message */
    int32_t from;                /**< GG_COMM_SEND_RECV: the rank that sends to this one */
};

/** Collective operations of the vendor's library for them, which is separate from the driver. All slots are required.
 *  The core checks arguments, finds the library when a communicator first needs it, and never calls two of these
 *  functions for one communicator at a time, except `state`, and `destroy` with @p abort. */
struct gg_comm_ops {
    uint32_t struct_size;                  /**< sizeof as compiled into the plugin */
    uint32_t reserved;                     /**< 0 */
    const char *name;                      /**< of the transport: "nccl" */
    const struct gg_library_spec *library; /**< where the core searches for it */
    /** Resolve the library's functions. *version is 10000 * major + 100 * minor + patch. If the library cannot be used,
     *  GG_ERR_UNSUPPORTED with the reason. */
    gg_status (*open)(const struct gg_library *library, int32_t *version);
    /** Make the id of a new communicator, on one rank. */
    gg_status (*id)(uint8_t id[GG_COMM_ID_SIZE]);
    /** Create this rank's part, with all other ranks. May wait for them. */
    gg_status (*create)(struct gg_device_impl *device, const uint8_t id[GG_COMM_ID_SIZE],
                        int32_t size, int32_t rank, struct gg_comm_impl **out);
    /** Wrap a native communicator of that device, and store its rank and size. destroy frees only what this call
     *  allocated. */
    gg_status (*borrow)(struct gg_device_impl *device, uint64_t native, int32_t *size,
                        int32_t *rank, struct gg_comm_impl **out);
    /** Without @p abort: all work of all ranks is complete. With it: end the work on the device, and calls that wait in
     *  other threads, but keep the object: `destroy` without @p abort follows and frees it. */
    void (*destroy)(struct gg_comm_impl *comm, int32_t abort);
    /** GG_OK, or the error that ended work on the device. */
    gg_status (*state)(struct gg_comm_impl *comm);
    /** Queue tasks on a stream of the device as one group, in which all progress at the same time. */
    gg_status (*run)(struct gg_comm_impl *comm, struct gg_stream_impl *stream,
                     const struct gg_comm_task *tasks, size_t count);
    /** Whether a reduction is supported. */
    int32_t (*reduces)(gg_comm_type type, gg_comm_reduction reduction);
    uint64_t (*native)(struct gg_comm_impl *comm); /**< the vendor's handle */
};

/* ---- the descriptor --------------------------------------------------------------------------- */

/** What a plugin returns from gg_backend_query. */
struct gg_backend_desc {
    uint32_t magic;       /**< GG_BACKEND_MAGIC */
    uint32_t struct_size; /**< sizeof as compiled into the plugin */
    uint16_t abi_major,   /**< GG_BACKEND_ABI_MAJOR */
        abi_minor;        /**< GG_BACKEND_ABI_MINOR */
    int32_t priority; /**< in "auto": cuda 300, hip 200, ze 100; negative: only as a last resort */
    const char *name; /**< "cuda": [a-z][a-z0-9_]{0,14}, also the suffix of the file's name */
    const char *version;              /**< of the plugin */
    const struct gg_backend_ops *ops; /**< static */
    const char *aliases; /**< other names that users type, separated by ',', or NULL; a shorter struct has none */
    /** Collective operations, static; NULL, as in a shorter struct: none. */
    const struct gg_comm_ops *comm_ops;
};

/** Type of gg_backend_query. */
typedef int gg_backend_query_fn(uint32_t core_abi, const struct gg_host_api *host,
                                const struct gg_backend_desc **out);

/** The only exported symbol of a plugin. Must not open libraries, start threads or call the vendor's library.
 *
 *  @param core_abi  gg_abi()
 *  @param host      lives as long as the process
 *  @param[out] out  a static descriptor
 *  @return 0; nonzero if the plugin does not support that core */
GG_API int gg_backend_query(uint32_t core_abi, const struct gg_host_api *host,
                            const struct gg_backend_desc **out);

GG_END_DECLS
#endif
