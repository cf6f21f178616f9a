/* results.c: host memory for what is copied from devices: kept when it is freed, and given out again. Its
 * pages are there then, and from the second use on locked, which a fresh block cannot offer. */
#include "staging.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HEAD ((size_t)4096)            /* before each block, for its record */
#define STEP ((size_t)64 << 10)        /* of sizes: the largest page that a system has */
#define KEPT_BY_DEFAULT ((size_t)1024) /* MiB */

/* Lies in the page before the block. */
struct result {
    struct result *next; /* among those that are free, newest first */
    struct gg_device *device;
    size_t nbytes;
    void *map; /* what was mapped, and how much of it */
    size_t mapped;
    unsigned uses;     /* how often it was given out */
    gg_memory *locked; /* pinned memory of the device's; NULL: pageable */
    bool stuck;        /* not so, but the driver takes it for locked: it is never unmapped */
    uint32_t generation;
};

static struct {
    pthread_mutex_t lock;
    struct result *free;
    size_t bytes; /* of the free ones */
    size_t most;
} results = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t results_once = PTHREAD_ONCE_INIT;

static void find_most(void)
{
    const char *text = secure_getenv("GPUGLUE_RESULT_CACHE");
    char *end = NULL;
    unsigned long long mib = text && *text ? strtoull(text, &end, 10) : KEPT_BY_DEFAULT;
    if (end && (*end || mib > SIZE_MAX >> 20)) {
        ggi_log(GG_LOG_WARN, NULL,
                "GPUGLUE_RESULT_CACHE is \"%.32s\", expected a number of MiB: using %zu", text,
                KEPT_BY_DEFAULT);
        mib = KEPT_BY_DEFAULT;
    }
    results.most = (size_t)mib << 20;
    ggi_reset_in_child(&results.lock);
}

static struct result *record_of(const void *pointer)
{
    return (struct result *)(void *)((uintptr_t)pointer - HEAD);
}

static void *block_of(struct result *result)
{
    return (char *)result + HEAD;
}

/* ---- the end of a block ---- */

static void unmap(void *owner)
{
    struct result *result = owner;
    if (!result->stuck)
        munmap(result->map, result->mapped);
}

/* Called when the last copy with it is over; see retire.c. What the driver still takes for locked is never
 * unmapped: other memory that came to lie there would be taken for it. */
static void unlock_and_unmap(void *owner)
{
    struct result *result = owner;
    struct gg_device *device = result->device;
    ggi_begin(device, GG_OP_mem_unregister, NULL, result->nbytes);
    gg_status status = device->ops->mem_unregister(atomic_load(&device->impl), block_of(result));
    if (!ggi_end(device, GG_OP_mem_unregister, NULL, result->nbytes, status))
        unmap(result);
}

/* A locked block goes by way of its device's retire list; what another process has locked, and what is
 * left at the end, is only unmapped. */
static void destroy(struct result *result)
{
    if (!result->locked)
        unmap(result);
    else if (result->generation == atomic_load(&ggi_generation))
        gg_memory_release(result->locked);
}

static void destroy_list(struct result *result)
{
    struct result *next;
    for (; result; result = next) {
        next = result->next;
        destroy(result);
    }
}

/* ---- giving out ---- */

/* With the lock held: take what lies behind @p at off the list. */
static struct result *pick(struct result **at)
{
    struct result *result = *at;
    *at = result->next;
    result->next = NULL;
    results.bytes -= result->nbytes;
    return result;
}

/* One of about the right size. In a forked child those of the parent are nobody's. */
static struct result *find(struct gg_device *device, size_t nbytes)
{
    struct result *found = NULL;
    pthread_mutex_lock(&results.lock);
    for (struct result **at = &results.free; *at && !found;) {
        if ((*at)->generation != atomic_load(&ggi_generation))
            pick(at);
        else if ((*at)->device == device && (*at)->nbytes >= nbytes &&
                 (*at)->nbytes - nbytes <= nbytes / 8)
            found = pick(at);
        else
            at = &(*at)->next;
    }
    pthread_mutex_unlock(&results.lock);
    return found;
}

/* Whole huge pages, unless they would waste much. */
static size_t rounded(size_t nbytes)
{
    size_t huge = (nbytes + GGI_HUGE_PAGE - 1) & ~(GGI_HUGE_PAGE - 1);
    size_t small = nbytes ? (nbytes + STEP - 1) & ~(STEP - 1) : STEP;
    return huge - nbytes <= nbytes / 8 ? huge : small;
}

/* What is not needed to be aligned goes back, and all of one kind is one mapping: a process may have so
 * many of them, and there may be many results. */
static struct result *map_new(struct gg_device *device, size_t nbytes)
{
    size_t mapped = STEP + nbytes, more = mapped + GGI_HUGE_PAGE;
    char *map = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    uintptr_t block = ((uintptr_t)map + STEP + GGI_HUGE_PAGE - 1) & ~(uintptr_t)(GGI_HUGE_PAGE - 1);
    char *first = (char *)block - STEP;
    if (first != map)
        munmap(map, (size_t)(first - map));
    if (first + mapped != map + more)
        munmap(first + mapped, (size_t)(map + more - first) - mapped);
    madvise(first, mapped, MADV_HUGEPAGE);
    struct result *result = record_of((void *)block);
    *result = (struct result){.device = device,
                              .nbytes = nbytes,
                              .map = first,
                              .mapped = mapped,
                              .generation = atomic_load(&ggi_generation)};
    return result;
}

/* Its second use: a third is likely. Where the system refuses, it stays pageable. */
static void lock_pages(struct gg_device *device, struct result *result)
{
    struct ggi_own own;
    void *block = block_of(result);
    if (!gg_device_supports(device, GG_OP_mem_register))
        return;
    ggi_own_begin(device, &own);
    ggi_begin(device, GG_OP_mem_register, NULL, result->nbytes);
    gg_status status = device->ops->mem_register(atomic_load(&device->impl), block, result->nbytes);
    status = ggi_end(device, GG_OP_mem_register, NULL, result->nbytes, status);
    if (!status && gg_memory_wrap(device, GG_MEMORY_PINNED, block, result->nbytes, unlock_and_unmap,
                                  result, &result->locked))
        result->stuck = device->ops->mem_unregister(atomic_load(&device->impl), block) != GG_OK;
    if (result->locked)
        result->locked->retired.may_wait = true; /* as freeing pinned memory */
    ggi_own_end(device, &own);
}

gg_status gg_result_alloc(gg_device *device, size_t nbytes, void **out, int32_t *fresh)
{
    gg_status status = ggi_device_ready(device);
    if (status)
        return status;
    pthread_once(&results_once, find_most);
    if (nbytes > PTRDIFF_MAX - 2 * GGI_HUGE_PAGE)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "%zu bytes are more than an address can reach",
                        nbytes);
    struct result *result = find(device, rounded(nbytes));
    if (!result)
        result = map_new(device, rounded(nbytes));
    if (!result)
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no %zu bytes of host memory for a result", nbytes);
    *fresh = result->uses == 0;
    if (++result->uses == 2 && !result->locked)
        lock_pages(device, result);
    *out = block_of(result);
    return GG_OK;
}

gg_status gg_result_resize(void *pointer, size_t nbytes, void **out)
{
    struct result *result = record_of(pointer);
    gg_device *device = result->device;
    int32_t fresh;
    void *other = NULL;
    gg_status status = GG_OK;
    if (nbytes <= result->nbytes) {
        *out = pointer;
        return GG_OK;
    }
    if (ggi_usable(device))
        status = gg_result_alloc(device, nbytes, &other, &fresh);
    else if (nbytes <= PTRDIFF_MAX - 2 * GGI_HUGE_PAGE && (result = map_new(device, rounded(nbytes))))
        other = block_of(result);
    if (!other && !status)
        status = ggi_fail(GG_ERR_OUT_OF_MEMORY, "no %zu bytes of host memory for a result", nbytes);
    if (status)
        return status;
    memcpy(other, pointer, gg_result_size(pointer));
    gg_result_free(pointer);
    *out = other;
    return GG_OK;
}

bool ggi_result_is(const gg_memory *memory)
{
    return memory->release == unlock_and_unmap;
}

gg_device *gg_result_device(const void *pointer)
{
    return record_of(pointer)->device;
}

size_t gg_result_size(const void *pointer)
{
    return record_of(pointer)->nbytes;
}

/* ---- taking back ---- */

/* With the lock held: the oldest blocks beyond what may be kept, as a list. */
static struct result *over(size_t most)
{
    struct result **at = &results.free, *oldest = NULL;
    size_t kept = 0;
    while (*at && kept + (*at)->nbytes <= most) {
        kept += (*at)->nbytes;
        at = &(*at)->next;
    }
    oldest = *at;
    *at = NULL;
    results.bytes = kept;
    return oldest;
}

void gg_result_free(void *pointer)
{
    if (!pointer)
        return;
    struct result *result = record_of(pointer), *old;
    if (result->generation != atomic_load(&ggi_generation) || atomic_load(&ggi_down) ||
        result->nbytes > results.most) { /* the others are kept */
        destroy(result);
        return;
    }
    pthread_mutex_lock(&results.lock);
    result->next = results.free;
    results.free = result;
    results.bytes += result->nbytes;
    old = results.bytes > results.most ? over(results.most) : NULL;
    pthread_mutex_unlock(&results.lock);
    destroy_list(old);
}

void ggi_results_trim(struct gg_device *device)
{
    struct result *mine = NULL;
    pthread_mutex_lock(&results.lock);
    for (struct result **at = &results.free; *at;)
        if ((*at)->device == device) {
            struct result *result = pick(at);
            result->next = mine;
            mine = result;
        } else {
            at = &(*at)->next;
        }
    pthread_mutex_unlock(&results.lock);
    destroy_list(mine);
}
