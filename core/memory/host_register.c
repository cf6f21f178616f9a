/* host_register.c: registration of the user's own host memory. */
#include "base/error.h"
#include "runtime/call.h"
#include "memory/memory.h"

#include <unistd.h>

/* The pages of the memory: [begin, begin + size). */
static gg_status register_page_range(const void *pointer, size_t nbytes, uintptr_t *begin,
                                     size_t *size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)pointer;
    if (!pointer || !nbytes)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "host_register: %zu bytes at %p: expected at least 1 byte at a pointer "
                        "that is not NULL",
                        nbytes, pointer);
    if (nbytes > UINTPTR_MAX - first || first + nbytes > UINTPTR_MAX - page)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "host_register: %zu bytes at %p extend past the end of the address space",
                        nbytes, pointer);
    *begin = first / page * page;
    *size = (first + nbytes + page - 1) / page * page - *begin;
    return GG_OK;
}

/* Pages that cannot be unlocked stay in the index, with their owner. Nothing runs on a lost device. */
static bool register_free(gg_memory *memory)
{
    struct gg_device *device = memory->device;
    gg_status status = GGI_CALL(device, mem_unregister, NULL, memory->locked_size,
                                (atomic_load(&device->impl), memory->pointer));
    if (status && status != GG_ERR_DEVICE_LOST)
        return false;
    ggi_pinned_remove(memory);
    return true;
}

/* Released memory stays locked while unlocking it might wait, so it can be registered again at once. */
static bool register_is_released(const struct ggi_retired *item, const void *what)
{
    const gg_memory *wanted = what, *memory = ggi_memory_retired(item);
    return memory && memory->first_page && memory->pointer == wanted->pointer &&
           memory->block_size == wanted->block_size && memory->locked_size >= wanted->nbytes &&
           item->idle((struct ggi_retired *)(uintptr_t)item);
}

static gg_memory *register_reuse(const gg_memory *wanted)
{
    struct gg_device *device = wanted->device;
    struct ggi_retired *item = NULL;
    pthread_mutex_lock(&device->drain_lock);
    if (!atomic_load(&ggi_shutting_down))
        item = ggi_retire_pick(device, register_is_released, wanted);
    pthread_mutex_unlock(&device->drain_lock);
    gg_memory *memory = item ? ggi_memory_retired(item) : NULL;
    if (!memory)
        return NULL;
    ggi_memory_leave_epoch(memory);
    if (memory->waits)
        atomic_fetch_sub(&device->others_waiting, 1);
    memory->waits = false;
    if (memory->release)
        memory->release(memory->owner);
    memory->nbytes = wanted->nbytes;
    return memory;
}

/* The host cache pins its blocks itself: a part of one is not locked again. */
static bool register_is_cached(gg_device *device, const void *pointer, size_t nbytes)
{
    size_t offset;
    gg_memory *memory = ggi_pinned_find(pointer, nbytes, &offset);
    bool cached = memory && memory->device == device && ggi_host_cache_owns(memory);
    gg_memory_release(memory);
    return cached;
}

/* Lock the pages unless they are locked. Added to the index first, so that two threads cannot lock a page. */
static gg_status register_lock(gg_memory **memory)
{
    struct gg_device *device = (*memory)->device;
    gg_memory *old = register_reuse(*memory);
    if (old) {
        ggi_memory_delete(*memory);
        *memory = old;
        return GG_OK;
    }
    gg_status status = ggi_pinned_add_alone(*memory);
    if (status)
        return status;
    const size_t nbytes = (*memory)->nbytes;
    status = GGI_CALL_RELAXED(device, mem_register, NULL, nbytes,
                              (atomic_load(&device->impl), (*memory)->pointer, nbytes));
    (*memory)->copies_only = status == GG_NOT_READY;
    if (status <= GG_NOT_READY)
        return GG_OK;
    ggi_pinned_remove(*memory);
    return status;
}

gg_status gg_memory_host_register(gg_device *device, void *pointer, size_t nbytes,
                                  void (*release)(void *), void *owner, gg_memory **out)
{
    static const struct ggi_backing registered = {.free = register_free};
    uintptr_t begin = 0;
    size_t size = 0;
    gg_status status = ggi_device_ready(device);
    if (!status)
        status = register_page_range(pointer, nbytes, &begin, &size);
    if (status)
        return status;
    if (!device->ops->mem_register || !device->ops->mem_unregister)
        return ggi_unsupported(device, GG_OP_mem_register);
    if (register_is_cached(device, pointer, nbytes))
        return gg_memory_wrap(device, GG_MEMORY_PINNED, pointer, nbytes, release, owner, out);
    ggi_drain_all(device); /* it may unlock some of the pages */
    gg_memory *memory = ggi_memory_new_handle(device, GG_MEMORY_PINNED, pointer, nbytes);
    if (!memory)
        return ggi_memory_no_handle();
    memory->backing = &registered;
    memory->first_page = (void *)begin;
    memory->block_size = size;
    memory->locked_size = nbytes;
    memory->retired.may_wait = memory->retired.locked = true;
    status = register_lock(&memory);
    if (status) {
        ggi_memory_delete(memory);
        return status;
    }
    return ggi_memory_wrapped(memory, release, owner, out);
}
