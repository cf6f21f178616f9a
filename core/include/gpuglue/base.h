/* base.h: what all of gpuglue.h stands on: versions, statuses, errors, the log and the tracer. Included
 * by gpuglue.h; its conventions are described there. */
#ifndef GPUGLUE_BASE_H
#define GPUGLUE_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GG_API __attribute__((visibility("default")))
#else
#define GG_API
#endif

#define GG_VERSION "0.1.0"
#define GG_ABI_MAJOR 1 /* of this header; gg_abi() tells the library's */
#define GG_ABI_MINOR 1

#define STATUS(name, number, message) GG_##name = number,
typedef enum gg_status {
#include <gpuglue/status.def>
} gg_status;
#undef STATUS

#define PROBE(name, number, word) GG_PROBE_##name = number,
typedef enum gg_probe_status {
#include <gpuglue/probe.def>
} gg_probe_status;
#undef PROBE

#define OP(slot, need) GG_OP_##slot,
typedef enum gg_op {
#include <gpuglue/ops.def>
    GG_OP_COUNT
} gg_op;
#undef OP

typedef struct gg_device gg_device;
typedef struct gg_stream gg_stream;
typedef struct gg_event gg_event;
typedef struct gg_memory gg_memory;
typedef struct gg_scope gg_scope;

#define GG_FOREVER UINT64_MAX /* a time limit, in nanoseconds, that never passes */

/* ---- versions and errors ------------------------------------------------------------------- */

/** ABI of the library that is loaded: major in the upper 16 bits, minor in the lower. */
GG_API uint32_t gg_abi(void);

/** Version of the library that is loaded, such as "0.1.0". Static. */
GG_API const char *gg_version(void);

/** Path of the file that this libgpuglue was loaded from. Static; NULL where the loader can't say. */
GG_API const char *gg_library_path(void);

/** "ERR_OUT_OF_MEMORY" for a status, "unknown" for another number. Static; never NULL. */
GG_API const char *gg_status_name(gg_status status);

/** "out of memory" for the same. Static; never NULL. */
GG_API const char *gg_status_message(gg_status status);

/** The word for a probe status, such as "no-device". Static; never NULL. */
GG_API const char *gg_probe_status_name(gg_probe_status status);

/** The name of an operation, such as "mem_alloc". Static; never NULL. */
GG_API const char *gg_op_name(gg_op op);

/** What the last failed call on this thread has to say. Texts are empty where there is nothing. */
struct gg_error {
    uint32_t struct_size;
    gg_status status;
    int32_t device;         /* ordinal, or -1 */
    int64_t vendor_code;    /* the driver's own number; 0 where no driver was involved */
    char backend[16];       /* "cuda" */
    char op[32];            /* "mem_alloc" */
    char vendor_name[64];   /* "CUDA_ERROR_OUT_OF_MEMORY" */
    char vendor_text[128];  /* the driver's sentence */
    char library_path[256]; /* the vendor library that answered */
    char library_version[32];
    char message[768]; /* one sentence with all of it: what was given, expected, what to do */
};

/** Copy this thread's error record. It is valid until the thread's next failing call; releases and
 *  gpuglue's own queries never touch it, nor does this call.
 *  Errors  GG_ERR_INVALID_ARGUMENT: struct_size. */
GG_API gg_status gg_last_error(struct gg_error *error);

/* ---- log and trace --------------------------------------------------------------------------- */

enum gg_log_level { GG_LOG_ERROR, GG_LOG_WARN, GG_LOG_INFO, GG_LOG_DEBUG, GG_LOG_TRACE };

/** Send log lines to @p sink instead of stderr (NULL: stderr again). The level comes from
 *  GPUGLUE_LOG=error|warn|info|debug|trace[:absolute path], default warn. The sink may be called
 *  from any thread and must not call gpuglue. */
GG_API void gg_set_log_sink(void (*sink)(int32_t level, const char *line, void *user), void *user);

/** What a tracer is told before and after each device operation. */
struct gg_trace {
    uint32_t struct_size;
    gg_op op;
    const char *backend;
    int32_t device;
    gg_status status; /* after the call; GG_OK before it */
    const void *stream;
    uint64_t bytes;
};
struct gg_tracer {
    uint32_t struct_size;
    void *user;
    void (*pre)(void *user, const struct gg_trace *trace); /* either may be NULL; from any thread */
    void (*post)(void *user, const struct gg_trace *trace);
};

/** Install a tracer (NULL: none). @p tracer must stay valid while it is installed and until calls
 *  that had begun are over. Costs one load per operation when there is none. GPUGLUE_LOG=trace logs
 *  each operation beside it.
 *  Errors  GG_ERR_INVALID_ARGUMENT: struct_size. */
GG_API gg_status gg_set_tracer(const struct gg_tracer *tracer);

#ifdef __cplusplus
}
#endif
#endif
