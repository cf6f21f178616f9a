/* hipshim.c: HIP's functions on top of NVIDIA's driver, so that tests run the hip backend on
 * asynchronous hardware without an AMD GPU. It is a libamdhip64.so.6, with HIP 6's structs,
 * constants and functions. It has its own declarations and needs neither vendor's headers.
 *
 * An error of both vendors has the same code. Each thread has a current HIP device. The driver's
 * context is current only during a call, so the cuda backend can run in the same process. */
#include "boxes.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { VERSION = 60400000, MOST_DEVICES = 64 };
enum { INVALID_VALUE = 1, STUB = 34, NO_DEVICE = 100, INVALID_DEVICE = 101 };

#pragma GCC visibility push(default)
#define PASS(hip, cu, parameters, arguments) int hip parameters;
#include "hipshim.def"
#undef PASS
int hipInit(unsigned flags);
int hipGetLastError(void);
int hipRuntimeGetVersion(int *version);
int hipDriverGetVersion(int *version);
int hipDrvGetErrorName(int code, const char **name);
int hipDrvGetErrorString(int code, const char **text);
int hipGetDeviceCount(int *count);
int hipGetDevice(int *device);
int hipSetDevice(int device);
int hipDeviceGetAttribute(int *value, int attribute, int device);
int hipGetDeviceProperties(char *properties, int device);
int hipGetDevicePropertiesR0600(char *properties, int device);
int hipGraphInstantiate(void **exec, void *graph, void **node, char *log, size_t size);
int hipGraphExecUpdate(void *exec, void *graph, void **node, int *result);
int hipMalloc(void **out, size_t nbytes);
int hipFree(void *pointer);
int hipHostMalloc(void **out, size_t nbytes, unsigned flags);
int hipHostFree(void *pointer);
struct hip_pointer; /* hipPointerAttribute_t */
int hipPointerGetAttributes(struct hip_pointer *attributes, const void *pointer);
int hipMemGetAddressRange(void **base, size_t *nbytes, void *pointer);
int hipMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                     size_t height, int kind, void *stream);
int hipMemcpy3DAsync(const struct hip_copy_3d *copy, void *stream);
#pragma GCC visibility pop

/* ---- the driver's functions */

static struct {
#define PASS(hip, cu, parameters, arguments) int(*cu) parameters;
#include "hipshim.def"
#undef PASS
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*retain)(void **context, int device);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*attribute)(int *value, int attribute, int device);
    int (*error_name)(int code, const char **name);
    int (*error_text)(int code, const char **text);
    int (*instantiate)(void **exec, void *graph, unsigned long long flags);
    int (*update)(void *exec, void *graph, void *info);
    int (*alloc)(void **out, size_t nbytes);
    int (*free)(void *pointer);
    int (*pinned_alloc)(void **out, size_t nbytes, unsigned flags);
    int (*pinned_free)(void *pointer);
    int (*copy_3d)(const void *copy, void *stream);
    int (*pointer_attributes)(unsigned count, int *names, void **values, const void *pointer);
} driver;

static int start_code, device_count;
static void *contexts[MOST_DEVICES]; /* guarded by context_lock */
static pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local int current;

struct wanted {
    const char *name;
    void *slot;
};

static const struct wanted wanted[] = {
#define PASS(hip, cu, parameters, arguments) {#cu, &driver.cu},
#include "hipshim.def"
#undef PASS
    {"cuInit", &driver.init},
    {"cuDeviceGetCount", &driver.count},
    {"cuDevicePrimaryCtxRetain", &driver.retain},
    {"cuCtxPushCurrent_v2", &driver.push},
    {"cuCtxPopCurrent_v2", &driver.pop},
    {"cuDeviceGetAttribute", &driver.attribute},
    {"cuGetErrorName", &driver.error_name},
    {"cuGetErrorString", &driver.error_text},
    {"cuGraphInstantiateWithFlags", &driver.instantiate},
    {"cuGraphExecUpdate_v2", &driver.update},
    {"cuMemAlloc_v2", &driver.alloc},
    {"cuMemFree_v2", &driver.free},
    {"cuMemHostAlloc", &driver.pinned_alloc},
    {"cuMemFreeHost", &driver.pinned_free},
    {"cuMemcpy3DAsync_v2", &driver.copy_3d},
    {"cuPointerGetAttributes", &driver.pointer_attributes},
};

static void start(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    start_code = library ? 0 : NO_DEVICE;
    for (size_t i = 0; library && i < sizeof wanted / sizeof wanted[0]; i++) {
        void *symbol = dlsym(library, wanted[i].name);
        if (!symbol) {
            fprintf(stderr, "hipshim: the driver has no %s\n", wanted[i].name);
            start_code = NO_DEVICE;
        }
        memcpy(wanted[i].slot, &symbol, sizeof symbol);
    }
    if (!start_code)
        start_code = driver.init(0);
    if (!start_code)
        start_code = driver.count(&device_count);
    if (start_code == STUB || (!start_code && !device_count))
        start_code = NO_DEVICE;
    if (device_count > MOST_DEVICES)
        device_count = MOST_DEVICES;
}

static int begin(void)
{
    pthread_once(&once, start);
    return start_code;
}

/* The device's primary context, which is never released. */
static int context_of(int device, void **out)
{
    int code = 0;
    pthread_mutex_lock(&context_lock);
    if (!contexts[device])
        code = driver.retain(&contexts[device], device);
    *out = contexts[device];
    pthread_mutex_unlock(&context_lock);
    return code;
}

static int enter(void)
{
    void *context = NULL;
    int code = begin();
    if (!code)
        code = context_of(current, &context);
    return code ? code : driver.push(context);
}

static int leave(int code)
{
    void *context;
    driver.pop(&context);
    return code;
}

#define PASS(hip, cu, parameters, arguments)             \
    int hip parameters                                   \
    {                                                    \
        const int code = enter();                        \
        return code ? code : leave(driver.cu arguments); \
    }
#include "hipshim.def"
#undef PASS

/* ---- start, versions, names */

int hipInit(unsigned flags)
{
    return flags ? INVALID_VALUE : begin();
}

int hipRuntimeGetVersion(int *version)
{
    *version = VERSION;
    return 0;
}

int hipDriverGetVersion(int *version)
{
    *version = VERSION;
    return 0;
}

int hipDrvGetErrorName(int code, const char **name)
{
    return begin() ? begin() : driver.error_name(code, name);
}

int hipDrvGetErrorString(int code, const char **text)
{
    return begin() ? begin() : driver.error_text(code, text);
}

int hipGetLastError(void)
{
    return 0; /* the driver has no last error */
}

/* ---- devices */

int hipGetDeviceCount(int *count)
{
    *count = begin() ? 0 : device_count;
    return begin();
}

int hipGetDevice(int *device)
{
    if (!begin())
        *device = current;
    return begin();
}

int hipSetDevice(int device)
{
    if (begin())
        return begin();
    if (device < 0 || device >= device_count)
        return INVALID_DEVICE;
    current = device;
    return 0;
}

/* Pairs of attributes: HIP's, the driver's. */
static const int attributes[][2] = {
    {0, 32},                       /* EccEnabled */
    {2, 40},                       /* AsyncEngineCount */
    {4, 91},                       /* CanUseHostPointerForRegisteredMem */
    {5, 13},                       /* ClockRate */
    {8, 31},                       /* ConcurrentKernels */
    {10, 95},                      /* CooperativeLaunch */
    {16, 18},                      /* Integrated */
    {19, 38},                      /* L2CacheSize */
    {23, 75},                      /* ComputeCapabilityMajor */
    {24, 83},                      /* ManagedMemory */
    {26, 2},                       /* MaxBlockDimX and so on */
    {27, 3},     {28, 4}, {29, 5}, /* MaxGridDimX and so on */
    {30, 6},     {31, 7}, {56, 1}, /* MaxThreadsPerBlock */
    {57, 39},                      /* MaxThreadsPerMultiProcessor */
    {59, 37},                      /* MemoryBusWidth */
    {60, 36},                      /* MemoryClockRate */
    {61, 76},                      /* ComputeCapabilityMinor */
    {63, 16},                      /* MultiprocessorCount */
    {67, 33},                      /* PciBusId */
    {68, 34},                      /* PciDeviceId */
    {71, 12},                      /* MaxRegistersPerBlock */
    {72, 82},                      /* MaxRegistersPerMultiprocessor */
    {74, 8},                       /* MaxSharedMemoryPerBlock */
    {83, 9},                       /* TotalConstantMemory */
    {87, 10},                      /* WarpSize */
    {10002, 81},                   /* MaxSharedMemoryPerMultiprocessor */
};

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    if (begin())
        return begin();
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (attributes[i][0] == attribute)
            return driver.attribute(value, attributes[i][1], device);
    return INVALID_VALUE;
}

/* Offsets of the members that get_properties sets. */
struct layout {
    size_t size, memory, arch;
};

static int get_properties(const struct layout *layout, char *out, int device)
{
    int major = 0, minor = 0;
    size_t total = 0;
    int code = begin();
    memset(out, 0, layout->size);
    if (!code)
        code = driver.cuDeviceGetName(out, 256, device);
    if (!code)
        code = driver.cuDeviceTotalMem_v2(&total, device);
    if (!code)
        code = driver.attribute(&major, 75, device);
    if (!code)
        code = driver.attribute(&minor, 76, device);
    memcpy(out + layout->memory, &total, sizeof total);
    snprintf(out + layout->arch, 32, "sm_%d%d", major, minor);
    return code;
}

int hipGetDeviceProperties(char *properties, int device)
{
    static const struct layout old = {792, 256, 396};
    return get_properties(&old, properties, device);
}

int hipGetDevicePropertiesR0600(char *properties, int device)
{
    static const struct layout new = {1472, 288, 1160};
    return get_properties(&new, properties, device);
}

/* ---- graphs */

int hipGraphInstantiate(void **exec, void *graph, void **node, char *log, size_t size)
{
    const int code = enter();
    (void)node;
    (void)log;
    (void)size;
    return code ? code : leave(driver.instantiate(exec, graph, 0));
}

int hipGraphExecUpdate(void *exec, void *graph, void **node, int *result)
{
    struct {
        int result;
        void *node, *from;
    } info = {.result = 0};
    const int code = enter();
    if (code)
        return code;
    const int updated = driver.update(exec, graph, &info);
    *node = info.node;
    *result = info.result;
    return leave(updated);
}

/* ---- memory: 0 bytes are NULL, and freeing NULL does nothing */

int hipMalloc(void **out, size_t nbytes)
{
    const int code = enter();
    if (code)
        return code;
    if (nbytes)
        return leave(driver.alloc(out, nbytes));
    *out = NULL;
    return leave(0);
}

int hipFree(void *pointer)
{
    const int code = enter();
    return code ? code : leave(pointer ? driver.free(pointer) : 0);
}

int hipHostMalloc(void **out, size_t nbytes, unsigned flags)
{
    const int code = enter();
    if (code)
        return code;
    if (nbytes)
        return leave(driver.pinned_alloc(out, nbytes, flags & 7)); /* without AMD's own flags */
    *out = NULL;
    return leave(0);
}

int hipHostFree(void *pointer)
{
    const int code = enter();
    return code ? code : leave(pointer ? driver.pinned_free(pointer) : 0);
}

struct hip_pointer {
    int type, device;
    const void *device_pointer, *host_pointer;
    int managed;
    unsigned flags;
};

enum { UNREGISTERED = 0, HOST = 1, DEVICE = 2, MANAGED = 3 };

int hipPointerGetAttributes(struct hip_pointer *attributes, const void *pointer)
{
    unsigned type = 0, managed = 0;
    int device = -2;
    int names[] = {2, 8, 9}; /* memory type, whether managed, ordinal */
    void *values[] = {&type, &managed, &device};
    int code = enter();
    if (code)
        return code;
    code = leave(driver.pointer_attributes(3, names, values, pointer));
    if (code)
        return code;
    *attributes = (struct hip_pointer){.type = type == 1   ? HOST
                                               : managed   ? MANAGED
                                               : type == 2 ? DEVICE
                                                           : UNREGISTERED,
                                       .device = device,
                                       .managed = managed != 0};
    attributes->device_pointer = attributes->type == UNREGISTERED ? NULL : pointer;
    attributes->host_pointer = attributes->type == DEVICE ? NULL : attributes->device_pointer;
    return 0;
}

int hipMemGetAddressRange(void **base, size_t *nbytes, void *pointer)
{
    int names[] = {11, 12}; /* start and size of the range; pinned memory has them too */
    void *values[] = {base, nbytes};
    const int code = enter();
    return code ? code : leave(driver.pointer_attributes(2, names, values, pointer));
}

/* ---- three-dimensional copies */
enum { TO_DEVICE = 1, TO_HOST = 2, HOST_TYPE = 1, DEVICE_TYPE = 2 };

static struct cuda_side side_of(const struct hip_pitched *from, int host)
{
    struct cuda_side side = {.type = host ? HOST_TYPE : DEVICE_TYPE,
                             .host = host ? from->pointer : NULL,
                             .device = host ? NULL : from->pointer,
                             .pitch = from->pitch,
                             .rows = from->rows};
    return side;
}

int hipMemcpy3DAsync(const struct hip_copy_3d *copy, void *stream)
{
    const struct cuda_copy_3d box = {.src = side_of(&copy->src, copy->kind == TO_DEVICE),
                                     .dst = side_of(&copy->dst, copy->kind == TO_HOST),
                                     .width = copy->width,
                                     .height = copy->height,
                                     .depth = copy->depth};
    const int code = enter();
    return code ? code : leave(driver.copy_3d(&box, stream));
}

int hipMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                     size_t height, int kind, void *stream)
{
    const struct hip_copy_3d copy = {.src = {(void *)(uintptr_t)src, src_pitch, width, 0},
                                     .dst = {dst, dst_pitch, width, 0},
                                     .width = width,
                                     .height = height,
                                     .depth = 1,
                                     .kind = kind};
    return hipMemcpy3DAsync(&copy, stream);
}
