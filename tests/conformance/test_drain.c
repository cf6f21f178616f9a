/* test_drain.c: a drain is bounded, and yet released objects do not pile up. */
#include "crowd.h"
#include "graphs.h"

/* ---- nothing piles up ---- */

#define AT_ONCE 3000 /* more than a drain examines at first */

/* Without a wait for the stream, a simulated driver may report four times that it is busy. */
static void more_objects_than_a_drain_examines_do_not_pile_up(void **state)
{
    struct fixture *f = *state;
    static atomic_int released;
    int made = 0;
    for (int step = 0; step < 30; step++) {
        for (int i = 0; i < AT_ONCE; i++, made++)
            gg_memory_release(wrap(f, f->stream, &released));
        finish(f->stream);
    }
    assert_in_range(made - atomic_load(&released), 0, 8 * AT_ONCE);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), made);
}

#define MANY_STREAMS 200

/* It may be large, and gpuglue does not know how much of it there is: its owner needs it back. */
static void memory_of_others_on_many_streams_does_not_pile_up_while_blocks_are_allocated(void **state)
{
    struct fixture *f = *state;
    static atomic_int released;
    static gg_stream *streams[MANY_STREAMS];
    int most = 0;
    for (int i = 0; i < MANY_STREAMS; i++)
        assert_int_equal(gg_stream_create(f->device, GG_STREAM_NONBLOCKING, 0, &streams[i]), GG_OK);
    for (int i = 0; i < 20 * MANY_STREAMS; i++) {
        gg_memory_release(wrap(f, streams[i % MANY_STREAMS], &released));
        gg_memory_release(alloc(f, BLOCK, f->stream));
        const int left = i + 1 - atomic_load(&released);
        most = left > most ? left : most;
    }
    for (int i = 0; i < MANY_STREAMS; i++)
        gg_stream_release(streams[i]);
    assert_in_range(most, 1, 3 * MANY_STREAMS);
}

/* ---- memory of others is returned where nothing is allocated and nothing waits ---- */

#define TIMES_RELEASED 2000
#define LEFT_MOST 400 /* a simulated driver may say four times that it is busy */

/* What the stream does is over now and then, which no call for the stream finds out. Returns how many were not released at once. */
static int release_others(struct fixture *f, void (*work)(struct fixture *f))
{
    atomic_int released = 0;
    int most = 0;
    gg_event *event = new_event(f, 0);
    for (int i = 0; i < TIMES_RELEASED; i++) {
        gg_memory_release(wrap(f, f->stream, &released));
        work(f);
        if (i % 16 == 0)
            pass_event_unnoticed(event, f->stream);
        const int left = i + 1 - atomic_load(&released);
        most = left > most ? left : most;
    }
    finish(f->stream);
    assert_int_equal(gg_device_trim(f->device), GG_OK); /* `released` ends here */
    assert_int_equal(atomic_load(&released), TIMES_RELEASED);
    return most;
}

static void fill_one(struct fixture *f)
{
    assert_int_equal(fill_bytes(f->memories[0], 1, f->stream), GG_OK);
}

static void copy_one(struct fixture *f)
{
    assert_int_equal(
        copy(at(f->memories[0], 0), at(f->memories[1], 0), 64, f->stream, GG_COPY_ASYNC), GG_OK);
}

static void memory_of_others_does_not_pile_up_while_work_is_queued(void **state)
{
    struct fixture *f = *state;
    new_memory(f, 64);
    zeroed(f);
    assert_in_range(release_others(f, fill_one), 1, LEFT_MOST);
    assert_in_range(release_others(f, copy_one), 1, LEFT_MOST);
}

static gg_kernel *nothing;

static void launch_one(struct fixture *f)
{
    struct call call;
    call_begin(&call, NULL, 0);
    assert_int_equal(gg_kernel_launch(nothing, &call.launch, f->stream), GG_OK);
}

static void memory_of_others_does_not_pile_up_while_kernels_are_launched(void **state)
{
    struct fixture *f = *state;
    nothing = kernel_of(f, "nothing");
    const int most = release_others(f, launch_one);
    gg_kernel_release(nothing);
    assert_in_range(most, 1, LEFT_MOST);
}

static gg_graph *launched;

static void launch_graph(struct fixture *f)
{
    assert_int_equal(gg_graph_launch(launched, f->stream), GG_OK);
}

static void memory_of_others_does_not_pile_up_while_graphs_are_launched(void **state)
{
    struct fixture *f = *state;
    launched = filling(f, zeroed(f), 1, 1);
    const int most = release_others(f, launch_graph);
    gg_graph_release(launched);
    assert_in_range(most, 1, LEFT_MOST);
}

static void copy_back(struct fixture *f)
{
    assert_int_equal(
        copy(at(f->memories[1], 0), at(f->memories[0], 0), 64, f->stream, GG_COPY_ASYNC), GG_OK);
}

static void memory_of_others_does_not_pile_up_while_other_devices_copy(void **state)
{
    struct fixture *f = *state;
    gg_device *device = other_device_of_backend(f);
    gg_memory *there = NULL;
    zeroed(f);
    assert_int_equal(gg_memory_alloc(device, GG_MEMORY_DEVICE, 64, NULL, &there), GG_OK);
    f->memories[f->memory_count++] = there;
    assert_in_range(release_others(f, copy_back), 1, LEFT_MOST);
    assert_in_range(release_others(f, copy_one), 1, LEFT_MOST);
}

static void a_copy_to_the_host_returns_memory_of_others(void **state)
{
    struct fixture *f = *state;
    static atomic_int released;
    char bytes[64];
    gg_memory *memory = zeroed(f);
    for (int i = 0; i < 20; i++) {
        gg_memory_release(wrap(f, f->stream, &released));
        assert_int_equal(copy(host_at(bytes), at(memory, 0), sizeof bytes, f->stream, 0), GG_OK);
        assert_int_equal(atomic_load(&released), i + 1);
    }
}

/* It is not allocated by gpuglue, so that its size on the device does not matter. */
static void much_exported_memory_of_others_is_returned(void **state)
{
    struct fixture *f = *state;
    static atomic_int released;
    static char byte;
    for (int i = 0; i < 600; i++) {
        gg_memory *memory = NULL;
        assert_int_equal(gg_memory_wrap(f->device, GG_MEMORY_DEVICE, &byte, (size_t)16 << 20,
                                        count_release, &released, &memory),
                         GG_OK);
        assert_int_equal(gg_memory_record_use(memory, NULL), GG_OK);
        gg_memory_release(memory);
    }
    for (int i = 0; i < 10; i++) /* two drains: the first one lets the device wait */
        assert_int_equal(gg_trim(), GG_OK);
    assert_in_range(600 - atomic_load(&released), 0, 64); /* 1 GiB */
}

static void a_block_is_reused_however_much_else_is_released(void **state)
{
    struct fixture *f = *state;
    static atomic_int released;
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    assert_int_equal(fill_bytes(memory, 1, f->second), GG_OK);
    void *gate = hold(f, f->second);
    assert_int_equal(gg_memory_record_use(memory, f->second), GG_OK);
    gg_memory_release(memory);
    finish(f->stream); /* a drain finds it in use */
    gate_open(gate);
    pass_unnoticed(f, f->second);
    for (int step = 0; step < 40; step++) {
        for (int i = 0; i < AT_ONCE / 2; i++)
            gg_memory_release(wrap(f, f->stream, &released));
        finish(f->stream);
    }
    assert_int_equal(figures(f).retired_blocks, 0);
}

/* The drain that finds the work unfinished records an event behind it. */
static void a_block_is_reused_beside_a_stream_that_stays_busy(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = alloc(f, BLOCK, f->stream);
    void *before = hold_first(f, f->second);
    assert_int_equal(fill_bytes(memory, 1, f->second), GG_OK);
    gg_memory_release(memory);
    finish(f->stream); /* and drains */
    void *after = hold(f, f->second);
    gate_open(before);
    while (!gate_reached(after))
        sched_yield();
    while (figures(f).retired_blocks)
        finish(f->stream);
    assert_true(busy(f->second));
    gate_open(after);
}

/* Polls of streams for other purposes do not use up those for this one. */
static void a_block_is_reused_however_many_other_streams_are_busy(void **state)
{
    struct fixture *f = *state;
    static struct crowd crowd;
    need_crowd(f);
    gg_stream *stream = new_stream(f);
    gg_event *event = NULL;
    gg_memory *memory = alloc(f, BLOCK, stream);
    void *gate = hold_first(f, f->second); /* since it is opened first */
    make_crowd(f, &crowd);
    assert_int_equal(gg_event_create(f->device, 0, &event), GG_OK);
    assert_int_equal(gg_event_record(event, crowd.streams[0]), GG_OK);
    gg_event_release(event);
    assert_int_equal(gg_memory_record_use(memory, f->second), GG_OK);
    gg_memory_release(memory);
    finish(stream); /* a drain finds it in use */
    gate_open(gate);
    pass_unnoticed(f, f->second);
    for (int i = 0; i < 30; i++) /* a simulated driver may say four times that it is busy */
        finish(stream);
    const uint64_t left = figures(f).retired_blocks;
    release_crowd(f, &crowd);
    assert_int_equal(left, 0);
}

/* The most blocks that were reserved at once, of which one was in use. */
static uint64_t reserve_one_after_the_other(struct fixture *f, gg_stream *stream, gg_stream *user)
{
    uint64_t most = 0;
    for (int i = 0; i < 1000; i++) {
        gg_memory *memory = alloc(f, BLOCK, stream);
        assert_int_equal(gg_memory_record_use(memory, user), GG_OK);
        gg_memory_release(memory);
        const uint64_t blocks = figures(f).reserved_bytes / BLOCK;
        most = blocks > most ? blocks : most;
    }
    return most;
}

static void blocks_do_not_pile_up_beside_busy_streams_with_released_objects(void **state)
{
    struct fixture *f = *state;
    static struct crowd crowd;
    need_crowd(f);
    static atomic_int others;
    gg_stream *stream = new_stream(f);
    make_crowd(f, &crowd);
    let_the_crowd_use(f, &crowd, &others);
    const uint64_t most = reserve_one_after_the_other(f, stream, f->second);
    const int released = atomic_load(&others);
    release_crowd(f, &crowd);
    assert_in_range(most, 1, CROWD / 4); /* the crowd is polled once before */
    assert_int_equal(released, 0);
    assert_int_equal(atomic_load(&others), CROWD);
}

#define LENDERS 16 /* streams that an allocation polls */

/* As many as one allocation polls, so that the next one must not begin with the same. */
static void blocks_of_idle_streams_are_reused_beside_as_many_busy_streams(void **state)
{
    struct fixture *f = *state;
    gg_stream *streams[2 * LENDERS];
    gg_memory *memory[2 * LENDERS], *found[LENDERS + 1];
    need_cached_blocks(f);
    void *gate = hold(f, f->stream);
    for (int i = 0; i < 2 * LENDERS; i++) {
        assert_int_equal(gg_stream_create(f->device, GG_STREAM_NONBLOCKING, 0, &streams[i]), GG_OK);
        if (i < LENDERS)
            assert_int_equal(gg_stream_wait_stream(streams[i], f->stream), GG_OK);
        memory[i] = alloc(f, BLOCK, streams[i]);
    }
    for (int i = 0; i < 2 * LENDERS; i++)
        gg_memory_release(memory[i]);
    const uint64_t before = figures(f).reserved_bytes;
    for (int i = 0; i <= LENDERS; i++)
        found[i] = alloc(f, BLOCK, f->second);
    const uint64_t added = (figures(f).reserved_bytes - before) / BLOCK;
    gate_open(gate);
    for (int i = 0; i <= LENDERS; i++)
        gg_memory_release(found[i]);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    for (int i = 0; i < 2 * LENDERS; i++)
        gg_stream_release(streams[i]);
    assert_in_range(added, 0, 2); /* one more is needed than is idle */
}

/* The parent has the uses of a part, and may drop them at any time. */
static void parts_of_pinned_memory_do_not_pile_up_beside_busy_streams(void **state)
{
    struct fixture *f = *state;
    static struct crowd crowd;
    need_crowd(f);
    static atomic_int released;
    gg_memory *whole = alloc_pinned(f, BLOCK);
    gg_stream *stream = new_stream(f);
    int most = 0;
    make_crowd(f, &crowd);
    for (int i = 0; i < 1000; i++) {
        gg_memory *part = NULL;
        assert_int_equal(gg_memory_wrap(f->device, GG_MEMORY_PINNED, gg_memory_pointer(whole), 64,
                                        count_release, &released, &part),
                         GG_OK);
        assert_int_equal(gg_memory_record_use(part, f->second), GG_OK);
        gg_memory_release(part);
        alloc_and_free(f, BLOCK, stream); /* drains once in a while */
        const int left = i + 1 - atomic_load(&released);
        most = left > most ? left : most;
    }
    release_crowd(f, &crowd);
    gg_memory_release(whole);
    assert_in_range(most, 0, 200);
}

static void a_synchronized_device_leaves_nothing_behind(void **state)
{
    struct fixture *f = *state;
    static atomic_int released;
    for (int i = 0; i < AT_ONCE; i++)
        gg_memory_release(wrap(f, f->stream, &released));
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), AT_ONCE);
}

static void a_wait_releases_what_its_stream_used_beside_many_busy_streams(void **state)
{
    struct fixture *f = *state;
    static struct crowd crowd;
    need_crowd(f);
    static atomic_int others, released;
    gg_stream *unused = NULL;
    void *gate = hold_first(f, f->second); /* since it is opened first */
    make_crowd(f, &crowd);
    gg_memory_release(wrap(f, f->second, &released));
    let_the_crowd_use(f, &crowd, &others); /* what was released last is examined first */
    assert_int_equal(gg_stream_create(f->device, 0, 0, &unused), GG_OK); /* drains */
    gg_stream_release(unused);
    assert_int_equal(atomic_load(&released), 0);
    gate_open(gate);
    finish(f->second);
    assert_int_equal(atomic_load(&released), 1);
    assert_int_equal(atomic_load(&others), 0);
    release_crowd(f, &crowd);
    assert_int_equal(atomic_load(&others), CROWD);
}

/* More than may wait until no stream works. Returns how many of ten blocks are not freed yet; -1 without memory. */
static int release_much_pinned(struct fixture *f)
{
    const size_t nbytes = (size_t)257 << 20; /* which the pool does not keep */
    for (int i = 0; i < 10; i++) {
        gg_memory *memory = NULL;
        if (gg_memory_alloc(f->device, GG_MEMORY_PINNED, nbytes, NULL, &memory))
            return -1;
        assert_int_equal(gg_memory_record_use(memory, f->second), GG_OK);
        gg_memory_release(memory);
    }
    return (int)(figures_of(f->device, GG_MEMORY_PINNED).reserved_bytes / nbytes);
}

static void assert_most_was_freed(int left)
{
    if (left < 0)
        skip_because("less than 3 GiB can be pinned");
    assert_in_range(left, 0, 7); /* a simulated driver may say four times that it is busy */
}

static void much_pinned_memory_is_freed_when_its_work_is_over(void **state)
{
    assert_most_was_freed(release_much_pinned(*state));
}

/* On other backends the free itself waits for them. */
static void much_pinned_memory_is_freed_beside_many_busy_streams(void **state)
{
    struct fixture *f = *state;
    static struct crowd crowd;
    need_crowd(f);
    struct gg_device_info info = {.struct_size = sizeof info};
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    if (info.flags & GG_DEVICE_SHARED_DEFAULT)
        skip_because("the driver waits before it frees");
    make_crowd(f, &crowd);
    const int left = release_much_pinned(f);
    release_crowd(f, &crowd);
    assert_most_was_freed(left);
}

/* ---- objects that no ticket announces ---- */

#define BATCH 500
#define STEPS 10
#define IN_USE 2000

/* Each borrows the native event of @p event, and counts its destruction. */
static void borrow_and_release(struct fixture *f, gg_event *event, int count, atomic_int *released)
{
    uint64_t handles[4] = {0};
    assert_int_equal(gg_event_native(event, handles), GG_OK);
    for (int i = 0; i < count; i++) {
        gg_event *borrowed = NULL;
        assert_int_equal(gg_event_borrow(f->device, handles[0], count_release, released, &borrowed),
                         GG_OK);
        gg_event_release(borrowed);
    }
}

/* In each step events are released in use, and become idle: how many are not destroyed at the end? */
static int release_events_in_use(struct fixture *f)
{
    static atomic_int released;
    gg_event *event = new_event(f, 0);
    for (int step = 0; step < STEPS; step++) {
        gg_stream *unused = NULL;
        void *gate = hold(f, f->second);
        assert_int_equal(gg_event_record(event, f->second), GG_OK);
        borrow_and_release(f, event, BATCH, &released);
        assert_int_equal(gg_stream_create(f->device, 0, 0, &unused), GG_OK); /* drains */
        gg_stream_release(unused);
        gate_open(gate);
        finish(f->second);
    }
    return STEPS * BATCH - atomic_load(&released);
}

static void need_borrowed_events(struct fixture *f)
{
    need(f, GG_OP_event_native);
    need(f, GG_OP_event_borrow);
}

static void idle_events_do_not_pile_up_behind_events_in_use(void **state)
{
    struct fixture *f = *state;
    static atomic_int released;
    gg_event *event = new_event(f, 0);
    need_borrowed_events(f);
    need_two_gates();
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_event_record(event, f->stream), GG_OK);
    borrow_and_release(f, event, IN_USE, &released);
    const int left = release_events_in_use(f);
    gate_open(gate);
    assert_in_range(left, 0, STEPS * BATCH / 3);
}

static void idle_events_do_not_pile_up_behind_memory_that_unknown_streams_use(void **state)
{
    struct fixture *f = *state;
    static atomic_int released;
    need_borrowed_events(f);
    for (int i = 0; i < IN_USE; i++)
        gg_memory_release(wrap(f, NULL, &released));
    assert_in_range(release_events_in_use(f), 0, STEPS * BATCH / 3);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(atomic_load(&released), IN_USE);
}

/* ---- attempts ---- */

static void attempts_without_a_driver_call_fail_only_once_in_a_while(void **state)
{
    struct fixture *f = *state;
    static atomic_int released;
    int failures = 0;
    need_cached_blocks(f);
    void *gate = hold(f, f->stream);
    gg_memory_release(wrap(f, f->stream, &released)); /* there is always something to drain */
    for (int i = 0; i < 200; i++) {
        gg_memory *memory = NULL;
        const gg_status status =
            gg_memory_try_alloc(f->device, GG_MEMORY_DEVICE, BLOCK, f->second, &memory);
        failures += status != GG_OK;
        if (!status)
            gg_memory_release(memory);
    }
    gate_open(gate);
    assert_in_range(failures, 1, 10);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(more_objects_than_a_drain_examines_do_not_pile_up),
    cmocka_unit_test(memory_of_others_on_many_streams_does_not_pile_up_while_blocks_are_allocated),
    cmocka_unit_test(memory_of_others_does_not_pile_up_while_work_is_queued),
    cmocka_unit_test(memory_of_others_does_not_pile_up_while_kernels_are_launched),
    cmocka_unit_test(memory_of_others_does_not_pile_up_while_graphs_are_launched),
    cmocka_unit_test(memory_of_others_does_not_pile_up_while_other_devices_copy),
    cmocka_unit_test(a_copy_to_the_host_returns_memory_of_others),
    cmocka_unit_test(much_exported_memory_of_others_is_returned),
    cmocka_unit_test(a_block_is_reused_however_much_else_is_released),
    cmocka_unit_test(a_block_is_reused_beside_a_stream_that_stays_busy),
    cmocka_unit_test(a_block_is_reused_however_many_other_streams_are_busy),
    cmocka_unit_test(blocks_do_not_pile_up_beside_busy_streams_with_released_objects),
    cmocka_unit_test(blocks_of_idle_streams_are_reused_beside_as_many_busy_streams),
    cmocka_unit_test(parts_of_pinned_memory_do_not_pile_up_beside_busy_streams),
    cmocka_unit_test(a_synchronized_device_leaves_nothing_behind),
    cmocka_unit_test(a_wait_releases_what_its_stream_used_beside_many_busy_streams),
    cmocka_unit_test(much_pinned_memory_is_freed_when_its_work_is_over),
    cmocka_unit_test(much_pinned_memory_is_freed_beside_many_busy_streams),
    cmocka_unit_test(idle_events_do_not_pile_up_behind_events_in_use),
    cmocka_unit_test(idle_events_do_not_pile_up_behind_memory_that_unknown_streams_use),
    cmocka_unit_test(attempts_without_a_driver_call_fail_only_once_in_a_while),
};
static const struct scenario scenarios[] = {{"two_gates", two_gates},
                                            {"waiting_crowd", waiting_crowd}};
SUITE_AND_SCENARIOS(drain, tests, scenarios);
