/* test_owners.c: a copy keeps its owners alive until it has run, and releases them once, also on
 * failure. */
#include "conformance.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define TIMES 200

static const size_t sizes[] = {1, 4096, 65536, 65537, MANY_BYTES};

static int interrupt(void)
{
    return 1;
}

static gg_status copy_owned(struct gg_copy_operand dst, struct gg_copy_operand src, size_t nbytes,
                            gg_stream *stream, uint32_t flags, atomic_int released[2])
{
    dst.release = src.release = count_release;
    dst.owner = &released[0];
    src.owner = &released[1];
    return gg_copy(&dst, &src, nbytes, stream, flags);
}

static void assert_released(atomic_int released[2], int times)
{
    assert_int_equal(atomic_load(&released[0]), times);
    assert_int_equal(atomic_load(&released[1]), times);
}

static void owners_are_released_once_when_the_copy_is_done(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        atomic_int up[2] = {0}, down[2] = {0};
        char *bytes = calloc(1, sizes[i]);
        gg_memory *memory = new_memory(f, sizes[i]);
        assert_int_equal(copy_owned(at(memory, 0), host_at(bytes), sizes[i], f->stream, 0, up),
                         GG_OK);
        assert_int_equal(copy_owned(host_at(bytes), at(memory, 0), sizes[i], f->stream, 0, down),
                         GG_OK);
        finish(f->stream);
        assert_released(up, 1);
        assert_released(down, 1);
        free(bytes);
    }
}

static void owners_are_kept_until_a_queued_copy_has_run(void **state)
{
    struct fixture *f = *state;
    atomic_int released[2] = {0};
    gg_memory *pinned = new_pinned(f, 4096, 3), *memory = new_memory(f, 4096);
    void *gate = hold(f, f->stream);
    assert_int_equal(
        copy_owned(at(memory, 0), at(pinned, 0), 4096, f->stream, GG_COPY_ASYNC, released), GG_OK);
    assert_int_equal(gg_stream_query(f->stream), GG_NOT_READY);
    assert_released(released, 0);
    gate_open(gate);
    finish(f->stream);
    assert_released(released, 1);
}

static void a_drain_keeps_owners_of_copies_that_have_not_run(void **state)
{
    struct fixture *f = *state;
    atomic_int released[2] = {0};
    gg_memory *pinned = new_pinned(f, 4096, 3), *memory = new_memory(f, 4096);
    void *gate = hold(f, f->stream);
    assert_int_equal(
        copy_owned(at(memory, 0), at(pinned, 0), 4096, f->stream, GG_COPY_ASYNC, released), GG_OK);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_released(released, 0);
    gate_open(gate);
    finish(f->stream);
    assert_released(released, 1);
}

static void owners_are_released_when_the_copy_fails_too(void **state)
{
    struct fixture *f = *state;
    atomic_int past[2] = {0}, flags[2] = {0}, refused[2] = {0};
    char bytes[64];
    gg_memory *memory = new_memory(f, 32);
    assert_fails(copy_owned(at(memory, 0), host_at(bytes), 64, f->stream, 0, past));
    assert_released(past, 1);
    assert_fails(copy_owned(at(memory, 0), host_at(bytes), 8, f->stream, 0x80000000u, flags));
    assert_released(flags, 1);
    assert_fails(copy_owned(host_at(bytes), at(memory, 0), 8, f->stream,
                            GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC, refused));
    assert_released(refused, 1);
}

static void owners_are_released_when_there_is_nothing_to_copy(void **state)
{
    struct fixture *f = *state;
    atomic_int released[2] = {0};
    gg_memory *memory = new_memory(f, 32);
    assert_int_equal(copy_owned(at(memory, 0), host_at(NULL), 0, f->stream, 0, released), GG_OK);
    assert_released(released, 1);
}

static void both_memories_are_kept_until_the_copy_has_run(void **state)
{
    struct fixture *f = *state;
    struct gg_memory_stats stats = {.struct_size = sizeof stats};
    gg_memory *a = NULL, *b = NULL;
    void *gate = hold(f, f->stream);
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 64, NULL, &a), GG_OK);
    assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_PINNED, 64, NULL, &b), GG_OK);
    assert_int_equal(copy(at(a, 0), at(b, 0), 64, f->stream, GG_COPY_ASYNC), GG_OK);
    gg_memory_release(a);
    gg_memory_release(b);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
    assert_int_equal(gg_device_memory_stats(f->device, &stats), GG_OK);
    assert_int_equal(stats.retired_blocks, 2);
    gate_open(gate);
}

/* A thread that queries a stream continuously, except while it must pause. */
struct poller {
    gg_stream *stream;
    atomic_int asking, resting; /* asking < 0: the thread ends */
};

static void *ask(void *argument)
{
    struct poller *poller = argument;
    int asking;
    while ((asking = atomic_load(&poller->asking)) >= 0) {
        atomic_store(&poller->resting, !asking);
        if (!asking)
            sched_yield();
        else if (gg_stream_query(poller->stream) > GG_NOT_READY)
            return "a query failed";
    }
    return NULL;
}

static void set_asking(struct poller *poller, int asking)
{
    atomic_store(&poller->asking, asking);
    while (atomic_load(&poller->resting) == asking)
        sched_yield();
}

/* Slow, so that a copy is mostly done before its owners are recorded. */
static void sleep_after_a_copy(void *user, const struct gg_trace *trace)
{
    (void)user;
    if (trace->op == GG_OP_copy)
        usleep(200);
}

static bool drains(struct fixture *f, atomic_int released[2], int times)
{
    for (const uint64_t ends_at = now_ns() + HANG_NS; now_ns() < ends_at;) {
        if (atomic_load(&released[0]) == times && atomic_load(&released[1]) == times)
            return true;
        if (gg_device_trim(f->device))
            return false;
        sched_yield();
    }
    return false;
}

static void
a_drain_releases_owners_of_copies_that_completed_before_their_owners_were_recorded(void **state)
{
    static const struct gg_tracer tracer = {.struct_size = sizeof tracer,
                                            .post = sleep_after_a_copy};
    struct fixture *f = *state;
    struct poller poller = {.stream = f->stream};
    gg_memory *memory = new_memory(f, 64), *pinned = new_pinned(f, 64, 0);
    atomic_int released[2] = {0};
    pthread_t thread;
    void *problem = "";
    bool drained = true;
    assert_int_equal(pthread_create(&thread, NULL, ask, &poller), 0);
    gg_set_tracer(&tracer);
    for (int done = 1; done <= TIMES && drained; done++) {
        set_asking(&poller, 1);
        drained = !copy_owned(at(memory, 0), at(pinned, 0), 64, f->stream, GG_COPY_ASYNC, released);
        set_asking(&poller, 0);
        drained = drained && drains(f, released, done);
    }
    atomic_store(&poller.asking, -1);
    pthread_join(thread, &problem);
    assert_null(problem);
    assert_true(drained);
}

/* ---- interrupts ---- */

static void a_copy_that_waits_can_be_interrupted(void **state)
{
    struct fixture *f = *state;
    atomic_int released[2] = {0};
    char *bytes = calloc(1, MANY_BYTES);
    gg_memory *memory = new_memory(f, MANY_BYTES);
    void *gate = hold(f, f->stream);
    gg_set_wait_hook(interrupt);
    assert_int_equal(copy_owned(at(memory, 0), host_at(bytes), MANY_BYTES, f->stream, 0, released),
                     GG_ERR_INTERRUPTED);
    gg_set_wait_hook(NULL);
    gate_open(gate);
    finish(f->stream);
    assert_released(released, 1);
    assert_int_equal(copy(at(memory, 0), host_at(bytes), MANY_BYTES, f->stream, 0), GG_OK);
    free(bytes);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(owners_are_released_once_when_the_copy_is_done),
    cmocka_unit_test(owners_are_kept_until_a_queued_copy_has_run),
    cmocka_unit_test(a_drain_keeps_owners_of_copies_that_have_not_run),
    cmocka_unit_test(owners_are_released_when_the_copy_fails_too),
    cmocka_unit_test(owners_are_released_when_there_is_nothing_to_copy),
    cmocka_unit_test(both_memories_are_kept_until_the_copy_has_run),
    cmocka_unit_test(
        a_drain_releases_owners_of_copies_that_completed_before_their_owners_were_recorded),
    cmocka_unit_test(a_copy_that_waits_can_be_interrupted),
};
SUITE(owners, tests);
