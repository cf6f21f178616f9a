/* pinned_index.c: pinned host memory by address, to recognise host pointers into it. */
#include "base/error.h"
#include "base/list.h"
#include "memory/memory.h"

#include <stdlib.h>
#include <string.h>

#define STRIPES 32u

/* Every copy from or to a host pointer searches the index. A search takes one of many locks, by thread, so that
 * searches rarely contend; none where the thread's last search shows that no block is there. A change takes all of them;
 * the driver's allocation or free is slower still. */
static struct stripe {
    _Alignas(64) pthread_mutex_t lock;
} stripes[STRIPES];

/* Blocks sorted by address, in leaves, so that a change moves the entries of one leaf and, now and then, the list of
 * leaves. No leaf is empty. */
#define LEAF 256u

struct pinned_leaf {
    size_t count;
    gg_memory *block[LEAF];
};

static struct pinned_list {
    struct pinned_leaf **leaf;
    size_t leaves;         /* the capacity is the next power of two */
    _Atomic(size_t) count; /* of blocks; readable without a lock */
} pinned, registered;      /* all memory; registered memory */

static _Atomic(uint64_t) pinned_changes; /* of either list */

/* What this thread found last: no block is in [begin, end) while the number of changes is the same. */
static _Thread_local struct {
    uintptr_t begin, end;
    uint64_t changes;
} pinned_gap;

static pthread_once_t pinned_once = PTHREAD_ONCE_INIT;

static void pinned_init(void)
{
    for (unsigned i = 0; i < STRIPES; i++) {
        pthread_mutex_init(&stripes[i].lock, NULL);
        ggi_reset_in_child(&stripes[i].lock);
    }
}

static pthread_mutex_t *pinned_lock_of_thread(void)
{
    static _Atomic(unsigned) next;
    static _Thread_local unsigned mine; /* from 1 */
    if (!mine)
        mine = 1 + atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % STRIPES;
    return &stripes[mine - 1].lock;
}

static void pinned_lock_all(void)
{
    for (unsigned i = 0; i < STRIPES; i++)
        pthread_mutex_lock(&stripes[i].lock);
}

static void pinned_unlock_all(void)
{
    for (unsigned i = 0; i < STRIPES; i++)
        pthread_mutex_unlock(&stripes[i].lock);
}

/* A place between two blocks: before the block `at` of the leaf. */
struct place {
    size_t leaf, at;
};

/* With a lock held: the last leaf whose first block begins at or below @p address, else the first. */
static size_t pinned_leaf_of(const struct pinned_list *list, uintptr_t address)
{
    size_t low = 0, high = list->leaves;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)list->leaf[middle]->block[0]->pointer <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : 0;
}

/* With a lock held: the place after all blocks that begin at or below @p address. */
static struct place pinned_up_to(const struct pinned_list *list, uintptr_t address)
{
    struct place place = {pinned_leaf_of(list, address), 0};
    if (!list->leaves)
        return place;
    const struct pinned_leaf *leaf = list->leaf[place.leaf];
    size_t high = leaf->count;
    while (place.at < high) {
        size_t middle = place.at + (high - place.at) / 2;
        if ((uintptr_t)leaf->block[middle]->pointer <= address)
            place.at = middle + 1;
        else
            high = middle;
    }
    return place;
}

/* With a lock held: the blocks on both sides of a place, or NULL. */
static gg_memory *pinned_below(const struct pinned_list *list, struct place place)
{
    if (place.at)
        return list->leaf[place.leaf]->block[place.at - 1];
    if (!place.leaf)
        return NULL;
    const struct pinned_leaf *leaf = list->leaf[place.leaf - 1];
    return leaf->block[leaf->count - 1];
}

static gg_memory *pinned_above(const struct pinned_list *list, struct place place)
{
    if (place.leaf < list->leaves && place.at < list->leaf[place.leaf]->count)
        return list->leaf[place.leaf]->block[place.at];
    return place.leaf + 1 < list->leaves ? list->leaf[place.leaf + 1]->block[0] : NULL;
}

/* With all locks held: a new, empty leaf at @p at; NULL without host memory. */
static struct pinned_leaf *pinned_add_leaf(struct pinned_list *list, size_t at)
{
    struct pinned_leaf **leaves = ggi_array_grow(list->leaf, list->leaves, sizeof *leaves);
    struct pinned_leaf *leaf = leaves ? calloc(1, sizeof *leaf) : NULL;
    if (leaves)
        list->leaf = leaves;
    if (!leaf)
        return NULL;
    memmove(leaves + at + 1, leaves + at, (list->leaves - at) * sizeof *leaves);
    leaves[at] = leaf;
    list->leaves++;
    return leaf;
}

/* With all locks held: make space at the place. A full leaf is split in halves. */
static bool pinned_make_space(struct pinned_list *list, struct place *place)
{
    if (!list->leaves)
        return pinned_add_leaf(list, 0);
    struct pinned_leaf *leaf = list->leaf[place->leaf];
    if (leaf->count < LEAF)
        return true;
    struct pinned_leaf *upper = pinned_add_leaf(list, place->leaf + 1);
    if (!upper)
        return false;
    leaf->count = upper->count = LEAF / 2;
    memcpy(upper->block, leaf->block + LEAF / 2, LEAF / 2 * sizeof *upper->block);
    if (place->at > LEAF / 2)
        *place = (struct place){place->leaf + 1, place->at - LEAF / 2};
    return true;
}

/* With all locks held. */
static gg_status pinned_insert(struct pinned_list *list, gg_memory *memory)
{
    struct place place = pinned_up_to(list, (uintptr_t)memory->pointer);
    if (!pinned_make_space(list, &place))
        return ggi_fail(GG_ERR_OUT_OF_MEMORY, "no host memory to record a pinned block");
    struct pinned_leaf *leaf = list->leaf[place.leaf];
    memmove(leaf->block + place.at + 1, leaf->block + place.at,
            (leaf->count - place.at) * sizeof *leaf->block);
    leaf->block[place.at] = memory;
    leaf->count++;
    atomic_fetch_add(&list->count, 1);
    atomic_fetch_add(&pinned_changes, 1);
    return GG_OK;
}

static void pinned_remove_at(struct pinned_list *list, struct place place)
{
    struct pinned_leaf *leaf = list->leaf[place.leaf];
    leaf->count--;
    memmove(leaf->block + place.at, leaf->block + place.at + 1,
            (leaf->count - place.at) * sizeof *leaf->block);
    atomic_fetch_sub(&list->count, 1);
    atomic_fetch_add(&pinned_changes, 1);
    if (leaf->count)
        return;
    free(leaf);
    list->leaves--;
    memmove(list->leaf + place.leaf, list->leaf + place.leaf + 1,
            (list->leaves - place.leaf) * sizeof(struct pinned_leaf *));
}

/* With all locks held. Several blocks may begin at the same address. */
static void pinned_erase(struct pinned_list *list, const gg_memory *memory)
{
    struct place place = pinned_up_to(list, (uintptr_t)memory->pointer);
    const gg_memory *below;
    while ((below = pinned_below(list, place))) {
        if (!place.at)
            place = (struct place){place.leaf - 1, list->leaf[place.leaf - 1]->count};
        place.at--;
        if (below != memory)
            continue;
        pinned_remove_at(list, place);
        return;
    }
}

gg_status ggi_pinned_add(gg_memory *memory)
{
    pthread_once(&pinned_once, pinned_init);
    pinned_lock_all();
    gg_status status = pinned_insert(&pinned, memory);
    pinned_unlock_all();
    return status;
}

static uintptr_t pinned_begin(const gg_memory *memory)
{
    return (uintptr_t)(memory->first_page ? memory->first_page : memory->pointer);
}

static uintptr_t pinned_end(const gg_memory *memory)
{
    return pinned_begin(memory) + (memory->block_size ? memory->block_size : memory->nbytes);
}

/* With a lock held: a block that shares a page with [begin, end). Only the nearest ones can: blocks do not overlap. */
static const gg_memory *pinned_on_pages(const struct pinned_list *list, uintptr_t begin,
                                        uintptr_t end)
{
    const struct place place = pinned_up_to(list, end - 1);
    const gg_memory *below = pinned_below(list, place), *above = pinned_above(list, place);
    if (below && begin < pinned_end(below))
        return below;
    return above && pinned_begin(above) < end ? above : NULL;
}

gg_status ggi_pinned_add_alone(gg_memory *memory)
{
    gg_status status;
    pthread_once(&pinned_once, pinned_init);
    pinned_lock_all();
    const gg_memory *other =
        pinned_on_pages(&pinned, pinned_begin(memory), pinned_begin(memory) + memory->block_size);
    if (other)
        status = ggi_fail(GG_ERR_INVALID_ARGUMENT,
                          "host_register: gpuglue has already pinned pages of the %zu bytes at %p "
                          "(%zu bytes at %p): %s",
                          memory->nbytes, memory->pointer, other->nbytes, other->pointer,
                          atomic_load(&other->refs) > 0
                              ? "close that first, or register both at once"
                              : "that was closed, and will be unlocked when the device is idle: "
                                "synchronize the device first");
    else
        status = pinned_insert(&pinned, memory);
    if (!status && (status = pinned_insert(&registered, memory)))
        pinned_erase(&pinned, memory);
    pinned_unlock_all();
    return status;
}

void ggi_pinned_remove(gg_memory *memory)
{
    pinned_lock_all();
    pinned_erase(&pinned, memory);
    if (memory->first_page)
        pinned_erase(&registered, memory);
    pinned_unlock_all();
}

static bool pinned_free(gg_memory *memory)
{
    ggi_pinned_remove(memory);
    return true;
}

gg_memory *ggi_memory_new(gg_device *device, enum gg_memory_kind kind, void *pointer, size_t nbytes)
{
    static const struct ggi_backing in_index = {.free = pinned_free};
    gg_memory *memory = ggi_memory_new_handle(device, kind, pointer, nbytes);
    if (!memory || !pointer || kind == GG_MEMORY_DEVICE)
        return memory;
    memory->backing = &in_index;
    if (!ggi_pinned_add(memory))
        return memory;
    ggi_memory_delete(memory);
    return NULL;
}

/* With a lock held. A free block of a pool, which may be allocated again, is not part of the gap. */
static void pinned_note_gap(uintptr_t address, struct place place)
{
    const gg_memory *below = pinned_below(&pinned, place), *above = pinned_above(&pinned, place);
    const uintptr_t begin = below ? pinned_end(below) : 0;
    if (address < begin)
        return;
    pinned_gap.begin = begin;
    pinned_gap.end = above ? (uintptr_t)above->pointer : UINTPTR_MAX;
    pinned_gap.changes = atomic_load_explicit(&pinned_changes, memory_order_relaxed);
}

static inline bool pinned_gap_has(uintptr_t address)
{
    return address - pinned_gap.begin < pinned_gap.end - pinned_gap.begin &&
           pinned_gap.changes == atomic_load_explicit(&pinned_changes, memory_order_acquire);
}

/* With a lock held: a reference to the last block that begins at or below @p pointer. Only the reference makes
 * its size valid: it may be a free block of a pool. */
static gg_memory *pinned_nearest(const void *pointer)
{
    const struct place place = pinned_up_to(&pinned, (uintptr_t)pointer);
    gg_memory *below = pinned_below(&pinned, place);
    pinned_note_gap((uintptr_t)pointer, place);
    return below && ggi_refs_try_retain(&below->refs) ? below : NULL;
}

__attribute__((noinline)) static gg_memory *pinned_find(const void *pointer, size_t nbytes,
                                                        size_t *offset)
{
    pthread_mutex_t *lock = pinned_lock_of_thread();
    pthread_mutex_lock(lock);
    gg_memory *found = pinned_nearest(pointer);
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

gg_memory *ggi_pinned_find(const void *pointer, size_t nbytes, size_t *offset)
{
    if (!atomic_load_explicit(&pinned.count, memory_order_acquire) ||
        pinned_gap_has((uintptr_t)pointer))
        return NULL;
    return pinned_find(pointer, nbytes, offset);
}

bool ggi_pinned_shares_page(const void *pointer, size_t nbytes)
{
    const uintptr_t begin = (uintptr_t)pointer;
    if (!atomic_load_explicit(&registered.count, memory_order_acquire))
        return false;
    pthread_mutex_t *lock = pinned_lock_of_thread();
    pthread_mutex_lock(lock);
    const bool found = pinned_on_pages(&registered, begin, begin + nbytes);
    pthread_mutex_unlock(lock);
    return found;
}
