/* host.c: the descriptor, the table of operations, the probe, and time. */
#include "host.h"

#include <time.h>

#define NS_PER_S 1000000000u

const struct gg_host_api *host_api;

/* ---- the table: all of ops.def, except what a processor does not have ---- */

#define host_capture_mode NULL /* no graphs */
#define host_stream_capturing NULL
#define host_capture_begin NULL
#define host_capture_end NULL
#define host_graph_launch NULL
#define host_graph_update NULL
#define host_graph_destroy NULL
#define host_capture_id NULL
#define host_device_supports NULL /* all slots of the table work */
#define host_mem_alloc_async NULL /* no driver with a pool of its own */
#define host_mem_free_async NULL
#define host_kernel_allow_shared NULL /* all blocks have the same limit of shared memory */
#define host_range_tool NULL          /* no profiler of its own */
#define host_module_load_with NULL    /* no compiler of its own */
#define host_module_binary NULL
#define host_pointer_known NULL /* pointer_info is as fast */

static const struct gg_backend_ops host_ops = {
    .struct_size = sizeof host_ops,
#define OP(slot, need) .slot = host_##slot,
#include <gpuglue/ops.def>
#undef OP
};

static const struct gg_backend_desc host_desc = {
    .magic = GG_BACKEND_MAGIC,
    .struct_size = sizeof host_desc,
    .abi_major = GG_BACKEND_ABI_MAJOR,
    .abi_minor = GG_BACKEND_ABI_MINOR,
    .priority = -1000, /* chosen only if there is no GPU */
    .name = "host",
    .version = GG_VERSION,
    .ops = &host_ops,
    .aliases = "cpu",
};

const struct gg_backend_desc *ggi_host_backend(const struct gg_host_api *host)
{
    host_api = host;
    return &host_desc;
}

/* There is nothing to find or initialise, so both levels give the same result. */
void host_probe(enum gg_probe_level level, struct gg_probe_result *result)
{
    (void)level;
    result->status = GG_PROBE_AVAILABLE;
    result->device_count = host_device_count();
}

/* ---- time ---- */

uint64_t host_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t host_deadline(uint64_t timeout_ns)
{
    uint64_t now = host_now_ns();
    return timeout_ns > GG_FOREVER - now ? GG_FOREVER : now + timeout_ns;
}

void host_cond_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool host_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t deadline)
{
    struct timespec until = {(time_t)(deadline / NS_PER_S), (long)(deadline % NS_PER_S)};
    if (deadline == GG_FOREVER)
        return pthread_cond_wait(condition, lock) == 0;
    return pthread_cond_timedwait(condition, lock, &until) == 0;
}
