/* context.c: switch the thread to a device's context, and restore what was current before. */
#include "driver.h"

#include <inttypes.h>

int cuhip_context_switch(const struct gg_device_impl *device, struct cuhip_scope *scope)
{
    scope->switched = false;
    int code = cuhip.context_get(&scope->saved);
    if (code || scope->saved == device->context)
        return code;
    code = cuhip.context_set(device->context);
    scope->switched = code == 0;
    return code;
}

void cuhip_context_restore(const struct cuhip_scope *scope)
{
    cuhip_log_failure(cuhip.context_set(scope->saved), "restoring the caller's context");
}

gg_status cuhip_device_enter(struct gg_device_impl *device, void **saved)
{
    struct cuhip_scope scope;
    const int code = cuhip_context_switch(device, &scope);
    if (code)
        return cuhip_fail(code, "making device %" PRId32 " current", device->ordinal);
    *saved = scope.saved;
    return GG_OK;
}

void cuhip_device_leave(void *saved)
{
    cuhip_log_failure(cuhip.context_set(saved), "restoring the caller's context");
}

int32_t cuhip_device_current(void)
{
    void *current = NULL;
    if (!cuhip_device_count || cuhip_clear_error(cuhip.context_get(&current)) || !current)
        return -1;
    for (int i = 0; i < cuhip_device_count; i++)
        if (atomic_load_explicit(&cuhip_contexts[i], memory_order_relaxed) == current)
            return i;
    return cuhip.context_ordinal(current);
}

gg_status cuhip_capture_mode(struct gg_device_impl *device, int32_t relaxed, int32_t *mode)
{
    int exchanged = relaxed ? cuhip.capture_relaxed : *mode;
    (void)device; /* the mode belongs to the thread */
    if (!cuhip_driver.capture_mode)
        return cuhip_missing(offsetof(struct cuhip_driver, capture_mode));
    const int code = cuhip_driver.capture_mode(&exchanged);
    if (code)
        return cuhip_fail(code, "exchanging the thread's capture mode for %d", exchanged);
    *mode = exchanged;
    return GG_OK;
}
