/* pool_refuse.c: the error of an allocation for which there is no memory. */
#include "base/error.h"
#include "base/text.h"
#include "memory/pool.h"
#include "memory/uses.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* "the device has 1 of 2 bytes free; ", or nothing where the driver does not report it. */
static void pool_describe_free(gg_device *device, char *out, size_t size)
{
    uint64_t free = 0, total = 0;
    struct ggi_size left, all;
    struct ggi_internal_scope own;
    ggi_internal_begin(device, &own);
    if (device->ops->device_memory_info &&
        !device->ops->device_memory_info(atomic_load(&device->impl), &free, &total))
        snprintf(out, size, "the device has %s free of %s; ", ggi_text_size(&left, free),
                 ggi_text_size(&all, total));
    ggi_internal_end(device, &own);
}

gg_status ggi_pool_refuse(struct ggi_pool *pool, size_t nbytes)
{
    struct gg_device *device = pool->device;
    const struct gg_pool_stats stats = ggi_pool_stats(pool);
    char device_free[128] = "", limit[80] = "";
    struct gg_error *error = &ggi_error_record()->error, first = *error;
    struct ggi_size sizes[7];
    pool_describe_free(device, device_free, sizeof device_free);
    if (stats.limit)
        snprintf(limit, sizeof limit, ", and the pool's limit is %s",
                 ggi_text_size(&sizes[0], stats.limit));
    ggi_fail(
        GG_ERR_OUT_OF_MEMORY,
        "%s:%d: cannot allocate %s of %s memory: %sgpuglue holds %s (at most %s so far, %" PRIu64
        " driver calls%s): %s in %" PRIu64 " blocks are in use, %s are free in blocks "
        "that did not fit, and %s were released and may still be used by queued work. Close what "
        "is no longer needed, or ask for less",
        device->backend->name, (int)device->ordinal, ggi_text_size(&sizes[1], nbytes),
        pool->kind == GG_MEMORY_PINNED    ? "pinned host"
        : pool->kind == GG_MEMORY_MANAGED ? "managed"
                                          : "device",
        device_free, ggi_text_size(&sizes[2], stats.reserved_bytes),
        ggi_text_size(&sizes[3], stats.reserved_peak), stats.driver_calls, limit,
        ggi_text_size(&sizes[4], stats.used_bytes), stats.used_blocks,
        ggi_text_size(&sizes[5], stats.cached_bytes), ggi_text_size(&sizes[6], stats.retired_bytes));
    memcpy(first.message, error->message, sizeof first.message);
    *error = first;
    return GG_ERR_OUT_OF_MEMORY;
}
