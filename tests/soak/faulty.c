/* faulty.c: the host backend as a plugin whose operations fail on request, for soak.py. The requests, and the counts of calls and of
 * living objects, are those of a simulated driver: sim_control.h. */
#include "host.h"
#include "sim_control.h"
#include "sim_engine.h"

#include <string.h>
#include <unistd.h>

static const struct gg_backend_ops *host;
static pid_t process;

/* For the rules of faults: in a forked child nothing fails. */
bool sim_forked(void)
{
    return getpid() != process;
}

/* The status that a rule asks for, with a message; GG_OK without one. */
static gg_status faulty_status(const char *slot)
{
    int code = sim_fault(slot);
    return code ? host_api->fail((gg_status)code, NULL, "the plugin fails in %s on request", slot)
                : GG_OK;
}

#define FAULTY(slot, arguments, ...)                   \
    static gg_status faulty_##slot(__VA_ARGS__)        \
    {                                                  \
        gg_status status = faulty_status(#slot);       \
        return status ? status : host->slot arguments; \
    }
#include "faulty.def"
#undef FAULTY

/* ---- what is counted ---- */

enum kind { STREAM, EVENT, MODULE, DEVICE, PINNED, MANAGED, REGISTERED, KINDS };
static const char *const kind_names[KINDS] = {"stream", "event",   "module",    "device",
                                              "pinned", "managed", "registered"};
static atomic_int alive[KINDS];

int sim_alive(const char *name)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (!strcmp(kind_names[kind], name))
            return atomic_load(&alive[kind]);
    return -1;
}

/* An operation that makes an object of @kind where it succeeds, and one that releases it. */
#define FAULTY_MAKES(slot, kind, arguments, ...)         \
    static gg_status faulty_##slot(__VA_ARGS__)          \
    {                                                    \
        gg_status status = faulty_status(#slot);         \
        if (!status && !(status = host->slot arguments)) \
            atomic_fetch_add(&alive[kind], 1);           \
        return status;                                   \
    }
#define FAULTY_DESTROYS(slot, kind, type)   \
    static void faulty_##slot(type *object) \
    {                                       \
        host->slot(object);                 \
        atomic_fetch_sub(&alive[kind], 1);  \
    }

FAULTY_MAKES(stream_create, STREAM, (device, flags, priority, out), struct gg_device_impl *device,
             uint32_t flags, int32_t priority, struct gg_stream_impl **out)
FAULTY_MAKES(event_create, EVENT, (device, flags, out), struct gg_device_impl *device,
             uint32_t flags, struct gg_event_impl **out)
FAULTY_MAKES(event_borrow, EVENT, (device, native, out), struct gg_device_impl *device,
             uint64_t native, struct gg_event_impl **out)
FAULTY_MAKES(module_load, MODULE, (device, image, bytes, nbytes, out),
             struct gg_device_impl *device, const struct gg_image *image, const void *bytes,
             size_t nbytes, struct gg_module_impl **out)
FAULTY_MAKES(mem_register, REGISTERED, (device, pointer, nbytes), struct gg_device_impl *device,
             void *pointer, size_t nbytes)
FAULTY_DESTROYS(stream_destroy, STREAM, struct gg_stream_impl)
FAULTY_DESTROYS(event_destroy, EVENT, struct gg_event_impl)
FAULTY_DESTROYS(module_unload, MODULE, struct gg_module_impl)

/* The default stream is the device's. */
static gg_status faulty_stream_borrow(struct gg_device_impl *device, uint64_t native,
                                      uint32_t *flags, int32_t *is_default,
                                      struct gg_stream_impl **out)
{
    gg_status status = faulty_status("stream_borrow");
    if (!status && !(status = host->stream_borrow(device, native, flags, is_default, out)) &&
        !*is_default)
        atomic_fetch_add(&alive[STREAM], 1);
    return status;
}

static gg_status faulty_mem_unregister(struct gg_device_impl *device, void *pointer)
{
    gg_status status = host->mem_unregister(device, pointer);
    if (!status)
        atomic_fetch_sub(&alive[REGISTERED], 1);
    return status;
}

static enum kind kind_of(enum gg_memory_kind kind)
{
    return kind == GG_MEMORY_PINNED ? PINNED : kind == GG_MEMORY_MANAGED ? MANAGED : DEVICE;
}

static gg_status faulty_mem_alloc(struct gg_device_impl *device, enum gg_memory_kind kind,
                                  size_t nbytes, void **out)
{
    gg_status status = faulty_status("mem_alloc");
    if (!status && !(status = host->mem_alloc(device, kind, nbytes, out)))
        atomic_fetch_add(&alive[kind_of(kind)], 1);
    return status;
}

static gg_status faulty_mem_free(struct gg_device_impl *device, enum gg_memory_kind kind,
                                 void *pointer)
{
    gg_status status = host->mem_free(device, kind, pointer);
    if (!status)
        atomic_fetch_sub(&alive[kind_of(kind)], 1);
    return status;
}

/* ---- the table ---- */

static struct gg_backend_ops faulty_ops;
static struct gg_backend_desc faulty_desc;

static void faulty_fill_table(void)
{
    faulty_ops = *host;
#define FAULTY(slot, arguments, ...) faulty_ops.slot = faulty_##slot;
#include "faulty.def"
#undef FAULTY
    faulty_ops.mem_alloc = faulty_mem_alloc;
    faulty_ops.mem_free = faulty_mem_free;
    faulty_ops.mem_register = faulty_mem_register;
    faulty_ops.mem_unregister = faulty_mem_unregister;
    faulty_ops.stream_create = faulty_stream_create;
    faulty_ops.stream_borrow = faulty_stream_borrow;
    faulty_ops.stream_destroy = faulty_stream_destroy;
    faulty_ops.event_create = faulty_event_create;
    faulty_ops.event_borrow = faulty_event_borrow;
    faulty_ops.event_destroy = faulty_event_destroy;
    faulty_ops.module_load = faulty_module_load;
    faulty_ops.module_unload = faulty_module_unload;
}

int gg_backend_query(uint32_t core_abi, const struct gg_host_api *api,
                     const struct gg_backend_desc **out)
{
    if (core_abi >> 16 != GG_ABI_MAJOR)
        return 1;
    process = getpid();
    faulty_desc = *ggi_host_backend(api);
    host = faulty_desc.ops;
    faulty_fill_table();
    faulty_desc.ops = &faulty_ops;
    faulty_desc.name = "faulty";
    faulty_desc.aliases = "";
    faulty_desc.priority = -2000;
    *out = &faulty_desc;
    return 0;
}
