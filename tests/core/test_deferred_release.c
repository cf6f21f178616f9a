/* test_deferred_release.c: deferred releases, without a device. */
#include "inside.h"

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(items_that_are_not_picked_stay_on_the_list)};
SUITE(deferred_release, tests);
