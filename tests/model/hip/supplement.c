/* supplement.c: LD_PRELOAD over the HSA runtime. AMD's model of the kernel driver ends the process in some calls, never
 * runs out of memory, and reports no failure of a queue; this library intercepts the runtime and adds these. */
#include "model.h"
#include "runtime.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    AGENT_PRODUCT_NAME = 0xa009,
    POOL_SIZE = 2,
    POOL_ALLOWED = 5,
    POOL_LOCATION = 17,
    LOCATION_GPU = 1
};
enum { QUEUES = 128 };

typedef int queue_callback(int status, void *queue, void *data);

struct created {
    void *queue;
    queue_callback *callback;
    void *data;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct created created[QUEUES];

void *runtime_symbol(const char *name)
{
    void *library = dlopen("libhsa-runtime64.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *symbol = library ? dlsym(library, name) : NULL;
    if (!symbol)
        model_fail("libhsa-runtime64.so.1 has no %s", name);
    dlclose(library);
    return symbol;
}

/* ---- queues ---- */

EXPORT int hsa_queue_create(struct agent, uint32_t size, uint32_t type, queue_callback *,
                            void *data, uint32_t private_bytes, uint32_t group_bytes, void **queue);
EXPORT int hsa_queue_destroy(void *queue);
EXPORT int hsa_amd_queue_set_priority(void *queue, int priority);
EXPORT int hsa_amd_queue_cu_set_mask(const void *queue, uint32_t count, const uint32_t *mask);

/* Replaces the entry of `old` (NULL: a free entry) and returns its old value. */
static struct created created_replace(const void *old, struct created by)
{
    struct created was = {0};
    pthread_mutex_lock(&lock);
    for (int i = 0; i < QUEUES; i++)
        if (created[i].queue == old) {
            was = created[i];
            created[i] = by;
            break;
        }
    pthread_mutex_unlock(&lock);
    return was;
}

int hsa_queue_create(struct agent agent, uint32_t size, uint32_t type, queue_callback *callback,
                     void *data, uint32_t private_bytes, uint32_t group_bytes, void **queue)
{
    const int status = NEXT(hsa_queue_create)(agent, size, type, callback, data, private_bytes,
                                              group_bytes, queue);
    if (status == STATUS_SUCCESS)
        created_replace(NULL, (struct created){*queue, callback, data});
    return status;
}

int hsa_queue_destroy(void *queue)
{
    created_replace(queue, (struct created){0});
    return NEXT(hsa_queue_destroy)(queue);
}

void queue_report_lost(const struct queue *queue)
{
    void *handle = (char *)(uintptr_t)queue->info.write_index - QUEUE_WRITE_INDEX_AT;
    const struct created found = created_replace(handle, (struct created){0});
    if (found.callback)
        found.callback(STATUS_MEMORY_FAULT, handle, found.data);
}

int hsa_amd_queue_set_priority(void *queue, int priority)
{
    (void)queue;
    (void)priority;
    return STATUS_SUCCESS;
}

int hsa_amd_queue_cu_set_mask(const void *queue, uint32_t count, const uint32_t *mask)
{
    (void)queue;
    (void)count;
    (void)mask;
    return STATUS_SUCCESS;
}

/* ---- memory ---- */

int hsa_amd_memory_pool_get_info(struct pool, int attribute, void *value);
EXPORT int hsa_amd_memory_pool_allocate(struct pool, size_t size, uint32_t flags, void **memory);
EXPORT int hsa_amd_memory_pool_free(void *memory);

struct block {
    struct block *next;
    uint64_t pool;
    void *memory;
    size_t size;
};

static struct block *blocks;

static void block_add(struct pool pool, void *memory, size_t size)
{
    struct block *block = malloc(sizeof *block);
    if (!block)
        return;
    pthread_mutex_lock(&lock);
    *block = (struct block){blocks, pool.handle, memory, size};
    blocks = block;
    pthread_mutex_unlock(&lock);
}

static void block_remove(const void *memory)
{
    struct block *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct block **at = &blocks; *at && !found; at = found ? at : &(*at)->next)
        if ((*at)->memory == memory) {
            found = *at;
            *at = found->next;
        }
    pthread_mutex_unlock(&lock);
    free(found);
}

static uint64_t pool_used(struct pool pool)
{
    uint64_t used = 0;
    pthread_mutex_lock(&lock);
    for (const struct block *block = blocks; block; block = block->next)
        used += block->pool == pool.handle ? block->size : 0;
    pthread_mutex_unlock(&lock);
    return used;
}

static bool pool_is_of_gpu(struct pool pool)
{
    int location = 0;
    return NEXT(hsa_amd_memory_pool_get_info)(pool, POOL_LOCATION, &location) == STATUS_SUCCESS &&
           location == LOCATION_GPU;
}

static uint64_t pool_size(struct pool pool)
{
    uint64_t size = 0;
    NEXT(hsa_amd_memory_pool_get_info)(pool, POOL_SIZE, &size);
    return size;
}

int hsa_amd_memory_pool_allocate(struct pool pool, size_t size, uint32_t flags, void **memory)
{
    const bool counts = pool_is_of_gpu(pool);
    if (counts && pool_used(pool) + size > control_memory_limit(pool_size(pool)))
        return STATUS_OUT_OF_RESOURCES;
    const int status = NEXT(hsa_amd_memory_pool_allocate)(pool, size, flags, memory);
    if (counts && status == STATUS_SUCCESS)
        block_add(pool, *memory, size);
    return status;
}

bool runtime_reserve(struct pool pool, void *name, size_t size)
{
    if (pool_is_of_gpu(pool) && pool_used(pool) + size > control_memory_limit(pool_size(pool)))
        return false;
    block_add(pool, name, size);
    return true;
}

void runtime_unreserve(const void *name)
{
    block_remove(name);
}

int hsa_amd_memory_pool_free(void *memory)
{
    block_remove(memory);
    return NEXT(hsa_amd_memory_pool_free)(memory);
}

/* ---- for ipc.c: memory of a GPU's first pool that can allocate it ---- */

typedef int pool_visitor(struct pool, void *found);
int hsa_amd_agent_iterate_memory_pools(struct agent, pool_visitor *, void *found);
int hsa_amd_agents_allow_access(uint32_t count, const struct agent *agents, const uint32_t *flags,
                                const void *memory);

static int take_pool(struct pool pool, void *found)
{
    bool allowed = false;
    NEXT(hsa_amd_memory_pool_get_info)(pool, POOL_ALLOWED, &allowed);
    if (!allowed || !pool_is_of_gpu(pool))
        return STATUS_SUCCESS;
    *(struct pool *)found = pool;
    return STATUS_INFO_BREAK;
}

int runtime_allocate(uint32_t count, const struct agent *agents, size_t size, void **memory)
{
    struct pool pool = {0};
    NEXT(hsa_amd_agent_iterate_memory_pools)(agents[0], take_pool, &pool);
    int status = NEXT(hsa_amd_memory_pool_allocate)(pool, size, 0, memory);
    if (status == STATUS_SUCCESS && count > 1)
        status = NEXT(hsa_amd_agents_allow_access)(count, agents, NULL, *memory);
    return status;
}

int runtime_free(void *memory)
{
    return NEXT(hsa_amd_memory_pool_free)(memory);
}

/* ---- names: they are read from the graphics driver, which does not exist here ---- */

int hsa_agent_get_info(struct agent, int attribute, void *value);

EXPORT int hsa_agent_get_info(struct agent agent, int attribute, void *value)
{
    const int status = NEXT(hsa_agent_get_info)(agent, attribute, value);
    char *name = value;
    if (attribute == AGENT_PRODUCT_NAME && status == STATUS_SUCCESS && !*name)
        strcpy(name, "AMD GPU that is a model");
    return status;
}

/* ---- the runtime's own faults ---- */

static bool called_by_the_runtime(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname && strstr(info.dli_fname, "libhsa-runtime64");
}

/* With a model, libhsa-runtime64 7.2.4 reads the number of nodes without setting it, and so asks at its start for up to
 * 4 GiB, which it clears, and 32 GiB: a start would take seconds, and forks would fail. It gets what a few nodes need. */
enum { ABSURD = 256 << 20, ENOUGH = 4096 };

/* AMD's model asserts that at most one GPU has a page of registers. For a further GPU the allocation is refused. */
enum { REGISTERS = 1 << 4 };
static _Thread_local bool refuses_next;

void runtime_allocated(uint32_t flags)
{
    static atomic_int pages;
    refuses_next = flags & REGISTERS && atomic_fetch_add(&pages, 1) > 0;
}

static bool is_refused(void)
{
    const bool refused = refuses_next;
    refuses_next = false;
    return refused;
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);

EXPORT void *malloc(size_t size)
{
    if (size >= ABSURD && called_by_the_runtime(__builtin_return_address(0)))
        return __libc_calloc(1, ENOUGH);
    return is_refused() ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    if (size && count >= ABSURD / size && called_by_the_runtime(__builtin_return_address(0)))
        return __libc_calloc(1, ENOUGH);
    return is_refused() ? NULL : __libc_calloc(count, size);
}

EXPORT void *memset(void *to, int value, size_t size)
{
    void *at = to;
    if (size >= ABSURD && called_by_the_runtime(__builtin_return_address(0)))
        return to;
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(value) : "memory");
    return to;
}

/* Debian builds the runtime with its checks, which print a line at the end of each process. */
EXPORT int __fprintf_chk(FILE *file, int flag, const char *format, ...)
{
    va_list values;
    (void)flag;
    if (!strncmp(format, "Warning: Resource leak detected", 31))
        return 0;
    va_start(values, format);
    const int written = vfprintf(file, format, values);
    va_end(values);
    return written;
}
