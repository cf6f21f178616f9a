/* test_trace.c: a tracer sees each operation, before and after it. */
#include "conformance.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define ROOM 256u

struct seen {
    atomic_uint count;
    struct {
        struct gg_trace trace;
        bool after;
    } call[ROOM];
};

static void note(void *user, const struct gg_trace *trace, bool after)
{
    struct seen *seen = user;
    unsigned at = atomic_fetch_add(&seen->count, 1);
    if (at >= ROOM)
        return;
    seen->call[at].trace = *trace;
    seen->call[at].after = after;
}

static void note_before(void *user, const struct gg_trace *trace)
{
    note(user, trace, false);
}

static void note_after(void *user, const struct gg_trace *trace)
{
    note(user, trace, true);
}

static struct gg_tracer tracer_for(struct seen *seen)
{
    return (struct gg_tracer){.struct_size = sizeof(struct gg_tracer),
                              .user = seen,
                              .pre = note_before,
                              .post = note_after};
}

static const struct gg_trace *find(const struct seen *seen, gg_op op, bool after)
{
    for (unsigned i = 0; i < atomic_load(&seen->count) && i < ROOM; i++)
        if (seen->call[i].trace.op == op && seen->call[i].after == after)
            return &seen->call[i].trace;
    return NULL;
}

static void a_tracer_sees_operation_stream_bytes_and_status(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {0};
    struct gg_tracer tracer = tracer_for(&seen);
    gg_memory *memory = new_memory(f, 300), *pinned = new_pinned(f, 300, 1);
    const struct gg_trace *trace;
    assert_int_equal(gg_set_tracer(&tracer), GG_OK);
    assert_int_equal(copy(at(memory, 0), at(pinned, 0), 300, f->stream, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(gg_set_tracer(NULL), GG_OK);
    trace = find(&seen, GG_OP_copy, true);
    assert_non_null(trace);
    assert_ptr_equal(trace->stream, f->stream);
    assert_int_equal(trace->bytes, 300);
    assert_int_equal(trace->status, GG_OK);
    assert_string_equal(trace->backend, backend_name());
    assert_int_equal(trace->device, 0);
    assert_int_equal(trace->struct_size, sizeof *trace);
}

static void use_everything(struct fixture *f)
{
    gg_stream *stream = NULL, *borrowed = NULL;
    gg_event *event = NULL;
    uint64_t handles[4] = {0};
    int32_t least, greatest;
    assert_filled(f, new_memory_with(f, "bbbb", 4), 4, 'b');
    assert_int_equal(gg_stream_create(f->device, 0, 0, &stream), GG_OK);
    assert_int_equal(gg_event_create(f->device, GG_EVENT_BLOCKING, &event), GG_OK);
    assert_int_equal(gg_event_record(event, stream), GG_OK);
    assert_int_equal(gg_stream_wait_event(f->stream, event), GG_OK);
    assert_int_equal(gg_stream_wait_stream(f->stream, stream), GG_OK);
    gg_stream_priority_range(f->device, &least, &greatest);
    gg_device_native(f->device, handles);
    if (!gg_stream_native(stream, handles) &&
        !gg_stream_borrow(f->device, handles[0], NULL, NULL, &borrowed))
        gg_stream_release(borrowed);
    gg_event_release(event);
    gg_stream_release(stream);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
}

static void each_before_has_its_after(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {0};
    struct gg_tracer tracer = tracer_for(&seen);
    int open[GG_OP_COUNT] = {0};
    assert_int_equal(gg_set_tracer(&tracer), GG_OK);
    use_everything(f);
    assert_int_equal(gg_set_tracer(NULL), GG_OK);
    assert_true(atomic_load(&seen.count) <= ROOM);
    for (unsigned i = 0; i < atomic_load(&seen.count); i++) {
        gg_op op = seen.call[i].trace.op;
        open[op] += seen.call[i].after ? -1 : 1;
        if (open[op] < 0)
            fail_msg("%s: an end without a begin", gg_op_name(op));
    }
    for (int op = 0; op < GG_OP_COUNT; op++)
        if (open[op])
            fail_msg("%s began %d times more than it ended", gg_op_name((gg_op)op), open[op]);
}

static void a_tracer_sees_failures(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {0};
    struct gg_tracer tracer = tracer_for(&seen);
    gg_memory *memory = NULL;
    const struct gg_trace *before, *after;
    assert_int_equal(gg_set_tracer(&tracer), GG_OK);
    assert_fails(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, (size_t)1 << 60, NULL, &memory));
    assert_int_equal(gg_set_tracer(NULL), GG_OK);
    before = find(&seen, GG_OP_mem_alloc, false);
    after = find(&seen, GG_OP_mem_alloc, true);
    assert_true(before && after);
    assert_int_equal(before->status, GG_OK);
    assert_int_equal(after->status, GG_ERR_OUT_OF_MEMORY);
    assert_true(after->bytes == (uint64_t)1 << 60);
}

static void either_callback_may_be_left_out(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {0};
    struct gg_tracer tracer = tracer_for(&seen);
    tracer.pre = NULL;
    assert_int_equal(gg_set_tracer(&tracer), GG_OK);
    finish(f->stream);
    assert_non_null(find(&seen, GG_OP_stream_wait, true));
    tracer.post = NULL;
    finish(f->stream);
    assert_int_equal(gg_set_tracer(NULL), GG_OK);
    assert_null(find(&seen, GG_OP_stream_wait, false));
}

static void a_removed_tracer_sees_nothing(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {0};
    struct gg_tracer tracer = tracer_for(&seen);
    assert_int_equal(gg_set_tracer(&tracer), GG_OK);
    assert_int_equal(gg_set_tracer(NULL), GG_OK);
    finish(f->stream);
    assert_int_equal(atomic_load(&seen.count), 0);
}

static void a_tracer_that_is_too_small_is_refused(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {0};
    struct gg_tracer tracer = tracer_for(&seen);
    tracer.struct_size = sizeof tracer - 1;
    assert_int_equal(gg_set_tracer(&tracer), GG_ERR_INVALID_ARGUMENT);
    finish(f->stream);
    assert_int_equal(atomic_load(&seen.count), 0);
}

static void a_tracer_of_a_newer_caller_is_accepted(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {0};
    struct {
        struct gg_tracer tracer;
        void *newer;
    } theirs = {.tracer = tracer_for(&seen)};
    theirs.tracer.struct_size = sizeof theirs;
    assert_int_equal(gg_set_tracer(&theirs.tracer), GG_OK);
    finish(f->stream);
    assert_int_equal(gg_set_tracer(NULL), GG_OK);
    assert_true(atomic_load(&seen.count) > 0);
}

/* ---- the log at level trace: a process of its own, as the variable is read once ---- */

/* Counted from the lines of the log, one call per operation. */
static void count_after(void *user, const struct gg_trace *trace)
{
    atomic_uint *counts = user;
    atomic_fetch_add(&counts[trace->op], 1);
}

static int use_a_little(gg_device **device)
{
    gg_memory *memory = NULL;
    gg_stream *stream = NULL;
    if (gg_device_get(NULL, 0, device) || gg_stream_create(*device, 0, 0, &stream) ||
        gg_memory_alloc(*device, GG_MEMORY_DEVICE, 4096, NULL, &memory) ||
        fill_bytes(memory, 1, stream) || gg_stream_wait(stream, GG_FOREVER))
        return 1;
    printf("stream=%p\n", (void *)stream);
    fflush(stdout);
    gg_memory_release(memory);
    gg_stream_release(stream);
    return 0;
}

static int log_a_little(void)
{
    gg_device *device = NULL;
    gg_memory *memory = NULL;
    if (use_a_little(&device))
        return 1;
    return gg_memory_alloc(device, GG_MEMORY_DEVICE, (size_t)1 << 60, NULL, &memory) ? 0 : 1;
}

static int log_beside_a_tracer(void)
{
    static atomic_uint counts[GG_OP_COUNT];
    static const struct gg_tracer tracer = {
        .struct_size = sizeof tracer, .user = counts, .post = count_after};
    gg_device *device = NULL;
    if (gg_set_tracer(&tracer) || use_a_little(&device) || gg_set_tracer(NULL) ||
        use_a_little(&device))
        return 1;
    printf("%u fills seen\n", atomic_load(&counts[GG_OP_fill]));
    return 0;
}

static const struct scenario scenarios[] = {
    {"log_a_little", log_a_little},
    {"log_beside_a_tracer", log_beside_a_tracer},
};

static char output[1 << 16];

static void log_of(const char *scenario, const char *level)
{
    assert_int_equal(start_scenario(scenario, "GPUGLUE_LOG", level, output, sizeof output), 0);
}

static unsigned lines_with(const char *part)
{
    unsigned count = 0;
    for (const char *at = strstr(output, part); at; at = strstr(at + 1, part))
        count++;
    return count;
}

static void the_log_at_level_trace_has_a_line_for_each_operation(void **state)
{
    char line[128];
    const char *stream;
    (void)state;
    log_of("log_a_little", "trace");
    stream = strstr(output, "\nstream=0x"); /* as the scenario printed it */
    assert_non_null(stream++);
    snprintf(line, sizeof line, "gpuglue: trace: fill %s:0 %.*s bytes=4096 OK\n", backend_name(),
             (int)strcspn(stream, "\n"), stream);
    assert_int_equal(lines_with(line), 1);
    snprintf(line, sizeof line,
             "gpuglue: trace: mem_alloc %s:0 stream=0x0 bytes=%zu ERR_OUT_OF_MEMORY\n",
             backend_name(), (size_t)1 << 60);
    assert_int_equal(lines_with(line), 1);
}

static void below_level_trace_no_operation_is_logged(void **state)
{
    (void)state;
    log_of("log_a_little", "debug");
    assert_int_equal(lines_with("trace: "), 0);
}

static void the_log_and_a_tracer_see_the_same_operations(void **state)
{
    (void)state;
    log_of("log_beside_a_tracer", "trace");
    assert_int_equal(lines_with("trace: fill "), 2);
    assert_int_equal(lines_with("1 fills seen"), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_tracer_sees_operation_stream_bytes_and_status),
    cmocka_unit_test(each_before_has_its_after),
    cmocka_unit_test(a_tracer_sees_failures),
    cmocka_unit_test(either_callback_may_be_left_out),
    cmocka_unit_test(a_removed_tracer_sees_nothing),
    cmocka_unit_test(a_tracer_that_is_too_small_is_refused),
    cmocka_unit_test(a_tracer_of_a_newer_caller_is_accepted),
    cmocka_unit_test(the_log_at_level_trace_has_a_line_for_each_operation),
    cmocka_unit_test(below_level_trace_no_operation_is_logged),
    cmocka_unit_test(the_log_and_a_tracer_see_the_same_operations),
};
SUITE_AND_SCENARIOS(trace, tests, scenarios);
