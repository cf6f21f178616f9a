/* judge.c: the permitted results of a failed vendor call. */
#include "sweep.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define FIRST_STEPS 5 /* in these steps a fault may make the backend unavailable */

const char *class_name(enum class class)
{
    static const char *const names[CLASSES] = {"an error", "out of memory", "device lost"};
    return names[class];
}

/* The vendor's codes of an unknown error, out of memory, and a lost device. */
int code_of(const char *name, enum class class)
{
    static const int ze[CLASSES] = {0x7ffffffe, 0x70000003, 0x70000001};
    static const int cuda_hip[CLASSES] = {999, 2, 719};
    static const int nccl[CLASSES] = {3, 2, 1}; /* it has no code of its own for the others */
    if (!strncmp(name, "nccl", 4))
        return nccl[class];
    return !strncmp(name, "ze", 2) ? ze[class] : cuda_hip[class];
}

static gg_status status_of(enum class class)
{
    static const gg_status statuses[CLASSES] = {GG_ERR_DEVICE, GG_ERR_OUT_OF_MEMORY,
                                                GG_ERR_DEVICE_LOST};
    return statuses[class];
}

/* Functions that report the features of a driver. */
static const char *const support_queries[] = {"GetExtensionProperties",
                                              "GetExtensionFunctionAddress",
                                              "zeDriverGetIpcProperties",
                                              "zeDeviceGetProperties",
                                              "DeviceGetUuid",
                                              NULL};
/* Functions that report the limits of a launch. An unknown limit gets the stricter value. */
static const char *const limit_queries[] = {"cuDeviceGet",
                                            "hipDeviceGet",
                                            "cuDeviceGetAttribute",
                                            "hipDeviceGetAttribute",
                                            "cuFuncGetAttribute",
                                            "hipFuncGetAttribute",
                                            "zeDeviceGetComputeProperties",
                                            "zeDeviceGetCommandQueueGroupProperties",
                                            NULL};
/* Functions that find a device. */
static const char *const device_queries[] = {"DeviceGetUuid", "PCIBusId",    "PciGetProperties",
                                             "zeDeviceGet",   "zeDriverGet", NULL};

static bool is_in(const char *name, const char *const *parts)
{
    for (; *parts; parts++)
        if (strstr(name, *parts))
            return true;
    return false;
}

static bool is_named(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (!strcmp(name, *names))
            return true;
    return false;
}

/* A failure of the library, or of a driver's function that it calls, has the library's status. */
static bool is_of_library(const struct step_result *result)
{
    static const char *const steps[] = {"open its device",
                                        "create the communicator of one process",
                                        "combine in one process",
                                        "combine through the host",
                                        "gather through the host",
                                        "check what passed through the host",
                                        "combine",
                                        "exchange",
                                        "broadcast",
                                        "check the communicator's values",
                                        NULL};
    return is_named(result->name, steps) &&
           (result->status == GG_ERR_COMMUNICATOR || result->status == GG_ERR_DEVICE);
}

static bool allowed(const struct fault *fault, int step, int status, int without)
{
    if (status == without || status == SKIPPED)
        return true;
    if (status == GG_OK || status == GG_NOT_READY)
        return without != GG_ERR_OUT_OF_MEMORY; /* too large an allocation must still fail */
    if (status == (int)status_of(fault->class))
        return true;
    if (status == GG_ERR_UNSUPPORTED && is_in(fault->name, support_queries))
        return true;
    if ((status == GG_ERR_UNSUPPORTED || status == GG_ERR_INVALID_ARGUMENT) &&
        is_named(fault->name, limit_queries))
        return true;
    if (status == GG_ERR_NO_SUCH_DEVICE && is_in(fault->name, device_queries))
        return true;
    return status == GG_ERR_UNAVAILABLE && step < FIRST_STEPS;
}

/* The capture of a lost device cannot be ended, and HIP synchronizes no device while a stream of the process is captured. */
static bool is_behind_open_capture(const struct fault *fault, const struct step_result *result)
{
    static const char *const steps[] = {"synchronize another device", "synchronize the other device",
                                        "synchronize the other device again", NULL};
    return fault->class == CLASS_LOST && !strncmp(fault->name, "hip", 3) &&
           result->status == GG_ERR_UNSUPPORTED && is_named(result->name, steps) &&
           strstr(result->message, "hip: device_synchronize on device 1 failed: "
                                   "hipErrorStreamCaptureUnsupported (900)");
}

/* The begin fails after the driver's, if the id of the capture cannot be read. */
static bool lost_in_capture(const struct step_result *result)
{
    static const char *const steps[] = {"begin a capture",
                                        "end the capture",
                                        "begin a second capture",
                                        "end the second capture",
                                        "begin a capture to drop",
                                        "drop the capture",
                                        NULL};
    return result->status == GG_ERR_DEVICE_LOST && is_named(result->name, steps);
}

/* Every later failure on a lost device must name the call that lost it. */
static bool names_first_site(const struct step_result *result, bool lost[2])
{
    const int device = strstr(result->message, "on device 1 failed") != NULL;
    const bool later = lost[device];
    if (result->status != GG_ERR_DEVICE_LOST)
        return true;
    lost[device] = true;
    return !later || strstr(result->message, "first lost in");
}

/* Functions whose failures may all be silent. Each group has the reason. */
static const char *const quiet[] = {
    /* A release cannot fail for its caller. An object that the driver cannot destroy is logged and
     * leaked. */
    "cuMemFree_v2", "cuMemFreeHost", "hipFree", "hipHostFree", "zeMemFree", "cuMemFreeAsync",
    "hipFreeAsync", "cuIpcCloseMemHandle", "hipIpcCloseMemHandle", "zeMemCloseIpcHandle",
    "zeMemPutIpcHandle", "cuStreamDestroy_v2", "hipStreamDestroy", "zeCommandListDestroy",
    "cuEventDestroy_v2", "hipEventDestroy", "cuModuleUnload", "hipModuleUnload", "zeModuleDestroy",
    "zeKernelDestroy", "zeModuleBuildLogDestroy", "zeEventDestroy", "zeEventPoolDestroy",
    "zeContextDestroy", "cuDevicePrimaryCtxRelease_v2", "cuGraphDestroy", "hipGraphDestroy",
    "cuGraphExecDestroy", "hipGraphExecDestroy", "ncclCommDestroy", "ncclCommAbort",
    /* Without its version the library is not used: the transport is "staged". */
    "ncclGetVersion",
    /* Called ten times a second, at times at which nothing else is tested. */
    "ncclCommGetAsyncError",
    /* If the driver does not record a graph, each launch queues its operations. */
    "zeCommandListBeginGraphCaptureExt", "zeCommandListEndGraphCaptureExt", "zeGraphInstantiateExt",
    "zeGraphDestroyExt", "zeExecutableGraphDestroyExt",
    /* Text for a message, and attributes of a kernel that the image has too. */
    "zeModuleBuildLogGetString", "zeKernelGetProperties",
    /* Without the relaxed capture mode, a background poll is left to a later call. */
    "cuThreadExchangeStreamCaptureMode", "hipThreadExchangeStreamCaptureMode",
    /* A failure means no capture. If there is one, the operation itself fails. */
    "cuStreamIsCapturing", "hipStreamIsCapturing",
    /* A failure means the stricter case: a blocking stream. */
    "cuStreamGetFlags", "hipStreamGetFlags",
    /* A check of the caller's arguments, which needs the driver's support. */
    "cuPointerGetAttributes", "hipPointerGetAttributes", "zeMemGetAllocProperties",
    "cuStreamGetCtx_v2", "zeCommandListIsImmediate", "zeCommandListGetDeviceHandle",
    /* Properties that a device may lack: the uuid is then unknown, the PCI address empty. */
    "cuDeviceGetUuid_v2", "hipDeviceGetUuid", "cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId",
    "zeDevicePciGetPropertiesExt",
    /* Attributes of a kernel. Without them fewer limits of a launch are checked. */
    "zeKernelGetProperties",
    /* For kernels that dereference pointers from memory. The failure is logged. */
    "zeKernelSetIndirectAccess",
    /* The compiler's log, which is added to the error. */
    "zeModuleBuildLogGetString",
    /* The base of the pointer is then unknown. */
    "hipMemGetAddressRange",
    /* For the text of the probe only, which then has 0. */
    "cuDriverGetVersion", "hipRuntimeGetVersion", "zeDriverGetProperties",
    /* Without a default context gpuglue creates its own. */
    "zeDriverGetDefaultContext",
    /* The kinds of memory are then asked for again by the first allocation of managed memory. */
    "zeDeviceGetMemoryAccessProperties",
    /* The event is not reused; a new event replaces it. */
    "zeEventHostReset",
    /* Repeated until it succeeds. */
    "zeEventHostSignal",
    /* Without peer access, copies between devices go through the host. */
    "cuDeviceCanAccessPeer", "hipDeviceCanAccessPeer", "zeDeviceCanAccessPeer",
    "cuCtxEnablePeerAccess", "hipDeviceEnablePeerAccess",
    /* Registered memory is then for copies only. */
    "cuMemHostGetDevicePointer_v2", "hipHostGetDevicePointer",
    /* Readback memory is then not pinned; a pool's pages stay locked until the shutdown. */
    "cuMemHostRegister_v2", "hipHostRegister", "cuMemHostUnregister", "hipHostUnregister",
    "zexDriverImportExternalPointer", "zexDriverReleaseImportedPointer",
    /* Memory that nobody has imported is an error, too. */
    "zexDriverGetHostPointerBaseAddress", NULL};

/* Functions with two uses. A failure of a call for the user is reported; a failure of an internal
 * call may be silent. At least one failure of each function must be reported. */
static const char *const sometimes[] = {
    /* Used by the program, and by the core's polls for finished work, which are repeated. */
    "cuStreamQuery", "hipStreamQuery", "cuEventQuery", "hipEventQuery", "hipEventElapsedTime",
    "zeEventQueryStatus", "cuEventRecord", "hipEventRecord", "cuEventCreate",
    "hipEventCreateWithFlags", "zeEventCreate", "zeEventPoolCreate",
    "zeCommandListAppendSignalEvent", "zeCommandListAppendBarrier", "zeEventHostSynchronize",
    "zeCommandListHostSynchronize",
    /* Used by the program, and for the limits of a launch, which the driver checks too. */
    "cuFuncGetAttribute", "hipFuncGetAttribute", "zeDeviceGetComputeProperties",
    "zeDeviceGetCommandQueueGroupProperties",
    /* Also used to restore the current context after an operation has succeeded, and in releases. */
    "cuCtxGetCurrent", "hipGetDevice", "cuCtxSetCurrent", "hipSetDevice",
    /* Properties for the probe, which reports a failure, and for messages. */
    "cuDeviceGet", "hipDeviceGet", "cuDeviceGetName", "hipDeviceGetName", "cuDeviceTotalMem_v2",
    "hipDeviceTotalMem", "cuDeviceGetAttribute", "hipDeviceGetAttribute", "zeDeviceGetProperties",
    "zeDeviceGetMemoryProperties", "zeDeviceGetStatus", "cuMemGetInfo_v2", "hipMemGetInfo",
    "cuCtxGetStreamPriorityRange", "hipDeviceGetStreamPriorityRange", "hipGetDeviceProperties",
    "hipGetDevicePropertiesR0600",
    /* A function that cannot be looked up is unsupported; a call that needs it fails. */
    "zeDriverGetExtensionProperties", "zeDriverGetExtensionFunctionAddress",
    "zeDriverGetIpcProperties",
    /* The allocation that is too large fails without a fault too. Out of memory is retried once. */
    "cuMemAlloc_v2", "hipMalloc", "zeMemAllocDevice", "zeMemAllocShared", "cuMemAllocManaged",
    "hipMallocManaged", "cuMemAllocAsync", "hipMallocAsync",
    /* Also used to test copies to another device; if the test fails, copies go through the host. */
    "cuMemcpyPeerAsync", "hipMemcpyPeerAsync", "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync",
    "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync", "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync",
    "cuStreamWriteValue64_v2", "zeCommandListAppendMemoryCopy", "cuStreamCreateWithPriority",
    "hipStreamCreateWithPriority", "zeCommandListCreateImmediate",
    /* Also used to let the driver record a graph. */
    "zeCommandListAppendMemoryFill",
    /* During a capture that gpuglue has begun its own id is used instead. */
    "cuStreamGetCaptureInfo", "hipStreamGetCaptureInfo",
    /* If an allocation cannot wait for a busy block, it takes another block. */
    "cuStreamWaitEvent", "hipStreamWaitEvent", "zeCommandListAppendWaitOnEvents",
    /* A deferred release of memory is polled again. */
    "cuCtxRecordEvent",
    /* If a pool cannot allocate a slab, it requests a smaller slab. */
    "cuMemHostAlloc", "hipHostMalloc", "zeMemAllocHost", NULL};

bool must_be_reported_once(const char *name)
{
    return is_named(name, sometimes);
}

bool is_exempt(const char *name)
{
    return is_named(name, sometimes) || is_named(name, quiet);
}

static enum verdict judge_steps(const struct trial *trial, const struct outcome *baseline,
                                bool *reported, char *why, size_t size)
{
    const struct fault *fault = &trial->fault;
    const struct outcome *outcome = trial->outcome;
    bool lost[2] = {false, false}, seen = false, open = false;
    for (int i = 0; i < outcome->count && i < baseline->count; i++) {
        const struct step_result *result = &outcome->result[i];
        const int without = baseline->result[i].status;
        seen = seen || (result->status != without && result->status > GG_NOT_READY);
        open = open || lost_in_capture(result);
        if (!allowed(fault, i, result->status, without) && !is_of_library(result) &&
            !(open && is_behind_open_capture(fault, result))) {
            snprintf(why, size, "'%s' returned %s, without the fault %s: %s", result->name,
                     gg_status_name((gg_status)result->status), gg_status_name((gg_status)without),
                     result->message);
            return WRONG;
        }
        if (fault->class == CLASS_LOST && !names_first_site(result, lost)) {
            snprintf(why, size, "'%s' does not name the first site: %s", result->name,
                     result->message);
            return WRONG;
        }
    }
    *reported = seen;
    if (!seen && !is_exempt(fault->name)) {
        snprintf(why, size, "no step reported the failure");
        return WRONG;
    }
    return RIGHT;
}

static enum verdict judge_end(const struct trial *trial, char *why, size_t size)
{
    const char *last = "";
    if (trial->outcome->count > 0)
        last = trial->outcome->result[trial->outcome->count - 1].name;
    snprintf(why, size, "%s %d, the last step was '%s'",
             WIFSIGNALED(trial->ended) ? "signal" : "exit status",
             WIFSIGNALED(trial->ended) ? WTERMSIG(trial->ended) : WEXITSTATUS(trial->ended),
             last ? last : "");
    if (WIFSIGNALED(trial->ended) && WTERMSIG(trial->ended) == SIGALRM)
        return HUNG;
    if (WIFEXITED(trial->ended) && output_has(trial->directory, "LeakSanitizer"))
        return LEAKED_HOST_MEMORY;
    return CRASHED;
}

/* If every wait fails, no object is known to be idle, and objects that may be busy are leaked. That is also so if waits
 * alone report a lost device: the device itself, which is asked for its status, does not confirm it. */
static bool never_known(const struct fault *fault)
{
    static const char *const waits[] = {"zeCommandListHostSynchronize", "zeEventHostSynchronize",
                                        "zeEventQueryStatus", NULL};
    return fault->onwards && (fault->class != CLASS_LOST || is_named(fault->name, waits));
}

/* A silent call failed with a device-lost code, but the simulated device continues. No call waits
 * for its work any more, so its data is not checked. */
static bool goes_on(const struct fault *fault)
{
    return fault->class == CLASS_LOST &&
           (is_exempt(fault->name) || is_named(fault->name, limit_queries));
}

/* A stream that waits for a lost device stays busy, so it is leaked. */
static bool is_stuck(const struct trial *trial)
{
    for (size_t i = 0; i < (size_t)trial->outcome->count; i++)
        if (strstr(trial->outcome->result[i].message, "and that device was lost"))
            return trial->fault.class == CLASS_LOST;
    return false;
}

/* Memory that the driver could not unlock keeps its owner. */
static bool stays_locked(const struct fault *fault)
{
    const bool unlocks = strstr(fault->name, "HostUnregister") ||
                         !strcmp(fault->name, "zexDriverReleaseImportedPointer");
    return unlocks && fault->class != CLASS_LOST;
}

enum verdict judge(const struct trial *trial, const struct outcome *baseline, bool *reported,
                   char *why, size_t size)
{
    *reported = false;
    why[0] = '\0';
    if (trial->ended)
        return judge_end(trial, why, size);
    if (trial->fault.name[0] && calls_of(&trial->report, trial->fault.name) < trial->fault.nth)
        return NOT_REACHED;
    if (trial->report.leaked && !never_known(&trial->fault) && !is_stuck(trial)) {
        snprintf(why, size, "%d objects", trial->report.leaked);
        return LEAKED_VENDOR_OBJECTS;
    }
    if (trial->outcome->kept && !never_known(&trial->fault) && !stays_locked(&trial->fault)) {
        snprintf(why, size, "%d owners were not released", trial->outcome->kept);
        return WRONG;
    }
    if (trial->outcome->wrong[0] && !goes_on(&trial->fault)) {
        snprintf(why, size, "%s", trial->outcome->wrong);
        return WRONG;
    }
    return trial->fault.name[0] ? judge_steps(trial, baseline, reported, why, size) : RIGHT;
}
