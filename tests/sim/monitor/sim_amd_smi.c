/* sim_amd_smi.c: a libamd_smi.so.27 for the devices of the simulated HIP runtimes: one processor on each socket, in reverse
 * order; partitions of one GPU are on one socket.
 *
 * GPUGLUE_SIM_MONITOR_ODD: `edge`: no sensor at the hottest point, and power as an average; `counters`: reasons as counters, which
 * grow at each call; `unknown`: values that the firmware's table lacks; `version`: the version 25;
 * `older`: the version 26, whose table of the firmware has other offsets. */
#include <amd_smi/amdsmi.h>

#include <stdatomic.h>

#include "sim_monitor.h"

#define OLDER_REASONS 112 /* offset of indep_throttle_status in version 26 */

#define ENTER(name)              \
    if (sim_monitor_fails(name)) \
    return AMDSMI_STATUS_UNKNOWN_ERROR
#define ENTER_DEVICE(name)                                                                     \
    ENTER(name);                                                                               \
    if (!processor_handle || physical_of(processor_handle) >= (unsigned)sim_monitor_devices()) \
    return AMDSMI_STATUS_INVAL

/* Handles are addresses of their devices, which are numbered like those of the driver. */
static char handles[64];

static unsigned physical_of(const void *handle)
{
    return (unsigned)((const char *)handle - handles);
}

static uint32_t simulated_version(void)
{
    return sim_monitor_odd("version") ? 25
           : sim_monitor_odd("older") ? 26
                                      : AMDSMI_LIB_VERSION_MAJOR;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_lib_version(amdsmi_version_t *version)
{
    ENTER("amdsmi_get_lib_version");
    *version = (amdsmi_version_t){
        .major = simulated_version(), .minor = AMDSMI_LIB_VERSION_MINOR, .build = "simulated"};
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_init(uint64_t init_flags)
{
    if (init_flags != AMDSMI_INIT_AMD_GPUS)
        return AMDSMI_STATUS_INVAL;
    return sim_monitor_fails("amdsmi_init") ? AMDSMI_STATUS_INIT_ERROR : AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_socket_handles(uint32_t *socket_count,
                                                     amdsmi_socket_handle *socket_handles)
{
    const uint32_t devices =
        sim_monitor_partitions() ? sim_monitor_devices() > 0 : (uint32_t)sim_monitor_devices();
    ENTER("amdsmi_get_socket_handles");
    for (uint32_t i = 0; socket_handles && i < devices && i < *socket_count; i++)
        socket_handles[i] = &handles[devices - 1 - i];
    *socket_count = devices;
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_processor_handles(amdsmi_socket_handle socket_handle,
                                                        uint32_t *processor_count,
                                                        amdsmi_processor_handle *processor_handles)
{
    const uint32_t all = sim_monitor_partitions() ? (uint32_t)sim_monitor_devices() : 1;
    ENTER("amdsmi_get_processor_handles");
    for (uint32_t i = 0; processor_handles && i < all && i < *processor_count; i++)
        processor_handles[i] = all == 1 ? socket_handle : &handles[all - 1 - i];
    *processor_count = all;
    return AMDSMI_STATUS_SUCCESS;
}

/* That of ROCm SMI, without bits 28 to 31 (amdsmi, AMDSmiDrm::init). */
SIM_EXPORT amdsmi_status_t amdsmi_get_gpu_device_bdf(amdsmi_processor_handle processor_handle,
                                                     amdsmi_bdf_t *bdf)
{
    ENTER_DEVICE("amdsmi_get_gpu_device_bdf");
    bdf->as_uint = sim_monitor_location(physical_of(processor_handle)) & 0xffff;
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_gpu_activity(amdsmi_processor_handle processor_handle,
                                                   amdsmi_engine_usage_t *info)
{
    ENTER_DEVICE("amdsmi_get_gpu_activity");
    info->gfx_activity =
        sim_monitor_odd("unknown") ? UINT16_MAX : SIM_LOAD(physical_of(processor_handle));
    info->umc_activity =
        sim_monitor_odd("unknown") ? UINT32_MAX : SIM_MEMORY_LOAD(physical_of(processor_handle));
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_gpu_memory_total(amdsmi_processor_handle processor_handle,
                                                       amdsmi_memory_type_t mem_type,
                                                       uint64_t *total)
{
    ENTER_DEVICE("amdsmi_get_gpu_memory_total");
    *total = mem_type == AMDSMI_MEM_TYPE_VRAM ? SIM_TOTAL : 1;
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_gpu_memory_usage(amdsmi_processor_handle processor_handle,
                                                       amdsmi_memory_type_t mem_type, uint64_t *used)
{
    ENTER_DEVICE("amdsmi_get_gpu_memory_usage");
    *used = mem_type == AMDSMI_MEM_TYPE_VRAM ? SIM_USED(physical_of(processor_handle)) : 1;
    return AMDSMI_STATUS_SUCCESS;
}

/* Whole watts, as the vendor's. */
SIM_EXPORT amdsmi_status_t amdsmi_get_power_info(amdsmi_processor_handle processor_handle,
                                                 amdsmi_power_info_t *info)
{
    ENTER_DEVICE("amdsmi_get_power_info");
    const uint32_t watts = SIM_MILLIWATTS(physical_of(processor_handle)) / 1000;
    info->socket_power = info->current_socket_power = info->average_socket_power = UINT32_MAX;
    if (sim_monitor_odd("edge"))
        info->average_socket_power = watts;
    else if (!sim_monitor_odd("unknown"))
        info->current_socket_power = watts;
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_temp_metric(amdsmi_processor_handle processor_handle,
                                                  amdsmi_temperature_type_t sensor_type,
                                                  amdsmi_temperature_metric_t metric,
                                                  int64_t *temperature)
{
    const amdsmi_temperature_type_t sensor =
        sim_monitor_odd("edge") ? AMDSMI_TEMPERATURE_TYPE_EDGE : AMDSMI_TEMPERATURE_TYPE_HOTSPOT;
    ENTER_DEVICE("amdsmi_get_temp_metric");
    if (sensor_type != sensor || metric != AMDSMI_TEMP_CURRENT || sim_monitor_odd("unknown"))
        return AMDSMI_STATUS_NOT_SUPPORTED;
    *temperature = SIM_DEGREES(physical_of(processor_handle));
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_clock_info(amdsmi_processor_handle processor_handle,
                                                 amdsmi_clk_type_t clk_type, amdsmi_clk_info_t *info)
{
    ENTER_DEVICE("amdsmi_get_clock_info");
    if (clk_type != AMDSMI_CLK_TYPE_SYS && clk_type != AMDSMI_CLK_TYPE_MEM)
        return AMDSMI_STATUS_NOT_SUPPORTED;
    *info = (amdsmi_clk_info_t){.clk = clk_type == AMDSMI_CLK_TYPE_SYS
                                           ? SIM_CLOCK(physical_of(processor_handle))
                                           : SIM_MEMORY_CLOCK(physical_of(processor_handle))};
    if (sim_monitor_odd("unknown"))
        info->clk = UINT32_MAX;
    return AMDSMI_STATUS_SUCCESS;
}

/* The table has all bits set where a version of it has no value. */
SIM_EXPORT amdsmi_status_t amdsmi_get_gpu_metrics_info(amdsmi_processor_handle processor_handle,
                                                       amdsmi_gpu_metrics_t *pgpu_metrics)
{
    static _Atomic(uint64_t) calls;
    ENTER_DEVICE("amdsmi_get_gpu_metrics_info");
    memset(pgpu_metrics, 0xff, sizeof *pgpu_metrics);
    const uint64_t reasons = UINT64_C(1) << 2 | UINT64_C(1) << 36;
    if (sim_monitor_odd("older")) {
        memcpy((char *)pgpu_metrics + OLDER_REASONS, &reasons, sizeof reasons);
    } else if (sim_monitor_odd("counters")) {
        pgpu_metrics->accumulation_counter = ++calls;
        pgpu_metrics->ppt_residency_acc = 3 * calls;
        pgpu_metrics->prochot_residency_acc = 7;
    } else if (!sim_monitor_odd("unknown")) {
        pgpu_metrics->indep_throttle_status = reasons;
    }
    return AMDSMI_STATUS_SUCCESS;
}

SIM_EXPORT amdsmi_status_t amdsmi_get_gpu_process_list(amdsmi_processor_handle processor_handle,
                                                       uint32_t *max_processes,
                                                       amdsmi_proc_info_t *list)
{
    const uint32_t pids[] = {(uint32_t)getpid(), SIM_OTHER_PID};
    const uint64_t memory[] = {SIM_OWN_MEMORY, SIM_OTHER_MEMORY};
    const uint32_t room = *max_processes;
    ENTER_DEVICE("amdsmi_get_gpu_process_list");
    *max_processes = 2;
    for (uint32_t i = 0; i < 2 && i < room; i++) {
        list[i] = (amdsmi_proc_info_t){.pid = pids[i]};
        list[i].memory_usage.vram_mem = memory[i];
    }
    return room && room < 2 ? AMDSMI_STATUS_OUT_OF_RESOURCES : AMDSMI_STATUS_SUCCESS;
}
