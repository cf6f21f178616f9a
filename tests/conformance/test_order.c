/* test_order.c: on which stream work runs, and what it waits for. An operation without a stream
 * waits, on the device, for unfinished gpuglue work on its memory. With an explicit stream no
 * synchronization is added.
 *
 * Implicit operations are tested inside an entered stream, where they return when they are
 * queued: the stream is then busy although nothing else holds it, which shows what it waits for. */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define NBYTES 4096u

static bool shares_its_default_stream(struct fixture *f)
{
    struct gg_device_info info = {.struct_size = sizeof info};
    assert_int_equal(gg_device_info(f->device, &info), GG_OK);
    return info.flags & GG_DEVICE_SHARED_DEFAULT;
}

static gg_stream *default_stream(struct fixture *f)
{
    gg_stream *stream = NULL;
    assert_int_equal(gg_device_default_stream(f->device, &stream), GG_OK);
    return stream;
}

static gg_scope *enter(struct fixture *f, gg_stream *stream)
{
    gg_scope *scope = NULL;
    assert_int_equal(gg_scope_enter(f->device, stream, &scope), GG_OK);
    return scope;
}

/* A fill without a stream, queued on the second one. */
static void fill_on_second(struct fixture *f, gg_memory *memory, unsigned char value)
{
    gg_scope *scope = enter(f, f->second);
    assert_int_equal(fill_bytes(memory, value, NULL), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
}

/* ---- which stream ---- */

static void work_without_a_stream_runs_on_the_current_stream(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES);
    void *gate = hold(f, f->stream);
    gg_scope *scope = enter(f, f->stream);
    assert_int_equal(fill_bytes(memory, 0x31, NULL), GG_OK); /* returns: it is queued */
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    finish(f->second);
    assert_true(busy(f->stream));
    gate_open(gate);
    assert_filled(f, memory, NBYTES, 0x31);
}

static void work_without_a_stream_is_complete_where_the_default_stream_is_not_shared(void **state)
{
    struct fixture *f = *state;
    gg_memory *pinned = new_pinned(f, NBYTES, 0), *memory = new_memory(f, NBYTES);
    if (shares_its_default_stream(f))
        skip_because("the default stream is shared");
    assert_int_equal(fill_bytes(pinned, 0x32, NULL), GG_OK);
    assert_int_equal(*(char *)gg_memory_pointer(pinned), 0x32);
    assert_int_equal(copy(at(memory, 0), at(pinned, 0), NBYTES, NULL, GG_COPY_ASYNC), GG_OK);
    assert_false(busy(default_stream(f)));
    assert_int_equal(fill_bytes(memory, 0x33, NULL), GG_OK);
    assert_int_equal(copy(at(pinned, 0), at(memory, 0), NBYTES, NULL, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(*(char *)gg_memory_pointer(pinned), 0x33);
}

/* Large copies, small ones, fills and copies on the device may run on different engines. */
static void the_work_of_a_stream_keeps_its_order_on_all_engines(void **state)
{
    enum { LARGE = 1 << 18, SMALL = 1 << 10 };
    struct fixture *f = *state;
    gg_memory *up = new_pinned(f, LARGE, 0x41), *down = new_pinned(f, LARGE, 0);
    gg_memory *one = new_memory(f, LARGE), *other = new_memory(f, LARGE);
    void *gate = hold(f, f->stream);
    const struct gg_copy_operand edge = at(other, SMALL);
    assert_int_equal(copy(at(one, 0), at(up, 0), LARGE, f->stream, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(copy(at(other, 0), at(one, 0), LARGE, f->stream, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(fill_bytes(one, 0x42, f->stream), GG_OK);
    assert_int_equal(copy(at(other, 0), at(one, 0), SMALL, f->stream, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(copy(at(down, 0), at(other, 0), SMALL, f->stream, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(copy(at(down, SMALL), edge, LARGE - SMALL, f->stream, GG_COPY_ASYNC), GG_OK);
    gate_open(gate);
    finish(f->stream);
    const unsigned char *bytes = gg_memory_pointer(down);
    assert_int_equal(bytes[0], 0x42);
    assert_int_equal(bytes[SMALL - 1], 0x42);
    assert_int_equal(bytes[SMALL], 0x41);
    assert_int_equal(bytes[LARGE - 1], 0x41);
}

static void *opened_by_hook;

static int open_the_gate(void)
{
    gate_open(opened_by_hook);
    return 0;
}

/* The gate opens only when a call waits. */
static void a_fill_without_a_stream_is_complete_where_the_default_stream_is_not_shared(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES);
    if (shares_its_default_stream(f))
        skip_because("the default stream is shared");
    opened_by_hook = hold(f, default_stream(f));
    gg_set_wait_hook(open_the_gate);
    assert_int_equal(fill_bytes(memory, 0x34, NULL), GG_OK);
    assert_int_equal(gg_stream_query(default_stream(f)), GG_OK);
}

static void a_blocking_stream_is_ordered_with_a_shared_default_stream(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES);
    gg_stream *blocking = NULL;
    void *gate;
    if (!shares_its_default_stream(f))
        skip_because("the default stream is not shared");
    assert_int_equal(gg_stream_create(f->device, 0, 0, &blocking), GG_OK);
    gate = hold(f, blocking);
    assert_int_equal(fill_bytes(memory, 1, NULL), GG_OK);
    assert_int_equal(gg_stream_wait(default_stream(f), 20000000), GG_NOT_READY);
    gate_open(gate);
    finish(default_stream(f));
    gg_stream_release(blocking);
}

static void a_nonblocking_stream_is_not_ordered_with_the_default_stream(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES);
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 1, NULL), GG_OK);
    finish(default_stream(f));
    assert_true(busy(f->stream));
    gate_open(gate);
}

static void a_stream_of_another_device_is_refused(void **state)
{
    struct fixture *f = *state;
    gg_stream *theirs = NULL;
    char byte = 1;
    gg_memory *memory = new_memory(f, 16), *pinned = new_pinned(f, 16, 0);
    assert_int_equal(gg_device_default_stream(other_device(f), &theirs), GG_OK);
    assert_int_equal(copy(at(memory, 0), host_at(&byte), 1, theirs, 0), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(copy(at(pinned, 0), at(memory, 0), 1, theirs, 0), GG_ERR_INVALID_ARGUMENT);
    assert_int_equal(fill_bytes(memory, 1, theirs), GG_ERR_INVALID_ARGUMENT);
    assert_message_has(gg_device_backend(f->device));
}

/* ---- without a stream ---- */

static void an_implicit_copy_waits_for_unfinished_work_on_its_source(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES), *pinned = new_pinned(f, NBYTES, 0);
    void *gate = hold(f, f->stream);
    gg_scope *scope;
    assert_int_equal(fill_bytes(memory, 0x41, f->stream), GG_OK);
    scope = enter(f, f->second);
    assert_int_equal(copy(at(pinned, 0), at(memory, 0), NBYTES, NULL, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    assert_int_equal(gg_stream_wait(f->second, 2000000), GG_NOT_READY);
    gate_open(gate);
    finish(f->second);
    assert_int_equal(*(char *)gg_memory_pointer(pinned), 0x41);
}

static void an_implicit_write_waits_for_unfinished_reads(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES), *pinned = new_pinned(f, NBYTES, 0);
    void *gate;
    assert_int_equal(fill_bytes(memory, 0x42, f->stream), GG_OK);
    gate = hold(f, f->stream);
    assert_int_equal(copy(at(pinned, 0), at(memory, 0), NBYTES, f->stream, GG_COPY_ASYNC), GG_OK);
    fill_on_second(f, memory, 0x43);
    assert_int_equal(gg_stream_wait(f->second, 2000000), GG_NOT_READY);
    gate_open(gate);
    finish(f->second);
    assert_int_equal(*(char *)gg_memory_pointer(pinned), 0x42);
    assert_filled(f, memory, NBYTES, 0x43);
}

static void an_implicit_copy_between_blocks_waits_for_both_operands(void **state)
{
    struct fixture *f = *state;
    gg_memory *a = new_memory(f, NBYTES), *b = new_memory(f, NBYTES);
    gg_memory *order[2][2] = {{a, b}, {b, a}};
    assert_int_equal(fill_bytes(b, 0x33, f->stream), GG_OK);
    for (int i = 0; i < 2; i++) {
        void *gate = hold(f, f->stream);
        gg_scope *scope = enter(f, f->second);
        assert_int_equal(fill_bytes(a, 0x44, f->stream), GG_OK);
        assert_int_equal(copy(at(order[i][0], 0), at(order[i][1], 0), NBYTES, NULL, 0), GG_OK);
        assert_int_equal(gg_scope_leave(scope), GG_OK);
        assert_int_equal(gg_stream_wait(f->second, 2000000), GG_NOT_READY);
        gate_open(gate);
        finish(f->second);
    }
}

static void an_implicit_operation_waits_for_every_stream_that_used_the_memory(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES);
    gg_stream *streams[6];
    void *gates[6];
    for (size_t i = 0; i < 6; i++) {
        gates[i] = hold(f, streams[i] = new_stream(f));
        assert_int_equal(gg_fill(memory, i * 16, "x", 1, 16, streams[i]), GG_OK);
    }
    fill_on_second(f, memory, 0x45);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(gg_stream_wait(f->second, 1000000), GG_NOT_READY);
        gate_open(gates[i]);
    }
    assert_filled(f, memory, NBYTES, 0x45);
}

static void implicit_operations_wait_for_recorded_uses(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES);
    void *gate = hold(f, f->stream); /* work that gpuglue did not queue */
    assert_int_equal(gg_memory_record_use(memory, f->stream), GG_OK);
    fill_on_second(f, memory, 1);
    assert_int_equal(gg_stream_wait(f->second, 2000000), GG_NOT_READY);
    gate_open(gate);
    finish(f->second);
}

static void implicit_operations_do_not_wait_for_unrecorded_work(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES);
    void *gate = hold(f, f->stream);
    fill_on_second(f, memory, 1);
    finish(f->second);
    gate_open(gate);
}

static void an_implicit_copy_to_the_host_sees_work_queued_before_it(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, MANY_BYTES);
    for (unsigned char value = 1; value < 20; value++) {
        gg_stream *stream = value % 2 ? f->stream : f->second;
        finish(value % 2 ? f->second : f->stream);
        assert_int_equal(fill_bytes(memory, value, stream), GG_OK);
        assert_filled(f, memory, MANY_BYTES, value);
    }
}

static void an_implicit_operation_is_recorded_as_a_use(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES), *pinned = new_pinned(f, NBYTES, 0);
    void *gate = hold(f, f->stream);
    gg_scope *scope = enter(f, f->stream);
    assert_int_equal(fill_bytes(memory, 0x46, NULL), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    scope = enter(f, f->second);
    assert_int_equal(copy(at(pinned, 0), at(memory, 0), NBYTES, NULL, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    gate_open(gate);
    finish(f->second);
    assert_int_equal(*(char *)gg_memory_pointer(pinned), 0x46);
}

/* More streams than a block records without its lock, each used again and again. */
static void the_last_use_by_each_of_many_streams_counts(void **state)
{
    enum { MANY = 6 };
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES);
    gg_stream *streams[MANY];
    for (int i = 0; i < MANY; i++)
        streams[i] = new_stream(f);
    for (int held = 0; held < MANY; held++) {
        void *gate = hold(f, streams[held]);
        for (int i = 0; i < 3 * MANY; i++)
            assert_int_equal(gg_memory_record_use(memory, streams[i % MANY]), GG_OK);
        fill_on_second(f, memory, 2);
        assert_int_equal(gg_stream_wait(f->second, 2000000), GG_NOT_READY);
        gate_open(gate);
        finish(f->second);
    }
}

/* Another thread uses the block while a stream is being made to wait for its uses. */
struct interference {
    gg_stream *first, *fourth, *asking;
    gg_memory *memory;
    void *gate; /* on the first */
    atomic_int done, failures;
};

static void *end_one_use_and_add_another(void *argument)
{
    struct interference *interference = argument;
    gg_status status;
    gate_open(interference->gate);
    while ((status = gg_stream_query(interference->first)) == GG_NOT_READY)
        usleep(100); /* a long wait would need the stream's lock, which the caller of the tracer may hold */
    if (status || gg_fill(interference->memory, 0, "x", 1, 16, interference->fourth))
        atomic_fetch_add(&interference->failures, 1);
    return NULL;
}

static void interfere(void *user, const struct gg_trace *trace)
{
    struct interference *interference = user;
    pthread_t thread;
    if (trace->op != GG_OP_stream_wait_event || trace->stream != interference->asking ||
        atomic_exchange(&interference->done, 1))
        return;
    if (pthread_create(&thread, NULL, end_one_use_and_add_another, interference) ||
        pthread_join(thread, NULL))
        atomic_fetch_add(&interference->failures, 1);
}

static void no_use_is_missed_while_another_thread_adds_one(void **state)
{
    struct fixture *f = *state;
    gg_stream *streams[] = {new_stream(f), new_stream(f), new_stream(f)};
    void *gates[3];
    struct interference interference = {streams[0], f->stream, f->second, new_memory(f, NBYTES),
                                        NULL,       0,         0};
    struct gg_tracer tracer = {.struct_size = sizeof tracer, .user = &interference, .pre = interfere};
    gg_scope *scope;
    for (size_t i = 0; i < 3; i++) {
        gates[i] = hold(f, streams[i]);
        assert_int_equal(gg_fill(interference.memory, i * 16, "x", 1, 16, streams[i]), GG_OK);
    }
    interference.gate = gates[0];
    scope = enter(f, f->second);
    assert_int_equal(gg_set_tracer(&tracer), GG_OK);
    assert_int_equal(gg_fill(interference.memory, 16, "y", 1, 16, NULL), GG_OK);
    assert_int_equal(gg_set_tracer(NULL), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    gate_open(gates[2]); /* closed until now, so that this stream is queried first */
    assert_int_equal(atomic_load(&interference.failures), 0);
    assert_int_equal(gg_stream_wait(f->second, 2000000),
                     GG_NOT_READY); /* the second gate is closed */
    gate_open(gates[1]);
    finish(f->second);
}

/* ---- with a stream ---- */

static void an_explicit_stream_adds_no_synchronization(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES), *pinned = new_pinned(f, NBYTES, 0);
    assert_int_equal(fill_bytes(memory, 0x46, f->stream), GG_OK);
    finish(f->stream);
    void *gate = hold(f, f->stream);
    assert_int_equal(fill_bytes(memory, 0x47, f->stream), GG_OK);
    assert_int_equal(copy(at(pinned, 0), at(memory, 0), NBYTES, f->second, GG_COPY_ASYNC), GG_OK);
    assert_int_equal(gg_fill(memory, 0, "y", 1, 8, f->second), GG_OK);
    finish(f->second);
    assert_true(busy(f->stream));
    gate_open(gate);
}

static void an_explicit_stream_overrides_an_entered_one(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES);
    void *gate = hold(f, f->stream);
    gg_scope *scope = enter(f, f->stream);
    assert_int_equal(fill_bytes(memory, 1, f->second), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    finish(f->second);
    gate_open(gate);
}

static void a_completed_use_adds_no_wait(void **state)
{
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, NBYTES);
    void *gate;
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    finish(f->stream);
    gate = hold(f, f->stream); /* work on other memory, or on none */
    fill_on_second(f, memory, 2);
    finish(f->second);
    gate_open(gate);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(work_without_a_stream_runs_on_the_current_stream),
    cmocka_unit_test(work_without_a_stream_is_complete_where_the_default_stream_is_not_shared),
    cmocka_unit_test(a_fill_without_a_stream_is_complete_where_the_default_stream_is_not_shared),
    cmocka_unit_test(the_work_of_a_stream_keeps_its_order_on_all_engines),
    cmocka_unit_test(a_blocking_stream_is_ordered_with_a_shared_default_stream),
    cmocka_unit_test(a_nonblocking_stream_is_not_ordered_with_the_default_stream),
    cmocka_unit_test(a_stream_of_another_device_is_refused),
    cmocka_unit_test(an_implicit_copy_waits_for_unfinished_work_on_its_source),
    cmocka_unit_test(an_implicit_write_waits_for_unfinished_reads),
    cmocka_unit_test(an_implicit_copy_between_blocks_waits_for_both_operands),
    cmocka_unit_test(an_implicit_operation_waits_for_every_stream_that_used_the_memory),
    cmocka_unit_test(implicit_operations_wait_for_recorded_uses),
    cmocka_unit_test(implicit_operations_do_not_wait_for_unrecorded_work),
    cmocka_unit_test(an_implicit_copy_to_the_host_sees_work_queued_before_it),
    cmocka_unit_test(an_implicit_operation_is_recorded_as_a_use),
    cmocka_unit_test(the_last_use_by_each_of_many_streams_counts),
    cmocka_unit_test(no_use_is_missed_while_another_thread_adds_one),
    cmocka_unit_test(an_explicit_stream_adds_no_synchronization),
    cmocka_unit_test(an_explicit_stream_overrides_an_entered_one),
    cmocka_unit_test(a_completed_use_adds_no_wait),
};
SUITE(order, tests);
