/* fill.c: a pattern of any size, written by the device: by the driver's own fill where it has one for that size,
 * else by one small copy that is then doubled. Strided elements follow by copies of boxes, each of which doubles
 * along one axis what is already written. */
#include "base/error.h"
#include "runtime/replay.h"
#include "runtime/scope.h"
#include "transfer/copy_job.h"
#include "transfer/ring.h"

#include <string.h>

#define PIECES_MAX 16u /* of the first element in a capture */

struct fill {
    gg_memory *memory;
    char *dst;
    const unsigned char *pattern;
    size_t size, count; /* of the pattern in bytes, and how often */
    gg_stream *stream;
    bool capturing;
};

/* The smallest of 1, 2 and 4 bytes that, repeated, make the pattern; or 0. */
static size_t pattern_period(const unsigned char *pattern, size_t size)
{
    for (size_t part = 1; part <= 4; part *= 2)
        if (size % part == 0 && !memcmp(pattern, pattern + part, size - part))
            return part;
    return 0;
}

/* The bytes from @p at on, in patterns of @p part bytes. */
static gg_status fill_queue(const struct fill *fill, size_t at, size_t part, size_t nbytes)
{
    uint32_t value = 0;
    memcpy(&value, fill->pattern + at, part);
    return GGI_QUEUE(fill->stream->device, fill, fill->stream, nbytes, fill->dst + at, value,
                     (uint32_t)part, nbytes / part);
}

static gg_status fill_by_driver(struct fill *fill, size_t part)
{
    gg_status status = fill_queue(fill, 0, part, fill->size * fill->count);
    const uint64_t ticket = fill->capturing ? 0 : ggi_copy_count_write(fill->stream, fill->memory);
    ggi_memory_note_use(fill->memory, fill->stream, ticket, fill->capturing);
    return status;
}

/* From the first @p done bytes on. */
static gg_status fill_double(const struct fill *fill, size_t done)
{
    const size_t total = fill->size * fill->count;
    gg_status status = GG_OK;
    while (!status && done < total) {
        const size_t more = done < total - done ? done : total - done;
        status = ggi_copy_call(fill->stream, fill->dst + done, fill->dst, more, GG_COPY_D2D, false);
        done += more;
    }
    return status;
}

static gg_status fill_by_doubling(struct fill *fill)
{
    struct gg_device *device = fill->stream->device;
    size_t total = fill->size * fill->count, done;
    struct ggi_slot *slot;
    gg_status status = ggi_ring_acquire(device, &slot);
    if (status)
        return status;
    for (done = 0; done < total && done + fill->size <= GGI_SLOT_SIZE; done += fill->size)
        memcpy((char *)slot->data + done, fill->pattern, fill->size);
    status = ggi_copy_call(fill->stream, fill->dst, slot->data, done, GG_COPY_H2D, false);
    if (!status)
        status = fill_double(fill, done);
    uint64_t ticket = ggi_copy_count_write(fill->stream, fill->memory);
    ggi_memory_used(fill->memory, fill->stream, ticket);
    ggi_ring_release(device, slot, fill->stream, ticket);
    return status;
}

/* The largest of 4, 2 and 1 bytes in which the driver can fill parts of an element; 0: they would be too many. */
static size_t fill_piece(const struct fill *fill)
{
    size_t part = 4;
    while (fill->size % part || (uintptr_t)fill->dst % part)
        part /= 2;
    return fill->size / part <= PIECES_MAX ? part : 0;
}

/* A graph would need memory of the host for as long as it is launched. So the first element is written by fills. */
static gg_status fill_by_pieces(struct fill *fill)
{
    const size_t part = fill_piece(fill);
    gg_status status = GG_OK;
    if (!part)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "stream is capturing: a pattern of %zu bytes needs a copy from the host; "
                        "patterns of up to %u bytes do not",
                        fill->size, PIECES_MAX * 4);
    for (size_t at = 0; at < fill->size && !status; at += part)
        status = fill_queue(fill, at, part, part);
    if (!status)
        status = fill_double(fill, fill->size);
    ggi_memory_note_use(fill->memory, fill->stream, 0, true);
    return status;
}

/* The host fills pinned memory once the stream is idle. */
static gg_status fill_by_host(struct fill *fill)
{
    if (fill->capturing)
        return ggi_fail(
            GG_ERR_UNSUPPORTED,
            "stream is capturing: a fill of pinned memory cannot become part of a graph");
    gg_status status = ggi_stream_synchronize(fill->stream, true);
    for (size_t i = 0; !status && i < fill->count; i++)
        memcpy(fill->dst + i * fill->size, fill->pattern, fill->size);
    return status;
}

static gg_status fill_run(struct fill *fill)
{
    size_t part = pattern_period(fill->pattern, fill->size);
    fill->capturing = ggi_stream_is_captured(fill->stream);
    if (fill->memory->kind == GG_MEMORY_PINNED)
        return fill_by_host(fill);
    if (part && (uintptr_t)fill->dst % part == 0)
        return fill_by_driver(fill, part);
    return fill->capturing ? fill_by_pieces(fill) : fill_by_doubling(fill);
}

static gg_status fill_check(const gg_memory *memory, size_t offset, const void *pattern,
                            size_t size, size_t count)
{
    if (!pattern)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "fill: the pattern is a NULL pointer");
    if (!size || size > GGI_SLOT_SIZE)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "fill: a pattern has 1 to %u bytes, not %zu",
                        GGI_SLOT_SIZE, size);
    if (count > SIZE_MAX / size)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "fill: %zu patterns of %zu bytes overflow", count,
                        size);
    return ggi_memory_check_range(memory, "fill", offset, size * count);
}

/* ---- strided elements ---- */

#define CALLS_MAX \
    4096u /* driver calls; if more were needed, the elements are copied from the host */

/* Each copy repeats along one axis what is already written; the innermost axis comes first. */
struct spread {
    const struct ggi_box *box;
    struct ggi_box part; /* that the next copy writes */
    int axis;
    size_t done; /* elements along the axis */
};

static void spread_begin(struct spread *spread, const struct ggi_box *box)
{
    spread->box = box;
    spread->axis = box->axes;
    spread->done = 0;
}

/* Prepare the next copy: spread->part, `done` elements after the start of its first axis. False: all is written. */
static bool spread_next(struct spread *spread)
{
    const struct ggi_axis *axis = spread->box->axis;
    if (spread->done)
        spread->done += spread->part.axis[0].count;
    if (!spread->done || spread->done == axis[spread->axis].count) {
        if (!spread->axis--)
            return false;
        spread->done = 1;
    }
    const size_t done = spread->done, left = axis[spread->axis].count - done;
    ggi_box_inner(&spread->part, spread->box, spread->axis);
    spread->part.axis[0].count = done < left ? done : left;
    return true;
}

static bool fill_has_too_many_calls(const struct fill *fill, const struct ggi_box *box)
{
    const struct ggi_copy_job job = {.device = fill->memory->device};
    struct spread spread;
    size_t calls = 0;
    spread_begin(&spread, box);
    while (calls <= CALLS_MAX && spread_next(&spread))
        calls += ggi_copy_calls(&job, &spread.part);
    return calls > CALLS_MAX;
}

static gg_status fill_spread(struct fill *fill, const struct ggi_box *box)
{
    const struct ggi_copy_operand operand = {.memory = fill->memory, .device = true};
    struct ggi_copy_job job = {.dst = operand,
                               .src = operand,
                               .kind = GG_COPY_D2D,
                               .device = fill->memory->device,
                               .stream = fill->stream,
                               .capturing = fill->capturing};
    struct spread spread;
    uint64_t ticket;
    gg_status status = GG_OK;
    spread_begin(&spread, box);
    while (!status && spread_next(&spread)) {
        char *to = fill->dst + (ptrdiff_t)spread.done * spread.part.axis[0].dst;
        if (fill->memory->kind == GG_MEMORY_PINNED)
            ggi_box_copy(to, fill->dst, &spread.part);
        else
            status = ggi_copy_submit(&job, to, fill->dst, &spread.part, &ticket);
    }
    return status;
}

/* One element in host memory is the source for all. */
static gg_status fill_by_copy(const struct fill *fill, size_t offset, const ptrdiff_t *strides,
                              int32_t ndim, const size_t *shape)
{
    static const ptrdiff_t same[GG_COPY_MAX_DIMS];
    const struct gg_copy_operand dst = {.memory = fill->memory, .offset = offset};
    const struct gg_copy_operand src = {.host = (void *)(uintptr_t)fill->pattern};
    return gg_copy_nd(&dst, strides, &src, same, ndim, shape, fill->size, fill->stream, 0);
}

/* ---- the calls ---- */

/* @p box: the elements, or NULL where they are one line. */
static gg_status fill_on_stream(struct fill *fill, const struct ggi_box *box)
{
    gg_memory *memory = fill->memory;
    bool implicit, complete;
    gg_status status = ggi_choose_stream(memory->device, &fill->stream, &implicit, &complete);
    if (status || !fill->count)
        return status;
    ggi_memory_forget_result(memory);
    status = ggi_memory_wait_before_use(memory, fill->stream, implicit);
    if (!status)
        status = fill_run(fill);
    if (!status && box)
        status = fill_spread(fill, box);
    if (!status && complete)
        status = ggi_stream_synchronize(fill->stream, true);
    ggi_drain_others(fill->stream, false);
    return status;
}

gg_status gg_fill(gg_memory *memory, size_t offset, const void *pattern, size_t pattern_size,
                  size_t count, gg_stream *stream)
{
    struct fill fill = {
        .memory = memory, .pattern = pattern, .size = pattern_size, .count = count, .stream = stream};
    gg_status status = fill_check(memory, offset, pattern, pattern_size, count);
    if (status)
        return status;
    fill.dst = (char *)memory->pointer + offset;
    return fill_on_stream(&fill, NULL);
}

gg_status gg_fill_nd(gg_memory *memory, size_t offset, const ptrdiff_t *strides, int32_t ndim,
                     const size_t *shape, const void *pattern, size_t pattern_size,
                     gg_stream *stream)
{
    struct fill fill = {.memory = memory, .pattern = pattern, .size = pattern_size, .stream = stream};
    struct ggi_reach reach;
    struct ggi_box box;
    ptrdiff_t shift = 0, same_shift = 0;
    size_t nbytes = 0;
    gg_status status = fill_check(memory, offset, pattern, pattern_size, 0);
    if (!status)
        status = ggi_box_make(&box, ndim, shape, strides, strides, pattern_size, &nbytes);
    if (!status && nbytes) {
        ggi_box_reach(&box, GGI_DST, &reach);
        status = ggi_copy_check_range(memory, "fill", offset, &reach);
    }
    if (status)
        return status;
    if (nbytes && memory->kind != GG_MEMORY_PINNED && fill_has_too_many_calls(&fill, &box))
        return fill_by_copy(&fill, offset, strides, ndim, shape);
    if (nbytes) {
        ggi_box_order(&box, GGI_DST, &shift, &same_shift);
        fill.count = box.run / pattern_size;
        fill.dst = (char *)memory->pointer + offset + shift;
    }
    return fill_on_stream(&fill, nbytes ? &box : NULL);
}
