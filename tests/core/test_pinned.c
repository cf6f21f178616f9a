/* test_pinned.c: where pinned memory lies, while threads add, remove and look at once. */
#include "inside.h"

#include <pthread.h>

#define SPAN 64u /* bytes of a block */
#define BLOCKS 8u
#define ROUNDS 20000
#define LOOKERS 3

/* Of another process, as after a fork: gpuglue's own release of a block counts, and does nothing more. */
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
    if (ggi_pinned_add(memory)) /* in threads, too, where cmocka cannot assert */
        abort();
    return memory;
}

/* As the last release of a handle does in the end. */
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

static _Atomic(bool) over;
static _Atomic(int) wrongs;

static void *come_and_go(void *argument)
{
    const unsigned from = *(unsigned *)argument;
    for (int i = 0; i < ROUNDS; i++) {
        gg_memory *first = new_block(from), *second = new_block(from + 2);
        drop(i % 2 ? first : second);
        drop(i % 2 ? second : first);
    }
    return NULL;
}

/* The last block is there all the time, the others come and go. */
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

static void threads_find_what_is_there_while_blocks_come_and_go(void **state)
{
    pthread_t changers[2], lookers[LOOKERS];
    unsigned from[2] = {0, 4};
    gg_memory *stays = new_block(BLOCKS);
    (void)state;
    for (int i = 0; i < LOOKERS; i++)
        assert_int_equal(pthread_create(&lookers[i], NULL, look, NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&changers[i], NULL, come_and_go, &from[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(changers[i], NULL);
    atomic_store(&over, true);
    for (int i = 0; i < LOOKERS; i++)
        pthread_join(lookers[i], NULL);
    assert_int_equal(atomic_load(&wrongs), 0);
    assert_int_equal(atomic_load(&stays->refs), 1);
    drop(stays);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pointer_into_a_block_is_found_with_its_offset),
        cmocka_unit_test(a_block_without_a_reference_is_not_found),
        cmocka_unit_test(threads_find_what_is_there_while_blocks_come_and_go),
    };
    return cmocka_run_group_tests_name("pinned", tests, NULL, NULL);
}
