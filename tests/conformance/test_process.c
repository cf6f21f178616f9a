/* test_process.c: forks, shutdown and the exit of a process with pending work. Each test is a
 * scenario, for which this program is started again, and which must succeed without output. */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NBYTES 4096u

/* ---- for scenarios ---- */

/* Prints where a scenario failed, and gpuglue's last error. */
static int wrong(const char *what)
{
    printf("%s (%s)\n", what, last_error().message);
    return 1;
}

struct scene {
    gg_device *device;
    gg_stream *stream;
    gg_memory *memory, *pinned;
    gg_event *event;
};

static int set_scene(struct scene *scene)
{
    if (gg_device_get(NULL, 0, &scene->device) ||
        gg_stream_create(scene->device, GG_STREAM_NONBLOCKING, 0, &scene->stream) ||
        gg_event_create(scene->device, 0, &scene->event) ||
        gg_memory_alloc(scene->device, GG_MEMORY_DEVICE, NBYTES, NULL, &scene->memory) ||
        gg_memory_alloc(scene->device, GG_MEMORY_PINNED, NBYTES, NULL, &scene->pinned))
        return wrong("no scene");
    memset(gg_memory_pointer(scene->pinned), 0, NBYTES);
    return 0;
}

static void clear_scene(struct scene *scene)
{
    gg_memory_release(scene->memory);
    gg_memory_release(scene->pinned);
    gg_event_release(scene->event);
    gg_stream_release(scene->stream);
}

/* A copy of @p value to the pinned memory, queued after a closed gate. */
static int queue_behind_gate(struct scene *scene, void *gate, unsigned char value)
{
    if (!gg_device_supports(scene->device, GG_OP_stream_host_func))
        exit(scenario_without(GG_OP_stream_host_func));
    if (gg_stream_host_func(scene->stream, gate_wait, gate) ||
        fill_bytes(scene->memory, value, scene->stream) ||
        copy(at(scene->pinned, 0), at(scene->memory, 0), NBYTES, scene->stream, GG_COPY_ASYNC) ||
        gg_event_record(scene->event, scene->stream))
        return wrong("work cannot be queued");
    return 0;
}

static int round_trip(void)
{
    struct scene scene;
    unsigned char got = 0;
    if (set_scene(&scene))
        return 1;
    if (fill_bytes(scene.memory, 7, scene.stream) ||
        copy(host_at(&got), at(scene.memory, NBYTES - 1), 1, scene.stream, 0) || got != 7)
        return wrong("the round trip failed");
    clear_scene(&scene);
    return 0;
}

/* The result of a child that ran @p body; it exits without the parent's exit handlers. */
static int in_child(int (*body)(void *), void *argument)
{
    int result = 0;
    pid_t child;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        result = body(argument);
        fflush(stdout);
        _exit(result);
    }
    waitpid(child, &result, 0);
    return WIFEXITED(result) ? WEXITSTATUS(result) : 128 + WTERMSIG(result);
}

/* ---- forks ---- */

static int use_in_child(void *argument)
{
    (void)argument;
    return round_trip();
}

static int fork_before_use(void)
{
    struct gg_reports *reports = NULL;
    if (gg_probe(GG_PASSIVE, &reports)) /* initialises nothing */
        return wrong("no passive probe");
    gg_reports_free(reports);
    if (in_child(use_in_child, NULL))
        return wrong("the child cannot use the device");
    return round_trip();
}

static int expect_forked(const char *call, gg_status status)
{
    if (status == GG_ERR_FORKED && strstr(last_error().message, "spawn"))
        return 0;
    printf("%s: %s\n", call, gg_status_name(status));
    return 1;
}

static int use_what_was_inherited(void *argument)
{
    struct scene *scene = argument;
    gg_memory *memory = NULL;
    gg_stream *stream = NULL;
    gg_device *device = NULL;
    int wrongs = 0;
    wrongs +=
        expect_forked("alloc", gg_memory_alloc(scene->device, GG_MEMORY_DEVICE, 64, NULL, &memory));
    wrongs += expect_forked("create", gg_stream_create(scene->device, 0, 0, &stream));
    wrongs += expect_forked("query", gg_stream_query(scene->stream));
    wrongs += expect_forked("wait", gg_stream_wait(scene->stream, GG_FOREVER));
    wrongs += expect_forked("record", gg_event_record(scene->event, scene->stream));
    wrongs += expect_forked("fill", fill_bytes(scene->memory, 1, scene->stream));
    wrongs += expect_forked("copy", copy(at(scene->memory, 0), host_at("x"), 1, NULL, 0));
    wrongs += expect_forked("synchronize", gg_device_synchronize(scene->device));
    wrongs += expect_forked("get", gg_device_get(NULL, 0, &device));
    return wrongs;
}

static int fork_after_use(void)
{
    struct scene scene;
    if (set_scene(&scene))
        return 1;
    if (in_child(use_what_was_inherited, &scene))
        return wrong("a call in the child is not refused");
    clear_scene(&scene);
    return round_trip(); /* the parent still works */
}

static int release_what_was_inherited(void *argument)
{
    clear_scene(argument);
    gg_shutdown(1000000);
    return 0;
}

static int fork_while_busy(void)
{
    struct scene scene;
    void *gate = gate_new();
    if (set_scene(&scene) || queue_behind_gate(&scene, gate, 5))
        return 1;
    if (in_child(release_what_was_inherited, &scene))
        return wrong("inherited objects are not inert");
    gate_open(gate);
    if (gg_stream_wait(scene.stream, GG_FOREVER) || *(char *)gg_memory_pointer(scene.pinned) != 5)
        return wrong("the parent was harmed");
    clear_scene(&scene);
    gate_free(gate);
    return 0;
}

static int read_and_write_pinned(void *argument)
{
    unsigned char *bytes = argument;
    if (bytes[0] != 1)
        return 1;
    bytes[1] = 2;
    return 0;
}

static int share_pinned(void)
{
    struct scene scene;
    unsigned char *bytes;
    if (set_scene(&scene))
        return 1;
    bytes = gg_memory_pointer(scene.pinned);
    bytes[0] = 1;
    if (in_child(read_and_write_pinned, bytes) || bytes[1] != 2)
        return wrong("pinned memory is not shared with a child");
    clear_scene(&scene);
    return 0;
}

/* ---- exit ---- */

/* Objects that a program does not release before it exits: static, so that they are still
 * reachable. */
static struct scene left;
static void *left_gate;
static gg_scope *left_scope;

/* These two leave without the shutdown that follows a scenario. Live objects, queued copies, a stream whose work never ends. */
static int exit_while_busy(void)
{
    left_gate = gate_new();
    exit(set_scene(&left) || queue_behind_gate(&left, left_gate, 1));
}

static int exit_with_objects(void)
{
    exit(set_scene(&left) || gg_scope_enter(left.device, left.stream, &left_scope));
}

/* ---- shutdown ---- */

static int shut_down_unused(void)
{
    gg_shutdown(GG_FOREVER);
    gg_shutdown(GG_FOREVER);
    return 0;
}

static int shut_down_twice(void)
{
    struct scene scene;
    if (set_scene(&scene) || fill_bytes(scene.memory, 1, scene.stream))
        return 1;
    gg_shutdown(GG_FOREVER);
    gg_shutdown(GG_FOREVER);
    clear_scene(&scene); /* releases after it are no-ops */
    return 0;
}

static int expect_down(const char *call, gg_status status)
{
    if (status == GG_ERR_SHUT_DOWN)
        return 0;
    printf("%s: %s\n", call, gg_status_name(status));
    return 1;
}

static int refuse_after_shutdown(void)
{
    struct scene scene;
    gg_memory *memory = NULL;
    gg_event *event = NULL;
    int wrongs = 0;
    if (set_scene(&scene))
        return 1;
    gg_shutdown(GG_FOREVER);
    wrongs +=
        expect_down("alloc", gg_memory_alloc(scene.device, GG_MEMORY_DEVICE, 64, NULL, &memory));
    wrongs += expect_down("create", gg_event_create(scene.device, 0, &event));
    wrongs += expect_down("wait", gg_stream_wait(scene.stream, GG_FOREVER));
    wrongs += expect_down("fill", fill_bytes(scene.memory, 1, scene.stream));
    wrongs += expect_down("record", gg_event_record(scene.event, scene.stream));
    wrongs += expect_down("synchronize", gg_device_synchronize(scene.device));
    clear_scene(&scene);
    return wrongs;
}

struct opener {
    gg_stream *stream;
    void *gate;
};

/* Opens the gate once the shutdown has begun: from then on every call is refused. */
static void *open_after_shutdown_began(void *argument)
{
    struct opener *opener = argument;
    while (gg_stream_query(opener->stream) != GG_ERR_SHUT_DOWN)
        usleep(100);
    gate_open(opener->gate);
    return NULL;
}

static int wait_for_copies_to_the_host(void)
{
    struct scene scene;
    struct opener opener = {.gate = gate_new()};
    pthread_t thread;
    if (set_scene(&scene) || queue_behind_gate(&scene, opener.gate, 6))
        return 1;
    opener.stream = scene.stream;
    if (pthread_create(&thread, NULL, open_after_shutdown_began, &opener))
        return 3;
    gg_shutdown(GG_FOREVER);
    pthread_join(thread, NULL);
    if (*(char *)gg_memory_pointer(scene.pinned) != 6)
        return wrong("the shutdown did not wait for a copy to the host");
    clear_scene(&scene);
    gate_free(opener.gate);
    return 0;
}

static int wait_no_longer_than_the_limit(void)
{
    struct scene scene;
    left_gate = gate_new();
    if (set_scene(&scene) || queue_behind_gate(&scene, left_gate, 6))
        return 1;
    gg_shutdown(20000000);
    clear_scene(&scene);
    return 0;
}

/* No copy to the host is pending, so the shutdown does not wait, however long the stream is
 * busy. */
static int leave_a_busy_stream_alone(void)
{
    struct scene scene;
    left_gate = gate_new();
    if (set_scene(&scene))
        return 1;
    if (gg_stream_host_func(scene.stream, gate_wait, left_gate))
        return scenario_without(GG_OP_stream_host_func);
    if (fill_bytes(scene.memory, 1, scene.stream))
        return wrong("no work");
    gg_shutdown(GG_FOREVER);
    clear_scene(&scene);
    gate_open(left_gate); /* the work continues */
    return 0;
}

/* Threads of a backend may be inside the driver when the process unloads it. */
static int exit_among_host_functions(void)
{
    gg_device *device;
    gg_stream *streams[40];
    left_gate = gate_new();
    for (int i = 0; i < 40;
         i++) /* before any is held: with this many held streams a driver waits (CUDA 13: 35) */
        if (gg_current_device(&device) || gg_stream_create(device, 0, 0, &streams[i]))
            return 1;
    for (int i = 0; i < 40; i++)
        if (gg_stream_host_func(streams[i], gate_wait, left_gate))
            return scenario_without(GG_OP_stream_host_func);
    gg_shutdown(0);
    gate_open(left_gate); /* the work continues */
    return 0;
}

static void *use_and_end(void *argument)
{
    struct scene *scene = argument;
    gg_scope *scope = NULL;
    if (gg_scope_enter(scene->device, scene->stream, &scope) || fill_bytes(scene->memory, 1, NULL))
        return scene;
    return gg_scope_leave(scope) ? scene : NULL;
}
static int end_a_thread(void)
{
    struct scene scene;
    pthread_t thread;
    void *problem;
    if (set_scene(&scene))
        return 1;
    for (int i = 0; i < 20; i++)
        if (pthread_create(&thread, NULL, use_and_end, &scene) || pthread_join(thread, &problem) ||
            problem)
            return wrong("a thread's use failed");
    clear_scene(&scene);
    return round_trip();
}

static const struct scenario scenarios[] = {
    {"a_child_forked_before_the_first_use_can_use_the_device", fork_before_use},
    {"every_call_in_a_child_forked_after_it_is_refused_naming_spawn", fork_after_use},
    {"inherited_objects_do_nothing_and_the_parent_works", fork_while_busy},
    {"pinned_memory_is_shared_with_a_child", share_pinned},
    {"exit_with_work_in_progress_is_silent", exit_while_busy},
    {"exit_with_live_objects_is_silent", exit_with_objects},
    {"shutdown_without_use_does_nothing", shut_down_unused},
    {"releases_after_a_shutdown_do_nothing", shut_down_twice},
    {"a_shutdown_refuses_new_work", refuse_after_shutdown},
    {"a_shutdown_waits_for_copies_to_the_host", wait_for_copies_to_the_host},
    {"a_shutdown_waits_no_longer_than_its_limit", wait_no_longer_than_the_limit},
    {"a_shutdown_does_not_wait_for_a_busy_stream", leave_a_busy_stream_alone},
    {"exit_among_host_functions_is_silent", exit_among_host_functions},
    {"a_thread_may_end_after_using_the_device", end_a_thread},
};

SUITE_OF_SCENARIOS(process, scenarios);
