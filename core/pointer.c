/* pointer.c: what a bare pointer points at, as the drivers in use know it. */
#include "internal.h"
#include "sized.h"

#include <stddef.h>

/* An opened device answers for all of its backend that share its driver's list of memory. */
static gg_status ask(struct gg_device *device, const void *pointer, struct gg_pointer_info *info)
{
    struct ggi_own own;
    struct gg_pointer_info found = {.struct_size = sizeof found, .device = -1};
    ggi_relax_begin(device, &own);
    ggi_begin(device, GG_OP_pointer_info, NULL, 0);
    gg_status status = device->ops->pointer_info(atomic_load(&device->impl), pointer, &found);
    status = ggi_end(device, GG_OP_pointer_info, NULL, 0, status);
    ggi_relax_end(device, &own);
    if (!status)
        *info = found;
    return status;
}

static bool may_ask(struct gg_device *device)
{
    return atomic_load(&device->impl) && ggi_usable(device) && device->ops->pointer_info &&
           gg_device_supports(device, GG_OP_pointer_info);
}

/* Of this backend's devices that are open, the first that knows the pointer. */
static gg_status ask_backend(struct gg_backend *backend, const void *pointer, gg_device **device,
                             struct gg_pointer_info *info)
{
    gg_status status = GG_OK;
    for (int32_t i = 0; i < backend->device_count && !status; i++) {
        if (!may_ask(&backend->devices[i]))
            continue;
        status = ask(&backend->devices[i], pointer, info);
        if (status || info->kind == GG_MEMORY_HOST)
            continue;
        bool told = info->device >= 0 && info->device < backend->device_count;
        *device = &backend->devices[told ? info->device : i];
        return GG_OK;
    }
    return status;
}

gg_status gg_pointer_query(const void *pointer, gg_device **device, struct gg_pointer_info *info)
{
    struct gg_pointer_info found = {.struct_size = sizeof found, .device = -1};
    static const size_t first = offsetof(struct gg_pointer_info, size) + sizeof(size_t);
    gg_device *at = NULL, *current;
    if (!pointer)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "pointer_info: the pointer is NULL");
    if (!ggi_sized_fits(info, first))
        return ggi_sized_refuse("gg_pointer_query", "gg_pointer_info", info, first);
    gg_status status = gg_current_device(&current);
    if (!status)
        status = ggi_device_ready(current);
    for (struct gg_backend *b = ggi_backend_next_open(NULL); b && !status && !at;
         b = ggi_backend_next_open(b))
        status = ask_backend(b, pointer, &at, &found);
    if (status)
        return status;
    if (!at)
        found = (struct gg_pointer_info){.device = -1, .kind = GG_MEMORY_HOST};
    found.struct_size = sizeof found;
    ggi_sized_write(info, &found, sizeof found);
    *device = at;
    return GG_OK;
}
