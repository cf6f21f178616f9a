/* stats.c: load, memory, temperature and clock of this machine's processor, from /proc and /sys. */
#include "host.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SENSORS 32

/* The kernel counts ticks since it started; the load is that of the ticks since the previous call. */
static struct {
    pthread_mutex_t lock;
    uint64_t busy, all;
} stats_previous = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool stats_read_ticks(uint64_t *busy, uint64_t *all)
{
    uint64_t t[8] = {0}; /* user nice system idle iowait irq softirq steal */
    FILE *file = fopen("/proc/stat", "re");
    if (!file)
        return false;
    const int found = fscanf(file,
                             "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                             " %" SCNu64 " %" SCNu64 " %" SCNu64,
                             &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]);
    fclose(file);
    *busy = t[0] + t[1] + t[2] + t[5] + t[6] + t[7];
    *all = *busy + t[3] + t[4];
    return found >= 4;
}

static void stats_add_load(struct gg_device_stats *stats)
{
    uint64_t busy, all;
    if (!stats_read_ticks(&busy, &all))
        return;
    pthread_mutex_lock(&stats_previous.lock);
    const uint64_t busy_before = stats_previous.busy, all_before = stats_previous.all;
    stats_previous.busy = busy;
    stats_previous.all = all;
    pthread_mutex_unlock(&stats_previous.lock);
    if (all_before && all > all_before && busy >= busy_before)
        stats->compute_utilization = 100 * (double)(busy - busy_before) / (double)(all - all_before);
}

static void stats_add_memory(struct gg_device_stats *stats)
{
    char line[128];
    uint64_t total = 0, available = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        (void)sscanf(line, "MemTotal: %" SCNu64, &total);
        (void)sscanf(line, "MemAvailable: %" SCNu64, &available);
    }
    if (file)
        fclose(file);
    if (!total || available > total)
        return;
    stats->memory_total = total << 10; /* the file has KiB */
    stats->memory_used = (total - available) << 10;
}

static bool stats_read_number(const char *path, double *out)
{
    FILE *file = fopen(path, "re");
    const bool found = file && fscanf(file, "%lf", out) == 1;
    if (file)
        fclose(file);
    return found;
}

static bool stats_read_word(const char *path, char word[32])
{
    FILE *file = fopen(path, "re");
    const bool found = file && fscanf(file, "%31s", word) == 1;
    if (file)
        fclose(file);
    return found;
}

/* Of the processor's own sensor; a machine has others. */
static bool stats_is_processor_sensor(const char *name)
{
    return !strcmp(name, "coretemp") || !strcmp(name, "k10temp") || !strcmp(name, "zenpower") ||
           !strcmp(name, "cpu_thermal") || !strcmp(name, "x86_pkg_temp") ||
           !strcmp(name, "cpu-thermal");
}

/* The temperature that stands in @p value if @p name names the processor's sensor. */
static bool stats_read_sensor(const char *name, const char *value, double *degrees)
{
    char word[32];
    double millidegrees;
    if (!stats_read_word(name, word) || !stats_is_processor_sensor(word) ||
        !stats_read_number(value, &millidegrees))
        return false;
    *degrees = millidegrees / 1000;
    return true;
}

static void stats_add_temperature(struct gg_device_stats *stats)
{
    char name[64], value[64];
    bool found = false;
    for (int i = 0; i < SENSORS && !found; i++) {
        snprintf(name, sizeof name, "/sys/class/hwmon/hwmon%d/name", i);
        snprintf(value, sizeof value, "/sys/class/hwmon/hwmon%d/temp1_input", i);
        found = stats_read_sensor(name, value, &stats->temperature);
    }
    for (int i = 0; i < SENSORS && !found; i++) {
        snprintf(name, sizeof name, "/sys/class/thermal/thermal_zone%d/type", i);
        snprintf(value, sizeof value, "/sys/class/thermal/thermal_zone%d/temp", i);
        found = stats_read_sensor(name, value, &stats->temperature);
    }
}

gg_status host_device_stats(int32_t ordinal, struct gg_device_stats *stats)
{
    double kilohertz;
    (void)ordinal;
    snprintf(stats->source, sizeof stats->source, "/proc and /sys");
    stats_add_load(stats);
    stats_add_memory(stats);
    stats_add_temperature(stats);
    if (stats_read_number("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", &kilohertz))
        stats->compute_clock = kilohertz / 1000;
    return GG_OK;
}
