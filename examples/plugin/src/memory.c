/* memory.c: device memory is ordinary memory, pinned memory is shared with forked children. A sorted
 * list of blocks tells good pointers from bad ones. */
#include "mine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT 256u
#define MAP_FROM ((size_t)1 << 20) /* larger blocks are mapped, so that a free gives them back */

/* ---- the list of blocks; device->memory_lock is held ---- */

/* How many blocks begin at or below @p pointer: the last of them may hold it. */
static size_t blocks_up_to(const struct gg_device_impl *device, const void *pointer)
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

static struct mine_block *find_block(const struct gg_device_impl *device, const void *pointer)
{
    size_t count = blocks_up_to(device, pointer);
    struct mine_block *block = count ? &device->blocks[count - 1] : NULL;
    return block && (uintptr_t)pointer - (uintptr_t)block->base < block->size ? block : NULL;
}

static bool add_block(struct gg_device_impl *device, const struct mine_block *block)
{
    size_t at = blocks_up_to(device, block->base);
    if (device->block_count == device->block_room) {
        size_t room = device->block_room ? 2 * device->block_room : 64;
        struct mine_block *blocks = realloc(device->blocks, room * sizeof *blocks);
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

static void remove_block(struct gg_device_impl *device, struct mine_block *block)
{
    size_t after = device->block_count - (size_t)(block - device->blocks) - 1;
    memmove(block, block + 1, after * sizeof *block);
    device->block_count--;
}

/* ---- where blocks come from ---- */

static void *map(size_t nbytes, int sharing)
{
    void *base = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

static bool obtain(struct mine_block *block)
{
    void *base = NULL;
    block->mapped = block->kind == GG_MEMORY_PINNED || block->size >= MAP_FROM;
    if (block->mapped)
        base = map(block->size, block->kind == GG_MEMORY_PINNED ? MAP_SHARED : MAP_PRIVATE);
    else if (posix_memalign(&base, ALIGNMENT, block->size))
        base = NULL;
    block->base = base;
    return base != NULL;
}

static void give_back(const struct mine_block *block)
{
    if (block->mapped)
        munmap(block->base, block->size);
    else
        free(block->base);
}

/* A GPU has no more than it has, while a kernel may promise more: so count. */
static bool reserve(struct gg_device_impl *device, size_t nbytes)
{
    bool fits;
    pthread_mutex_lock(&device->memory_lock);
    fits = nbytes <= device->total - device->used;
    if (fits)
        device->used += nbytes;
    pthread_mutex_unlock(&device->memory_lock);
    return fits;
}

static void unreserve(struct gg_device_impl *device, size_t nbytes)
{
    pthread_mutex_lock(&device->memory_lock);
    device->used -= nbytes;
    pthread_mutex_unlock(&device->memory_lock);
}

static gg_status out_of_memory(struct gg_device_impl *device, size_t nbytes)
{
    uint64_t left, total;
    mine_device_memory_info(device, &left, &total);
    return mine_api->fail(
        GG_ERR_OUT_OF_MEMORY, NULL, "%llu bytes were asked for, %llu of %llu are free",
        (unsigned long long)nbytes, (unsigned long long)left, (unsigned long long)total);
}

/* ---- operations ---- */

gg_status mine_mem_alloc(struct gg_device_impl *device, enum gg_memory_kind kind, size_t nbytes,
                         void **out)
{
    struct mine_block block = {.size = nbytes, .kind = kind};
    bool added;
    if (kind != GG_MEMORY_DEVICE && kind != GG_MEMORY_PINNED && kind != GG_MEMORY_MANAGED)
        return mine_api->fail(GG_ERR_UNSUPPORTED, NULL, "memory of kind %d", (int)kind);
    if (!reserve(device, nbytes))
        return out_of_memory(device, nbytes);
    if (!obtain(&block))
        goto release_reserve;
    pthread_mutex_lock(&device->memory_lock);
    added = add_block(device, &block);
    pthread_mutex_unlock(&device->memory_lock);
    if (!added)
        goto free_block;
    *out = block.base;
    return GG_OK;

free_block:
    give_back(&block);
release_reserve:
    unreserve(device, nbytes);
    return out_of_memory(device, nbytes);
}

gg_status mine_mem_free(struct gg_device_impl *device, enum gg_memory_kind kind, void *pointer)
{
    struct mine_block freed = {0};
    struct mine_block *block;
    pthread_mutex_lock(&device->memory_lock);
    block = find_block(device, pointer);
    if (block && block->base == pointer && block->kind == kind && !block->registered &&
        !block->lent) {
        freed = *block;
        device->used -= freed.size;
        remove_block(device, block);
    }
    pthread_mutex_unlock(&device->memory_lock);
    if (!freed.base)
        return mine_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                              "%p is not the start of a block of that kind", pointer);
    give_back(&freed);
    return GG_OK;
}

/* ---- memory that others own, and managed memory, which is everywhere already ---- */

gg_status mine_mem_register(struct gg_device_impl *device, void *pointer, size_t nbytes)
{
    const struct mine_block block = {
        .base = pointer, .size = nbytes, .kind = GG_MEMORY_PINNED, .registered = true};
    pthread_mutex_lock(&device->memory_lock);
    bool taken = find_block(device, (char *)pointer + nbytes - 1) || find_block(device, pointer);
    bool added = !taken && add_block(device, &block);
    pthread_mutex_unlock(&device->memory_lock);
    if (added)
        return GG_OK;
    return mine_api->fail(taken ? GG_ERR_INVALID_ARGUMENT : GG_ERR_OUT_OF_MEMORY, NULL,
                          "%llu bytes at %p %s", (unsigned long long)nbytes, pointer,
                          taken ? "are memory of this device already" : "cannot be noted");
}

gg_status mine_mem_unregister(struct gg_device_impl *device, void *pointer)
{
    pthread_mutex_lock(&device->memory_lock);
    struct mine_block *block = find_block(device, pointer);
    bool found = block && block->base == pointer && block->registered;
    if (found)
        remove_block(device, block);
    pthread_mutex_unlock(&device->memory_lock);
    return found ? GG_OK
                 : mine_api->fail(GG_ERR_INVALID_ARGUMENT, NULL, "%p is not registered", pointer);
}

static void move_nothing(const struct mine_command *command)
{
    (void)command;
}

gg_status mine_mem_prefetch(struct gg_stream_impl *stream, const void *pointer, size_t nbytes,
                            int32_t to_host)
{
    const struct mine_command work = {.run = move_nothing, .brief = true};
    gg_status status = mine_check_device_range(stream->device, pointer, nbytes);
    (void)to_host;
    return status ? status : mine_submit(stream, &work);
}

gg_status mine_mem_advise(struct gg_device_impl *device, const void *pointer, size_t nbytes,
                          enum gg_advice advice, int32_t for_host)
{
    (void)advice;
    (void)for_host;
    return mine_check_device_range(device, pointer, nbytes);
}

gg_status mine_pointer_info(struct gg_device_impl *device, const void *pointer,
                            struct gg_pointer_info *info)
{
    const struct mine_block *block;
    pthread_mutex_lock(&device->memory_lock);
    block = find_block(device, pointer);
    info->kind = block ? block->kind : GG_MEMORY_HOST;
    info->device = block ? 0 : -1;
    info->base = block ? block->base : NULL;
    info->size = block ? block->size : 0;
    pthread_mutex_unlock(&device->memory_lock);
    return GG_OK;
}

gg_status mine_check_device_range(struct gg_device_impl *device, const void *pointer, size_t nbytes)
{
    const struct mine_block *block;
    bool inside;
    pthread_mutex_lock(&device->memory_lock);
    block = find_block(device, pointer);
    inside = block && nbytes <= block->size - (size_t)((const char *)pointer - block->base);
    pthread_mutex_unlock(&device->memory_lock);
    if (inside)
        return GG_OK;
    return mine_api->fail(GG_ERR_INVALID_ARGUMENT, NULL,
                          "%llu bytes at %p are not memory of this device",
                          (unsigned long long)nbytes, pointer);
}

/* ---- variables of modules ---- */

bool mine_lend(struct gg_device_impl *device, void *pointer, size_t nbytes)
{
    const struct mine_block block = {
        .base = pointer, .size = nbytes, .kind = GG_MEMORY_DEVICE, .lent = true};
    bool added = true;
    pthread_mutex_lock(&device->memory_lock);
    if (!find_block(device, pointer))
        added = add_block(device, &block);
    pthread_mutex_unlock(&device->memory_lock);
    return added;
}

void mine_take_back(struct gg_device_impl *device, void *pointer)
{
    struct mine_block *block;
    pthread_mutex_lock(&device->memory_lock);
    block = find_block(device, pointer);
    if (block && block->lent)
        remove_block(device, block);
    pthread_mutex_unlock(&device->memory_lock);
}
