/* hip_probe.c: why AMD's runtime does not serve, in words that a user can act on. */
#include "hip_probe.h"

#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KFD "/dev/kfd"

static const char *const nodes[] = {KFD, "/dev/dri/renderD128", NULL};

/* HIP takes the masks of all three; ROCR's is applied below HIP, and first. */
static const char *const masks[] = {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                    "CUDA_VISIBLE_DEVICES", NULL};

static const char no_device[] = "HIP sees no device: check that `rocminfo` lists a GPU here (in a "
                                "container: that it was started "
                                "with --device=/dev/kfd --device=/dev/dri)";

static const struct twin_verdict verdicts[] = {
    {hipErrorNoDevice, GG_PROBE_NO_DEVICE, no_device},
    {hipErrorInvalidDevice, GG_PROBE_NO_DEVICE, no_device},
    {hipErrorInsufficientDriver, GG_PROBE_INIT_FAILED,
     "the kernel driver is too old for this HIP: update amdgpu, or install an older ROCm"},
    {hipErrorNotInitialized, GG_PROBE_INIT_FAILED,
     "HIP could not initialise; where it was used before this process was forked, start worker "
     "processes with the method 'spawn'; otherwise see `dmesg` for amdgpu"},
    {hipErrorOutOfMemory, GG_PROBE_INIT_FAILED,
     "HIP ran out of memory while it started: see which processes fill this machine or its GPU"},
    {hipErrorOperatingSystem, GG_PROBE_INIT_FAILED,
     "the operating system refused a call of HIP: see `dmesg`, and the limits of the container"},
    {hipErrorUnknown, GG_PROBE_INIT_FAILED,
     "HIP could not start: see `dmesg` for amdgpu, and whether `rocminfo` works; after an update "
     "of "
     "the kernel driver, reboot"},
    {0, GG_PROBE_INIT_FAILED, NULL},
};

/* "render (gid 109)". The group has often another number in a container, and then no name. */
static void name_group(const char *node, char *out, size_t size)
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
        snprintf(out, size, "%u, which has no name here", number);
    else
        snprintf(out, size, "%s (%u)", group.gr_name, number);
}

static void refuse_node(const char *node, int code, struct gg_probe_result *result)
{
    char group[96];
    name_group(node, group, sizeof group);
    result->status = GG_PROBE_PERMISSION_DENIED;
    snprintf(result->reason, sizeof result->reason,
             "%s exists and may not be read and written by this user (HIP answered %d): ask for "
             "membership of the group %s, or start the container with --group-add of it",
             node, code, group);
}

/* "No device" is what a broken start answers too: HIP 5 says 101 for both. Its count tells. */
static int count_in_spite(int code)
{
    int count = 0;
    if (code != hipErrorNoDevice && code != hipErrorInvalidDevice)
        return 0;
    return twin_clear(twin_driver.device_count(&count)) ? 0 : count;
}

void hip_explain(int code, struct gg_probe_result *result)
{
    const struct twin_verdict *verdict = twin_find_verdict(verdicts, code ? code : hipErrorNoDevice);
    const char *node = twin_refused_node(nodes);
    const int count = count_in_spite(code);
    result->vendor_code = code;
    if (node) {
        refuse_node(node, code, result);
        return;
    }
    if (count > 0) {
        result->status = GG_PROBE_INIT_FAILED;
        snprintf(
            result->reason, sizeof result->reason,
            "HIP counts %d devices and could not start (it answered %d): see `dmesg` for amdgpu, "
            "and whether `rocminfo` works",
            count, code);
        return;
    }
    twin_say(verdict, code, result);
    for (size_t i = 0; verdict->status == GG_PROBE_NO_DEVICE && masks[i]; i++)
        twin_append_mask(masks[i], result);
}

/* Opening HIP takes half a second even where it finds nothing. */
const char *hip_in_vain(void)
{
    if (!access(KFD, F_OK) || !access("/dev/dxg", F_OK))
        return NULL;
    return "not searched: there is neither " KFD
           " nor /dev/dxg, so no AMD GPU can be used here (in a "
           "container: start it with --device=" KFD " --device=/dev/dri); to search all the same, "
           "name the backend (GPUGLUE_BACKEND=hip), or set GPUGLUE_HIP_LIBRARY";
}

void hip_remark(enum gg_probe_level level, int version, const struct gg_probe_result *result)
{
    (void)level;
    for (size_t i = 0; masks[i]; i++)
        twin_note_mask(masks[i], result);
    twin_note_mask("HSA_OVERRIDE_GFX_VERSION", result);
    if (version / HIP_MAJOR > HIP_NEWEST)
        twin_host->note(result->log,
                        "HIP %s is newer than this gpuglue, which knows HIP %d to %d; it is used "
                        "all the same",
                        result->library_version, HIP_OLDEST, HIP_NEWEST);
    if (result->status == GG_PROBE_LIBRARY_NOT_FOUND && !access(KFD, F_OK))
        twin_host->note(result->log, KFD " is there although HIP is not: install ROCm's runtime");
}
