/* test_library.c: the search for a vendor's library, step by step. */
#include "search.h"

/* ---- 1: the variable ---- */

static void variable(void)
{
    const char *path = vendor(1, directory, "anything");
    search_in(make_directory("other", 0755), NULL);
    vendor(3, inside("other"), "libfixture.so.3");
    setenv(VARIABLE, path, 1);
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, path);
    CHECK_SAME(found.found_by, "environment");
    CHECK(!found.already_loaded && identity() == 1);
    CHECK_SAME(outcome(path), "opened");
    CHECK_SAME(reason, "");
}
static void the_variable_comes_first(void **state)
{
    (void)state;
    in_child(variable);
}

static void final_variable(void)
{
    search_in(directory, NULL);
    vendor(3, directory, "libfixture.so.3");
    setenv(VARIABLE, inside("absent"), 1);
    CHECK(search() == GG_PROBE_LIBRARY_NOT_FOUND);
    CHECK_HAS(reason, VARIABLE "=/tmp/");
    CHECK_HAS(reason, "no other location was searched");
    CHECK(tried.tried_count == 1);
    CHECK(found.handle == NULL);
}
static void after_a_variable_that_fails_nothing_else_is_searched(void **state)
{
    (void)state;
    in_child(final_variable);
}

static void relative_variable(void)
{
    CHECK(chdir(directory) == 0);
    vendor(3, directory, "libfixture.so.3");
    setenv(VARIABLE, "libfixture.so.3", 1);
    CHECK(search() == GG_PROBE_LIBRARY_NOT_FOUND);
    CHECK_HAS(reason, "absolute path");
}
static void a_relative_path_in_the_variable_is_refused(void **state)
{
    (void)state;
    in_child(relative_variable);
}

static void empty_variable(void)
{
    setenv(VARIABLE, "", 1);
    search_in(directory, NULL);
    vendor(3, directory, "libfixture.so.3");
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.found_by, "directory");
}
static void an_empty_variable_is_an_unset_one(void **state)
{
    (void)state;
    in_child(empty_variable);
}

/* ---- 2: already mapped ---- */

static void mapped(void)
{
    const char *path = vendor(1, directory, "renamed");
    map(path);
    search_in(make_directory("other", 0755), NULL);
    vendor(3, inside("other"), "libfixture.so.3");
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, path);
    CHECK_SAME(found.found_by, "already loaded");
    CHECK(found.already_loaded && identity() == 1);
}
static void a_library_that_is_already_loaded_is_preferred(void **state)
{
    (void)state;
    in_child(mapped);
}

static void hashed(void)
{
    static const char *const unlike[] = {"libfixture.so.8", NULL};
    const char *path = vendor(2, directory, "libfixture-1a2b3c4d.so.8.0");
    map(path);
    spec.names = unlike;
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, path);
    CHECK(found.already_loaded && identity() == 2);
}
static void a_loaded_copy_with_another_name_is_found_by_its_stem(void **state)
{
    (void)state;
    in_child(hashed);
}

static void lookalike(void)
{
    static const char *const unlike[] = {"libfixture.so.8", NULL};
    map(vendor(2, directory, "libfixturert.so.8"));
    spec.names = unlike;
    CHECK(search() == GG_PROBE_LIBRARY_NOT_FOUND);
}
static void a_longer_name_is_another_library(void **state)
{
    (void)state;
    in_child(lookalike);
}

static void copies(void)
{
    const char *one = vendor(1, make_directory("a", 0755), "libfixture.so.1");
    const char *two = vendor(1, make_directory("b", 0755), "libfixture.so.1");
    map(one);
    map(two);
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, one);
    CHECK(tried.note_count == 1);
    CHECK_HAS(tried.notes[0], one);
    CHECK_HAS(tried.notes[0], two);
}
static void two_copies_are_noted_with_both_paths(void **state)
{
    (void)state;
    in_child(copies);
}

static void only_mapped(void)
{
    search_in(directory, NULL);
    vendor(3, directory, "libfixture.so.3");
    spec.flags = GG_LIBRARY_ONLY_MAPPED;
    CHECK(search() == GG_PROBE_LIBRARY_NOT_FOUND);
    CHECK_HAS(reason, "none of libfixture.so.3, libfixture.so.2, libfixture.so.1 is loaded");
    map(inside("libfixture.so.3"));
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK(found.already_loaded);
}
static void only_mapped_opens_nothing(void **state)
{
    (void)state;
    in_child(only_mapped);
}

static void only_mapped_variable(void)
{
    const char *path = vendor(3, directory, "libfixture.so.3");
    setenv(VARIABLE, path, 1);
    spec.flags = GG_LIBRARY_ONLY_MAPPED;
    CHECK(search() == GG_PROBE_LIBRARY_NOT_FOUND);
    CHECK(dlopen(path, RTLD_LAZY | RTLD_NOLOAD) == NULL);
    map(path);
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.found_by, "environment");
}
static void only_mapped_applies_to_the_variable(void **state)
{
    (void)state;
    in_child(only_mapped_variable);
}

/* ---- 3, 4, 5: added directories, bare names, directories ---- */

static void added_directories_case(void)
{
    const char *first = make_directory("first", 0755);
    vendor(1, first, "libfixture.so.1");
    vendor(2, first, "libfixture.so.2");
    search_in(make_directory("last", 0755), NULL);
    vendor(3, inside("last"), "libfixture.so.3");
    CHECK(gg_add_library_directory(inside("empty")) == GG_OK);
    CHECK(gg_add_library_directory(first) == GG_OK);
    CHECK(gg_add_library_directory(first) == GG_OK);
    spec.flags = GG_LIBRARY_ADDED_DIRECTORIES;
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, joined(first, "libfixture.so.2")); /* newest first */
    CHECK_SAME(found.found_by, "search directory");
    CHECK_HAS(outcome(inside("empty/libfixture.so.3")), "No such file");
    CHECK_HAS(outcome(inside("first/libfixture.so.3")), "No such file");
}
static void added_directories_come_before_the_others(void **state)
{
    (void)state;
    in_child(added_directories_case);
}

static void not_asked_for(void)
{
    vendor(1, directory, "libfixture.so.1");
    CHECK(gg_add_library_directory(directory) == GG_OK);
    CHECK(search() == GG_PROBE_LIBRARY_NOT_FOUND);
    CHECK_SAME(outcome(inside("libfixture.so.1")), "not tried");
}
static void added_directories_are_searched_only_on_request(void **state)
{
    (void)state;
    in_child(not_asked_for);
}

static void no_system(void)
{
    search_in(make_directory("last", 0755), NULL);
    vendor(3, inside("last"), "libfixture.so.3");
    CHECK(gg_add_library_directory(directory) == GG_OK);
    spec.flags = GG_LIBRARY_ADDED_DIRECTORIES | GG_LIBRARY_NO_SYSTEM;
    CHECK(search() == GG_PROBE_LIBRARY_NOT_FOUND);
    CHECK_HAS(reason, "is loaded or in an added library directory");
    CHECK(tried.tried_count == 3); /* in the added directory alone */
    vendor(1, directory, "libfixture.so.1");
    CHECK(search() == GG_PROBE_AVAILABLE);
}
static void a_search_may_omit_the_system(void **state)
{
    (void)state;
    in_child(no_system);
}

static void bad_directories(void)
{
    CHECK(gg_add_library_directory(NULL) == GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_add_library_directory("") == GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_add_library_directory("lib") == GG_ERR_INVALID_ARGUMENT);
    CHECK_HAS(error_message(), "\"lib\" is not an absolute path");
}
static void only_absolute_directories_are_accepted(void **state)
{
    (void)state;
    in_child(bad_directories);
}

static int bare_name_restarted(void)
{
    use_directory_of_case();
    search_in(inside("last"), NULL);
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, inside("path/libfixture.so.1"));
    CHECK_SAME(found.found_by, "soname");
    CHECK_HAS(outcome("libfixture.so.3"), "No such file");
    CHECK_SAME(outcome("libfixture.so.1"), "opened");
    _exit(0); /* as forked() ends a case: paths are not freed */
}
static void bare_name(void)
{
    vendor(1, make_directory("path", 0755), "libfixture.so.1");
    vendor(3, make_directory("last", 0755), "libfixture.so.3");
    restart("bare_name");
}
static void bare_names_come_before_directories(void **state)
{
    (void)state;
    in_child(bare_name);
}

static int before_bare_restarted(void)
{
    use_directory_of_case();
    CHECK(gg_add_library_directory(inside("ready_ticket")) == GG_OK);
    spec.flags = GG_LIBRARY_ADDED_DIRECTORIES;
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, inside("ready_ticket/libfixture.so.1"));
    _exit(0); /* as forked() ends a case: paths are not freed */
}
static void before_bare(void)
{
    vendor(3, make_directory("path", 0755), "libfixture.so.3");
    vendor(1, make_directory("ready_ticket", 0755), "libfixture.so.1");
    restart("before_bare");
}
static void added_directories_come_before_bare_names(void **state)
{
    (void)state;
    in_child(before_bare);
}

static void variables(void)
{
    search_in("$GPUGLUE_TEST_UNSET/lib", "$GPUGLUE_TEST_HOME/lib");
    setenv("GPUGLUE_TEST_HOME", directory, 1);
    make_directory("lib", 0755);
    const char *path = vendor(1, inside("lib"), "libfixture.so.1");
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, path);
    CHECK_SAME(found.found_by, "directory");
}
static void a_directory_may_begin_with_a_variable(void **state)
{
    (void)state;
    in_child(variables);
}

static void relative_home(void)
{
    CHECK(chdir(directory) == 0);
    search_in("$GPUGLUE_TEST_HOME/lib", NULL);
    setenv("GPUGLUE_TEST_HOME", ".", 1);
    make_directory("lib", 0755);
    vendor(1, inside("lib"), "libfixture.so.1");
    CHECK(search() == GG_PROBE_LIBRARY_NOT_FOUND);
}
static void a_variable_with_a_relative_path_is_skipped(void **state)
{
    (void)state;
    in_child(relative_home);
}

static void pattern(void)
{
    char text[128];
    snprintf(text, sizeof text, "%s/vendor-*/lib", directory);
    search_in(text, NULL);
    const char *const versions[] = {"vendor-9.2", "vendor-10.1", "vendor-10.0", "vendor-11"};
    for (size_t i = 0; i < 4; i++)
        make_directory(versions[i], 0755);
    for (size_t i = 0; i < 3; i++)
        vendor(1, make_directory(joined(versions[i], "lib"), 0755), "libfixture.so.1");
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, inside("vendor-10.1/lib/libfixture.so.1"));
}
static void a_wildcard_tries_the_highest_version_first(void **state)
{
    (void)state;
    in_child(pattern);
}

static void odd_home(void)
{
    setenv("GPUGLUE_TEST_HOME", make_directory("a[b]*?", 0755), 1);
    make_directory("a[b]*?/v-1", 0755);
    vendor(1, inside("a[b]*?/v-1"), "libfixture.so.1");
    search_in("$GPUGLUE_TEST_HOME/v-*", NULL);
    CHECK(search() == GG_PROBE_AVAILABLE);
}
static void the_value_of_a_variable_is_not_a_pattern(void **state)
{
    (void)state;
    in_child(odd_home);
}

static const struct scenario scenarios[] = {
    {"bare_name", bare_name_restarted},
    {"before_bare", before_bare_restarted},
};

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_variable_comes_first),
    cmocka_unit_test(after_a_variable_that_fails_nothing_else_is_searched),
    cmocka_unit_test(a_relative_path_in_the_variable_is_refused),
    cmocka_unit_test(an_empty_variable_is_an_unset_one),
    cmocka_unit_test(a_library_that_is_already_loaded_is_preferred),
    cmocka_unit_test(a_loaded_copy_with_another_name_is_found_by_its_stem),
    cmocka_unit_test(a_longer_name_is_another_library),
    cmocka_unit_test(two_copies_are_noted_with_both_paths),
    cmocka_unit_test(only_mapped_opens_nothing),
    cmocka_unit_test(only_mapped_applies_to_the_variable),
    cmocka_unit_test(added_directories_come_before_the_others),
    cmocka_unit_test(added_directories_are_searched_only_on_request),
    cmocka_unit_test(a_search_may_omit_the_system),
    cmocka_unit_test(only_absolute_directories_are_accepted),
    cmocka_unit_test(bare_names_come_before_directories),
    cmocka_unit_test(added_directories_come_before_bare_names),
    cmocka_unit_test(a_directory_may_begin_with_a_variable),
    cmocka_unit_test(a_variable_with_a_relative_path_is_skipped),
    cmocka_unit_test(a_wildcard_tries_the_highest_version_first),
    cmocka_unit_test(the_value_of_a_variable_is_not_a_pattern),
};
SUITE_AND_SCENARIOS(library, tests, scenarios);
