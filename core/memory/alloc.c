/* alloc.c: memory from the pool or from the user's allocator, and handles to memory allocated elsewhere. */
#include "base/error.h"
#include "base/sized.h"
#include "runtime/scope.h"
#include "memory/pool.h"
#include "memory/uses.h"

#include <stddef.h>
#include <stdlib.h>

/* ---- memory allocated elsewhere ---- */

/* A part of pinned memory is not added to the index, where it would hide the rest: the whole records its uses. */
static gg_memory *wrap_handle(gg_device *device, enum gg_memory_kind kind, void *pointer,
                              size_t nbytes)
{
    size_t offset = 0;
    gg_memory *parent =
        nbytes && kind != GG_MEMORY_DEVICE ? ggi_pinned_find(pointer, nbytes, &offset) : NULL;
    if (!parent)
        return ggi_memory_new(device, kind, pointer, nbytes);
    gg_memory *memory = ggi_memory_new_handle(device, kind, pointer, nbytes);
    if (memory)
        memory->parent = parent;
    else
        gg_memory_release(parent);
    return memory;
}

gg_status gg_memory_wrap(gg_device *device, enum gg_memory_kind kind, void *pointer, size_t nbytes,
                         void (*release)(void *), void *owner, gg_memory **out)
{
    gg_status status = ggi_memory_check_request(device, kind, nbytes, NULL);
    if (status)
        return status;
    if (!pointer && nbytes)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "a NULL pointer cannot hold %zu bytes", nbytes);
    gg_memory *memory = wrap_handle(device, kind, pointer, nbytes);
    return memory ? ggi_memory_wrapped(memory, release, owner, out) : ggi_memory_no_handle();
}

/* ---- the user's allocator, in place of the pool for device memory ---- */

static struct gg_allocator user_allocator;
static _Atomic(const struct gg_allocator *) user_current; /* NULL: the pool */
static pthread_mutex_t user_lock = PTHREAD_MUTEX_INITIALIZER;
GGI_RESET_IN_CHILD(user_lock)

gg_status gg_set_allocator(const struct gg_allocator *allocator)
{
    static const size_t first = GGI_SIZE_TO(struct gg_allocator, free);
    if (allocator && !ggi_sized_fits(allocator, first))
        return ggi_sized_refuse("gg_set_allocator", "gg_allocator", allocator, first);
    if (allocator && (!allocator->alloc || !allocator->free))
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "gg_set_allocator: alloc and free must both be set");
    pthread_mutex_lock(&user_lock);
    if (allocator) { /* it may be shorter than ours, or longer */
        user_allocator = (struct gg_allocator){.struct_size = sizeof user_allocator};
        ggi_sized_write(&user_allocator, allocator, allocator->struct_size);
    }
    atomic_store(&user_current, allocator ? &user_allocator : NULL);
    pthread_mutex_unlock(&user_lock);
    return GG_OK;
}

static bool user_allocator_is_set(void)
{
    return atomic_load_explicit(&user_current, memory_order_acquire);
}

/* An allocation, and the allocator that frees it. */
struct user_block {
    struct gg_allocator allocator;
    gg_device *device;
    gg_stream *stream; /* a reference of a use */
    void *pointer;
    size_t nbytes;
};

static void user_block_return(struct user_block *block)
{
    block->allocator.free(block->allocator.user, block->device, block->pointer, block->nbytes);
}

static void user_block_delete(struct user_block *block)
{
    ggi_stream_use_release(block->stream);
    free(block);
}

static void user_block_release(void *owner)
{
    user_block_return(owner);
    user_block_delete(owner);
}

/* The error in the memory that the allocator returned, as far as the driver reports it; or NULL. */
static const char *user_block_error(gg_device *device, const void *pointer, size_t nbytes)
{
    struct gg_pointer_info info = {.struct_size = sizeof info};
    gg_device *found = NULL;
    if (!pointer)
        return "it returned a NULL pointer and no error";
    if (!gg_device_supports(device, GG_OP_pointer_info) || gg_pointer_query(pointer, &found, &info))
        return NULL;
    if (found != device)
        return "it returned memory that is not on that device";
    size_t at = (size_t)((uintptr_t)pointer - (uintptr_t)info.base);
    return info.base && (at > info.size || nbytes > info.size - at) ? "it returned fewer bytes"
                                                                    : NULL;
}

static gg_status user_block_alloc(struct user_block *block)
{
    const struct gg_device *device = block->device;
    gg_status status = block->allocator.alloc(block->allocator.user, block->device, block->nbytes,
                                              block->stream, &block->pointer);
    if (status)
        return ggi_fail(
            status, "%s:%d: the allocator given to gg_set_allocator cannot allocate %zu bytes (%s)",
            device->backend->name, (int)device->ordinal, block->nbytes, gg_status_message(status));
    const char *error = user_block_error(block->device, block->pointer, block->nbytes);
    if (!error)
        return GG_OK;
    if (block->pointer)
        user_block_return(block);
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s:%d: the allocator given to gg_set_allocator was asked for %zu bytes: %s",
                    device->backend->name, (int)device->ordinal, block->nbytes, error);
}

static gg_status user_allocator_alloc(gg_device *device, size_t nbytes, gg_stream *stream,
                                      gg_memory **out)
{
    struct user_block *block = calloc(1, sizeof *block);
    if (!block)
        return ggi_memory_no_handle();
    pthread_mutex_lock(&user_lock);
    block->allocator = user_allocator;
    pthread_mutex_unlock(&user_lock);
    block->device = device;
    block->stream = stream;
    block->nbytes = nbytes;
    ggi_drain(device); /* so that released blocks are returned to the allocator */
    ggi_stream_use_retain(stream);
    gg_status status = user_block_alloc(block);
    if (status == GG_ERR_OUT_OF_MEMORY && ggi_drain_waiting(device)) {
        ggi_drain_all_now(device);
        status = user_block_alloc(block);
    }
    if (!status) {
        status = gg_memory_wrap(device, GG_MEMORY_DEVICE, block->pointer, nbytes,
                                user_block_release, block, out);
        if (!status) { /* the allocator may reuse a block before work on the stream has finished */
            status = gg_memory_ready_after(*out, stream);
            if (status) {
                gg_memory_release(*out);
                *out = NULL;
            }
            return status;
        }
        user_block_return(block);
    }
    user_block_delete(block);
    return status;
}

/* ---- allocation ---- */

/* The pool, and the stream to allocate on: the current one if none was given. */
static struct ggi_pool *alloc_target(gg_device *device, enum gg_memory_kind kind, gg_stream **stream)
{
    bool complete;
    if (kind != GG_MEMORY_DEVICE)
        *stream = NULL;
    else if (!*stream)
        ggi_implicit_stream(device, stream, &complete);
    return device->pools[kind == GG_MEMORY_DEVICE ? 0 : kind == GG_MEMORY_PINNED ? 1 : 2];
}

static inline gg_status alloc_try(gg_device *device, enum gg_memory_kind kind, size_t nbytes,
                                  gg_stream *stream, enum ggi_attempt *attempt, gg_memory **out)
{
    gg_status status = ggi_memory_check_request(device, kind, nbytes, stream);
    if (status)
        return status;
    struct ggi_pool *pool = alloc_target(device, kind, &stream);
    bool pooled = nbytes && !(pool->by_stream && user_allocator_is_set());
    return pooled && ggi_pool_try_alloc(pool, nbytes, stream, attempt, out) ? GG_OK : GG_NOT_READY;
}

gg_status gg_memory_try_alloc(gg_device *device, enum gg_memory_kind kind, size_t nbytes,
                              gg_stream *stream, gg_memory **out)
{
    enum ggi_attempt attempt = GGI_ATTEMPT_ONLY;
    return alloc_try(device, kind, nbytes, stream, &attempt, out);
}

static gg_status alloc_nothing(gg_device *device, enum gg_memory_kind kind, gg_memory **out)
{
    gg_memory *memory = ggi_memory_new(device, kind, NULL, 0);
    if (!memory)
        return ggi_memory_no_handle();
    atomic_store(&memory->refs, 1);
    *out = memory;
    return GG_OK;
}

gg_status gg_memory_alloc(gg_device *device, enum gg_memory_kind kind, size_t nbytes,
                          gg_stream *stream, gg_memory **out)
{
    enum ggi_attempt attempt = GGI_ATTEMPT_FIRST;
    gg_status status = alloc_try(device, kind, nbytes, stream, &attempt, out);
    if (status != GG_NOT_READY)
        return status;
    if (!nbytes)
        return alloc_nothing(device, kind, out);
    struct ggi_pool *pool = alloc_target(device, kind, &stream);
    if (pool->by_stream && user_allocator_is_set())
        return user_allocator_alloc(device, nbytes, stream, out);
    return ggi_pool_alloc(pool, nbytes, stream, attempt == GGI_ATTEMPT_DUE, out);
}
