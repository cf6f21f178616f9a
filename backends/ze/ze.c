/* ze.c: Level Zero, the API of Intel's GPUs: the descriptor, the table of operations, the driver's codes. */
#include "ze.h"

#include <stdarg.h>
#include <stdio.h>

const struct gg_host_api *ze_api;
struct ze_functions ze;

/* ---- status ---- */

static const struct error {
    int code;
    gg_status status;
    const char *name, *text;
} errors[] = {
#define ERROR(name, code, status, text) {code, status, #name, text},
#include "ze_errors.def"
#undef ERROR
};

static const struct error *error_find(int code)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code)
            return &errors[i];
    return NULL;
}

const char *ze_error_name(int code)
{
    const struct error *row = error_find(code);
    return row ? row->name : NULL;
}

gg_status ze_fail(int code, const char *format, ...)
{
    char figures[384];
    va_list arguments;
    if (code == ZE_RESULT_NOT_READY)
        return GG_NOT_READY;
    const struct error *row = error_find(code);
    const struct gg_vendor_error error = {code, row ? row->name : NULL, row ? row->text : NULL};
    va_start(arguments, format);
    vsnprintf(figures, sizeof figures, format, arguments);
    va_end(arguments);
    return ze_api->fail(row ? row->status : GG_ERR_DEVICE, &error, "%s", figures);
}

gg_status ze_no_memory(const char *what)
{
    return ze_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no host memory for %s", what);
}

gg_status ze_missing(const char *function)
{
    return ze_api->fail(GG_ERR_UNSUPPORTED, NULL, "this loader has no %s", function);
}

bool ze_is_shut_down(int code)
{
    return code == ZE_RESULT_ERROR_UNINITIALIZED;
}

bool ze_is_over(int code)
{
    return ze_is_shut_down(code) || code == ZE_RESULT_ERROR_DEVICE_LOST;
}

bool ze_is_unsupported(int code)
{
    return code == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE ||
           code == ZE_RESULT_ERROR_UNSUPPORTED_VERSION || code == ZE_RESULT_ERROR_UNINITIALIZED;
}

void ze_log_failure(int code, const char *what)
{
    const char *name = ze_error_name(code);
    if (code && !ze_is_shut_down(code))
        ze_api->log(GG_LOG_DEBUG, "ze", "%s: %s (0x%x)", what, name ? name : "unknown code",
                    (unsigned)code);
}

/* ---- the table: all of ops.def, except what Level Zero does not have ---- */

#define ze_device_record NULL    /* lists of other code are unknown */
#define ze_device_current NULL   /* a thread has no current device */
#define ze_capture_mode NULL     /* captures forbid no call */
#define ze_stream_capturing NULL /* only the core's recordings are captured: see graph.c */
#define ze_capture_id NULL
#define ze_graph_update NULL    /* graphs are immutable */
#define ze_event_native NULL    /* each record uses another native event */
#define ze_write_word NULL      /* not in the specification */
#define ze_mem_alloc_async NULL /* no pool of the driver's own */
#define ze_mem_free_async NULL
#define ze_pointer_known NULL       /* pointer_info disturbs no capture */
#define ze_kernel_allow_shared NULL /* local memory is a kernel argument */

static const struct gg_backend_ops ze_ops = {
    .struct_size = sizeof ze_ops,
#define OP(slot, need) .slot = ze_##slot,
#include <gpuglue/ops.def>
#undef OP
};

static const struct gg_backend_desc ze_backend = {
    .magic = GG_BACKEND_MAGIC,
    .struct_size = sizeof ze_backend,
    .abi_major = GG_BACKEND_ABI_MAJOR,
    .abi_minor = GG_BACKEND_ABI_MINOR,
    .priority = 100,
    .name = "ze",
    .version = GG_VERSION,
    .ops = &ze_ops,
    .aliases = "intel,level_zero,oneapi,xpu",
};

int gg_backend_query(uint32_t core_abi, const struct gg_host_api *host,
                     const struct gg_backend_desc **out)
{
    if (core_abi >> 16 != GG_ABI_MAJOR ||
        host->struct_size < offsetof(struct gg_host_api, processor_count))
        return 1;
    ze_api = host;
    *out = &ze_backend;
    return 0;
}
