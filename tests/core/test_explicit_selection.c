/* test_explicit_selection.c: a backend that searches only if it is selected by name, and the ways to select it. */
#include "inside.h"

static int32_t devices_of(const char *name)
{
    int32_t count = -1;
    return gg_device_count(name, &count) ? -1 : count;
}

static void begin(const char *variable)
{
    CHECK(gg_register_plugin(fixture("gpuglue_reluctant.so")) == GG_OK);
    if (variable)
        setenv("GPUGLUE_BACKEND", variable, 1);
    else
        unsetenv("GPUGLUE_BACKEND");
}

static void check_declined(enum gg_probe_level level)
{
    const struct gg_report *report = report_of(level, "reluctant");
    CHECK(report->status == GG_PROBE_NO_DEVICE);
    CHECK_SAME(report->reason, "not searched");
}

static void unnamed(void)
{
    begin(NULL);
    check_declined(GG_PASSIVE);
    check_declined(GG_ACTIVE);
    check_declined(GG_ACTIVE);
    CHECK_SAME(report_of(GG_ACTIVE, "reluctant")->library_version, "1 active probes");
}
static void without_selection_it_is_not_searched_and_the_result_is_cached(void **state)
{
    (void)state;
    in_child(unnamed);
}

static void passed_over(void)
{
    const char *name = NULL, *note = NULL;
    begin("auto");
    CHECK(gg_default_backend(&name, &note) == GG_OK);
    CHECK_SAME(name, "host");
    CHECK_HAS(note, "(reluctant: no-device)");
}
static void auto_skips_it_with_its_reason(void **state)
{
    (void)state;
    in_child(passed_over);
}

static void by_variable(void)
{
    begin("host,reluctant");
    CHECK(report_of(GG_PASSIVE, "reluctant")->status == GG_PROBE_NOT_PROBED);
    CHECK(report_of(GG_ACTIVE, "reluctant")->status == GG_PROBE_AVAILABLE);
}
static void the_variable_selects_it(void **state)
{
    (void)state;
    in_child(by_variable);
}

static void by_exclusion(void)
{
    begin("^host");
    check_declined(GG_ACTIVE);
}
static void excluding_others_does_not_select_it(void **state)
{
    (void)state;
    in_child(by_exclusion);
}

static void by_device(void)
{
    gg_device *device = NULL;
    begin(NULL);
    check_declined(GG_ACTIVE);
    CHECK(gg_device_find("pci:0000:01:00.0", &device) == GG_ERR_NO_SUCH_DEVICE);
    CHECK(gg_device_find("reluctant:1", &device) == GG_OK);
    CHECK(devices_of("reluctant") == 2);
    CHECK(report_of(GG_ACTIVE, "reluctant")->status == GG_PROBE_AVAILABLE);
    CHECK_SAME(report_of(GG_ACTIVE, "reluctant")->library_version, "2 active probes");
    CHECK(gg_device_find("pci:0000:01:00.0", &device) == GG_OK);
}
static void a_device_name_selects_it_after_an_earlier_probe(void **state)
{
    (void)state;
    in_child(by_device);
}

static void by_use(void)
{
    const char *name = NULL;
    begin(NULL);
    check_declined(GG_ACTIVE);
    CHECK(gg_use_backend("reluctant") == GG_OK);
    CHECK(gg_default_backend(&name, NULL) == GG_OK);
    CHECK_SAME(name, "reluctant");
}
static void use_backend_selects_it(void **state)
{
    (void)state;
    in_child(by_use);
}

static void name_it(void)
{
    CHECK(devices_of("reluctant") == 2);
}
static void after_fork(void)
{
    begin(NULL);
    check_declined(GG_ACTIVE);
    CHECK(forked(name_it) == 0);
    check_declined(GG_ACTIVE);
}
static void a_child_may_select_it_after_a_probe_before_the_fork(void **state)
{
    (void)state;
    in_child(after_fork);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(without_selection_it_is_not_searched_and_the_result_is_cached),
    cmocka_unit_test(auto_skips_it_with_its_reason),
    cmocka_unit_test(the_variable_selects_it),
    cmocka_unit_test(excluding_others_does_not_select_it),
    cmocka_unit_test(a_device_name_selects_it_after_an_earlier_probe),
    cmocka_unit_test(use_backend_selects_it),
    cmocka_unit_test(a_child_may_select_it_after_a_probe_before_the_fork),
};
SUITE(explicit_selection, tests);
