/* sim_rocm_smi.c: a librocm_smi64.so for the devices of the simulated HIP runtimes, which lists them in reverse order.
 *
 * GPUGLUE_SIM_MONITOR_ODD: `rocm6`: clocks in the struct of ROCm 6, and power by the function that replaced the average;
 * `edge`: no sensor at the junction. */
#include <rocm_smi/rocm_smi.h>

#include "sim_monitor.h"

#define ENTER(name)              \
    if (sim_monitor_fails(name)) \
    return RSMI_STATUS_UNKNOWN_ERROR
#define ENTER_DEVICE(name)                         \
    ENTER(name);                                   \
    if (dv_ind >= (uint32_t)sim_monitor_devices()) \
    return RSMI_STATUS_INVALID_ARGS

static unsigned physical_of(uint32_t dv_ind)
{
    return (unsigned)sim_monitor_devices() - 1 - dv_ind;
}

SIM_EXPORT rsmi_status_t rsmi_init(uint64_t init_flags)
{
    (void)init_flags;
    return sim_monitor_fails("rsmi_init") ? RSMI_STATUS_INIT_ERROR : RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_num_monitor_devices(uint32_t *num_devices)
{
    ENTER("rsmi_num_monitor_devices");
    *num_devices = (uint32_t)sim_monitor_devices();
    return RSMI_STATUS_SUCCESS;
}

/* The domain, and KFD's location_id (ROCm/rocm_smi_lib, rsmi_dev_pci_id_get). */
SIM_EXPORT rsmi_status_t rsmi_dev_pci_id_get(uint32_t dv_ind, uint64_t *bdfid)
{
    ENTER_DEVICE("rsmi_dev_pci_id_get");
    *bdfid = sim_monitor_location(physical_of(dv_ind));
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_dev_busy_percent_get(uint32_t dv_ind, uint32_t *busy_percent)
{
    ENTER_DEVICE("rsmi_dev_busy_percent_get");
    *busy_percent = SIM_LOAD(physical_of(dv_ind));
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_dev_memory_busy_percent_get(uint32_t dv_ind, uint32_t *busy_percent)
{
    ENTER_DEVICE("rsmi_dev_memory_busy_percent_get");
    *busy_percent = SIM_MEMORY_LOAD(physical_of(dv_ind));
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_dev_memory_total_get(uint32_t dv_ind, rsmi_memory_type_t mem_type,
                                                   uint64_t *total)
{
    ENTER_DEVICE("rsmi_dev_memory_total_get");
    *total = mem_type == RSMI_MEM_TYPE_VRAM ? SIM_TOTAL : 1;
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_dev_memory_usage_get(uint32_t dv_ind, rsmi_memory_type_t mem_type,
                                                   uint64_t *used)
{
    ENTER_DEVICE("rsmi_dev_memory_usage_get");
    *used = mem_type == RSMI_MEM_TYPE_VRAM ? SIM_USED(physical_of(dv_ind)) : 1;
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_dev_power_ave_get(uint32_t dv_ind, uint32_t sensor_ind,
                                                uint64_t *power)
{
    ENTER_DEVICE("rsmi_dev_power_ave_get");
    if (sim_monitor_odd("rocm6") || sensor_ind)
        return RSMI_STATUS_NOT_SUPPORTED;
    *power = UINT64_C(1000) * SIM_MILLIWATTS(physical_of(dv_ind));
    return RSMI_STATUS_SUCCESS;
}

/* Newer than the header of Debian 12. */
SIM_EXPORT rsmi_status_t rsmi_dev_current_socket_power_get(uint32_t dv_ind, uint64_t *socket_power);
rsmi_status_t rsmi_dev_current_socket_power_get(uint32_t dv_ind, uint64_t *socket_power)
{
    ENTER_DEVICE("rsmi_dev_current_socket_power_get");
    if (!sim_monitor_odd("rocm6"))
        return RSMI_STATUS_NOT_SUPPORTED;
    *socket_power = UINT64_C(1000) * SIM_MILLIWATTS(physical_of(dv_ind));
    return RSMI_STATUS_SUCCESS;
}

SIM_EXPORT rsmi_status_t rsmi_dev_temp_metric_get(uint32_t dv_ind, uint32_t sensor_type,
                                                  rsmi_temperature_metric_t metric,
                                                  int64_t *temperature)
{
    const uint32_t sensor = sim_monitor_odd("edge") ? RSMI_TEMP_TYPE_EDGE : RSMI_TEMP_TYPE_JUNCTION;
    ENTER_DEVICE("rsmi_dev_temp_metric_get");
    if (sensor_type != sensor || metric != RSMI_TEMP_CURRENT)
        return RSMI_STATUS_NOT_SUPPORTED;
    *temperature = INT64_C(1000) * SIM_DEGREES(physical_of(dv_ind));
    return RSMI_STATUS_SUCCESS;
}

/* rsmi_frequencies_t until ROCm 5, and since ROCm 6; the header has one of them. */
struct frequencies_5 {
    uint32_t num_supported, current;
    uint64_t frequency[32];
};
struct frequencies_6 {
    bool has_deep_sleep;
    uint32_t num_supported, current;
    uint64_t frequency[33];
};

/* Three frequencies, of which the last is the current one. */
SIM_EXPORT rsmi_status_t rsmi_dev_gpu_clk_freq_get(uint32_t dv_ind, rsmi_clk_type_t clk_type,
                                                   rsmi_frequencies_t *f)
{
    const uint64_t hertz[] = {UINT64_C(132000000), UINT64_C(500000000),
                              UINT64_C(1000000) * (clk_type == RSMI_CLK_TYPE_SYS
                                                       ? SIM_CLOCK(physical_of(dv_ind))
                                                       : SIM_MEMORY_CLOCK(physical_of(dv_ind)))};
    ENTER_DEVICE("rsmi_dev_gpu_clk_freq_get");
    if (clk_type != RSMI_CLK_TYPE_SYS && clk_type != RSMI_CLK_TYPE_MEM)
        return RSMI_STATUS_NOT_SUPPORTED;
    if (sim_monitor_odd("rocm6")) {
        struct frequencies_6 *newer = (struct frequencies_6 *)(void *)f;
        newer->has_deep_sleep = true;
        newer->num_supported = 3;
        newer->current = 2;
        memcpy(newer->frequency, hertz, sizeof hertz);
        return RSMI_STATUS_SUCCESS;
    }
    struct frequencies_5 *older = (struct frequencies_5 *)(void *)f;
    older->num_supported = 3;
    older->current = 2;
    memcpy(older->frequency, hertz, sizeof hertz);
    return RSMI_STATUS_SUCCESS;
}

/* The third process uses no device of this machine. */
SIM_EXPORT rsmi_status_t rsmi_compute_process_info_get(rsmi_process_info_t *procs,
                                                       uint32_t *num_items)
{
    const uint32_t pids[] = {(uint32_t)getpid(), SIM_OTHER_PID, SIM_OTHER_PID + 1};
    const uint32_t room = *num_items;
    ENTER("rsmi_compute_process_info_get");
    *num_items = 3;
    if (!procs)
        return RSMI_STATUS_SUCCESS;
    *num_items = room < 3 ? room : 3;
    for (uint32_t i = 0; i < *num_items; i++)
        procs[i] = (rsmi_process_info_t){.process_id = pids[i]};
    return room < 3 ? RSMI_STATUS_INSUFFICIENT_SIZE : RSMI_STATUS_SUCCESS;
}

/* Newer than the header of Debian 12. */
SIM_EXPORT rsmi_status_t rsmi_compute_process_info_by_device_get(uint32_t pid, uint32_t dv_ind,
                                                                 rsmi_process_info_t *proc);
rsmi_status_t rsmi_compute_process_info_by_device_get(uint32_t pid, uint32_t dv_ind,
                                                      rsmi_process_info_t *proc)
{
    ENTER_DEVICE("rsmi_compute_process_info_by_device_get");
    if (pid == SIM_OTHER_PID + 1)
        return RSMI_STATUS_NOT_FOUND;
    proc->process_id = pid;
    proc->vram_usage = pid == SIM_OTHER_PID ? SIM_OTHER_MEMORY : SIM_OWN_MEMORY;
    return RSMI_STATUS_SUCCESS;
}
