/* host_cache.c: host memory for copies from devices, cached when it is freed. The pages of a cached block exist
 * already, and are locked from its second use on. */
#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "runtime/call.h"
#include "memory/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HEAD ((size_t)4096)          /* bytes before the data, for struct readback */
#define SIZE_STEP ((size_t)64 << 10) /* the largest page size of any system */
#define SIZE_LIMIT (PTRDIFF_MAX - 2 * GGI_HUGE_PAGE)
#define DEFAULT_LIMIT 1024 /* MiB */

/* A block, stored in the page before its data. */
struct readback {
    struct readback *next; /* in the list of free blocks, newest first */
    struct gg_device *device;
    size_t nbytes;
    void *map; /* the mapping, mapped bytes */
    size_t mapped;
    unsigned uses;     /* how often it was allocated */
    gg_memory *pinned; /* its handle while it is pinned; NULL: pageable */
    bool stuck;        /* the driver failed to unlock it: it is never unmapped */
    uint32_t generation;
};

static struct {
    pthread_mutex_t lock;
    struct readback *free;
    size_t bytes; /* of the free blocks */
    size_t limit;
} readback_cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t readback_once = PTHREAD_ONCE_INIT;

static void readback_init(void)
{
    readback_cache.limit = (size_t)ggi_env_value(GGI_ENV_RESULT_CACHE, DEFAULT_LIMIT) << 20;
    ggi_reset_in_child(&readback_cache.lock);
}

static struct readback *block_record(const void *pointer)
{
    return (struct readback *)(void *)((uintptr_t)pointer - HEAD);
}

static void *block_data(struct readback *block)
{
    return (char *)block + HEAD;
}

static void block_unmap(struct readback *block)
{
    if (!block->stuck)
        munmap(block->map, block->mapped);
}

/* Pages that the driver fails to unlock are never unmapped: it would take other memory there for locked. */
static void block_unlock_and_unmap(void *owner)
{
    struct readback *block = owner;
    struct gg_device *device = block->device;
    if (!GGI_CALL(device, mem_unregister, NULL, block->nbytes,
                  (atomic_load(&device->impl), block_data(block))))
        block_unmap(block);
}

/* A locked block is unmapped once the device is idle. A block that the parent process locked stays mapped. */
static void block_destroy(struct readback *block)
{
    if (!block->pinned)
        block_unmap(block);
    else if (block->generation == atomic_load(&ggi_generation))
        gg_memory_release(block->pinned);
}

static void block_destroy_list(struct readback *block)
{
    struct readback *next;
    for (; block; block = next) {
        next = block->next;
        block_destroy(block);
    }
}

/* With the lock held: remove *at from the list. */
static struct readback *cache_take(struct readback **at)
{
    struct readback *block = *at;
    *at = block->next;
    block->next = NULL;
    readback_cache.bytes -= block->nbytes;
    return block;
}

/* Round up to huge pages, unless that wastes more than an eighth. */
static size_t block_round_size(size_t nbytes)
{
    size_t huge = (nbytes + GGI_HUGE_PAGE - 1) & ~(GGI_HUGE_PAGE - 1);
    size_t small = nbytes ? (nbytes + SIZE_STEP - 1) & ~(SIZE_STEP - 1) : SIZE_STEP;
    return huge - nbytes <= nbytes / 8 ? huge : small;
}

/* A block at most an eighth too large. A forked child removes the blocks of its parent from the list. */
static struct readback *cache_find(struct gg_device *device, size_t size)
{
    const size_t nbytes = block_round_size(size);
    struct readback *found = NULL;
    pthread_mutex_lock(&readback_cache.lock);
    for (struct readback **at = &readback_cache.free; *at && !found;) {
        if ((*at)->generation != atomic_load(&ggi_generation))
            cache_take(at);
        else if ((*at)->device == device && (*at)->nbytes >= nbytes &&
                 (*at)->nbytes - nbytes <= nbytes / 8)
            found = cache_take(at);
        else
            at = &(*at)->next;
    }
    pthread_mutex_unlock(&readback_cache.lock);
    return found;
}

/* Unmap what the alignment leaves over. Header and data share a mapping, since vm.max_map_count is limited. */
static struct readback *block_map(struct gg_device *device, size_t size)
{
    const size_t nbytes = block_round_size(size);
    size_t mapped = SIZE_STEP + nbytes, more = mapped + GGI_HUGE_PAGE;
    char *map = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    uintptr_t data =
        ((uintptr_t)map + SIZE_STEP + GGI_HUGE_PAGE - 1) & ~(uintptr_t)(GGI_HUGE_PAGE - 1);
    char *first = (char *)data - SIZE_STEP;
    if (first != map)
        munmap(map, (size_t)(first - map));
    if (first + mapped != map + more)
        munmap(first + mapped, (size_t)(map + more - first) - mapped);
    madvise(first, mapped, MADV_HUGEPAGE);
    struct readback *block = block_record((void *)data);
    *block = (struct readback){.device = device,
                               .nbytes = nbytes,
                               .map = first,
                               .mapped = mapped,
                               .generation = atomic_load(&ggi_generation)};
    return block;
}

static gg_status block_new(struct gg_device *device, size_t nbytes, struct readback **out)
{
    if (nbytes > SIZE_LIMIT)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "%zu bytes exceed the address space", nbytes);
    *out = block_map(device, nbytes);
    if (!*out)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "cannot allocate %s of host memory for a result",
                        ggi_text_size(&(struct ggi_size){0}, nbytes));
    return GG_OK;
}

/* At the second use, since a third is likely. If the driver fails, the block stays pageable. */
static void block_lock_pages(struct gg_device *device, struct readback *block)
{
    struct ggi_internal_scope own;
    void *data = block_data(block);
    if (!gg_device_supports(device, GG_OP_mem_register))
        return;
    ggi_internal_begin(device, &own);
    gg_status status = GGI_CALL(device, mem_register, NULL, block->nbytes,
                                (atomic_load(&device->impl), data, block->nbytes));
    if (status <= GG_NOT_READY && gg_memory_wrap(device, GG_MEMORY_PINNED, data, block->nbytes,
                                                 block_unlock_and_unmap, block, &block->pinned))
        block->stuck = device->ops->mem_unregister(atomic_load(&device->impl), data) != GG_OK;
    if (block->pinned) {
        block->pinned->copies_only = status == GG_NOT_READY;
        block->pinned->retired.may_wait = true; /* as the free of pinned memory */
    }
    ggi_internal_end(device, &own);
}

gg_status gg_readback_alloc(gg_device *device, size_t nbytes, void **out, int32_t *fresh)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    pthread_once(&readback_once, readback_init);
    struct readback *block = nbytes <= SIZE_LIMIT ? cache_find(device, nbytes) : NULL;
    if (!block && (status = block_new(device, nbytes, &block)))
        return status;
    *fresh = block->uses == 0;
    if (++block->uses == 2 && !block->pinned)
        block_lock_pages(device, block);
    *out = block_data(block);
    return GG_OK;
}

gg_status gg_readback_resize(void *pointer, size_t nbytes, void **out)
{
    struct readback *block = block_record(pointer), *other = NULL;
    gg_device *device = block->device;
    int32_t fresh;
    *out = pointer;
    if (nbytes <= block->nbytes)
        return GG_OK;
    gg_status status = ggi_device_usable(device) ? gg_readback_alloc(device, nbytes, out, &fresh)
                                                 : block_new(device, nbytes, &other);
    if (status)
        return status;
    if (other)
        *out = block_data(other);
    memcpy(*out, pointer, block->nbytes);
    gg_readback_free(pointer);
    return GG_OK;
}

bool ggi_host_cache_owns(const gg_memory *memory)
{
    return memory->release == block_unlock_and_unmap;
}

gg_device *gg_readback_device(const void *pointer)
{
    return block_record(pointer)->device;
}

size_t gg_readback_size(const void *pointer)
{
    return block_record(pointer)->nbytes;
}

/* With the lock held: remove the oldest blocks beyond the limit, as a list. */
static struct readback *cache_evict(size_t limit)
{
    struct readback **at = &readback_cache.free;
    size_t kept = 0;
    while (*at && kept + (*at)->nbytes <= limit) {
        kept += (*at)->nbytes;
        at = &(*at)->next;
    }
    struct readback *oldest = *at;
    *at = NULL;
    readback_cache.bytes = kept;
    return oldest;
}

void gg_readback_free(void *pointer)
{
    if (!pointer)
        return;
    struct readback *block = block_record(pointer), *old;
    if (block->generation != atomic_load(&ggi_generation) || atomic_load(&ggi_shutting_down) ||
        block->nbytes > readback_cache.limit) { /* not cached */
        block_destroy(block);
        return;
    }
    pthread_mutex_lock(&readback_cache.lock);
    block->next = readback_cache.free;
    readback_cache.free = block;
    readback_cache.bytes += block->nbytes;
    old = readback_cache.bytes > readback_cache.limit ? cache_evict(readback_cache.limit) : NULL;
    pthread_mutex_unlock(&readback_cache.lock);
    block_destroy_list(old);
}

void ggi_host_cache_trim(struct gg_device *device)
{
    struct readback *mine = NULL;
    pthread_mutex_lock(&readback_cache.lock);
    for (struct readback **at = &readback_cache.free; *at;)
        if ((*at)->device == device) {
            struct readback *block = cache_take(at);
            block->next = mine;
            mine = block;
        } else {
            at = &(*at)->next;
        }
    pthread_mutex_unlock(&readback_cache.lock);
    block_destroy_list(mine);
}
