/* allocator.c: device memory from a table of the user's in place of the pool. */
#include "pool.h"

#include <stdlib.h>

static struct gg_allocator table;
static _Atomic(const struct gg_allocator *) current; /* NULL: the pool */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void survive_forks(void)
{
    ggi_reset_in_child(&table_lock);
}

gg_status gg_set_allocator(const struct gg_allocator *allocator)
{
    if (allocator && allocator->struct_size < sizeof *allocator)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_set_allocator: struct_size is %u, expected sizeof(struct gg_allocator)",
                        (unsigned)allocator->struct_size);
    if (allocator && (!allocator->alloc || !allocator->free))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_set_allocator: both alloc and free are needed");
    pthread_once(&table_once, survive_forks);
    pthread_mutex_lock(&table_lock);
    if (allocator)
        table = *allocator;
    atomic_store(&current, allocator ? &table : NULL);
    pthread_mutex_unlock(&table_lock);
    return GG_OK;
}

bool ggi_allocator_set(void)
{
    return atomic_load_explicit(&current, memory_order_acquire);
}

/* One allocation: what its free is called with. */
struct loan {
    struct gg_allocator from;
    gg_device *device;
    gg_stream *stream; /* a reference of a use */
    void *pointer;
    size_t nbytes;
};

static void give_back(void *owner)
{
    struct loan *loan = owner;
    loan->from.free(loan->from.user, loan->device, loan->pointer, loan->nbytes);
    ggi_stream_use_release(loan->stream);
    free(loan);
}

/* NULL, or what is wrong with what the allocator gave, as far as the driver knows. */
static const char *complaint(gg_device *device, const void *pointer, size_t nbytes)
{
    struct gg_pointer_info info = {.struct_size = sizeof info};
    gg_device *found = NULL;
    if (!pointer)
        return "it gave a NULL pointer and no error";
    if (!gg_device_supports(device, GG_OP_pointer_info) || gg_pointer_query(pointer, &found, &info))
        return NULL;
    if (found != device)
        return "what it gave is no memory of that device";
    size_t at = (size_t)((uintptr_t)pointer - (uintptr_t)info.base);
    return info.base && (at > info.size || nbytes > info.size - at) ? "it gave fewer bytes" : NULL;
}

static gg_status refuse(gg_device *device, size_t nbytes, const char *why)
{
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s:%d: the allocator given to gg_set_allocator was asked for %zu bytes: %s",
                    device->backend->name, (int)device->ordinal, nbytes, why);
}

static gg_status borrow(struct loan *loan)
{
    gg_status status =
        loan->from.alloc(loan->from.user, loan->device, loan->nbytes, loan->stream, &loan->pointer);
    if (status)
        return ggi_fail(status,
                        "%s:%d: the allocator given to gg_set_allocator has no %zu bytes (%s)",
                        loan->device->backend->name, (int)loan->device->ordinal, loan->nbytes,
                        gg_status_message(status));
    const char *why = complaint(loan->device, loan->pointer, loan->nbytes);
    if (why && loan->pointer)
        loan->from.free(loan->from.user, loan->device, loan->pointer, loan->nbytes);
    return why ? refuse(loan->device, loan->nbytes, why) : GG_OK;
}

gg_status ggi_allocator_alloc(gg_device *device, size_t nbytes, gg_stream *stream, gg_memory **out)
{
    struct loan *loan = calloc(1, sizeof *loan);
    if (!loan)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a memory handle");
    pthread_mutex_lock(&table_lock);
    loan->from = table;
    pthread_mutex_unlock(&table_lock);
    loan->device = device;
    loan->stream = stream;
    loan->nbytes = nbytes;
    ggi_drain(device); /* what was released goes back to the allocator first */
    ggi_stream_use_retain(stream);
    gg_status status = borrow(loan);
    if (!status) {
        status =
            gg_memory_wrap(device, GG_MEMORY_DEVICE, loan->pointer, nbytes, give_back, loan, out);
        if (!status) /* their pool gives blocks again in the order of the stream, as ours does */
            return gg_memory_hand_out(*out, stream);
        loan->from.free(loan->from.user, device, loan->pointer, nbytes);
    }
    ggi_stream_use_release(stream);
    free(loan);
    return status;
}
