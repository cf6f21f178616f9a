/* managed.c: managed memory (shared USM): prefetch and advice. */
#include "ze.h"

/* Level Zero has no prefetch to the host, where the memory moves at its first access. */
gg_status ze_mem_prefetch(struct gg_stream_impl *stream, const void *pointer, size_t nbytes,
                          int32_t to_host)
{
    if (!ze.append_prefetch)
        return ze_missing("zeCommandListAppendMemoryPrefetch");
    if (to_host)
        return GG_OK;
    const int code = ZE_APPEND(stream, ze.append_prefetch(stream->list, pointer, nbytes));
    return code ? ze_fail(code, "%zu bytes at %p", nbytes, pointer) : GG_OK;
}

/* -1: there is no such advice. */
static int advice_native(enum gg_advice advice, bool for_host)
{
    switch ((int)advice) {
    case GG_ADVICE_READ_MOSTLY:
        return ZE_MEMORY_ADVICE_SET_READ_MOSTLY;
    case GG_ADVICE_NOT_READ_MOSTLY:
        return ZE_MEMORY_ADVICE_CLEAR_READ_MOSTLY;
    case GG_ADVICE_PREFERRED_LOCATION:
        return for_host ? ZE_MEMORY_ADVICE_SET_SYSTEM_MEMORY_PREFERRED_LOCATION
                        : ZE_MEMORY_ADVICE_SET_PREFERRED_LOCATION;
    case GG_ADVICE_NO_PREFERRED_LOCATION:
        return for_host ? ZE_MEMORY_ADVICE_CLEAR_SYSTEM_MEMORY_PREFERRED_LOCATION
                        : ZE_MEMORY_ADVICE_CLEAR_PREFERRED_LOCATION;
    default:
        return -1;
    }
}

/* Advice is a hint, so advice that Level Zero does not have, or that is newer than the driver or its loader, is
 * accepted and has no effect. It is appended to a list, although it applies at once. */
gg_status ze_mem_advise(struct gg_device_impl *device, const void *pointer, size_t nbytes,
                        enum gg_advice advice, int32_t for_host)
{
    struct gg_stream_impl *stream = device->default_stream;
    const int native = advice_native(advice, for_host);
    if (!ze.append_advice)
        return ze_missing("zeCommandListAppendMemAdvise");
    if (native < 0)
        return GG_OK;
    const int code = ZE_APPEND(stream, ze.append_advice(stream->list, device->gpu->handle, pointer,
                                                        nbytes, (uint32_t)native));
    if (!code || code == ZE_RESULT_ERROR_INVALID_ENUMERATION)
        return GG_OK;
    return ze_fail(code, "advice %d on %zu bytes at %p", (int)advice, nbytes, pointer);
}
