/* driver.h: what the files of this directory share, and what a vendor defines (struct cuhip_vendor).
 *
 * Two vendors have drivers of nearly the same shape. This code implements both, through a table of functions that
 * is filled from driver.def. A plugin is this directory and one file that defines `cuhip`. */
#ifndef GPUGLUE_CUHIP_DRIVER_H
#define GPUGLUE_CUHIP_DRIVER_H

#include <gpuglue/backend.h>

#include "ipc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define CUHIP_MAX_FENCES 16 /* spare events that a device keeps for its waits */

/* Device addresses are 64-bit integers for one vendor and pointers for the other. Every 64-bit calling
 * convention passes both the same way, so one table is enough. */
_Static_assert(sizeof(void *) == sizeof(unsigned long long), "64-bit only");
_Static_assert(sizeof(size_t) == sizeof(unsigned long long), "64-bit only");

/* ---- the driver's functions -------------------------------------------------------------------- */

struct cuhip_driver {
#define FN(slot, parameters, first, second, need, context) int(*slot) parameters;
#include "driver.def"
#undef FN
};

enum cuhip_context_need { CUHIP_ANY_CONTEXT, CUHIP_STREAM_CONTEXT, CUHIP_DEVICE_CONTEXT };

/* The column `context` of driver.def: CUHIP_AT_copy_h2d and so on. */
enum cuhip_context_of_slot {
#define FN(slot, parameters, first, second, need, context) CUHIP_AT_##slot = context,
#include "driver.def"
#undef FN
};

/* ---- what a vendor defines ---------------------------------------------------------------------- */

struct cuhip_error {
    int code;
    gg_status status;
    const char *name, *text;
};

/* What a code of init or device_count means for the user, and what to do about it. */
struct cuhip_diagnosis {
    int code;
    gg_probe_status status;
    const char *sentence;
};

/* All differences between the two: numbers, and functions whose prototypes differ. Functions that return int
 * return the driver's code. */
struct cuhip_vendor {
    const char *name;    /* of the plugin */
    int32_t priority;    /* of the plugin: see gg_backend_desc */
    const char *aliases; /* likewise */
    struct gg_library_spec library;
    const char *comm_name; /* of the vendor's library of collective operations */
    struct gg_library_spec comm_library;
    const struct gg_symbol *symbols; /* of driver.def, from the vendor's column */
    size_t symbol_count;
    const struct gg_symbol *own_symbols; /* of the functions below */
    size_t own_symbol_count;
    void *own;

    const struct cuhip_error *errors; /* the known codes; all others are GG_ERR_DEVICE */
    size_t error_count;
    int invalid_value, not_ready, not_supported;
    const int *attributes;    /* by gg_attribute; negative: the vendor has none */
    int integrated;           /* the number of that attribute */
    int word_attribute;       /* set for devices on which write_word works */
    int registered_attribute; /* set for devices that access registered memory at its host address */
    unsigned stream_nonblocking, event_no_timing, event_blocking, pinned_flags;
    int advice_coarse; /* the number of coarse-grained coherence; its opposite follows; -1: there is none */
    unsigned managed_flags, register_flags;
    int capture_relaxed;
    int capture_error_first, capture_error_last; /* the range of codes for captures */
    bool captures_partly; /* some work on a captured stream runs at once: cuhip_check_capturable */
    bool updates_partly;  /* an update that fails may have changed a part of the graph */
    bool writes_words;    /* write_word accepts any device memory */
    int version_min;
    /* Handles that are not stream objects. By convention 0 and 1 are the default stream and 2 is the
     * per-thread one. per_thread_stream is 0 if the vendor has none. */
    uintptr_t default_stream, per_thread_stream;

    void (*version_text)(int version, char *out, size_t size);
    /* Status and reason for a code of init or device_count. */
    void (*diagnose)(int code, struct gg_probe_result *result);
    /* Why a search for the library would fail on this machine; NULL, or NULL returned: it is searched for.
     * It is also searched for if the user names the backend. */
    const char *(*skip_reason)(void);
    /* Notes in the report beside the diagnosis: masks, device nodes, other runtimes. */
    void (*add_notes)(enum gg_probe_level level, int version, const struct gg_probe_result *result);

    /* Whether the driver can load a bundle of code objects; NULL: the vendor has none. */
    gg_status (*check_bundle)(const void *bytes);
    int (*device_arch)(int device, char *out, size_t size);
    int (*device_uuid)(int device, uint8_t uuid[16], bool *known);
    /* The vendor's handles of an open device. */
    void (*device_native)(int device, void *context, uint64_t handles[4]);
    /* A thread's current context, a pointer-sized value; NULL: none. */
    int (*context_retain)(int device, void **out);
    int (*context_release)(int device);
    int (*context_get)(void **current);
    int (*context_set)(void *context);
    /* The ordinal of the device whose shared context is @p context, the current one, although this backend
     * has not retained it; or -1. */
    int32_t (*context_ordinal)(void *context);
    /* Record an event after all work of a context. */
    int (*context_record)(void *context, void *event);
    /* The context of a stream. NULL: the vendor has no contexts. */
    int (*stream_context)(void *stream, void **context);
    int (*pointer_info)(const void *pointer, struct gg_pointer_info *info);
    /* Needs no context, and disturbs no capture; NULL: there is no such function. */
    int (*pointer_known)(const void *pointer, int32_t *known);
    /* The only flags with which the driver opens memory of another process. */
    unsigned (*ipc_flags)(void);
    /* Copy a rectangular region; @p kind is valid. */
    int (*copy_region)(void *dst, const void *src, const struct gg_region *region,
                       enum gg_copy_kind kind, void *stream);
    /* Let the current device access the memory of @p peer. peer_enabled is the code for "already enabled". */
    int (*peer_enable)(struct gg_device_impl *peer);
    int peer_enabled;
    int (*copy_peer)(void *dst, struct gg_device_impl *dst_device, const void *src,
                     struct gg_device_impl *src_device, size_t nbytes, void *stream);
    /* Replaces the driver function host_func where the driver lacks it; may be NULL. */
    int (*host_func)(void *stream, void (*function)(void *), void *argument);
    /* Replaces the driver function event_query; may be NULL. */
    int (*event_query)(void *event);
    /* Clear the thread's last error if it is @p code, which a call of ours returned: other code must not find a
     * failure or a "not ready" of ours there. NULL: the vendor has no last error. */
    void (*clear_error)(int code);
    /* Of a kernel's function. NULL: the vendor has no such function. They return not_supported if the driver is
     * too old. `parameter` returns invalid_value after the last one. */
    int (*allow_shared)(void *function, int nbytes);
    int (*suggest)(void *function, size_t shared, int limit, int *blocks, int *threads);
    int (*parameter)(void *function, size_t index, size_t *offset, size_t *size);
    int (*names)(void *module, void (*each)(void *user, const char *name), void *user);
    int not_found; /* the code for a name that a module does not have */
    /* Make an executable graph of a captured one, and change one to do what another has captured. */
    int (*exec_create)(void **exec, void *graph);
    int (*exec_update)(void *exec, void *graph);
    /* Statistics of the device with this UUID or PCI address, from the vendor's management library. */
    gg_status (*stats)(const struct gg_device_info *facts, struct gg_device_stats *stats);
    gg_status (*range_tool)(struct gg_range_tool *tool);
    /* Whether an optional operation that uses these functions works with this driver. */
    bool (*supports)(gg_op op);
};

extern const struct cuhip_vendor cuhip; /* defined by the vendor's file */

/* ---- objects ------------------------------------------------------------------------------------ */

struct gg_stream_impl {
    void *native;
    struct gg_device_impl *device;
    struct gg_device_impl *enters; /* device, if the handle is a special one; else NULL */
    unsigned flags;                /* with which it was created, if it is owned */
    int priority;
    bool owned;
    atomic_bool exported; /* other code may have the handle */
};

struct gg_event_impl {
    void *native;
    struct gg_device_impl *device;
    bool owned, blocking;
    _Atomic(bool) shared;   /* other code has the handle, and may record it */
    _Atomic(bool) captured; /* while it was shared, its last record by gpuglue was captured */
};

/* Kernels are kept in their module's list, so that each name is looked up once. */
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

/* A captured graph, which others are updated from. It belongs to each executable graph that has its work. */
struct cuhip_recording {
    atomic_int references;
    struct gg_device_impl *device;
    void *native;
    pthread_mutex_t lock; /* of native */
};

struct gg_graph_impl {
    struct gg_device_impl *device;
    void *exec;
    struct cuhip_recording *recording;
    bool broken; /* neither the old work nor the new */
};

struct gg_device_impl {
    void *context;
    int device; /* the driver's handle */
    int32_t ordinal;
    struct gg_stream_impl default_stream;
    pthread_mutex_t lock; /* fences */
    void *fences[CUHIP_MAX_FENCES];
    int fence_count;
};

extern const struct gg_host_api *cuhip_api; /* set by gg_backend_query: the functions of the core */
extern const struct gg_backend_ops cuhip_ops;
extern struct cuhip_driver cuhip_driver; /* filled by the first probe that finds the library */
/* The contexts of open devices, by ordinal; there are cuhip_device_count. */
extern _Atomic(void *) *cuhip_contexts;
extern int cuhip_device_count;

/* ---- status: driver.c ---------------------------------------------------------------------------- */

/* Records the driver's error with @p format as detail, and returns its status; or returns GG_NOT_READY. */
gg_status cuhip_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The status of @p code where it is a result and not an error to report. */
gg_status cuhip_status_of(int code);
/* GG_ERR_UNSUPPORTED for an optional function that this driver lacks. */
gg_status cuhip_missing(size_t slot);
gg_status cuhip_no_memory(size_t nbytes, const char *what);
/* Whether the driver has shut down, as at the end of a process: there is nothing left to destroy. */
bool cuhip_is_shut_down(int code);
const char *cuhip_error_name(int code); /* from our own table: needs no driver; NULL: unknown */
/* Logs the failure of a call that has no caller to report to. */
void cuhip_log_failure(int code, const char *what);

/* Clears the last error if it is @p code, and returns @p code. cuhip_fail and cuhip_log_failure do it themselves. */
static inline int cuhip_clear_error(int code)
{
    if (code && cuhip.clear_error)
        cuhip.clear_error(code);
    return code;
}

static inline int cuhip_query_event(void *event)
{
    return cuhip.event_query ? cuhip.event_query(event) : cuhip_driver.event_query(event);
}

/* ---- why a driver is unavailable: probe_diagnosis.c ------------------------------------------------------------ */

/* The row of @p code, or a general one. The list ends with a row without a sentence. */
const struct cuhip_diagnosis *cuhip_find_diagnosis(const struct cuhip_diagnosis *diagnoses,
                                                   int code);
/* A device node that exists and cannot be accessed, which drivers do not report. NULL: none. */
const char *cuhip_find_denied_node(const char *const *nodes);
/* Sets status and reason from a diagnosis, with "(the driver returned …)". */
void cuhip_report_diagnosis(const struct cuhip_diagnosis *diagnosis, int code,
                            struct gg_probe_result *result);
/* Report a variable that is set and hides devices, in the reason or as a note. */
void cuhip_append_variable(const char *variable, struct gg_probe_result *result);
void cuhip_note_variable(const char *variable, const struct gg_probe_result *result);

/* ---- contexts: context.c ------------------------------------------------------------------------- */

struct cuhip_scope {
    void *saved;
    bool switched;
};

int cuhip_context_switch(const struct gg_device_impl *device, struct cuhip_scope *scope);
void cuhip_context_restore(const struct cuhip_scope *scope);

/* Make current what a driver function needs (CUHIP_AT_<slot>). @p stream may be NULL for functions that
 * take none. Returns the driver's code. cuhip_context_leave is called after a failure too. */
static inline int cuhip_context_enter(struct cuhip_scope *scope, enum cuhip_context_of_slot slot,
                                      const struct gg_device_impl *device,
                                      const struct gg_stream_impl *stream)
{
    scope->switched = false;
    if ((int)slot == CUHIP_ANY_CONTEXT || ((int)slot == CUHIP_STREAM_CONTEXT && !stream->enters))
        return 0;
    return cuhip_context_switch(device, scope);
}

static inline void cuhip_context_leave(const struct cuhip_scope *scope)
{
    if (scope->switched)
        cuhip_context_restore(scope);
}

/* The code of @p call, evaluated with the context that driver function @p slot needs. */
#define CUHIP_IN_CONTEXT(slot, device, stream, call)                               \
    __extension__({                                                                \
        struct cuhip_scope scope_;                                                 \
        int code_ = cuhip_context_enter(&scope_, CUHIP_AT_##slot, device, stream); \
        if (!code_)                                                                \
            code_ = (call);                                                        \
        cuhip_context_leave(&scope_);                                              \
        code_;                                                                     \
    })

/* The same for a call that releases something: it is made even if the context cannot be entered, since
 * the handle identifies its context. After the driver's shutdown there is nothing to release: 0. */
#define CUHIP_RELEASE(slot, device, stream, call)                                        \
    __extension__({                                                                      \
        struct cuhip_scope scope_;                                                       \
        cuhip_log_failure(cuhip_context_enter(&scope_, CUHIP_AT_##slot, device, stream), \
                          "entering a context to release an object");                    \
        const int code_ = (call);                                                        \
        cuhip_context_leave(&scope_);                                                    \
        code_ &&cuhip_is_shut_down(code_) ? 0 : code_;                                   \
    })

/* ---- waits: wait.c ------------------------------------------------------------------------------- */

/* Poll @p object with @p query until it is complete, fails, or @p timeout_ns have passed: a code. */
int cuhip_poll(int (*query)(void *object), void *object, bool sleep_at_once, uint64_t timeout_ns);
/* The same for the work that is enqueued on a stream now; a fence excludes later work. */
int cuhip_poll_stream(const struct gg_stream_impl *stream, uint64_t timeout_ns);
void cuhip_fences_destroy(struct gg_device_impl *device);

/* ---- the operations: backend.h describes each ----------------------------------------------------- */

#define OP(slot, need) __typeof__(*((struct gg_backend_ops *)0)->slot) cuhip_##slot;
#include <gpuglue/ops.def>
#undef OP

/* managed.c */
gg_status cuhip_alloc_managed(struct gg_device_impl *device, size_t nbytes, void **out);

/* graph.c: whether the stream is captured, by a driver that runs some of its work at once. */
bool cuhip_captures_partly(const struct gg_stream_impl *stream);
/* GG_OK unless the stream is captured and the driver would run @p what at once. */
gg_status cuhip_check_capturable(const struct gg_stream_impl *stream, const char *what);

/* comm.c: collective operations. */
const struct gg_comm_ops *cuhip_comm_ops(void);

/* image_compat.c: GG_OK if the device can load the image; else an error that names both. */
gg_status cuhip_check_image(struct gg_device_impl *device, const struct gg_image *image);

#endif
