/* pinned.c: where pinned memory lies, so that a host pointer can be recognised. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define STRIPES 32u

/* Every copy from or to a host pointer looks here. A look takes one of many locks, each thread its own
 * as far as they go round, so that looks do not meet; a change, which comes with a driver's slow
 * allocation or free, takes them all. */
static struct stripe {
    _Alignas(64) pthread_mutex_t lock;
} stripes[STRIPES];

static struct list {
    gg_memory **block; /* sorted by address */
    size_t room;
    _Atomic(size_t) count; /* readable without a lock */
} pinned, registered;      /* all; those of them whose pages are locked for others' memory */

static pthread_once_t pinned_once = PTHREAD_ONCE_INIT;

static void make_stripes(void)
{
    for (unsigned i = 0; i < STRIPES; i++) {
        pthread_mutex_init(&stripes[i].lock, NULL);
        ggi_reset_in_child(&stripes[i].lock);
    }
}

static pthread_mutex_t *stripe_of_thread(void)
{
    static _Atomic(unsigned) next;
    static _Thread_local unsigned mine; /* from 1 */
    if (!mine)
        mine = 1 + atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % STRIPES;
    return &stripes[mine - 1].lock;
}

static void lock_all(void)
{
    for (unsigned i = 0; i < STRIPES; i++)
        pthread_mutex_lock(&stripes[i].lock);
}

static void unlock_all(void)
{
    for (unsigned i = 0; i < STRIPES; i++)
        pthread_mutex_unlock(&stripes[i].lock);
}

/* With a lock held: how many blocks begin at or below @p address. */
static size_t blocks_up_to(const struct list *list, uintptr_t address)
{
    size_t low = 0, high = atomic_load_explicit(&list->count, memory_order_relaxed);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)list->block[middle]->pointer <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool grow(struct list *list)
{
    size_t room = list->room ? list->room * 2 : 64;
    gg_memory **block = realloc(list->block, room * sizeof *block);
    if (!block)
        return false;
    list->block = block;
    list->room = room;
    return true;
}

/* With all locks held. */
static gg_status add(struct list *list, gg_memory *memory)
{
    const size_t count = atomic_load(&list->count);
    if (count == list->room && !grow(list))
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory to note a pinned block");
    size_t at = blocks_up_to(list, (uintptr_t)memory->pointer);
    memmove(list->block + at + 1, list->block + at, (count - at) * sizeof *list->block);
    list->block[at] = memory;
    atomic_store(&list->count, count + 1);
    return GG_OK;
}

/* With all locks held. */
static void take_out(struct list *list, const gg_memory *memory)
{
    const size_t count = atomic_load(&list->count);
    size_t at = blocks_up_to(list, (uintptr_t)memory->pointer);
    while (at > 0 && list->block[at - 1] != memory)
        at--;
    if (!at)
        return;
    memmove(list->block + at - 1, list->block + at, (count - at) * sizeof *list->block);
    atomic_store(&list->count, count - 1);
}

gg_status ggi_pinned_add(gg_memory *memory)
{
    pthread_once(&pinned_once, make_stripes);
    lock_all();
    gg_status status = add(&pinned, memory);
    unlock_all();
    return status;
}

static uintptr_t begin_of(const gg_memory *memory)
{
    return (uintptr_t)(memory->registered ? memory->registered : memory->pointer);
}

/* With a lock held: a block whose pages hold bytes of [begin, end). Registered blocks, blocks of our own and
 * what is wrapped in them never overlap in the list, so only the nearest on each side can. */
static const gg_memory *on_pages(const struct list *list, uintptr_t begin, uintptr_t end)
{
    size_t at = blocks_up_to(list, end - 1), count = atomic_load(&list->count);
    const gg_memory *below = at ? list->block[at - 1] : NULL;
    const gg_memory *above = at < count ? list->block[at] : NULL;
    if (below && begin < begin_of(below) + (below->room ? below->room : below->nbytes))
        return below;
    return above && begin_of(above) < end ? above : NULL;
}

gg_status ggi_pinned_add_alone(gg_memory *memory)
{
    gg_status status;
    pthread_once(&pinned_once, make_stripes);
    lock_all();
    const gg_memory *other = on_pages(&pinned, begin_of(memory), begin_of(memory) + memory->room);
    if (other)
        status =
            ggi_fail(GG_ERR_INVALID_ARGUMENT,
                     "register: pages of the %zu bytes at %p are page-locked by gpuglue already "
                     "(%zu bytes at %p): %s",
                     memory->nbytes, memory->pointer, other->nbytes, other->pointer,
                     atomic_load(&other->refs) > 0
                         ? "close that first, or register both at once"
                         : "that was closed, and is unlocked once the device is idle: synchronize "
                           "it first");
    else
        status = add(&pinned, memory);
    if (!status && (status = add(&registered, memory)))
        take_out(&pinned, memory);
    unlock_all();
    return status;
}

void ggi_pinned_remove(gg_memory *memory)
{
    lock_all();
    take_out(&pinned, memory);
    if (memory->registered)
        take_out(&registered, memory);
    unlock_all();
}

/* A reference, unless the last one is gone already. */
static bool try_retain(gg_memory *memory)
{
    int64_t refs = atomic_load(&memory->refs);
    while (refs > 0)
        if (atomic_compare_exchange_weak(&memory->refs, &refs, refs + 1))
            return true;
    return false;
}

/* With a lock held: the block that begins at or next below @p pointer, with a reference. Only then its size
 * says something: it may be a pool's free block. */
static gg_memory *nearest(const void *pointer)
{
    size_t at = blocks_up_to(&pinned, (uintptr_t)pointer);
    return at && try_retain(pinned.block[at - 1]) ? pinned.block[at - 1] : NULL;
}

gg_memory *ggi_pinned_find(const void *pointer, size_t nbytes, size_t *offset)
{
    gg_memory *found;
    pthread_mutex_t *lock;
    if (!atomic_load_explicit(&pinned.count, memory_order_acquire))
        return NULL;
    lock = stripe_of_thread();
    pthread_mutex_lock(lock);
    found = nearest(pointer);
    pthread_mutex_unlock(lock);
    if (!found)
        return NULL;
    size_t inside = (uintptr_t)pointer - (uintptr_t)found->pointer;
    if (inside >= found->nbytes || nbytes > found->nbytes - inside) {
        gg_memory_release(found);
        return NULL;
    }
    *offset = inside;
    return found;
}

bool ggi_pinned_shares_page(const void *pointer, size_t nbytes)
{
    const uintptr_t begin = (uintptr_t)pointer;
    if (!atomic_load_explicit(&registered.count, memory_order_acquire))
        return false;
    pthread_mutex_t *lock = stripe_of_thread();
    pthread_mutex_lock(lock);
    const bool found = on_pages(&registered, begin, begin + nbytes);
    pthread_mutex_unlock(lock);
    return found;
}
