/* sim_hip_errors.c: HIP: error codes, their names and texts. */
#include "sim_hip.h"

struct error_row {
    hipError_t code;
    const char *name, *text;
};

static const struct error_row rows[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid value"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNotInitialized, "hipErrorNotInitialized", "not initialized"},
    {hipErrorDeinitialized, "hipErrorDeinitialized", "deinitialized"},
    {hipErrorProfilerDisabled, "hipErrorProfilerDisabled", "profiler disabled"},
    {hipErrorProfilerNotInitialized, "hipErrorProfilerNotInitialized", "profiler not initialized"},
    {hipErrorProfilerAlreadyStarted, "hipErrorProfilerAlreadyStarted", "profiler already started"},
    {hipErrorProfilerAlreadyStopped, "hipErrorProfilerAlreadyStopped", "profiler already stopped"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration", "invalid configuration"},
    {hipErrorInvalidPitchValue, "hipErrorInvalidPitchValue", "invalid pitch value"},
    {hipErrorInvalidSymbol, "hipErrorInvalidSymbol", "invalid symbol"},
    {hipErrorInvalidDevicePointer, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {hipErrorInvalidMemcpyDirection, "hipErrorInvalidMemcpyDirection", "invalid memcpy direction"},
    {hipErrorInsufficientDriver, "hipErrorInsufficientDriver", "insufficient driver"},
    {hipErrorMissingConfiguration, "hipErrorMissingConfiguration", "missing configuration"},
    {hipErrorPriorLaunchFailure, "hipErrorPriorLaunchFailure", "prior launch failure"},
    {hipErrorInvalidDeviceFunction, "hipErrorInvalidDeviceFunction", "invalid device function"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no device"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "invalid image"},
    {hipErrorInvalidContext, "hipErrorInvalidContext", "invalid context"},
    {hipErrorContextAlreadyCurrent, "hipErrorContextAlreadyCurrent", "context already current"},
    {hipErrorMapFailed, "hipErrorMapFailed", "map failed"},
    {hipErrorUnmapFailed, "hipErrorUnmapFailed", "unmap failed"},
    {hipErrorArrayIsMapped, "hipErrorArrayIsMapped", "array is mapped"},
    {hipErrorAlreadyMapped, "hipErrorAlreadyMapped", "already mapped"},
    {hipErrorNoBinaryForGpu, "hipErrorNoBinaryForGpu", "no binary for gpu"},
    {hipErrorAlreadyAcquired, "hipErrorAlreadyAcquired", "already acquired"},
    {hipErrorNotMapped, "hipErrorNotMapped", "not mapped"},
    {hipErrorNotMappedAsArray, "hipErrorNotMappedAsArray", "not mapped as array"},
    {hipErrorNotMappedAsPointer, "hipErrorNotMappedAsPointer", "not mapped as pointer"},
    {hipErrorECCNotCorrectable, "hipErrorECCNotCorrectable", "eccnot correctable"},
    {hipErrorUnsupportedLimit, "hipErrorUnsupportedLimit", "unsupported limit"},
    {hipErrorContextAlreadyInUse, "hipErrorContextAlreadyInUse", "context already in use"},
    {hipErrorPeerAccessUnsupported, "hipErrorPeerAccessUnsupported", "peer access unsupported"},
    {hipErrorInvalidKernelFile, "hipErrorInvalidKernelFile", "invalid kernel file"},
    {hipErrorInvalidGraphicsContext, "hipErrorInvalidGraphicsContext", "invalid graphics context"},
    {hipErrorInvalidSource, "hipErrorInvalidSource", "invalid source"},
    {hipErrorFileNotFound, "hipErrorFileNotFound", "file not found"},
    {hipErrorSharedObjectSymbolNotFound, "hipErrorSharedObjectSymbolNotFound",
     "shared object symbol not found"},
    {hipErrorSharedObjectInitFailed, "hipErrorSharedObjectInitFailed", "shared object init failed"},
    {hipErrorOperatingSystem, "hipErrorOperatingSystem", "operating system"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid handle"},
    {hipErrorIllegalState, "hipErrorIllegalState", "illegal state"},
    {hipErrorNotFound, "hipErrorNotFound", "not found"},
    {hipErrorNotReady, "hipErrorNotReady", "not ready"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress", "illegal address"},
    {hipErrorLaunchOutOfResources, "hipErrorLaunchOutOfResources", "launch out of resources"},
    {hipErrorLaunchTimeOut, "hipErrorLaunchTimeOut", "launch time out"},
    {hipErrorPeerAccessAlreadyEnabled, "hipErrorPeerAccessAlreadyEnabled",
     "peer access already enabled"},
    {hipErrorPeerAccessNotEnabled, "hipErrorPeerAccessNotEnabled", "peer access not enabled"},
    {hipErrorSetOnActiveProcess, "hipErrorSetOnActiveProcess", "set on active process"},
    {hipErrorContextIsDestroyed, "hipErrorContextIsDestroyed", "context is destroyed"},
    {hipErrorAssert, "hipErrorAssert", "assert"},
    {hipErrorHostMemoryAlreadyRegistered, "hipErrorHostMemoryAlreadyRegistered",
     "host memory already registered"},
    {hipErrorHostMemoryNotRegistered, "hipErrorHostMemoryNotRegistered",
     "host memory not registered"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "launch failure"},
    {hipErrorCooperativeLaunchTooLarge, "hipErrorCooperativeLaunchTooLarge",
     "cooperative launch too large"},
    {hipErrorNotSupported, "hipErrorNotSupported", "not supported"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported",
     "stream capture unsupported"},
    {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated",
     "stream capture invalidated"},
    {hipErrorStreamCaptureMerge, "hipErrorStreamCaptureMerge", "stream capture merge"},
    {hipErrorStreamCaptureUnmatched, "hipErrorStreamCaptureUnmatched", "stream capture unmatched"},
    {hipErrorStreamCaptureUnjoined, "hipErrorStreamCaptureUnjoined", "stream capture unjoined"},
    {hipErrorStreamCaptureIsolation, "hipErrorStreamCaptureIsolation", "stream capture isolation"},
    {hipErrorStreamCaptureImplicit, "hipErrorStreamCaptureImplicit", "stream capture implicit"},
    {hipErrorCapturedEvent, "hipErrorCapturedEvent", "captured event"},
    {hipErrorStreamCaptureWrongThread, "hipErrorStreamCaptureWrongThread",
     "stream capture wrong thread"},
    {hipErrorGraphExecUpdateFailure, "hipErrorGraphExecUpdateFailure", "graph exec update failure"},
    {hipErrorUnknown, "hipErrorUnknown", "unknown"},
    {hipErrorRuntimeMemory, "hipErrorRuntimeMemory", "runtime memory"},
    {hipErrorRuntimeOther, "hipErrorRuntimeOther", "runtime other"},
};

static const struct error_row *row_of(hipError_t code)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == code)
            return &rows[i];
    return NULL;
}

const char *hipGetErrorName(hipError_t hip_error)
{
    const struct error_row *row = row_of(hip_error);
    return row ? row->name : "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t hipError)
{
    const struct error_row *row = row_of(hipError);
    return row ? row->text : "unknown error";
}

#if SIM_HIP_57
hipError_t hipDrvGetErrorName(hipError_t error, const char **name)
{
    const struct error_row *row = row_of(error);
    if (!name || !row)
        return hipErrorInvalidValue;
    *name = row->name;
    return hipSuccess;
}

hipError_t hipDrvGetErrorString(hipError_t error, const char **text)
{
    const struct error_row *row = row_of(error);
    if (!text || !row)
        return hipErrorInvalidValue;
    *text = row->text;
    return hipSuccess;
}
#endif

static const hipError_t engine_codes[] = {
    [-SIM_INVALID] = hipErrorInvalidValue,
    [-SIM_NO_MEMORY] = hipErrorOutOfMemory,
    [-SIM_NOT_READY] = hipErrorNotReady,
    [-SIM_BAD_HANDLE] = hipErrorInvalidHandle,
    [-SIM_NO_CONTEXT] = hipErrorInvalidContext,
    [-SIM_CONTEXT_DESTROYED] = hipErrorContextIsDestroyed,
    [-SIM_ILLEGAL_ADDRESS] = hipErrorIllegalAddress,
    [-SIM_ALREADY_REGISTERED] = hipErrorHostMemoryAlreadyRegistered,
    [-SIM_NOT_REGISTERED] = hipErrorHostMemoryNotRegistered,
    [-SIM_PEER_ENABLED] = hipErrorPeerAccessAlreadyEnabled,
    [-SIM_PEER_DISABLED] = hipErrorPeerAccessNotEnabled,
    [-SIM_NOT_FOUND] = hipErrorNotFound,
    [-SIM_INVALID_IMAGE] = hipErrorInvalidImage,
    [-SIM_UNSUPPORTED] = hipErrorNotSupported,
    [-SIM_ILLEGAL_STATE] = hipErrorIllegalState,
    [-SIM_CAPTURE_UNSUPPORTED] = hipErrorStreamCaptureUnsupported,
    [-SIM_CAPTURE_INVALIDATED] = hipErrorStreamCaptureInvalidated,
    [-SIM_CAPTURE_MERGE] = hipErrorStreamCaptureMerge,
    [-SIM_CAPTURE_UNMATCHED] = hipErrorStreamCaptureUnmatched,
    [-SIM_CAPTURE_UNJOINED] = hipErrorStreamCaptureUnjoined,
    [-SIM_CAPTURE_ISOLATION] = hipErrorStreamCaptureIsolation,
    [-SIM_CAPTURE_IMPLICIT] = hipErrorStreamCaptureImplicit,
    [-SIM_CAPTURED_EVENT] = hipErrorCapturedEvent,
    [-SIM_CAPTURE_WRONG_THREAD] = hipErrorStreamCaptureWrongThread,
    [-SIM_UPDATE_FAILURE] = hipErrorGraphExecUpdateFailure,
    [-SIM_NO_DEVICE] = hipErrorNoDevice,
};

hipError_t hip_code(int status)
{
    return hip_note(status < 0 ? engine_codes[-status] : (hipError_t)status);
}
