/* test_select.c: the default backend: GPUGLUE_BACKEND, gg_use_backend, and auto. */
#include "inside.h"

#include "loader/loader.h"

/* Backends, by priority: init_failed 70, no_device 60, good 50, host -1000, last -2000. */
static void five_plugins(void)
{
    const char *const names[] = {"good", "no_device", "init_failed", "last"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char file[64];
        snprintf(file, sizeof file, "gpuglue_%s.so", names[i]);
        CHECK(gg_register_plugin(fixture(file)) == GG_OK);
    }
}

static const char *note;
static const char *chosen(const char *variable)
{
    const char *name = NULL;
    if (variable)
        setenv("GPUGLUE_BACKEND", variable, 1);
    CHECK(gg_default_backend(&name, &note) == GG_OK);
    return name;
}

/* The message of a selection that fails. */
static const char *failure(const char *variable, gg_status expected)
{
    const char *name = "untouched";
    setenv("GPUGLUE_BACKEND", variable, 1);
    CHECK(gg_default_backend(&name, &note) == expected);
    CHECK_SAME(name, "untouched");
    return error_message();
}

/* ---- auto ---- */

static void automatic(void)
{
    five_plugins();
    CHECK(ggi_backend_decided() == NULL);
    CHECK_SAME(chosen(NULL), "good");
    CHECK(note == NULL);
    CHECK_SAME(ggi_backend_decided()->name, "good");
}
static void auto_selects_the_first_backend_with_a_device(void **state)
{
    (void)state;
    in_child(automatic);
}

static void spelled(void)
{
    five_plugins();
    CHECK_SAME(chosen("  AUTO "), "good");
}
static void auto_may_be_spelled_out(void **state)
{
    (void)state;
    in_child(spelled);
}

static void fallen(void)
{
    five_plugins();
    CHECK_SAME(chosen("^good"), "host");
    CHECK_HAS(note, "no GPU was found");
    CHECK_HAS(note, "(init_failed: init-failed, no_device: no-device");
    CHECK_HAS(note, "GPUGLUE_BACKEND=host");
}
static void auto_that_selects_host_reports_it_with_every_reason(void **state)
{
    (void)state;
    in_child(fallen);
}

static void asked_for(void)
{
    five_plugins();
    CHECK_SAME(chosen("host"), "host");
    CHECK(note == NULL);
}
static void host_selected_explicitly_gives_no_note(void **state)
{
    (void)state;
    in_child(asked_for);
}

static void all_excluded(void)
{
    CHECK_HAS(failure("^host", GG_ERR_UNAVAILABLE), "GPUGLUE_BACKEND=^host: all are excluded");
}
static void excluding_all_is_an_error(void **state)
{
    (void)state;
    in_child(all_excluded);
}

/* ---- lists ---- */

static void list(void)
{
    five_plugins();
    CHECK_SAME(chosen(" No_Device , GOOD,host"), "good");
    CHECK(note == NULL);
}
static void a_list_is_tried_in_order_in_any_case_and_with_blanks(void **state)
{
    (void)state;
    in_child(list);
}

static void list_fails(void)
{
    five_plugins();
    const char *message = failure("no_device,init_failed", GG_ERR_UNAVAILABLE);
    CHECK_HAS(message, "GPUGLUE_BACKEND=no_device,init_failed");
    CHECK_HAS(message, "no_device: no-device: the machine has no such device");
    CHECK_HAS(message, "init_failed: init-failed: the driver returned 999");
    CHECK(ggi_backend_decided() == NULL);
}
static void a_named_backend_is_never_replaced_by_host(void **state)
{
    (void)state;
    in_child(list_fails);
}

static void stranger(void)
{
    five_plugins();
    setenv("GPUGLUE_PLUGIN_PATH", directory, 1);
    const char *message = failure("nobody", GG_ERR_UNAVAILABLE);
    CHECK_HAS(message, "nobody: plugin-not-found");
    CHECK_HAS(message, directory);
    CHECK_HAS(message, "the backends are init_failed, no_device, good, host, last");
}
static void an_unknown_name_is_reported_with_paths_and_names(void **state)
{
    (void)state;
    in_child(stranger);
}

static void stranger_and_host(void)
{
    CHECK_SAME(chosen("nobody,host"), "host");
}
static void an_unknown_name_before_host_selects_host(void **state)
{
    (void)state;
    in_child(stranger_and_host);
}

/* ---- grammar ---- */

static void bad(const char *text, const char *part)
{
    struct ggi_selection selection;
    char reason[256];
    struct ggi_text why = ggi_text_begin(reason, sizeof reason);
    CHECK(!ggi_selection_parse(&selection, text, &why));
    CHECK_HAS(reason, part);
    CHECK_HAS(reason, "expected auto, name[,name...] or ^name[,name...]");
}
static void grammar(void)
{
    bad("^good,^host", "has '^' after its beginning");
    bad("good,^host", "has '^' after its beginning");
    bad("good,,host", "empty name");
    bad("good,", "empty name");
    bad("^", "empty name");
    bad(",", "empty name");
    bad("auto,good", "\"auto\" in a list");
    bad("^auto", "\"auto\" in a list");
    bad("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "more than 16 names");
}
static void an_invalid_selection_is_refused_with_the_reason(void **state)
{
    (void)state;
    in_child(grammar);
}

static void mixed(void)
{
    five_plugins();
    CHECK_HAS(failure("good,^host", GG_ERR_INVALID_ARGUMENT),
              "GPUGLUE_BACKEND=good,^host has '^' after");
    CHECK_HAS(report_of(GG_PASSIVE, "GPUGLUE_BACKEND")->reason, "has '^' after");
    CHECK(report_of(GG_PASSIVE, "good")->status == GG_PROBE_NOT_PROBED);
}
static void an_invalid_variable_is_an_error_and_a_report(void **state)
{
    (void)state;
    in_child(mixed);
}

/* ---- gg_use_backend ---- */

static void use(void)
{
    five_plugins();
    setenv("GPUGLUE_BACKEND", "good", 1);
    CHECK(gg_use_backend("host") == GG_OK);
    CHECK_SAME(chosen(NULL), "host");
    CHECK(gg_use_backend("Good") == GG_OK);
    CHECK_SAME(chosen(NULL), "good");
}
static void use_backend_takes_precedence_over_the_variable(void **state)
{
    (void)state;
    in_child(use);
}

static void use_fails(void)
{
    five_plugins();
    CHECK(gg_use_backend("host") == GG_OK);
    CHECK(gg_use_backend("no_device") == GG_ERR_UNAVAILABLE);
    CHECK_HAS(error_message(), "use_backend(\"no_device\"): no_device: no-device");
    CHECK(gg_use_backend("nobody") == GG_ERR_UNAVAILABLE);
    CHECK(gg_use_backend("host,^good") == GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_use_backend(NULL) == GG_ERR_INVALID_ARGUMENT);
    CHECK_SAME(chosen(NULL), "host");
}
static void a_use_backend_that_fails_keeps_the_earlier_choice(void **state)
{
    (void)state;
    in_child(use_fails);
}

static void read_once(void)
{
    five_plugins();
    CHECK_SAME(chosen("host"), "host");
    CHECK_SAME(chosen("good"), "host");
}
static void the_variable_is_read_once(void **state)
{
    (void)state;
    in_child(read_once);
}

static void others(void)
{
    gg_device *device;
    five_plugins();
    CHECK_SAME(chosen("host"), "host");
    CHECK(gg_device_get("good", 1, &device) == GG_OK);
    CHECK_SAME(gg_device_backend(device), "good");
    CHECK_SAME(chosen(NULL), "host");
}
static void selection_sets_the_default_only(void **state)
{
    (void)state;
    in_child(others);
}

/* ---- reports ---- */

static void disabled(void)
{
    five_plugins();
    setenv("GPUGLUE_BACKEND", "good,nobody", 1);
    const struct gg_reports *all = reports(GG_ACTIVE);
    CHECK(report_in(all, "good")->status == GG_PROBE_AVAILABLE);
    CHECK(report_in(all, "host")->status == GG_PROBE_DISABLED);
    CHECK(report_in(all, "init_failed")->status == GG_PROBE_DISABLED);
    CHECK_SAME(report_in(all, "init_failed")->library_version, "");
    CHECK_HAS(report_in(all, "init_failed")->reason, "GPUGLUE_BACKEND=good,nobody");
    CHECK(report_in(all, "nobody")->status == GG_PROBE_PLUGIN_NOT_FOUND);
    CHECK(report_in(all, "nobody")->tried_count > 0);
}
static void what_the_variable_excludes_is_disabled_and_not_probed(void **state)
{
    (void)state;
    in_child(disabled);
}

static void disabled_by_caret(void)
{
    five_plugins();
    setenv("GPUGLUE_BACKEND", "^good", 1);
    const struct gg_reports *all = reports(GG_ACTIVE);
    CHECK(report_in(all, "good")->status == GG_PROBE_DISABLED);
    CHECK(report_in(all, "host")->status == GG_PROBE_AVAILABLE);
}
static void a_caret_disables_what_it_names(void **state)
{
    (void)state;
    in_child(disabled_by_caret);
}

/* ---- threads and forks ---- */

static void *take_default(void *argument)
{
    const char **name = argument;
    CHECK(gg_default_backend(name, NULL) == GG_OK);
    return NULL;
}
static void race(void)
{
    pthread_t threads[32];
    const char *names[32];
    five_plugins();
    for (int i = 0; i < 32; i++)
        CHECK(pthread_create(&threads[i], NULL, take_default, &names[i]) == 0);
    for (int i = 0; i < 32; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 32; i++)
        CHECK_SAME(names[i], "good");
    CHECK_SAME(report_of(GG_PASSIVE, "init_failed")->library_version, "1 active probes");
}
static void threads_that_race_for_the_default_agree(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(forked(race), 0);
}

static void child_of_good(void)
{
    const char *name;
    CHECK(gg_default_backend(&name, NULL) == GG_ERR_FORKED);
    CHECK_HAS(error_message(), "spawn");
    CHECK(gg_use_backend("auto") == GG_ERR_FORKED); /* and not: no backend is available, so host */
    CHECK(gg_use_backend("host") == GG_OK);
}
static void fork_after(void)
{
    five_plugins();
    CHECK_SAME(chosen(NULL), "good");
    CHECK(forked(child_of_good) == 0);
}
static void a_forked_child_gets_an_error_and_not_host(void **state)
{
    (void)state;
    in_child(fork_after);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(auto_selects_the_first_backend_with_a_device),
    cmocka_unit_test(auto_may_be_spelled_out),
    cmocka_unit_test(auto_that_selects_host_reports_it_with_every_reason),
    cmocka_unit_test(host_selected_explicitly_gives_no_note),
    cmocka_unit_test(excluding_all_is_an_error),
    cmocka_unit_test(a_list_is_tried_in_order_in_any_case_and_with_blanks),
    cmocka_unit_test(a_named_backend_is_never_replaced_by_host),
    cmocka_unit_test(an_unknown_name_is_reported_with_paths_and_names),
    cmocka_unit_test(an_unknown_name_before_host_selects_host),
    cmocka_unit_test(an_invalid_selection_is_refused_with_the_reason),
    cmocka_unit_test(an_invalid_variable_is_an_error_and_a_report),
    cmocka_unit_test(use_backend_takes_precedence_over_the_variable),
    cmocka_unit_test(a_use_backend_that_fails_keeps_the_earlier_choice),
    cmocka_unit_test(the_variable_is_read_once),
    cmocka_unit_test(selection_sets_the_default_only),
    cmocka_unit_test(what_the_variable_excludes_is_disabled_and_not_probed),
    cmocka_unit_test(a_caret_disables_what_it_names),
    cmocka_unit_test(threads_that_race_for_the_default_agree),
    cmocka_unit_test(a_forked_child_gets_an_error_and_not_host),
};
SUITE(select, tests);
