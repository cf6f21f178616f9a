/* borrow.c: communicators of the vendor's library that other code has, and ours for other code. */
#include "collective/collective.h"
#include "base/process_state.h"
#include "runtime/call.h"

#include <gpuglue/comm_device.h>

#include <stdlib.h>

static gg_status borrow_part(struct gg_comm *comm, struct gg_device *device, uint64_t native)
{
    const char *path;
    int32_t version;
    gg_status status = ggi_collective_library(device, &path, &version);
    if (status)
        return status;
    struct ggi_collective *self = comm->collective = ggi_collective_new(comm, device);
    if (!self)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "gg_comm_borrow: no memory for a communicator");
    atomic_fetch_or(&ggi_leaving_watchers, self->watcher);
    self->ops = device->backend->comm_ops;
    self->path = path;
    self->version = version;
    status = self->ops->borrow(atomic_load(&device->impl), native, &comm->size, &comm->rank,
                               &self->impl);
    if (status)
        return ggi_named_op_failed(device, "comm_borrow", status);
    if (comm->size > GG_COMM_SIZE_MAX)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "gg_comm_borrow: the communicator has %d ranks, expected at most %d",
                        comm->size, GG_COMM_SIZE_MAX);
    status = ggi_comm_segment_alone(comm);
    if (!status)
        status = ggi_collective_see_others(comm);
    return status ? status : ggi_collective_watch(comm);
}

static void borrow_drop(struct gg_comm *comm)
{
    struct ggi_collective *self = comm->collective;
    if (self && self->impl)
        self->ops->destroy(self->impl, 0);
    if (self)
        ggi_collective_release(self);
    ggi_comm_free(comm);
}

gg_status gg_comm_borrow(gg_device *device, uint64_t native, gg_comm **out)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    if (!native)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "gg_comm_borrow: the handle is 0");
    struct gg_comm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "gg_comm_borrow: no memory for a communicator");
    ggi_watch_forks();
    comm->references = 1;
    comm->generation = atomic_load(&ggi_generation);
    atomic_init(&comm->timeout_ns, GG_FOREVER);
    comm->file = -1;
    comm->external = true;
    comm->call = "gg_comm_borrow";
    status = borrow_part(comm, device, native);
    if (status)
        borrow_drop(comm);
    else
        *out = comm;
    return status;
}

gg_status gg_comm_native(gg_comm *comm, uint64_t *native)
{
    gg_status status = ggi_collective_enter(comm, "gg_comm_native");
    if (status)
        return status;
    struct ggi_collective *self = comm->collective;
    pthread_mutex_lock(&self->lock); /* a close in another thread waits */
    if (self->closing)
        status = ggi_fail(GG_ERR_INVALID_ARGUMENT, "gg_comm_native: the communicator is closed");
    else
        *native = self->ops->native(self->impl);
    pthread_mutex_unlock(&self->lock);
    return ggi_comm_leave(comm, status);
}
