/* test_word_choice.c: how small downloads are waited for, from made-up times. It reads no clock, so nothing here depends on
 * the machine. */
#include "../support/runner.h"

#include "transfer/word_choice.h"

static struct ggi_word_choice choice;

static int start(void **state)
{
    (void)state;
    choice = (struct ggi_word_choice){.waits = 0};
    return 0;
}

/* How many of so many waits query, on a machine where the two ways take this long. */
static unsigned queries_of(unsigned waits, uint64_t word, uint64_t query)
{
    unsigned queried = 0;
    for (unsigned i = 0; i < waits; i++) {
        const bool queries = ggi_word_choice_next(&choice);
        ggi_word_choice_learn(&choice, queries, queries ? query : word);
        queried += queries;
    }
    return queried;
}

static void downloads_wait_for_the_word_where_it_is_faster(void **state)
{
    (void)state;
    assert_int_equal(queries_of(GGI_WORD_TRY_EVERY - 1, 6600, 7600), 0);
    assert_int_equal(queries_of(100 * GGI_WORD_TRY_EVERY, 6600, 7600), 100);
}

static void a_word_that_is_little_later_than_a_query_is_still_waited_for(void **state)
{
    (void)state;
    assert_int_equal(queries_of(100 * GGI_WORD_TRY_EVERY, 8200, 7200), 100);
}

static void downloads_query_after_one_trial_where_the_word_is_late(void **state)
{
    (void)state;
    assert_int_equal(queries_of(GGI_WORD_TRY_EVERY, 15000, 7000), 1);
    assert_int_equal(queries_of(100 * GGI_WORD_TRY_EVERY, 15000, 7000),
                     100 * (GGI_WORD_TRY_EVERY - 1));
}

static void a_change_of_either_time_is_followed(void **state)
{
    (void)state;
    queries_of(2 * GGI_WORD_TRY_EVERY, 15000, 7000);
    queries_of(4 * GGI_WORD_TRY_EVERY, 6500, 7000); /* the word is in time again */
    assert_int_equal(queries_of(GGI_WORD_TRY_EVERY, 6500, 7000), 1);
    queries_of(4 * GGI_WORD_TRY_EVERY, 15000, 7000); /* and late, which the least time forgets */
    assert_int_equal(queries_of(GGI_WORD_TRY_EVERY, 15000, 7000), GGI_WORD_TRY_EVERY - 1);
}

static void waits_for_earlier_work_do_not_change_the_choice(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000;
         i++) { /* every third download is behind a kernel, whichever way it is waited for */
        const bool queries = ggi_word_choice_next(&choice);
        const uint64_t work = i % 3 ? 0 : 500000 + 1000 * i;
        ggi_word_choice_learn(&choice, queries, (queries ? 7600u : 6600u) + work);
    }
    assert_int_equal(queries_of(GGI_WORD_TRY_EVERY, 6600, 7600), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(downloads_wait_for_the_word_where_it_is_faster, start),
    cmocka_unit_test_setup(a_word_that_is_little_later_than_a_query_is_still_waited_for, start),
    cmocka_unit_test_setup(downloads_query_after_one_trial_where_the_word_is_late, start),
    cmocka_unit_test_setup(a_change_of_either_time_is_followed, start),
    cmocka_unit_test_setup(waits_for_earlier_work_do_not_change_the_choice, start),
};
SUITE(word_choice, tests);
