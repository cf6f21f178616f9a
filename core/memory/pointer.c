/* pointer.c: queries of the drivers about a raw pointer. */
#include "base/error.h"
#include "base/sized.h"
#include "runtime/call.h"
#include "runtime/stream.h"

#include <stddef.h>

/* A driver usually knows the memory of all its devices. */
static gg_status pointer_query_device(struct gg_device *device, const void *pointer,
                                      struct gg_pointer_info *info)
{
    struct gg_pointer_info found = {.struct_size = sizeof found, .device = -1};
    gg_status status = GGI_CALL_RELAXED(device, pointer_info, NULL, 0,
                                        (atomic_load(&device->impl), pointer, &found));
    if (!status)
        *info = found;
    return status;
}

static bool pointer_can_query(struct gg_device *device)
{
    return atomic_load(&device->impl) && ggi_device_usable(device) && device->ops->pointer_info &&
           gg_device_supports(device, GG_OP_pointer_info);
}

/* The first of the backend's open devices that knows the pointer. */
static gg_status pointer_query_backend(struct gg_backend *backend, const void *pointer,
                                       gg_device **device, struct gg_pointer_info *info)
{
    gg_status status = GG_OK;
    for (int32_t i = 0; i < backend->device_count && !status; i++) {
        if (!pointer_can_query(&backend->devices[i]))
            continue;
        status = pointer_query_device(&backend->devices[i], pointer, info);
        if (status || info->kind == GG_MEMORY_HOST)
            continue;
        bool reported = info->device >= 0 && info->device < backend->device_count;
        *device = &backend->devices[reported ? info->device : i];
        return GG_OK;
    }
    return status;
}

gg_status gg_pointer_query(const void *pointer, gg_device **device, struct gg_pointer_info *info)
{
    struct gg_pointer_info found = {.struct_size = sizeof found, .device = -1};
    static const size_t first = GGI_SIZE_TO(struct gg_pointer_info, size);
    gg_device *at = NULL, *current;
    if (!pointer)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "pointer_info: the pointer is NULL");
    if (!ggi_sized_fits(info, first))
        return ggi_sized_refuse("gg_pointer_query", "gg_pointer_info", info, first);
    gg_status status = gg_current_device(&current);
    if (!status)
        status = ggi_device_ready(current);
    for (struct gg_backend *b = ggi_backend_next_opened(NULL); b && !status && !at;
         b = ggi_backend_next_opened(b))
        status = pointer_query_backend(b, pointer, &at, &found);
    if (status)
        return status;
    if (!at)
        found = (struct gg_pointer_info){.device = -1, .kind = GG_MEMORY_HOST};
    found.struct_size = sizeof found;
    ggi_sized_write(info, &found, sizeof found);
    *device = at;
    return GG_OK;
}
