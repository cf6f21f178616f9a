/* test_full_queue.c: a stream has room for a number of commands. A call that queues one more waits in the driver, and other
 * threads go on: with other streams, and with calls for the whole device. With a simulated driver, whose room can be set. */
#include "pool_blocks.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "../sim/sim_control.h"

#define ROOM 10
#define LARGE ((size_t)3 << 20) /* bytes; in no slab */

static struct {
    void (*room)(int commands);
    int (*waiting)(void);
} sim;

static int find_sim(struct dl_phdr_info *object, size_t size, void *data)
{
    void *library = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    (void)size;
    (void)data;
    if (!library)
        return 0;
    *(void **)&sim.room = dlsym(library, "sim_room");
    *(void **)&sim.waiting = dlsym(library, "sim_waiting");
    dlclose(library);
    return sim.room && sim.waiting;
}

/* What a thread does that comes to wait. */
struct waiter {
    struct fixture *f;
    gg_stream *full, *other; /* the first has no room */
    gg_memory *memory;       /* which it uses */
    void *gate;
    gg_status (*call)(struct waiter *self);
    gg_status status;
    gg_memory *allocated;
    pthread_t thread;
    atomic_bool ended;
};

static void *run_call(void *argument)
{
    struct waiter *self = argument;
    self->status = self->call(self);
    atomic_store(&self->ended, true);
    return NULL;
}

/* The stream is held, and has more work than there will be room for. */
static void occupy(struct fixture *f, struct waiter *self, gg_stream *full)
{
    *self = (struct waiter){.f = f, .full = full, .other = new_stream(f)};
    self->memory = new_memory(f, 4096);
    self->gate = hold_first(f, full);
    for (int i = 0; i < ROOM; i++)
        assert_int_equal(fill_bytes(self->memory, 1, full), GG_OK);
}

/* Returns when the call waits for room. */
static void start(struct waiter *self, gg_status (*call)(struct waiter *self))
{
    if (!dl_iterate_phdr(find_sim, NULL))
        skip_because("the driver is not simulated");
    self->call = call;
    sim.room(ROOM);
    assert_int_equal(pthread_create(&self->thread, NULL, run_call, self), 0);
    while (!sim.waiting() && !atomic_load(&self->ended))
        sched_yield();
}

static void end(struct waiter *self)
{
    const bool waited = !atomic_load(&self->ended);
    sim.room(0);
    gate_open(self->gate);
    pthread_join(self->thread, NULL);
    assert_true(self->status == GG_OK || self->status == GG_NOT_READY);
    gg_memory_release(self->allocated);
    if (waited)
        return;
    assert_string_equal(gg_device_backend(self->f->device), "ze"); /* the others wait there */
    skip_because("no call of this driver waits for room");
}

/* A thread that waits for one of these calls would wait until the runner ends it. */
static void go_on(struct waiter *self)
{
    struct fixture *f = self->f;
    gg_stream *stream = f->second;
    gg_memory *memory = NULL;
    gg_event *event = new_event(f, 0);
    assert_true(busy(self->full));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gg_memory_alloc(f->device, GG_MEMORY_DEVICE, 5000, stream, &memory), GG_OK);
        assert_int_equal(fill_bytes(memory, 7, stream), GG_OK);
        assert_int_equal(gg_event_record(event, stream), GG_OK);
        assert_int_equal(gg_event_wait(event, GG_FOREVER), GG_OK);
        gg_memory_release(memory);
        finish(stream); /* and drains */
    }
    gg_stream *made = NULL;
    assert_int_equal(gg_stream_create(f->device, GG_STREAM_NONBLOCKING, 0, &made), GG_OK);
    gg_stream_release(made);
    assert_int_equal(gg_device_trim(f->device), GG_OK); /* all streams */
    assert_true(busy(self->full));
}

/* ---- markers ---- */

static gg_status query_memory(struct waiter *self)
{
    return gg_memory_query(self->memory);
}

static void a_query_of_memory_that_waits_for_room_holds_up_no_other_thread(void **state)
{
    struct waiter self;
    occupy(*state, &self, ((struct fixture *)*state)->stream);
    start(&self, query_memory);
    go_on(&self);
    end(&self);
}

static gg_status trim(struct waiter *self)
{
    return gg_device_trim(self->f->device);
}

static void a_drain_that_waits_for_room_holds_up_no_other_thread(void **state)
{
    struct waiter self;
    occupy(*state, &self, ((struct fixture *)*state)->stream);
    start(&self, trim);
    go_on(&self);
    end(&self);
}

/* The query of other memory of that stream does not wait either, once a thread records its marker. */
static void memory_of_the_same_stream_can_be_queried_meanwhile(void **state)
{
    struct waiter self;
    struct fixture *f = *state;
    gg_memory *memory = new_memory(f, 4096);
    assert_int_equal(fill_bytes(memory, 1, f->stream), GG_OK);
    occupy(f, &self, f->stream);
    start(&self, query_memory);
    assert_in_range(gg_memory_query(memory), GG_OK, GG_NOT_READY);
    assert_int_equal(gg_memory_query(self.memory), GG_NOT_READY);
    end(&self);
}

/* ---- two streams ---- */

static gg_status wait_for_full(struct waiter *self)
{
    return gg_stream_wait_stream(self->other, self->full);
}

static void a_wait_for_a_full_stream_holds_up_no_other_thread(void **state)
{
    struct waiter self;
    occupy(*state, &self, ((struct fixture *)*state)->stream);
    start(&self, wait_for_full);
    go_on(&self);
    end(&self);
}

static gg_status let_full_wait(struct waiter *self)
{
    return gg_stream_wait_stream(self->full, self->other);
}

/* Other threads, and drains, use the stream that it is to wait for. */
static void a_wait_of_a_full_stream_holds_up_no_other_thread(void **state)
{
    struct waiter self;
    struct fixture *f = *state;
    occupy(f, &self, f->stream);
    gg_memory *memory = new_memory(f, 4096);
    void *gate = hold(f, self.other);
    assert_int_equal(fill_bytes(memory, 1, self.other), GG_OK);
    assert_int_equal(gg_memory_query(self.memory), GG_NOT_READY); /* has a marker */
    assert_int_equal(gg_memory_query(memory), GG_NOT_READY);      /* so has this */
    start(&self, let_full_wait);
    assert_int_equal(gg_memory_query(memory), GG_NOT_READY);
    go_on(&self);
    gate_open(gate);
    end(&self);
}

/* ---- blocks of other streams ---- */

static gg_status alloc_on_other(struct waiter *self)
{
    return gg_memory_alloc(self->f->device, GG_MEMORY_DEVICE, LARGE, self->other, &self->allocated);
}

/* A free block that only the held stream may take at once. */
static void lend(struct fixture *f, struct waiter *self, gg_stream *full)
{
    gg_memory *block = alloc(f, LARGE, full);
    occupy(f, self, full);
    assert_int_equal(fill_bytes(block, 1, full), GG_OK);
    gg_memory_release(block);
    assert_int_equal(gg_memory_query(self->memory), GG_NOT_READY); /* has a marker */
}

static void an_allocation_that_takes_a_block_of_a_full_stream_holds_up_no_other_thread(void **state)
{
    struct waiter self;
    struct fixture *f = *state;
    lend(f, &self, f->stream);
    gg_memory_release(alloc(f, 5000, f->second));
    assert_int_equal(
        gg_pool_set_limit(f->device, GG_MEMORY_DEVICE, figures(f).reserved_bytes + LARGE / 2),
        GG_OK);
    start(&self, alloc_on_other);
    go_on(&self);
    end(&self);
}

static void an_allocation_that_borrows_from_a_full_stream_holds_up_no_other_thread(void **state)
{
    struct waiter self;
    struct fixture *f = *state;
    gg_stream *full = NULL;
    assert_int_equal(gg_stream_create(f->device, 0, 0, &full), GG_OK);
    f->streams[f->stream_count++] = full;
    lend(f, &self, full);
    assert_int_equal(gg_device_default_stream(f->device, &self.other), GG_OK);
    start(&self, alloc_on_other);
    go_on(&self);
    end(&self);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_query_of_memory_that_waits_for_room_holds_up_no_other_thread),
    cmocka_unit_test(a_drain_that_waits_for_room_holds_up_no_other_thread),
    cmocka_unit_test(memory_of_the_same_stream_can_be_queried_meanwhile),
    cmocka_unit_test(a_wait_for_a_full_stream_holds_up_no_other_thread),
    cmocka_unit_test(a_wait_of_a_full_stream_holds_up_no_other_thread),
    cmocka_unit_test(an_allocation_that_takes_a_block_of_a_full_stream_holds_up_no_other_thread),
    cmocka_unit_test(an_allocation_that_borrows_from_a_full_stream_holds_up_no_other_thread),
};
SUITE(full_queue, tests);
