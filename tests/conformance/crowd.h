/* crowd.h: many busy streams, and objects that they use, for the suites of drains. */
#ifndef GPUGLUE_TESTS_CROWD_H
#define GPUGLUE_TESTS_CROWD_H

#include "pool_blocks.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#define CROWD 100 /* more busy streams than a drain polls */

static inline gg_memory *wrap(struct fixture *f, gg_stream *user, atomic_int *released)
{
    static char bytes[64];
    gg_memory *memory = NULL;
    assert_int_equal(gg_memory_wrap(f->device, GG_MEMORY_DEVICE, bytes, sizeof bytes, count_release,
                                    released, &memory),
                     GG_OK);
    assert_int_equal(gg_memory_record_use(memory, user), GG_OK);
    return memory;
}

/* The stream becomes idle, and only its event is queried. */
static inline void pass_event_unnoticed(gg_event *event, gg_stream *stream)
{
    assert_int_equal(gg_event_record(event, stream), GG_OK);
    while (gg_event_query(event) == GG_NOT_READY)
        sched_yield();
}

static inline void pass_unnoticed(struct fixture *f, gg_stream *stream)
{
    pass_event_unnoticed(new_event(f, 0), stream);
}

/* ---- what a driver allows, found out in another process, which ends by itself where it does not go on ---- */

/* The process ends if what follows takes many times as long as the same calls did without a gate, from @p began on: a busy
 * machine is slow at both. */
static inline void expect_an_end(uint64_t began)
{
    const uint64_t seconds = (now_ns() - began) / 1000000000u;
    alarm((unsigned)(10 + 20 * seconds));
}

static inline int probe_ended(gg_device *device)
{
    if (gg_device_synchronize(device))
        return 5;
    _exit(0); /* its objects are not released */
}

/* Host functions of two streams may run at once. CUDA and HIP run those of all streams in one thread. */
static inline int two_gates(void)
{
    gg_device *device;
    gg_stream *held, *other;
    void *first = gate_new(), *second = gate_new();
    gate_open(second);
    if (gg_device_get(NULL, 0, &device) || gg_stream_create(device, 0, 0, &held) ||
        gg_stream_create(device, 0, 0, &other))
        return 2;
    const uint64_t began = now_ns(); /* a device may need seconds until it is initialised */
    if (gg_stream_host_func(held, gate_wait, second))
        return scenario_without(GG_OP_stream_host_func);
    if (gg_stream_wait(held, GG_FOREVER))
        return 3;
    expect_an_end(began);
    if (gg_stream_host_func(held, gate_wait, first))
        return 3;
    while (!gate_reached(first))
        sched_yield();
    if (gg_stream_host_func(other, gate_wait, second) || gg_stream_wait(other, GG_FOREVER))
        return 3;
    gate_open(first);
    return probe_ended(device);
}

static inline int create_waiting(gg_device *device, gg_stream *held, gg_stream **streams)
{
    for (int i = 0; i < CROWD; i++)
        if (gg_stream_create(device, GG_STREAM_NONBLOCKING, 0, &streams[i]) ||
            gg_stream_wait_stream(streams[i], held))
            return 1;
    return 0;
}

/* A crowd is created and used while nothing is held. CUDA's driver creates queues at the first use of so many streams, and
 * waits then for host functions that run (seen with driver 580 on an H200: it blocks at about the 20th to 40th new stream). */
static inline int rehearse(gg_device *device, gg_stream *stream)
{
    gg_stream *streams[CROWD];
    if (create_waiting(device, stream, streams) || gg_device_synchronize(device))
        return 1;
    for (int i = 0; i < CROWD; i++)
        gg_stream_release(streams[i]);
    return 0;
}

#define OTHERS \
    3 /* streams of a test that go on beside a crowd: one of the fixture, two of its own */

struct waiting {
    gg_device *device;
    gg_stream *held, *others[OTHERS], *streams[CROWD];
    gg_memory *memories[OTHERS];
    gg_event *event;
};

/* In the order in which a test creates its objects, since a driver may choose the queue of a stream by its number. */
static inline int prepare_others(struct waiting *w)
{
    if (gg_device_get(NULL, 0, &w->device) ||
        gg_stream_create(w->device, GG_STREAM_NONBLOCKING, 0, &w->held) ||
        gg_stream_create(w->device, GG_STREAM_NONBLOCKING, 0, &w->others[0]) ||
        gg_event_create(w->device, 0, &w->event))
        return 2;
    const uint64_t began = now_ns();
    if (rehearse(w->device, w->held))
        return 3;
    for (int i = 1; i < OTHERS; i++)
        if (gg_stream_create(w->device, GG_STREAM_NONBLOCKING, 0, &w->others[i]))
            return 3;
    for (int i = 0; i < OTHERS; i++)
        if (gg_memory_alloc(w->device, GG_MEMORY_DEVICE, 64, w->others[i], &w->memories[i]))
            return 3;
    expect_an_end(began);
    return 0;
}

static inline int use_and_release(gg_device *device, gg_stream *stream)
{
    static char bytes[64];
    gg_memory *memory = NULL;
    if (gg_memory_wrap(device, GG_MEMORY_DEVICE, bytes, sizeof bytes, NULL, NULL, &memory) ||
        gg_memory_record_use(memory, stream))
        return 1;
    gg_memory_release(memory);
    return 0;
}

/* With a second host function held, all that the tests do meanwhile: objects that busy streams use, events, a new stream, and a
 * wait for an idle one. */
static inline int go_on_beside_two_gates(struct waiting *w)
{
    gg_stream *unused = NULL;
    gg_event *event = NULL;
    if (use_and_release(w->device, w->others[0]))
        return 1;
    for (int i = 0; i < CROWD; i++)
        if (use_and_release(w->device, w->streams[i]))
            return 1;
    if (gg_event_create(w->device, 0, &event) || gg_event_record(event, w->streams[0]))
        return 1;
    gg_event_release(event);
    if (gg_stream_create(w->device, 0, 0, &unused) || gg_stream_wait(w->others[1], GG_FOREVER))
        return 1;
    gg_stream_release(unused);
    return 0;
}

/* Work of other streams goes on beside a crowd that waits for the held one, also where they wait for each other, and the driver
 * allocates. */
static inline int work_beside_a_crowd(struct waiting *w)
{
    gg_memory *memory = NULL;
    for (int i = 0; i < OTHERS; i++)
        if (fill_bytes(w->memories[i], 1, w->others[i]) || gg_event_record(w->event, w->others[i]) ||
            gg_event_wait(w->event, GG_FOREVER) || gg_stream_wait(w->others[i], GG_FOREVER))
            return 1;
    for (int i = 0; i < CROWD; i++)
        if (gg_memory_alloc(w->device, GG_MEMORY_DEVICE, BLOCK, w->streams[i], &memory))
            return 1;
    return gg_stream_wait_stream(w->others[2], w->others[1]) ||
           fill_bytes(w->memories[2], 2, w->others[2]) || gg_stream_wait(w->others[2], GG_FOREVER);
}

/* Streams can be created and used while as many as CROWD wait, also one that was held when the crowd was created. A device has fewer
 * queues than that, which streams share. */
static inline int waiting_crowd(void)
{
    static struct waiting w; /* left to the process */
    void *first = gate_new(), *gate = gate_new();
    int result = prepare_others(&w);
    if (result)
        return result;
    if (gg_stream_host_func(w.others[0], gate_wait, first))
        return scenario_without(GG_OP_stream_host_func);
    while (!gate_reached(first))
        sched_yield();
    if (gg_stream_host_func(w.held, gate_wait, gate) || create_waiting(w.device, w.held, w.streams))
        return 4;
    result = go_on_beside_two_gates(&w);
    gate_open(first);
    if (result || work_beside_a_crowd(&w))
        return 4;
    gate_open(gate);
    return probe_ended(w.device);
}

/* Whether the probe has come to its end, and not to its alarm. */
static inline bool goes_on(const char *probe)
{
    char output[200];
    const int result = start_scenario(probe, NULL, NULL, output, sizeof output);
    if (result && result != 128 + SIGALRM)
        fail_msg("%s ended with %d: %s", probe, result, output);
    return !result;
}

static inline void need_two_gates(void)
{
    if (!goes_on("two_gates"))
        skip_because("the driver runs one host function at a time");
}

/* First in a test, before anything is held; also, a skip would leak what exists. */
static inline void need_crowd(struct fixture *f)
{
    if (!goes_on("waiting_crowd"))
        skip_because("%d waiting streams stop the others of this device", CROWD);
    assert_int_equal(rehearse(f->device, f->stream), 0);
}

/* ---- the crowd ---- */

struct crowd {
    gg_stream *streams[CROWD];
    void *gate;
};

/* Streams that wait for one that is held. */
static inline void make_crowd(struct fixture *f, struct crowd *crowd)
{
    crowd->gate = hold(f, f->stream);
    assert_int_equal(create_waiting(f->device, f->stream, crowd->streams), 0);
}

/* Each of them uses a released object. */
static inline void let_the_crowd_use(struct fixture *f, struct crowd *crowd, atomic_int *released)
{
    for (int i = 0; i < CROWD; i++)
        gg_memory_release(wrap(f, crowd->streams[i], released));
}

static inline void release_crowd(struct fixture *f, struct crowd *crowd)
{
    gate_open(crowd->gate);
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    for (int i = 0; i < CROWD; i++)
        gg_stream_release(crowd->streams[i]);
}

/* Not with GPUGLUE_ALLOCATOR=direct or async. */
static inline void need_cached_blocks(struct fixture *f)
{
    alloc_and_free(f, BLOCK, f->second);
    if (!figures(f).cached_blocks)
        skip_because("the pool keeps no blocks");
}

#endif
