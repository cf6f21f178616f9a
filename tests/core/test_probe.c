/* test_probe.c: probe levels, cached results, threads that race for the first use, and forks. */
#include "inside.h"

#include <dlfcn.h>

#define THREADS 32
#define ROUNDS 100

static void add_plugin(const char *name)
{
    char file[64];
    snprintf(file, sizeof file, "gpuglue_%s.so", name);
    CHECK(gg_register_plugin(fixture(file)) == GG_OK);
}

static gg_status open_backend(const char *name)
{
    int32_t count;
    return gg_device_count(name, &count);
}

/* ---- levels ---- */

static void passive(void)
{
    add_plugin("good");
    const struct gg_report *report = report_of(GG_PASSIVE, "good");
    CHECK(report->status == GG_PROBE_NOT_PROBED);
    CHECK(report->device_count == -1);
    CHECK_SAME(report->library_version, "0 active probes");
    CHECK_SAME(report->library_path, "/fixture/library");
    CHECK(report->note_count == 1);
    CHECK_SAME(report->notes[0], "42 is a number of the fixture");
}
static void a_passive_probe_initialises_nothing(void **state)
{
    (void)state;
    in_child(passive);
}

static void kept(void)
{
    add_plugin("good");
    CHECK(report_of(GG_ACTIVE, "good")->device_count == 2);
    CHECK(report_of(GG_PASSIVE, "good")->device_count == 2);
    CHECK(open_backend("good") == GG_OK);
    CHECK_SAME(report_of(GG_ACTIVE, "good")->library_version, "1 active probes");
}
static void an_active_probe_is_cached_and_used_for_passive_ones(void **state)
{
    (void)state;
    in_child(kept);
}

static void failed(void)
{
    add_plugin("init_failed");
    const char *said = "backend not available: init_failed: init-failed: the driver returned 999";
    CHECK(open_backend("init_failed") == GG_ERR_UNAVAILABLE);
    CHECK_SAME(error_message(), said);
    CHECK(open_backend("init_failed") == GG_ERR_UNAVAILABLE);
    CHECK_SAME(error_message(), said);
    const struct gg_report *report = report_of(GG_PASSIVE, "init_failed");
    CHECK(report->status == GG_PROBE_INIT_FAILED);
    CHECK_SAME(report->library_version, "1 active probes");
}
static void a_failed_initialisation_is_cached_with_its_reason(void **state)
{
    (void)state;
    in_child(failed);
}

static void no_device(void)
{
    add_plugin("no_device");
    CHECK(report_of(GG_ACTIVE, "no_device")->status == GG_PROBE_NO_DEVICE);
    CHECK(open_backend("no_device") == GG_ERR_UNAVAILABLE);
    CHECK_HAS(error_message(), "no-device: the machine has no such device");
}
static void no_device_is_not_a_failed_initialisation(void **state)
{
    (void)state;
    in_child(no_device);
}

static void confused(void)
{
    add_plugin("confused");
    const struct gg_report *report = report_of(GG_ACTIVE, "confused");
    CHECK(report->status == GG_PROBE_NO_DEVICE);
    CHECK_HAS(report->reason, "available, but with 0 devices");
}
static void contradictory_results_of_a_plugin_are_corrected(void **state)
{
    (void)state;
    in_child(confused);
}

static void order(void)
{
    setenv("GPUGLUE_PLUGIN_PATH", fixtures, 1);
    const struct gg_reports *all = reports(GG_PASSIVE);
    CHECK_SAME(all->report[0].name, "init_failed");
    CHECK_SAME(all->report[1].name, "no_device");
    CHECK_SAME(all->report[2].name, "confused"); /* as high as the next ones */
    CHECK_SAME(all->report[3].name, "good");
    CHECK_SAME(all->report[all->count - 1].name, "last");
    CHECK_SAME(all->report[all->count - 2].name, "host");
}
static void reports_are_sorted_by_priority_and_name(void **state)
{
    (void)state;
    in_child(order);
}

static void outlived(void)
{
    add_plugin("good");
    struct gg_reports *early = reports(GG_PASSIVE);
    gg_reports_free(reports(GG_ACTIVE));
    gg_reports_free(reports(GG_PASSIVE));
    CHECK(report_in(early, "good")->status == GG_PROBE_NOT_PROBED);
    gg_reports_free(early);
    gg_reports_free(NULL);
}
static void reports_outlive_later_probes(void **state)
{
    (void)state;
    in_child(outlived);
}

static void arguments(void)
{
    struct gg_reports *untouched = (struct gg_reports *)&untouched;
    CHECK(gg_probe(GG_PASSIVE, NULL) == GG_ERR_INVALID_ARGUMENT);
    CHECK(gg_probe((enum gg_probe_level)7, &untouched) == GG_ERR_INVALID_ARGUMENT);
    CHECK_HAS(error_message(), "level 7");
    CHECK((void *)untouched == (void *)&untouched);
}
static void an_unknown_level_is_refused(void **state)
{
    (void)state;
    in_child(arguments);
}

static void quiet(void)
{
    add_plugin("init_failed");
    CHECK(gg_register_plugin("relative") == GG_ERR_INVALID_ARGUMENT);
    gg_reports_free(reports(GG_ACTIVE));
    CHECK_HAS(error_message(), "\"relative\""); /* a probe that finds nothing has not failed */
}
static void probing_does_not_change_the_error_record(void **state)
{
    (void)state;
    in_child(quiet);
}

static void shut_down(void)
{
    add_plugin("good");
    gg_shutdown(0);
    CHECK(open_backend("good") == GG_ERR_SHUT_DOWN);
    CHECK(report_of(GG_ACTIVE, "good")->status == GG_PROBE_NOT_PROBED);
    CHECK_HAS(report_of(GG_ACTIVE, "good")->reason, "shut down");
}
static void after_shutdown_nothing_is_initialised(void **state)
{
    (void)state;
    in_child(shut_down);
}

/* ---- threads ---- */

static pthread_barrier_t start;

static void *race_to_open(void *argument)
{
    struct gg_device **device = argument;
    pthread_barrier_wait(&start);
    CHECK(gg_device_get("good", 1, device) == GG_OK);
    return NULL;
}

static void race(void)
{
    pthread_t threads[THREADS];
    gg_device *devices[THREADS] = {NULL};
    pthread_barrier_init(&start, NULL, THREADS);
    add_plugin("good");
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, race_to_open, &devices[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        CHECK(devices[i] != NULL && devices[i] == devices[0]);
    CHECK_SAME(report_of(GG_PASSIVE, "good")->library_version, "1 active probes");
}
static void threads_that_race_for_the_first_use_initialise_once(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(forked(race), 0);
}

static void *race_to_fail(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&start);
    CHECK(open_backend("init_failed") == GG_ERR_UNAVAILABLE);
    CHECK_HAS(error_message(), "the driver returned 999");
    return NULL;
}

static void failing_race(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&start, NULL, THREADS);
    add_plugin("init_failed");
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, race_to_fail, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_SAME(report_of(GG_PASSIVE, "init_failed")->library_version, "1 active probes");
}
static void threads_that_race_for_a_failure_all_get_its_reason(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(forked(failing_race), 0);
}

/* ---- forks ---- */

static void child_opens(void)
{
    CHECK(open_backend("good") == GG_OK);
    CHECK_SAME(report_of(GG_PASSIVE, "good")->library_version, "1 active probes");
}
static void fork_before(void)
{
    add_plugin("good");
    gg_reports_free(reports(GG_PASSIVE));
    CHECK(forked(child_opens) == 0);
    CHECK(open_backend("good") == GG_OK);
}
static void a_fork_after_a_passive_probe_is_harmless(void **state)
{
    (void)state;
    in_child(fork_before);
}

static void child_is_refused(void)
{
    gg_device *device;
    CHECK(gg_device_get("good", 0, &device) == GG_ERR_FORKED);
    CHECK_HAS(error_message(), "\"good\"");
    CHECK_HAS(error_message(), "spawn");
    const struct gg_report *report = report_of(GG_ACTIVE, "good");
    CHECK(report->status == GG_PROBE_FORKED);
    CHECK_HAS(report->reason, "spawn");
    CHECK(report_of(GG_PASSIVE, "good")->status == GG_PROBE_FORKED);
    CHECK(report_of(GG_ACTIVE, "older")->status == GG_PROBE_AVAILABLE); /* not probed before */
}
static void fork_after(void)
{
    add_plugin("good");
    add_plugin("older");
    CHECK(open_backend("good") == GG_OK);
    CHECK(forked(child_is_refused) == 0);
    CHECK(open_backend("good") == GG_OK);
    CHECK(report_of(GG_ACTIVE, "good")->status == GG_PROBE_AVAILABLE);
}
static void a_child_forked_after_initialisation_is_refused_and_the_parent_works(void **state)
{
    (void)state;
    in_child(fork_after);
}

static void child_hears_the_failure(void)
{
    CHECK(open_backend("init_failed") == GG_ERR_UNAVAILABLE);
    CHECK(report_of(GG_ACTIVE, "init_failed")->status == GG_PROBE_INIT_FAILED);
}
static void fork_failed(void)
{
    add_plugin("init_failed");
    CHECK(open_backend("init_failed") == GG_ERR_UNAVAILABLE);
    CHECK(forked(child_hears_the_failure) == 0);
}
static void a_failure_before_a_fork_is_reported_unchanged_in_the_child(void **state)
{
    (void)state;
    in_child(fork_failed);
}

static void child_uses_host(void)
{
    gg_device *device;
    CHECK(gg_device_get("host", 0, &device) == GG_OK);
    CHECK(report_of(GG_ACTIVE, "host")->status == GG_PROBE_AVAILABLE);
}
static void fork_counted(void)
{
    CHECK(open_backend("host") == GG_OK);
    CHECK(forked(child_uses_host) == 0);
}
static void a_backend_that_was_only_counted_may_be_used_in_a_child(void **state)
{
    (void)state;
    in_child(fork_counted);
}

/* A thread is in the middle of an initialisation when the process forks: in the child its locks
 * are never released. */
static void *open_slowly(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&start);
    open_backend("good");
    return NULL;
}
static void child_of_a_busy_parent(void)
{
    alarm(100); /* ends a hang */
    gg_status status = open_backend("good");
    CHECK(status == GG_OK || status == GG_ERR_FORKED);
    CHECK(open_backend("older") == GG_OK);
    gg_reports_free(reports(GG_ACTIVE));
}
static void fork_during(void)
{
    pthread_t thread;
    pthread_barrier_init(&start, NULL, 2);
    add_plugin("good");
    add_plugin("older");
    gg_reports_free(
        reports(GG_PASSIVE)); /* opens the files: a loader does not survive a fork inside it */
    CHECK(pthread_create(&thread, NULL, open_slowly, NULL) == 0);
    pthread_barrier_wait(&start);
    usleep((useconds_t)(getpid() % 7) * 100);
    CHECK(forked(child_of_a_busy_parent) == 0);
    pthread_join(thread, NULL);
}
static void a_fork_in_the_middle_of_an_initialisation_does_not_hang(void **state)
{
    (void)state;
    /* Their allocators and lock tables do not survive a fork from a process with threads. */
    if (dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init"))
        skip_because("sanitizers hang after such a fork");
    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(forked(fork_during), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_passive_probe_initialises_nothing),
    cmocka_unit_test(an_active_probe_is_cached_and_used_for_passive_ones),
    cmocka_unit_test(a_failed_initialisation_is_cached_with_its_reason),
    cmocka_unit_test(no_device_is_not_a_failed_initialisation),
    cmocka_unit_test(contradictory_results_of_a_plugin_are_corrected),
    cmocka_unit_test(reports_are_sorted_by_priority_and_name),
    cmocka_unit_test(reports_outlive_later_probes),
    cmocka_unit_test(an_unknown_level_is_refused),
    cmocka_unit_test(probing_does_not_change_the_error_record),
    cmocka_unit_test(after_shutdown_nothing_is_initialised),
    cmocka_unit_test(threads_that_race_for_the_first_use_initialise_once),
    cmocka_unit_test(threads_that_race_for_a_failure_all_get_its_reason),
    cmocka_unit_test(a_fork_after_a_passive_probe_is_harmless),
    cmocka_unit_test(a_child_forked_after_initialisation_is_refused_and_the_parent_works),
    cmocka_unit_test(a_failure_before_a_fork_is_reported_unchanged_in_the_child),
    cmocka_unit_test(a_backend_that_was_only_counted_may_be_used_in_a_child),
    cmocka_unit_test(a_fork_in_the_middle_of_an_initialisation_does_not_hang),
};
SUITE(probe, tests);
