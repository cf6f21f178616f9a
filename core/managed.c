/* managed.c: host memory that is page-locked where it lies, and managed memory: where it is to be. */
#include "pool.h"

#include <unistd.h>

/* ---- registered memory ---- */

/* Whole pages: [begin, begin + size). */
static gg_status to_pages(const void *pointer, size_t nbytes, uintptr_t *begin, size_t *size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)pointer;
    if (!pointer || !nbytes)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "register: %zu bytes at %p: there is nothing to "
                        "page-lock",
                        nbytes, pointer);
    if (nbytes > UINTPTR_MAX - first || first + nbytes > UINTPTR_MAX - page)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                        "register: %zu bytes at %p leave the address space", nbytes, pointer);
    *begin = first / page * page;
    *size = (first + nbytes + page - 1) / page * page - *begin;
    return GG_OK;
}

static gg_status lock_pages(const gg_memory *memory)
{
    struct gg_device *device = memory->device;
    struct ggi_own own;
    ggi_relax_begin(device, &own);
    ggi_begin(device, GG_OP_mem_register, NULL, memory->locked);
    gg_status status =
        device->ops->mem_register(atomic_load(&device->impl), memory->pointer, memory->locked);
    status = ggi_end(device, GG_OP_mem_register, NULL, memory->locked, status);
    ggi_relax_end(device, &own);
    return status;
}

bool ggi_unregister(gg_memory *memory)
{
    struct gg_device *device = memory->device;
    ggi_begin(device, GG_OP_mem_unregister, NULL, memory->locked);
    gg_status status = device->ops->mem_unregister(atomic_load(&device->impl), memory->pointer);
    status = ggi_end(device, GG_OP_mem_unregister, NULL, memory->locked, status);
    return !status || status == GG_ERR_DEVICE_LOST; /* nothing runs there any more */
}

/* Memory that was registered, closed, and is idle by now, but stays locked while unlocking might wait. */
static bool is_closed(const struct ggi_retired *item, const void *what)
{
    const gg_memory *wanted = what, *memory = ggi_memory_retired(item);
    return memory && memory->registered && memory->pointer == wanted->pointer &&
           memory->room == wanted->room && memory->locked >= wanted->nbytes &&
           item->idle((struct ggi_retired *)(uintptr_t)item);
}

static gg_memory *take_back(const gg_memory *wanted)
{
    struct gg_device *device = wanted->device;
    struct ggi_retired *item = NULL;
    pthread_mutex_lock(&device->drain_lock);
    if (!atomic_load(&ggi_down))
        item = ggi_retire_pick(device, is_closed, wanted);
    pthread_mutex_unlock(&device->drain_lock);
    gg_memory *memory = item ? ggi_memory_retired(item) : NULL;
    if (!memory)
        return NULL;
    ggi_quarantine_leave(memory);
    if (memory->release)
        memory->release(memory->owner);
    memory->nbytes = wanted->nbytes;
    return memory;
}

/* The engine locks results by itself from their second use on: a part of one has no lock of its own. */
static bool is_of_result(gg_device *device, const void *pointer, size_t nbytes)
{
    size_t offset;
    gg_memory *memory = ggi_pinned_find(pointer, nbytes, &offset);
    bool of_result = memory && memory->device == device && ggi_result_is(memory);
    gg_memory_release(memory);
    return of_result;
}

/* Locked now, or still. The place in the list of pinned memory is taken first, so that two threads cannot
 * both lock a page. */
static gg_status lock(gg_memory **memory)
{
    gg_memory *old = take_back(*memory);
    if (old) {
        ggi_memory_delete(*memory);
        *memory = old;
        return GG_OK;
    }
    gg_status status = ggi_pinned_add_alone(*memory);
    if (status)
        return status;
    status = lock_pages(*memory);
    if (status)
        ggi_pinned_remove(*memory);
    return status;
}

gg_status gg_memory_register(gg_device *device, void *pointer, size_t nbytes,
                             void (*release)(void *), void *owner, gg_memory **out)
{
    uintptr_t begin = 0;
    size_t size = 0;
    gg_status status = ggi_device_ready(device);
    if (!status)
        status = to_pages(pointer, nbytes, &begin, &size);
    if (status)
        return status;
    if (!device->ops->mem_register || !device->ops->mem_unregister)
        return ggi_unsupported(device, GG_OP_mem_register);
    if (is_of_result(device, pointer, nbytes))
        return gg_memory_wrap(device, GG_MEMORY_PINNED, pointer, nbytes, release, owner, out);
    ggi_drain(device); /* pages that were released may be locked still */
    gg_memory *memory = ggi_memory_blank(device, GG_MEMORY_PINNED, pointer, nbytes);
    if (!memory)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory for a memory handle");
    memory->registered = (void *)begin;
    memory->room = size;
    memory->locked = nbytes;
    memory->retired.may_wait = true;
    status = lock(&memory);
    if (status) {
        ggi_memory_delete(memory);
        return status;
    }
    memory->wrapped = true;
    memory->release = release;
    memory->owner = owner;
    atomic_store(&memory->refs, 1);
    *out = memory;
    return GG_OK;
}

/* ---- managed memory ---- */

static gg_status check_managed(gg_memory *memory, const char *what)
{
    gg_status status = ggi_check(memory->device);
    if (status)
        return status;
    if (memory->kind == GG_MEMORY_MANAGED)
        return GG_OK;
    return ggi_fail(GG_ERR_INVALID_ARGUMENT,
                    "%s: only managed memory has a place to choose, this is memory of kind %d",
                    what, (int)memory->kind);
}

gg_status gg_memory_prefetch(gg_memory *memory, int to_host, gg_stream *stream)
{
    struct gg_device *device = memory->device;
    bool implicit, complete;
    gg_status status = check_managed(memory, "prefetch");
    if (!status)
        status = ggi_choose_stream(device, &stream, &implicit, &complete);
    if (status)
        return status;
    if (!device->ops->mem_prefetch)
        return ggi_unsupported(device, GG_OP_mem_prefetch);
    if (!memory->nbytes)
        return GG_OK;
    status = implicit ? ggi_memory_order(memory, stream) : ggi_memory_enter(memory, stream);
    if (status)
        return status;
    ggi_begin(device, GG_OP_mem_prefetch, stream, memory->nbytes);
    status = device->ops->mem_prefetch(stream->impl, memory->pointer, memory->nbytes, to_host != 0);
    status = ggi_end(device, GG_OP_mem_prefetch, stream, memory->nbytes, status);
    if (ggi_stream_captures(stream))
        atomic_store(&memory->captured, 1);
    else
        ggi_memory_used(memory, stream, ggi_stream_submitted(stream));
    return !status && complete ? ggi_stream_finish(stream, true) : status;
}

gg_status gg_memory_advise(gg_memory *memory, enum gg_advice advice, int for_host)
{
    struct gg_device *device = memory->device;
    gg_status status = check_managed(memory, "advise");
    if (status)
        return status;
    if ((int)advice < GG_ADVICE_READ_MOSTLY || advice > GG_ADVICE_NOT_ACCESSED_BY)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "advise: advice %d is unknown; there are %d to %d",
                        (int)advice, GG_ADVICE_READ_MOSTLY, GG_ADVICE_NOT_ACCESSED_BY);
    if (!device->ops->mem_advise)
        return ggi_unsupported(device, GG_OP_mem_advise);
    if (!memory->nbytes)
        return GG_OK;
    ggi_begin(device, GG_OP_mem_advise, NULL, memory->nbytes);
    status = device->ops->mem_advise(atomic_load(&device->impl), memory->pointer, memory->nbytes,
                                     advice, for_host != 0);
    return ggi_end(device, GG_OP_mem_advise, NULL, memory->nbytes, status);
}
