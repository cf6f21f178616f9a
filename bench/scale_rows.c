/* scale_rows.c: the rows in one thread. */
#include "scale.h"

#include <semaphore.h>
#include <string.h>

#define LARGE ((size_t)1 << 30)

/* Whether so many bytes are less than a tenth of the device's memory. */
static bool fits(uint64_t nbytes)
{
    uint64_t available, total;
    check(gg_device_memory_info(device, &available, &total), "memory_info");
    return nbytes < total / 10;
}

static gg_stream **new_streams(long count)
{
    gg_stream **streams = malloc((size_t)count * sizeof *streams);
    if (!streams)
        exit(1);
    for (long i = 0; i < count; i++)
        streams[i] = new_stream();
    return streams;
}

/* When their work is done. */
static void release_streams(gg_stream **streams, long count)
{
    check(gg_device_synchronize(device), "synchronize");
    for (long i = 0; i < count; i++)
        gg_stream_release(streams[i]);
    free(streams);
}

/* Each block of a stream is used by the one that comes @p ahead of it in turn. */
static void with_streams(long count, struct tally *tally, long ahead)
{
    gg_stream **streams = new_streams(count);
    for (long i = 0; i < calls; i++)
        tally_add(tally, timed(streams[i % count], streams[(i + ahead) % count]));
    release_streams(streams, count);
}

/* As most programs do. */
void own_blocks(long count, struct tally *tally)
{
    with_streams(count, tally, 0);
}

/* So that it waits for the other stream after its release. */
void blocks_of_another(long count, struct tally *tally)
{
    with_streams(count, tally, 1);
}

/* ---- own blocks, and what finding free blocks of other streams costs at least ---- */

#define POLL_PAIRS 64 /* so many pairs of calls come before the next poll */
#define POLL_EVENTS 8
#define POLL_RECORDS 64
#define RECORDS 6000
#define LINES 4 /* cache lines of a record */

struct record {
    struct {
        uint64_t word, rest[7];
    } lines[LINES];
};

struct poll {
    gg_event *events[POLL_EVENTS];
    struct record *records;
    long next; /* the record that is read next */
};

static void poll_record(struct poll *self, gg_stream **streams, long count)
{
    for (long i = 0; i < POLL_EVENTS; i++)
        check(gg_event_record(self->events[i], streams[i % count]), "record");
}

/* Its time. */
static uint64_t poll_once(struct poll *self)
{
    const uint64_t start = now_ns();
    uint64_t sum = 0;
    for (int i = 0; i < POLL_EVENTS; i++)
        if (gg_event_query(self->events[i]) > GG_NOT_READY)
            exit(1);
    for (int i = 0; i < POLL_RECORDS; i++) {
        const struct record *record = &self->records[self->next++ % RECORDS];
        for (int line = 0; line < LINES; line++)
            sum += record->lines[line].word;
    }
    __asm__ volatile("" : : "r"(sum)); /* so that the records are read */
    return now_ns() - start;
}

/* A quarter as many as in other rows, since their worst call is not judged. */
static long floor_calls(void)
{
    return (calls + 3) / 4;
}

/* With each 64th pair: eight queries, and the reading of 64 records out of 6000. */
void own_blocks_and_polls(long count, struct tally *tally)
{
    gg_stream **streams = new_streams(count);
    struct poll poll = {.records = malloc(RECORDS * sizeof *poll.records)};
    if (!poll.records)
        exit(1);
    memset(poll.records, 1, RECORDS * sizeof *poll.records);
    for (int i = 0; i < POLL_EVENTS; i++)
        check(gg_event_create(device, 0, &poll.events[i]), "event");
    for (long i = 0; i < floor_calls(); i++) {
        if (i % POLL_PAIRS == POLL_PAIRS / 2)
            poll_record(&poll, streams, count);
        uint64_t taken = timed(streams[i % count], streams[i % count]);
        if (i % POLL_PAIRS == POLL_PAIRS - 1)
            taken += poll_once(&poll);
        tally_add(tally, taken);
    }
    release_streams(streams, count);
    for (int i = 0; i < POLL_EVENTS; i++)
        gg_event_release(poll.events[i]);
    free(poll.records);
}

/* What a pool pays at least that records an event behind each use, and queries it before the block is used again. */
void record_and_query(long count, struct tally *tally)
{
    struct {
        gg_stream *stream;
        gg_event *event;
        gg_memory *memory;
    } *const each = calloc((size_t)count, sizeof *each);
    for (long i = 0; i < count; i++) {
        each[i].stream = new_stream();
        each[i].memory = new_block(each[i].stream);
        check(gg_event_create(device, 0, &each[i].event), "event");
    }
    for (long i = 0; i < floor_calls(); i++) {
        const long at = i % count;
        uint64_t start = now_ns(), taken;
        if (gg_event_query(each[at].event) > GG_NOT_READY)
            exit(1);
        taken = now_ns() - start;
        check(gg_fill(each[at].memory, 0, "", 1, NBYTES, each[at].stream), "fill");
        driver_ns = 0;
        start = now_ns();
        check(gg_event_record(each[at].event, each[at].stream), "record");
        tally_add(tally, taken + now_ns() - start);
    }
    check(gg_device_synchronize(device), "synchronize");
    for (long i = 0; i < count; i++) {
        gg_event_release(each[i].event);
        gg_memory_release(each[i].memory);
        gg_stream_release(each[i].stream);
    }
    free(each);
}

void beside_live(long count, struct tally *tally)
{
    if (!fits((uint64_t)count * NBYTES))
        return;
    gg_memory **live = malloc((size_t)(count + 1) * sizeof *live);
    gg_stream *stream = new_stream();
    for (long i = 0; i < count; i++)
        live[i] = new_block(stream);
    for (long i = 0; i < calls; i++)
        tally_add(tally, timed(stream, NULL));
    for (long i = 0; i < count; i++)
        gg_memory_release(live[i]);
    gg_stream_release(stream);
    free(live);
}

static void gate_wait(void *gate)
{
    while (sem_wait(gate)) {
    }
}

/* A stream that a host function holds until the gate is opened; NULL where there are none. */
static gg_stream *new_held_stream(sem_t *gate)
{
    gg_stream *stream = new_stream();
    sem_init(gate, 0, 0);
    if (!gg_stream_host_func(stream, gate_wait, gate))
        return stream;
    gg_stream_release(stream);
    return NULL;
}

static void open_gate(gg_stream *held, sem_t *gate)
{
    sem_post(gate);
    check(gg_stream_wait(held, GG_FOREVER), "wait");
}

/* The released blocks are used by a held stream; @p after: or by one that was held until then. */
static void retired(long count, struct tally *tally, bool after)
{
    gg_memory **blocks = malloc((size_t)(count + 1) * sizeof *blocks);
    sem_t gate;
    gg_stream *stream = new_stream(), *held = new_held_stream(&gate);
    for (long i = 0; held && i < count; i++)
        blocks[i] = new_block(stream);
    for (long i = 0; held && i < count; i++) {
        check(gg_memory_record_use(blocks[i], held), "record_use");
        gg_memory_release(blocks[i]);
    }
    if (held && after)
        open_gate(held, &gate);
    for (long i = 0; held && i < calls; i++)
        tally_add(tally, timed(stream, NULL));
    if (held && !after)
        open_gate(held, &gate);
    gg_stream_release(held);
    gg_stream_release(stream);
    free(blocks);
}

void beside_retired(long count, struct tally *tally)
{
    retired(count, tally, false);
}

void after_retired(long count, struct tally *tally)
{
    retired(count, tally, true);
}

/* Blocks of 1 GiB: a driver's free would wait for the held stream. */
void large(long count, struct tally *tally)
{
    gg_memory *memory;
    sem_t gate;
    if (!fits(LARGE))
        return;
    gg_stream *stream = new_stream();
    check(gg_memory_alloc(device, GG_MEMORY_DEVICE, LARGE, stream, &memory), "alloc");
    gg_memory_release(memory);
    gg_stream *held = new_held_stream(&gate);
    for (long i = 0; held && i < count; i++) {
        driver_ns = 0;
        const uint64_t start = now_ns();
        check(gg_memory_alloc(device, GG_MEMORY_DEVICE, LARGE, stream, &memory), "alloc");
        gg_memory_release(memory);
        tally_add(tally, now_ns() - start);
    }
    if (held)
        open_gate(held, &gate);
    gg_stream_release(held);
    gg_stream_release(stream);
}
