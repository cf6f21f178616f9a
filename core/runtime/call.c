/* call.c: around each operation: the tracer, GPUGLUE_DEBUG and the error message. */
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sized.h"
#include "base/text.h"
#include "runtime/call.h"
#include "runtime/stream.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Atomic(uint32_t) ggi_observed;

static _Atomic(const struct gg_tracer *) call_tracer;
static _Atomic(const struct ggi_recorder *) call_recorder;

static void call_observe(uint32_t bit, bool on)
{
    if (on)
        atomic_fetch_or(&ggi_observed, bit);
    else
        atomic_fetch_and(&ggi_observed, ~bit);
}

gg_status gg_set_tracer(const struct gg_tracer *tracer)
{
    static const size_t first = GGI_SIZE_TO(struct gg_tracer, post);
    if (tracer && !ggi_sized_fits(tracer, first))
        return ggi_sized_refuse("gg_set_tracer", "gg_tracer", tracer, first);
    atomic_store_explicit(&call_tracer, tracer, memory_order_release);
    call_observe(GGI_OBSERVED_TRACER, tracer);
    return GG_OK;
}

void ggi_set_recorder(const struct ggi_recorder *recorder)
{
    atomic_store_explicit(&call_recorder, recorder, memory_order_release);
    call_observe(GGI_OBSERVED_RECORDER, recorder);
}

void ggi_call_init(void)
{
    call_observe(GGI_OBSERVED_LOG, ggi_log_on(GG_LOG_TRACE));
    atomic_store(&ggi_debug_sync, ggi_env_value(GGI_ENV_DEBUG, GGI_DEBUG_OFF) == GGI_DEBUG_SYNC);
}

/* @p trace has the operation, its arguments and its result. The recorder is nearest to the operation. */
void ggi_call_observe(struct gg_device *device, struct gg_trace *trace, bool after)
{
    const struct gg_tracer *tracer = atomic_load_explicit(&call_tracer, memory_order_acquire);
    const struct ggi_recorder *recorder = atomic_load_explicit(&call_recorder, memory_order_acquire);
    trace->struct_size = sizeof *trace;
    trace->backend = device->backend->name;
    trace->device = device->ordinal;
    if (recorder && after)
        recorder->post(device, trace);
    if (tracer && (after ? tracer->post : tracer->pre))
        (after ? tracer->post : tracer->pre)(tracer->user, trace);
    if (recorder && !after)
        recorder->pre(device, trace);
    if (after && ggi_log_on(GG_LOG_TRACE))
        ggi_log(GG_LOG_TRACE, NULL, "%s%s%s %s:%d stream=0x%" PRIxPTR " bytes=%" PRIu64 " %s",
                gg_op_name(trace->op), trace->name ? " " : "", trace->name ? trace->name : "",
                trace->backend, (int)trace->device, (uintptr_t)trace->stream, trace->bytes,
                gg_status_name(trace->status));
}

_Atomic(bool) ggi_debug_sync;

bool ggi_op_is_submission(gg_op op)
{
    return op == GG_OP_copy || op == GG_OP_copy_region || op == GG_OP_copy_peer ||
           op == GG_OP_fill || op == GG_OP_write_word || op == GG_OP_mem_prefetch ||
           op == GG_OP_kernel_launch || op == GG_OP_graph_launch || op == GG_OP_collective;
}

/* Internal waits are not interrupted. */
static bool call_interrupted(void)
{
    return !ggi_error_record()->suppress_depth && ggi_interrupted();
}

gg_status ggi_call_sync(struct gg_device *device, gg_op op, const void *stream, gg_status status)
{
    gg_stream *on = (gg_stream *)(uintptr_t)stream;
    if (status || !on || !ggi_op_is_submission(op) || ggi_stream_capturing(on))
        return status;
    while ((status = device->ops->stream_wait(on->impl, GGI_SLICE_NS)) == GG_NOT_READY)
        if (call_interrupted())
            return ggi_fail_interrupted();
    return status;
}

/* Every call on a lost device fails. The first failure is the informative one, so it is kept. */
static void call_remember_loss(struct gg_device *device, const struct gg_error *error, char *note,
                               size_t size)
{
    pthread_mutex_lock(&device->spare_lock);
    ggi_error_record()->first_loss = !device->lost.status;
    if (device->lost.status)
        snprintf(note, size, "; the device was first lost in %.31s: %.200s", device->lost.op,
                 device->lost.message);
    else
        device->lost = *error;
    pthread_mutex_unlock(&device->spare_lock);
}

static void call_compose(const struct gg_error *error, const char *detail, struct ggi_text *text)
{
    ggi_text_add(text, "%s: %s on device %d failed: ", error->backend, error->op,
                 (int)error->device);
    if (error->vendor_code)
        ggi_text_add(text, "%s%s(%" PRId64 ")%s%s: ", error->vendor_name,
                     error->vendor_name[0] ? " " : "code ", error->vendor_code,
                     error->vendor_text[0] ? " " : "", error->vendor_text);
    ggi_text_add(text, "%s", detail[0] ? detail : gg_status_message(error->status));
    if (error->library_path[0] && error->vendor_code)
        ggi_text_add(text, " [%s%s%s]", error->library_path, error->library_version[0] ? ", " : "",
                     error->library_version);
}

/* Drivers have codes of a lost device that they also return for one bad handle, while others still work. So the loss
 * is confirmed by a call that needs no handle but the device's. */
bool ggi_device_is_lost(struct gg_device *device)
{
    uint64_t free = 0, total = 0;
    struct gg_device_impl *impl = atomic_load(&device->impl);
    gg_status status = GG_ERR_DEVICE_LOST;
    if (atomic_load(&device->gone))
        return true;
    ggi_suppress_errors(1);
    if (impl && device->ops->device_memory_info)
        status = device->ops->device_memory_info(impl, &free, &total);
    ggi_suppress_errors(-1);
    if (status == GG_ERR_DEVICE_LOST || status == GG_ERR_UNSUPPORTED)
        atomic_store(&device->gone, true);
    return atomic_load(&device->gone);
}

gg_status ggi_op_failed(struct gg_device *device, gg_op op, gg_status status)
{
    return ggi_named_op_failed(device, gg_op_name(op), status);
}

gg_status ggi_named_op_failed(struct gg_device *device, const char *op, gg_status status)
{
    struct gg_error *error = &ggi_error_record()->error;
    char detail[sizeof error->message], note[512] = "";
    if (status == GG_ERR_DEVICE_LOST)
        ggi_device_is_lost(device);
    if (ggi_error_record()->suppress_depth)
        return status;
    if (error->status != status)
        ggi_fail(status, "%s", gg_status_message(status));
    memcpy(detail, error->message, sizeof detail);
    error->device = device->ordinal;
    snprintf(error->backend, sizeof error->backend, "%s", device->backend->name);
    snprintf(error->op, sizeof error->op, "%s", op);
    snprintf(error->library_path, sizeof error->library_path, "%s", device->backend->library_path);
    snprintf(error->library_version, sizeof error->library_version, "%s",
             device->backend->library_version);
    struct ggi_text text = ggi_text_begin(error->message, sizeof error->message);
    call_compose(error, detail, &text);
    if (status == GG_ERR_DEVICE_LOST)
        call_remember_loss(device, error, note, sizeof note);
    ggi_text_add(&text, "%s", note);
    ggi_log(GG_LOG_INFO, error->backend, "%s", error->message);
    return status;
}
