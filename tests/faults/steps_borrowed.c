/* steps_borrowed.c: borrowed handles, and a second device. */
#include "program.h"

#include <string.h>

/* The owner of the borrowed stream keeps the original alive. */
static struct lender {
    struct program *program;
    gg_stream *original;
} lender;

static void release_lender(void *owner)
{
    struct lender *of = owner;
    gg_stream_release(of->original);
    release_owner(of->program);
}

static int borrow(gg_device *device, gg_stream *from, void (*release)(void *), union output *out,
                  gg_stream **borrowed)
{
    uint64_t handles[4];
    if (!device || !from || gg_stream_native(from, handles))
        return SKIPPED;
    const gg_status status = gg_stream_borrow(device, handles[0], release, &lender, &out->stream);
    if (!status)
        *borrowed = out->stream;
    return (int)status;
}

static int borrow_stream(struct program *p, union output *out)
{
    if (p->second)
        gg_stream_retain(p->second);
    lender = (struct lender){p, p->second};
    const int status = borrow(p->device, p->second, release_lender, out, &p->borrowed);
    if (!status)
        p->given++;
    else
        gg_stream_release(p->second); /* a failed call releases no owner */
    return status;
}

static int borrow_ownerless(struct program *p, union output *out)
{
    return borrow(p->device, p->urgent, NULL, out, &p->ownerless);
}

static int borrow_event(struct program *p, union output *out)
{
    if (!p->plain)
        return SKIPPED;
    gg_status status = gg_event_native(p->plain, out->handles);
    if (status)
        return (int)status;
    const uint64_t native = out->handles[0];
    memset(out, 0xA5, sizeof *out);
    status = gg_event_borrow(p->device, native, release_owner, p, &out->event);
    if (!status) {
        p->borrowed_event = out->event;
        p->given++;
    }
    return (int)status;
}

static int fill_on_borrowed(struct program *p, union output *out)
{
    (void)out;
    return p->small && p->borrowed ? (int)gg_fill(p->small, 0, "b", 1, SMALL, p->borrowed) : SKIPPED;
}

static int fill_on_ownerless(struct program *p, union output *out)
{
    (void)out;
    return p->second_block && p->ownerless
               ? (int)gg_fill(p->second_block, 0, "o", 1, LARGE, p->ownerless)
               : SKIPPED;
}

static int first_waits_for_ownerless(struct program *p, union output *out)
{
    (void)out;
    return p->first && p->ownerless ? (int)gg_stream_wait_stream(p->first, p->ownerless) : SKIPPED;
}

static int record_borrowed_event(struct program *p, union output *out)
{
    (void)out;
    return p->borrowed_event && p->first ? (int)gg_event_record(p->borrowed_event, p->first)
                                         : SKIPPED;
}

static int wait_for_borrowed_event(struct program *p, union output *out)
{
    (void)out;
    return p->borrowed_event ? (int)gg_event_wait(p->borrowed_event, GG_FOREVER) : SKIPPED;
}

static int wait_for(gg_stream *stream)
{
    return stream ? (int)gg_stream_wait(stream, GG_FOREVER) : SKIPPED;
}

static int wait_for_borrowed(struct program *p, union output *out)
{
    (void)out;
    return wait_for(p->borrowed);
}

static int wait_for_ownerless(struct program *p, union output *out)
{
    (void)out;
    return wait_for(p->ownerless);
}

/* Wraps memory of gpuglue as if it were memory of another library. */
static int wrap(struct program *p, union output *out)
{
    if (!p->large)
        return SKIPPED;
    const gg_status status = gg_memory_wrap(p->device, GG_MEMORY_DEVICE, gg_memory_pointer(p->large),
                                            LARGE, release_owner, p, &out->memory);
    if (!status) {
        p->wrapped = out->memory;
        p->given++;
    }
    return (int)status;
}

static int fill_wrapped(struct program *p, union output *out)
{
    (void)out;
    return p->wrapped ? (int)gg_fill(p->wrapped, 0, "w", 1, LARGE, NULL) : SKIPPED;
}

static const struct step borrowed[] = {
    {"borrow a stream", borrow_stream, GG_OK},
    {"borrow a stream without an owner", borrow_ownerless, GG_OK},
    {"borrow an event", borrow_event, GG_OK},
    {"fill on a borrowed stream", fill_on_borrowed, GG_OK},
    {"fill on a stream without an owner", fill_on_ownerless, GG_OK},
    {"a stream waits for the stream without an owner", first_waits_for_ownerless, GG_OK},
    {"record a borrowed event", record_borrowed_event, GG_OK},
    {"wait for a borrowed event", wait_for_borrowed_event, GG_OK},
    {"wait for a borrowed stream", wait_for_borrowed, GG_OK},
    {"wait for the stream without an owner", wait_for_ownerless, GG_OK},
    {"wrap memory", wrap, GG_OK},
    {"fill wrapped memory", fill_wrapped, GG_OK},
};
const struct steps borrowed_steps = {borrowed, sizeof borrowed / sizeof borrowed[0]};

/* ---- a second device ---- */

static int create_stream(struct program *p, union output *out)
{
    if (!p->other)
        return SKIPPED;
    const gg_status status = gg_stream_create(p->other, 0, 0, &out->stream);
    if (!status)
        p->of_other = out->stream;
    return (int)status;
}

static int create_event(struct program *p, union output *out)
{
    if (!p->other)
        return SKIPPED;
    const gg_status status = gg_event_create(p->other, 0, &out->event);
    if (!status)
        p->event_of_other = out->event;
    return (int)status;
}

static int alloc(struct program *p, union output *out)
{
    if (!p->other)
        return SKIPPED;
    const gg_status status = gg_memory_alloc(p->other, GG_MEMORY_DEVICE, SMALL, NULL, &out->memory);
    if (!status)
        p->memory_of_other = out->memory;
    return (int)status;
}

static int write_there(struct program *p, union output *out)
{
    (void)out;
    if (!p->memory_of_other)
        return SKIPPED;
    struct gg_copy_operand dst = {.memory = p->memory_of_other}, src = {.host = p->host};
    memset(p->host, 21, SMALL);
    return (int)gg_copy(&dst, &src, SMALL, p->of_other, 0);
}

static int copy_there(struct program *p, union output *out)
{
    (void)out;
    if (!p->memory_of_other || !p->small)
        return SKIPPED;
    struct gg_copy_operand dst = {.memory = p->memory_of_other}, src = {.memory = p->small};
    const gg_status status = gg_fill(p->small, 0, "\x15", 1, SMALL, NULL);
    return (int)(status ? status : gg_copy(&dst, &src, SMALL, NULL, 0));
}

static int record_there(struct program *p, union output *out)
{
    (void)out;
    return p->event_of_other && p->of_other ? (int)gg_event_record(p->event_of_other, p->of_other)
                                            : SKIPPED;
}

static int wait_here(struct program *p, union output *out)
{
    (void)out;
    return p->event_of_other && p->first ? (int)gg_stream_wait_event(p->first, p->event_of_other)
                                         : SKIPPED;
}

static int wait_for_first(struct program *p, union output *out)
{
    (void)out;
    return wait_for(p->first);
}

static int read_there(struct program *p, union output *out)
{
    (void)out;
    if (!p->memory_of_other)
        return SKIPPED;
    struct gg_copy_operand dst = {.host = p->host}, src = {.memory = p->memory_of_other};
    memset(p->host, 0, SMALL);
    const gg_status status = gg_copy(&dst, &src, SMALL, NULL, 0);
    return status ? (int)status
                  : check_bytes(p, p->host, SMALL, 21, "a copy between devices has wrong bytes");
}

/* Some vendors do not detect a stream of another device: the caller must pass the right device. */
static int borrow_from_there(struct program *p, union output *out)
{
    return borrow(p->device, p->of_other, NULL, out, &p->foreign);
}

static int synchronize_there(struct program *p, union output *out)
{
    (void)out;
    return p->other ? (int)gg_device_synchronize(p->other) : SKIPPED;
}

static const struct step other[] = {
    {"create a stream on another device", create_stream, GG_OK},
    {"create an event on another device", create_event, GG_OK},
    {"allocate on another device", alloc, GG_OK},
    {"write on another device", write_there, GG_OK},
    {"record on another device", record_there, GG_OK},
    {"wait for an event of another device", wait_here, GG_OK},
    {"wait for the first stream", wait_for_first, GG_OK},
    {"copy to another device", copy_there, GG_OK},
    {"read from another device", read_there, GG_OK},
    {"borrow a stream of another device", borrow_from_there,
     GG_ERR_INVALID_ARGUMENT}, /* HIP does not report whose it is */
    {"synchronize another device", synchronize_there, GG_OK},
};
const struct steps other_steps = {other, sizeof other / sizeof other[0]};
