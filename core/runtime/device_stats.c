/* device_stats.c: load, memory, power and temperature of a device, from the vendor's management library. */
#include "base/error.h"
#include "base/sized.h"
#include "runtime/call.h"

#include <math.h>

static const struct gg_device_stats stats_unknown = {
    .struct_size = sizeof stats_unknown,
    .throttle_reasons = GG_THROTTLE_UNKNOWN,
    .compute_utilization = NAN,
    .memory_utilization = NAN,
    .memory_used = UINT64_MAX,
    .memory_total = UINT64_MAX,
    .power = NAN,
    .temperature = NAN,
    .compute_clock = NAN,
    .memory_clock = NAN,
    .process_count = -1,
};

/* Some management libraries return meaningless values for sensors that a device does not have. */
static double stats_within(double value, double least, double most)
{
    return value >= least && value <= most ? value : NAN;
}

static void stats_drop_impossible(struct gg_device_stats *stats)
{
    const double clock_most = 1e6;
    stats->compute_utilization = stats_within(stats->compute_utilization, 0, 100);
    stats->memory_utilization = stats_within(stats->memory_utilization, 0, 100);
    stats->power = stats_within(stats->power, 0, 1e6);
    stats->temperature = stats_within(stats->temperature, -273, 1000);
    stats->compute_clock = stats_within(stats->compute_clock, 0, clock_most);
    stats->memory_clock = stats_within(stats->memory_clock, 0, clock_most);
    if (stats->memory_total == 0)
        stats->memory_total = stats->memory_used = UINT64_MAX;
    if (stats->process_count < -1)
        stats->process_count = -1;
    stats->source[sizeof stats->source - 1] = 0;
}

gg_status gg_device_stats(gg_device *device, struct gg_device_stats *stats)
{
    static const size_t first = offsetof(struct gg_device_stats, source) + sizeof stats->source;
    struct gg_device_stats full = stats_unknown;
    gg_status status = ggi_device_check(device);
    if (status)
        return status;
    if (!ggi_sized_fits(stats, first))
        return ggi_sized_refuse("gg_device_stats", "gg_device_stats", stats, first);
    full.processes = stats->processes;
    full.process_room = stats->processes ? stats->process_room : 0;
    status = GGI_CALL_OPTIONAL(device, device_stats, NULL, 0, (device->ordinal, &full));
    if (status)
        return status;
    full.process_room = stats->process_room;
    stats_drop_impossible(&full);
    ggi_sized_write(stats, &full, sizeof full);
    return GG_OK;
}

const char *gg_throttle_name(uint32_t reason)
{
    switch (reason) {
#define STATS_NAME(name, bit, word) \
    case GG_THROTTLE_##name:        \
        return word;
        GG_THROTTLES(STATS_NAME)
#undef STATS_NAME
    default:
        return NULL;
    }
}
