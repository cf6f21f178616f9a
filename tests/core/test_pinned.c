/* test_pinned.c: lookups of pinned memory, while threads add, remove and look up at once; and the work of a change. */
#include "inside.h"

#include "memory/memory.h"

#include <pthread.h>

#define SPAN 64u /* bytes of a block */
#define BLOCKS 8u
#define ROUNDS 20000
#define LOOKERS 3

/* Belongs to another process, as after a fork: a release of the block decrements the count and
 * does nothing more. */
static struct gg_device elsewhere = {.generation = UINT32_MAX};

static _Alignas(SPAN) char space[BLOCKS + 1][SPAN];

static gg_memory *new_block(unsigned at)
{
    gg_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        abort();
    memory->pointer = space[at];
    memory->nbytes = SPAN;
    memory->device = &elsewhere;
    atomic_store(&memory->refs, 1);
    if (ggi_pinned_add(memory)) /* also used in threads, where cmocka cannot assert */
        abort();
    return memory;
}

/* As the last release of a handle does. */
static void drop(gg_memory *memory)
{
    if (atomic_fetch_sub(&memory->refs, 1) > 1)
        return;
    ggi_pinned_remove(memory);
    free(memory);
}

static void a_pointer_into_a_block_is_found_with_its_offset(void **state)
{
    gg_memory *low = new_block(0), *high = new_block(2);
    size_t offset = 99;
    (void)state;
    assert_ptr_equal(ggi_pinned_find(space[2] + 5, SPAN - 5, &offset), high);
    assert_int_equal(offset, 5);
    assert_int_equal(atomic_load(&high->refs), 2);
    drop(high);
    assert_null(ggi_pinned_find(space[2] + 5, SPAN - 4, &offset)); /* beyond its end */
    assert_null(ggi_pinned_find(space[1], 1, &offset));            /* between two blocks */
    assert_int_equal(offset, 5);
    drop(low);
    drop(high);
    assert_null(ggi_pinned_find(space[2], 1, &offset));
}

static void a_block_without_a_reference_is_not_found(void **state)
{
    gg_memory *memory = new_block(0);
    size_t offset;
    (void)state;
    atomic_store(&memory->refs, 0); /* retired, and not destroyed yet */
    assert_null(ggi_pinned_find(space[0], 1, &offset));
    assert_int_equal(atomic_load(&memory->refs), 0);
    atomic_store(&memory->refs, 1);
    drop(memory);
}

/* A thread remembers where its last search found nothing. */
static void a_block_is_found_where_a_search_found_none_before(void **state)
{
    gg_memory *low = new_block(0), *high = new_block(4);
    size_t offset;
    (void)state;
    assert_null(ggi_pinned_find(space[2] + 1, 1, &offset));
    gg_memory *middle = new_block(2);
    assert_ptr_equal(ggi_pinned_find(space[2] + 1, 1, &offset), middle);
    drop(middle);
    assert_null(ggi_pinned_find(space[3], 1, &offset));
    drop(middle);
    assert_null(ggi_pinned_find(space[2] + 1, 1, &offset));
    assert_ptr_equal(ggi_pinned_find(space[4], 1, &offset), high);
    drop(high);
    assert_ptr_equal(ggi_pinned_find(space[0] + SPAN - 1, 1, &offset), low);
    drop(low);
    drop(low);
    drop(high);
}

/* As a pool does with a block that it keeps in the index. */
static void a_block_that_was_free_and_shorter_is_found(void **state)
{
    gg_memory *memory = new_block(0);
    size_t offset;
    (void)state;
    memory->block_size = 2 * SPAN;
    assert_null(ggi_pinned_find(space[1], 1, &offset)); /* in the block, beyond the memory */
    atomic_store(&memory->refs, 0);
    assert_null(ggi_pinned_find(space[1], 1, &offset));
    assert_null(ggi_pinned_find(space[2], 1, &offset));
    memory->nbytes = 2 * SPAN;
    atomic_store(&memory->refs, 1);
    assert_ptr_equal(ggi_pinned_find(space[1], 1, &offset), memory);
    assert_int_equal(offset, SPAN);
    drop(memory);
    drop(memory);
}

/* ---- many blocks ---- */

#define MANY 5000u

static char wide[MANY * 2]; /* a block is the even byte of a pair */
static gg_memory *many[MANY];

static unsigned mixed(unsigned i)
{
    return i * 1237u % MANY; /* a permutation */
}

static void assert_found(unsigned i, bool expected)
{
    size_t offset = 1;
    gg_memory *found = ggi_pinned_find(wide + 2 * i, 1, &offset);
    assert_ptr_equal(found, expected ? many[i] : NULL);
    assert_null(ggi_pinned_find(wide + 2 * i + 1, 1, &offset));
    if (found)
        drop(found);
}

static void many_blocks_are_found_in_whatever_order_they_come_and_go(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        gg_memory *memory = calloc(1, sizeof *memory);
        assert_non_null(memory);
        memory->pointer = wide + 2 * mixed(i);
        memory->nbytes = 1;
        memory->device = &elsewhere;
        atomic_store(&memory->refs, 1);
        many[mixed(i)] = memory;
        assert_int_equal(ggi_pinned_add(memory), GG_OK);
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_found(i, true);
    for (unsigned i = 0; i < MANY; i += 2)
        drop(many[MANY - 2 - i]);
    for (unsigned i = 0; i < MANY; i++)
        assert_found(i, i % 2);
    for (unsigned i = 1; i < MANY; i += 2)
        drop(many[i]);
    assert_found(0, false);
    assert_found(MANY - 1, false);
}

/* ---- the work of a change ---- */

#define CROWD 40000u
#define MOVED_AT_MOST \
    4096u /* bytes for each change; in one array of all blocks they would be some 80 KiB */

static char crowded[CROWD];
static gg_memory *crowd[CROWD];
static _Atomic(size_t) moved; /* bytes */

/* The linker calls it instead of memmove: tests/meson.build. */
void *__real_memmove(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size)
{
    atomic_fetch_add_explicit(&moved, size, memory_order_relaxed);
    return __real_memmove(to, from, size);
}

static unsigned scattered(unsigned i)
{
    return i * 12373u % CROWD; /* a permutation */
}

static void a_change_beside_many_blocks_moves_few_bytes(void **state)
{
    (void)state;
    const size_t before = atomic_load(&moved);
    for (unsigned i = 0; i < CROWD; i++) {
        crowd[i] = calloc(1, sizeof *crowd[i]);
        assert_non_null(crowd[i]);
        crowd[i]->pointer = crowded + scattered(i);
        crowd[i]->nbytes = 1;
        assert_int_equal(ggi_pinned_add(crowd[i]), GG_OK);
    }
    const size_t added = atomic_load(&moved) - before;
    for (unsigned i = 0; i < CROWD; i++) {
        ggi_pinned_remove(crowd[i]);
        free(crowd[i]);
    }
    const size_t removed = atomic_load(&moved) - before - added;
    assert_in_range(added, CROWD,
                    (size_t)CROWD * MOVED_AT_MOST); /* some: else they are not counted */
    assert_in_range(removed, CROWD, (size_t)CROWD * MOVED_AT_MOST);
}

/* As wrapped memory may. */
static void blocks_that_begin_at_the_same_address_are_removed_apart(void **state)
{
    gg_memory *same[600];
    size_t offset;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(same); i++)
        same[i] = new_block(1);
    for (size_t i = 0; i < COUNT_OF(same); i++)
        drop(same[i * 7 % COUNT_OF(same)]);
    assert_null(ggi_pinned_find(space[1], 1, &offset));
}

static _Atomic(bool) over;
static _Atomic(int) wrongs;

static void *alloc_and_free(void *argument)
{
    const unsigned from = *(unsigned *)argument;
    for (int i = 0; i < ROUNDS; i++) {
        gg_memory *first = new_block(from), *second = new_block(from + 2);
        drop(i % 2 ? first : second);
        drop(i % 2 ? second : first);
    }
    return NULL;
}

/* The last block is never removed, the others are added and removed. */
static void *look(void *argument)
{
    size_t offset = 0;
    (void)argument;
    for (unsigned i = 0; !atomic_load(&over); i++) {
        unsigned at = i % 2 ? BLOCKS : i / 2 % BLOCKS;
        gg_memory *found = ggi_pinned_find(space[at] + i % SPAN, 1, &offset);
        if (found ? found->pointer != space[at] || offset != i % SPAN : at == BLOCKS)
            atomic_fetch_add(&wrongs, 1);
        if (found)
            drop(found);
    }
    return NULL;
}

static void threads_find_blocks_while_others_are_added_and_removed(void **state)
{
    pthread_t changers[2], lookers[LOOKERS];
    unsigned from[2] = {0, 4};
    gg_memory *stays = new_block(BLOCKS);
    (void)state;
    for (int i = 0; i < LOOKERS; i++)
        assert_int_equal(pthread_create(&lookers[i], NULL, look, NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&changers[i], NULL, alloc_and_free, &from[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(changers[i], NULL);
    atomic_store(&over, true);
    for (int i = 0; i < LOOKERS; i++)
        pthread_join(lookers[i], NULL);
    assert_int_equal(atomic_load(&wrongs), 0);
    assert_int_equal(atomic_load(&stays->refs), 1);
    drop(stays);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_pointer_into_a_block_is_found_with_its_offset),
    cmocka_unit_test(a_block_without_a_reference_is_not_found),
    cmocka_unit_test(a_block_is_found_where_a_search_found_none_before),
    cmocka_unit_test(a_block_that_was_free_and_shorter_is_found),
    cmocka_unit_test(many_blocks_are_found_in_whatever_order_they_come_and_go),
    cmocka_unit_test(a_change_beside_many_blocks_moves_few_bytes),
    cmocka_unit_test(blocks_that_begin_at_the_same_address_are_removed_apart),
    cmocka_unit_test(threads_find_blocks_while_others_are_added_and_removed),
};
SUITE(pinned, tests);
