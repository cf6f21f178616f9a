/* monitor.h: the vendor's management library, which is loaded when statistics are first read. */
#ifndef GPUGLUE_CUHIP_MONITOR_H
#define GPUGLUE_CUHIP_MONITOR_H

#include "driver.h"

/* What a vendor declares of its library. */
struct cuhip_monitor {
    struct gg_library_spec library;
    const struct gg_symbol *symbols;
    size_t symbol_count;
    size_t table_size; /* of the struct of functions that the symbols are resolved into */
    /* Initialise the library, once or, if two threads are first, twice. GG_OK or the result of fail. */
    gg_status (*start)(const void *table);
    const char *other;           /* variable of another library that would do; or NULL */
    _Atomic(const void *) table; /* set when the library works */
};

/* The functions of the library. A library that is missing or broken is searched for again at the next call. */
gg_status cuhip_monitor_open(struct cuhip_monitor *monitor, const void **table);

#endif
