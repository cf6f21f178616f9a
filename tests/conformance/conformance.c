/* conformance.c: the choice of the backend, the fixture and scenarios, for all suites. */
#include "conformance.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *backend;

const char *backend_name(void)
{
    return backend;
}

/* ---- the choice of the backend ---- */

static void prepare(const char *name)
{
    backend = name;
    setenv("GPUGLUE_BACKEND", name, 0); /* a test may have set another for its scenario */
}

static int leave_without(const char *reason)
{
    const char *required = getenv("GPUGLUE_REQUIRE");
    bool must = required && strcmp(required, backend) == 0;
    fprintf(stderr, "%s: %s: %s\n", must ? "failed" : "skipped", backend, reason);
    return must ? 1 : 77;
}

static int check_report(const struct gg_reports *reports)
{
    for (size_t i = 0; i < reports->count; i++)
        if (strcmp(gg_report_at(reports, i)->name, backend) == 0)
            return gg_report_at(reports, i)->status == GG_PROBE_AVAILABLE
                       ? 0
                       : leave_without(gg_report_at(reports, i)->reason);
    return leave_without("there is no such backend");
}

/* Only the requested backend is probed: others would slow the tests down. */
static int probe_backend(void)
{
    struct gg_reports *reports;
    setenv("GPUGLUE_BACKEND", backend, 1);
    if (gg_probe(GG_ACTIVE, &reports))
        return leave_without(last_error().message);
    int status = check_report(reports);
    gg_reports_free(reports);
    return status;
}

void need(struct fixture *f, gg_op op)
{
    if (!gg_device_supports(f->device, op))
        skip_because("%s is not supported", gg_op_name(op));
}

void need_sizes(struct fixture *f, gg_memory *memory)
{
    struct gg_pointer_info info = {.struct_size = sizeof info};
    gg_device *device;
    need(f, GG_OP_pointer_info);
    assert_int_equal(gg_pointer_query(gg_memory_pointer(memory), &device, &info), GG_OK);
    if (!info.base)
        skip_because("the driver does not report the sizes of allocations");
}

bool uses_drivers_pool(void)
{
    const char *allocator = getenv("GPUGLUE_ALLOCATOR");
    return allocator && strcmp(allocator, "async") == 0;
}

int scenario_without(gg_op op)
{
    printf("%s is not supported", gg_op_name(op));
    return 77;
}

gg_device *other_device(struct fixture *f)
{
    int32_t count = 0;
    gg_device *device = NULL;
    assert_int_equal(gg_device_count(backend, &count), GG_OK);
    if (count > 1)
        assert_int_equal(gg_device_get(backend, 1, &device), GG_OK);
    else if (gg_device_get("host", 0, &device) || device == f->device)
        skip_because("%s has one device", backend);
    return device;
}

gg_device *other_device_of_backend(struct fixture *f)
{
    gg_device *device = other_device(f);
    if (strcmp(gg_device_backend(device), gg_device_backend(f->device)) != 0)
        skip_because("the backend has one device");
    return device;
}

/* ---- the fixture ---- */

static int make_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f || gg_device_get(backend, 0, &f->device) ||
        gg_stream_create(f->device, GG_STREAM_NONBLOCKING, 0, &f->stream) ||
        gg_stream_create(f->device, GG_STREAM_NONBLOCKING, 0, &f->second)) {
        fprintf(stderr, "no fixture: %s\n", last_error().message);
        free(f);
        return -1;
    }
    *state = f;
    return 0;
}

static void release_objects(struct fixture *f)
{
    for (size_t i = 0; i < f->memory_count; i++)
        gg_memory_release(f->memories[i]);
    for (size_t i = 0; i < f->event_count; i++)
        gg_event_release(f->events[i]);
    for (size_t i = 0; i < f->stream_count; i++)
        gg_stream_release(f->streams[i]);
    gg_stream_release(f->stream);
    gg_stream_release(f->second);
}

static void end_capture(gg_stream *stream)
{
    gg_graph *graph = NULL;
    if (gg_graph_end_capture(stream, &graph) == GG_OK)
        gg_graph_release(graph);
}

static void end_captures(struct fixture *f)
{
    for (size_t i = 0; i < f->stream_count; i++)
        end_capture(f->streams[i]);
    end_capture(f->stream);
    end_capture(f->second);
}

/* A failed test may have left work and captures on any stream: end the captures and open the gates first, so that the
 * device becomes idle, and the next test of the process can use it. */
static int end_fixture(void **state)
{
    struct fixture *f = *state;
    gg_status status;
    gg_set_tracer(NULL);
    gg_set_wait_hook(NULL);
    end_captures(f);
    for (size_t i = 0; i < f->gate_count; i++)
        gate_open(f->gates[i]);
    release_objects(f);
    status = gg_device_synchronize(f->device);
    if (!status)
        status = gg_device_trim(f->device);
    for (size_t i = 0; i < f->gate_count; i++)
        gate_free(f->gates[i]);
    free(f);
    return status ? -1 : 0;
}

static void shut_down(void)
{
    gg_shutdown(GG_FOREVER);
}

/* Failures are excused only in the tests whose own gates were forced. */
static const char *was_forced(void)
{
    static int before;
    bool more = gates_forced() > before;
    before = gates_forced();
    return more ? "a call waited for work that the test holds back" : NULL;
}

int main(int argc, char **argv)
{
    static const struct program program = {.target = "BACKEND",
                                           .prepare = prepare,
                                           .available = probe_backend,
                                           .setup = make_fixture,
                                           .teardown = end_fixture,
                                           .end = shut_down,
                                           .excuse = was_forced};
    return run_program(argc, argv, &program);
}

/* ---- scenarios ---- */

int not_here(const char *reason)
{
    printf("%s", reason);
    return 77;
}

static void start(const char *name, const char *variable, const char *value, int output)
{
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    if (variable)
        setenv(variable, value, 1);
    become_scenario(name);
}

static void read_all(int from, char *output, size_t size)
{
    char rest[256];
    size_t length = 0;
    ssize_t got = 1;
    while (got > 0 || (got < 0 && errno == EINTR)) {
        bool room = length + 1 < size;
        got = read(from, room ? output + length : rest, room ? size - 1 - length : sizeof rest);
        if (got > 0 && room)
            length += (size_t)got;
    }
    output[length] = '\0';
}

int start_scenario(const char *name, const char *variable, const char *value, char *output,
                   size_t size)
{
    int ends[2], result = 0;
    pid_t child;
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        start(name, variable, value, ends[1]);
    close(ends[1]);
    read_all(ends[0], output, size);
    close(ends[0]);
    while (waitpid(child, &result, 0) < 0 && errno == EINTR) {
    }
    result = WIFEXITED(result) ? WEXITSTATUS(result) : 128 + WTERMSIG(result);
    if (result == 77)
        skip_because("%s", output);
    return result;
}

void assert_scenario_is_silent(const char *name)
{
    char output[4096];
    int result = start_scenario(name, NULL, NULL, output, sizeof output);
    if (result || output[0])
        print_message("%s: exit %d: %s\n", name, result, output);
    assert_int_equal(result, 0);
    assert_string_equal(output, "");
}

void run_silently(void **state)
{
    assert_scenario_is_silent(((const struct scenario *)*state)->name);
}

/* ---- creating objects ---- */

static gg_memory *keep_memory(struct fixture *f, gg_memory *memory)
{
    assert_true(f->memory_count < OWNED_ROOM);
    return f->memories[f->memory_count++] = memory;
}

gg_memory *new_memory(struct fixture *f, size_t nbytes)
{
    gg_memory *memory = NULL;
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, nbytes, NULL, &memory), GG_OK);
    return keep_memory(f, memory);
}

gg_memory *new_memory_with(struct fixture *f, const void *bytes, size_t nbytes)
{
    gg_memory *memory = new_memory(f, nbytes);
    assert_int_equal(copy(at(memory, 0), host_at(bytes), nbytes, f->stream, 0), GG_OK);
    finish(f->stream);
    return memory;
}

gg_memory *new_pinned(struct fixture *f, size_t nbytes, unsigned char value)
{
    gg_memory *memory = NULL;
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_PINNED, nbytes, NULL, &memory), GG_OK);
    memset(gg_memory_pointer(memory), value, nbytes);
    return keep_memory(f, memory);
}

gg_stream *new_stream(struct fixture *f)
{
    gg_stream *stream = NULL;
    assert_true(f->stream_count < OWNED_ROOM);
    assert_int_equal(gg_stream_create(f->device, GG_STREAM_NONBLOCKING, 0, &stream), GG_OK);
    return f->streams[f->stream_count++] = stream;
}

gg_event *new_event(struct fixture *f, uint32_t flags)
{
    gg_event *event = NULL;
    assert_true(f->event_count < OWNED_ROOM);
    assert_int_equal(gg_event_create(f->device, flags, &event), GG_OK);
    return f->events[f->event_count++] = event;
}

void *hold(struct fixture *f, gg_stream *stream)
{
    void *gate;
    need(f, GG_OP_stream_host_func);
    assert_true(f->gate_count < OWNED_ROOM);
    gate = gate_new();
    assert_non_null(gate);
    f->gates[f->gate_count++] = gate;
    assert_int_equal(gg_stream_host_func(stream, gate_wait, gate), GG_OK);
    return gate;
}

void *hold_first(struct fixture *f, gg_stream *stream)
{
    void *gate = hold(f, stream);
    while (!gate_reached(gate))
        sched_yield();
    return gate;
}

/* ---- copying ---- */

struct gg_copy_operand at(gg_memory *memory, size_t offset)
{
    return (struct gg_copy_operand){.memory = memory, .offset = offset};
}

struct gg_copy_operand host_at(const void *host)
{
    return (struct gg_copy_operand){
        .host = (void *)(uintptr_t)host}; /* read only where it is a source */
}

gg_status copy(struct gg_copy_operand dst, struct gg_copy_operand src, size_t nbytes,
               gg_stream *stream, uint32_t flags)
{
    return gg_copy(&dst, &src, nbytes, stream, flags);
}

void read_back(struct fixture *f, gg_memory *memory, void *to, size_t nbytes)
{
    assert_int_equal(copy(host_at(to), at(memory, 0), nbytes, f->stream, 0), GG_OK);
    finish(f->stream);
}

void assert_filled(struct fixture *f, gg_memory *memory, size_t nbytes, unsigned char value)
{
    unsigned char *bytes = calloc(1, nbytes);
    size_t right = 0;
    gg_status status;
    (void)f;
    assert_non_null(bytes);
    status = copy(host_at(bytes), at(memory, 0), nbytes, NULL, 0);
    while (right < nbytes && bytes[right] == value)
        right++;
    free(bytes);
    assert_int_equal(status, GG_OK);
    assert_int_equal(right, nbytes);
}

gg_status fill_bytes(gg_memory *memory, unsigned char value, gg_stream *stream)
{
    return gg_fill(memory, 0, &value, 1, gg_memory_size(memory), stream);
}

void count_release(void *owner)
{
    atomic_fetch_add((atomic_int *)owner, 1);
}

/* ---- waiting and errors ---- */

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void finish(gg_stream *stream)
{
    assert_int_equal(gg_stream_wait(stream, GG_FOREVER), GG_OK);
}

bool busy(gg_stream *stream)
{
    gg_status status = gg_stream_query(stream);
    assert_true(status == GG_OK || status == GG_NOT_READY);
    return status == GG_NOT_READY;
}

struct gg_error last_error(void)
{
    struct gg_error error = {.struct_size = sizeof error};
    gg_last_error(&error);
    return error;
}

void assert_message_has(const char *part)
{
    struct gg_error error = last_error();
    if (!strstr(error.message, part))
        fail_msg("\"%s\" is not in \"%s\"", part, error.message);
}

void assert_fails(gg_status status)
{
    assert_true(status > GG_NOT_READY);
}
