/* cuda_probe.c: why NVIDIA's driver does not serve, in words that a user can act on, and what else of
 * CUDA is there. */
#include "cuda_probe.h"

#include <stdio.h>
#include <unistd.h>

static const char *const nodes[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm", NULL};

static const struct twin_verdict verdicts[] = {
    {CUDA_ERROR_STUB_LIBRARY, GG_PROBE_DRIVER_STUB,
     "this libcuda is the toolkit's stub and not the driver: take the folder `stubs` out of "
     "LD_LIBRARY_PATH and of ldconfig's folders, or set GPUGLUE_CUDA_LIBRARY to the driver's "
     "libcuda.so.1"},
    {CUDA_ERROR_NO_DEVICE, GG_PROBE_NO_DEVICE,
     "the driver sees no device: check that `nvidia-smi -L` lists one here (in a container: that "
     "it "
     "was started with the GPU)"},
    {CUDA_ERROR_INVALID_DEVICE, GG_PROBE_NO_DEVICE,
     "the driver sees no device that it can use: check that `nvidia-smi -L` lists one here"},
    {CUDA_ERROR_UNKNOWN, GG_PROBE_INIT_FAILED,
     "the driver could not start; most often the kernel module nvidia_uvm is not loaded: run "
     "`modprobe nvidia_uvm`, or start the container anew after it was; otherwise see `dmesg`"},
    {CUDA_ERROR_SYSTEM_NOT_READY, GG_PROBE_INIT_FAILED,
     "the system is not ready: on machines with NVSwitch start the fabric manager (`systemctl "
     "start "
     "nvidia-fabricmanager`) of the driver's own version, and wait until it is done"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, GG_PROBE_INIT_FAILED,
     "libcuda and the kernel module are of different driver versions: reboot or reload the module "
     "after a driver update; in a container, libcuda must come from the host, not from the image"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, GG_PROBE_INIT_FAILED,
     "this libcuda is of the forward compatibility package (cuda-compat), which this kind of GPU "
     "does "
     "not allow: take its folder out of LD_LIBRARY_PATH, or update the driver"},
    {CUDA_ERROR_NOT_INITIALIZED, GG_PROBE_FORKED,
     "the driver was initialised before this process was forked and cannot be used in the child: "
     "start worker processes with the method 'spawn' instead of fork"},
    {CUDA_ERROR_OUT_OF_MEMORY, GG_PROBE_INIT_FAILED,
     "the driver ran out of memory while it started: see which processes fill this machine or its "
     "GPU"},
    {CUDA_ERROR_OPERATING_SYSTEM, GG_PROBE_INIT_FAILED,
     "the operating system refused a call of the driver: see `dmesg`, and the limits of the "
     "container"},
    {0, GG_PROBE_INIT_FAILED, NULL},
};

void cuda_explain(int code, struct gg_probe_result *result)
{
    const struct twin_verdict *verdict =
        twin_find_verdict(verdicts, code ? code : CUDA_ERROR_NO_DEVICE);
    const char *node = NULL;
    result->vendor_code = code;
    if (verdict->status == GG_PROBE_NO_DEVICE || verdict->status == GG_PROBE_INIT_FAILED)
        node = twin_refused_node(nodes);
    if (node) {
        result->status = GG_PROBE_PERMISSION_DENIED;
        snprintf(
            result->reason, sizeof result->reason,
            "%s exists and may not be read and written by this user (the driver answered %d): ask "
            "for membership of the node's group, see `ls -l %s`",
            node, code, node);
        return;
    }
    twin_say(verdict, code, result);
    if (verdict->status == GG_PROBE_NO_DEVICE)
        twin_append_mask("CUDA_VISIBLE_DEVICES", result);
}

/* ---- notes -------------------------------------------------------------------------------------- */

/* Hints only: WSL and Jetson have none of these nodes and work. */
static void note_nodes(const struct gg_probe_result *result)
{
    const bool control = access(nodes[0], F_OK) == 0;
    if (!control && access("/dev/dxg", F_OK))
        twin_host->note(result->log,
                        "there is no %s: the NVIDIA kernel module is not loaded, or this "
                        "is a container that was started without the GPU",
                        nodes[0]);
    if (control && access(nodes[2], F_OK))
        twin_host->note(result->log,
                        "there is no %s: the kernel module nvidia_uvm is not loaded "
                        "(`modprobe nvidia_uvm`)",
                        nodes[2]);
    if (control && result->status == GG_PROBE_LIBRARY_NOT_FOUND)
        twin_host->note(result->log,
                        "%s is there although libcuda is not: a container needs the driver "
                        "capability `compute` (NVIDIA_DRIVER_CAPABILITIES=compute,utility)",
                        nodes[0]);
    twin_note_mask("NVIDIA_VISIBLE_DEVICES", result);
    twin_note_mask("NVIDIA_DRIVER_CAPABILITIES", result);
}

static void note_runtime_version(const struct gg_library *library, int driver,
                                 struct gg_probe_log *log)
{
    struct {
        int (*version)(int *version);
    } runtime = {NULL};
    const struct gg_symbol symbol = {"cudaRuntimeGetVersion", 0, GG_OPTIONAL};
    char reason[128], text[32];
    int version = 0;
    if (twin_host->library_resolve(library, &symbol, 1, &runtime, reason, sizeof reason) !=
            GG_PROBE_AVAILABLE ||
        !runtime.version || runtime.version(&version)) {
        twin_host->note(log, "CUDA runtime of unknown version: %s", library->path);
        return;
    }
    twin.version_text(version, text, sizeof text);
    twin_host->note(log, "CUDA runtime %s (%s): %s", text, library->found_by, library->path);
    /* Within a major version a runtime works with older drivers too. */
    if (library->already_loaded && driver && version / 1000 > driver / 1000)
        twin_host->note(
            log,
            "warning: that runtime is in use in this process and needs a driver of CUDA "
            "%d or newer; the driver has %d.%d: libraries that use it will fail with error 35",
            version / 1000, driver / 1000, driver % 1000 / 10);
}

/* The runtime is only reported: gpuglue never calls it for work. A passive look opens nothing for it,
 * an active one only what this environment's own packages would load as well: whoever comes first
 * decides which copy of a SONAME everyone in the process gets. */
static void note_runtime(enum gg_probe_level level, int driver, struct gg_probe_log *log)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0",
                                        NULL};
    const struct gg_library_spec spec = {.struct_size = sizeof spec,
                                         .flags = level == GG_ACTIVE
                                                      ? GG_LIBRARY_HANDED_IN | GG_LIBRARY_NO_SYSTEM
                                                      : GG_LIBRARY_ONLY_MAPPED,
                                         .names = names,
                                         .stem = "libcudart"};
    struct gg_library library = {.struct_size = sizeof library};
    char reason[512];
    if (twin_host->library_open(&spec, log, &library, reason, sizeof reason) != GG_PROBE_AVAILABLE)
        return;
    if (level == GG_ACTIVE)
        note_runtime_version(&library, driver, log);
    else
        twin_host->note(log, "CUDA runtime (%s): %s", library.found_by, library.path);
}

void cuda_remark(enum gg_probe_level level, int version, const struct gg_probe_result *result)
{
    twin_note_mask("CUDA_VISIBLE_DEVICES", result);
    if (result->status != GG_PROBE_AVAILABLE && result->status != GG_PROBE_NOT_PROBED)
        note_nodes(result);
    note_runtime(level, version, result->log);
}
