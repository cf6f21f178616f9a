/* test_deferred_release.c: deferred releases, and words with the newest uses, without a device. */
#include "inside.h"

#include "memory/uses.h"
#include "runtime/retire.h"

static bool never(const struct ggi_retired *item, const void *what)
{
    (void)item;
    (void)what;
    return false;
}

static bool this_one(const struct ggi_retired *item, const void *what)
{
    return item == what;
}

static void items_that_are_not_picked_stay_on_the_list(void **state)
{
    static struct gg_device device;
    static struct ggi_retired one, other;
    (void)state;
    assert_false(ggi_drain_waiting(&device));
    ggi_retire(&device, &one);
    ggi_retire(&device, &other);
    assert_null(ggi_retire_pick(&device, never, NULL));
    assert_true(ggi_drain_waiting(&device));
    assert_ptr_equal(ggi_retire_pick(&device, this_one, &one), &one);
    assert_true(ggi_drain_waiting(&device));
    assert_ptr_equal(ggi_retire_pick(&device, this_one, &other), &other);
    assert_false(ggi_drain_waiting(&device));
}

/* A serial with more bits than a word has for it may look like that of another stream, or like an empty word. */
static void a_use_by_a_stream_with_a_large_serial_is_in_the_list(void **state)
{
    static const uint64_t serials[] = {UINT64_C(1) << 24, (UINT64_C(1) << 24) + 5};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        gg_memory memory = {0};
        const gg_stream small = {.serial = 5}, large = {.serial = serials[i]};
        atomic_store(ggi_newest_of(&memory, &small), ggi_newest_word(&small, 7));
        assert_true(ggi_newest_update(&memory, &small, 8));
        assert_false(ggi_newest_update(&memory, &large, 9));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_use_by_a_stream_with_a_large_serial_is_in_the_list),
    cmocka_unit_test(items_that_are_not_picked_stay_on_the_list)};
SUITE(deferred_release, tests);
