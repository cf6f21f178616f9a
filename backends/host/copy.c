/* copy.c: copies and fills, run by the stream's worker. */
#include "host.h"

#include <string.h>

static void run_copy(const struct host_command *command)
{
    memcpy(command->dst, command->src, command->size);
}

/* Pageable memory is accessed asynchronously too: this exposes a core that releases it too early. */
gg_status host_copy(struct gg_stream_impl *stream, void *dst, const void *src, size_t nbytes,
                    enum gg_copy_kind kind, int32_t pageable)
{
    const struct host_command work = {.run = run_copy, .dst = dst, .src = src, .size = nbytes};
    gg_status status = GG_OK;
    (void)pageable;
    if (kind != GG_COPY_D2H)
        status = host_check_device_range(stream->device, dst, nbytes);
    if (!status && kind != GG_COPY_H2D)
        status = host_check_device_range(stream->device, src, nbytes);
    return status ? status : host_submit(stream, &work);
}

/* ---- devices of other nodes: all memory is in reach, and peer_enable names the devices whose memory may be used ---- */

gg_status host_peer_access(struct gg_device_impl *device, struct gg_device_impl *peer, int32_t *out)
{
    (void)device;
    (void)peer;
    *out = 1;
    return GG_OK;
}

gg_status host_peer_enable(struct gg_device_impl *device, struct gg_device_impl *peer)
{
    atomic_store(&device->peers[peer->ordinal], peer);
    return GG_OK;
}

gg_status host_copy_peer(struct gg_stream_impl *stream, struct gg_device_impl *dst_device, void *dst,
                         struct gg_device_impl *src_device, const void *src, size_t nbytes)
{
    const struct host_command work = {.run = run_copy, .dst = dst, .src = src, .size = nbytes};
    gg_status status = host_check_device_range(dst_device, dst, nbytes);
    if (!status)
        status = host_check_device_range(src_device, src, nbytes);
    return status ? status : host_submit(stream, &work);
}

/* ---- rectangular regions ---- */

static void run_copy_region(const struct host_command *command)
{
    const struct gg_region *box = &command->region;
    char *dst = command->dst;
    const char *src = command->src;
    for (size_t z = 0; z < box->depth; z++)
        for (size_t y = 0; y < box->height; y++)
            memcpy(dst + z * box->dst_slice + y * box->dst_pitch,
                   src + z * box->src_slice + y * box->src_pitch, box->width);
}

gg_status host_copy_region(struct gg_stream_impl *stream, void *dst, const void *src,
                           const struct gg_region *region, enum gg_copy_kind kind)
{
    const struct host_command work = {
        .run = run_copy_region, .dst = dst, .src = src, .region = *region};
    const size_t rows = region->height - 1, slices = region->depth - 1;
    gg_status status = GG_OK;
    if (kind != GG_COPY_D2H)
        status = host_check_device_range(stream->device, dst,
                                         slices * region->dst_slice + rows * region->dst_pitch +
                                             region->width);
    if (!status && kind != GG_COPY_H2D)
        status = host_check_device_range(stream->device, src,
                                         slices * region->src_slice + rows * region->src_pitch +
                                             region->width);
    return status ? status : host_submit(stream, &work);
}

/* ---- fill ---- */

static void run_fill_1(const struct host_command *command)
{
    memset(command->dst, (int)command->pattern, command->size);
}

static void run_fill_2(const struct host_command *command)
{
    uint16_t *to = command->dst;
    for (size_t i = 0; i < command->size; i++)
        to[i] = (uint16_t)command->pattern;
}

static void run_fill_4(const struct host_command *command)
{
    uint32_t *to = command->dst;
    for (size_t i = 0; i < command->size; i++)
        to[i] = (uint32_t)command->pattern;
}

gg_status host_fill(struct gg_stream_impl *stream, void *dst, uint32_t pattern,
                    uint32_t pattern_size, size_t count)
{
    struct host_command work = {.dst = dst, .pattern = pattern, .size = count};
    gg_status status = host_check_device_range(stream->device, dst, count * pattern_size);
    if (status)
        return status;
    if (pattern_size == 1)
        work.run = run_fill_1;
    else if (pattern_size == 2)
        work.run = run_fill_2;
    else if (pattern_size == 4)
        work.run = run_fill_4;
    else
        return host_api->fail(GG_ERR_UNSUPPORTED, NULL, "a pattern of %u bytes",
                              (unsigned)pattern_size);
    return host_submit(stream, &work);
}

/* ---- one word ---- */

static void run_write_word(const struct host_command *command)
{
    atomic_store_explicit((_Atomic(uint64_t) *)command->dst, command->pattern, memory_order_release);
}

gg_status host_write_word(struct gg_stream_impl *stream, void *dst, uint64_t value)
{
    const struct host_command work = {.run = run_write_word, .dst = dst, .pattern = value};
    gg_status status = host_check_device_range(stream->device, dst, sizeof value);
    return status ? status : host_submit(stream, &work);
}
