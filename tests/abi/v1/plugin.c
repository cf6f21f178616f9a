/* plugin.c: the example plugin as it was when ABI 1 was fixed, for the headers in this directory. Do not change it. */
#include <gpuglue/backend.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#define HEADER \
    256 /* bytes in front of each block, for its size: keeps the alignment that mem_alloc guarantees */

/* What the core offers to a backend: fail() records an error, library_open() finds the vendor's library. */
static const struct gg_host_api *mine_api;

/* The types that the core passes on without looking into them. Yours hold the driver's handles. */
struct gg_stream_impl {
    struct gg_device_impl *device;
};

struct gg_device_impl {
    struct gg_stream_impl default_stream;
};

struct gg_event_impl {
    struct gg_device_impl *device;
};

/* ---- probe -------------------------------------------------------------------------------------- */

/* Find the driver's library: mine_api->library_open, then library_resolve. Only at GG_ACTIVE may it be
 * initialised and its devices be counted. Host memory needs neither. */
static void mine_probe(enum gg_probe_level level, struct gg_probe_result *result)
{
    (void)level;
    result->status = GG_PROBE_AVAILABLE;
    result->device_count = 1;
}

/* ---- device ------------------------------------------------------------------------------------- */

/* Describe a device without opening it. */
static gg_status mine_device_info(int32_t ordinal, struct gg_device_info *info)
{
    struct utsname machine = {0};
    uname(&machine);
    snprintf(info->name, sizeof info->name, "example device %d", (int)ordinal);
    snprintf(info->arch, sizeof info->arch, "%.31s", machine.machine);
    info->total_memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    info->flags = GG_DEVICE_FORK_SAFE_UNTIL_OPEN | GG_DEVICE_FREE_NEVER_WAITS;
    info->numa_node = -1;
    return GG_OK;
}

/* Called once per ordinal. Here a driver's context is retained. */
static gg_status mine_device_open(int32_t ordinal, struct gg_device_impl **out)
{
    struct gg_device_impl *device = calloc(1, sizeof *device);
    (void)ordinal;
    if (!device)
        return mine_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no host memory for a device");
    device->default_stream.device = device;
    *out = device;
    return GG_OK;
}

static void mine_device_close(struct gg_device_impl *device)
{
    free(device);
}

/* Streams are synchronous here, so nothing is ever pending. */
static gg_status mine_device_synchronize(struct gg_device_impl *device)
{
    (void)device;
    return GG_OK;
}

/* Make the device current in the calling thread, and restore what was current before. This backend has no
 * current device. */
static gg_status mine_device_enter(struct gg_device_impl *device, void **saved)
{
    (void)device;
    *saved = NULL;
    return GG_OK;
}

static void mine_device_leave(void *saved)
{
    (void)saved;
}

/* ---- memory ------------------------------------------------------------------------------------- */

/* Device memory, and pinned memory: host memory that the device reaches at the same address, and that a forked
 * child shares. */
static gg_status mine_mem_alloc(struct gg_device_impl *device, enum gg_memory_kind kind,
                                size_t nbytes, void **out)
{
    const size_t total = HEADER + nbytes;
    (void)device;
    if (kind != GG_MEMORY_DEVICE && kind != GG_MEMORY_PINNED)
        return mine_api->fail(GG_ERR_UNSUPPORTED, NULL, "this device has no managed memory");
    size_t *base =
        mmap(NULL, total, PROT_READ | PROT_WRITE,
             MAP_ANONYMOUS | (kind == GG_MEMORY_PINNED ? MAP_SHARED : MAP_PRIVATE), -1, 0);
    if (base == MAP_FAILED)
        return mine_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "%zu bytes", nbytes);
    *base = total;
    *out = (char *)base + HEADER;
    return GG_OK;
}

static gg_status mine_mem_free(struct gg_device_impl *device, enum gg_memory_kind kind,
                               void *pointer)
{
    (void)device;
    (void)kind;
    size_t *base = (size_t *)(void *)((char *)pointer - HEADER);
    munmap(base, *base);
    return GG_OK;
}

/* ---- copy and fill: a driver enqueues them on the stream and returns ----------------------------- */

static gg_status mine_copy(struct gg_stream_impl *stream, void *dst, const void *src, size_t nbytes,
                           enum gg_copy_kind kind, int32_t pageable)
{
    (void)stream;
    (void)kind;
    (void)pageable;
    memcpy(dst, src, nbytes);
    return GG_OK;
}

/* Patterns are little-endian: the first @p pattern_size bytes of the value. */
static gg_status mine_fill(struct gg_stream_impl *stream, void *dst, uint32_t pattern,
                           uint32_t pattern_size, size_t count)
{
    (void)stream;
    if (pattern_size != 1 && pattern_size != 2 && pattern_size != 4)
        return mine_api->fail(GG_ERR_UNSUPPORTED, NULL, "a pattern of %u bytes",
                              (unsigned)pattern_size);
    for (size_t i = 0; i < count; i++)
        memcpy((char *)dst + i * pattern_size, &pattern, pattern_size);
    return GG_OK;
}

/* ---- streams: each operation has finished when it returns, so a stream is always idle ------------ */

static gg_status mine_stream_default(struct gg_device_impl *device, struct gg_stream_impl **out)
{
    *out = &device->default_stream;
    return GG_OK;
}

static gg_status mine_stream_create(struct gg_device_impl *device, uint32_t flags, int32_t priority,
                                    struct gg_stream_impl **out)
{
    (void)priority;
    if (flags & ~(uint32_t)GG_STREAM_NONBLOCKING)
        return mine_api->fail(GG_ERR_UNSUPPORTED, NULL, "stream flags 0x%x", (unsigned)flags);
    struct gg_stream_impl *stream = calloc(1, sizeof *stream);
    if (!stream)
        return mine_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no host memory for a stream");
    stream->device = device;
    *out = stream;
    return GG_OK;
}

static void mine_stream_destroy(struct gg_stream_impl *stream)
{
    if (stream != &stream->device->default_stream)
        free(stream);
}

static gg_status mine_stream_query(struct gg_stream_impl *stream)
{
    (void)stream;
    return GG_OK;
}

static gg_status mine_stream_wait(struct gg_stream_impl *stream, uint64_t timeout_ns)
{
    (void)stream;
    (void)timeout_ns;
    return GG_OK;
}

static gg_status mine_stream_wait_event(struct gg_stream_impl *stream, struct gg_event_impl *event)
{
    (void)stream;
    (void)event;
    return GG_OK;
}

/* ---- events: what was recorded has already happened ---------------------------------------------- */

static gg_status mine_event_create(struct gg_device_impl *device, uint32_t flags,
                                   struct gg_event_impl **out)
{
    /* GG_EVENT_TIMING is for event_elapsed, an optional operation; here it changes nothing. */
    if (flags & ~(uint32_t)(GG_EVENT_TIMING | GG_EVENT_BLOCKING))
        return mine_api->fail(GG_ERR_UNSUPPORTED, NULL, "event flags 0x%x", (unsigned)flags);
    struct gg_event_impl *event = calloc(1, sizeof *event);
    if (!event)
        return mine_api->fail(GG_ERR_OUT_OF_MEMORY, NULL, "no host memory for an event");
    event->device = device;
    *out = event;
    return GG_OK;
}

static void mine_event_destroy(struct gg_event_impl *event)
{
    free(event);
}

static gg_status mine_event_record(struct gg_event_impl *event, struct gg_stream_impl *stream)
{
    (void)event;
    (void)stream;
    return GG_OK;
}

static gg_status mine_event_query(struct gg_event_impl *event)
{
    (void)event;
    return GG_OK;
}

static gg_status mine_event_wait(struct gg_event_impl *event, uint64_t timeout_ns)
{
    (void)event;
    (void)timeout_ns;
    return GG_OK;
}

/* ---- the plugin --------------------------------------------------------------------------------- */

/* All slots that gpuglue/ops.def marks GG_REQUIRED. The others stay NULL: the core works around them, or
 * returns GG_ERR_UNSUPPORTED. */
static const struct gg_backend_ops mine_ops = {
    .struct_size = sizeof mine_ops,
    .probe = mine_probe,
    .device_info = mine_device_info,
    .device_open = mine_device_open,
    .device_close = mine_device_close,
    .device_synchronize = mine_device_synchronize,
    .device_enter = mine_device_enter,
    .device_leave = mine_device_leave,
    .mem_alloc = mine_mem_alloc,
    .mem_free = mine_mem_free,
    .copy = mine_copy,
    .fill = mine_fill,
    .stream_default = mine_stream_default,
    .stream_create = mine_stream_create,
    .stream_destroy = mine_stream_destroy,
    .stream_query = mine_stream_query,
    .stream_wait = mine_stream_wait,
    .stream_wait_event = mine_stream_wait_event,
    .event_create = mine_event_create,
    .event_destroy = mine_event_destroy,
    .event_record = mine_event_record,
    .event_query = mine_event_query,
    .event_wait = mine_event_wait,
};

static const struct gg_backend_desc mine_desc = {
    .magic = GG_BACKEND_MAGIC,
    .struct_size = sizeof mine_desc,
    .abi_major = GG_BACKEND_ABI_MAJOR,
    .abi_minor = GG_BACKEND_ABI_MINOR,
    .priority = -2000, /* below every other backend: used only if it is selected by name */
    .name = "mine",    /* as in gpuglue_mine.so */
    .version = "1.0",  /* the plugin's own */
    .ops = &mine_ops,
};

/* The one symbol that the plugin exports: reject a core of another major ABI, else keep its functions. */
int gg_backend_query(uint32_t core_abi, const struct gg_host_api *host,
                     const struct gg_backend_desc **out)
{
    if (core_abi >> 16 != GG_ABI_MAJOR || host->struct_size < sizeof *host)
        return 1;
    mine_api = host;
    *out = &mine_desc;
    return 0;
}
