/* test_plugin.c: the checks of a plugin's file before it is called. */
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
    snprintf(both, sizeof both, "ABI %d.%d, but this gpuglue has %d.%d", GG_BACKEND_ABI_MAJOR + 1,
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
    CHECK_HAS(report->reason, "magic 0x12345678, expected 0x42474747");
}
static void a_wrong_magic_is_refused(void **state)
{
    (void)state;
    in_child(wrong_magic);
}

static void short_descriptor(void)
{
    const struct gg_report *report = registered("short");
    CHECK(report->status == GG_PROBE_PLUGIN_ABI_MISMATCH);
    CHECK_HAS(report->reason, "its descriptor has 16 bytes, expected at least");
}
static void a_descriptor_that_is_too_short_is_refused(void **state)
{
    (void)state;
    in_child(short_descriptor);
}

static void missing_op(void)
{
    const struct gg_report *report = registered("missing_op");
    CHECK(report->status == GG_PROBE_PLUGIN_ABI_MISMATCH);
    CHECK_HAS(report->reason, "operation table lacks mem_alloc");
}
static void a_missing_mandatory_operation_is_named(void **state)
{
    (void)state;
    in_child(missing_op);
}

/* Sizes of the table from the last required slot on, as each version of the contract had them. */
static void earlier_tables(void)
{
    const struct gg_backend_desc *host = ggi_host_backend(ggi_host_api());
    struct gg_backend_ops ops = *host->ops;
    struct gg_backend_desc desc = *host;
    desc.ops = &ops;
    for (size_t size = offsetof(struct gg_backend_ops, event_elapsed); size <= sizeof ops;
         size += sizeof(void *)) {
        struct ggi_plugin *plugin = calloc(1, sizeof *plugin);
        struct ggi_text why = GGI_TEXT(256);
        CHECK(plugin != NULL);
        strcpy(plugin->backend.name, "host");
        ops.struct_size = (uint32_t)size;
        CHECK(ggi_plugin_accept(plugin, &desc, &why) == GG_PROBE_AVAILABLE);
        CHECK(!memcmp(&plugin->backend.ops.probe, &ops.probe,
                      size - offsetof(struct gg_backend_ops, probe)));
        const char *rest = (const char *)&plugin->backend.ops;
        for (size_t at = size; at < sizeof ops; at++)
            CHECK(!rest[at]);
        free(plugin->version);
        free(plugin);
    }
}
static void a_table_of_any_earlier_size_is_accepted(void **state)
{
    (void)state;
    in_child(earlier_tables);
}

/* A table of collective operations that is longer than this core's, and one that lacks the last row of the first version. */
static void other_collectives(void)
{
    const struct gg_backend_desc *host = ggi_host_backend(ggi_host_api());
    struct {
        struct gg_comm_ops ops;
        void *later;
    } theirs = {.ops = {.struct_size = sizeof theirs, .name = "some"}, .later = NULL};
    struct gg_backend_desc desc = *host;
    struct ggi_text why = GGI_TEXT(256);
    struct ggi_plugin *newer = calloc(1, sizeof *newer), *older = calloc(1, sizeof *older);
    CHECK(newer && older);
    strcpy(newer->backend.name, "host");
    strcpy(older->backend.name, "host");
    desc.comm_ops = &theirs.ops;
    CHECK(ggi_plugin_accept(newer, &desc, &why) == GG_PROBE_AVAILABLE);
    CHECK(newer->backend.comm_ops && newer->backend.comm_ops != &theirs.ops);
    CHECK_SAME(newer->backend.comm_ops->name, "some");
    CHECK(newer->backend.comm_ops->struct_size == sizeof theirs.ops);
    theirs.ops.struct_size = offsetof(struct gg_comm_ops, native);
    CHECK(ggi_plugin_accept(older, &desc, &why) == GG_PROBE_AVAILABLE && !older->backend.comm_ops);
    free(newer->version);
    free(older->version);
    free(newer);
    free(older);
}
static void collective_operations_of_another_version_are_copied_or_absent(void **state)
{
    (void)state;
    in_child(other_collectives);
}

static void older(void)
{
    struct gg_backend *backend;
    CHECK(registered("older")->status == GG_PROBE_AVAILABLE);
    CHECK(ggi_backend_find("older", &backend) == GG_OK);
    CHECK(backend->ops.event_wait != NULL);
    CHECK(backend->ops.event_elapsed == NULL); /* it has one, but past the end of its table */
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
static void a_longer_table_is_truncated(void **state)
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
static void a_library_without_the_symbol_is_not_a_plugin(void **state)
{
    (void)state;
    in_child(no_query);
}

static void borrowed(void)
{
    const struct gg_report *report = registered("borrowed");
    CHECK(report->status == GG_PROBE_PLUGIN_LOAD_FAILED);
    CHECK_HAS(report->reason, "does not define gg_backend_query itself");
}
static void a_symbol_of_a_dependency_is_not_accepted(void **state)
{
    (void)state;
    in_child(borrowed);
}

static void refuses(void)
{
    const struct gg_report *report = registered("refuses");
    CHECK(report->status == GG_PROBE_PLUGIN_ABI_MISMATCH);
    CHECK_HAS(report->reason, "it returned 7");
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
static void a_name_that_differs_from_the_file_name_is_refused(void **state)
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
    CHECK_HAS(report->reason, "is not a shared library");
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
static void a_registered_file_that_no_longer_exists_is_reported(void **state)
{
    (void)state;
    in_child(absent);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_good_plugin_is_used),
    cmocka_unit_test(another_abi_major_is_refused_naming_both),
    cmocka_unit_test(a_wrong_magic_is_refused),
    cmocka_unit_test(a_descriptor_that_is_too_short_is_refused),
    cmocka_unit_test(a_missing_mandatory_operation_is_named),
    cmocka_unit_test(a_table_of_any_earlier_size_is_accepted),
    cmocka_unit_test(collective_operations_of_another_version_are_copied_or_absent),
    cmocka_unit_test(a_shorter_table_reads_as_null_at_its_end),
    cmocka_unit_test(a_longer_table_is_truncated),
    cmocka_unit_test(a_library_without_the_symbol_is_not_a_plugin),
    cmocka_unit_test(a_symbol_of_a_dependency_is_not_accepted),
    cmocka_unit_test(a_plugin_may_refuse_the_core),
    cmocka_unit_test(a_name_that_differs_from_the_file_name_is_refused),
    cmocka_unit_test(a_text_file_is_reported_as_such),
    cmocka_unit_test(a_registered_file_that_no_longer_exists_is_reported),
};
SUITE(plugin, tests);
