/* fill.c: a pattern of any size, written by the device: by the driver's own fill where it has one for
 * that size, else by one small copy that then doubles itself. Elements that lie apart follow by copies of
 * boxes, of which each doubles what is there along one axis. */
#include "copy.h"

#include <string.h>

struct fill {
    gg_memory *memory;
    char *dst;
    const unsigned char *pattern;
    size_t size, count; /* of the pattern in bytes, and how often */
    gg_stream *stream;
    bool capturing;
};

/* The smallest of 1, 2 and 4 bytes that repeats to the same, or 0. */
static size_t shortest(const unsigned char *pattern, size_t size)
{
    for (size_t part = 1; part <= 4; part *= 2)
        if (size % part == 0 && !memcmp(pattern, pattern + part, size - part))
            return part;
    return 0;
}

static void count_use(struct fill *fill)
{
    if (fill->capturing)
        atomic_store(&fill->memory->captured, 1);
    else
        ggi_memory_used(fill->memory, fill->stream, ggi_stream_submitted(fill->stream));
}

static gg_status by_driver(struct fill *fill, size_t part)
{
    struct gg_device *device = fill->stream->device;
    size_t nbytes = fill->size * fill->count;
    uint32_t value = 0;
    memcpy(&value, fill->pattern, part);
    ggi_begin(device, GG_OP_fill, fill->stream, nbytes);
    gg_status status =
        device->ops->fill(fill->stream->impl, fill->dst, value, (uint32_t)part, nbytes / part);
    status = ggi_end(device, GG_OP_fill, fill->stream, nbytes, status);
    count_use(fill);
    return status;
}

static gg_status queue_copy(struct fill *fill, void *dst, const void *src, size_t nbytes,
                            enum gg_copy_kind kind)
{
    struct gg_device *device = fill->stream->device;
    ggi_begin(device, GG_OP_copy, fill->stream, nbytes);
    gg_status status = device->ops->copy(fill->stream->impl, dst, src, nbytes, kind, false);
    return ggi_end(device, GG_OP_copy, fill->stream, nbytes, status);
}

static gg_status by_doubling(struct fill *fill)
{
    struct gg_device *device = fill->stream->device;
    size_t total = fill->size * fill->count, done;
    struct ggi_slot *slot;
    gg_status status = ggi_ring_take(device, &slot);
    if (status)
        return status;
    for (done = 0; done < total && done + fill->size <= GGI_SLOT_SIZE; done += fill->size)
        memcpy((char *)slot->data + done, fill->pattern, fill->size);
    status = queue_copy(fill, fill->dst, slot->data, done, GG_COPY_H2D);
    while (!status && done < total) {
        size_t more = done < total - done ? done : total - done;
        status = queue_copy(fill, fill->dst + done, fill->dst, more, GG_COPY_D2D);
        done += more;
    }
    uint64_t ticket = ggi_stream_submitted(fill->stream);
    ggi_memory_used(fill->memory, fill->stream, ticket);
    ggi_ring_give(device, slot, fill->stream, ticket);
    return status;
}

/* Pinned memory is filled by the host once the stream has come so far. */
static gg_status by_host(struct fill *fill)
{
    if (fill->capturing)
        return ggi_fail(
            GG_ERR_UNSUPPORTED,
            "stream is capturing: a fill of pinned memory cannot become part of a graph");
    gg_status status = ggi_stream_finish(fill->stream, true);
    for (size_t i = 0; !status && i < fill->count; i++)
        memcpy(fill->dst + i * fill->size, fill->pattern, fill->size);
    return status;
}

static gg_status run(struct fill *fill)
{
    size_t part = shortest(fill->pattern, fill->size);
    fill->capturing = ggi_stream_captures(fill->stream);
    if (fill->memory->kind == GG_MEMORY_PINNED)
        return by_host(fill);
    if (part && (uintptr_t)fill->dst % part == 0)
        return by_driver(fill, part);
    if (fill->capturing)
        return ggi_fail(GG_ERR_UNSUPPORTED,
                        "stream is capturing: a pattern of %zu bytes needs a copy from the host; "
                        "patterns that repeat after 1, 2 or 4 bytes do not",
                        fill->size);
    return by_doubling(fill);
}

static gg_status check(const gg_memory *memory, size_t offset, const void *pattern, size_t size,
                       size_t count)
{
    if (!pattern)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "fill: the pattern is a NULL pointer");
    if (!size || size > GGI_SLOT_SIZE)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "fill: a pattern has 1 to %u bytes, not %zu",
                        GGI_SLOT_SIZE, size);
    if (count > SIZE_MAX / size)
        return ggi_fail(GG_ERR_INVALID_ARGUMENT, "fill: %zu patterns of %zu bytes overflow", count,
                        size);
    return ggi_check_range(memory, "fill", offset, size * count);
}

/* ---- elements that lie apart ---- */

/* The first elements along the outermost axis of @p piece once more, behind themselves. */
static gg_status repeat(struct ggi_job *job, struct fill *fill, const struct ggi_box *piece,
                        size_t done)
{
    char *to = fill->dst + (ptrdiff_t)done * piece->axis[0].dst;
    uint64_t ticket;
    if (fill->memory->kind != GG_MEMORY_PINNED)
        return ggi_submit(job, to, fill->dst, piece, GG_COPY_D2D, &ticket);
    ggi_box_copy(to, fill->dst, piece);
    return GG_OK;
}

#define MOST_CALLS 4096u /* of the device's; where it would be more, the host writes the elements */

static void piece_of(const struct ggi_box *box, int axis, size_t count, struct ggi_box *piece)
{
    piece->run = box->run;
    piece->axes = box->axes - axis;
    memcpy(piece->axis, box->axis + axis, (size_t)piece->axes * sizeof piece->axis[0]);
    piece->axis[0].count = count;
}

static bool too_many(struct gg_device *device, const struct ggi_box *box)
{
    const bool regions = gg_device_supports(device, GG_OP_copy_region);
    struct ggi_tiling tiling;
    struct ggi_box piece;
    size_t calls = 0;
    for (int axis = 0; axis < box->axes && calls <= MOST_CALLS; axis++)
        for (size_t done = 1; done < box->axis[axis].count; done += piece.axis[0].count) {
            size_t left = box->axis[axis].count - done;
            piece_of(box, axis, done < left ? done : left, &piece);
            ggi_box_tile(&piece, regions, &tiling);
            calls += tiling.calls;
        }
    return calls > MOST_CALLS;
}

/* From the first run on, along one axis after the other, the innermost first. */
static gg_status spread(struct fill *fill, const struct ggi_box *box)
{
    const struct ggi_end end = {.memory = fill->memory, .device = true};
    struct ggi_job job = {.dst = end,
                          .src = end,
                          .device = fill->memory->device,
                          .stream = fill->stream,
                          .capturing = fill->capturing};
    gg_status status = GG_OK;
    for (int axis = box->axes; !status && axis-- > 0;) {
        struct ggi_box piece;
        for (size_t done = 1; !status && done < box->axis[axis].count; done += piece.axis[0].count) {
            size_t left = box->axis[axis].count - done;
            piece_of(box, axis, done < left ? done : left, &piece);
            status = repeat(&job, fill, &piece, done);
        }
    }
    return status;
}

/* One element of the host's for all. */
static gg_status by_copy(const struct fill *fill, size_t offset, const ptrdiff_t *strides,
                         int32_t ndim, const size_t *shape)
{
    static const ptrdiff_t same[GG_COPY_MAX_DIMS];
    const struct gg_end dst = {.memory = fill->memory, .offset = offset};
    const struct gg_end src = {.host = (void *)(uintptr_t)fill->pattern};
    return gg_copy_nd(&dst, strides, &src, same, ndim, shape, fill->size, fill->stream, 0);
}

/* ---- the calls ---- */

/* @p box: the elements, or NULL where they are one line. */
static gg_status order_and_run(struct fill *fill, const struct ggi_box *box)
{
    gg_memory *memory = fill->memory;
    bool implicit, complete;
    gg_status status = ggi_choose_stream(memory->device, &fill->stream, &implicit, &complete);
    if (status || !fill->count)
        return status;
    if (implicit)
        status = ggi_memory_order(memory, fill->stream);
    else
        status = ggi_memory_enter(memory, fill->stream);
    if (!status)
        status = run(fill);
    if (!status && box)
        status = spread(fill, box);
    if (!status && complete)
        status = ggi_stream_finish(fill->stream, true);
    return status;
}

gg_status gg_fill(gg_memory *memory, size_t offset, const void *pattern, size_t pattern_size,
                  size_t count, gg_stream *stream)
{
    struct fill fill = {
        .memory = memory, .pattern = pattern, .size = pattern_size, .count = count, .stream = stream};
    gg_status status = check(memory, offset, pattern, pattern_size, count);
    if (status)
        return status;
    fill.dst = (char *)memory->pointer + offset;
    return order_and_run(&fill, NULL);
}

gg_status gg_fill_nd(gg_memory *memory, size_t offset, const ptrdiff_t *strides, int32_t ndim,
                     const size_t *shape, const void *pattern, size_t pattern_size,
                     gg_stream *stream)
{
    struct fill fill = {.memory = memory, .pattern = pattern, .size = pattern_size, .stream = stream};
    struct ggi_reach reach = {0, 0};
    struct ggi_box box;
    ptrdiff_t shift = 0, same_shift = 0;
    size_t nbytes = 0;
    gg_status status = check(memory, offset, pattern, pattern_size, 0);
    if (!status)
        status = ggi_box_make(&box, ndim, shape, strides, strides, pattern_size, &nbytes);
    if (!status && nbytes) {
        ggi_box_reach(&box, GGI_DST, &reach);
        status = ggi_check_inside(memory, "fill", offset, &reach);
    }
    if (status)
        return status;
    if (nbytes && memory->kind != GG_MEMORY_PINNED && too_many(memory->device, &box))
        return by_copy(&fill, offset, strides, ndim, shape);
    if (nbytes) {
        ggi_box_order(&box, GGI_DST, &shift, &same_shift);
        fill.count = box.run / pattern_size;
        fill.dst = (char *)memory->pointer + offset + shift;
    }
    return order_and_run(&fill, nbytes ? &box : NULL);
}
