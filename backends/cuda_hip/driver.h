/* driver.h: what the files of this folder share, and what a vendor tells them (struct twin).
 *
 * Two vendors' drivers are mirror images: one body runs both, over a table of functions filled from
 * driver.def. A plugin is this folder and one file that defines `twin`. */
#ifndef GPUGLUE_TWIN_DRIVER_H
#define GPUGLUE_TWIN_DRIVER_H

#include <gpuglue/backend.h>

#include "ipc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define TWIN_FENCES 16 /* spare events that a device keeps for waits */

/* Device addresses are 64-bit integers for one vendor and pointers for the other. Every 64-bit calling
 * convention passes the two alike, which lets one table serve both. */
_Static_assert(sizeof(void *) == sizeof(unsigned long long), "64-bit only");
_Static_assert(sizeof(size_t) == sizeof(unsigned long long), "64-bit only");

/* ---- the driver's functions -------------------------------------------------------------------- */

struct twin_driver {
#define FN(slot, parameters, first, second, need, context) int(*slot) parameters;
#include "driver.def"
#undef FN
};

enum twin_context { TWIN_ANYWHERE, TWIN_STREAM, TWIN_DEVICE };

/* The context column: TWIN_AT_copy_h2d and so on. */
enum twin_row {
#define FN(slot, parameters, first, second, need, context) TWIN_AT_##slot = context,
#include "driver.def"
#undef FN
};

/* ---- what a vendor says ------------------------------------------------------------------------ */

struct twin_error {
    int code;
    gg_status status;
    const char *name, *text;
};

/* What a code of init or device_count means for a user, and what to do about it. */
struct twin_verdict {
    int code;
    gg_probe_status status;
    const char *sentence;
};

/* Everything in which the two differ: numbers, and functions where the prototypes do. Functions that
 * return int return the driver's code. */
struct twin {
    const char *name; /* of the plugin */
    struct gg_library_spec library;
    const struct gg_symbol *symbols; /* driver.def, in the vendor's column */
    size_t symbol_count;
    const struct gg_symbol *own_symbols; /* of the functions below */
    size_t own_symbol_count;
    void *own;

    const struct twin_error *errors; /* codes with a meaning; all others are GG_ERR_DEVICE */
    size_t error_count;
    int invalid_value, not_ready, not_supported;
    const int *attributes; /* by gg_attribute; negative: the vendor has none */
    int integrated;        /* the attribute */
    int word_attribute;    /* of devices that write_word works on */
    unsigned stream_nonblocking, event_no_timing, event_blocking, pinned_flags;
    unsigned managed_flags, register_flags, ipc_flags;
    int capture_relaxed;
    bool writes_words; /* write_word takes any device memory */
    int version_min;
    /* Handles that name no stream object. To everyone 0 and 1 mean the default stream and 2 means the
     * per-thread one; per_thread_stream 0: it is not taken. */
    uintptr_t default_stream, per_thread_stream;

    void (*version_text)(int version, char *out, size_t size);
    /* Status and reason for a code of init or device_count. */
    void (*explain)(int code, struct gg_probe_result *result);
    /* Why it would be in vain to search for the library on this machine; NULL, or NULL returned: it is
     * searched for. A user who names the backend is obeyed all the same. */
    const char *(*in_vain)(void);
    /* Notes beside the verdict: masks, device nodes, other runtimes. */
    void (*remark)(enum gg_probe_level level, int version, const struct gg_probe_result *result);

    int (*device_arch)(int device, char *out, size_t size);
    int (*device_uuid)(int device, uint8_t uuid[16], bool *known);
    /* The vendor's handles of an open device. */
    void (*device_native)(int device, void *context, uint64_t handles[4]);
    /* What is current in a thread is one pointer-sized value; NULL where there is nothing. */
    int (*context_retain)(int device, void **out);
    int (*context_release)(int device);
    int (*context_get)(void **current);
    int (*context_set)(void *context);
    /* The ordinal whose shared context @p context, the current one, is although nobody here retained
     * it; or -1. */
    int32_t (*context_ordinal)(void *context);
    /* Record behind all work of a context. */
    int (*context_record)(void *context, void *event);
    int (*pointer_info)(const void *pointer, struct gg_pointer_info *info);
    /* A box of bytes; @p kind is known. */
    int (*copy_region)(void *dst, const void *src, const struct gg_region *region,
                       enum gg_copy_kind kind, void *stream);
    /* Let work of the device that is current reach the memory of @p peer; peer_enabled: it can already. */
    int (*peer_enable)(struct gg_device_impl *peer);
    int peer_enabled;
    int (*copy_peer)(void *dst, struct gg_device_impl *dst_device, const void *src,
                     struct gg_device_impl *src_device, size_t nbytes, void *stream);
    /* In place of host_func where the driver has no such row; NULL: nothing is. */
    int (*host_func)(void *stream, void (*function)(void *), void *argument);
    /* Where a failed call leaves its code in the thread, for whoever asks next for the last error: take
     * it away, other code must not stumble on a failure or a "not ready" of ours. NULL: none is left. */
    void (*clear_error)(void);
    /* Of a kernel's function. NULL: the vendor has nothing like it, or not_supported is answered where a
     * driver is too old. parameter answers invalid_value behind the last. */
    int (*allow_shared)(void *function, int nbytes);
    int (*suggest)(void *function, size_t shared, int limit, int *blocks, int *threads);
    int (*parameter)(void *function, size_t index, size_t *offset, size_t *size);
    int (*names)(void *module, void (*each)(void *user, const char *name), void *user);
    int not_found; /* the code for a name that a module does not have */
    /* Whether an optional operation made of these functions has what it needs. */
    bool (*supports)(gg_op op);
};

extern const struct twin twin; /* the plugin's own file defines it */

/* ---- what the body keeps ------------------------------------------------------------------------ */

struct gg_stream_impl {
    void *native;
    struct gg_device_impl *device;
    struct gg_device_impl *enters; /* device, where the handle is a special one; else NULL */
    bool owned;
};

struct gg_event_impl {
    void *native;
    struct gg_device_impl *device;
    bool owned, blocking;
};

/* Kernels live in their module's list, so that the same name is asked for once. */
struct gg_kernel_impl {
    struct gg_kernel_impl *next;
    struct gg_module_impl *module;
    void *function;
    char name[];
};

struct gg_module_impl {
    void *native;
    struct gg_device_impl *device;
    pthread_mutex_t lock; /* kernels */
    struct gg_kernel_impl *kernels;
};

struct gg_device_impl {
    void *context;
    int device; /* the driver's handle */
    int32_t ordinal;
    struct gg_stream_impl default_stream;
    pthread_mutex_t lock; /* fences */
    void *fences[TWIN_FENCES];
    int fence_count;
};

extern const struct gg_host_api *twin_host; /* set by gg_backend_query */
extern const struct gg_backend_ops twin_ops;
extern struct twin_driver twin_driver; /* filled by the first probe that finds the library */
/* By ordinal, the contexts of open devices; there are twin_device_count. */
extern _Atomic(void *) *twin_contexts;
extern int twin_device_count;

/* ---- status: driver.c ---------------------------------------------------------------------------- */

/* GG_NOT_READY, or record what the driver said, and return the status for it. @p format: the figures. */
gg_status twin_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The status of @p code where it is an answer and no failure to tell of. */
gg_status twin_answer(int code);
/* GG_ERR_UNSUPPORTED for an optional function that this driver does not have. */
gg_status twin_missing(size_t slot);
gg_status twin_no_memory(size_t nbytes, const char *what);
/* Whether the driver is gone already, as at the end of a process: nothing is left to destroy. */
bool twin_is_gone(int code);
const char *twin_code_name(int code); /* of our own table: needs no driver; NULL: not known */
/* A call that nobody can be told the failure of. */
void twin_forget(int code, const char *what);

/* Passes on a code that is not told to anybody as it is; twin_fail and twin_forget clear by themselves. */
static inline int twin_clear(int code)
{
    if (code && twin.clear_error)
        twin.clear_error();
    return code;
}

/* ---- why a driver does not serve: why.c ------------------------------------------------------------ */

/* The row of @p code, or a general one. The list ends with a row of no sentence. */
const struct twin_verdict *twin_find_verdict(const struct twin_verdict *verdicts, int code);
/* A device node that is there and may not be used; drivers only say that they failed. NULL: none. */
const char *twin_refused_node(const char *const *nodes);
/* Status and reason of a verdict; "(the driver answered …)" is added. */
void twin_say(const struct twin_verdict *verdict, int code, struct gg_probe_result *result);
/* A variable that is set and hides devices, in the reason or as a note. */
void twin_append_mask(const char *variable, struct gg_probe_result *result);
void twin_note_mask(const char *variable, const struct gg_probe_result *result);

/* ---- contexts: device.c -------------------------------------------------------------------------- */

struct twin_guard {
    void *saved;
    bool switched;
};

int twin_switch(const struct gg_device_impl *device, struct twin_guard *guard);
void twin_switch_back(const struct twin_guard *guard);

/* Make current what a row needs (its column of driver.def, TWIN_AT_…). @p stream may be NULL for rows
 * that take none. Returns the driver's code; twin_leave is called in any case. */
static inline int twin_enter(struct twin_guard *guard, enum twin_row row,
                             const struct gg_device_impl *device,
                             const struct gg_stream_impl *stream)
{
    guard->switched = false;
    if ((int)row == TWIN_ANYWHERE || ((int)row == TWIN_STREAM && !stream->enters))
        return 0;
    return twin_switch(device, guard);
}

static inline void twin_leave(const struct twin_guard *guard)
{
    if (guard->switched)
        twin_switch_back(guard);
}

/* ---- waits: wait.c ------------------------------------------------------------------------------- */

/* Ask @p query about @p object until it is done, fails, or @p timeout_ns have passed: a code. */
int twin_poll(int (*query)(void *object), void *object, bool sleep_at_once, uint64_t timeout_ns);
/* The same for all that a stream has now, behind a fence, so that later work is not waited for. */
int twin_poll_stream(const struct gg_stream_impl *stream, uint64_t timeout_ns);
void twin_fences_destroy(struct gg_device_impl *device);

/* ---- the table's functions ---------------------------------------------------------------------- */

void twin_probe(enum gg_probe_level level, struct gg_probe_result *result);

gg_status twin_device_info(int32_t ordinal, struct gg_device_info *info);
gg_status twin_device_attribute(int32_t ordinal, gg_attribute attribute, int64_t *value);
gg_status twin_device_open(int32_t ordinal, struct gg_device_impl **out);
void twin_device_close(struct gg_device_impl *device);
gg_status twin_device_memory_info(struct gg_device_impl *device, uint64_t *free, uint64_t *total);
gg_status twin_device_synchronize(struct gg_device_impl *device);
gg_status twin_device_record(struct gg_device_impl *device, struct gg_event_impl *event);
int32_t twin_device_supports(struct gg_device_impl *device, gg_op op);
gg_status twin_device_native(struct gg_device_impl *device, uint64_t handles[4]);
gg_status twin_device_enter(struct gg_device_impl *device, void **saved);
void twin_device_leave(void *saved);
int32_t twin_device_current(void);
gg_status twin_capture_mode(struct gg_device_impl *device, int32_t relaxed, int32_t *mode);

gg_status twin_mem_alloc(struct gg_device_impl *device, enum gg_memory_kind kind, size_t nbytes,
                         void **out);
gg_status twin_mem_free(struct gg_device_impl *device, enum gg_memory_kind kind, void *pointer);
gg_status twin_mem_register(struct gg_device_impl *device, void *pointer, size_t nbytes);
gg_status twin_mem_unregister(struct gg_device_impl *device, void *pointer);
gg_status twin_pointer_info(struct gg_device_impl *device, const void *pointer,
                            struct gg_pointer_info *info);

gg_status twin_alloc_managed(struct gg_device_impl *device, size_t nbytes, void **out);
gg_status twin_mem_prefetch(struct gg_stream_impl *stream, const void *pointer, size_t nbytes,
                            int32_t to_host);
gg_status twin_mem_advise(struct gg_device_impl *device, const void *pointer, size_t nbytes,
                          enum gg_advice advice, int32_t for_host);
gg_status twin_mem_alloc_async(struct gg_stream_impl *stream, size_t nbytes, void **out);
gg_status twin_mem_free_async(struct gg_stream_impl *stream, void *pointer);

gg_status twin_ipc_export(struct gg_device_impl *device, const void *pointer,
                          uint8_t native[GG_IPC_NATIVE_SIZE]);
gg_status twin_ipc_open(struct gg_device_impl *device, const uint8_t native[GG_IPC_NATIVE_SIZE],
                        void **out);
gg_status twin_ipc_close(struct gg_device_impl *device, void *pointer);

gg_status twin_copy(struct gg_stream_impl *stream, void *dst, const void *src, size_t nbytes,
                    enum gg_copy_kind kind, int32_t pageable);
gg_status twin_fill(struct gg_stream_impl *stream, void *dst, uint32_t pattern,
                    uint32_t pattern_size, size_t count);
gg_status twin_write_word(struct gg_stream_impl *stream, void *dst, uint64_t value);
gg_status twin_peer_access(struct gg_device_impl *device, struct gg_device_impl *peer, int32_t *out);
gg_status twin_peer_enable(struct gg_device_impl *device, struct gg_device_impl *peer);
gg_status twin_copy_peer(struct gg_stream_impl *stream, struct gg_device_impl *dst_device, void *dst,
                         struct gg_device_impl *src_device, const void *src, size_t nbytes);
gg_status twin_copy_region(struct gg_stream_impl *stream, void *dst, const void *src,
                           const struct gg_region *region, enum gg_copy_kind kind);

gg_status twin_stream_default(struct gg_device_impl *device, struct gg_stream_impl **out);
gg_status twin_stream_create(struct gg_device_impl *device, uint32_t flags, int32_t priority,
                             struct gg_stream_impl **out);
void twin_stream_destroy(struct gg_stream_impl *stream);
gg_status twin_stream_borrow(struct gg_device_impl *device, uint64_t native, uint32_t *flags,
                             int32_t *is_default, struct gg_stream_impl **out);
gg_status twin_stream_native(struct gg_stream_impl *stream, uint64_t handles[4]);
gg_status twin_stream_query(struct gg_stream_impl *stream);
gg_status twin_stream_wait(struct gg_stream_impl *stream, uint64_t timeout_ns);
gg_status twin_stream_wait_event(struct gg_stream_impl *stream, struct gg_event_impl *event);
gg_status twin_stream_capturing(struct gg_stream_impl *stream, int32_t *capturing);
gg_status twin_stream_priority_range(struct gg_device_impl *device, int32_t *least,
                                     int32_t *greatest);
gg_status twin_stream_host_func(struct gg_stream_impl *stream, void (*function)(void *),
                                void *argument);

gg_status twin_event_create(struct gg_device_impl *device, uint32_t flags,
                            struct gg_event_impl **out);
void twin_event_destroy(struct gg_event_impl *event);
gg_status twin_event_borrow(struct gg_device_impl *device, uint64_t native,
                            struct gg_event_impl **out);
gg_status twin_event_native(struct gg_event_impl *event, uint64_t handles[4]);
gg_status twin_event_record(struct gg_event_impl *event, struct gg_stream_impl *stream);
gg_status twin_event_query(struct gg_event_impl *event);
gg_status twin_event_wait(struct gg_event_impl *event, uint64_t timeout_ns);
gg_status twin_event_elapsed(struct gg_event_impl *start, struct gg_event_impl *stop,
                             double *milliseconds);

gg_status twin_module_load(struct gg_device_impl *device, const struct gg_image *image,
                           const void *bytes, size_t nbytes, struct gg_module_impl **out);
void twin_module_unload(struct gg_module_impl *module);
gg_status twin_module_global(struct gg_module_impl *module, const char *name, void **pointer,
                             size_t *nbytes);
gg_status twin_module_kernel(struct gg_module_impl *module, const char *name,
                             struct gg_kernel_impl **out);
gg_status twin_module_names(struct gg_module_impl *module,
                            void (*each)(void *user, const char *name), void *user);
gg_status twin_kernel_parameter(struct gg_kernel_impl *kernel, uint32_t index,
                                struct gg_parameter *parameter);
gg_status twin_kernel_attribute(struct gg_kernel_impl *kernel, gg_kernel_attribute attribute,
                                int64_t *value);
gg_status twin_kernel_occupancy(struct gg_kernel_impl *kernel, uint32_t threads, size_t shared,
                                int32_t *blocks);
gg_status twin_kernel_suggest(struct gg_kernel_impl *kernel, size_t shared, uint32_t limit,
                              uint32_t *threads, uint32_t *blocks);
gg_status twin_kernel_allow_shared(struct gg_kernel_impl *kernel, uint32_t shared);
gg_status twin_kernel_launch(struct gg_stream_impl *stream, struct gg_kernel_impl *kernel,
                             const struct gg_launch *launch);

/* fits.c: GG_OK where the device takes an image; else the refusal, naming both. */
gg_status twin_image_fits(struct gg_device_impl *device, const struct gg_image *image);

#endif
