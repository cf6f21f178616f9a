/* test_dynlib.c: the reason when a vendor's library cannot be used, and its symbols. */
#include "search.h"

#include <elf.h>

static const char *elf32(const char *path)
{
    unsigned char head[64] = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT};
    head[16] = ET_DYN;
    head[18] = EM_386;
    return write_file(path, head, sizeof head);
}

/* ---- reasons ---- */

static void nothing(void)
{
    search_in(directory, NULL);
    CHECK(search() == GG_PROBE_LIBRARY_NOT_FOUND);
    CHECK_HAS(reason, "none of libfixture.so.3, libfixture.so.2, libfixture.so.1 was found");
    CHECK_HAS(reason, VARIABLE);
    CHECK(tried.tried_count == 6); /* three bare names, three in the directory */
}
static void a_missing_library_is_reported_with_the_names_searched(void **state)
{
    (void)state;
    in_child(nothing);
}

static gg_probe_status searched_in_directory(void)
{
    search_in(directory, NULL);
    return search();
}

static void text_file(void)
{
    write_file(inside("libfixture.so.3"), "this is a text file, is it not\n", 31);
    CHECK(searched_in_directory() == GG_PROBE_LIBRARY_LOAD_FAILED);
    CHECK_HAS(reason, inside("libfixture.so.3"));
    CHECK_HAS(reason, "is not a shared library");
}
static void a_text_file_is_reported_as_such(void **state)
{
    (void)state;
    in_child(text_file);
}

static void narrow(void)
{
    elf32(inside("libfixture.so.3"));
    CHECK(searched_in_directory() == GG_PROBE_LIBRARY_LOAD_FAILED);
    CHECK_HAS(reason, "is a 32-bit library, but this process is 64-bit");
}
static void a_32_bit_library_is_reported_as_such(void **state)
{
    (void)state;
    in_child(narrow);
}

static int needy_restarted(void)
{
    use_directory_of_case();
    CHECK(searched_in_directory() == GG_PROBE_LIBRARY_LOAD_FAILED);
    CHECK_HAS(reason, inside("libfixture.so.3"));
    CHECK_HAS(reason, "needs libfixture_lender.so");
    _exit(0); /* as forked() ends a case: paths are not freed */
}
static void needy(void)
{
    copy_fixture("libfixture_needy.so", inside("libfixture.so.3"));
    restart("needy"); /* away from the fixtures' directory, which the test runner may add */
}
static void a_missing_dependency_is_named(void **state)
{
    (void)state;
    in_child(needy);
}

static void library_is_a_directory(void)
{
    make_directory("libfixture.so.3", 0755);
    CHECK(searched_in_directory() == GG_PROBE_LIBRARY_LOAD_FAILED);
    CHECK_HAS(reason, "cannot be read");
}
static void a_directory_is_not_a_library(void **state)
{
    (void)state;
    in_child(library_is_a_directory);
}

static int bare_text_restarted(void)
{
    use_directory_of_case();
    CHECK(search() == GG_PROBE_LIBRARY_LOAD_FAILED);
    CHECK_HAS(reason, inside("path/libfixture.so.3"));
    CHECK_HAS(reason, "is not a shared library");
    _exit(0); /* as forked() ends a case: paths are not freed */
}
static void bare_text(void)
{
    make_directory("path", 0755);
    write_file(inside("path/libfixture.so.3"), "INPUT(libfixture.so.2) and more text\n", 37);
    restart("bare_text");
}
static void a_text_file_in_the_loaders_path_is_named(void **state)
{
    (void)state;
    in_child(bare_text);
}

/* root may read everything: become the user nobody. */
static void unreadable(void)
{
    const char *path = vendor(3, directory, "libfixture.so.3");
    CHECK(chmod(path, 0) == 0);
    CHECK(chmod(directory, 0755) == 0);
    CHECK(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
    CHECK(searched_in_directory() == GG_PROBE_LIBRARY_LOAD_FAILED);
    CHECK_HAS(reason, "may not be read by this user (mode 0000, owner ");
}
static void an_unreadable_file_is_reported_with_its_mode(void **state)
{
    (void)state;
    in_child(unreadable);
}

static void past_broken(void)
{
    write_file(inside("libfixture.so.3"), "this is a text file, is it not\n", 31);
    vendor(2, directory, "libfixture.so.2");
    CHECK(searched_in_directory() == GG_PROBE_AVAILABLE);
    CHECK(identity() == 2);
    CHECK(strcmp(outcome(inside("libfixture.so.3")), "opened") != 0);
}
static void a_broken_file_does_not_end_the_search(void **state)
{
    (void)state;
    in_child(past_broken);
}

static void real_path(void)
{
    const char *path = vendor(3, make_directory("real", 0755), "libfixture.so.3.14");
    CHECK(symlink(path, inside("libfixture.so.3")) == 0);
    CHECK(searched_in_directory() == GG_PROBE_AVAILABLE);
    CHECK_SAME(found.path, path);
}
static void the_reported_path_is_resolved(void **state)
{
    (void)state;
    in_child(real_path);
}

static void small_buffer(void)
{
    char small[24];
    memset(small, 'x', sizeof small);
    CHECK(ggi_host_api()->library_open(&spec, NULL, &found, small, 20) == GG_PROBE_LIBRARY_NOT_FOUND);
    CHECK_SAME(small, "none of libfixtu\xe2\x80\xa6");
    CHECK(small[20] == 'x');
}
static void a_reason_that_is_too_long_is_truncated_with_a_mark(void **state)
{
    (void)state;
    in_child(small_buffer);
}

/* ---- symbols ---- */

struct table {
    int (*identity)(void);
    void (*optional)(void);
};

static gg_probe_status resolve(const char *second, const char *third, struct table *table)
{
    const struct gg_symbol symbols[] = {
        {"fixture_identity", offsetof(struct table, identity), GG_REQUIRED},
        {second, offsetof(struct table, optional), GG_OPTIONAL},
        {third, offsetof(struct table, identity), GG_REQUIRED},
        {third, offsetof(struct table, identity), GG_REQUIRED},
    };
    vendor(1, directory, "libfixture.so.1");
    CHECK(searched_in_directory() == GG_PROBE_AVAILABLE);
    return ggi_host_api()->library_resolve(&found, symbols, 4, table, reason, sizeof reason);
}

static void optional(void)
{
    struct table table;
    memset(&table, 0xff, sizeof table);
    CHECK(resolve("no_such_function", "fixture_identity", &table) == GG_PROBE_AVAILABLE);
    CHECK(table.identity() == 1);
    CHECK(table.optional == NULL);
}
static void an_optional_symbol_that_is_missing_reads_as_null(void **state)
{
    (void)state;
    in_child(optional);
}

static void required(void)
{
    struct table table;
    CHECK(resolve("fixture_identity", "no_such_function", &table) == GG_PROBE_SYMBOL_MISSING);
    CHECK_HAS(reason, found.path);
    CHECK_HAS(reason, "lacks the function no_such_function and 1 more");
}
static void a_required_symbol_that_is_missing_is_named_with_the_file(void **state)
{
    (void)state;
    in_child(required);
}

/* ---- stubs ---- */

static void skip_stubs(void)
{
    make_directory("lib", 0755);
    vendor(3, make_directory("lib/stubs", 0755), "libfixture.so.3");
    vendor(1, inside("lib"), "libfixture.so.1");
    search_in(inside("lib/stubs"), inside("lib"));
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK(identity() == 1);
    CHECK_HAS(outcome(inside("lib/stubs")), "skipped");
}
static void directories_of_stubs_are_skipped(void **state)
{
    (void)state;
    in_child(skip_stubs);
}

static void mapped_stub(void)
{
    vendor(3, make_directory("stubs", 0755), "libfixture.so.3");
    vendor(1, directory, "libfixture.so.1");
    map(inside("stubs/libfixture.so.3"));
    search_in(directory, NULL);
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK(identity() == 1);
    CHECK_HAS(tried.notes[0], "is a stub");
}
static void a_loaded_stub_is_skipped(void **state)
{
    (void)state;
    in_child(mapped_stub);
}

static void nothing_but_a_stub(void)
{
    vendor(3, make_directory("stubs", 0755), "libfixture.so.3");
    map(inside("stubs/libfixture.so.3"));
    CHECK(search() == GG_PROBE_AVAILABLE);
    CHECK_HAS(found.path, "/stubs/");
}
static void a_stub_is_used_if_there_is_no_other_library(void **state)
{
    (void)state;
    in_child(nothing_but_a_stub);
}

static const struct scenario scenarios[] = {
    {"needy", needy_restarted},
    {"bare_text", bare_text_restarted},
};

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_missing_library_is_reported_with_the_names_searched),
    cmocka_unit_test(a_text_file_is_reported_as_such),
    cmocka_unit_test(a_32_bit_library_is_reported_as_such),
    cmocka_unit_test(a_missing_dependency_is_named),
    cmocka_unit_test(a_directory_is_not_a_library),
    cmocka_unit_test(a_text_file_in_the_loaders_path_is_named),
    cmocka_unit_test(an_unreadable_file_is_reported_with_its_mode),
    cmocka_unit_test(a_broken_file_does_not_end_the_search),
    cmocka_unit_test(the_reported_path_is_resolved),
    cmocka_unit_test(a_reason_that_is_too_long_is_truncated_with_a_mark),
    cmocka_unit_test(an_optional_symbol_that_is_missing_reads_as_null),
    cmocka_unit_test(a_required_symbol_that_is_missing_is_named_with_the_file),
    cmocka_unit_test(directories_of_stubs_are_skipped),
    cmocka_unit_test(a_loaded_stub_is_skipped),
    cmocka_unit_test(a_stub_is_used_if_there_is_no_other_library),
};
SUITE_AND_SCENARIOS(dynlib, tests, scenarios);
