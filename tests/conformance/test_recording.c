/* test_recording.c: gg_trace_start records operations and ranges in a file of the Trace Event Format. */
#include "conformance.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct recording {
    char path[64];
    char *text;
};

/* A file of a name of its own. */
static struct recording new_recording(void)
{
    struct recording made = {"/tmp/gpuglue-recording-XXXXXX", NULL};
    int file = mkstemp(made.path);
    assert_true(file >= 0);
    close(file);
    return made;
}

/* The file's text; the file is removed. */
static const char *read_recording(struct recording *recording)
{
    FILE *file = fopen(recording->path, "r");
    long size;
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    recording->text = calloc(1, (size_t)size + 1);
    assert_int_equal(fread(recording->text, 1, (size_t)size, file), size);
    fclose(file);
    unlink(recording->path);
    return recording->text;
}

/* Without strstr(): the sanitizers' reads the whole text at each call. */
static int count(const char *text, const char *part)
{
    const size_t length = strlen(part);
    int found = 0;
    for (const char *at = text; *at; at++)
        found += !strncmp(at, part, length);
    return found;
}

static void copy_some(struct fixture *f, uint64_t nbytes)
{
    gg_memory *memory = new_memory(f, nbytes), *pinned = new_pinned(f, nbytes, 1);
    assert_int_equal(copy(at(memory, 0), at(pinned, 0), nbytes, f->stream, GG_COPY_ASYNC), GG_OK);
    finish(f->stream);
}

static void a_recording_has_operations_with_device_stream_and_bytes(void **state)
{
    struct fixture *f = *state;
    struct recording recording = new_recording();
    char device[64];
    assert_int_equal(gg_trace_start(recording.path, 0), GG_OK);
    copy_some(f, 300);
    assert_int_equal(gg_trace_stop(), GG_OK);
    const char *text = read_recording(&recording);
    snprintf(device, sizeof device,
             "\"operation\":\"copy\",\"device\":\"%s:0\",\"stream\":", backend_name());
    assert_int_equal(count(text, device), 1);
    assert_int_equal(count(text, "\"bytes\":300}}"), 1);
    assert_true(count(text, "\"cat\":\"host\"") > 1);
    assert_int_equal(count(text, "\"cat\":\"device\""), 0);
    free(recording.text);
}

static void after_the_stop_nothing_is_recorded(void **state)
{
    struct fixture *f = *state;
    struct recording first = new_recording(), second = new_recording();
    assert_int_equal(gg_trace_start(first.path, 0), GG_OK);
    assert_int_equal(gg_trace_stop(), GG_OK);
    copy_some(f, 300);
    assert_int_equal(gg_trace_start(second.path, 0), GG_OK);
    assert_int_equal(gg_trace_stop(), GG_OK);
    assert_int_equal(count(read_recording(&first), "\"ph\":\"X\""), 0);
    assert_int_equal(count(read_recording(&second), "\"ph\":\"X\""), 0);
    free(first.text);
    free(second.text);
}

static void device_times_add_an_entry_for_each_copy(void **state)
{
    struct fixture *f = *state;
    struct recording recording = new_recording();
    need(f, GG_OP_event_elapsed);
    assert_int_equal(gg_trace_start(recording.path, GG_TRACE_DEVICE_TIMES), GG_OK);
    for (int i = 0; i < 20; i++)
        copy_some(f, 300);
    assert_int_equal(gg_trace_stop(), GG_OK);
    const char *text = read_recording(&recording);
    assert_int_equal(count(text, "\"name\":\"copy\",\"cat\":\"host\""), 20);
    assert_int_equal(count(text, "\"name\":\"copy\",\"cat\":\"device\""), 20);
    assert_int_equal(count(text, "\"name\":\"event_record\""),
                     0); /* its own events are not recorded */
    free(recording.text);
}

static void work_that_is_not_done_has_no_device_time(void **state)
{
    struct fixture *f = *state;
    struct recording recording = new_recording();
    gg_memory *memory = new_memory(f, 64), *pinned = new_pinned(f, 64, 1);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_trace_start(recording.path, GG_TRACE_DEVICE_TIMES), GG_OK);
    assert_int_equal(copy(at(memory, 0), at(pinned, 0), 64, f->stream, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(gg_trace_stop(), GG_OK);
    gate_open(gate);
    finish(f->stream);
    const char *text = read_recording(&recording);
    assert_int_equal(count(text, "\"name\":\"copy\",\"cat\":\"host\""), 1);
    assert_int_equal(count(text, "\"cat\":\"device\""), 0);
    free(recording.text);
}

static void ranges_nest_and_have_the_program_s_names(void **state)
{
    struct recording recording = new_recording();
    (void)state;
    assert_int_equal(gg_trace_start(recording.path, 0), GG_OK);
    gg_range_push("outer \"quoted\"\n");
    gg_range_push("inner \xff");
    gg_range_pop();
    gg_range_pop();
    gg_range_pop(); /* one too many does nothing */
    assert_int_equal(gg_trace_stop(), GG_OK);
    const char *text = read_recording(&recording);
    assert_int_equal(count(text, "{\"name\":\"outer \\\"quoted\\\"\\u000a\",\"cat\":\"range\""), 1);
    assert_int_equal(count(text, "{\"name\":\"inner \\ufffd\",\"cat\":\"range\""), 1);
    assert_int_equal(count(text, "\"cat\":\"range\""), 2);
    free(recording.text);
}

/* KiB of this process that are in memory. */
static long resident(void)
{
    char line[128];
    long size = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && size < 0 && fgets(line, sizeof line, file))
        if (!strncmp(line, "Rss:", 4))
            size = atol(line + 4);
    if (file)
        fclose(file);
    return size;
}

static void record_ranges(int number)
{
    for (int i = 0; i < number; i++) {
        gg_range_push("step");
        gg_range_pop();
    }
}

/* To map the pages of a few hundred records costs as much as all of them: operations wait for it only in long recordings. */
static void the_start_maps_the_pages_of_the_first_records(void **state)
{
    struct recording recording = new_recording();
    const long before = resident();
    (void)state;
    if (before < 0)
        skip_because("this kernel has no /proc/self/smaps_rollup");
    assert_int_equal(gg_trace_start(recording.path, 0), GG_OK);
    assert_in_range(resident() - before, 1024, 65536);
    assert_int_equal(gg_trace_stop(), GG_OK);
    assert_int_equal(count(read_recording(&recording), "\"ph\":\"X\""), 0);
    free(recording.text);
}

/* A page fault costs as much as dozens of records, which have room in one page: the pages of many records come together. */
static void records_beyond_the_first_come_with_the_pages_of_those_that_follow(void **state)
{
    const int first = 16000; /* have memory since the start */
    struct recording recording = new_recording();
    (void)state;
    if (resident() < 0)
        skip_because("this kernel has no /proc/self/smaps_rollup");
    assert_int_equal(gg_trace_start(recording.path, 0), GG_OK);
    record_ranges(first);
    const long before = resident();
    record_ranges(1);
    assert_in_range(resident() - before, 32, 4096);
    record_ranges(600);
    assert_int_equal(gg_trace_stop(), GG_OK);
    assert_int_equal(count(read_recording(&recording), "\"name\":\"step\""), first + 601);
    free(recording.text);
}

static void assert_start_fails(const char *path, uint32_t flags, const char *reason)
{
    assert_int_equal(gg_trace_start(path, flags), GG_ERR_INVALID_ARGUMENT);
    assert_message_has(reason);
}

static void a_bad_start_or_stop_is_refused_with_its_reason(void **state)
{
    struct recording recording = new_recording();
    (void)state;
    assert_int_equal(gg_trace_stop(), GG_ERR_INVALID_ARGUMENT);
    assert_start_fails("/nonexistent/run.json", 0,
                       "/nonexistent/run.json cannot be created: No such file");
    assert_start_fails(recording.path, 6, "flags 0x6");
    assert_start_fails("/tmp/run-%x.json", 0, "contains \"%x\"");
    assert_start_fails("/tmp/%q{GPUGLUE_TEST_NO_SUCH}.json", 0,
                       "GPUGLUE_TEST_NO_SUCH, which is not set");
    assert_int_equal(gg_trace_start(recording.path, 0), GG_OK);
    assert_start_fails(recording.path, 0, "is in progress");
    assert_int_equal(gg_trace_stop(), GG_OK);
    unlink(recording.path);
}

static void the_path_may_name_the_process_and_variables(void **state)
{
    char expected[64];
    (void)state;
    assert_int_equal(setenv("GPUGLUE_TEST_RANK", "3", 1), 0);
    assert_int_equal(gg_trace_start("/tmp/gpuglue-%p-%q{GPUGLUE_TEST_RANK}-%%.json", 0), GG_OK);
    assert_int_equal(gg_trace_stop(), GG_OK);
    snprintf(expected, sizeof expected, "/tmp/gpuglue-%d-3-%%.json", (int)getpid());
    assert_int_equal(unlink(expected), 0);
}

static bool records_in_child(const char *path)
{
    bool good = gg_trace_stop() == GG_ERR_INVALID_ARGUMENT;
    gg_range_push("of the parent's recording");
    gg_range_pop();
    good = good && gg_trace_start(path, 0) == GG_OK;
    gg_range_push("its own");
    gg_range_pop();
    return good && gg_trace_stop() == GG_OK;
}

static void a_forked_child_leaves_the_recording_and_may_start_its_own(void **state)
{
    struct recording parent = new_recording(), child = new_recording();
    (void)state;
    assert_int_equal(gg_trace_start(parent.path, 0), GG_OK);
    gg_range_push("parent");
    pid_t pid = fork();
    if (!pid)
        _exit(records_in_child(child.path) ? 0 : 1);
    int ended = -1;
    assert_int_equal(waitpid(pid, &ended, 0), pid);
    assert_int_equal(ended, 0);
    gg_range_pop();
    assert_int_equal(gg_trace_stop(), GG_OK);
    assert_int_equal(count(read_recording(&parent), "\"cat\":\"range\""), 1);
    assert_int_equal(count(parent.text, "\"name\":\"parent\""), 1);
    assert_int_equal(count(read_recording(&child), "\"cat\":\"range\""), 1);
    assert_int_equal(count(child.text, "\"name\":\"its own\""), 1);
    free(parent.text);
    free(child.text);
}

/* ---- scenarios: processes that end while they record ---- */

static int record_until_the_shutdown(void)
{
    gg_device *device = NULL;
    if (gg_device_get(backend_name(), 0, &device) ||
        gg_trace_start(getenv("GPUGLUE_TEST_RECORDING"), 0))
        return 1;
    gg_range_push("until the end");
    gg_range_pop();
    gg_shutdown(0);
    return gg_trace_stop() == GG_ERR_INVALID_ARGUMENT ? 0 : 1;
}

static int record_by_the_variable(void)
{
    gg_device *device = NULL;
    uint64_t free_bytes, total_bytes;
    if (gg_device_get(backend_name(), 0, &device))
        return 1;
    gg_device_memory_info(device, &free_bytes, &total_bytes);
    gg_shutdown(0);
    return 0;
}

static const struct scenario scenarios[] = {
    {"record_until_the_shutdown", record_until_the_shutdown},
    {"record_by_the_variable", record_by_the_variable},
};

static void assert_scenario_records(const char *scenario, const char *variable, const char *prefix,
                                    const char *part)
{
    struct recording recording = new_recording();
    char output[512], value[128];
    snprintf(value, sizeof value, "%s%s", prefix, recording.path);
    assert_int_equal(start_scenario(scenario, variable, value, output, sizeof output), 0);
    assert_string_equal(output, "");
    assert_int_equal(count(read_recording(&recording), part), 1);
    free(recording.text);
}

static void the_shutdown_writes_the_file(void **state)
{
    (void)state;
    assert_scenario_records("record_until_the_shutdown", "GPUGLUE_TEST_RECORDING", "",
                            "\"until the end\"");
}

static void the_variable_records_from_the_first_operation_to_the_shutdown(void **state)
{
    (void)state;
    assert_scenario_records("record_by_the_variable", "GPUGLUE_TRACE", "",
                            "\"name\":\"device_open\"");
    assert_scenario_records("record_by_the_variable", "GPUGLUE_TRACE",
                            "device:", "\"name\":\"device_open\"");
}

static void a_bad_variable_is_a_warning(void **state)
{
    char output[512];
    (void)state;
    assert_int_equal(start_scenario("record_by_the_variable", "GPUGLUE_TRACE",
                                    "/nonexistent/run.json", output, sizeof output),
                     0);
    assert_non_null(
        strstr(output, "warn: GPUGLUE_TRACE=/nonexistent/run.json: nothing is recorded: "));
}

/* ---- threads ---- */

static void *copy_in_thread(void *argument)
{
    struct fixture *f = argument;
    gg_stream *stream = NULL;
    gg_memory *memory = NULL;
    unsigned char word[8] = {1};
    bool good = !gg_stream_create(f->device, 0, 0, &stream) &&
                !gg_memory_alloc(f->device, GG_MEMORY_DEVICE, sizeof word, NULL, &memory);
    for (int i = 0; i < 200 && good; i++) {
        gg_range_push("turn");
        good = !copy(at(memory, 0), host_at(word), sizeof word, stream, 0);
        gg_range_pop();
    }
    gg_memory_release(memory);
    gg_stream_release(stream);
    return good ? NULL : argument;
}

static void recordings_may_start_and_stop_while_threads_work(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, copy_in_thread, f), 0);
    for (uint32_t i = 0; i < 12; i++) {
        struct recording recording = new_recording();
        assert_int_equal(gg_trace_start(recording.path, i % 2 ? GG_TRACE_DEVICE_TIMES : 0), GG_OK);
        assert_int_equal(gg_trace_stop(), GG_OK);
        unlink(recording.path);
    }
    for (int i = 0; i < 4; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_recording_has_operations_with_device_stream_and_bytes),
    cmocka_unit_test(after_the_stop_nothing_is_recorded),
    cmocka_unit_test(device_times_add_an_entry_for_each_copy),
    cmocka_unit_test(work_that_is_not_done_has_no_device_time),
    cmocka_unit_test(ranges_nest_and_have_the_program_s_names),
    cmocka_unit_test(the_start_maps_the_pages_of_the_first_records),
    cmocka_unit_test(records_beyond_the_first_come_with_the_pages_of_those_that_follow),
    cmocka_unit_test(a_bad_start_or_stop_is_refused_with_its_reason),
    cmocka_unit_test(the_path_may_name_the_process_and_variables),
    cmocka_unit_test(a_forked_child_leaves_the_recording_and_may_start_its_own),
    cmocka_unit_test(the_shutdown_writes_the_file),
    cmocka_unit_test(the_variable_records_from_the_first_operation_to_the_shutdown),
    cmocka_unit_test(a_bad_variable_is_a_warning),
    cmocka_unit_test(recordings_may_start_and_stop_while_threads_work),
};
SUITE_AND_SCENARIOS(recording, tests, scenarios);
