/* test_registry.c: where plugins are found, and which are refused. */
#include "inside.h"

static void plugin_path(const char *value)
{
    setenv("GPUGLUE_PLUGIN_PATH", value, 1);
}

/* The refusal of an entry of the variable. */
static const char *refusal(const char *value)
{
    plugin_path(value);
    return report_of(GG_PASSIVE, "GPUGLUE_PLUGIN_PATH")->reason;
}

/* ---- registering ---- */

static void bad_paths(void)
{
    char longest[PATH_MAX + 20];
    memset(longest, '/', sizeof longest);
    strcpy(longest + PATH_MAX, "/gpuglue_a.so");
    CHECK(gg_register_plugin(NULL) == GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_register_plugin("") == GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_register_plugin("gpuglue_good.so") == GG_ERR_INVALID_ARGUMENT);
    CHECK_HAS(error_message(), "\"gpuglue_good.so\" is not the absolute path");
    CHECK(gg_register_plugin("../gpuglue_good.so") == GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_register_plugin(longest) == GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_register_plugin("/tmp/libgood.so") == GG_ERR_INVALID_ARGUMENT);
    CHECK_HAS(error_message(), "gpuglue_<name>.so");
    CHECK(gg_register_plugin("/tmp/gpuglue_.so") == GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_register_plugin("/tmp/gpuglue_Good.so") == GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_register_plugin("/tmp/gpuglue_9a.so") == GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_register_plugin("/tmp/gpuglue_sixteen_letters_.so") == GG_ERR_INVALID_ARGUMENT);
}
static void registering_accepts_only_absolute_paths_of_plugins(void **state)
{
    (void)state;
    in_child(bad_paths);
}

static void registered_late(void)
{
    CHECK(report_in(reports(GG_PASSIVE), "good") == NULL);
    CHECK(registered("good")->status == GG_PROBE_AVAILABLE);
}
static void a_plugin_may_be_registered_after_a_search(void **state)
{
    (void)state;
    in_child(registered_late);
}

static void refused(void)
{
    CHECK(gg_report_plugin_error(NULL, "why") == GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_report_plugin_error("broken", NULL) == GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_report_plugin_error("broken", "100% of its package is gone") == GG_OK);
    CHECK(gg_report_plugin_error("no name!", "misnamed") == GG_OK);
    CHECK(gg_report_plugin_error("host", "shadows nothing") == GG_OK);
    const struct gg_report *broken = report_of(GG_PASSIVE, "broken");
    CHECK(broken->status == GG_PROBE_PLUGIN_LOAD_FAILED);
    CHECK(strcmp(broken->reason, "100% of its package is gone") == 0);
    CHECK(strcmp(report_of(GG_PASSIVE, "no name!")->reason, "misnamed") == 0);
    CHECK(report_of(GG_ACTIVE, "host")->status == GG_PROBE_AVAILABLE);
}
static void a_refused_plugin_is_reported_under_its_name(void **state)
{
    (void)state;
    in_child(refused);
}

static char log_lines[8192];
static void keep_line(int32_t level, const char *line, void *user)
{
    size_t used = strlen(log_lines);
    (void)level;
    (void)user;
    snprintf(log_lines + used, sizeof log_lines - used, "%s\n", line);
}

static void duplicate(void)
{
    const char *first = copy_fixture("gpuglue_good.so", inside("gpuglue_good.so"));
    gg_set_log_sink(keep_line, NULL);
    plugin_path(fixtures);
    CHECK(gg_register_plugin(first) == GG_OK);
    CHECK_SAME(report_of(GG_PASSIVE, "good")->plugin_path, first);
    CHECK_HAS(log_lines, first);
    CHECK_HAS(log_lines, fixture("gpuglue_good.so"));
    CHECK_HAS(log_lines, "warn: good: ");
}
static void the_first_plugin_found_is_used_and_the_log_names_both(void **state)
{
    (void)state;
    in_child(duplicate);
}

static void twice(void)
{
    gg_set_log_sink(keep_line, NULL);
    CHECK(gg_register_plugin(fixture("gpuglue_good.so")) == GG_OK);
    CHECK(gg_register_plugin(fixture("gpuglue_good.so")) == GG_OK);
    CHECK(report_of(GG_PASSIVE, "good")->status == GG_PROBE_NOT_PROBED);
    CHECK_SAME(log_lines, "");
}
static void the_same_file_twice_is_not_a_duplicate(void **state)
{
    (void)state;
    in_child(twice);
}

/* ---- GPUGLUE_PLUGIN_PATH ---- */

static void by_file(void)
{
    plugin_path(fixture("gpuglue_good.so"));
    const struct gg_reports *all = reports(GG_PASSIVE);
    CHECK(report_in(all, "good") != NULL);
    CHECK(report_in(all, "older") == NULL);
}
static void an_entry_may_be_a_file(void **state)
{
    (void)state;
    in_child(by_file);
}

static void relative(void)
{
    CHECK(chdir(fixtures) == 0);
    CHECK_HAS(refusal("."), "entry 1 of GPUGLUE_PLUGIN_PATH, \".\", was refused: it is relative");
    CHECK(report_in(reports(GG_PASSIVE), "good") == NULL);
}
static void a_relative_entry_is_refused(void **state)
{
    (void)state;
    in_child(relative);
}

static void empty(void)
{
    char value[PATH_MAX + 2];
    CHECK(chdir(directory) == 0);
    copy_fixture("gpuglue_last.so", inside("gpuglue_last.so"));
    snprintf(value, sizeof value, "%s:", fixtures);
    CHECK_HAS(refusal(value), "entry 2 of GPUGLUE_PLUGIN_PATH, \"\", was refused: it is empty");
    CHECK(report_in(reports(GG_PASSIVE), "good") != NULL);
}
static void an_empty_entry_is_refused_and_the_others_are_used(void **state)
{
    (void)state;
    in_child(empty);
}

static void nowhere(void)
{
    plugin_path("/nowhere/at/all");
    const struct gg_report *report = report_of(GG_PASSIVE, "GPUGLUE_PLUGIN_PATH");
    CHECK(report->status == GG_PROBE_PLUGIN_NOT_FOUND);
    CHECK_HAS(report->reason, "/nowhere/at/all");
}
static void an_entry_that_does_not_exist_is_reported(void **state)
{
    (void)state;
    in_child(nowhere);
}

static void open_directory(void)
{
    const char *path = make_directory("open", 0777);
    copy_fixture("gpuglue_good.so", joined(path, "gpuglue_good.so"));
    const char *reason = refusal(path);
    CHECK_HAS(reason, "writable by others (mode 0777)");
    CHECK_HAS(reason, path);
    CHECK(report_in(reports(GG_PASSIVE), "good") == NULL);
}
static void a_directory_that_others_can_write_is_refused_naming_the_mode(void **state)
{
    (void)state;
    in_child(open_directory);
}

static void open_file(void)
{
    const char *path = copy_fixture("gpuglue_good.so", inside("gpuglue_good.so"));
    CHECK(chmod(path, 0757) == 0);
    plugin_path(directory);
    const struct gg_report *report = report_of(GG_PASSIVE, "good");
    CHECK(report->status == GG_PROBE_PLUGIN_LOAD_FAILED);
    CHECK_HAS(report->reason, "writable by others (mode 0757)");
}
static void a_file_that_others_can_write_is_refused_naming_the_mode(void **state)
{
    (void)state;
    in_child(open_file);
}

static void open_parent(void)
{
    const char *path = make_directory("open", 01777);
    const char *file = copy_fixture("gpuglue_good.so", joined(path, "gpuglue_good.so"));
    CHECK(gg_register_plugin(file) == GG_OK);
    CHECK_HAS(report_of(GG_PASSIVE, "good")->reason, "mode 1777");
}
static void a_registered_file_in_a_writable_directory_is_refused(void **state)
{
    (void)state;
    in_child(open_parent);
}

/* Anyone who may rename its parent can put another directory in its place, except where that is sticky, as /tmp. */
static void open_ancestor(void)
{
    const char *outer = make_directory("outer", 0777);
    const char *inner = joined(outer, "inner");
    CHECK(mkdir(inner, 0755) == 0);
    const char *file = copy_fixture("gpuglue_good.so", joined(inner, "gpuglue_good.so"));
    CHECK(gg_register_plugin(file) == GG_OK);
    CHECK_HAS(report_of(GG_PASSIVE, "good")->reason, "outer is writable by others (mode 0777)");
}
static void a_file_whose_directory_others_could_replace_is_refused(void **state)
{
    (void)state;
    in_child(open_ancestor);
}

/* The file, and what its path names in the end, are in private directories: only the link between them is not. */
static void open_link(const char *first)
{
    const char *outer = make_directory("outer", 0777);
    const char *target = make_directory("target", 0755);
    const char *file = copy_fixture("gpuglue_good.so", joined(target, "gpuglue_good.so"));
    const char *link = joined(outer, "link");
    CHECK(symlink(file, link) == 0 && symlink(link, first) == 0);
}

static void linked_file(void)
{
    const char *file = joined(make_directory("inner", 0755), "gpuglue_good.so");
    open_link(file);
    CHECK(gg_register_plugin(file) == GG_OK);
    CHECK_HAS(report_of(GG_PASSIVE, "good")->reason, "outer is writable by others (mode 0777)");
}
static void a_link_that_others_could_replace_is_not_followed(void **state)
{
    (void)state;
    in_child(linked_file);
}

static void linked_directory(void)
{
    const char *outer = make_directory("outer", 0777);
    const char *target = make_directory("target", 0755);
    const char *inner = make_directory("inner", 0755);
    const char *link = joined(outer, "link"), *directory = joined(inner, "directory");
    copy_fixture("gpuglue_good.so", joined(target, "gpuglue_good.so"));
    CHECK(symlink("../target", link) == 0 && symlink("../outer/link", directory) == 0);
    CHECK_HAS(refusal(directory), "outer is writable by others (mode 0777)");
}
static void a_directory_behind_a_link_that_others_could_replace_is_refused(void **state)
{
    (void)state;
    in_child(linked_directory);
}

static void relative_links(void)
{
    const char *target = make_directory("target", 0755);
    const char *inner = make_directory("inner", 0755);
    const char *file = joined(inner, "gpuglue_good.so");
    copy_fixture("gpuglue_good.so", joined(target, "gpuglue_good.so"));
    CHECK(symlink("../target", joined(inner, "directory")) == 0);
    CHECK(symlink("directory/gpuglue_good.so", file) == 0);
    CHECK(gg_register_plugin(file) == GG_OK);
    CHECK(report_of(GG_ACTIVE, "good")->status == GG_PROBE_AVAILABLE);
}
static void links_in_private_directories_are_followed(void **state)
{
    (void)state;
    in_child(relative_links);
}

static void sticky(void)
{
    const char *path = make_directory("open", 01777);
    CHECK_HAS(refusal(path), "use a directory that only you can write to");
    CHECK(strstr(refusal(path), "chmod") == NULL);
}
static void nobody_is_advised_to_change_the_mode_of_a_sticky_directory(void **state)
{
    (void)state;
    in_child(sticky);
}

static void sticky_ancestor(void)
{
    const char *outer = make_directory("outer", 01777);
    const char *inner = joined(outer, "inner");
    CHECK(mkdir(inner, 0755) == 0);
    copy_fixture("gpuglue_good.so", joined(inner, "gpuglue_good.so"));
    plugin_path(inner);
    CHECK(report_of(GG_ACTIVE, "good")->status == GG_PROBE_AVAILABLE);
}
static void a_directory_in_a_sticky_one_is_used(void **state)
{
    (void)state;
    in_child(sticky_ancestor);
}

static void neighbours(void)
{
    plugin_path(fixtures);
    const struct gg_reports *all = reports(GG_ACTIVE);
    CHECK(report_in(all, "good")->status == GG_PROBE_AVAILABLE);
    CHECK(report_in(all, "host")->status == GG_PROBE_AVAILABLE);
    CHECK(report_in(all, "wrong_magic")->status == GG_PROBE_PLUGIN_ABI_MISMATCH);
    CHECK(report_in(all, "refuses")->status == GG_PROBE_PLUGIN_ABI_MISMATCH);
    CHECK(report_in(all, "no_query")->status == GG_PROBE_PLUGIN_LOAD_FAILED);
}
static void broken_plugins_do_not_disturb_the_others(void **state)
{
    (void)state;
    in_child(neighbours);
}

/* ---- missing plugins ---- */

static void missing(void)
{
    struct gg_backend *backend;
    plugin_path(directory);
    CHECK(ggi_backend_find("nobody", &backend) == GG_ERR_UNAVAILABLE);
    CHECK_HAS(error_message(), "nobody: plugin-not-found");
    CHECK_HAS(error_message(), directory);
    CHECK_HAS(error_message(), "the backends are host");
}
static void a_name_without_a_plugin_is_reported_with_paths_and_names(void **state)
{
    (void)state;
    in_child(missing);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(registering_accepts_only_absolute_paths_of_plugins),
    cmocka_unit_test(a_plugin_may_be_registered_after_a_search),
    cmocka_unit_test(a_refused_plugin_is_reported_under_its_name),
    cmocka_unit_test(the_first_plugin_found_is_used_and_the_log_names_both),
    cmocka_unit_test(the_same_file_twice_is_not_a_duplicate),
    cmocka_unit_test(an_entry_may_be_a_file),
    cmocka_unit_test(a_relative_entry_is_refused),
    cmocka_unit_test(an_empty_entry_is_refused_and_the_others_are_used),
    cmocka_unit_test(an_entry_that_does_not_exist_is_reported),
    cmocka_unit_test(a_directory_that_others_can_write_is_refused_naming_the_mode),
    cmocka_unit_test(a_file_that_others_can_write_is_refused_naming_the_mode),
    cmocka_unit_test(a_registered_file_in_a_writable_directory_is_refused),
    cmocka_unit_test(a_file_whose_directory_others_could_replace_is_refused),
    cmocka_unit_test(a_link_that_others_could_replace_is_not_followed),
    cmocka_unit_test(a_directory_behind_a_link_that_others_could_replace_is_refused),
    cmocka_unit_test(links_in_private_directories_are_followed),
    cmocka_unit_test(nobody_is_advised_to_change_the_mode_of_a_sticky_directory),
    cmocka_unit_test(a_directory_in_a_sticky_one_is_used),
    cmocka_unit_test(broken_plugins_do_not_disturb_the_others),
    cmocka_unit_test(a_name_without_a_plugin_is_reported_with_paths_and_names),
};
SUITE(registry, tests);
