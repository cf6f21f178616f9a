/* status.c: names of statuses and operations, and each thread's record of its last error. */
#include "internal.h"
#include "sized.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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

gg_status gg_last_error(struct gg_error *error)
{
    static const size_t first = offsetof(struct gg_error, message) + 768;
    if (!ggi_sized_fits(error, first))
        return GG_ERR_INVALID_ARGUMENT; /* the record is not to be lost for it */
    ggi_sized_write(error, &ggi_thread()->error, sizeof *error);
    return GG_OK;
}

static void set_text(char *target, size_t size, const char *text)
{
    snprintf(target, size, "%s", text ? text : "");
}

static void record(gg_status status, const struct gg_vendor_error *vendor, const char *format,
                   va_list arguments)
{
    struct ggi_thread *thread = ggi_thread();
    struct gg_error *error = thread->quiet ? &thread->hushed : &thread->error;
    memset(error, 0, sizeof *error);
    error->struct_size = sizeof *error;
    error->status = status;
    error->device = -1;
    if (vendor) {
        error->vendor_code = vendor->code;
        set_text(error->vendor_name, sizeof error->vendor_name, vendor->name);
        set_text(error->vendor_text, sizeof error->vendor_text, vendor->text);
    }
    vsnprintf(error->message, sizeof error->message, format, arguments);
}

gg_status ggi_fail(gg_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    record(status, NULL, format, arguments);
    va_end(arguments);
    return status;
}

gg_status ggi_host_fail(gg_status status, const struct gg_vendor_error *error, const char *format,
                        ...)
{
    va_list arguments;
    va_start(arguments, format);
    record(status, error, format, arguments);
    va_end(arguments);
    return status;
}

void ggi_fail_names(const char *backend)
{
    struct gg_error *error = &ggi_thread()->error;
    if (!ggi_thread()->quiet)
        set_text(error->backend, sizeof error->backend, backend);
}

void ggi_quiet(int delta)
{
    ggi_thread()->quiet += delta;
}

/* A sticky error is reported by every later call; the first site is the one to look at. */
static void remember_loss(struct gg_device *device, const struct gg_error *error, char *note,
                          size_t size)
{
    pthread_mutex_lock(&device->spare_lock);
    if (device->lost.status)
        snprintf(note, size, "; the device was first lost in %.31s: %.200s", device->lost.op,
                 device->lost.message);
    else
        device->lost = *error;
    pthread_mutex_unlock(&device->spare_lock);
}

static void append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

static void compose(struct gg_error *error, const struct gg_backend *backend, const char *detail)
{
    size_t size = sizeof error->message;
    error->message[0] = '\0';
    append(error->message, size, "%s: %s on device %d failed: ", error->backend, error->op,
           (int)error->device);
    if (error->vendor_code)
        append(error->message, size, "%s%s(%" PRId64 ")%s%s: ", error->vendor_name,
               error->vendor_name[0] ? " " : "code ", error->vendor_code,
               error->vendor_text[0] ? " " : "", error->vendor_text);
    append(error->message, size, "%s", detail[0] ? detail : gg_status_message(error->status));
    if (error->library_path[0] && error->vendor_code)
        append(error->message, size, " [%s%s%s]", error->library_path,
               backend->library_version[0] ? ", " : "", backend->library_version);
}

gg_status ggi_op_failed(struct gg_device *device, gg_op op, gg_status status)
{
    struct gg_error *error = &ggi_thread()->error;
    char detail[sizeof error->message], note[512] = "";
    if (status == GG_ERR_DEVICE_LOST)
        atomic_store(&device->gone, true);
    if (ggi_thread()->quiet)
        return status;
    if (error->status != status)
        ggi_fail(status, "%s", gg_status_message(status));
    memcpy(detail, error->message, sizeof detail);
    error->device = device->ordinal;
    set_text(error->backend, sizeof error->backend, device->backend->name);
    set_text(error->op, sizeof error->op, gg_op_name(op));
    set_text(error->library_path, sizeof error->library_path, device->backend->library_path);
    set_text(error->library_version, sizeof error->library_version,
             device->backend->library_version);
    compose(error, device->backend, detail);
    if (status == GG_ERR_DEVICE_LOST)
        remember_loss(device, error, note, sizeof note);
    append(error->message, sizeof error->message, "%s", note);
    ggi_log(GG_LOG_INFO, error->backend, "%s", error->message);
    return status;
}
