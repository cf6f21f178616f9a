/* sim_memory.c: all allocations of a simulated library, sorted by address. Host code cannot access
 * device memory. */
#include "sim_ipc.h"
#include "sim_engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { POISON_BYTES = 1 << 16, FRESH = 0xCB, FREED = 0xDD };

static struct sim_alloc *allocs; /* sorted by base */
static size_t alloc_count, alloc_room;

/* The number of allocations that begin at or below an address. */
static size_t position(uint64_t address)
{
    size_t low = 0, high = alloc_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (allocs[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int insert(const struct sim_alloc *alloc)
{
    size_t at = position(alloc->base);
    if (alloc_count == alloc_room) {
        size_t room = alloc_room ? alloc_room * 2 : 64;
        struct sim_alloc *grown = realloc(allocs, room * sizeof *grown);
        if (!grown)
            return SIM_NO_MEMORY;
        allocs = grown;
        alloc_room = room;
    }
    memmove(&allocs[at + 1], &allocs[at], (alloc_count - at) * sizeof *allocs);
    allocs[at] = *alloc;
    alloc_count++;
    return SIM_OK;
}

static struct sim_alloc describe(enum sim_memory kind, const struct sim_block *block, uint64_t base,
                                 size_t reserved)
{
    return (struct sim_alloc){.base = base,
                              .serial = sim_serial(),
                              .size = block->size,
                              .reserved = reserved,
                              .reach = block->size,
                              .kind = kind,
                              .device = block->context ? block->context->device : NULL,
                              .context = block->context,
                              .pool = block->pool,
                              .flags = block->flags};
}

bool sim_memory_reserved(uint64_t address)
{
    return address >= sim.base && address < sim.limit;
}

struct sim_alloc *sim_memory_find(uint64_t address)
{
    size_t at = position(address);
    struct sim_alloc *alloc = at ? &allocs[at - 1] : NULL;
    return alloc && address - alloc->base < alloc->size ? alloc : NULL;
}

uint64_t sim_memory_on_device(const struct sim_alloc *alloc, uint64_t address)
{
    const uint64_t elsewhere = (uint64_t)1 << 50;
    return alloc->kind == SIM_REGISTERED && !sim.host_pointers ? address + elsewhere : address;
}

struct sim_alloc *sim_memory_range(uint64_t address, size_t size)
{
    struct sim_alloc *alloc = sim_memory_find(address);
    return alloc && size <= alloc->size - (address - alloc->base) ? alloc : NULL;
}

struct sim_alloc *sim_memory_reach(uint64_t address, size_t size)
{
    size_t at = position(address);
    struct sim_alloc *alloc = at ? &allocs[at - 1] : NULL;
    uint64_t offset = alloc ? address - alloc->base : 0;
    return alloc && offset < alloc->reach && size <= alloc->reach - offset ? alloc : NULL;
}

char *sim_memory_alias(const struct sim_alloc *alloc, uint64_t address)
{
    if (alloc->kind != SIM_DEVICE)
        return (char *)(uintptr_t)address;
    return alloc->device->alias + (address - alloc->device->base);
}

/* Overwrites old contents, so that a test detects a read of uninitialised or freed memory. */
static void poison(const struct sim_alloc *alloc, int byte)
{
    size_t edge = alloc->reserved < POISON_BYTES ? alloc->reserved : POISON_BYTES;
    char *begin = sim_memory_alias(alloc, alloc->base);
    memset(begin, byte, edge);
    memset(begin + alloc->reserved - edge, byte, edge);
}

/* First fit, so that a freed address is reused as early as possible. */
static uint64_t first_gap(const struct sim_device *device, size_t size)
{
    uint64_t begin = device->base, limit = device->base + device->size;
    for (size_t i = position(begin - 1); i < alloc_count && allocs[i].base < limit; i++) {
        if (allocs[i].base - begin >= size)
            return begin;
        begin = allocs[i].base + allocs[i].reserved;
    }
    return limit >= begin && limit - begin >= size ? begin : 0;
}

int sim_memory_device(struct sim_device *device, const struct sim_block *block, uint64_t *out)
{
    struct sim_alloc alloc;
    size_t reserved = (block->size + SIM_ALIGNMENT - 1) / SIM_ALIGNMENT * SIM_ALIGNMENT;
    uint64_t base;
    int status;
    if (!block->size)
        return SIM_INVALID;
    if (reserved < block->size || reserved > device->size - device->used)
        return SIM_NO_MEMORY;
    base = first_gap(device, reserved);
    if (!base)
        return SIM_NO_MEMORY;
    alloc = describe(SIM_DEVICE, block, base, reserved);
    alloc.device = device;
    status = insert(&alloc);
    if (status)
        return status;
    device->used += reserved;
    sim_pool_account(block->pool, (int64_t)reserved);
    poison(&alloc, FRESH);
    *out = base;
    return SIM_OK;
}

int sim_memory_import(struct sim_context *context, int file, uint64_t offset, size_t size,
                      size_t inside, uint64_t *out)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const struct sim_block block = {.context = context, .size = size};
    struct sim_device *device = context->device;
    uint64_t base = first_gap(device, size + page);
    struct sim_alloc alloc;
    int status;
    if (!base)
        return SIM_NO_MEMORY;
    base = (base + page - 1) / page * page;
    alloc = describe(SIM_DEVICE, &block, base, size);
    alloc.imported = base + inside;
    status = insert(&alloc);
    if (status)
        return status;
    if (mmap(sim_memory_alias(&alloc, base), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             file, (off_t)offset) == MAP_FAILED)
        return SIM_NO_MEMORY;
    *out = alloc.imported;
    return SIM_OK;
}

/* Replaces imported pages with the device's own pages. */
static void restore_pages(const struct sim_alloc *alloc)
{
    mmap(sim_memory_alias(alloc, alloc->base), alloc->reserved, PROT_READ | PROT_WRITE,
         MAP_SHARED | MAP_FIXED, alloc->device->file, (off_t)(alloc->base - alloc->device->base));
}

struct sim_alloc *sim_memory_next(const struct sim_alloc *previous)
{
    size_t at = previous ? (size_t)(previous - allocs) + 1 : 0;
    return at < alloc_count ? &allocs[at] : NULL;
}

/* One mapping, which a forked child shares; a child may not access managed memory. */
int sim_memory_host(enum sim_memory kind, const struct sim_block *block, uint64_t *out)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t reserved = (block->size + page - 1) / page * page;
    struct sim_alloc alloc;
    void *base;
    int status;
    if (!block->size)
        return SIM_INVALID;
    if (reserved < block->size)
        return SIM_NO_MEMORY;
    base = mmap(NULL, reserved, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return SIM_NO_MEMORY;
    if (kind == SIM_MANAGED)
        madvise(base, reserved, MADV_DONTFORK);
    alloc = describe(kind, block, (uintptr_t)base, reserved);
    status = insert(&alloc);
    if (status) {
        munmap(base, reserved);
        return status;
    }
    sim_pool_account(block->pool, (int64_t)reserved);
    poison(&alloc, FRESH);
    *out = alloc.base;
    return SIM_OK;
}

static bool overlaps(uint64_t address, size_t size)
{
    size_t at = position(address + size - 1);
    return at && allocs[at - 1].base + allocs[at - 1].size > address;
}

bool sim_memory_copyable(uint64_t address, size_t size)
{
    if (!address || sim_memory_reserved(address))
        return false;
    return !size || sim_memory_range(address, size) || !overlaps(address, size);
}

int sim_memory_register(uint64_t address, const struct sim_block *block)
{
    struct sim_alloc alloc;
    if (!address || !block->size || address + block->size < address)
        return SIM_INVALID;
    if (sim_memory_reserved(address))
        return SIM_INVALID;
    if (overlaps(address, block->size))
        return SIM_ALREADY_REGISTERED;
    alloc = describe(SIM_REGISTERED, block, address, block->size);
    return insert(&alloc);
}

void sim_memory_release(struct sim_alloc *alloc)
{
    size_t at = (size_t)(alloc - allocs);
    sim_pool_account(alloc->pool, -(int64_t)alloc->reserved);
    if (alloc->imported) {
        restore_pages(alloc);
    } else if (alloc->kind == SIM_DEVICE) {
        poison(alloc, FREED);
        alloc->device->used -= alloc->reserved;
    } else if (alloc->kind != SIM_REGISTERED) {
        munmap((void *)(uintptr_t)alloc->base, alloc->reserved);
    }
    alloc_count--;
    memmove(&allocs[at], &allocs[at + 1], (alloc_count - at) * sizeof *allocs);
}

void sim_memory_release_context(const struct sim_context *context)
{
    for (size_t i = alloc_count; i-- > 0;)
        if (allocs[i].context == context)
            sim_memory_release(&allocs[i]);
}

/* Memory of a destroyed pool stays valid until it is freed. */
void sim_memory_forget_pool(const struct sim_pool *pool)
{
    for (size_t i = 0; i < alloc_count; i++)
        if (allocs[i].pool == pool)
            allocs[i].pool = NULL;
}

/* Memory with a pending free on this queue: a pool reuses it at once. */
struct sim_alloc *sim_memory_reuse(const struct sim_pool *pool, const struct sim_queue *queue,
                                   size_t size)
{
    for (size_t i = 0; i < alloc_count; i++) {
        struct sim_alloc *alloc = &allocs[i];
        if (alloc->freed_on == queue && alloc->freed_queue_id == queue->id && alloc->pool == pool &&
            alloc->reserved >= size)
            return alloc;
    }
    return NULL;
}

size_t sim_memory_count(enum sim_memory kind, bool unattempted_only)
{
    size_t count = 0;
    for (size_t i = 0; i < alloc_count; i++)
        count += allocs[i].kind == kind && !allocs[i].freed_on &&
                 !(unattempted_only && allocs[i].attempted);
    return count;
}
