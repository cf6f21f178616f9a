/* monitor.c: opens the vendor's management library, without a lock: its initialisation may take seconds. */
#include "monitor.h"

#include <stdlib.h>

static gg_status monitor_fail(const struct cuhip_monitor *monitor, const char *reason)
{
    return cuhip_api->fail(GG_ERR_UNSUPPORTED, NULL,
                           "the vendor's management library cannot be used: %s; it comes with the "
                           "driver, and %s%s%s may name another file",
                           reason, monitor->library.variable, monitor->other ? " or " : "",
                           monitor->other ? monitor->other : "");
}

static gg_status monitor_load(const struct cuhip_monitor *monitor, void *table)
{
    char reason[512] = "";
    struct gg_library library = {.struct_size = sizeof library};
    gg_probe_status status =
        cuhip_api->library_open(&monitor->library, NULL, &library, reason, sizeof reason);
    if (status == GG_PROBE_AVAILABLE)
        status = cuhip_api->library_resolve(&library, monitor->symbols, monitor->symbol_count,
                                            table, reason, sizeof reason);
    return status == GG_PROBE_AVAILABLE ? monitor->start(table) : monitor_fail(monitor, reason);
}

gg_status cuhip_monitor_open(struct cuhip_monitor *monitor, const void **table)
{
    *table = atomic_load_explicit(&monitor->table, memory_order_acquire);
    if (*table)
        return GG_OK;
    void *loaded = calloc(1, monitor->table_size);
    if (!loaded)
        return cuhip_no_memory(monitor->table_size, "the functions of a library");
    const gg_status status = monitor_load(monitor, loaded);
    if (status || !atomic_compare_exchange_strong(&monitor->table, table, loaded))
        free(loaded); /* it failed, or another thread was first */
    else
        *table = loaded;
    return status;
}
