/* test_launch.c: kernel launches: order, uses of memory, arguments, and what is refused before a
 * kernel runs. */
#include "kernels.h"

static void assert_refused(struct fixture *f, gg_kernel *kernel, struct scaling *s, const char *word)
{
    assert_int_equal(gg_kernel_launch(kernel, &s->call.launch, f->stream), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("scale");
    assert_message_has(word);
}

static void a_kernel_computes_its_result(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    make_scaling(f, &s);
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_OK);
    finish(f->stream);
    assert_floats(f, s.memory, 6);
    gg_kernel_release(kernel);
}

static void a_kernel_without_arguments_runs(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "nothing");
    struct call call;
    call_begin(&call, NULL, 0);
    assert_int_equal(gg_kernel_launch(kernel, &call.launch, f->stream), GG_OK);
    finish(f->stream);
    assert_int_equal(gg_kernel_parameter_count(kernel), 0);
    gg_kernel_release(kernel);
}

static void a_launch_returns_when_it_is_queued(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    make_scaling(f, &s);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_OK);
    assert_true(busy(f->stream));
    s.by = 100; /* the values were read */
    gate_open(gate);
    finish(f->stream);
    assert_floats(f, s.memory, 6);
    gg_kernel_release(kernel);
}

static void a_launch_without_a_stream_waits_for_work_on_its_memory(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    const float five = 5;
    make_scaling(f, &s);
    finish(f->stream);
    gg_scope *scope;
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_fill(s.memory, 0, &five, sizeof five, LENGTH, f->stream), GG_OK);
    assert_int_equal(gg_scope_enter(f->device, f->second, &scope), GG_OK);
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, NULL), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    assert_true(busy(f->second));
    gate_open(gate);
    finish(f->second);
    assert_floats(f, s.memory, 10);
    gg_kernel_release(kernel);
}

static void a_launch_is_recorded_as_a_use_of_its_memory(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    float got[LENGTH];
    make_scaling(f, &s);
    finish(f->stream);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_OK);
    gg_scope *scope;
    assert_int_equal(gg_scope_enter(f->device, f->second, &scope), GG_OK);
    gg_event *event = new_event(f, 0);
    gg_memory *copied = new_memory(f, sizeof got);
    assert_int_equal(copy(at(copied, 0), at(s.memory, 0), sizeof got, NULL, 0), GG_OK);
    assert_int_equal(gg_event_record(event, f->second), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    assert_int_equal(gg_event_query(event), GG_NOT_READY);
    gate_open(gate);
    finish(f->second);
    assert_floats(f, copied, 6);
    gg_kernel_release(kernel);
}

/* Floats that the pool allocated for f->stream while earlier work of that stream still fills
 * them: gpuglue knows no use of the new block, only when it was allocated. */
static void make_scaling_in_a_block_that_came_back(struct fixture *f, struct scaling *s, void **gate)
{
    const size_t nbytes = (size_t)3 << 20; /* too large for a slab */
    const float three = 3;
    gg_memory *memory;
    make_scaling(f, s);
    finish(f->stream);
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, nbytes, f->stream, &memory),
                     GG_OK);
    s->pointer = gg_memory_pointer(memory);
    *gate = hold(f, f->stream);
    assert_int_equal(gg_fill(memory, 0, &three, sizeof three, LENGTH, f->stream), GG_OK);
    gg_memory_release(memory);
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, nbytes, f->stream, &s->memory),
                     GG_OK);
    assert_true(f->memory_count < OWNED_ROOM);
    f->memories[f->memory_count++] = s->memory;
    assert_ptr_equal(gg_memory_pointer(s->memory), s->pointer);
}

/* Other streams run in the meantime, so @p stream would have; a simulated driver reports "not
 * ready" a few times in any case. @p kernel has no arguments and has run before: drivers load
 * modules and code while the device is between two pieces of work, and would wait for the
 * blocked piece. */
static void assert_waits(struct fixture *f, gg_kernel *kernel, gg_stream *stream)
{
    gg_stream *other = new_stream(f);
    struct call call;
    call_begin(&call, NULL, 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(gg_kernel_launch(kernel, &call.launch, other), GG_OK);
        finish(other);
    }
    for (int i = 0; i < 2000; i++)
        assert_true(busy(stream));
}

static gg_kernel *nothing_that_ran(struct fixture *f)
{
    gg_kernel *kernel = kernel_of(f, "nothing");
    struct call call;
    call_begin(&call, NULL, 0);
    assert_int_equal(gg_kernel_launch(kernel, &call.launch, f->stream), GG_OK);
    finish(f->stream);
    return kernel;
}

static void a_launch_on_another_stream_waits_for_the_allocation_of_its_memory(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale"), *nothing = nothing_that_ran(f);
    struct scaling s;
    void *gate;
    make_scaling_in_a_block_that_came_back(f, &s, &gate);
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->second), GG_OK);
    assert_waits(f, nothing, f->second);
    gate_open(gate);
    finish(f->second);
    assert_floats(f, s.memory, 6);
    gg_kernel_release(nothing);
    gg_kernel_release(kernel);
}

static void a_launch_without_a_stream_waits_for_the_allocation_of_its_memory(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale"), *nothing = nothing_that_ran(f);
    struct scaling s;
    gg_scope *scope;
    void *gate;
    make_scaling_in_a_block_that_came_back(f, &s, &gate);
    assert_int_equal(gg_scope_enter(f->device, f->second, &scope), GG_OK);
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, NULL), GG_OK);
    assert_int_equal(gg_scope_leave(scope), GG_OK);
    assert_waits(f, nothing, f->second);
    gate_open(gate);
    finish(f->second);
    assert_floats(f, s.memory, 6);
    gg_kernel_release(nothing);
    gg_kernel_release(kernel);
}

static void a_launch_on_a_given_stream_waits_for_no_other_work(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    const float five = 5;
    make_scaling(f, &s);
    finish(f->stream);
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_fill(s.memory, 0, &five, sizeof five, LENGTH, f->stream), GG_OK);
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->second), GG_OK);
    finish(f->second); /* the first stream is still held */
    assert_true(busy(f->stream));
    gate_open(gate);
    finish(f->stream);
    assert_floats(f, s.memory, 5);
    gg_kernel_release(kernel);
}

static void the_number_of_arguments_is_checked(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    make_scaling(f, &s);
    s.call.launch.argument_count = 2;
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("takes 3 arguments, got 2");
    pass(&s.call, &s.by, 4);
    pass(&s.call, &s.by, 4);
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("got 4");
    assert_floats(f, s.memory, 3);
    gg_kernel_release(kernel);
}

static void the_size_of_arguments_is_checked(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    make_scaling(f, &s);
    s.call.sizes[2] = 8;
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("argument 2 has 8 bytes where the kernel takes 4");
    assert_floats(f, s.memory, 3);
    gg_kernel_release(kernel);
}

static void a_block_or_grid_over_a_limit_is_refused_naming_it(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    make_scaling(f, &s);
    s.call.launch.block[0] = 2048;
    assert_refused(f, kernel, &s, "1024");
    s.call.launch.block[0] = 64;
    s.call.launch.block[1] = 64;
    assert_refused(f, kernel, &s, "threads per block");
    s.call.launch.block[1] = 0;
    assert_refused(f, kernel, &s, "block y is 0");
    s.call.launch.block[1] = 1;
    s.call.launch.grid[2] = 0;
    assert_refused(f, kernel, &s, "grid z is 0");
    s.call.launch.grid[2] = 1;
    s.call.launch.shared = 1u << 30;
    assert_refused(f, kernel, &s, "shared memory");
    assert_floats(f, s.memory, 3);
    gg_kernel_release(kernel);
}

static void a_grid_over_the_devices_limit_is_refused_naming_it(void **state)
{
    struct fixture *f = *state;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    make_scaling(f, &s);
    for (int axis = 0; axis < 3; axis++) {
        int64_t limit = 0;
        char number[24];
        if (gg_device_attribute(f->device, (gg_attribute)(GG_ATTR_MAX_GRID_X + axis), &limit) ||
            limit >= UINT32_MAX)
            continue;
        snprintf(number, sizeof number, "%lld", (long long)limit);
        s.call.launch.grid[axis] = (uint32_t)limit + 1;
        assert_refused(f, kernel, &s, number);
        s.call.launch.grid[axis] = 1;
    }
    assert_floats(f, s.memory, 3);
    gg_kernel_release(kernel);
}

static void memory_of_another_device_is_refused(void **state)
{
    struct fixture *f = *state;
    gg_device *other = other_device(f);
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    gg_memory *far;
    make_scaling(f, &s);
    assert_int_equal(gg_memory_alloc(other, GG_MEMORY_DEVICE, 64, NULL, &far), GG_OK);
    s.call.launch.memories = &far;
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_ERR_INVALID_ARGUMENT);
    assert_message_has("copy it first");
    gg_memory_release(far);
    assert_floats(f, s.memory, 3);
    gg_kernel_release(kernel);
}

static void threads_of_a_block_synchronize_at_a_barrier(void **state)
{
    struct fixture *f = *state;
    enum { BLOCKS = 3, THREADS = 64 };
    uint32_t values[BLOCKS * THREADS];
    gg_kernel *kernel = kernel_of(f, "reverse");
    struct call call;
    for (uint32_t i = 0; i < BLOCKS * THREADS; i++)
        values[i] = i;
    gg_memory *memory = new_memory_with(f, values, sizeof values);
    void *pointer = gg_memory_pointer(memory);
    call_begin(&call, &memory, 1);
    call.launch.grid[0] = BLOCKS;
    call.launch.block[0] = THREADS;
    call.launch.shared = THREADS * 4;
    pass(&call, &pointer, sizeof pointer);
    gg_status status = gg_kernel_launch(kernel, &call.launch, f->stream);
    if (status == GG_ERR_UNSUPPORTED) { /* no dynamic shared memory: the message says what to do */
        assert_message_has("local memory");
        gg_kernel_release(kernel);
        skip_because("kernels have no dynamic shared memory here");
    }
    assert_int_equal(status, GG_OK);
    finish(f->stream);
    read_back(f, memory, values, sizeof values);
    for (uint32_t i = 0; i < BLOCKS * THREADS; i++)
        assert_int_equal(values[i], i / THREADS * THREADS + THREADS - 1 - i % THREADS);
    gg_kernel_release(kernel);
}

static void arguments_of_every_size_are_passed(void **state)
{
    struct fixture *f = *state;
    struct {
        char letter;
        double number;
    } mixed = {'q', -0.5};
    const signed char a = -7;
    const uint16_t b = 65535;
    const int32_t c = -100000;
    const int64_t d = -(1ll << 40);
    const float e = 1.5f;
    const double g = 2.25;
    double got[8];
    gg_kernel *kernel = kernel_of(f, "say");
    gg_memory *memory = new_memory(f, sizeof got);
    void *pointer = gg_memory_pointer(memory);
    struct call call;
    call_begin(&call, &memory, 1);
    call.launch.block[0] = 1;
    pass(&call, &pointer, sizeof pointer);
    pass(&call, &a, sizeof a);
    pass(&call, &b, sizeof b);
    pass(&call, &c, sizeof c);
    pass(&call, &d, sizeof d);
    pass(&call, &e, sizeof e);
    pass(&call, &g, sizeof g);
    pass(&call, &mixed, sizeof mixed);
    assert_int_equal(gg_kernel_launch(kernel, &call.launch, f->stream), GG_OK);
    finish(f->stream);
    read_back(f, memory, got, sizeof got);
    const double expected[] = {-7, 65535, -100000, -1099511627776.0, 1.5, 2.25, 'q', -0.5};
    for (size_t i = 0; i < 8; i++)
        assert_true(got[i] == expected[i]);
    gg_kernel_release(kernel);
}

static void a_cooperative_launch_runs_or_is_unsupported(void **state)
{
    struct fixture *f = *state;
    int64_t able = 0;
    gg_kernel *kernel = kernel_of(f, "scale");
    struct scaling s;
    make_scaling(f, &s);
    s.call.launch.flags = GG_LAUNCH_COOPERATIVE;
    gg_device_attribute(f->device, GG_ATTR_COOPERATIVE_LAUNCH, &able);
    gg_status status = gg_kernel_launch(kernel, &s.call.launch, f->stream);
    assert_int_equal(status, able ? GG_OK : GG_ERR_UNSUPPORTED);
    finish(f->stream);
    assert_floats(f, s.memory, able ? 6 : 3);
    s.call.launch.flags = 64;
    assert_int_equal(gg_kernel_launch(kernel, &s.call.launch, f->stream), GG_ERR_INVALID_ARGUMENT);
    gg_kernel_release(kernel);
}

/* Its blocks could wait for blocks that have not begun. */
static void a_cooperative_grid_that_cannot_run_at_once_is_refused(void **state)
{
    struct fixture *f = *state;
    int64_t able = 0;
    struct scaling s;
    gg_device_attribute(f->device, GG_ATTR_COOPERATIVE_LAUNCH, &able);
    if (!able)
        skip_because("the device has no cooperative launches");
    gg_kernel *kernel = kernel_of(f, "scale");
    make_scaling(f, &s);
    s.call.launch.flags = GG_LAUNCH_COOPERATIVE;
    s.call.launch.grid[0] = 1u << 30;
    assert_fails(gg_kernel_launch(kernel, &s.call.launch, f->stream));
    finish(f->stream);
    assert_floats(f, s.memory, 3);
    gg_kernel_release(kernel);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_kernel_computes_its_result),
    cmocka_unit_test(a_kernel_without_arguments_runs),
    cmocka_unit_test(a_launch_returns_when_it_is_queued),
    cmocka_unit_test(a_launch_without_a_stream_waits_for_work_on_its_memory),
    cmocka_unit_test(a_launch_is_recorded_as_a_use_of_its_memory),
    cmocka_unit_test(a_launch_on_another_stream_waits_for_the_allocation_of_its_memory),
    cmocka_unit_test(a_launch_without_a_stream_waits_for_the_allocation_of_its_memory),
    cmocka_unit_test(a_launch_on_a_given_stream_waits_for_no_other_work),
    cmocka_unit_test(the_number_of_arguments_is_checked),
    cmocka_unit_test(the_size_of_arguments_is_checked),
    cmocka_unit_test(a_block_or_grid_over_a_limit_is_refused_naming_it),
    cmocka_unit_test(a_grid_over_the_devices_limit_is_refused_naming_it),
    cmocka_unit_test(memory_of_another_device_is_refused),
    cmocka_unit_test(threads_of_a_block_synchronize_at_a_barrier),
    cmocka_unit_test(arguments_of_every_size_are_passed),
    cmocka_unit_test(a_cooperative_launch_runs_or_is_unsupported),
    cmocka_unit_test(a_cooperative_grid_that_cannot_run_at_once_is_refused),
};
SUITE(launch, tests);
