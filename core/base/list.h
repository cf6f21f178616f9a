/* list.h: lock-free lists, growing arrays, reference counts. */
#ifndef GPUGLUE_LIST_H
#define GPUGLUE_LIST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Add @p item, a pointer to a struct with a member `next`, at the head of the _Atomic pointer *@p list. */
#define ggi_list_push(list, item)                                                                  \
    do {                                                                                           \
        (item)->next = atomic_load_explicit(list, memory_order_relaxed);                           \
        while (!atomic_compare_exchange_weak_explicit(list, &(item)->next, item,                   \
                                                      memory_order_seq_cst, memory_order_relaxed)) \
            ;                                                                                      \
    } while (0)

/* Make space for one more element: an array's capacity is the next power of two. NULL without host memory. */
static inline void *ggi_array_grow(void *array, size_t count, size_t size)
{
    return count & (count - 1) ? array : realloc(array, (count ? 2 * count : 1) * size);
}

/* Add a reference; false if the last one was released. */
static inline bool ggi_refs_try_retain(_Atomic(int64_t) *refs)
{
    int64_t count = atomic_load(refs);
    while (count > 0)
        if (atomic_compare_exchange_weak(refs, &count, count + 1))
            return true;
    return false;
}

#endif
