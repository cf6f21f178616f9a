/* memory.c: device memory is ordinary memory. Pinned memory is shared with forked children, and so are device blocks
 * from MAP_FROM to below PRIVATE_FROM, and exported ones: other processes can map these. A sorted list of blocks is
 * used to validate pointers. */
#include "host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGNMENT 256u
#define MAP_FROM \
    ((size_t)1 << 20) /* larger blocks are mapped, so that a free returns them to the system */
/* Larger blocks hold memory of one user: a slab of the core has at most this size. They are private, since most kernels have
 * huge pages only for private memory, until they are exported. In a slab, other users may write at that moment. */
#define PRIVATE_FROM (((size_t)8 << 20) + 1)
#define HUGE_PAGE ((size_t)2 << 20)

/* ---- the list of blocks; device->memory_lock is held ---- */

/* The number of blocks that begin at or below @p pointer: the last of them may contain it. */
static size_t blocks_count_up_to(const struct gg_device_impl *device, const void *pointer)
{
    size_t low = 0, high = device->block_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)device->blocks[middle].base <= (uintptr_t)pointer)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct host_block *block_find(const struct gg_device_impl *device, const void *pointer)
{
    size_t count = blocks_count_up_to(device, pointer);
    struct host_block *block = count ? &device->blocks[count - 1] : NULL;
    return block && (uintptr_t)pointer - (uintptr_t)block->base < block->size ? block : NULL;
}

static bool block_add(struct gg_device_impl *device, const struct host_block *block)
{
    size_t at = blocks_count_up_to(device, block->base);
    if (device->block_count == device->block_room) {
        size_t room = device->block_room ? 2 * device->block_room : 64;
        struct host_block *blocks = realloc(device->blocks, room * sizeof *blocks);
        if (!blocks)
            return false;
        device->blocks = blocks;
        device->block_room = room;
    }
    memmove(&device->blocks[at + 1], &device->blocks[at],
            (device->block_count - at) * sizeof *device->blocks);
    device->blocks[at] = *block;
    device->block_count++;
    return true;
}

static void block_remove(struct gg_device_impl *device, struct host_block *block)
{
    size_t after = device->block_count - (size_t)(block - device->blocks) - 1;
    memmove(block, block + 1, after * sizeof *block);
    device->block_count--;
}

/* ---- for the other files ---- */

bool host_block_insert(struct gg_device_impl *device, const struct host_block *block)
{
    pthread_mutex_lock(&device->memory_lock);
    const bool added = block_add(device, block);
    pthread_mutex_unlock(&device->memory_lock);
    return added;
}

bool host_block_get(struct gg_device_impl *device, const void *base, struct host_block *out)
{
    pthread_mutex_lock(&device->memory_lock);
    const struct host_block *block = block_find(device, base);
    const bool found = block && block->base == base;
    if (found)
        *out = *block;
    pthread_mutex_unlock(&device->memory_lock);
    return found;
}

void host_block_set(struct gg_device_impl *device, const struct host_block *changed)
{
    pthread_mutex_lock(&device->memory_lock);
    struct host_block *block = block_find(device, changed->base);
    if (block)
        *block = *changed;
    pthread_mutex_unlock(&device->memory_lock);
}

void host_block_drop(struct gg_device_impl *device, const void *base)
{
    pthread_mutex_lock(&device->memory_lock);
    struct host_block *block = block_find(device, base);
    if (block)
        block_remove(device, block);
    pthread_mutex_unlock(&device->memory_lock);
}

/* ---- memory of blocks ---- */

static void *map_pages(size_t nbytes, int sharing)
{
    void *base = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

/* Aligned to a huge page, which older kernels do not do by themselves. */
static void *map_huge_pages(size_t nbytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t size = (nbytes + page - 1) / page * page;
    char *base = map_pages(size + HUGE_PAGE, MAP_PRIVATE);
    if (!base)
        return NULL;
    const size_t before = (HUGE_PAGE - (uintptr_t)base % HUGE_PAGE) % HUGE_PAGE;
    if (before)
        munmap(base, before);
    munmap(base + before + size, HUGE_PAGE - before);
    madvise(base + before, nbytes, MADV_HUGEPAGE);
    return base + before;
}

static bool block_allocate(struct gg_device_impl *device, struct host_block *block)
{
    void *base = NULL;
    block->mapped = block->kind == GG_MEMORY_PINNED || block->size >= MAP_FROM;
    if (block->mapped && block->kind == GG_MEMORY_DEVICE && block->size < PRIVATE_FROM &&
        host_shared_allocate(device, block)) {
        host_node_prefer(device->node, block->base, block->size);
        return true;
    }
    if (block->kind == GG_MEMORY_PINNED)
        base = map_pages(block->size, MAP_SHARED);
    else if (block->mapped)
        base = map_huge_pages(block->size);
    else if (posix_memalign(&base, ALIGNMENT, block->size))
        base = NULL;
    block->base = base;
    if (base && block->mapped)
        host_node_prefer(device->node, base, block->size);
    return base != NULL;
}

static void block_free(struct gg_device_impl *device, const struct host_block *block)
{
    if (block->shared)
        host_shared_free(device, block);
    else if (block->mapped)
        munmap(block->base, block->size);
    else
        free(block->base);
}

/* A GPU's memory is limited, while the kernel may overcommit: enforce the limit here. */
static bool memory_reserve(struct gg_device_impl *device, size_t nbytes)
{
    pthread_mutex_lock(&device->memory_lock);
    const bool fits = nbytes <= device->total - device->used;
    if (fits)
        device->used += nbytes;
    pthread_mutex_unlock(&device->memory_lock);
    return fits;
}

static void memory_unreserve(struct gg_device_impl *device, size_t nbytes)
{
    pthread_mutex_lock(&device->memory_lock);
    device->used -= nbytes;
    pthread_mutex_unlock(&device->memory_lock);
}

static gg_status out_of_memory(struct gg_device_impl *device, size_t nbytes)
{
    uint64_t left, total;
    host_device_memory_info(device, &left, &total);
    return host_api->fail(
        GG_ERR_OUT_OF_MEMORY, NULL, "%llu bytes were requested, %llu of %llu are free",
        (unsigned long long)nbytes, (unsigned long long)left, (unsigned long long)total);
}

/* ---- operations ---- */

gg_status host_mem_alloc(struct gg_device_impl *device, enum gg_memory_kind kind, size_t nbytes,
                         void **out)
{
    struct host_block block = {.size = nbytes, .kind = kind};
    if (kind != GG_MEMORY_DEVICE && kind != GG_MEMORY_PINNED && kind != GG_MEMORY_MANAGED)
        return host_api->fail(GG_ERR_UNSUPPORTED, NULL, "memory of kind %d", (int)kind);
    if (!memory_reserve(device, nbytes))
        return out_of_memory(device, nbytes);
    if (!block_allocate(device, &block))
        goto release_reserve;
    if (!host_block_insert(device, &block))
        goto free_block;
    *out = block.base;
    return GG_OK;

free_block:
    block_free(device, &block);
release_reserve:
    memory_unreserve(device, nbytes);
    return out_of_memory(device, nbytes);
}

gg_status host_mem_free(struct gg_device_impl *device, enum gg_memory_kind kind, void *pointer)
{
    struct host_block freed = {0};
    pthread_mutex_lock(&device->memory_lock);
    struct host_block *block = block_find(device, pointer);
    if (block && block->base == pointer && block->kind == kind && !block->registered &&
        !block->global && !block->imported) {
        freed = *block;
        device->used -= freed.size;
        block_remove(device, block);
    }
    pthread_mutex_unlock(&device->memory_lock);
    if (!freed.base)
        return host_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                              "%p is not the start of a block of that kind", pointer);
    block_free(device, &freed);
    return GG_OK;
}

/* ---- registered memory; managed memory, which never needs to move ---- */

gg_status host_mem_register(struct gg_device_impl *device, void *pointer, size_t nbytes)
{
    const struct host_block block = {
        .base = pointer, .size = nbytes, .kind = GG_MEMORY_PINNED, .registered = true};
    pthread_mutex_lock(&device->memory_lock);
    bool taken = block_find(device, (char *)pointer + nbytes - 1) || block_find(device, pointer);
    bool added = !taken && block_add(device, &block);
    pthread_mutex_unlock(&device->memory_lock);
    if (added)
        return GG_OK;
    return host_api->fail(taken ? GG_ERR_INVALID_ARGUMENT : GG_ERR_OUT_OF_MEMORY, NULL,
                          "%llu bytes at %p %s", (unsigned long long)nbytes, pointer,
                          taken ? "are already memory of this device"
                                : "cannot be registered: no host memory");
}

gg_status host_mem_unregister(struct gg_device_impl *device, void *pointer)
{
    pthread_mutex_lock(&device->memory_lock);
    struct host_block *block = block_find(device, pointer);
    bool found = block && block->base == pointer && block->registered;
    if (found)
        block_remove(device, block);
    pthread_mutex_unlock(&device->memory_lock);
    return found ? GG_OK
                 : host_api->fail(GG_ERR_INVALID_ARGUMENT, NULL, "%p is not registered", pointer);
}

static void run_nothing(const struct host_command *command)
{
    (void)command;
}

gg_status host_mem_prefetch(struct gg_stream_impl *stream, const void *pointer, size_t nbytes,
                            int32_t to_host)
{
    const struct host_command work = {.run = run_nothing, .brief = true};
    gg_status status = host_check_device_range(stream->device, pointer, nbytes);
    (void)to_host;
    return status ? status : host_submit(stream, &work);
}

gg_status host_mem_advise(struct gg_device_impl *device, const void *pointer, size_t nbytes,
                          enum gg_advice advice, int32_t for_host)
{
    (void)advice;
    (void)for_host;
    return host_check_device_range(device, pointer, nbytes);
}

gg_status host_pointer_info(struct gg_device_impl *device, const void *pointer,
                            struct gg_pointer_info *info)
{
    pthread_mutex_lock(&device->memory_lock);
    const struct host_block *block = block_find(device, pointer);
    info->kind = block ? block->kind : GG_MEMORY_HOST;
    info->device = block ? device->ordinal : -1;
    info->base = block ? block->base : NULL;
    info->size = block ? block->size : 0;
    pthread_mutex_unlock(&device->memory_lock);
    return GG_OK;
}

static bool device_has_range(struct gg_device_impl *device, const void *pointer, size_t nbytes)
{
    pthread_mutex_lock(&device->memory_lock);
    const struct host_block *block = block_find(device, pointer);
    const bool inside =
        block && nbytes <= block->size - (size_t)((const char *)pointer - block->base);
    pthread_mutex_unlock(&device->memory_lock);
    return inside;
}

gg_status host_check_device_range(struct gg_device_impl *device, const void *pointer, size_t nbytes)
{
    bool inside = device_has_range(device, pointer, nbytes);
    for (int i = 0; i < HOST_DEVICES_MAX && !inside; i++) {
        struct gg_device_impl *peer = atomic_load(&device->peers[i]);
        inside = peer && device_has_range(peer, pointer, nbytes);
    }
    if (inside)
        return GG_OK;
    return host_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                          "%llu bytes at %p are not memory of this device",
                          (unsigned long long)nbytes, pointer);
}

/* ---- variables of modules ---- */

bool host_block_add_global(struct gg_device_impl *device, void *pointer, size_t nbytes)
{
    const struct host_block block = {
        .base = pointer, .size = nbytes, .kind = GG_MEMORY_DEVICE, .global = true};
    pthread_mutex_lock(&device->memory_lock);
    const bool added = block_find(device, pointer) || block_add(device, &block);
    pthread_mutex_unlock(&device->memory_lock);
    return added;
}

void host_block_remove_global(struct gg_device_impl *device, void *pointer)
{
    pthread_mutex_lock(&device->memory_lock);
    struct host_block *block = block_find(device, pointer);
    if (block && block->global)
        block_remove(device, block);
    pthread_mutex_unlock(&device->memory_lock);
}
