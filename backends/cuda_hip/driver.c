/* driver.c: find and initialise the vendor's library, report why it is unavailable, translate its codes. */
#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const struct gg_host_api *cuhip_api;
struct cuhip_driver cuhip_driver;
_Atomic(void *) *cuhip_contexts;
int cuhip_device_count;

/* ---- status ------------------------------------------------------------------------------------- */

static const struct cuhip_error *error_find(int code)
{
    for (size_t i = 0; i < cuhip.error_count; i++)
        if (cuhip.errors[i].code == code)
            return &cuhip.errors[i];
    return NULL;
}

const char *cuhip_error_name(int code)
{
    const struct cuhip_error *row = error_find(code);
    return row ? row->name : NULL;
}

/* Our table first. The driver is queried only for codes that the table lacks, and only after it was initialised:
 * a stub's functions for names crash. */
static struct gg_vendor_error error_describe(int code, const struct cuhip_error *row)
{
    struct gg_vendor_error error = {code, row ? row->name : NULL, row ? row->text : NULL};
    if (!cuhip_device_count)
        return error;
    if (!error.name && cuhip_driver.error_name && cuhip_driver.error_name(code, &error.name))
        error.name = NULL;
    if (!error.text && cuhip_driver.error_text && cuhip_driver.error_text(code, &error.text))
        error.text = NULL;
    return error;
}

gg_status cuhip_fail(int code, const char *format, ...)
{
    char figures[384];
    va_list arguments;
    cuhip_clear_error(code);
    if (code == cuhip.not_ready)
        return GG_NOT_READY;
    const struct cuhip_error *row = error_find(code);
    const struct gg_vendor_error error = error_describe(code, row);
    va_start(arguments, format);
    vsnprintf(figures, sizeof figures, format, arguments);
    va_end(arguments);
    return cuhip_api->fail(row ? row->status : GG_ERR_DEVICE, &error, "%s", figures);
}

gg_status cuhip_status_of(int code)
{
    const struct cuhip_error *row = code ? error_find(cuhip_clear_error(code)) : NULL;
    return row ? row->status : code ? GG_ERR_DEVICE : GG_OK;
}

gg_status cuhip_missing(size_t slot)
{
    const char *name = "a function";
    for (size_t i = 0; i < cuhip.symbol_count; i++)
        if (cuhip.symbols[i].offset == slot)
            name = cuhip.symbols[i].name;
    return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL, "this driver has no %s", name);
}

gg_status cuhip_no_memory(size_t nbytes, const char *what)
{
    return cuhip_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "%zu bytes of host memory for %s", nbytes,
                           what);
}

bool cuhip_is_shut_down(int code)
{
    const struct cuhip_error *row = code ? error_find(code) : NULL;
    return row && row->status == GG_ERR_SHUT_DOWN;
}

void cuhip_log_failure(int code, const char *what)
{
    if (!code) /* before the table of names, which is searched row by row */
        return;
    const char *name = cuhip_error_name(code);
    cuhip_clear_error(code);
    if (!cuhip_is_shut_down(code))
        cuhip_api->log(GG_LOG_DEBUG, cuhip.name, "%s: %s (%d)", what, name ? name : "unknown code",
                       code);
}

/* ---- probe -------------------------------------------------------------------------------------- */

static gg_probe_status library_resolve(const struct gg_library *library,
                                       struct gg_probe_result *result)
{
    static bool resolved; /* once: other threads may use the table when the core probes again */
    gg_probe_status status = GG_PROBE_AVAILABLE;
    if (resolved)
        return status;
    status = cuhip_api->library_resolve(library, cuhip.symbols, cuhip.symbol_count, &cuhip_driver,
                                        result->reason, sizeof result->reason);
    if (status == GG_PROBE_AVAILABLE)
        status = cuhip_api->library_resolve(library, cuhip.own_symbols, cuhip.own_symbol_count,
                                            cuhip.own, result->reason, sizeof result->reason);
    resolved = status == GG_PROBE_AVAILABLE;
    return status;
}

static const char *library_skip_reason(const struct gg_probe_result *result)
{
    const char *path = cuhip_api->get_env(cuhip.library.variable);
    return !cuhip.skip_reason || result->named || (path && *path) ? NULL : cuhip.skip_reason();
}

static gg_probe_status library_find(struct gg_probe_result *result)
{
    struct gg_library library = {.struct_size = sizeof library};
    struct gg_library_spec spec = cuhip.library;
    const char *skip_reason = library_skip_reason(result);
    if (skip_reason)
        spec.flags |= GG_LIBRARY_ONLY_MAPPED;
    gg_probe_status status = cuhip_api->library_open(&spec, result->log, &library, result->reason,
                                                     sizeof result->reason);
    if (status == GG_PROBE_LIBRARY_NOT_FOUND && skip_reason) {
        snprintf(result->reason, sizeof result->reason, "%s", skip_reason);
        result->declined = 1;
        return GG_PROBE_NO_DEVICE;
    }
    if (status != GG_PROBE_AVAILABLE)
        return status;
    snprintf(result->library_path, sizeof result->library_path, "%s", library.path);
    snprintf(result->found_by, sizeof result->found_by, "%s", library.found_by);
    return library_resolve(&library, result);
}

/* The driver's version. It needs no initialisation, but a stub cannot report it. */
static int driver_get_version(struct gg_probe_result *result)
{
    int version = 0;
    if (result->status == GG_PROBE_DRIVER_STUB || cuhip_driver.version(&version))
        return 0;
    cuhip.version_text(version, result->library_version, sizeof result->library_version);
    return version;
}

static void probe_refuse_version(struct gg_probe_result *result)
{
    char least[32];
    cuhip.version_text(cuhip.version_min, least, sizeof least);
    result->status = GG_PROBE_VERSION_UNSUPPORTED;
    snprintf(result->reason, sizeof result->reason,
             "the driver's version is %s, expected %s or newer: update the driver",
             result->library_version, least);
}

static void probe_set_count(int count, struct gg_probe_result *result)
{
    if (!cuhip_contexts) { /* once: other threads may read it when the core probes again */
        cuhip_contexts = calloc((size_t)count, sizeof *cuhip_contexts);
        cuhip_device_count = cuhip_contexts ? count : 0;
    }
    if (!cuhip_contexts) {
        result->status = GG_PROBE_INIT_FAILED;
        snprintf(result->reason, sizeof result->reason, "out of host memory");
        return;
    }
    result->status = GG_PROBE_AVAILABLE;
    result->device_count = cuhip_device_count;
}

static int driver_initialise(struct gg_probe_result *result)
{
    int count = 0;
    int code = cuhip_clear_error(cuhip_driver.init(0));
    if (code)
        cuhip.diagnose(code, result);
    const int version = driver_get_version(result);
    if (code)
        return version;
    if (version && version < cuhip.version_min) {
        probe_refuse_version(result);
        return version;
    }
    code = cuhip_clear_error(cuhip_driver.device_count(&count));
    if (code || count < 1)
        cuhip.diagnose(code, result);
    else
        probe_set_count(count, result);
    return version;
}

void cuhip_probe(enum gg_probe_level level, struct gg_probe_result *result)
{
    int version = 0;
    result->device_count = -1;
    result->status = library_find(result);
    if (result->status == GG_PROBE_AVAILABLE && level == GG_ACTIVE) {
        version = driver_initialise(result);
    } else if (result->status == GG_PROBE_AVAILABLE) {
        result->status = GG_PROBE_NOT_PROBED;
        snprintf(result->reason, sizeof result->reason,
                 "the library was found and has not been initialised");
    }
    cuhip.add_notes(level, version, result);
}

/* ---- the plugin --------------------------------------------------------------------------------- */

#define cuhip_module_load_with NULL /* no SPIR-V */
#define cuhip_module_binary NULL

const struct gg_backend_ops cuhip_ops = {
    .struct_size = sizeof(struct gg_backend_ops),
#define OP(slot, need) .slot = cuhip_##slot,
#include <gpuglue/ops.def>
#undef OP
};

int gg_backend_query(uint32_t core_abi, const struct gg_host_api *host,
                     const struct gg_backend_desc **out)
{
    static struct gg_backend_desc desc = {.magic = GG_BACKEND_MAGIC,
                                          .struct_size = sizeof desc,
                                          .abi_major = GG_BACKEND_ABI_MAJOR,
                                          .abi_minor = GG_BACKEND_ABI_MINOR,
                                          .version = GG_VERSION,
                                          .ops = &cuhip_ops};
    if (core_abi >> 16 != GG_ABI_MAJOR ||
        host->struct_size < offsetof(struct gg_host_api, processor_count))
        return 1;
    cuhip_api = host;
    desc.name = cuhip.name;
    desc.priority = cuhip.priority;
    desc.aliases = cuhip.aliases;
    desc.comm_ops = cuhip_comm_ops();
    *out = &desc;
    return 0;
}
