/* copy.c: stream-ordered copies and fills. Only the drivers' asynchronous functions are called: the synchronous
 * ones run on the default stream and not on the caller's. */
#include "driver.h"

static const char *copy_direction(enum gg_copy_kind kind)
{
    switch (kind) {
    case GG_COPY_H2D:
        return "from host to device";
    case GG_COPY_D2H:
        return "from device to host";
    case GG_COPY_D2D:
        return "from device to device";
    }
    return NULL;
}

static int copy_start(enum gg_copy_kind kind, void *dst, const void *src, size_t nbytes,
                      void *stream)
{
    switch (kind) {
    case GG_COPY_H2D:
        return cuhip_driver.copy_h2d(dst, src, nbytes, stream);
    case GG_COPY_D2H:
        return cuhip_driver.copy_d2h(dst, (void *)(uintptr_t)src, nbytes, stream);
    case GG_COPY_D2D:
        return cuhip_driver.copy_d2d(dst, (void *)(uintptr_t)src, nbytes, stream);
    }
    return cuhip.not_supported;
}

gg_status cuhip_copy(struct gg_stream_impl *stream, void *dst, const void *src, size_t nbytes,
                     enum gg_copy_kind kind, int32_t pageable)
{
    (void)pageable; /* the driver detects pinned memory itself */
    if (!copy_direction(kind))
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL, "copy of kind %d", (int)kind);
    const int code = CUHIP_IN_CONTEXT(copy_h2d, stream->device, stream,
                                      copy_start(kind, dst, src, nbytes, stream->native));
    return code ? cuhip_fail(code, "%zu bytes %s, %p to %p", nbytes, copy_direction(kind), src, dst)
                : GG_OK;
}

gg_status cuhip_copy_region(struct gg_stream_impl *stream, void *dst, const void *src,
                            const struct gg_region *region, enum gg_copy_kind kind)
{
    if (!copy_direction(kind))
        return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL, "copy of kind %d", (int)kind);
    const int code = CUHIP_IN_CONTEXT(copy_h2d, stream->device, stream,
                                      cuhip.copy_region(dst, src, region, kind, stream->native));
    return code ? cuhip_fail(code, "%zu x %zu x %zu bytes %s, %p to %p", region->depth,
                             region->height, region->width, copy_direction(kind), src, dst)
                : GG_OK;
}

static int fill_start(void *dst, uint32_t pattern, uint32_t pattern_size, size_t count, void *stream)
{
    switch (pattern_size) {
    case 1:
        return cuhip_driver.fill_8(dst, (unsigned char)pattern, count, stream);
    case 2:
        return cuhip_driver.fill_16(dst, (unsigned short)pattern, count, stream);
    case 4:
        return cuhip_driver.fill_32(dst, pattern, count, stream);
    default:
        return cuhip.not_supported;
    }
}

gg_status cuhip_fill(struct gg_stream_impl *stream, void *dst, uint32_t pattern,
                     uint32_t pattern_size, size_t count)
{
    const int code = CUHIP_IN_CONTEXT(fill_8, stream->device, stream,
                                      fill_start(dst, pattern, pattern_size, count, stream->native));
    if (code)
        return cuhip_fail(code, "%zu times a pattern of %u bytes at %p", count, pattern_size, dst);
    return GG_OK;
}

gg_status cuhip_write_word(struct gg_stream_impl *stream, void *dst, uint64_t value)
{
    const int code = CUHIP_IN_CONTEXT(write_word, stream->device, stream,
                                      cuhip_driver.write_word(stream->native, dst, value, 0));
    return code ? cuhip_fail(code, "8 bytes to %p", dst) : GG_OK;
}
