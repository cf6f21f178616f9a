/* test_retire.c: what was released and waits, without a device. */
#include "inside.h"

static bool nobody(const struct ggi_retired *item, const void *what)
{
    (void)item;
    (void)what;
    return false;
}

static bool this_one(const struct ggi_retired *item, const void *what)
{
    return item == what;
}

static void what_is_not_picked_is_still_waiting(void **state)
{
    static struct gg_device device;
    static struct ggi_retired one, other;
    (void)state;
    assert_false(ggi_drain_waiting(&device));
    ggi_retire(&device, &one);
    ggi_retire(&device, &other);
    assert_null(ggi_retire_pick(&device, nobody, NULL));
    assert_true(ggi_drain_waiting(&device));
    assert_ptr_equal(ggi_retire_pick(&device, this_one, &one), &one);
    assert_true(ggi_drain_waiting(&device));
    assert_ptr_equal(ggi_retire_pick(&device, this_one, &other), &other);
    assert_false(ggi_drain_waiting(&device));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_not_picked_is_still_waiting)};
    prepare(argc, argv);
    return cmocka_run_group_tests_name("retire", tests, NULL, NULL);
}
