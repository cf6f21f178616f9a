/* test_library.c: the search for a vendor's library, step by step. */
#include "search.h"

/* ---- 1: the variable ---- */

static void variable(void)
{
    const char *path = vendor(1, folder, "anything");
    search_in(make_folder("other", 0755), NULL);
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
    search_in(folder, NULL);
    vendor(3, folder, "libfixture.so.3");
    setenv(VARIABLE, inside("absent"), 1);
    CHECK(search() == GG_PROBE_LIBRARY_NOT_FOUND);
    CHECK_HAS(reason, VARIABLE "=/tmp/");
    CHECK_HAS(reason, "nothing else was tried");
    CHECK(tried.tried_count == 1);
    CHECK(found.handle == NULL);
}
static void a_variable_that_fails_is_final(void **state)
{
    (void)state;
    in_child(final_variable);
}

static void relative_variable(void)
{
    CHECK(chdir(folder) == 0);
    vendor(3, folder, "libfixture.so.3");
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
    search_in(folder, NULL);
    vendor(3, folder, "libfixture.so.3");
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
    const char *path = vendor(1, folder, "renamed");
    map(path);
    search_in(make_folder("other", 0755), NULL);
    vendor(3, inside("other"), "libfixture.so.3");
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, path);
    CHECK_SAME(found.found_by, "already loaded");
    CHECK(found.already_loaded && identity() == 1);
}
static void a_library_that_the_process_has_wins(void **state)
{
    (void)state;
    in_child(mapped);
}

static void hashed(void)
{
    static const char *const unlike[] = {"libfixture.so.8", NULL};
    const char *path = vendor(2, folder, "libfixture-1a2b3c4d.so.8.0");
    map(path);
    spec.names = unlike;
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, path);
    CHECK(found.already_loaded && identity() == 2);
}
static void a_renamed_copy_that_is_mapped_is_found_by_its_stem(void **state)
{
    (void)state;
    in_child(hashed);
}

static void lookalike(void)
{
    static const char *const unlike[] = {"libfixture.so.8", NULL};
    map(vendor(2, folder, "libfixturert.so.8"));
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
    const char *one = vendor(1, make_folder("a", 0755), "libfixture.so.1");
    const char *two = vendor(1, make_folder("b", 0755), "libfixture.so.1");
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
    search_in(folder, NULL);
    vendor(3, folder, "libfixture.so.3");
    spec.flags = GG_LIBRARY_ONLY_MAPPED;
    CHECK(search() == GG_PROBE_LIBRARY_NOT_FOUND);
    CHECK_HAS(reason, "libfixture.so.3 or libfixture.so.2 or libfixture.so.1 is not loaded");
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
    const char *path = vendor(3, folder, "libfixture.so.3");
    setenv(VARIABLE, path, 1);
    spec.flags = GG_LIBRARY_ONLY_MAPPED;
    CHECK(search() == GG_PROBE_LIBRARY_NOT_FOUND);
    CHECK(dlopen(path, RTLD_LAZY | RTLD_NOLOAD) == NULL);
    map(path);
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.found_by, "environment");
}
static void only_mapped_holds_for_the_variable_too(void **state)
{
    (void)state;
    in_child(only_mapped_variable);
}

/* ---- 3, 4, 5: directories handed in, bare names, directories ---- */

static void handed_in(void)
{
    const char *first = make_folder("first", 0755);
    vendor(1, first, "libfixture.so.1");
    vendor(2, first, "libfixture.so.2");
    search_in(make_folder("last", 0755), NULL);
    vendor(3, inside("last"), "libfixture.so.3");
    CHECK(gg_add_library_directory(inside("empty")) == GG_OK);
    CHECK(gg_add_library_directory(first) == GG_OK);
    CHECK(gg_add_library_directory(first) == GG_OK);
    spec.flags = GG_LIBRARY_HANDED_IN;
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, joined(first, "libfixture.so.2")); /* newest first */
    CHECK_SAME(found.found_by, "search directory");
    CHECK_HAS(outcome(inside("empty/libfixture.so.3")), "No such file");
    CHECK_HAS(outcome(inside("first/libfixture.so.3")), "No such file");
}
static void directories_handed_in_come_before_the_others(void **state)
{
    (void)state;
    in_child(handed_in);
}

static void not_asked_for(void)
{
    vendor(1, folder, "libfixture.so.1");
    CHECK(gg_add_library_directory(folder) == GG_OK);
    CHECK(search() == GG_PROBE_LIBRARY_NOT_FOUND);
    CHECK_SAME(outcome(inside("libfixture.so.1")), "not tried");
}
static void directories_handed_in_are_for_those_who_ask(void **state)
{
    (void)state;
    in_child(not_asked_for);
}

static void no_system(void)
{
    search_in(make_folder("last", 0755), NULL);
    vendor(3, inside("last"), "libfixture.so.3");
    CHECK(gg_add_library_directory(folder) == GG_OK);
    spec.flags = GG_LIBRARY_HANDED_IN | GG_LIBRARY_NO_SYSTEM;
    CHECK(search() == GG_PROBE_LIBRARY_NOT_FOUND);
    CHECK_HAS(reason, "neither loaded nor in a directory that was handed in");
    CHECK(tried.tried_count == 3); /* in the folder handed in alone */
    vendor(1, folder, "libfixture.so.1");
    CHECK(search() == GG_PROBE_AVAILABLE);
}
static void a_search_may_leave_the_system_out(void **state)
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
static void only_absolute_directories_are_taken(void **state)
{
    (void)state;
    in_child(bad_directories);
}

static void bare_name_restarted(void)
{
    search_in(inside("last"), NULL);
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, inside("path/libfixture.so.1"));
    CHECK_SAME(found.found_by, "soname");
    CHECK_HAS(outcome("libfixture.so.3"), "No such file");
    CHECK_SAME(outcome("libfixture.so.1"), "opened");
}
static void bare_name(void)
{
    vendor(1, make_folder("path", 0755), "libfixture.so.1");
    vendor(3, make_folder("last", 0755), "libfixture.so.3");
    restart("bare_name");
}
static void bare_names_come_before_directories(void **state)
{
    (void)state;
    in_child(bare_name);
}

static void before_bare_restarted(void)
{
    CHECK(gg_add_library_directory(inside("handed")) == GG_OK);
    spec.flags = GG_LIBRARY_HANDED_IN;
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, inside("handed/libfixture.so.1"));
}
static void before_bare(void)
{
    vendor(3, make_folder("path", 0755), "libfixture.so.3");
    vendor(1, make_folder("handed", 0755), "libfixture.so.1");
    restart("before_bare");
}
static void directories_handed_in_come_before_bare_names(void **state)
{
    (void)state;
    in_child(before_bare);
}

static void variables(void)
{
    search_in("$GPUGLUE_TEST_UNSET/lib", "$GPUGLUE_TEST_HOME/lib");
    setenv("GPUGLUE_TEST_HOME", folder, 1);
    make_folder("lib", 0755);
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
    CHECK(chdir(folder) == 0);
    search_in("$GPUGLUE_TEST_HOME/lib", NULL);
    setenv("GPUGLUE_TEST_HOME", ".", 1);
    make_folder("lib", 0755);
    vendor(1, inside("lib"), "libfixture.so.1");
    CHECK(search() == GG_PROBE_LIBRARY_NOT_FOUND);
}
static void a_variable_with_a_relative_path_is_passed_over(void **state)
{
    (void)state;
    in_child(relative_home);
}

static void pattern(void)
{
    char text[128];
    snprintf(text, sizeof text, "%s/vendor-*/lib", folder);
    search_in(text, NULL);
    const char *const versions[] = {"vendor-9.2", "vendor-10.1", "vendor-10.0", "vendor-11"};
    for (size_t i = 0; i < 4; i++)
        make_folder(versions[i], 0755);
    for (size_t i = 0; i < 3; i++)
        vendor(1, make_folder(joined(versions[i], "lib"), 0755), "libfixture.so.1");
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, inside("vendor-10.1/lib/libfixture.so.1"));
}
static void a_star_takes_the_highest_version_first(void **state)
{
    (void)state;
    in_child(pattern);
}

static void odd_home(void)
{
    setenv("GPUGLUE_TEST_HOME", make_folder("a[b]*?", 0755), 1);
    make_folder("a[b]*?/v-1", 0755);
    vendor(1, inside("a[b]*?/v-1"), "libfixture.so.1");
    search_in("$GPUGLUE_TEST_HOME/v-*", NULL);
    CHECK(search() == GG_PROBE_AVAILABLE);
}
static void what_a_variable_says_is_no_pattern(void **state)
{
    (void)state;
    in_child(odd_home);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_variable_comes_first),
        cmocka_unit_test(a_variable_that_fails_is_final),
        cmocka_unit_test(a_relative_path_in_the_variable_is_refused),
        cmocka_unit_test(an_empty_variable_is_an_unset_one),
        cmocka_unit_test(a_library_that_the_process_has_wins),
        cmocka_unit_test(a_renamed_copy_that_is_mapped_is_found_by_its_stem),
        cmocka_unit_test(a_longer_name_is_another_library),
        cmocka_unit_test(two_copies_are_noted_with_both_paths),
        cmocka_unit_test(only_mapped_opens_nothing),
        cmocka_unit_test(only_mapped_holds_for_the_variable_too),
        cmocka_unit_test(directories_handed_in_come_before_the_others),
        cmocka_unit_test(directories_handed_in_are_for_those_who_ask),
        cmocka_unit_test(a_search_may_leave_the_system_out),
        cmocka_unit_test(only_absolute_directories_are_taken),
        cmocka_unit_test(bare_names_come_before_directories),
        cmocka_unit_test(directories_handed_in_come_before_bare_names),
        cmocka_unit_test(a_directory_may_begin_with_a_variable),
        cmocka_unit_test(a_variable_with_a_relative_path_is_passed_over),
        cmocka_unit_test(a_star_takes_the_highest_version_first),
        cmocka_unit_test(what_a_variable_says_is_no_pattern),
    };
    prepare(argc, argv);
    if (restarted("bare_name"))
        bare_name_restarted();
    else if (restarted("before_bare"))
        before_bare_restarted();
    else
        return cmocka_run_group_tests_name("library", tests, NULL, NULL);
    _exit(0);
}
