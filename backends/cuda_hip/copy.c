/* copy.c: stream-ordered copies and fills. Only the drivers' asynchronous functions are called: their
 * synchronous ones run on the default stream, whatever stream the caller meant. */
#include "driver.h"

static const char *direction(enum gg_copy_kind kind)
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

static int start_copy(enum gg_copy_kind kind, void *dst, const void *src, size_t nbytes,
                      void *stream)
{
    switch (kind) {
    case GG_COPY_H2D:
        return twin_driver.copy_h2d(dst, src, nbytes, stream);
    case GG_COPY_D2H:
        return twin_driver.copy_d2h(dst, (void *)(uintptr_t)src, nbytes, stream);
    case GG_COPY_D2D:
        return twin_driver.copy_d2d(dst, (void *)(uintptr_t)src, nbytes, stream);
    }
    return twin.not_supported;
}

gg_status twin_copy(struct gg_stream_impl *stream, void *dst, const void *src, size_t nbytes,
                    enum gg_copy_kind kind, int32_t pageable)
{
    struct twin_guard guard;
    (void)pageable; /* the driver sees by itself what is page-locked */
    if (!direction(kind))
        return twin_host->fail(GG_ERR_UNSUPPORTED, NULL, "copy of kind %d", (int)kind);
    int code = twin_enter(&guard, TWIN_AT_copy_h2d, stream->device, stream);
    if (!code)
        code = start_copy(kind, dst, src, nbytes, stream->native);
    twin_leave(&guard);
    return code ? twin_fail(code, "%zu bytes %s, %p to %p", nbytes, direction(kind), src, dst)
                : GG_OK;
}

gg_status twin_copy_region(struct gg_stream_impl *stream, void *dst, const void *src,
                           const struct gg_region *region, enum gg_copy_kind kind)
{
    struct twin_guard guard;
    if (!direction(kind))
        return twin_host->fail(GG_ERR_UNSUPPORTED, NULL, "copy of kind %d", (int)kind);
    int code = twin_enter(&guard, TWIN_AT_copy_h2d, stream->device, stream);
    if (!code)
        code = twin.copy_region(dst, src, region, kind, stream->native);
    twin_leave(&guard);
    return code ? twin_fail(code, "%zu x %zu x %zu bytes %s, %p to %p", region->depth,
                            region->height, region->width, direction(kind), src, dst)
                : GG_OK;
}

static int start_fill(void *dst, uint32_t pattern, uint32_t pattern_size, size_t count, void *stream)
{
    switch (pattern_size) {
    case 1:
        return twin_driver.fill_8(dst, (unsigned char)pattern, count, stream);
    case 2:
        return twin_driver.fill_16(dst, (unsigned short)pattern, count, stream);
    case 4:
        return twin_driver.fill_32(dst, pattern, count, stream);
    default:
        return twin.not_supported;
    }
}

gg_status twin_fill(struct gg_stream_impl *stream, void *dst, uint32_t pattern,
                    uint32_t pattern_size, size_t count)
{
    struct twin_guard guard;
    int code = twin_enter(&guard, TWIN_AT_fill_8, stream->device, stream);
    if (!code)
        code = start_fill(dst, pattern, pattern_size, count, stream->native);
    twin_leave(&guard);
    if (code)
        return twin_fail(code, "%zu times a pattern of %u bytes at %p", count, pattern_size, dst);
    return GG_OK;
}

gg_status twin_write_word(struct gg_stream_impl *stream, void *dst, uint64_t value)
{
    struct twin_guard guard;
    int code = twin_enter(&guard, TWIN_AT_write_word, stream->device, stream);
    if (!code)
        code = twin_driver.write_word(stream->native, dst, value, 0);
    twin_leave(&guard);
    return code ? twin_fail(code, "8 bytes to %p", dst) : GG_OK;
}
