/* test_env.c: the GPUGLUE_ variables: values, warnings of bad ones, and of unknown names. */
#include "inside.h"

#include "base/env.h"

#include <pthread.h>
#include <sys/auxv.h>

static char lines[4096];
static _Atomic(int) line_count;

static void keep(int32_t level, const char *line, void *user)
{
    size_t used = strlen(lines);
    (void)user;
    CHECK(level == GG_LOG_WARN);
    snprintf(lines + used, sizeof lines - used, "%s\n", line);
    line_count++;
}

static void probe_twice(void)
{
    gg_set_log_sink(keep, NULL);
    reports(GG_LISTED);
    reports(GG_LISTED);
}

/* ---- names ---- */

static void typing_error(void)
{
    setenv("GPUGLUE_BAKEND", "host", 1);
    probe_twice();
    CHECK_SAME(
        lines,
        "warn: GPUGLUE_BAKEND is not a variable of gpuglue: did you mean GPUGLUE_BACKEND?\n");
}
static void an_unknown_name_is_warned_about_once_with_the_nearest_known_one(void **state)
{
    (void)state;
    in_child(typing_error);
}

static void near_a_library(void)
{
    setenv("GPUGLUE_SOME_LIBRAYR", "/nowhere", 1);
    probe_twice();
    CHECK_HAS(
        lines,
        "GPUGLUE_SOME_LIBRAYR is not a variable of gpuglue: did you mean GPUGLUE_SOME_LIBRARY?");
    CHECK(line_count == 1);
}
static void a_misspelled_library_variable_gets_a_suggestion(void **state)
{
    (void)state;
    in_child(near_a_library);
}

static void far(void)
{
    setenv("GPUGLUE_FOO", "1", 1);
    setenv("GPUGLUE_", "1", 1);
    setenv("GPUGLUE_A_NAME_THAT_IS_MUCH_LONGER_THAN_ANY_THAT_GPUGLUE_HAS_EVER_HAD_OR_WILL", "1", 1);
    probe_twice();
    CHECK_HAS(lines, "GPUGLUE_FOO is not a variable of gpuglue\n");
    CHECK_HAS(lines, "warn: GPUGLUE_A_NAME_THAT_IS_MUCH_LONGER_THAN");
    CHECK(line_count == 2 && !strstr(lines, "did you mean"));
}
static void a_name_unlike_all_known_ones_gets_no_suggestion(void **state)
{
    (void)state;
    in_child(far);
}

static void known_ones(void)
{
    static const char *const names[] = {
        "GPUGLUE_STAGING", "GPUGLUE_CACHE_DIR",     "GPUGLUE_OCLOC_LIBRARY",
        "GPUGLUE_REQUIRE", "GPUGLUE_TEST_ANYTHING", "GPUGLUE_SIM_MEMORY",
        "GPUGLUEX",        "XGPUGLUE_FOO"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        setenv(names[i], "", 1);
    probe_twice();
    CHECK_SAME(lines, "");
}
static void known_and_foreign_names_give_no_warning(void **state)
{
    (void)state;
    in_child(known_ones);
}

/* ---- values ---- */

static void values(void)
{
    setenv("GPUGLUE_ALLOCATOR", "direct", 1);
    setenv("GPUGLUE_COPY_THREADS", "64", 1);
    setenv("GPUGLUE_RESULT_CACHE", "0", 1);
    setenv("GPUGLUE_DEBUG", "", 1);
    gg_set_log_sink(keep, NULL);
    CHECK(ggi_env_value(GGI_ENV_ALLOCATOR, GGI_ALLOCATOR_POOL) == GGI_ALLOCATOR_DIRECT);
    CHECK(ggi_env_value(GGI_ENV_COPY_THREADS, 3) == 64);
    CHECK(ggi_env_value(GGI_ENV_RESULT_CACHE, 5) == 0);
    CHECK(ggi_env_value(GGI_ENV_DEBUG, GGI_DEBUG_OFF) == GGI_DEBUG_OFF);
    CHECK(ggi_env_value(GGI_ENV_STAGING, GGI_STAGING_AUTO) == GGI_STAGING_AUTO);
    setenv("GPUGLUE_STAGING", "never", 1); /* too late */
    CHECK(ggi_env_value(GGI_ENV_STAGING, GGI_STAGING_AUTO) == GGI_STAGING_AUTO);
    CHECK_SAME(lines, "");
}
static void a_value_is_read_once(void **state)
{
    (void)state;
    in_child(values);
}

static void bad_values(void)
{
    setenv("GPUGLUE_COPY_THREADS", "65", 1);
    setenv("GPUGLUE_RESULT_CACHE", "1G", 1);
    setenv("GPUGLUE_STAGING", "sometimes", 1);
    gg_set_log_sink(keep, NULL);
    for (int i = 0; i < 2; i++) {
        CHECK(ggi_env_value(GGI_ENV_COPY_THREADS, 3) == 3);
        CHECK(ggi_env_value(GGI_ENV_RESULT_CACHE, 5) == 5);
        CHECK(ggi_env_value(GGI_ENV_STAGING, GGI_STAGING_AUTO) == GGI_STAGING_AUTO);
    }
    CHECK_HAS(lines,
              "warn: GPUGLUE_COPY_THREADS=65 is not understood: expected a number of threads "
              "from 1 to 64; using the default\n");
    CHECK_HAS(lines, "GPUGLUE_RESULT_CACHE=1G is not understood: expected a number of MiB");
    CHECK_HAS(lines, "GPUGLUE_STAGING=sometimes is not understood: expected auto, always or never");
    CHECK(line_count == 3);
}
static void a_bad_value_is_warned_about_once_and_not_used(void **state)
{
    (void)state;
    in_child(bad_values);
}

static void *read_one(void *unused)
{
    CHECK(ggi_env_value(GGI_ENV_STAGING, GGI_STAGING_AUTO) == GGI_STAGING_AUTO);
    return unused;
}
static void many_threads(void)
{
    pthread_t threads[8];
    setenv("GPUGLUE_STAGING", "sometimes", 1);
    gg_set_log_sink(keep, NULL);
    for (int i = 0; i < 8; i++)
        CHECK(!pthread_create(&threads[i], NULL, read_one, NULL));
    for (int i = 0; i < 8; i++)
        CHECK(!pthread_join(threads[i], NULL));
    CHECK(line_count == 1);
}
static void of_many_threads_one_warns(void **state)
{
    (void)state;
    in_child(many_threads);
}

/* ---- GPUGLUE_DEBUG ---- */

static void debug_of_devices(void)
{
    gg_device *device;
    setenv("GPUGLUE_DEBUG", "snyc", 1);
    gg_set_log_sink(keep, NULL);
    CHECK(gg_register_plugin(fixture("gpuglue_good.so")) == GG_OK); /* several devices */
    CHECK(gg_device_get("good", 0, &device) == GG_OK);
    CHECK(gg_device_get("host", 0, &device) == GG_OK);
    CHECK_SAME(lines,
               "warn: GPUGLUE_DEBUG=snyc is not understood: expected sync; using the default\n");
}
static void a_bad_debug_is_warned_about_once_for_all_devices(void **state)
{
    (void)state;
    in_child(debug_of_devices);
}

/* ---- set-user-id ---- */

#define NOBODY 65534
#define IGNORED_SET_ID 77 /* as on a file system that is mounted with nosuid */
#define NOT_LOADED 127    /* the exit status of the loader without a library */

/* Ends at once: a leak checker cannot examine such a process. */
static int run_secure(void)
{
    const char *text = getenv("GPUGLUE_STAGING");
    if (!getauxval(AT_SECURE))
        _exit(IGNORED_SET_ID);
    CHECK_SAME(text, "always");
    CHECK(!ggi_env_get("GPUGLUE_STAGING"));
    CHECK(ggi_env_value(GGI_ENV_STAGING, 17) == 17);
    _exit(0);
}

/* This program, as a program of another user that changes the user id. */
static void set_user_id(void)
{
    const char *path = inside("program");
    char bytes[65536];
    ssize_t size;
    int from = open("/proc/self/exe", O_RDONLY), to = open(path, O_WRONLY | O_CREAT, 0755);
    CHECK(from >= 0 && to >= 0);
    while ((size = read(from, bytes, sizeof bytes)) > 0)
        CHECK(write(to, bytes, (size_t)size) == size);
    CHECK(!fchown(to, NOBODY, NOBODY) && !fchmod(to, 04755));
    close(from);
    close(to);
    CHECK(!setenv("GPUGLUE_STAGING", "always", 1));
    execl(path, "scenario", fixtures, "--run-scenario", "env/secure", (char *)NULL);
    CHECK(false); /* execl has failed */
}
static void variables_are_ignored_in_a_set_user_id_process(void **state)
{
    (void)state;
    if (geteuid())
        skip_because("only root can make a program of another user");
    assert_non_null(mkdtemp(strcpy(directory, "/tmp/gpuglue-core-XXXXXX")));
    const int status = forked(set_user_id);
    remove_directory();
    if (WIFEXITED(status) && WEXITSTATUS(status) == IGNORED_SET_ID)
        skip_because("/tmp ignores the set-user-id bit");
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_LOADED)
        skip_because(
            "its libraries are found by $ORIGIN, which the loader ignores in such a process");
    assert_int_equal(status, 0);
}

static const struct scenario scenarios[] = {{"secure", run_secure}};

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(variables_are_ignored_in_a_set_user_id_process),
    cmocka_unit_test(an_unknown_name_is_warned_about_once_with_the_nearest_known_one),
    cmocka_unit_test(a_misspelled_library_variable_gets_a_suggestion),
    cmocka_unit_test(a_name_unlike_all_known_ones_gets_no_suggestion),
    cmocka_unit_test(known_and_foreign_names_give_no_warning),
    cmocka_unit_test(a_value_is_read_once),
    cmocka_unit_test(a_bad_value_is_warned_about_once_and_not_used),
    cmocka_unit_test(of_many_threads_one_warns),
    cmocka_unit_test(a_bad_debug_is_warned_about_once_for_all_devices),
};
SUITE_AND_SCENARIOS(env, tests, scenarios);
