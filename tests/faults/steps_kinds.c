/* steps_kinds.c: registered and managed memory, pointer attributes, and a pool at its limit. */
#include "program.h"

#include <string.h>

/* ---- registered memory ---- */

static int register_host(struct program *p, union output *out)
{
    if (!p->device)
        return SKIPPED;
    const gg_status status =
        gg_memory_host_register(p->device, p->host, LARGE, release_owner, p, &out->memory);
    if (!status) {
        p->registered = out->memory;
        p->given++;
    }
    return (int)status;
}

static int up_registered(struct program *p, union output *out)
{
    (void)out;
    if (!p->registered || !p->large || !p->first)
        return SKIPPED;
    memset(p->host, 41, LARGE);
    struct gg_copy_operand dst = {.memory = p->large}, src = {.memory = p->registered};
    return (int)gg_copy(&dst, &src, LARGE, p->first, GG_COPY_ASYNC | GG_COPY_REQUIRE_ASYNC);
}

static int down_registered(struct program *p, union output *out)
{
    (void)out;
    if (!p->registered || !p->large || !p->first)
        return SKIPPED;
    struct gg_copy_operand dst = {.host = p->host}, src = {.memory = p->large};
    int status = (int)gg_copy(&dst, &src, LARGE, p->first, GG_COPY_ASYNC);
    if (!status)
        status = (int)gg_stream_wait(p->first, GG_FOREVER);
    return status ? status : check_bytes(p, p->host, LARGE, 41, "registered bytes are wrong");
}

/* The trim unlocks its pages. */
static int close_registered(struct program *p, union output *out)
{
    (void)out;
    gg_memory_release(p->registered);
    p->registered = NULL;
    return p->device ? (int)gg_device_trim(p->device) : SKIPPED;
}

/* ---- managed memory ---- */

static int alloc_managed(struct program *p, union output *out)
{
    if (!p->device)
        return SKIPPED;
    const gg_status status =
        gg_memory_alloc(p->device, GG_MEMORY_MANAGED, LARGE, NULL, &out->memory);
    if (!status)
        p->managed = out->memory;
    return (int)status;
}

static int fill_managed(struct program *p, union output *out)
{
    (void)out;
    return p->managed ? (int)gg_fill(p->managed, 0, "m", 1, LARGE, NULL) : SKIPPED;
}

static int prefetch_managed(struct program *p, union output *out)
{
    (void)out;
    return p->managed && p->first ? (int)gg_memory_prefetch(p->managed, 0, p->first) : SKIPPED;
}

static int prefetch_to_host(struct program *p, union output *out)
{
    (void)out;
    return p->managed ? (int)gg_memory_prefetch(p->managed, 1, NULL) : SKIPPED;
}

static int advise_managed(struct program *p, union output *out)
{
    (void)out;
    return p->managed ? (int)gg_memory_advise(p->managed, GG_ADVICE_READ_MOSTLY, 0) : SKIPPED;
}

static int read_managed(struct program *p, union output *out)
{
    (void)out;
    if (!p->managed)
        return SKIPPED;
    const int status = (int)gg_memory_wait(p->managed);
    return status ? status
                  : check_bytes(p, gg_memory_pointer(p->managed), LARGE, 'm',
                                "managed memory has wrong bytes");
}

/* ---- attributes of a pointer ---- */

static int query_pointer(struct program *p, union output *out)
{
    gg_device *device = p->other;
    if (!p->small)
        return SKIPPED;
    out->pointer.struct_size = sizeof out->pointer;
    p->sized = true;
    const gg_status status = gg_pointer_query(gg_memory_pointer(p->small), &device, &out->pointer);
    if (status && device != p->other)
        p->wrong = "a failed query wrote the device";
    if (!status && !p->failed && (device != p->device || out->pointer.kind != GG_MEMORY_DEVICE))
        p->wrong = "a pointer's attributes are wrong";
    return (int)status;
}

/* ---- the pools ---- */

static int order_memory(struct program *p, union output *out)
{
    (void)out;
    return p->large && p->second ? (int)gg_stream_wait_memory(p->second, p->large) : SKIPPED;
}

static int query_pending(struct program *p, union output *out)
{
    if (!p->large)
        return SKIPPED;
    const gg_status status = gg_memory_completion_stream(p->large, 0, &out->stream);
    if (!status)
        gg_stream_release(out->stream);
    return (int)status;
}

/* After a use on an unknown stream, a block is not reused at once. */
static int use_unknown(struct program *p, union output *out)
{
    if (!p->device)
        return SKIPPED;
    int status = (int)gg_memory_alloc(p->device, GG_MEMORY_DEVICE, SMALL, NULL, &out->memory);
    if (status)
        return status;
    gg_memory *memory = out->memory;
    memset(out, 0xA5, sizeof *out);
    status = (int)gg_memory_record_use(memory, NULL);
    gg_memory_release(memory);
    return status ? status : (int)gg_device_trim(p->device);
}

/* A block of a busy stream is reused on another stream, which waits. */
static int alloc_at_the_limit(struct program *p, union output *out)
{
    struct gg_pool_stats stats = {.struct_size = sizeof stats};
    gg_memory *memory = NULL;
    if (!p->first || !p->second || gg_pool_trim(p->device, GG_MEMORY_DEVICE, 0))
        return SKIPPED;
    int status = (int)gg_memory_alloc(p->device, GG_MEMORY_DEVICE, 3 * LARGE, p->first, &memory);
    if (status)
        return status;
    status = (int)gg_fill(memory, 0, "l", 1, 3 * LARGE, p->first);
    gg_memory_release(memory);
    if (!status)
        status = (int)gg_pool_stats(p->device, GG_MEMORY_DEVICE, &stats);
    if (!status)
        status = (int)gg_pool_set_limit(p->device, GG_MEMORY_DEVICE, stats.reserved_bytes);
    if (status)
        return status;
    status = (int)gg_memory_alloc(p->device, GG_MEMORY_DEVICE, 3 * LARGE, p->second, &out->memory);
    if (!status)
        gg_memory_release(out->memory);
    const int unlimited = (int)gg_pool_set_limit(p->device, GG_MEMORY_DEVICE, 0);
    return status ? status : unlimited;
}

static const struct step steps[] = {
    {"register memory", register_host, GG_OK},
    {"upload registered memory", up_registered, GG_OK},
    {"download to registered memory", down_registered, GG_OK},
    {"close registered memory", close_registered, GG_OK},
    {"allocate managed memory", alloc_managed, GG_OK},
    {"advise managed memory", advise_managed, GG_OK},
    {"prefetch it to the device", prefetch_managed, GG_OK},
    {"fill managed memory", fill_managed, GG_OK},
    {"prefetch it to the host", prefetch_to_host, GG_OK},
    {"read managed memory", read_managed, GG_OK},
    {"query a pointer", query_pointer, GG_OK},
    {"a stream waits for memory", order_memory, GG_OK},
    {"query the pending stream", query_pending, GG_OK},
    {"record a use on unknown streams", use_unknown, GG_OK},
    {"allocate at the pool's limit", alloc_at_the_limit, GG_OK},
};
const struct steps kinds_steps = {steps, sizeof steps / sizeof steps[0]};
