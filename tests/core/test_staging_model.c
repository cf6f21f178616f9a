/* test_staging_model.c: which way the staging model chooses, from made-up times of copies. It reads no clock, so
 * nothing here depends on the machine. */
#include "../support/runner.h"

#include "transfer/staging_model.h"

#include <stdbool.h>

#define MIB ((size_t)1 << 20)
#define MS UINT64_C(1000000)
#define START (1000 * MS)

static struct ggi_staging_model model;
static uint64_t now, ended; /* ended: the last copy */

static int start(void **state)
{
    (void)state;
    ggi_staging_model_start(&model, 63.0);
    now = START;
    ended = 0;
    return 0;
}

/* A machine: GB/s of the driver, of each thread, and what threads reach at most. */
struct machine {
    double driver, thread, most;
};
static const struct machine usual = {9, 6, 48}, slow_threads = {12, 3, 6}, loaded = {9, 0.4, 4};

static uint64_t time_of(const struct machine *machine, size_t nbytes, int threads)
{
    double rate = threads ? machine->thread * threads : machine->driver;
    if (threads && rate > machine->most)
        rate = machine->most;
    return (uint64_t)((double)nbytes / rate);
}

static bool is_fastest(const struct machine *machine, size_t nbytes, int threads)
{
    return time_of(machine, nbytes, threads) <= time_of(machine, nbytes, 16);
}

static struct ggi_staging_kind in_a_row(size_t nbytes)
{
    return (struct ggi_staging_kind){nbytes, false};
}

static struct ggi_staging_kind spaced(size_t nbytes)
{
    return (struct ggi_staging_kind){nbytes, true};
}

/* One copy as the model chooses, and @p gap until the next; returns its threads. */
static int copy(const struct machine *machine, size_t nbytes, int most, uint64_t gap)
{
    const struct ggi_staging_kind kind = {nbytes, now > ended};
    const int threads = ggi_staging_model_choose(&model, kind, most, now);
    const uint64_t ns = time_of(machine, nbytes, threads);
    now += ns;
    ggi_staging_model_learn(&model, kind, threads, ns, now);
    ended = now;
    now += gap;
    return threads;
}

static int copy_often(const struct machine *machine, size_t nbytes, int most, int times)
{
    int threads = 0;
    for (int i = 0; i < times; i++)
        threads = copy(machine, nbytes, most, 0);
    return threads;
}

static void the_first_guess_uses_as_many_threads_as_the_link_needs(void **state)
{
    (void)state;
    assert_int_equal(ggi_staging_model_choose(&model, in_a_row(256 * MIB), 16, now), 8);
    assert_int_equal(ggi_staging_model_choose(&model, in_a_row(256 * MIB), 4, now), 4);
    ggi_staging_model_start(&model, 15.75);
    assert_int_equal(ggi_staging_model_choose(&model, in_a_row(256 * MIB), 16, now), 2);
    ggi_staging_model_start(&model, 0);
    assert_int_equal(ggi_staging_model_choose(&model, in_a_row(256 * MIB), 16, now), 8);
}

static void with_one_processor_the_driver_copies(void **state)
{
    (void)state;
    assert_int_equal(ggi_staging_model_choose(&model, in_a_row(256 * MIB), 1, now), 0);
}

static void a_good_guess_is_kept(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        assert_int_equal(copy(&usual, 256 * MIB, 16, 0), 8);
}

static void where_staging_is_slower_the_driver_copies_after_a_few_copies(void **state)
{
    (void)state;
    assert_int_not_equal(copy(&slow_threads, 16 * MIB, 4, 0), 0);
    assert_int_equal(copy_often(&slow_threads, 16 * MIB, 4, 8), 0);
    for (int i = 0, staged = 0; i < 100; i++) {
        staged += copy(&slow_threads, 16 * MIB, 4, 0) != 0;
        assert_in_range(staged, 0, 5);
    }
}

/* The driver is faster than the guess: only a trial can show it. */
static void a_fast_driver_is_found(void **state)
{
    const struct machine machine = {60, 6, 48};
    for (size_t size = 16 * MIB; size <= 1024 * MIB; size *= 8) {
        int by_driver = 0;
        start(state);
        copy_often(&machine, size, 16, 20000);
        for (int i = 0; i < 100; i++)
            by_driver += !copy(&machine, size, 16, 0);
        assert_in_range(by_driver, 90, 100);
    }
}

/* What 20,000 copies take, of what the best choice would. */
static double excess_of(const struct machine *machine, size_t nbytes, uint64_t gap)
{
    const uint64_t staged = time_of(machine, nbytes, 16), by_driver = time_of(machine, nbytes, 0);
    const uint64_t begin = now;
    for (int i = 0; i < 20000; i++)
        copy(machine, nbytes, 16, gap);
    const double spent = (double)(now - begin) / 20000 - (double)gap;
    return spent / (double)(staged < by_driver ? staged : by_driver);
}

static void trials_cost_little(void **state)
{
    for (size_t size = 1 * MIB; size <= 1024 * MIB; size *= 4) {
        start(state);
        assert_true(excess_of(&usual, size, 0) < 1.03);
        start(state);
        assert_true(excess_of(&usual, size, 50 * MS) < 1.08);
    }
}

/* The guess is wrong here for good, and is tried again and again. */
static void a_wrong_guess_costs_little(void **state)
{
    for (size_t size = 1 * MIB; size <= 1024 * MIB; size *= 4) {
        start(state);
        assert_true(excess_of(&slow_threads, size, 0) < 1.08);
        start(state);
        assert_true(excess_of(&slow_threads, size, 50 * MS) < 1.25);
        start(state);
        assert_true(excess_of(&loaded, size, 0) < 1.08);
        start(state);
        assert_true(excess_of(&loaded, size, 50 * MS) < 1.25);
    }
}

static void less_processors_are_followed_at_once(void **state)
{
    (void)state;
    copy_often(&usual, 64 * MIB, 16, 20);
    assert_int_equal(ggi_staging_model_choose(&model, in_a_row(64 * MIB), 4, now), 4);
    assert_int_equal(ggi_staging_model_choose(&model, in_a_row(64 * MIB), 1, now), 0);
}

/* For two seconds other programs use the processors; a second after that all is as before. */
static void a_change_of_load_is_followed_within_a_second(void **state)
{
    uint64_t until;
    (void)state;
    copy_often(&usual, 64 * MIB, 16, 50);
    for (until = now + 1000 * MS; now < until;)
        copy(&loaded, 64 * MIB, 16, 0);
    assert_int_equal(copy(&loaded, 64 * MIB, 16, 0), 0);
    for (until = now + 1000 * MS; now < until;)
        copy(&loaded, 64 * MIB, 16, 0);
    for (until = now + 1000 * MS; now < until;)
        copy(&usual, 64 * MIB, 16, 0);
    assert_true(is_fastest(&usual, 64 * MIB, copy(&usual, 64 * MIB, 16, 0)));
}

static void copy_for(const struct machine *machine, size_t nbytes, uint64_t time, uint64_t gap)
{
    for (const uint64_t until = now + time; now < until;)
        copy(machine, nbytes, 16, gap);
}

/* How long copies take until one is made in the fastest way. */
static uint64_t time_to_recover(const struct machine *machine, size_t nbytes, uint64_t gap)
{
    const uint64_t begin = now;
    for (;;) {
        const uint64_t before = now;
        if (is_fastest(machine, nbytes, copy(machine, nbytes, 16, gap)))
            return before - begin;
        assert_true(now - begin < 60 * 1000 * MS);
    }
}

static void staging_comes_back_within_a_second_of_a_load_however_long(void **state)
{
    static const uint64_t seconds[] = {1, 2, 3, 4, 6, 8, 12, 16, 32, 64};
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++)
        for (size_t size = 1 * MIB; size <= 256 * MIB; size *= 4)
            for (uint64_t gap = 0; gap <= 50 * MS; gap += 25 * MS) {
                start(state);
                copy_for(&usual, size, 1000 * MS, gap);
                copy_for(&loaded, size, seconds[i] * 1000 * MS, gap);
                assert_in_range(time_to_recover(&usual, size, gap), 0, 1000 * MS);
            }
}

/* As when the device has slept. */
static void a_link_that_becomes_faster_is_used_within_a_second(void **state)
{
    const struct machine slow_link = {3, 6, 6};
    for (uint64_t seconds = 1; seconds <= 64; seconds *= 2)
        for (size_t size = 1 * MIB; size <= 256 * MIB; size *= 4)
            for (uint64_t gap = 0; gap <= 50 * MS; gap += 25 * MS) {
                start(state);
                copy_for(&slow_link, size, seconds * 1000 * MS, gap);
                assert_in_range(time_to_recover(&usual, size, gap), 0, 1000 * MS);
            }
}

/* Its pauses afford no trials. */
static void a_program_that_seldom_copies_seldom_tries(void **state)
{
    const struct machine cold = {9, 4.5, 54};
    int tried = 0;
    (void)state;
    for (int i = 0; i < 200; i++)
        tried += !is_fastest(&cold, 16 * MIB, copy(&cold, 16 * MIB, 16, 2000 * MS));
    assert_in_range(tried, 1, 20);
}

static void one_disturbed_copy_does_not_decide_for_good(void **state)
{
    (void)state;
    copy_often(&usual, 64 * MIB, 16, 3);
    ggi_staging_model_learn(&model, in_a_row(64 * MIB), 8, 100 * MS, now);
    now += 1000 * MS;
    assert_true(is_fastest(&usual, 64 * MIB, copy_often(&usual, 64 * MIB, 16, 3)));
}

static void a_program_that_copies_once_in_two_seconds_learns_as_well(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++)
        copy(&slow_threads, 16 * MIB, 4, 2000 * MS);
    assert_int_equal(copy(&slow_threads, 16 * MIB, 4, 0), 0);
}

static void sizes_are_judged_apart(void **state)
{
    const struct machine only_long = {9, 0.5, 2};
    (void)state;
    copy_often(&only_long, 1 * MIB, 16, 12);
    assert_int_equal(ggi_staging_model_choose(&model, in_a_row(1 * MIB), 16, now), 0);
    assert_int_equal(ggi_staging_model_choose(&model, in_a_row(256 * MIB), 16, now), 8);
}

static void where_threads_sleep_more_are_woken_and_fewer_copies_are_staged(void **state)
{
    (void)state;
    assert_int_equal(ggi_staging_model_choose(&model, in_a_row(4 * MIB), 16, now), 8);
    assert_int_equal(ggi_staging_model_choose(&model, spaced(4 * MIB), 16, now), 12);
    assert_int_not_equal(ggi_staging_model_choose(&model, in_a_row(MIB / 4), 16, now), 0);
    assert_int_equal(ggi_staging_model_choose(&model, spaced(MIB / 4), 16, now), 0);
}

/* The threads take long to wake, so that the driver is faster. */
static void spaced_copies_are_judged_apart_below_32_mib(void **state)
{
    const struct machine asleep = {9, 0.3, 3};
    (void)state;
    for (int i = 0; i < 20; i++) {
        copy(&asleep, 1 * MIB, 16, 50 * MS);
        copy(&asleep, 64 * MIB, 16, 50 * MS);
    }
    assert_int_equal(ggi_staging_model_choose(&model, spaced(1 * MIB), 16, now), 0);
    assert_int_not_equal(ggi_staging_model_choose(&model, in_a_row(1 * MIB), 16, now), 0);
    assert_int_equal(ggi_staging_model_choose(&model, spaced(64 * MIB), 16, now), 0);
    assert_int_equal(ggi_staging_model_choose(&model, in_a_row(64 * MIB), 16, now), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(the_first_guess_uses_as_many_threads_as_the_link_needs, start),
    cmocka_unit_test_setup(with_one_processor_the_driver_copies, start),
    cmocka_unit_test_setup(a_good_guess_is_kept, start),
    cmocka_unit_test_setup(where_staging_is_slower_the_driver_copies_after_a_few_copies, start),
    cmocka_unit_test_setup(a_fast_driver_is_found, start),
    cmocka_unit_test_setup(trials_cost_little, start),
    cmocka_unit_test_setup(a_wrong_guess_costs_little, start),
    cmocka_unit_test_setup(less_processors_are_followed_at_once, start),
    cmocka_unit_test_setup(a_change_of_load_is_followed_within_a_second, start),
    cmocka_unit_test_setup(staging_comes_back_within_a_second_of_a_load_however_long, start),
    cmocka_unit_test_setup(a_link_that_becomes_faster_is_used_within_a_second, start),
    cmocka_unit_test_setup(one_disturbed_copy_does_not_decide_for_good, start),
    cmocka_unit_test_setup(a_program_that_copies_once_in_two_seconds_learns_as_well, start),
    cmocka_unit_test_setup(a_program_that_seldom_copies_seldom_tries, start),
    cmocka_unit_test_setup(sizes_are_judged_apart, start),
    cmocka_unit_test_setup(where_threads_sleep_more_are_woken_and_fewer_copies_are_staged, start),
    cmocka_unit_test_setup(spaced_copies_are_judged_apart_below_32_mib, start),
};
SUITE(staging_model, tests);
