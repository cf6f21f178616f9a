/* test_log.c: GPUGLUE_LOG, the sink, and the format of a line. */
#include "inside.h"

#include "base/log.h"

static char lines[4096];

static void keep(int32_t level, const char *line, void *user)
{
    size_t used = strlen(lines);
    snprintf(lines + used, sizeof lines - used, "%s%d %s\n", (const char *)user, (int)level, line);
}

static void log_at(const char *value)
{
    setenv("GPUGLUE_LOG", value, 1);
}

/* Redirects stderr to a file of the case. */
static const char *written(const char *path)
{
    static char text[4096];
    int file = open(path, O_RDONLY);
    CHECK(file >= 0);
    ssize_t size = read(file, text, sizeof text - 1);
    text[size < 0 ? 0 : size] = 0;
    close(file);
    return text;
}
static const char *catch_stderr(void)
{
    const char *path = inside("stderr");
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    CHECK(dup2(file, STDERR_FILENO) == STDERR_FILENO);
    return path;
}

/* With stderr redirected a failed check would be silent: it is in the exit status only. */
static void default_level(void)
{
    const char *path = catch_stderr();
    ggi_log(GG_LOG_INFO, "some", "hidden");
    ggi_log(GG_LOG_WARN, "some", "number %d", 7);
    ggi_log(GG_LOG_ERROR, NULL, "of no backend");
    CHECK_SAME(written(path), "gpuglue: warn: some: number 7\ngpuglue: error: of no backend\n");
}
static void without_the_variable_warnings_go_to_stderr(void **state)
{
    (void)state;
    in_child(default_level);
}

static void levels(void)
{
    log_at("Debug");
    CHECK(ggi_log_on(GG_LOG_ERROR) && ggi_log_on(GG_LOG_DEBUG));
    CHECK(!ggi_log_on(GG_LOG_TRACE));
}
static void the_variable_sets_the_level(void **state)
{
    (void)state;
    in_child(levels);
}

static void file(void)
{
    char value[128];
    const char *path = inside("log");
    snprintf(value, sizeof value, "info:%s", path);
    log_at(value);
    ggi_log(GG_LOG_INFO, "some", "one");
    ggi_log(GG_LOG_DEBUG, "some", "two");
    ggi_log(GG_LOG_WARN, "some", "three");
    CHECK_HAS(written(path), " gpuglue: info: some: one\n");
    CHECK_HAS(written(path), " gpuglue: warn: some: three\n");
    CHECK(!strstr(written(path), "some: two"));
}
static void the_variable_may_name_a_file(void **state)
{
    (void)state;
    in_child(file);
}

static void existing_file(void)
{
    char value[128];
    const char *path = inside("log");
    FILE *stream = fopen(path, "w");
    CHECK(stream && fputs("earlier\n", stream) >= 0 && !fclose(stream));
    snprintf(value, sizeof value, "info:%s", path);
    log_at(value);
    ggi_log(GG_LOG_INFO, "some", "one");
    CHECK(!strncmp(written(path), "earlier\n", 8));
    CHECK_HAS(written(path), " gpuglue: info: some: one\n");
}
static void lines_are_appended_to_a_file_that_exists(void **state)
{
    (void)state;
    in_child(existing_file);
}

static void origin(void)
{
    char value[128], rest[64], expected[64];
    const char *path = inside("log");
    int hour = -1, minute = -1, second = -1, micro = -1;
    snprintf(value, sizeof value, "info:%s", path);
    snprintf(expected, sizeof expected, "%d.%d rank 3 gpuglue: info: one", getpid(), getpid());
    setenv("PMIX_RANK", "3", 1);
    log_at(value);
    ggi_log(GG_LOG_INFO, NULL, "one");
    CHECK(sscanf(written(path), "%d:%d:%d.%dZ %63[^\n]", &hour, &minute, &second, &micro, rest) == 5);
    CHECK(hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 60 &&
          micro >= 0 && micro < 1000000);
    CHECK_SAME(rest, expected);
}
static void from_level_info_a_line_has_the_time_the_process_the_thread_and_the_rank(void **state)
{
    (void)state;
    in_child(origin);
}

static void relative(void)
{
    const char *path = catch_stderr();
    CHECK(chdir(directory) == 0);
    log_at("info:log");
    ggi_log(GG_LOG_INFO, "some", "one");
    CHECK(access(inside("log"), F_OK) != 0);
    CHECK_HAS(written(path), "GPUGLUE_LOG=info:log: the path is not absolute");
    CHECK_HAS(written(path), "gpuglue: info: some: one\n");
}
static void a_relative_file_is_refused(void **state)
{
    (void)state;
    in_child(relative);
}

static void no_file(void)
{
    const char *path = catch_stderr();
    log_at("info:/nowhere/at/all");
    ggi_log(GG_LOG_INFO, "some", "one");
    CHECK_HAS(written(path), "cannot be opened: No such file or directory; logging to stderr");
}
static void a_file_that_cannot_be_opened_is_reported(void **state)
{
    (void)state;
    in_child(no_file);
}

static void nonsense(void)
{
    const char *path = catch_stderr();
    log_at("loud");
    ggi_log(GG_LOG_INFO, "some", "one");
    CHECK_HAS(written(path), "GPUGLUE_LOG=loud is not understood: expected error, warn, info");
    CHECK(!ggi_log_on(GG_LOG_INFO) && ggi_log_on(GG_LOG_WARN));
}
static void an_unknown_level_is_reported_and_means_warn(void **state)
{
    (void)state;
    in_child(nonsense);
}

static void sink(void)
{
    const char *path = catch_stderr();
    gg_set_log_sink(keep, "to me: ");
    ggi_log(GG_LOG_WARN, "some", "one");
    gg_set_log_sink(NULL, NULL);
    ggi_log(GG_LOG_WARN, "some", "two");
    CHECK_SAME(lines, "to me: 1 warn: some: one\n");
    CHECK_SAME(written(path), "gpuglue: warn: some: two\n");
}
static void a_sink_receives_the_lines_until_it_is_removed(void **state)
{
    (void)state;
    in_child(sink);
}

static void long_line(void)
{
    char text[3000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    gg_set_log_sink(keep, "");
    ggi_log(GG_LOG_WARN, "some", "%s", text);
    CHECK_HAS(lines, "aaa\xe2\x80\xa6\n");
}
static void a_long_line_is_truncated_with_a_mark(void **state)
{
    (void)state;
    in_child(long_line);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(without_the_variable_warnings_go_to_stderr),
    cmocka_unit_test(the_variable_sets_the_level),
    cmocka_unit_test(the_variable_may_name_a_file),
    cmocka_unit_test(from_level_info_a_line_has_the_time_the_process_the_thread_and_the_rank),
    cmocka_unit_test(lines_are_appended_to_a_file_that_exists),
    cmocka_unit_test(a_relative_file_is_refused),
    cmocka_unit_test(a_file_that_cannot_be_opened_is_reported),
    cmocka_unit_test(an_unknown_level_is_reported_and_means_warn),
    cmocka_unit_test(a_sink_receives_the_lines_until_it_is_removed),
    cmocka_unit_test(a_long_line_is_truncated_with_a_mark),
};
SUITE(log, tests);
