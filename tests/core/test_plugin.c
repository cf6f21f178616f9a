/* test_plugin.c: what is checked in a plugin's file before it is called. */
#include "inside.h"

static void good(void)
{
    const struct gg_report *report = registered("good");
    CHECK(report->status == GG_PROBE_AVAILABLE);
    CHECK(report->device_count == 2);
    CHECK(report->priority == 50);
    CHECK_SAME(report->plugin_path, fixture("gpuglue_good.so"));
    CHECK_SAME(report->plugin_version, "1.2.3");
    CHECK_SAME(report->reason, "");
}
static void a_good_plugin_is_used(void **state)
{
    (void)state;
    in_child(good);
}

static void other_major(void)
{
    const struct gg_report *report = registered("other_major");
    CHECK(report->status == GG_PROBE_PLUGIN_ABI_MISMATCH);
    CHECK_HAS(report->reason, fixture("gpuglue_other_major.so"));
    char both[64];
    snprintf(both, sizeof both, "ABI %d.%d, this gpuglue has %d.%d", GG_BACKEND_ABI_MAJOR + 1,
             GG_BACKEND_ABI_MINOR, GG_BACKEND_ABI_MAJOR, GG_BACKEND_ABI_MINOR);
    CHECK_HAS(report->reason, both);
}
static void another_abi_major_is_refused_naming_both(void **state)
{
    (void)state;
    in_child(other_major);
}

static void wrong_magic(void)
{
    const struct gg_report *report = registered("wrong_magic");
    CHECK(report->status == GG_PROBE_PLUGIN_ABI_MISMATCH);
    CHECK_HAS(report->reason, "magic 0x12345678 where 0x42474747");
}
static void a_wrong_magic_is_refused(void **state)
{
    (void)state;
    in_child(wrong_magic);
}

static void missing_op(void)
{
    const struct gg_report *report = registered("missing_op");
    CHECK(report->status == GG_PROBE_PLUGIN_ABI_MISMATCH);
    CHECK_HAS(report->reason, "lacks the operation mem_alloc");
}
static void a_missing_mandatory_operation_is_named(void **state)
{
    (void)state;
    in_child(missing_op);
}

static void older(void)
{
    struct gg_backend *backend;
    CHECK(registered("older")->status == GG_PROBE_AVAILABLE);
    CHECK(ggi_backend_find("older", &backend) == GG_OK);
    CHECK(backend->ops.event_wait != NULL);
    CHECK(backend->ops.event_elapsed == NULL); /* it has one, but behind the end of its table */
    CHECK(backend->ops.struct_size == sizeof backend->ops);
}
static void a_shorter_table_reads_as_null_at_its_end(void **state)
{
    (void)state;
    in_child(older);
}

static void newer(void)
{
    struct gg_backend *backend;
    CHECK(registered("newer")->status == GG_PROBE_AVAILABLE);
    CHECK(ggi_backend_find("newer", &backend) == GG_OK);
    CHECK(backend->ops.struct_size == sizeof backend->ops);
    CHECK(backend->ops.event_elapsed != NULL);
}
static void a_longer_table_is_cut(void **state)
{
    (void)state;
    in_child(newer);
}

static void no_query(void)
{
    const struct gg_report *report = registered("no_query");
    CHECK(report->status == GG_PROBE_PLUGIN_LOAD_FAILED);
    CHECK_HAS(report->reason, "no symbol gg_backend_query");
}
static void a_library_without_the_symbol_is_no_plugin(void **state)
{
    (void)state;
    in_child(no_query);
}

static void borrowed(void)
{
    const struct gg_report *report = registered("borrowed");
    CHECK(report->status == GG_PROBE_PLUGIN_LOAD_FAILED);
    CHECK_HAS(report->reason, "not its own");
}
static void the_symbol_of_a_dependency_does_not_count(void **state)
{
    (void)state;
    in_child(borrowed);
}

static void refuses(void)
{
    const struct gg_report *report = registered("refuses");
    CHECK(report->status == GG_PROBE_PLUGIN_ABI_MISMATCH);
    CHECK_HAS(report->reason, "its answer: 7");
}
static void a_plugin_may_refuse_the_core(void **state)
{
    (void)state;
    in_child(refuses);
}

static void misnamed(void)
{
    const struct gg_report *report = registered("misnamed");
    CHECK(report->status == GG_PROBE_PLUGIN_ABI_MISMATCH);
    CHECK_HAS(report->reason, "\"another\"");
    CHECK_HAS(report->reason, "\"misnamed\"");
}
static void a_name_other_than_the_files_is_refused(void **state)
{
    (void)state;
    in_child(misnamed);
}

static void text_file(void)
{
    CHECK(gg_register_plugin(write_file(inside("gpuglue_text.so"), "not a library at all\n", 21)) ==
          0);
    const struct gg_report *report = report_of(GG_PASSIVE, "text");
    CHECK(report->status == GG_PROBE_PLUGIN_LOAD_FAILED);
    CHECK_HAS(report->reason, "is not a library");
}
static void a_text_file_is_reported_as_such(void **state)
{
    (void)state;
    in_child(text_file);
}

static void absent(void)
{
    CHECK(gg_register_plugin(inside("gpuglue_absent.so")) == GG_OK);
    const struct gg_report *report = report_of(GG_PASSIVE, "absent");
    CHECK(report->status == GG_PROBE_PLUGIN_LOAD_FAILED);
    CHECK_HAS(report->reason, "there is no /tmp/");
}
static void a_registered_file_that_is_gone_is_reported(void **state)
{
    (void)state;
    in_child(absent);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_plugin_is_used),
        cmocka_unit_test(another_abi_major_is_refused_naming_both),
        cmocka_unit_test(a_wrong_magic_is_refused),
        cmocka_unit_test(a_missing_mandatory_operation_is_named),
        cmocka_unit_test(a_shorter_table_reads_as_null_at_its_end),
        cmocka_unit_test(a_longer_table_is_cut),
        cmocka_unit_test(a_library_without_the_symbol_is_no_plugin),
        cmocka_unit_test(the_symbol_of_a_dependency_does_not_count),
        cmocka_unit_test(a_plugin_may_refuse_the_core),
        cmocka_unit_test(a_name_other_than_the_files_is_refused),
        cmocka_unit_test(a_text_file_is_reported_as_such),
        cmocka_unit_test(a_registered_file_that_is_gone_is_reported),
    };
    prepare(argc, argv);
    return cmocka_run_group_tests_name("plugin", tests, NULL, NULL);
}
