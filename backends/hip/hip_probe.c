/* hip_probe.c: why AMD's runtime is unavailable and what to do about it. */
#include "hip_driver.h"

#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KFD "/dev/kfd"

static const char *const nodes[] = {KFD, "/dev/dri/renderD128", NULL};

/* HIP applies all three masks; ROCR's is applied first, below HIP. */
static const char *const masks[] = {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                    "CUDA_VISIBLE_DEVICES", NULL};

static const char no_device[] =
    "HIP sees no device: check that `rocminfo` lists a GPU here (in a container: that it was "
    "started with --device=/dev/kfd --device=/dev/dri)";

static const struct cuhip_diagnosis diagnoses[] = {
    {hipErrorNoDevice, GG_PROBE_NO_DEVICE, no_device},
    {hipErrorInvalidDevice, GG_PROBE_NO_DEVICE, no_device},
    {hipErrorInsufficientDriver, GG_PROBE_INIT_FAILED,
     "the kernel driver is too old for this HIP: update amdgpu, or install an older ROCm"},
    {hipErrorNotInitialized, GG_PROBE_INIT_FAILED,
     "HIP could not initialise; if it was used before this process was forked, start worker "
     "processes with the method 'spawn'; otherwise see `dmesg` for amdgpu"},
    {hipErrorOutOfMemory, GG_PROBE_INIT_FAILED,
     "HIP ran out of memory while it started: see which processes fill this machine or its GPU"},
    {hipErrorOperatingSystem, GG_PROBE_INIT_FAILED,
     "the operating system refused a system call of HIP: see `dmesg`, and the limits of the "
     "container"},
    {hipErrorUnknown, GG_PROBE_INIT_FAILED,
     "HIP could not start: see `dmesg` for amdgpu, and whether `rocminfo` works; after an update "
     "of the kernel driver, reboot"},
    {0, GG_PROBE_INIT_FAILED, NULL},
};

/* "render (109)". In a container the group often has another number, and no name. */
static void node_group_text(const char *node, char *out, size_t size)
{
    struct stat info;
    struct group group, *found = NULL;
    char buffer[1024];
    if (stat(node, &info)) {
        snprintf(out, size, "of the node");
        return;
    }
    const unsigned number = info.st_gid;
    if (getgrgid_r(info.st_gid, &group, buffer, sizeof buffer, &found) || !found)
        snprintf(out, size, "%u (it has no name here)", number);
    else
        snprintf(out, size, "%s (%u)", group.gr_name, number);
}

static void node_report_denied(const char *node, int code, struct gg_probe_result *result)
{
    char group[96];
    node_group_text(node, group, sizeof group);
    result->status = GG_PROBE_PERMISSION_DENIED;
    snprintf(result->reason, sizeof result->reason,
             "%s exists and may not be read and written by this user (HIP returned %d): ask for "
             "membership of the group %s, or start the container with --group-add for it",
             node, code, group);
}

/* A failed start is also reported as "no device": HIP 5 returns 101 for both. The count distinguishes them. */
static int count_after_error(int code)
{
    int count = 0;
    if (code != hipErrorNoDevice && code != hipErrorInvalidDevice)
        return 0;
    return cuhip_clear_error(cuhip_driver.device_count(&count)) ? 0 : count;
}

void hip_diagnose(int code, struct gg_probe_result *result)
{
    const struct cuhip_diagnosis *diagnosis =
        cuhip_find_diagnosis(diagnoses, code ? code : hipErrorNoDevice);
    const char *node = cuhip_find_denied_node(nodes);
    const int count = count_after_error(code);
    result->vendor_code = code;
    if (node) {
        node_report_denied(node, code, result);
        return;
    }
    if (count > 0) {
        result->status = GG_PROBE_INIT_FAILED;
        snprintf(
            result->reason, sizeof result->reason,
            "HIP reports %d devices and could not start (it returned %d): see `dmesg` for amdgpu, "
            "and whether `rocminfo` works",
            count, code);
        return;
    }
    cuhip_report_diagnosis(diagnosis, code, result);
    for (size_t i = 0; diagnosis->status == GG_PROBE_NO_DEVICE && masks[i]; i++)
        cuhip_append_variable(masks[i], result);
}

/* Opening HIP takes half a second even if there is no device. */
const char *hip_skip_reason(void)
{
    if (!access(KFD, F_OK) || !access("/dev/dxg", F_OK))
        return NULL;
    return "not searched: there is neither " KFD
           " nor /dev/dxg, so no AMD GPU can be used here (in a "
           "container: start it with --device=" KFD
           " --device=/dev/dri); to search anyway, select the backend (GPUGLUE_BACKEND=hip) or set "
           "GPUGLUE_HIP_LIBRARY";
}

void hip_add_notes(enum gg_probe_level level, int version, const struct gg_probe_result *result)
{
    (void)level;
    for (size_t i = 0; masks[i]; i++)
        cuhip_note_variable(masks[i], result);
    cuhip_note_variable("HSA_OVERRIDE_GFX_VERSION", result);
    if (version / HIP_MAJOR > HIP_NEWEST)
        cuhip_api->note(result->log,
                        "HIP %s is newer than the versions that this gpuglue supports, %d to %d; "
                        "gpuglue uses it nevertheless",
                        result->library_version, HIP_OLDEST, HIP_NEWEST);
    if (result->status == GG_PROBE_LIBRARY_NOT_FOUND && !access(KFD, F_OK))
        cuhip_api->note(result->log, KFD " exists, but HIP was not found: install ROCm's runtime");
}
