/* driver.c: find the vendor's library, bring it up, say why not; and what its codes mean. */
#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const struct gg_host_api *twin_host;
struct twin_driver twin_driver;
_Atomic(void *) *twin_contexts;
int twin_device_count;

/* ---- status ------------------------------------------------------------------------------------- */

static const struct twin_error *find_error(int code)
{
    for (size_t i = 0; i < twin.error_count; i++)
        if (twin.errors[i].code == code)
            return &twin.errors[i];
    return NULL;
}

const char *twin_code_name(int code)
{
    const struct twin_error *row = find_error(code);
    return row ? row->name : NULL;
}

/* Ours first; the driver is asked only about codes that we do not know, and only once it works: a
 * stub's functions for names crash. */
static struct gg_vendor_error describe(int code, const struct twin_error *row)
{
    struct gg_vendor_error error = {code, row ? row->name : NULL, row ? row->text : NULL};
    if (!twin_device_count)
        return error;
    if (!error.name && twin_driver.error_name && twin_driver.error_name(code, &error.name))
        error.name = NULL;
    if (!error.text && twin_driver.error_text && twin_driver.error_text(code, &error.text))
        error.text = NULL;
    return error;
}

gg_status twin_fail(int code, const char *format, ...)
{
    char figures[384];
    va_list arguments;
    twin_clear(code);
    if (code == twin.not_ready)
        return GG_NOT_READY;
    const struct twin_error *row = find_error(code);
    const struct gg_vendor_error error = describe(code, row);
    va_start(arguments, format);
    vsnprintf(figures, sizeof figures, format, arguments);
    va_end(arguments);
    return twin_host->fail(row ? row->status : GG_ERR_DEVICE, &error, "%s", figures);
}

gg_status twin_answer(int code)
{
    const struct twin_error *row = code ? find_error(twin_clear(code)) : NULL;
    return row ? row->status : code ? GG_ERR_DEVICE : GG_OK;
}

gg_status twin_missing(size_t slot)
{
    const char *name = "a function";
    for (size_t i = 0; i < twin.symbol_count; i++)
        if (twin.symbols[i].offset == slot)
            name = twin.symbols[i].name;
    return twin_host->fail(GG_ERR_UNSUPPORTED, NULL, "this driver has no %s", name);
}

gg_status twin_no_memory(size_t nbytes, const char *what)
{
    return twin_host->fail(GG_ERR_OUT_OF_MEMORY, NULL, "%zu bytes of host memory for %s", nbytes,
                           what);
}

bool twin_is_gone(int code)
{
    const struct twin_error *row = code ? find_error(code) : NULL;
    return row && row->status == GG_ERR_SHUT_DOWN;
}

void twin_forget(int code, const char *what)
{
    const char *name = twin_code_name(code);
    twin_clear(code);
    if (code && !twin_is_gone(code))
        twin_host->log(GG_LOG_DEBUG, twin.name, "%s: %s (%d)", what, name ? name : "unknown code",
                       code);
}

/* ---- probe -------------------------------------------------------------------------------------- */

static gg_probe_status resolve(const struct gg_library *library, struct gg_probe_result *result)
{
    static bool resolved; /* once: other threads may be using the table when the core asks again */
    gg_probe_status status = GG_PROBE_AVAILABLE;
    if (resolved)
        return status;
    status = twin_host->library_resolve(library, twin.symbols, twin.symbol_count, &twin_driver,
                                        result->reason, sizeof result->reason);
    if (status == GG_PROBE_AVAILABLE)
        status = twin_host->library_resolve(library, twin.own_symbols, twin.own_symbol_count,
                                            twin.own, result->reason, sizeof result->reason);
    resolved = status == GG_PROBE_AVAILABLE;
    return status;
}

static const char *reason_not_to_search(const struct gg_probe_result *result)
{
    const char *path = twin_host->get_env(twin.library.variable);
    return !twin.in_vain || result->named || (path && *path) ? NULL : twin.in_vain();
}

static gg_probe_status find_library(struct gg_probe_result *result)
{
    struct gg_library library = {.struct_size = sizeof library};
    struct gg_library_spec spec = twin.library;
    const char *in_vain = reason_not_to_search(result);
    if (in_vain)
        spec.flags |= GG_LIBRARY_ONLY_MAPPED;
    gg_probe_status status = twin_host->library_open(&spec, result->log, &library, result->reason,
                                                     sizeof result->reason);
    if (status == GG_PROBE_LIBRARY_NOT_FOUND && in_vain) {
        snprintf(result->reason, sizeof result->reason, "%s", in_vain);
        result->declined = 1;
        return GG_PROBE_NO_DEVICE;
    }
    if (status != GG_PROBE_AVAILABLE)
        return status;
    snprintf(result->library_path, sizeof result->library_path, "%s", library.path);
    snprintf(result->found_by, sizeof result->found_by, "%s", library.found_by);
    return resolve(&library, result);
}

/* The driver's version; needs no initialisation, but is not asked of a stub. */
static int find_version(struct gg_probe_result *result)
{
    int version = 0;
    if (result->status == GG_PROBE_DRIVER_STUB || twin_driver.version(&version))
        return 0;
    twin.version_text(version, result->library_version, sizeof result->library_version);
    return version;
}

static void refuse_version(struct gg_probe_result *result)
{
    char least[32];
    twin.version_text(twin.version_min, least, sizeof least);
    result->status = GG_PROBE_VERSION_UNSUPPORTED;
    snprintf(result->reason, sizeof result->reason,
             "the driver's version is %s and %s is the oldest that works: update the driver",
             result->library_version, least);
}

static void keep_count(int count, struct gg_probe_result *result)
{
    if (!twin_contexts) { /* once: other threads may be reading when the core asks again */
        twin_contexts = calloc((size_t)count, sizeof *twin_contexts);
        twin_device_count = twin_contexts ? count : 0;
    }
    if (!twin_contexts) {
        result->status = GG_PROBE_INIT_FAILED;
        snprintf(result->reason, sizeof result->reason, "out of host memory");
        return;
    }
    result->status = GG_PROBE_AVAILABLE;
    result->device_count = twin_device_count;
}

static int initialise(struct gg_probe_result *result)
{
    int count = 0;
    int code = twin_clear(twin_driver.init(0));
    if (code)
        twin.explain(code, result);
    const int version = find_version(result);
    if (code)
        return version;
    if (version && version < twin.version_min) {
        refuse_version(result);
        return version;
    }
    code = twin_clear(twin_driver.device_count(&count));
    if (code || count < 1)
        twin.explain(code, result);
    else
        keep_count(count, result);
    return version;
}

void twin_probe(enum gg_probe_level level, struct gg_probe_result *result)
{
    int version = 0;
    result->device_count = -1;
    result->status = find_library(result);
    if (result->status == GG_PROBE_AVAILABLE && level == GG_ACTIVE) {
        version = initialise(result);
    } else if (result->status == GG_PROBE_AVAILABLE) {
        result->status = GG_PROBE_NOT_PROBED;
        snprintf(result->reason, sizeof result->reason,
                 "the library was found and has not been initialised");
    }
    twin.remark(level, version, result);
}

/* ---- the table ---------------------------------------------------------------------------------- */

const struct gg_backend_ops twin_ops = {
    .struct_size = sizeof(struct gg_backend_ops),
#define OP(slot, need) .slot = twin_##slot,
#include <gpuglue/ops.def>
#undef OP
};
