/* host.c: the descriptor, the table of operations, the probe, and time. */
#include "host.h"

#include <time.h>

#define NS_PER_S 1000000000u

const struct gg_host_api *host_api;

/* capture_mode and stream_capturing stay NULL: there are no graphs here. kernel_allow_shared too: no
 * block gets more shared memory than others. device_supports too: all
 * that the table has works. */
static const struct gg_backend_ops host_ops = {
    .struct_size = sizeof host_ops,
    .probe = host_probe,
    .device_info = host_device_info,
    .device_attribute = host_device_attribute,
    .device_open = host_device_open,
    .device_close = host_device_close,
    .device_memory_info = host_device_memory_info,
    .device_synchronize = host_device_synchronize,
    .device_record = host_device_record,
    .device_native = host_device_native,
    .device_enter = host_device_enter,
    .device_leave = host_device_leave,
    .device_current = host_device_current,
    .mem_alloc = host_mem_alloc,
    .mem_free = host_mem_free,
    .pointer_info = host_pointer_info,
    .copy = host_copy,
    .fill = host_fill,
    .stream_default = host_stream_default,
    .stream_create = host_stream_create,
    .stream_destroy = host_stream_destroy,
    .stream_borrow = host_stream_borrow,
    .stream_native = host_stream_native,
    .stream_query = host_stream_query,
    .stream_wait = host_stream_wait,
    .stream_wait_event = host_stream_wait_event,
    .stream_priority_range = host_stream_priority_range,
    .stream_host_func = host_stream_host_func,
    .event_create = host_event_create,
    .event_destroy = host_event_destroy,
    .event_borrow = host_event_borrow,
    .event_native = host_event_native,
    .event_record = host_event_record,
    .event_query = host_event_query,
    .event_wait = host_event_wait,
    .event_elapsed = host_event_elapsed,
    .write_word = host_write_word,
    .mem_register = host_mem_register,
    .mem_unregister = host_mem_unregister,
    .mem_prefetch = host_mem_prefetch,
    .mem_advise = host_mem_advise,
    .copy_region = host_copy_region,
    .module_load = host_module_load,
    .module_unload = host_module_unload,
    .module_global = host_module_global,
    .module_kernel = host_module_kernel,
    .kernel_parameter = host_kernel_parameter,
    .kernel_attribute = host_kernel_attribute,
    .kernel_occupancy = host_kernel_occupancy,
    .kernel_suggest = host_kernel_suggest,
    .kernel_launch = host_kernel_launch,
    .module_names = host_module_names,
};

static const struct gg_backend_desc host_desc = {
    .magic = GG_BACKEND_MAGIC,
    .struct_size = sizeof host_desc,
    .abi_major = GG_BACKEND_ABI_MAJOR,
    .abi_minor = GG_BACKEND_ABI_MINOR,
    .priority = -1000, /* the last resort: every GPU comes first */
    .name = "host",
    .version = GG_VERSION,
    .ops = &host_ops,
};

const struct gg_backend_desc *ggi_host_backend(const struct gg_host_api *host)
{
    host_api = host;
    return &host_desc;
}

/* Nothing has to be found or initialised, so both levels answer alike. */
void host_probe(enum gg_probe_level level, struct gg_probe_result *result)
{
    (void)level;
    result->status = GG_PROBE_AVAILABLE;
    result->device_count = 1;
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
