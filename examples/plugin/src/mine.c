/* mine.c: the descriptor, the table of operations, the probe, and time. */
#include "mine.h"

#include <time.h>

#define NS_PER_S 1000000000u

const struct gg_host_api *mine_api;

/* capture_mode and stream_capturing stay NULL: there are no graphs here. kernel_allow_shared too: no
 * block gets more shared memory than others. device_supports too: all
 * that the table has works. */
static const struct gg_backend_ops mine_ops = {
    .struct_size = sizeof mine_ops,
    .probe = mine_probe,
    .device_info = mine_device_info,
    .device_attribute = mine_device_attribute,
    .device_open = mine_device_open,
    .device_close = mine_device_close,
    .device_memory_info = mine_device_memory_info,
    .device_synchronize = mine_device_synchronize,
    .device_record = mine_device_record,
    .device_native = mine_device_native,
    .device_enter = mine_device_enter,
    .device_leave = mine_device_leave,
    .device_current = mine_device_current,
    .mem_alloc = mine_mem_alloc,
    .mem_free = mine_mem_free,
    .pointer_info = mine_pointer_info,
    .copy = mine_copy,
    .fill = mine_fill,
    .stream_default = mine_stream_default,
    .stream_create = mine_stream_create,
    .stream_destroy = mine_stream_destroy,
    .stream_borrow = mine_stream_borrow,
    .stream_native = mine_stream_native,
    .stream_query = mine_stream_query,
    .stream_wait = mine_stream_wait,
    .stream_wait_event = mine_stream_wait_event,
    .stream_priority_range = mine_stream_priority_range,
    .stream_host_func = mine_stream_host_func,
    .event_create = mine_event_create,
    .event_destroy = mine_event_destroy,
    .event_borrow = mine_event_borrow,
    .event_native = mine_event_native,
    .event_record = mine_event_record,
    .event_query = mine_event_query,
    .event_wait = mine_event_wait,
    .event_elapsed = mine_event_elapsed,
    .write_word = mine_write_word,
    .mem_register = mine_mem_register,
    .mem_unregister = mine_mem_unregister,
    .mem_prefetch = mine_mem_prefetch,
    .mem_advise = mine_mem_advise,
    .copy_region = mine_copy_region,
    .module_load = mine_module_load,
    .module_unload = mine_module_unload,
    .module_global = mine_module_global,
    .module_kernel = mine_module_kernel,
    .kernel_parameter = mine_kernel_parameter,
    .kernel_attribute = mine_kernel_attribute,
    .kernel_occupancy = mine_kernel_occupancy,
    .kernel_suggest = mine_kernel_suggest,
    .kernel_launch = mine_kernel_launch,
    .module_names = mine_module_names,
};

static const struct gg_backend_desc mine_desc = {
    .magic = GG_BACKEND_MAGIC,
    .struct_size = sizeof mine_desc,
    .abi_major = GG_BACKEND_ABI_MAJOR,
    .abi_minor = GG_BACKEND_ABI_MINOR,
    .priority = -2000, /* only where it is named: behind the built-in host */
    .name = "mine",    /* as in gpuglue_mine.so */
    .version = "1.0",  /* the plugin's own */
    .ops = &mine_ops,
};

/* The one symbol that the plugin exports: refuse a core of another major ABI, else keep what it lends. */
int gg_backend_query(uint32_t core_abi, const struct gg_host_api *host,
                     const struct gg_backend_desc **out)
{
    if (core_abi >> 16 != GG_ABI_MAJOR || host->struct_size < sizeof *host)
        return 1;
    mine_api = host;
    *out = &mine_desc;
    return 0;
}

/* Nothing has to be found or initialised, so both levels answer alike. */
void mine_probe(enum gg_probe_level level, struct gg_probe_result *result)
{
    (void)level;
    result->status = GG_PROBE_AVAILABLE;
    result->device_count = 1;
}

/* ---- time ---- */

uint64_t mine_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t mine_deadline(uint64_t timeout_ns)
{
    uint64_t now = mine_now_ns();
    return timeout_ns > GG_FOREVER - now ? GG_FOREVER : now + timeout_ns;
}

void mine_cond_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool mine_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t deadline)
{
    struct timespec until = {(time_t)(deadline / NS_PER_S), (long)(deadline % NS_PER_S)};
    if (deadline == GG_FOREVER)
        return pthread_cond_wait(condition, lock) == 0;
    return pthread_cond_timedwait(condition, lock, &until) == 0;
}
