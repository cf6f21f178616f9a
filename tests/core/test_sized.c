/* test_sized.c: structs of callers that were compiled with an older or a newer header. */
#include "inside.h"

#include "base/sized.h"

struct ours {
    uint32_t struct_size, first;
    uint64_t second;
};
#define FIRST_VERSION offsetof(struct ours, second)

static const struct ours full = {.struct_size = sizeof full, .first = 1, .second = 2};

static void an_older_struct_receives_the_fields_that_fit(void **state)
{
    struct ours theirs = {.struct_size = FIRST_VERSION, .second = 77};
    (void)state;
    assert_true(ggi_sized_fits(&theirs, FIRST_VERSION));
    ggi_sized_write(&theirs, &full, sizeof full);
    assert_int_equal(theirs.first, 1);
    assert_int_equal(theirs.second, 77);
    assert_int_equal(theirs.struct_size, FIRST_VERSION);
}

static void a_newer_struct_reports_how_much_was_written(void **state)
{
    struct {
        struct ours ours;
        uint64_t newer;
    } theirs = {.ours.struct_size = sizeof theirs, .newer = 77};
    (void)state;
    assert_true(ggi_sized_fits(&theirs, FIRST_VERSION));
    ggi_sized_write(&theirs, &full, sizeof full);
    assert_int_equal(theirs.ours.second, 2);
    assert_int_equal(theirs.ours.struct_size, sizeof full);
    assert_int_equal(theirs.newer, 77);
}

static void a_struct_shorter_than_the_first_version_is_refused_with_the_sizes(void **state)
{
    struct ours theirs = {.struct_size = FIRST_VERSION - 1};
    struct gg_error error = {.struct_size = sizeof error};
    (void)state;
    assert_false(ggi_sized_fits(&theirs, FIRST_VERSION));
    assert_int_equal(ggi_sized_refuse("gg_call", "gg_ours", &theirs, FIRST_VERSION),
                     GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(gg_last_error(&error), GG_OK);
    assert_string_equal(error.message, "gg_call: struct_size is 7, expected at least 8: set it to "
                                       "sizeof(struct gg_ours)");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_older_struct_receives_the_fields_that_fit),
    cmocka_unit_test(a_newer_struct_reports_how_much_was_written),
    cmocka_unit_test(a_struct_shorter_than_the_first_version_is_refused_with_the_sizes),
};
SUITE(sized, tests);
