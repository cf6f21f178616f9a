/* sim_pool.c: memory pools: stream-ordered allocation, which reuses a block on the stream that
 * freed it before the free has run. */
#include "sim_engine.h"

int sim_pool_create(struct sim_device *device, bool host, struct sim_pool **out)
{
    struct sim_pool *pool = sim_table_take(&sim_pools);
    if (!pool)
        return SIM_NO_MEMORY;
    pool->device = device;
    pool->host = host;
    if (device)
        pool->access = 1u << device->ordinal;
    *out = pool;
    return SIM_OK;
}

void sim_pool_destroy(struct sim_pool *pool)
{
    if (pool->device && pool->device->current_pool == pool)
        pool->device->current_pool = pool->device->default_pool;
    sim_memory_forget_pool(pool);
    sim_table_drop(&sim_pools, pool);
}

void sim_pool_account(struct sim_pool *pool, int64_t change)
{
    if (!pool)
        return;
    pool->used += (uint64_t)change;
    pool->reserved = pool->used;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
}

static int fresh(struct sim_pool *pool, const struct sim_block *block, uint64_t *out)
{
    int status;
    if (pool->host)
        return sim_memory_host(SIM_PINNED, block, out);
    status = sim_memory_device(pool->device, block, out);
    /* Queued frees may release memory. */
    if (status == SIM_NO_MEMORY && block->size <= pool->device->size) {
        sim_wait_device(pool->device);
        status = sim_memory_device(pool->device, block, out);
    }
    return status;
}

int sim_pool_alloc(struct sim_pool *pool, struct sim_queue *queue, size_t size, uint64_t *out)
{
    struct sim_block block = {.context = queue->context, .pool = pool, .size = size};
    struct sim_alloc *alloc;
    if (!size)
        return SIM_INVALID;
    if (queue->capture)
        return SIM_UNSUPPORTED;
    alloc = sim_memory_reuse(pool, queue, size);
    if (!alloc)
        return fresh(pool, &block, out);
    alloc->serial = sim_serial(); /* the queued free no longer finds it */
    alloc->freed_on = NULL;
    alloc->attempted = false;
    alloc->size = size;
    alloc->reach = size > alloc->reach ? size : alloc->reach;
    *out = alloc->base;
    return SIM_OK;
}

int sim_pool_free(uint64_t address, struct sim_queue *queue)
{
    struct sim_alloc *alloc = sim_memory_find(address);
    struct sim_work work = {.kind = SIM_FREE};
    int status;
    if (!alloc || alloc->base != address || alloc->freed_on || alloc->imported ||
        alloc->kind == SIM_REGISTERED)
        return SIM_INVALID;
    if (queue->capture)
        return SIM_UNSUPPORTED;
    work.free.address = address;
    work.free.serial = alloc->serial;
    alloc->freed_on = queue;
    alloc->freed_queue_id = queue->id;
    alloc->attempted = true;
    status = sim_queue_submit(queue, &work);
    if (status)
        alloc->freed_on = NULL;
    return status;
}
