/* ze.c: Level Zero, the API of Intel's GPUs: the descriptor, the table of operations, and what the
 * driver's codes mean. */
#include "ze.h"

#include <stdarg.h>
#include <stdio.h>

const struct gg_host_api *ze_host;
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

static const struct error *find_error(int code)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code)
            return &errors[i];
    return NULL;
}

const char *ze_code_name(int code)
{
    const struct error *row = find_error(code);
    return row ? row->name : NULL;
}

gg_status ze_fail(int code, const char *format, ...)
{
    char figures[384];
    va_list arguments;
    if (code == ZE_RESULT_NOT_READY)
        return GG_NOT_READY;
    const struct error *row = find_error(code);
    const struct gg_vendor_error error = {code, row ? row->name : NULL, row ? row->text : NULL};
    va_start(arguments, format);
    vsnprintf(figures, sizeof figures, format, arguments);
    va_end(arguments);
    return ze_host->fail(row ? row->status : GG_ERR_DEVICE, &error, "%s", figures);
}

gg_status ze_no_memory(const char *what)
{
    return ze_host->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no host memory for %s", what);
}

bool ze_is_gone(int code)
{
    return code == ZE_RESULT_ERROR_UNINITIALIZED;
}

bool ze_is_lacking(int code)
{
    return code == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE ||
           code == ZE_RESULT_ERROR_UNSUPPORTED_VERSION || code == ZE_RESULT_ERROR_UNINITIALIZED;
}

void ze_forget(int code, const char *what)
{
    const char *name = ze_code_name(code);
    if (code && !ze_is_gone(code))
        ze_host->log(GG_LOG_DEBUG, "ze", "%s: %s (0x%x)", what, name ? name : "unknown code",
                     (unsigned)code);
}

/* ---- the table ---- */

/* NULL stay: device_current (nothing is current in a thread here), device_record (other people's lists
 * are not known), capture_mode and stream_capturing (no graphs), event_native (each record has a ze_event of its own,
 * which soon serves another), write_word, mem_register (the specification has none),
 * kernel_occupancy and kernel_allow_shared (the driver does not tell, and local memory is an argument). */
static const struct gg_backend_ops ze_ops = {
    .struct_size = sizeof ze_ops,
    .probe = ze_probe,
    .device_info = ze_device_info,
    .device_attribute = ze_device_attribute,
    .device_open = ze_device_open,
    .device_close = ze_device_close,
    .device_memory_info = ze_device_memory_info,
    .device_synchronize = ze_device_synchronize,
    .device_native = ze_device_native,
    .device_enter = ze_device_enter,
    .device_leave = ze_device_leave,
    .mem_alloc = ze_mem_alloc,
    .mem_free = ze_mem_free,
    .pointer_info = ze_pointer_info,
    .copy = ze_copy,
    .copy_region = ze_copy_region,
    .peer_access = ze_peer_access,
    .peer_enable = ze_peer_enable,
    .copy_peer = ze_copy_peer,
    .fill = ze_fill,
    .stream_default = ze_stream_default,
    .stream_create = ze_stream_create,
    .stream_destroy = ze_stream_destroy,
    .stream_borrow = ze_stream_borrow,
    .stream_native = ze_stream_native,
    .stream_query = ze_stream_query,
    .stream_wait = ze_stream_wait,
    .stream_wait_event = ze_stream_wait_event,
    .stream_priority_range = ze_stream_priority_range,
    .stream_host_func = ze_stream_host_func,
    .event_create = ze_event_create,
    .event_destroy = ze_event_destroy,
    .event_borrow = ze_event_borrow,
    .event_record = ze_event_record,
    .event_query = ze_event_query,
    .event_wait = ze_event_wait,
    .event_elapsed = ze_event_elapsed,
    .device_supports = ze_device_supports,
    .module_load = ze_module_load,
    .module_unload = ze_module_unload,
    .module_global = ze_module_global,
    .module_kernel = ze_module_kernel,
    .kernel_parameter = ze_kernel_parameter,
    .kernel_attribute = ze_kernel_attribute,
    .kernel_suggest = ze_kernel_suggest,
    .kernel_launch = ze_kernel_launch,
    .module_names = ze_module_names,
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
};

int gg_backend_query(uint32_t core_abi, const struct gg_host_api *host,
                     const struct gg_backend_desc **out)
{
    if (core_abi >> 16 != GG_ABI_MAJOR || host->struct_size < sizeof *host)
        return 1;
    ze_host = host;
    *out = &ze_backend;
    return 0;
}
