/* test_calls.c: how many driver calls each operation makes, counted by a simulated driver.
 *
 * Commands and questions are counted apart. Some questions cannot be saved: whether another library has begun a capture of
 * the stream, or has made another device current. Level Zero passes arguments and orders commands by calls of their own. */
#include "counts.h"
#include "kernels.h"

#define REPEATS 40 /* more than the ring has slots */

/* ---- operations ---- */

struct operation {
    struct fixture *f;
    gg_stream *stream;
    gg_memory *memory, *other, *pinned;
    gg_event *event;
    gg_kernel *kernel;
    gg_graph *graph;
    struct scaling scaling;
    void (*run)(struct operation *self);
};

static void make_operation(struct fixture *f, struct operation *self)
{
    need_counts(f);
    *self = (struct operation){.f = f,
                               .stream = f->stream,
                               .memory = new_memory(f, 4096),
                               .other = new_memory(f, 4096),
                               .pinned = new_pinned(f, 4096, 1),
                               .event = new_event(f, 0)};
    finish(f->stream);
}

/* The most calls of one operation. Fewer are right: Level Zero needs none for an event of an idle stream. */
struct most {
    int commands, others;
};

/* The first call is not counted: it may create what the others reuse. */
static void assert_calls(struct operation *self, void (*run)(struct operation *), struct most most)
{
    gg_scope *scope; /* so that no call has to make the device current */
    assert_int_equal(gg_scope_enter(self->f->device, NULL, &scope), GG_OK);
    run(self);
    for (int i = 0; i < REPEATS; i++) {
        finish(self->stream);
        const struct counts before = counts_now();
        run(self);
        const struct made made = made_since(&before);
        if (made.commands > most.commands || made.others > most.others)
            fail_msg("%d commands and %d other calls instead of %d and %d:%s", made.commands,
                     made.others, most.commands, most.others, made.names);
    }
    assert_int_equal(gg_scope_leave(scope), GG_OK);
}

static void launch(struct operation *self)
{
    assert_int_equal(gg_kernel_launch(self->kernel, &self->scaling.call.launch, self->stream),
                     GG_OK);
}

static void a_launch_is_one_command(void **state)
{
    struct operation op;
    make_operation(*state, &op);
    op.kernel = kernel_of(*state, "scale");
    make_scaling(*state, &op.scaling);
    finish(op.stream);
    assert_calls(&op, launch, (struct most){1, 5});
    gg_kernel_release(op.kernel);
}

static void launch_graph(struct operation *self)
{
    assert_int_equal(gg_graph_launch(self->graph, self->stream), GG_OK);
}

/* Whether this launch lets a driver record the graph that cannot capture the streams of programs. */
static bool launch_records(struct operation *op)
{
    const struct counts before = counts_now();
    launch_graph(op);
    const struct made made = made_since(&before);
    return strstr(made.names, "zeGraphInstantiateExt") != NULL;
}

/* Of 100 operations. The driver may record them at the second launch: then each later one is one command. */
static void assert_calls_of_graph(struct fixture *f, struct most most)
{
    struct operation op;
    make_operation(f, &op);
    assert_int_equal(gg_graph_begin_capture(op.stream), GG_OK);
    for (int i = 0; i < 100; i++)
        assert_int_equal(fill_bytes(i % 2 ? op.memory : op.other, 7, op.stream), GG_OK);
    assert_int_equal(gg_graph_end_capture(op.stream, &op.graph), GG_OK);
    launch_graph(&op);
    const bool recorded = launch_records(&op);
    finish(op.stream);
    assert_calls(&op, launch_graph, recorded ? (struct most){1, 0} : most);
    gg_graph_release(op.graph);
}

static void a_graph_of_many_operations_is_launched_by_one_call(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_capture_begin);
    need(f, GG_OP_stream_capturing); /* else the core replays the operations */
    assert_calls_of_graph(f, (struct most){1, 0});
}

static void a_graph_that_the_core_replays_makes_the_calls_of_its_operations(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_capture_begin);
    if (gg_device_supports(f->device, GG_OP_stream_capturing))
        skip_because("the backend has graphs of its own");
    assert_calls_of_graph(f, (struct most){100, 100});
}

static void record(struct operation *self)
{
    assert_int_equal(gg_event_record(self->event, self->stream), GG_OK);
}

static void recording_an_event_is_one_command(void **state)
{
    struct operation op;
    make_operation(*state, &op);
    assert_calls(&op, record, (struct most){1, 1});
}

static void query(struct operation *self)
{
    assert_true(gg_event_query(self->event) <= GG_NOT_READY);
}

static void querying_an_event_is_one_command(void **state)
{
    struct operation op;
    make_operation(*state, &op);
    assert_int_equal(gg_event_record(op.event, op.stream), GG_OK);
    assert_calls(&op, query, (struct most){1, 1});
}

static void wait_for_event(struct operation *self)
{
    assert_int_equal(gg_stream_wait_event(self->stream, self->event), GG_OK);
}

static void waiting_for_an_event_is_one_command(void **state)
{
    struct operation op;
    make_operation(*state, &op);
    assert_int_equal(gg_event_record(op.event, op.f->second), GG_OK);
    assert_calls(&op, wait_for_event, (struct most){1, 1});
}

static void wait_for_stream(struct operation *self)
{
    assert_int_equal(gg_stream_wait_stream(self->stream, self->f->second), GG_OK);
}

static void waiting_for_a_stream_is_two_commands(void **state)
{
    struct operation op;
    make_operation(*state, &op);
    assert_calls(&op, wait_for_stream, (struct most){2, 2});
}

static void copy_up(struct operation *self)
{
    assert_int_equal(
        copy(at(self->memory, 0), at(self->pinned, 0), 4096, self->stream, GG_COPY_ASYNC), GG_OK);
}

static void copy_down(struct operation *self)
{
    assert_int_equal(
        copy(at(self->pinned, 0), at(self->memory, 0), 4096, self->stream, GG_COPY_ASYNC), GG_OK);
}

static void copy_within(struct operation *self)
{
    assert_int_equal(copy(at(self->memory, 0), at(self->other, 0), 4096, self->stream, 0), GG_OK);
}

static void a_queued_copy_is_one_command(void **state)
{
    struct operation op;
    make_operation(*state, &op);
    assert_calls(&op, copy_up, (struct most){1, 1});
    assert_calls(&op, copy_down, (struct most){1, 1});
    assert_calls(&op, copy_within, (struct most){1, 1});
}

static void upload(struct operation *self)
{
    static const unsigned char bytes[1024];
    assert_int_equal(copy(at(self->memory, 0), host_at(bytes), sizeof bytes, self->stream, 0),
                     GG_OK);
}

static void an_upload_of_pageable_memory_is_one_command(void **state)
{
    struct operation op;
    make_operation(*state, &op);
    assert_calls(&op, upload, (struct most){1, 1});
}

/* Other libraries can queue work on such a stream, or before it, that writes to memory which only the driver knows. The question is one
 * call, between two that exchange the capture mode if the driver may otherwise end a capture. */
static void assert_upload_asks_once(struct operation *op)
{
    const bool relaxes = gg_device_supports(op->f->device, GG_OP_capture_mode) &&
                         !gg_device_supports(op->f->device, GG_OP_pointer_known);
    if (!gg_device_supports(op->f->device, GG_OP_pointer_info)) /* a driver that cannot be asked */
        assert_calls(op, upload, (struct most){1, 2});
    else
        assert_calls(op, upload, relaxes ? (struct most){4, 2} : (struct most){2, 1});
}

static void an_upload_on_a_blocking_stream_asks_for_the_memory_once(void **state)
{
    struct operation op;
    make_operation(*state, &op);
    assert_int_equal(gg_stream_create(op.f->device, 0, 0, &op.stream), GG_OK);
    assert_upload_asks_once(&op);
    gg_stream_release(op.stream);
}

static void an_upload_on_the_default_stream_asks_for_the_memory_once(void **state)
{
    struct operation op;
    make_operation(*state, &op);
    assert_int_equal(gg_device_default_stream(op.f->device, &op.stream), GG_OK);
    assert_upload_asks_once(&op);
}

static void fill(struct operation *self)
{
    assert_int_equal(fill_bytes(self->memory, 7, self->stream), GG_OK);
}

static void a_fill_is_one_command(void **state)
{
    struct operation op;
    make_operation(*state, &op);
    assert_calls(&op, fill, (struct most){1, 1});
}

static void allocate_and_release(struct operation *self)
{
    for (size_t nbytes = 1; nbytes <= MANY_BYTES; nbytes *= 32) {
        gg_memory *memory = NULL;
        assert_int_equal(
            gg_memory_alloc(self->f->device, GG_MEMORY_DEVICE, nbytes, self->stream, &memory),
            GG_OK);
        gg_memory_release(memory);
    }
}

static void allocate_and_release_pinned(struct operation *self)
{
    gg_memory *memory = NULL;
    assert_int_equal(gg_memory_alloc(self->f->device, GG_MEMORY_PINNED, 4096, NULL, &memory), GG_OK);
    gg_memory_release(memory);
}

static void an_allocation_from_the_pool_makes_no_call(void **state)
{
    struct operation op;
    make_operation(*state, &op);
    assert_calls(&op, allocate_and_release, (struct most){0, 0});
    assert_calls(&op, allocate_and_release_pinned, (struct most){0, 0});
}

/* ---- with many streams ---- */

#define MANY 300
#define FEWER 50
#define ON_EACH ((size_t)5 << 18) /* too large for a slab */

struct crowd {
    int count;
    gg_stream *streams[MANY];
    void *gate;
};

/* Streams that wait for one that is held. Each has a free block, and @p retired a block that the next stream uses. */
static void make_crowd(struct fixture *f, struct crowd *crowd, bool retired)
{
    gg_memory *memory[MANY];
    crowd->gate = hold(f, f->stream);
    for (int i = 0; i < crowd->count; i++) {
        assert_int_equal(gg_stream_create(f->device, GG_STREAM_NONBLOCKING, 0, &crowd->streams[i]),
                         GG_OK);
        assert_int_equal(gg_stream_wait_stream(crowd->streams[i], f->stream), GG_OK);
        assert_int_equal(
            gg_memory_alloc(f->device, GG_MEMORY_DEVICE, ON_EACH, crowd->streams[i], &memory[i]),
            GG_OK);
        assert_int_equal(gg_fill(memory[i], 0, "", 1, 256, crowd->streams[i]), GG_OK);
    }
    for (int i = 0; i < crowd->count; i++) {
        if (retired)
            assert_int_equal(
                gg_memory_record_use(memory[i], crowd->streams[(i + 1) % crowd->count]), GG_OK);
        gg_memory_release(memory[i]);
    }
}

static void release_crowd(struct fixture *f, struct crowd *crowd)
{
    gate_open(crowd->gate);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    for (int i = 0; i < crowd->count; i++)
        gg_stream_release(crowd->streams[i]);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    gg_trim();
}

/* The calls of an allocation beside so many busy streams. @p pinned: memory of the pinned pool is freed before. */
static struct made made_beside(struct fixture *f, int count, bool retired, bool pinned)
{
    static struct crowd crowd;
    gg_memory *memory = NULL, *freed = NULL;
    if (pinned)
        assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_PINNED, ON_EACH, NULL, &freed), GG_OK);
    crowd.count = count;
    make_crowd(f, &crowd, retired);
    gg_memory_release(freed);
    const struct counts before = counts_now();
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, ON_EACH, f->second, &memory),
                     GG_OK);
    const struct made made = made_since(&before);
    gg_memory_release(memory);
    release_crowd(f, &crowd);
    return made;
}

/* However many streams are busy, an allocation makes equally many calls. On Level Zero up to two more per poll create or reset
 * its event: the events of earlier polls are not all used again. */
static void assert_few_polls(struct fixture *f, bool retired, bool pinned)
{
    made_beside(f, MANY, retired, pinned); /* creates the events of polls */
    const struct made few = made_beside(f, FEWER, retired, pinned);
    const struct made many = made_beside(f, MANY, retired, pinned);
    const int more = many.commands + many.others - few.commands - few.others;
    const bool creates = !strcmp(gg_device_backend(f->device), "ze");
    if (many.marks != few.marks || more < 0 || more > (creates ? 2 * few.marks : 0))
        fail_msg("an allocation makes these driver calls beside %d busy streams:%s\n"
                 "and these beside %d:%s",
                 FEWER, few.names, MANY, many.names);
    assert_in_range(few.marks, 1, FEWER - 1);
}

static void an_allocation_polls_few_of_many_streams_with_free_blocks(void **state)
{
    need_counts(*state);
    assert_few_polls(*state, false, false);
}

static void an_allocation_polls_few_of_many_streams_that_use_released_blocks(void **state)
{
    need_counts(*state);
    assert_few_polls(*state, true, false);
}

static void a_block_of_a_stream_that_is_known_to_be_done_is_allocated_without_a_poll(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = NULL, *other = NULL;
    need_counts(f);
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, ON_EACH, f->stream, &memory),
                     GG_OK);
    void *pointer = gg_memory_pointer(memory);
    assert_int_equal(gg_fill(memory, 0, "", 1, 256, f->stream), GG_OK);
    gg_memory_release(memory);
    finish(f->stream);
    const struct counts before = counts_now();
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, ON_EACH, f->second, &other),
                     GG_OK);
    const struct made made = made_since(&before);
    assert_ptr_equal(gg_memory_pointer(other), pointer);
    gg_memory_release(other);
    if (made.commands + made.others)
        fail_msg("the allocation makes driver calls:%s", made.names);
}

/* ---- blocks of which each is used by the stream after the one that it was allocated on ---- */

#define IN_TURN ((size_t)8 << 10)
#define WAITING ((uint64_t)24 << 20) /* where so much waits, drains poll more streams */
#define TURNS 2048

static void add_made(const struct counts *before, struct made *sum)
{
    const struct made made = made_since(before);
    sum->commands += made.commands;
    sum->others += made.others;
}

/* An allocation and a release, whose calls are added to @p sum. */
static void allocate_in_turn(struct fixture *f, gg_stream *stream, gg_stream *user, struct made *sum)
{
    gg_memory *memory = NULL;
    struct counts before = counts_now();
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, IN_TURN, stream, &memory), GG_OK);
    add_made(&before, sum);
    assert_int_equal(gg_fill(memory, 0, "", 1, 256, user), GG_OK);
    before = counts_now();
    gg_memory_release(memory);
    add_made(&before, sum);
}

static struct made made_in_turn(struct fixture *f, gg_stream *const *streams)
{
    struct made ignored = {.commands = 0}, made = {.commands = 0};
    const int before = TURNS + (int)(WAITING / IN_TURN);
    gg_scope *scope; /* so that no call has to make the device current */
    assert_int_equal(gg_scope_enter(f->device, NULL, &scope), GG_OK);
    for (int i = 0; i < before + TURNS; i++)
        allocate_in_turn(f, streams[i % FEWER], streams[(i + 1) % FEWER],
                         i < before ? &ignored : &made);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    return made;
}

/* On Level Zero a poll also resets the event of the one before. */
static void blocks_that_busy_streams_use_need_few_calls(void **state)
{
    static struct crowd crowd;
    struct fixture *f = *state;
    need_counts(f);
    crowd.count = FEWER;
    make_crowd(f, &crowd, false);
    const int most = strcmp(gg_device_backend(f->device), "ze") == 0 ? TURNS / 3 : TURNS / 7;
    const struct made made = made_in_turn(f, crowd.streams);
    release_crowd(f, &crowd);
    if (made.commands + made.others > most)
        fail_msg("%d pairs make %d driver calls", TURNS, made.commands + made.others);
}

/* A pool of which more is cached than its threshold allows needs no poll for the memory of another. */
static void an_allocation_polls_few_streams_where_too_much_pinned_memory_is_cached(void **state)
{
    struct fixture *f = *state;
    need_counts(f);
    assert_int_equal(gg_pool_set_release_threshold(f->device, GG_MEMORY_PINNED, 0), GG_OK);
    assert_few_polls(f, false, true);
}

/* A drain examines each twice at most. */
static void a_poll_of_a_released_event_is_one_call(void **state)
{
    struct fixture *f = *state;
    gg_event *events[REPEATS];
    gg_stream *unused = NULL;
    need_counts(f);
    void *gate = hold(f, f->stream);
    for (int i = 0; i < REPEATS; i++) {
        assert_int_equal(gg_event_create(f->device, 0, &events[i]), GG_OK);
        assert_int_equal(gg_event_record(events[i], f->stream), GG_OK);
    }
    for (int i = 0; i < REPEATS; i++)
        gg_event_release(events[i]);
    const struct counts before = counts_now();
    assert_int_equal(gg_stream_create(f->device, 0, 0, &unused), GG_OK); /* drains */
    const struct made made = made_since(&before);
    gate_open(gate);
    gg_stream_release(unused);
    if (made.commands + made.others >= 3 * REPEATS)
        fail_msg("to poll %d events takes %d driver calls:%s", REPEATS, made.commands + made.others,
                 made.names);
}

static void ask_for_what_is_known(struct operation *self)
{
    uint64_t handles[4];
    gg_stream *current;
    struct gg_pool_stats stats = {.struct_size = sizeof stats};
    assert_int_equal(gg_stream_native(self->stream, handles), GG_OK);
    assert_int_equal(gg_current_stream(self->f->device, &current), GG_OK);
    gg_stream_release(current);
    assert_int_equal(gg_pool_stats(self->f->device, GG_MEMORY_DEVICE, &stats), GG_OK);
}

static void handles_and_statistics_of_the_pool_need_no_call(void **state)
{
    struct operation op;
    need(*state, GG_OP_stream_native);
    make_operation(*state, &op);
    assert_calls(&op, ask_for_what_is_known, (struct most){0, 0});
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_launch_is_one_command),
    cmocka_unit_test(a_graph_of_many_operations_is_launched_by_one_call),
    cmocka_unit_test(a_graph_that_the_core_replays_makes_the_calls_of_its_operations),
    cmocka_unit_test(recording_an_event_is_one_command),
    cmocka_unit_test(querying_an_event_is_one_command),
    cmocka_unit_test(waiting_for_an_event_is_one_command),
    cmocka_unit_test(waiting_for_a_stream_is_two_commands),
    cmocka_unit_test(a_queued_copy_is_one_command),
    cmocka_unit_test(an_upload_of_pageable_memory_is_one_command),
    cmocka_unit_test(an_upload_on_a_blocking_stream_asks_for_the_memory_once),
    cmocka_unit_test(an_upload_on_the_default_stream_asks_for_the_memory_once),
    cmocka_unit_test(a_fill_is_one_command),
    cmocka_unit_test(an_allocation_from_the_pool_makes_no_call),
    cmocka_unit_test(an_allocation_polls_few_of_many_streams_with_free_blocks),
    cmocka_unit_test(an_allocation_polls_few_of_many_streams_that_use_released_blocks),
    cmocka_unit_test(a_block_of_a_stream_that_is_known_to_be_done_is_allocated_without_a_poll),
    cmocka_unit_test(blocks_that_busy_streams_use_need_few_calls),
    cmocka_unit_test(an_allocation_polls_few_streams_where_too_much_pinned_memory_is_cached),
    cmocka_unit_test(a_poll_of_a_released_event_is_one_call),
    cmocka_unit_test(handles_and_statistics_of_the_pool_need_no_call),
};
SUITE(calls, tests);
