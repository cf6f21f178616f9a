/* fill.c: a pattern of any size, written by the device: by the driver's own fill where it has one for
 * that size, else by one small copy that then doubles itself. */
#include "internal.h"

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
    fill->capturing = !fill->stream->is_default && ggi_stream_capturing(fill->stream);
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

gg_status gg_fill(gg_memory *memory, size_t offset, const void *pattern, size_t pattern_size,
                  size_t count, gg_stream *stream)
{
    struct fill fill = {
        .memory = memory, .pattern = pattern, .size = pattern_size, .count = count, .stream = stream};
    bool implicit, complete;
    gg_status status = check(memory, offset, pattern, pattern_size, count);
    if (!status)
        status = ggi_choose_stream(memory->device, &fill.stream, &implicit, &complete);
    if (status || !count)
        return status;
    fill.dst = (char *)memory->pointer + offset;
    if (implicit)
        status = ggi_memory_order(memory, fill.stream);
    else
        status = ggi_memory_enter(memory, fill.stream);
    if (!status)
        status = run(&fill);
    if (!status && complete)
        status = ggi_stream_finish(fill.stream, true);
    return status;
}
