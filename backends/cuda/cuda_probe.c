/* cuda_probe.c: why NVIDIA's driver is unavailable and what to do about it; notes on CUDA runtimes. */
#include "cuda_probe.h"

#include <stdio.h>
#include <unistd.h>

static const char *const nodes[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm", NULL};

static const struct cuhip_diagnosis diagnoses[] = {
    {CUDA_ERROR_STUB_LIBRARY, GG_PROBE_DRIVER_STUB,
     "this libcuda is the toolkit's stub and not the driver: remove the directory `stubs` from "
     "LD_LIBRARY_PATH and from ldconfig's directories, or set GPUGLUE_CUDA_LIBRARY to the driver's "
     "libcuda.so.1"},
    {CUDA_ERROR_NO_DEVICE, GG_PROBE_NO_DEVICE,
     "the driver sees no device: check that `nvidia-smi -L` lists one here (in a container: that "
     "it was started with the GPU)"},
    {CUDA_ERROR_INVALID_DEVICE, GG_PROBE_NO_DEVICE,
     "the driver sees no device that it can use: check that `nvidia-smi -L` lists one here"},
    {CUDA_ERROR_UNKNOWN, GG_PROBE_INIT_FAILED,
     "the driver could not start; most often the kernel module nvidia_uvm is not loaded: run "
     "`modprobe nvidia_uvm`, or restart the container after that; otherwise see `dmesg`"},
    {CUDA_ERROR_SYSTEM_NOT_READY, GG_PROBE_INIT_FAILED,
     "the system is not ready: on machines with NVSwitch start the fabric manager (`systemctl "
     "start nvidia-fabricmanager`) of the driver's own version, and wait until it is done"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, GG_PROBE_INIT_FAILED,
     "libcuda and the kernel module are of different driver versions: reboot or reload the module "
     "after a driver update; in a container, libcuda must come from the host, not from the image"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, GG_PROBE_INIT_FAILED,
     "this libcuda is of the forward compatibility package (cuda-compat), which this kind of GPU "
     "does not allow: remove its directory from LD_LIBRARY_PATH, or update the driver"},
    {CUDA_ERROR_NOT_INITIALIZED, GG_PROBE_FORKED,
     "the driver was initialised before this process was forked and cannot be used in the child: "
     "start worker processes with the method 'spawn' instead of fork"},
    {CUDA_ERROR_OUT_OF_MEMORY, GG_PROBE_INIT_FAILED,
     "the driver ran out of memory while it started: see which processes fill this machine or its "
     "GPU"},
    {CUDA_ERROR_OPERATING_SYSTEM, GG_PROBE_INIT_FAILED,
     "the operating system refused a system call of the driver: see `dmesg`, and the limits of the "
     "container"},
    {0, GG_PROBE_INIT_FAILED, NULL},
};

void cuda_diagnose(int code, struct gg_probe_result *result)
{
    const struct cuhip_diagnosis *diagnosis =
        cuhip_find_diagnosis(diagnoses, code ? code : CUDA_ERROR_NO_DEVICE);
    const char *node = NULL;
    result->vendor_code = code;
    if (diagnosis->status == GG_PROBE_NO_DEVICE || diagnosis->status == GG_PROBE_INIT_FAILED)
        node = cuhip_find_denied_node(nodes);
    if (node) {
        result->status = GG_PROBE_PERMISSION_DENIED;
        snprintf(result->reason, sizeof result->reason,
                 "%s exists and may not be read and written by this user (the driver returned %d): "
                 "ask for membership of the node's group, see `ls -l %s`",
                 node, code, node);
        return;
    }
    cuhip_report_diagnosis(diagnosis, code, result);
    if (diagnosis->status == GG_PROBE_NO_DEVICE)
        cuhip_append_variable("CUDA_VISIBLE_DEVICES", result);
}

/* ---- notes -------------------------------------------------------------------------------------- */

/* Only hints: WSL and Jetson have none of these nodes and work. */
static void note_nodes(const struct gg_probe_result *result)
{
    const bool control = access(nodes[0], F_OK) == 0;
    if (!control && access("/dev/dxg", F_OK))
        cuhip_api->note(result->log,
                        "there is no %s: the NVIDIA kernel module is not loaded, or this "
                        "is a container that was started without the GPU",
                        nodes[0]);
    if (control && access(nodes[2], F_OK))
        cuhip_api->note(result->log,
                        "there is no %s: the kernel module nvidia_uvm is not loaded "
                        "(`modprobe nvidia_uvm`)",
                        nodes[2]);
    if (control && result->status == GG_PROBE_LIBRARY_NOT_FOUND)
        cuhip_api->note(result->log,
                        "%s exists, but libcuda was not found: a container needs the driver "
                        "capability `compute` (NVIDIA_DRIVER_CAPABILITIES=compute,utility)",
                        nodes[0]);
    cuhip_note_variable("NVIDIA_VISIBLE_DEVICES", result);
    cuhip_note_variable("NVIDIA_DRIVER_CAPABILITIES", result);
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
    if (cuhip_api->library_resolve(library, &symbol, 1, &runtime, reason, sizeof reason) !=
            GG_PROBE_AVAILABLE ||
        !runtime.version || runtime.version(&version)) {
        cuhip_api->note(log, "CUDA runtime of unknown version: %s", library->path);
        return;
    }
    cuhip.version_text(version, text, sizeof text);
    cuhip_api->note(log, "CUDA runtime %s (%s): %s", text, library->found_by, library->path);
    /* Within a major version a runtime works with older drivers too. */
    if (library->already_loaded && driver && version / 1000 > driver / 1000)
        cuhip_api->note(
            log,
            "warning: that runtime is in use in this process and needs a driver for CUDA %d or "
            "newer; this driver supports %d.%d: libraries that use it will fail with error 35",
            version / 1000, driver / 1000, driver % 1000 / 10);
}

/* The runtime is only reported: gpuglue does not use it. A passive probe opens nothing for it. An active probe
 * opens only the copy that this environment's own packages would load: the first copy of a SONAME that is loaded
 * is used by the whole process. */
static void note_runtime(enum gg_probe_level level, int driver, struct gg_probe_log *log)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0",
                                        NULL};
    const struct gg_library_spec spec = {
        .struct_size = sizeof spec,
        .flags = level == GG_ACTIVE ? GG_LIBRARY_ADDED_DIRECTORIES | GG_LIBRARY_NO_SYSTEM
                                    : GG_LIBRARY_ONLY_MAPPED,
        .names = names,
        .stem = "libcudart"};
    struct gg_library library = {.struct_size = sizeof library};
    char reason[512];
    if (cuhip_api->library_open(&spec, log, &library, reason, sizeof reason) != GG_PROBE_AVAILABLE)
        return;
    if (level == GG_ACTIVE)
        note_runtime_version(&library, driver, log);
    else
        cuhip_api->note(log, "CUDA runtime (%s): %s", library.found_by, library.path);
}

void cuda_add_notes(enum gg_probe_level level, int version, const struct gg_probe_result *result)
{
    cuhip_note_variable("CUDA_VISIBLE_DEVICES", result);
    if (result->status != GG_PROBE_AVAILABLE && result->status != GG_PROBE_NOT_PROBED)
        note_nodes(result);
    note_runtime(level, version, result->log);
}
