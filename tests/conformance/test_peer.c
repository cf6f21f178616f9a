/* test_peer.c: direct copies between two devices with peer access. */
#include "crowd.h"
#include "pairs.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>

/* ---- order ---- */

/* The first copy between two devices tests the direct path, on streams of its own. */
static void copy_while_held(struct pair *pair)
{
    gg_memory *src = filled_on(pair, pair->from, 1), *dst = filled_on(pair, pair->to, 2);
    gg_stream *stream = stream_on(pair, pair->from);
    void *gate = hold(pair->f, stream);
    assert_int_equal(copy(at(dst, 0), at(src, 0), NBYTES, stream, 0), GG_OK);
    assert_true(busy(stream));
    gate_open(gate);
    assert_filled(pair->f, dst, NBYTES, 1);
}

static void a_direct_copy_is_queued_and_waits_for_nothing(void **state)
{
    for_each_direct_pair(state, copy_while_held);
}

static void copy_behind_writers(struct pair *pair)
{
    gg_memory *src = filled_on(pair, pair->from, 1), *dst = filled_on(pair, pair->to, 2);
    gg_stream *down = stream_on(pair, pair->from), *up = stream_on(pair, pair->to);
    gg_scope *from = NULL, *to = NULL;
    void *first = hold_first(pair->f, down), *second = hold(pair->f, up);
    assert_int_equal(fill_bytes(src, 3, down), GG_OK);
    assert_int_equal(fill_bytes(dst, 4, up), GG_OK);
    assert_int_equal(gg_scope_enter(pair->from, stream_on(pair, pair->from), &from), GG_OK);
    assert_int_equal(gg_scope_enter(pair->to, stream_on(pair, pair->to), &to), GG_OK);
    assert_int_equal(copy(at(dst, 0), at(src, 0), NBYTES, NULL, 0), GG_OK);
    assert_int_equal(gg_scope_leave(to), GG_OK);
    assert_int_equal(gg_scope_leave(from), GG_OK);
    gate_open(first);
    finish(down);
    assert_true(busy(up));
    gate_open(second);
    assert_filled(pair->f, dst, NBYTES, 3);
}

static void a_direct_copy_waits_on_the_device_for_unfinished_work_on_both_operands(void **state)
{
    for_each_direct_pair(state, copy_behind_writers);
}

/* Work that gpuglue does not record, because it is on an explicit stream. */
static void copy_between_entered_streams(struct pair *pair)
{
    gg_memory *src = filled_on(pair, pair->from, 1), *dst = filled_on(pair, pair->to, 2);
    gg_memory *after = filled_on(pair, pair->to, 9);
    gg_stream *down = stream_on(pair, pair->from), *up = stream_on(pair, pair->to);
    gg_scope *from = NULL, *to = NULL;
    void *gate = hold(pair->f, down);
    assert_int_equal(gg_scope_enter(pair->from, down, &from), GG_OK);
    assert_int_equal(gg_scope_enter(pair->to, up, &to), GG_OK);
    assert_int_equal(copy(at(dst, 0), at(src, 0), NBYTES, NULL, 0), GG_OK);
    assert_int_equal(copy(at(after, 0), at(dst, 0), NBYTES, up, 0), GG_OK);
    assert_int_equal(gg_scope_leave(to), GG_OK);
    assert_int_equal(gg_scope_leave(from), GG_OK);
    assert_true(busy(up));
    gate_open(gate);
    assert_filled(pair->f, after, NBYTES, 1);
}

static void a_direct_copy_is_ordered_on_both_current_streams(void **state)
{
    for_each_direct_pair(state, copy_between_entered_streams);
}

static void copy_on_either_stream(struct pair *pair)
{
    gg_memory *src = filled_on(pair, pair->from, 5), *dst = filled_on(pair, pair->to, 2);
    gg_stream *streams[2] = {stream_on(pair, pair->from), stream_on(pair, pair->to)};
    for (unsigned char i = 0; i < 2; i++) {
        assert_int_equal(fill_bytes(dst, 8, NULL), GG_OK);
        assert_int_equal(gg_device_synchronize(pair->to), GG_OK);
        assert_int_equal(
            copy(at(dst, 0), at(src, 0), NBYTES, streams[i], GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC),
            GG_OK);
        finish(streams[i]);
        assert_int_equal(first_byte(dst), 5);
    }
}

static void the_given_stream_may_be_of_either_device(void **state)
{
    for_each_direct_pair(state, copy_on_either_stream);
}

/* ---- captures ---- */

/* An implicit copy beside the capture, which may not take part, and one on the captured stream, which may. */
static void copy_in_a_capture(struct pair *pair)
{
    gg_memory *src = filled_on(pair, pair->from, 1), *dst = filled_on(pair, pair->to, 2);
    gg_stream *stream = stream_on(pair, pair->from);
    gg_scope *scope = NULL;
    gg_graph *graph = NULL;
    need(pair->f, GG_OP_capture_begin);
    assert_int_equal(gg_graph_begin_capture(stream), GG_OK);
    assert_int_equal(gg_scope_enter(pair->from, stream, &scope), GG_OK);
    assert_int_equal(copy(at(dst, 0), at(src, 0), NBYTES, NULL, 0), GG_ERR_UNSUPPORTED);
    assert_message_has("stream is capturing");
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    const gg_status status = copy(at(dst, 0), at(src, 0), NBYTES, stream, GG_COPY_ASYNC);
    if (status)
        assert_message_has("capturing");
    assert_int_equal(gg_graph_end_capture(stream, &graph), GG_OK);
    assert_int_equal(first_byte(dst), 2); /* it has not run yet */
    assert_int_equal(gg_graph_launch(graph, stream), GG_OK);
    finish(stream);
    gg_graph_release(graph);
    assert_true(!status || status == GG_ERR_UNSUPPORTED);
    assert_int_equal(first_byte(dst), status ? 2 : 1);
}

static void a_direct_copy_is_captured_or_refused(void **state)
{
    for_each_direct_pair(state, copy_in_a_capture);
}

/* ---- boxes ---- */

#define ROW 24u /* bytes of a row; the pitches and slices differ */
#define ROWS 5u
#define SLICES 3u
static const ptrdiff_t from_strides[] = {320, 32}, to_strides[] = {512, 40};
static const size_t box_shape[] = {SLICES, ROWS};

static gg_status copy_box(gg_memory *dst, gg_memory *src, gg_stream *stream, uint32_t flags)
{
    const struct gg_copy_operand to = at(dst, 0), from = at(src, 0);
    return gg_copy_nd(&to, to_strides, &from, from_strides, 2, box_shape, ROW, stream, flags);
}

/* Peer access may not cover memory of the driver's own pool. */
static void need_direct_boxes(gg_memory *dst, gg_memory *src)
{
    if (!uses_drivers_pool())
        return;
    assert_int_equal(copy_box(dst, src, NULL, GG_COPY_REQUIRE_ASYNC), GG_ERR_UNSUPPORTED);
    skip_because("strided copies of memory of the driver's own pool are not direct");
}

static size_t box_offset(size_t i, const ptrdiff_t strides[2])
{
    return i / ROW / ROWS * (size_t)strides[0] + i / ROW % ROWS * (size_t)strides[1] + i % ROW;
}

/* The box of @p was_src is in @p dst, and all other bytes are 2. */
static void assert_box(struct pair *pair, gg_memory *dst, const unsigned char *was_src)
{
    unsigned char got[NBYTES] = {0}, expected[NBYTES];
    memset(expected, 2, NBYTES);
    for (size_t i = 0; i < ROW * ROWS * SLICES; i++)
        expected[box_offset(i, to_strides)] = was_src[box_offset(i, from_strides)];
    assert_int_equal(copy(host_at(got), at(dst, 0), NBYTES, stream_on(pair, pair->to), 0), GG_OK);
    assert_memory_equal(got, expected, NBYTES);
}

static gg_memory *numbered_on(struct pair *pair, gg_device *device, unsigned char *bytes)
{
    gg_memory *memory = filled_on(pair, device, 1);
    for (size_t i = 0; i < NBYTES; i++)
        bytes[i] = (unsigned char)(i % 251);
    assert_int_equal(copy(at(memory, 0), host_at(bytes), NBYTES, NULL, 0), GG_OK);
    assert_int_equal(gg_device_synchronize(device), GG_OK);
    return memory;
}

static void copy_box_while_held(struct pair *pair)
{
    unsigned char bytes[NBYTES];
    gg_memory *src = numbered_on(pair, pair->from, bytes), *dst = filled_on(pair, pair->to, 2);
    gg_device *const owner[] = {pair->from, pair->to};
    need(pair->f, GG_OP_copy_region);
    need_direct_boxes(dst, src);
    for (int i = 0; i < 2; i++) {
        gg_stream *stream = stream_on(pair, owner[i]);
        assert_int_equal(fill_bytes(dst, 2, NULL), GG_OK);
        assert_int_equal(gg_device_synchronize(pair->to), GG_OK);
        void *gate = hold(pair->f, stream);
        assert_int_equal(copy_box(dst, src, stream, GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC), GG_OK);
        assert_true(busy(stream));
        gate_open(gate);
        finish(stream);
        assert_box(pair, dst, bytes);
    }
}

static void a_strided_copy_is_direct_too(void **state)
{
    for_each_direct_pair(state, copy_box_while_held);
}

static void copy_box_behind_a_writer(struct pair *pair)
{
    unsigned char bytes[NBYTES];
    gg_memory *src = numbered_on(pair, pair->from, bytes), *dst = filled_on(pair, pair->to, 1);
    gg_memory *first = numbered_on(pair, pair->from, bytes);
    gg_stream *down = stream_on(pair, pair->from), *up = stream_on(pair, pair->to);
    gg_scope *from = NULL, *to = NULL;
    need(pair->f, GG_OP_copy_region);
    need_direct_boxes(dst, src);
    assert_int_equal(fill_bytes(src, 0, NULL), GG_OK);
    assert_int_equal(gg_device_synchronize(pair->from), GG_OK);
    assert_int_equal(copy_box(dst, src, NULL, 0), GG_OK); /* the first tests the path */
    void *one = hold_first(pair->f, down), *two = hold(pair->f, up);
    assert_int_equal(copy(at(src, 0), at(first, 0), NBYTES, down, 0), GG_OK);
    assert_int_equal(fill_bytes(dst, 2, up), GG_OK);
    assert_int_equal(gg_scope_enter(pair->from, stream_on(pair, pair->from), &from), GG_OK);
    assert_int_equal(gg_scope_enter(pair->to, stream_on(pair, pair->to), &to), GG_OK);
    assert_int_equal(copy_box(dst, src, NULL, 0), GG_OK);
    assert_int_equal(gg_scope_leave(to), GG_OK);
    assert_int_equal(gg_scope_leave(from), GG_OK);
    gate_open(one);
    finish(down);
    assert_true(busy(up));
    gate_open(two);
    assert_int_equal(gg_memory_wait(dst), GG_OK);
    assert_box(pair, dst, bytes);
}

/* On AMD's runtime, which runs one host function at a time, this test did not end. */
static void a_strided_copy_waits_on_the_device_for_unfinished_work_on_both_operands(void **state)
{
    need_two_gates();
    for_each_direct_pair(state, copy_box_behind_a_writer);
}

/* Peer access may not cover memory that gpuglue did not allocate, so it is copied through the host. */
static void copy_box_of_wrapped_memory(struct pair *pair)
{
    unsigned char bytes[NBYTES];
    gg_memory *src = numbered_on(pair, pair->from, bytes), *dst = filled_on(pair, pair->to, 2);
    gg_memory *wrapped = NULL;
    assert_int_equal(gg_memory_wrap(pair->from, GG_MEMORY_DEVICE, gg_memory_pointer(src), NBYTES,
                                    NULL, NULL, &wrapped),
                     GG_OK);
    assert_int_equal(copy_box(dst, wrapped, NULL, GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC),
                     GG_ERR_UNSUPPORTED);
    assert_int_equal(copy_box(dst, wrapped, NULL, 0), GG_OK);
    assert_int_equal(gg_memory_wait(dst), GG_OK);
    assert_box(pair, dst, bytes);
    gg_memory_release(wrapped);
}

static void a_strided_copy_of_memory_of_others_goes_through_the_host(void **state)
{
    for_each_direct_pair(state, copy_box_of_wrapped_memory);
}

/* ---- lifetime ---- */

static void release_while_queued(struct pair *pair)
{
    gg_memory *src = NULL, *dst = filled_on(pair, pair->to, 2), *other;
    gg_stream *stream = stream_on(pair, pair->to), *writer = stream_on(pair, pair->from);
    void *gate = hold(pair->f, stream);
    assert_int_equal(gg_memory_alloc(pair->from, GG_MEMORY_DEVICE, NBYTES, writer, &src), GG_OK);
    assert_int_equal(fill_bytes(src, 6, writer), GG_OK);
    finish(writer);
    assert_int_equal(copy(at(dst, 0), at(src, 0), NBYTES, stream, 0), GG_OK);
    gg_memory_release(src);
    assert_int_equal(gg_memory_alloc(pair->from, GG_MEMORY_DEVICE, NBYTES, writer, &other), GG_OK);
    pair->f->memories[pair->f->memory_count++] = other;
    assert_int_equal(fill_bytes(other, 7, writer), GG_OK);
    finish(writer);
    gate_open(gate);
    assert_filled(pair->f, dst, NBYTES, 6);
}

static void memory_is_not_reused_before_a_direct_copy_of_it_has_run(void **state)
{
    for_each_direct_pair(state, release_while_queued);
}

static void count_owners(struct pair *pair)
{
    atomic_int released = 0;
    gg_memory *src = filled_on(pair, pair->from, 1), *dst = filled_on(pair, pair->to, 2);
    gg_stream *stream = stream_on(pair, pair->from);
    struct gg_copy_operand from = at(src, 0), to = at(dst, 0);
    void *gate = hold(pair->f, stream);
    from.release = to.release = count_release;
    from.owner = to.owner = &released;
    assert_int_equal(copy(to, from, NBYTES, stream, 0), GG_OK);
    assert_int_equal(atomic_load(&released), 0);
    gate_open(gate);
    finish(stream);
    assert_int_equal(atomic_load(&released), 2);
}

static void the_owners_of_a_direct_copy_are_released_when_it_has_run(void **state)
{
    for_each_direct_pair(state, count_owners);
}

/* ---- reports ---- */

static void ask(struct pair *pair)
{
    int32_t can = 0;
    assert_int_equal(gg_device_can_access(pair->from, pair->to, &can), GG_OK);
    assert_int_equal(can, 1);
}

static void devices_that_copy_directly_can_access_each_other(void **state)
{
    for_each_direct_pair(state, ask);
}

static void a_device_can_access_itself_and_no_device_of_another_backend(void **state)
{
    struct devices all = all_devices(*state);
    int32_t can = 0;
    assert_int_equal(gg_device_can_access(all.device[0], all.device[0], &can), GG_OK);
    assert_int_equal(can, 1);
    for (size_t i = 1; i < all.count; i++) {
        if (!strcmp(gg_device_backend(all.device[0]), gg_device_backend(all.device[i])))
            continue;
        assert_int_equal(gg_device_can_access(all.device[0], all.device[i], &can), GG_OK);
        assert_int_equal(can, 0);
    }
}

/* ---- direct copies that do not arrive ---- */

static int copy_apart(gg_device *from, gg_device *to)
{
    unsigned char got = 0;
    gg_memory *src = NULL, *dst = NULL;
    gg_stream *stream = NULL;
    if (gg_memory_alloc(from, GG_MEMORY_DEVICE, NBYTES, NULL, &src) ||
        gg_memory_alloc(to, GG_MEMORY_DEVICE, NBYTES, NULL, &dst) || fill_bytes(src, 5, NULL) ||
        fill_bytes(dst, 6, NULL) || gg_stream_create(from, GG_STREAM_NONBLOCKING, 0, &stream))
        return puts("nothing could be made"), 1;
    gg_device_synchronize(from);
    const gg_status status =
        copy(at(dst, 0), at(src, 0), NBYTES, stream, GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC);
    if (status != GG_ERR_UNSUPPORTED)
        return puts("the copy does not go through the host"), 1;
    if (copy(at(dst, 0), at(src, 0), NBYTES, stream, 0) ||
        copy(host_at(&got), at(dst, NBYTES - 1), 1, NULL, 0) || got != 5)
        return puts("the copy through the host failed"), 1;
    gg_stream_release(stream);
    gg_memory_release(src);
    gg_memory_release(dst);
    return 0;
}

static int two_devices(gg_device *device[2], int32_t say_they_can)
{
    int32_t count = 0, can = 0;
    if (gg_device_count(NULL, &count) || count < 2)
        return not_here("there is one device");
    for (int i = 0; i < 2; i++)
        if (gg_device_get(NULL, i, &device[i]))
            return puts("no device"), 1;
    if (gg_device_can_access(device[0], device[1], &can) || can != say_they_can)
        return say_they_can ? not_here("the devices have no peer access") : 1;
    return 0;
}

static int copy_where_peers_fail(int32_t say_they_can)
{
    gg_device *device[2];
    int result = two_devices(device, say_they_can);
    return result ? result : copy_apart(device[0], device[1]);
}

static int interrupt(void)
{
    return 1;
}

/* All memory that @p device may allocate is in use, so that an allocation waits until the gate
 * opens. */
static void *use_all_memory(gg_device *device)
{
    struct gg_pool_stats figures = {.struct_size = sizeof figures};
    gg_memory *memory = NULL;
    gg_stream *stream = NULL;
    void *gate = gate_new();
    if (!gg_memory_alloc(device, GG_MEMORY_DEVICE, 2 * MANY_BYTES, NULL, &memory) &&
        !gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &stream) &&
        !gg_stream_host_func(stream, gate_wait, gate) && !fill_bytes(memory, 1, stream) &&
        !gg_pool_stats(device, GG_MEMORY_DEVICE, &figures) &&
        !gg_pool_set_limit(device, GG_MEMORY_DEVICE, figures.reserved_bytes)) {
        gg_memory_release(memory);
        gg_stream_release(stream);
        return gate;
    }
    return NULL;
}

/* The test of the direct path allocates memory, for which it waits. */
static int interrupt_the_first_copy(void)
{
    gg_device *device[2];
    gg_memory *memory[2] = {NULL, NULL};
    int result = two_devices(device, 1);
    for (int i = 0; !result && i < 2; i++)
        result = (int)gg_memory_alloc(device[i], GG_MEMORY_DEVICE, 3 * MANY_BYTES, NULL, &memory[i]);
    if (result)
        return result;
    void *gate = use_all_memory(device[0]);
    if (!gate)
        return puts("no memory in use"), 1;
    gg_set_wait_hook(interrupt);
    gg_status status = copy(at(memory[1], 0), at(memory[0], 0), 3 * MANY_BYTES, NULL, 0);
    gg_set_wait_hook(NULL);
    gate_open(gate);
    if (status != GG_ERR_INTERRUPTED || gg_pool_set_limit(device[0], GG_MEMORY_DEVICE, 0) ||
        copy(at(memory[1], 0), at(memory[0], 0), 3 * MANY_BYTES, NULL, 0))
        return printf("the copy: %s\n", gg_status_message(status)), 1;
    gg_memory_release(memory[0]);
    gg_memory_release(memory[1]);
    gg_device_synchronize(device[0]); /* no thread waits at the gate any more */
    gate_free(gate);
    gg_shutdown(GG_FOREVER);
    return 0;
}

static int copy_where_peers_lose(void)
{
    return copy_where_peers_fail(1);
}

static int copy_where_there_are_no_peers(void)
{
    return copy_where_peers_fail(0);
}

/* Only a simulated driver can inject that. */
static int run_where(struct fixture *f, const char *scenario, const char *peers, char *output,
                     size_t size)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    if (!strstr(info.name, "Simulated"))
        skip_because("the driver is not simulated");
    return start_scenario(scenario, "GPUGLUE_SIM_PEERS", peers, output, size);
}

static void a_failed_test_copy_is_logged_and_copies_go_through_the_host(void **state)
{
    char output[2000], expected[300];
    assert_int_equal(run_where(*state, "copy_where_peers_lose", "2", output, sizeof output), 0);
    snprintf(expected, sizeof expected,
             "gpuglue: warn: %s: a test copy from device 0 to device 1 did not arrive, so copies "
             "between them go through the host\n",
             backend_name());
    assert_string_equal(output, expected);
}

static void devices_without_peer_access_copy_through_the_host(void **state)
{
    char output[2000];
    assert_int_equal(run_where(*state, "copy_where_there_are_no_peers", "0", output, sizeof output),
                     0);
    assert_string_equal(output, "");
}

static void an_interrupt_of_the_first_copy_is_reported(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_stream_host_func);
    assert_scenario_is_silent("interrupt_the_first_copy");
}

/* ---- a test copy whose wait fails ---- */

static struct {
    void (*hold)(int on);
    void (*inject)(const char *spec);
    bool failed, ordered, freed_early;
} sim;

static int find_sim(struct dl_phdr_info *object, size_t size, void *data)
{
    void *library = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    (void)size;
    (void)data;
    if (!library)
        return 0;
    *(void **)&sim.hold = dlsym(library, "sim_hold");
    *(void **)&sim.inject = dlsym(library, "sim_fail");
    dlclose(library);
    return sim.hold && sim.inject;
}

static void hold_test_copy(bool on)
{
    sim.hold(on);
    gg_set_wait_hook(on ? interrupt : NULL);
}

/* The first direct copy does not run while calls fail that would wait for it. The copies through the host that follow are
 * interrupted. */
static void before_each_call(void *user, const struct gg_trace *trace)
{
    (void)user;
    if (trace->op == GG_OP_copy)
        sim.inject(NULL);
    /* The copy is on a stream of device 0, the destination's memory is freed on one of device 1. */
    if (sim.failed && trace->device == 1 && trace->op == GG_OP_stream_wait_event)
        sim.ordered = true;
    if (sim.failed && trace->device == 1 && trace->op == GG_OP_mem_free_async)
        sim.freed_early = sim.freed_early || !sim.ordered;
    if (trace->op == GG_OP_copy_peer && !sim.failed)
        hold_test_copy(true);
}

static void after_each_call(void *user, const struct gg_trace *trace)
{
    (void)user;
    if (trace->op == GG_OP_copy_peer && !sim.failed)
        sim.inject("cuStreamQuery:1+=999,hipStreamQuery:1+=999");
    sim.failed = sim.failed || trace->op == GG_OP_copy_peer;
}

static int fail_the_wait_for_the_test_copy(void)
{
    static const struct gg_tracer tracer = {
        .struct_size = sizeof tracer, .pre = before_each_call, .post = after_each_call};
    gg_device *device[2];
    gg_memory *memory[2] = {NULL, NULL};
    int result = two_devices(device, 1);
    for (int i = 0; !result && i < 2; i++)
        result = (int)gg_memory_alloc(device[i], GG_MEMORY_DEVICE, NBYTES, NULL, &memory[i]);
    if (result)
        return result;
    if (!dl_iterate_phdr(find_sim, NULL))
        return not_here("the driver is not simulated");
    gg_set_tracer(&tracer);
    gg_status status = copy(at(memory[1], 0), at(memory[0], 0), NBYTES, NULL, 0);
    if (status != GG_ERR_INTERRUPTED || !sim.failed)
        return printf("the first copy: %s\n", gg_status_message(status)), 1;
    gg_device_trim(device[0]); /* frees what it may */
    gg_device_trim(device[1]);
    if (sim.freed_early)
        return puts("the memory of a copy that has not run was freed"), 1;
    hold_test_copy(false);
    gg_device_synchronize(device[0]); /* may report the failure of the query */
    status = copy(at(memory[1], 0), at(memory[0], 0), NBYTES, NULL, 0);
    gg_memory_release(memory[0]);
    gg_memory_release(memory[1]);
    return status ? printf("the second copy: %s\n", last_error().message), 1 : 0;
}

static void a_test_copy_whose_wait_fails_keeps_its_memory_until_it_has_run(void **state)
{
    char output[2000];
    need(*state, GG_OP_mem_alloc_async);
    const int result = start_scenario("fail_the_wait_for_the_test_copy", "GPUGLUE_ALLOCATOR",
                                      "async", output, sizeof output);
    assert_string_equal(output, "");
    assert_int_equal(result, 0);
}

static const struct scenario scenarios[] = {
    {"fail_the_wait_for_the_test_copy", fail_the_wait_for_the_test_copy},
    {"two_gates", two_gates},
    {"interrupt_the_first_copy", interrupt_the_first_copy},
    {"copy_where_peers_lose", copy_where_peers_lose},
    {"copy_where_there_are_no_peers", copy_where_there_are_no_peers},
};

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_direct_copy_is_queued_and_waits_for_nothing),
    cmocka_unit_test(a_direct_copy_waits_on_the_device_for_unfinished_work_on_both_operands),
    cmocka_unit_test(a_direct_copy_is_ordered_on_both_current_streams),
    cmocka_unit_test(the_given_stream_may_be_of_either_device),
    cmocka_unit_test(a_direct_copy_is_captured_or_refused),
    cmocka_unit_test(a_strided_copy_is_direct_too),
    cmocka_unit_test(a_strided_copy_waits_on_the_device_for_unfinished_work_on_both_operands),
    cmocka_unit_test(a_strided_copy_of_memory_of_others_goes_through_the_host),
    cmocka_unit_test(memory_is_not_reused_before_a_direct_copy_of_it_has_run),
    cmocka_unit_test(the_owners_of_a_direct_copy_are_released_when_it_has_run),
    cmocka_unit_test(devices_that_copy_directly_can_access_each_other),
    cmocka_unit_test(a_device_can_access_itself_and_no_device_of_another_backend),
    cmocka_unit_test(a_failed_test_copy_is_logged_and_copies_go_through_the_host),
    cmocka_unit_test(devices_without_peer_access_copy_through_the_host),
    cmocka_unit_test(an_interrupt_of_the_first_copy_is_reported),
    cmocka_unit_test(a_test_copy_whose_wait_fails_keeps_its_memory_until_it_has_run),
};
SUITE_AND_SCENARIOS(peer, tests, scenarios);
