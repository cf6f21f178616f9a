/* test_stats.c: load, memory, power, temperature, clocks and processes of a device. */
#include "conformance.h"

#include "../sim/monitor/sim_monitor.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 8

static struct gg_device_stats stats_of(gg_device *device, struct gg_process_stats *processes,
                                       uint32_t room)
{
    struct gg_device_stats stats = {
        .struct_size = sizeof stats, .processes = processes, .process_room = room};
    if (gg_device_stats(device, &stats))
        fail_msg("%s", last_error().message);
    return stats;
}

/* GPUGLUE_SIM_MONITOR: the library of this run is one of tests/sim/monitor. */
static void need_simulated_values(struct fixture *f)
{
    need(f, GG_OP_device_stats);
    if (!getenv("GPUGLUE_SIM_MONITOR"))
        skip_because("the values of this device are not simulated");
}

/* Whether one of the functions is hidden (../support/hidden.c): a list, separated by commas. */
static bool is_hidden(const char *functions)
{
    char hidden[4096], *rest = hidden, *name;
    const char *list = getenv("GPUGLUE_TEST_HIDDEN");
    snprintf(hidden, sizeof hidden, "%s", list ? list : "");
    while ((name = strtok_r(rest, ",", &rest))) {
        const char *at = strstr(functions, name);
        const char after = at ? at[strlen(name)] : 'x';
        if (at && (at == functions || at[-1] == ',') && (!after || after == ','))
            return true;
    }
    return false;
}

/* The functions of all libraries without which a value is unknown. */
static const char load_of[] = "nvmlDeviceGetUtilizationRates,rsmi_dev_busy_percent_get,"
                              "amdsmi_get_gpu_activity,zesDeviceEnumEngineGroups,"
                              "zesEngineGetProperties,zesEngineGetActivity";
static const char memory_load_of[] = "nvmlDeviceGetUtilizationRates,"
                                     "rsmi_dev_memory_busy_percent_get,amdsmi_get_gpu_activity";
static const char total_of[] = "rsmi_dev_memory_total_get,amdsmi_get_gpu_memory_total,"
                               "zesDeviceEnumMemoryModules,zesMemoryGetState";
static const char used_of[] = "rsmi_dev_memory_usage_get,amdsmi_get_gpu_memory_usage,"
                              "zesDeviceEnumMemoryModules,zesMemoryGetState";
static const char power_of[] = "nvmlDeviceGetPowerUsage,rsmi_dev_power_ave_get,"
                               "amdsmi_get_power_info,zesDeviceEnumPowerDomains,"
                               "zesPowerGetEnergyCounter";
static const char temperature_of[] = "nvmlDeviceGetTemperature,rsmi_dev_temp_metric_get,"
                                     "amdsmi_get_temp_metric,zesDeviceEnumTemperatureSensors,"
                                     "zesTemperatureGetProperties,zesTemperatureGetState";
static const char clock_of[] = "nvmlDeviceGetClockInfo,rsmi_dev_gpu_clk_freq_get,"
                               "amdsmi_get_clock_info,zesDeviceEnumFrequencyDomains,"
                               "zesFrequencyGetProperties,zesFrequencyGetState";
static const char reasons_of[] = "amdsmi_get_gpu_metrics_info,zesDeviceEnumFrequencyDomains,"
                                 "zesFrequencyGetProperties,zesFrequencyGetState";
static const char processes_of[] = "nvmlDeviceGetComputeRunningProcesses_v3,"
                                   "rsmi_compute_process_info_get,"
                                   "rsmi_compute_process_info_by_device_get,"
                                   "amdsmi_get_gpu_process_list,zesDeviceProcessesGetState";

/* Of NVML's two functions one is enough. */
static bool both_are_hidden(const char *newer, const char *older)
{
    return is_hidden(newer) && is_hidden(older);
}

static void assert_value(double found, double expected, const char *functions)
{
    if (is_hidden(functions))
        assert_true(isnan(found));
    else
        assert_true(fabs(found - expected) < 1e-6);
}

static void assert_bytes(uint64_t found, uint64_t expected, const char *functions)
{
    const bool none = both_are_hidden("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo");
    assert_true(found == (none || is_hidden(functions) ? UINT64_MAX : expected));
}

static void assert_used(uint64_t found, unsigned physical)
{
    const bool counted = is_hidden("nvmlDeviceGetMemoryInfo_v2");
    assert_bytes(found, SIM_USED(physical) + (counted ? SIM_RESERVED : 0), used_of);
}

static void assert_reasons(uint32_t found, const char *source)
{
    const bool none = both_are_hidden("nvmlDeviceGetCurrentClocksEventReasons",
                                      "nvmlDeviceGetCurrentClocksThrottleReasons");
    if (none || is_hidden(reasons_of) || !strcmp(source, "ROCm SMI"))
        assert_int_equal(found, GG_THROTTLE_UNKNOWN);
    else
        assert_int_equal(found, GG_THROTTLE_POWER | GG_THROTTLE_THERMAL);
}

static bool in_range(double value, double least, double most)
{
    return isnan(value) || (value >= least && value <= most);
}

static void each_value_is_in_its_range_or_unknown(void **state)
{
    struct fixture *f = *state;
    need(f, GG_OP_device_stats);
    for (int i = 0; i < 3; i++) {
        struct gg_device_stats stats = stats_of(f->device, NULL, 0);
        assert_true(in_range(stats.compute_utilization, 0, 100));
        assert_true(in_range(stats.memory_utilization, 0, 100));
        assert_true(in_range(stats.power, 0, 5000));
        assert_true(in_range(stats.temperature, -50, 200));
        assert_true(in_range(stats.compute_clock, 0, 20000));
        assert_true(in_range(stats.memory_clock, 0, 20000));
        assert_true(stats.memory_total == UINT64_MAX || stats.memory_used == UINT64_MAX ||
                    stats.memory_used <= stats.memory_total);
        assert_true(stats.process_count >= -1);
        assert_true(stats.source[0] && strlen(stats.source) < sizeof stats.source);
    }
}

static void a_device_that_has_no_statistics_is_an_error_and_writes_nothing(void **state)
{
    struct fixture *f = *state;
    struct gg_device_stats stats = {.struct_size = sizeof stats, .power = 17, .process_count = 3};
    if (gg_device_supports(f->device, GG_OP_device_stats))
        skip_because("the device has statistics");
    assert_int_equal(gg_device_stats(f->device, &stats), GG_ERR_UNSUPPORTED);
    assert_true(last_error().message[0]);
    assert_true(stats.power == 17 && stats.process_count == 3);
    assert_int_equal(stats.struct_size, sizeof stats);
}

static void a_struct_that_is_too_short_is_refused(void **state)
{
    struct fixture *f = *state;
    struct gg_device_stats stats = {.struct_size = 16, .power = 17};
    assert_int_equal(gg_device_stats(f->device, &stats), GG_ERR_INVALID_ARGUMENT);
    assert_true(stats.power == 17 && stats.struct_size == 16);
}

static void every_throttle_reason_has_a_name(void **state)
{
    (void)state;
#define CHECK_NAME(name, bit, word) assert_string_equal(gg_throttle_name(GG_THROTTLE_##name), word);
    GG_THROTTLES(CHECK_NAME)
#undef CHECK_NAME
    assert_null(gg_throttle_name(0));
    assert_null(gg_throttle_name(GG_THROTTLE_UNKNOWN));
}

/* Simulated devices have consecutive PCI buses; those of two drivers may have the same. */
static unsigned physical_of(gg_device *first, gg_device *device)
{
    struct gg_device_info info = {.struct_size = sizeof info}, base = {.struct_size = sizeof base};
    assert_int_equal(gg_device_info(device, &info), GG_OK);
    assert_int_equal(gg_device_info(first, &base), GG_OK);
    if (!info.pci_bus_id[0])
        skip_because("the driver reports no PCI address");
    return (unsigned)(strtoul(info.pci_bus_id + 5, NULL, 16) -
                      strtoul(base.pci_bus_id + 5, NULL, 16));
}

/* Load and power are counters in some libraries: the second call has them. */
static void simulated_values_are_those_of_the_device_and_not_of_its_number(void **state)
{
    struct fixture *f = *state;
    need_simulated_values(f);
    for (int32_t ordinal = 0; ordinal < 2; ordinal++) {
        gg_device *device = f->device;
        if (gg_device_get(backend_name(), ordinal, &device))
            skip_because("there is one device");
        const unsigned physical = physical_of(f->device, device);
        stats_of(device, NULL, 0);
        struct gg_device_stats stats = stats_of(device, NULL, 0);
        const bool sysman = !strcmp(stats.source, "Sysman"); /* has no load of the memory */
        assert_value(stats.compute_utilization, SIM_LOAD(physical), load_of);
        assert_value(sysman ? SIM_MEMORY_LOAD(physical) : stats.memory_utilization,
                     SIM_MEMORY_LOAD(physical), memory_load_of);
        assert_bytes(stats.memory_total, SIM_TOTAL, total_of);
        assert_used(stats.memory_used, physical);
        /* AMD SMI has whole watts. */
        const double half = strcmp(stats.source, "AMD SMI") ? 0 : 0.5;
        assert_value(stats.power, SIM_MILLIWATTS(physical) / 1000.0 - half, power_of);
        assert_value(stats.temperature, SIM_DEGREES(physical), temperature_of);
        assert_value(stats.compute_clock, SIM_CLOCK(physical), clock_of);
        assert_value(stats.memory_clock, SIM_MEMORY_CLOCK(physical), clock_of);
        assert_reasons(stats.throttle_reasons, stats.source);
    }
}

static int32_t known_processes(void)
{
    return is_hidden(processes_of) ? -1 : 2;
}

static void processes_are_listed_with_their_memory(void **state)
{
    struct fixture *f = *state;
    struct gg_process_stats processes[4];
    need_simulated_values(f);
    memset(processes, 0xee, sizeof processes);
    struct gg_device_stats stats = stats_of(f->device, processes, 4);
    assert_int_equal(stats.process_count, known_processes());
    if (known_processes() != 2) {
        assert_int_equal(processes[0].pid, 0xeeeeeeee);
        return;
    }
    assert_int_equal(processes[0].pid, getpid());
    assert_true(processes[0].memory == SIM_OWN_MEMORY);
    assert_int_equal(processes[1].pid, SIM_OTHER_PID);
    assert_true(processes[1].memory == SIM_OTHER_MEMORY);
    assert_int_equal(processes[2].pid, 0xeeeeeeee);
}

static void processes_beyond_the_room_are_counted_and_not_written(void **state)
{
    struct fixture *f = *state;
    struct gg_process_stats processes[2];
    need_simulated_values(f);
    memset(processes, 0xee, sizeof processes);
    struct gg_device_stats stats = stats_of(f->device, processes, 1);
    assert_int_equal(stats.process_count, known_processes());
    assert_int_equal(processes[1].pid, 0xeeeeeeee);
    assert_ptr_equal(stats.processes, processes);
    assert_int_equal(stats.process_room, 1);
    assert_int_equal(stats_of(f->device, NULL, 7).process_count, known_processes());
}

/* One function of each library: the values of the others stay. */
static void a_value_whose_function_fails_is_unknown_and_the_others_are_not(void **state)
{
    struct fixture *f = *state;
    need_simulated_values(f);
    setenv("GPUGLUE_SIM_MONITOR_FAIL",
           "nvmlDeviceGetTemperature,rsmi_dev_temp_metric_get,amdsmi_get_temp_metric,"
           "zesTemperatureGetState",
           1);
    struct gg_device_stats stats = stats_of(f->device, NULL, 0);
    assert_true(isnan(stats.temperature));
    assert_bytes(stats.memory_total, SIM_TOTAL, total_of);
    assert_value(stats.compute_clock, SIM_CLOCK(0), clock_of);
    setenv("GPUGLUE_SIM_MONITOR_FAIL",
           "nvmlDeviceGetMemoryInfo,nvmlDeviceGetMemoryInfo_v2,rsmi_dev_memory_total_get,"
           "rsmi_dev_memory_usage_get,zesMemoryGetState,nvmlDeviceGetComputeRunningProcesses_v3,"
           "rsmi_compute_process_info_get,zesDeviceProcessesGetState,amdsmi_get_gpu_memory_total,"
           "amdsmi_get_gpu_memory_usage,amdsmi_get_gpu_process_list",
           1);
    stats = stats_of(f->device, NULL, 0);
    assert_value(stats.temperature, SIM_DEGREES(0), temperature_of);
    assert_true(stats.memory_total == UINT64_MAX && stats.memory_used == UINT64_MAX);
    assert_int_equal(stats.process_count, -1);
    unsetenv("GPUGLUE_SIM_MONITOR_FAIL");
    assert_used(stats_of(f->device, NULL, 0).memory_used, 0);
}

/* After a failure the library is asked again: an administrator may have repaired it. */
static void a_library_that_cannot_be_initialised_is_an_error_until_it_can(void **state)
{
    struct fixture *f = *state;
    struct gg_device_stats stats = {.struct_size = sizeof stats};
    if (!getenv("GPUGLUE_SIM_MONITOR"))
        skip_because("the values of this device are not simulated");
    if (is_hidden("zesInit,zesDriverGet,zesDeviceGet"))
        skip_because("the library is not initialised by a function of its own");
    setenv("GPUGLUE_SIM_MONITOR_FAIL", "nvmlInit_v2,rsmi_init,amdsmi_init,zesInit", 1);
    assert_int_equal(gg_device_stats(f->device, &stats), GG_ERR_UNSUPPORTED);
    assert_non_null(strstr(last_error().message, "initialised"));
    assert_false(gg_device_supports(f->device, GG_OP_device_stats));
    unsetenv("GPUGLUE_SIM_MONITOR_FAIL");
    need(f, GG_OP_device_stats);
    assert_int_equal(gg_device_stats(f->device, &stats), GG_OK);
}

static void asking_whether_there_are_statistics_leaves_the_last_error(void **state)
{
    struct fixture *f = *state;
    if (!getenv("GPUGLUE_SIM_MONITOR"))
        skip_because("the values of this device are not simulated");
    gg_device_find("nonsense:7", &f->device);
    const struct gg_error before = last_error();
    setenv("GPUGLUE_SIM_MONITOR_FAIL", "nvmlInit_v2,rsmi_init,amdsmi_init,zesInit", 1);
    assert_false(gg_device_supports(f->device, GG_OP_device_stats));
    unsetenv("GPUGLUE_SIM_MONITOR_FAIL");
    assert_string_equal(last_error().message, before.message);
}

static void *read_often(void *device)
{
    for (int i = 0; i < 20; i++) {
        struct gg_process_stats processes[4];
        struct gg_device_stats stats = {
            .struct_size = sizeof stats, .processes = processes, .process_room = 4};
        if (gg_device_stats(device, &stats))
            return device;
    }
    return NULL;
}

/* Also the first call, which loads the library. */
static void threads_may_read_at_the_same_time(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[THREADS];
    void *failed = NULL;
    if (!getenv("GPUGLUE_SIM_MONITOR"))
        need(f, GG_OP_device_stats);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, f->device), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        failed = result ? result : failed;
    }
    if (failed)
        need(f, GG_OP_device_stats);
    assert_null(failed);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_value_is_in_its_range_or_unknown),
    cmocka_unit_test(a_device_that_has_no_statistics_is_an_error_and_writes_nothing),
    cmocka_unit_test(a_struct_that_is_too_short_is_refused),
    cmocka_unit_test(every_throttle_reason_has_a_name),
    cmocka_unit_test(simulated_values_are_those_of_the_device_and_not_of_its_number),
    cmocka_unit_test(processes_are_listed_with_their_memory),
    cmocka_unit_test(processes_beyond_the_room_are_counted_and_not_written),
    cmocka_unit_test(a_value_whose_function_fails_is_unknown_and_the_others_are_not),
    cmocka_unit_test(a_library_that_cannot_be_initialised_is_an_error_until_it_can),
    cmocka_unit_test(asking_whether_there_are_statistics_leaves_the_last_error),
    cmocka_unit_test(threads_may_read_at_the_same_time),
};
SUITE(stats, tests);
