/* judge.c: what a failed vendor call may lead to, and what not. */
#include "sweep.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define FIRST_STEPS 5 /* in which a backend that does not start is unavailable */

const char *class_name(enum class class)
{
    static const char *const names[CLASSES] = {"an error", "out of memory", "device lost"};
    return names[class];
}

/* In the vendors' numbers: their general failure, no memory, and what a device never recovers from. */
int code_of(const char *name, enum class class)
{
    static const int ze[CLASSES] = {0x7ffffffe, 0x70000003, 0x70000001};
    static const int twins[CLASSES] = {999, 2, 719};
    return !strncmp(name, "ze", 2) ? ze[class] : twins[class];
}

static gg_status status_of(enum class class)
{
    static const gg_status statuses[CLASSES] = {GG_ERR_DEVICE, GG_ERR_OUT_OF_MEMORY,
                                                GG_ERR_DEVICE_LOST};
    return statuses[class];
}

/* From which we learn what a driver can do, and where a device is. */
static const char *const tell_support[] = {"GetExtensionProperties", "zeDeviceGetProperties",
                                           "DeviceGetUuid", NULL};
/* … and where a launch's limits are: one that is not known is taken as the stricter one. */
static const char *const tell_limits[] = {"cuDeviceGet",
                                          "hipDeviceGet",
                                          "cuDeviceGetAttribute",
                                          "hipDeviceGetAttribute",
                                          "cuFuncGetAttribute",
                                          "hipFuncGetAttribute",
                                          "zeDeviceGetComputeProperties",
                                          NULL};
static const char *const tell_devices[] = {"DeviceGetUuid", "PCIBusId",    "PciGetProperties",
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

static bool allowed(const struct fault *fault, int step, int status, int without)
{
    if (status == without || status == SKIPPED)
        return true;
    if (status == GG_OK || status == GG_NOT_READY)
        return without != GG_ERR_OUT_OF_MEMORY; /* what is too much stays too much */
    if (status == (int)status_of(fault->class))
        return true;
    if (status == GG_ERR_UNSUPPORTED && is_in(fault->name, tell_support))
        return true;
    if ((status == GG_ERR_UNSUPPORTED || status == GG_ERR_INVALID_ARGUMENT) &&
        is_named(fault->name, tell_limits))
        return true;
    if (status == GG_ERR_NO_SUCH_DEVICE && is_in(fault->name, tell_devices))
        return true;
    return status == GG_ERR_UNAVAILABLE && step < FIRST_STEPS;
}

/* Each later failure of a device names the place where it was lost. */
static bool names_first_site(const struct answer *answer, bool lost[2])
{
    const int device = strstr(answer->message, "on device 1 failed") != NULL;
    const bool later = lost[device];
    if (answer->status != GG_ERR_DEVICE_LOST)
        return true;
    lost[device] = true;
    return !later || strstr(answer->message, "first lost in");
}

/* Functions whose failures may all be silent, each group with the reason why nobody needs to be told. */
static const char *const quiet[] = {
    /* A release cannot fail for who releases: what a driver does not take back is logged and left to it. */
    "cuMemFree_v2", "cuMemFreeHost", "hipFree", "hipHostFree", "zeMemFree", "cuMemFreeAsync",
    "hipFreeAsync", "cuIpcCloseMemHandle", "hipIpcCloseMemHandle", "cuStreamDestroy_v2",
    "hipStreamDestroy", "zeCommandListDestroy", "cuEventDestroy_v2", "hipEventDestroy",
    "cuModuleUnload", "hipModuleUnload", "zeModuleDestroy", "zeKernelDestroy",
    "zeModuleBuildLogDestroy", "zeEventDestroy", "zeEventPoolDestroy", "zeContextDestroy",
    "cuDevicePrimaryCtxRelease_v2",
    /* Words for a message, and facts of a kernel that the image tells as well. */
    "zeModuleBuildLogGetString", "zeKernelGetProperties",
    /* Without the relaxed mode housekeeping leaves its look to a later call. */
    "cuThreadExchangeStreamCaptureMode", "hipThreadExchangeStreamCaptureMode",
    /* No answer counts as no capture: the operation's own call fails where there is one. */
    "cuStreamIsCapturing", "hipStreamIsCapturing",
    /* No answer counts as the stricter one: a stream that the default one orders. */
    "cuStreamGetFlags", "hipStreamGetFlags",
    /* A check of what the caller has said, which is done where the driver can. */
    "cuPointerGetAttributes", "hipPointerGetAttributes", "zeMemGetAllocProperties",
    "zeCommandListIsImmediate", "zeCommandListGetDeviceHandle",
    /* Facts that a device may not have: then the uuid is unknown and the address empty. */
    "cuDeviceGetUuid_v2", "hipDeviceGetUuid", "cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId",
    "zeDevicePciGetPropertiesExt",
    /* What a kernel is by itself: then its launch is checked against less. */
    "zeKernelGetProperties",
    /* For kernels that follow pointers in memory; logged. */
    "zeKernelSetIndirectAccess",
    /* The compiler's words, beside the error. */
    "zeModuleBuildLogGetString",
    /* The base of a pointer is left open then. */
    "hipMemGetAddressRange",
    /* For the text of the probe alone, which says 0 then. */
    "cuDriverGetVersion", "hipRuntimeGetVersion", "zeDriverGetProperties",
    /* Without a default context we make our own. */
    "zeDriverGetDefaultContext",
    /* The event is not used again; another takes its place. */
    "zeEventHostReset",
    /* Asked again until the driver does it. */
    "zeEventHostSignal",
    /* Devices that may not reach each other copy through the host. */
    "cuDeviceCanAccessPeer", "hipDeviceCanAccessPeer", "zeDeviceCanAccessPeer",
    "cuCtxEnablePeerAccess", "hipDeviceEnablePeerAccess",
    /* Results of get() are not page-locked then, and a pool's pages stay locked until the end. */
    "cuMemHostRegister_v2", "hipHostRegister", "cuMemHostUnregister", "hipHostUnregister", NULL};

/* Functions that are called for the user, who is told, and on our own account, where nobody needs to
 * know: of all their calls at least one must be told. */
static const char *const sometimes[] = {
    /* The program's queries and records; and the engine's look at what is done, which comes again. */
    "cuStreamQuery", "hipStreamQuery", "cuEventQuery", "hipEventQuery", "zeEventQueryStatus",
    "cuEventRecord", "hipEventRecord", "cuEventCreate", "hipEventCreateWithFlags", "zeEventCreate",
    "zeEventPoolCreate", "zeCommandListAppendSignalEvent", "zeCommandListAppendBarrier",
    "zeEventHostSynchronize", "zeCommandListHostSynchronize",
    /* The program's questions; and limits for the checks of a launch, which the driver then makes. */
    "cuFuncGetAttribute", "hipFuncGetAttribute", "zeDeviceGetComputeProperties",
    /* What is current is put back behind an operation that has succeeded, and set around releases. */
    "cuCtxGetCurrent", "hipGetDevice", "cuCtxSetCurrent", "hipSetDevice",
    /* Facts for the probe, whose report has them or their failure, and for a message. */
    "cuDeviceGet", "hipDeviceGet", "cuDeviceGetName", "hipDeviceGetName", "cuDeviceTotalMem_v2",
    "hipDeviceTotalMem", "cuDeviceGetAttribute", "hipDeviceGetAttribute", "zeDeviceGetProperties",
    "zeDeviceGetMemoryProperties", "cuMemGetInfo_v2", "hipMemGetInfo", "cuCtxGetStreamPriorityRange",
    "hipDeviceGetStreamPriorityRange", "hipGetDeviceProperties", "hipGetDevicePropertiesR0600",
    /* What cannot be asked for is not there: unsupported, where somebody needs it. */
    "zeDriverGetExtensionProperties",
    /* The block that is too large fails without a fault as well; what has no memory asks once more. */
    "cuMemAlloc_v2", "hipMalloc", "zeMemAllocDevice", "cuMemAllocManaged", "hipMallocManaged",
    "cuMemAllocAsync", "hipMallocAsync",
    /* Where the proof that bytes arrive on another device fails, copies go through the host. */
    "cuMemcpyPeerAsync", "hipMemcpyPeerAsync", "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync",
    "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync", "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync",
    "cuStreamWriteValue64_v2", "hipStreamWriteValue64", "zeCommandListAppendMemoryCopy",
    "cuStreamCreateWithPriority", "hipStreamCreateWithPriority", "zeCommandListCreateImmediate",
    /* A busy block that cannot be waited for is not taken: the allocation asks on. */
    "cuStreamWaitEvent", "hipStreamWaitEvent", "zeCommandListAppendWaitOnEvents",
    /* A quarantine of memory is looked at again. */
    "cuCtxRecordEvent",
    /* A pool that is refused a slab asks for less. */
    "cuMemHostAlloc", "hipHostMalloc", "zeMemAllocHost", NULL};

bool must_be_told_once(const char *name)
{
    return is_named(name, sometimes);
}

bool is_exempt(const char *name)
{
    return is_named(name, sometimes) || is_named(name, quiet);
}

static enum verdict judge_answers(const struct trial *trial, const struct outcome *baseline,
                                  bool *told, char *why, size_t size)
{
    const struct fault *fault = &trial->fault;
    const struct outcome *outcome = trial->outcome;
    bool lost[2] = {false, false}, seen = false;
    for (int i = 0; i < outcome->count && i < baseline->count; i++) {
        const struct answer *answer = &outcome->answer[i];
        const int without = baseline->answer[i].status;
        seen = seen || (answer->status != without && answer->status > GG_NOT_READY);
        if (!allowed(fault, i, answer->status, without)) {
            snprintf(why, size, "'%s' gave %s, without the fault %s: %s", answer->name,
                     gg_status_name((gg_status)answer->status), gg_status_name((gg_status)without),
                     answer->message);
            return WRONG;
        }
        if (fault->class == CLASS_LOST && !names_first_site(answer, lost)) {
            snprintf(why, size, "'%s' does not name the first site: %s", answer->name,
                     answer->message);
            return WRONG;
        }
    }
    *told = seen;
    if (!seen && !is_exempt(fault->name)) {
        snprintf(why, size, "nobody was told");
        return WRONG;
    }
    return RIGHT;
}

static enum verdict judge_end(const struct trial *trial, char *why, size_t size)
{
    const char *last = "";
    if (trial->outcome->count > 0)
        last = trial->outcome->answer[trial->outcome->count - 1].name;
    snprintf(why, size, "%s %d, the last step was '%s'",
             WIFSIGNALED(trial->ended) ? "signal" : "exit status",
             WIFSIGNALED(trial->ended) ? WTERMSIG(trial->ended) : WEXITSTATUS(trial->ended),
             last ? last : "");
    if (WIFSIGNALED(trial->ended) && WTERMSIG(trial->ended) == SIGALRM)
        return HUNG;
    if (WIFEXITED(trial->ended) && output_has(trial->folder, "LeakSanitizer"))
        return LEAKED_HOST_MEMORY;
    return CRASHED;
}

/* Where every wait fails nobody knows what is idle, and what may be busy is left to the process. */
static bool never_known(const struct fault *fault)
{
    return fault->onwards && fault->class != CLASS_LOST;
}

/* A call that nobody is told of, answered as on a lost device, whose work then goes on: nothing waits for it
 * any more, and its data say nothing. */
static bool goes_on(const struct fault *fault)
{
    return fault->class == CLASS_LOST &&
           (is_exempt(fault->name) || is_named(fault->name, tell_limits));
}

/* A stream that waits for a device that was lost is busy for ever: it is left to the process. */
static bool is_stuck(const struct trial *trial)
{
    for (size_t i = 0; i < (size_t)trial->outcome->count; i++)
        if (strstr(trial->outcome->answer[i].message, "and that device was lost"))
            return trial->fault.class == CLASS_LOST;
    return false;
}

/* Memory that the driver still takes for locked stays its owner's, for good. */
static bool stays_locked(const struct fault *fault)
{
    return strstr(fault->name, "HostUnregister") && fault->class != CLASS_LOST;
}

enum verdict judge(const struct trial *trial, const struct outcome *baseline, bool *told, char *why,
                   size_t size)
{
    *told = false;
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
        snprintf(why, size, "%d owners were not let go", trial->outcome->kept);
        return WRONG;
    }
    if (trial->outcome->wrong[0] && !goes_on(&trial->fault)) {
        snprintf(why, size, "%s", trial->outcome->wrong);
        return WRONG;
    }
    return trial->fault.name[0] ? judge_answers(trial, baseline, told, why, size) : RIGHT;
}
