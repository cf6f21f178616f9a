/* steps_work.c: events, waits, host functions and scopes. */
#include "program.h"

#include <string.h>

static int record(gg_event *event, gg_stream *stream)
{
    return event && stream ? (int)gg_event_record(event, stream) : SKIPPED;
}

static int record_start(struct program *p, union output *out)
{
    (void)out;
    return record(p->start, p->first);
}

static int record_stop(struct program *p, union output *out)
{
    (void)out;
    return record(p->stop, p->first);
}

static int record_plain(struct program *p, union output *out)
{
    (void)out;
    return record(p->plain, p->first);
}

static int record_blocking(struct program *p, union output *out)
{
    (void)out;
    return record(p->blocking, p->second);
}

static int query_event(struct program *p, union output *out)
{
    (void)out;
    return p->plain ? (int)gg_event_query(p->plain) : SKIPPED;
}

static int wait_for(gg_event *event)
{
    return event ? (int)gg_event_wait(event, GG_FOREVER) : SKIPPED;
}

static int wait_for_plain(struct program *p, union output *out)
{
    (void)out;
    return wait_for(p->plain);
}

static int wait_for_blocking(struct program *p, union output *out)
{
    (void)out;
    return wait_for(p->blocking);
}

static int wait_for_stop(struct program *p, union output *out)
{
    (void)out;
    return wait_for(p->stop);
}

/* If a record failed, the event has no time: then the query is an error of the program. */
static int query_elapsed(struct program *p, union output *out)
{
    return p->start && p->stop && !p->failed
               ? (int)gg_event_elapsed(p->start, p->stop, &out->milliseconds)
               : SKIPPED;
}

static int stream_waits_for_event(struct program *p, union output *out)
{
    (void)out;
    return p->second && p->plain ? (int)gg_stream_wait_event(p->second, p->plain) : SKIPPED;
}

static int stream_waits_for_stream(struct program *p, union output *out)
{
    (void)out;
    return p->first && p->second ? (int)gg_stream_wait_stream(p->first, p->second) : SKIPPED;
}

static void call(void *argument)
{
    atomic_fetch_add((atomic_int *)argument, 1);
}

static int queue_function(struct program *p, union output *out)
{
    (void)out;
    return p->first ? (int)gg_stream_host_func(p->first, call, &p->called) : SKIPPED;
}

static int query_stream(struct program *p, union output *out)
{
    (void)out;
    return p->first ? (int)gg_stream_query(p->first) : SKIPPED;
}

static int wait_a_little(struct program *p, union output *out)
{
    (void)out;
    return p->first ? (int)gg_stream_wait(p->first, 1000) : SKIPPED;
}

static int wait_for_stream(struct program *p, union output *out)
{
    (void)out;
    if (!p->first)
        return SKIPPED;
    const gg_status status = gg_stream_wait(p->first, GG_FOREVER);
    if (!status && !p->failed && !atomic_load(&p->called))
        p->wrong = "the wait for the stream returned before its host function had run";
    return (int)status;
}

static int wait_for_default_stream(struct program *p, union output *out)
{
    gg_stream *stream = NULL;
    (void)out;
    if (!p->device || gg_device_default_stream(p->device, &stream))
        return SKIPPED;
    return (int)gg_stream_wait(stream, GG_FOREVER);
}

static int fill_on_a_stream(struct program *p, union output *out)
{
    (void)out;
    return p->small && p->first ? (int)gg_fill(p->small, 0, "q", 1, SMALL, p->first) : SKIPPED;
}

static int record_use(struct program *p, union output *out)
{
    (void)out;
    return p->small && p->urgent ? (int)gg_memory_record_use(p->small, p->urgent) : SKIPPED;
}

/* On the default stream, which must wait for the other stream. */
static int read_implicitly(struct program *p, union output *out)
{
    (void)out;
    if (!p->small)
        return SKIPPED;
    struct gg_copy_operand dst = {.host = p->host}, src = {.memory = p->small};
    memset(p->host, 0, SMALL);
    const gg_status status = gg_copy(&dst, &src, SMALL, NULL, 0);
    return status ? (int)status
                  : check_bytes(p, p->host, SMALL, 'q', "work without a stream did not wait");
}

static int wait_for_memory(struct program *p, union output *out)
{
    (void)out;
    return p->small ? (int)gg_memory_wait(p->small) : SKIPPED;
}

static int trim(struct program *p, union output *out)
{
    (void)out;
    return p->device ? (int)gg_device_trim(p->device) : SKIPPED;
}

/* ---- scopes ---- */

static int enter(struct program *p, union output *out)
{
    if (!p->device || !p->urgent)
        return SKIPPED;
    const gg_status status = gg_scope_enter(p->device, p->urgent, &out->scope);
    if (!status)
        p->scope = out->scope;
    return (int)status;
}

static int query_current_stream(struct program *p, union output *out)
{
    return p->device ? (int)gg_current_stream(p->device, &out->stream) : SKIPPED;
}

static int fill_inside(struct program *p, union output *out)
{
    (void)out;
    return p->second_block ? (int)gg_fill(p->second_block, 0, "i", 1, LARGE, NULL) : SKIPPED;
}

static int leave(struct program *p, union output *out)
{
    (void)out;
    return p->scope ? (int)gg_scope_leave(p->scope) : SKIPPED;
}

static int use_device(struct program *p, union output *out)
{
    (void)out;
    return p->device ? (int)gg_device_set_current(p->device) : SKIPPED;
}

static const struct step work[] = {
    {"record the start", record_start, GG_OK},
    {"fill on a stream", fill_on_a_stream, GG_OK},
    {"record the stop", record_stop, GG_OK},
    {"record a use", record_use, GG_OK},
    {"read without a stream", read_implicitly, GG_OK},
    {"record an event", record_plain, GG_OK},
    {"query an event", query_event, GG_OK},
    {"a stream waits for an event", stream_waits_for_event, GG_OK},
    {"record a blocking event", record_blocking, GG_OK},
    {"a stream waits for a stream", stream_waits_for_stream, GG_OK},
    {"queue a host function", queue_function, GG_OK},
    {"query a stream", query_stream, GG_OK},
    {"wait a little", wait_a_little, GG_OK},
    {"wait for a stream", wait_for_stream, GG_OK},
    {"wait for the default stream", wait_for_default_stream, GG_OK},
    {"wait for an event", wait_for_plain, GG_OK},
    {"wait for a blocking event", wait_for_blocking, GG_OK},
    {"wait for the stop", wait_for_stop, GG_OK},
    {"record an event again", record_plain, GG_OK},
    {"elapsed time", query_elapsed, GG_OK},
    {"wait for memory", wait_for_memory, GG_OK},
    {"trim", trim, GG_OK},
    {"enter a stream", enter, GG_OK},
    {"current stream", query_current_stream, GG_OK},
    {"fill in the scope of a stream", fill_inside, GG_OK},
    {"leave the stream", leave, GG_OK},
    {"use a device", use_device, GG_OK},
};
const struct steps work_steps = {work, sizeof work / sizeof work[0]};
