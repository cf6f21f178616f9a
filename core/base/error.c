/* error.c: names of statuses and operations, and each thread's last error. */
#include "base/error.h"
#include "base/sized.h"

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t gg_abi(void)
{
    return (uint32_t)GG_ABI_MAJOR << 16 | GG_ABI_MINOR;
}

const char *gg_version(void)
{
    return GG_VERSION;
}

const char *gg_status_name(gg_status status)
{
    switch (status) {
#define STATUS(name, number, message) \
    case GG_##name:                   \
        return #name;
#include <gpuglue/status.def>
#undef STATUS
    }
    return "unknown";
}

const char *gg_status_message(gg_status status)
{
    switch (status) {
#define STATUS(name, number, message) \
    case GG_##name:                   \
        return message;
#include <gpuglue/status.def>
#undef STATUS
    }
    return "unknown status";
}

const char *gg_probe_status_name(gg_probe_status status)
{
    switch (status) {
#define PROBE(name, number, word) \
    case GG_PROBE_##name:         \
        return word;
#include <gpuglue/probe.def>
#undef PROBE
    }
    return "unknown";
}

const char *gg_op_name(gg_op op)
{
    static const char *const names[] = {
#define OP(slot, need) #slot,
#include <gpuglue/ops.def>
#undef OP
    };
    if (op == GG_OP_collective)
        return "collective";
    return op >= 0 && op < GG_OP_COUNT ? names[op] : "unknown";
}

const char *gg_attribute_name(gg_attribute attribute)
{
    static const char *const names[] = {
#define NAME(name, word) word,
        GG_ATTRIBUTES(NAME)
#undef NAME
    };
    return attribute >= 0 && attribute < GG_ATTR_COUNT ? names[attribute] : "unknown";
}

/* ---- each thread's record ---- */

static _Thread_local struct ggi_error_record *error_mine;
static struct ggi_error_record error_shared; /* used by threads if memory runs out */
static pthread_key_t error_key;
static pthread_once_t error_key_once = PTHREAD_ONCE_INIT;

static void error_end_thread(void *record)
{
    error_mine = NULL;
    free(record);
}

static void error_make_key(void)
{
    pthread_key_create(&error_key, error_end_thread);
}

__attribute__((noinline)) static struct ggi_error_record *error_record_new(void)
{
    pthread_once(&error_key_once, error_make_key);
    struct ggi_error_record *record = calloc(1, sizeof *record);
    if (!record)
        return &error_shared;
    pthread_setspecific(error_key, record);
    error_mine = record;
    return record;
}

struct ggi_error_record *ggi_error_record(void)
{
    return error_mine ? error_mine : error_record_new();
}

gg_status gg_last_error(struct gg_error *error)
{
    static const size_t first = offsetof(struct gg_error, message) + 768;
    if (!ggi_sized_fits(error, first))
        return GG_ERR_INVALID_ARGUMENT; /* not ggi_fail: the record stays as it is */
    ggi_sized_write(error, &ggi_error_record()->error, sizeof *error);
    return GG_OK;
}

static void error_set_text(char *target, size_t size, const char *text)
{
    snprintf(target, size, "%s", text ? text : "");
}

void ggi_error_keep(struct ggi_kept_error *out)
{
    const struct ggi_error_record *record = ggi_error_record();
    out->error = record->error;
    memcpy(out->ranks, record->ranks, sizeof out->ranks);
}

gg_status ggi_error_restore(const struct ggi_kept_error *kept)
{
    struct ggi_error_record *record = ggi_error_record();
    record->error = kept->error;
    memcpy(record->ranks, kept->ranks, sizeof record->ranks);
    return kept->error.status;
}

/* While errors are suppressed, only one of earlier work is recorded: see ggi_stream_stash_error. */
__attribute__((format(printf, 3, 0))) static void error_record(gg_status status,
                                                               const struct gg_vendor_error *vendor,
                                                               const char *format, va_list arguments)
{
    struct ggi_error_record *record = ggi_error_record();
    if (record->suppress_depth && status != GG_ERR_DEVICE)
        return;
    struct gg_error *error = record->suppress_depth ? &record->suppressed : &record->error;
    memset(error, 0, sizeof *error);
    error->struct_size = sizeof *error;
    error->status = status;
    error->device = -1;
    if (vendor) {
        error->vendor_code = vendor->code;
        error_set_text(error->vendor_name, sizeof error->vendor_name, vendor->name);
        error_set_text(error->vendor_text, sizeof error->vendor_text, vendor->text);
    }
    vsnprintf(error->message, sizeof error->message, format, arguments);
}

gg_status ggi_fail(gg_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    error_record(status, NULL, format, arguments);
    va_end(arguments);
    return status;
}

gg_status ggi_fail_interrupted(void)
{
    return ggi_fail(GG_ERR_INTERRUPTED, "the wait was interrupted; the queued work continues");
}

gg_status ggi_sized_refuse(const char *call, const char *type, const void *theirs, size_t first)
{
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s: struct_size is %u, expected at least %zu: set it to sizeof(struct %s)",
                    call, (unsigned)*(const uint32_t *)theirs, first, type);
}

gg_status ggi_host_fail(gg_status status, const struct gg_vendor_error *error, const char *format,
                        ...)
{
    va_list arguments;
    va_start(arguments, format);
    error_record(status, error, format, arguments);
    va_end(arguments);
    return status;
}

void ggi_fail_names(const char *backend)
{
    struct gg_error *error = &ggi_error_record()->error;
    if (!ggi_error_record()->suppress_depth)
        error_set_text(error->backend, sizeof error->backend, backend);
}

void ggi_suppress_errors(int delta)
{
    ggi_error_record()->suppress_depth += delta;
}
