/* trace.h: callbacks around each device operation. */
#ifndef GG_TRACE_H
#define GG_TRACE_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/* One device operation, as passed to a tracer. */
struct gg_trace {
    uint32_t struct_size;
    gg_op op;
    const char *backend;
    int32_t device;
    gg_status status; /* result of the operation; GG_OK in `pre` */
    const void *stream;
    uint64_t bytes;
};
struct gg_tracer {
    uint32_t struct_size;
    void *user;
    /* Called before and after each operation, on the thread that submits it. Either may be NULL. */
    void (*pre)(void *user, const struct gg_trace *trace);
    void (*post)(void *user, const struct gg_trace *trace);
};

/** Install a tracer; NULL removes it. @p tracer must stay valid while it is installed and until calls
 *  already in progress have returned. Without a tracer each operation costs a few extra loads.
 *  GPUGLUE_LOG=trace logs every operation independently of this.
 *  Errors  GG_ERR_INVALID_ARGUMENT: struct_size is too small. */
GG_API gg_status gg_set_tracer(const struct gg_tracer *tracer);

GG_END_DECLS
#endif
