/* sim_nccl_driver.c: the driver's functions that the simulated NCCL and RCCL call. */
#include "sim_nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static struct {
    int (*device)(int *device);
    int (*to_host)(void *to, const void *from, size_t nbytes, void *stream);
    int (*to_device)(void *to, const void *from, size_t nbytes, void *stream);
    int (*copy)(void *to, const void *from, size_t nbytes, int kind, void *stream);
    int (*host_function)(void *stream, void (*function)(void *), void *data);
    int (*captures)(void *stream, int *state);
    int (*inject)(const char *name);
    int (*lost)(void);
    void (*is_kernel)(void (*function)(void *));
    int (*captured)(void (*function)(void *), int (*mine)(const void *, const void *),
                    const void *of);
    void (*each_use)(void (*visit)(const void *address));
} driver;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

static void *driver_library(void)
{
    static const char *const names[] = {
#ifdef SIM_RCCL
        "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
#else
        "libcuda.so.1"};
#endif
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    return library;
}

static void driver_find(void)
{
    void *library = driver_library();
#define FIND(slot, name)                                      \
    do {                                                      \
        void *symbol = library ? dlsym(library, name) : NULL; \
        memcpy(&driver.slot, &symbol, sizeof symbol);         \
    } while (0)
    FIND(inject, "sim_inject");
    FIND(is_kernel, "sim_is_kernel");
    FIND(captured, "sim_captured");
    FIND(each_use, "sim_each_use");
    FIND(lost, "sim_lost");
#ifdef SIM_RCCL
    FIND(device, "hipGetDevice");
    FIND(copy, "hipMemcpyAsync");
    FIND(host_function, "hipLaunchHostFunc");
    FIND(captures, "hipStreamIsCapturing");
#else
    FIND(device, "cuCtxGetDevice");
    FIND(to_host, "cuMemcpyDtoHAsync_v2");
    FIND(to_device, "cuMemcpyHtoDAsync_v2");
    FIND(host_function, "cuLaunchHostFunc");
    FIND(captures, "cuStreamIsCapturing");
#endif
}

bool driver_prepare(void)
{
    pthread_once(&driver_once, driver_find);
    return driver.device && driver.host_function && driver.captures &&
           (driver.copy || (driver.to_host && driver.to_device));
}

int sim_fault(const char *name)
{
    pthread_once(&driver_once, driver_find);
    return driver.inject ? driver.inject(name) : 0;
}

void driver_is_kernel(void (*function)(void *))
{
    if (driver.is_kernel)
        driver.is_kernel(function);
}

int driver_captured(void (*function)(void *), int (*mine)(const void *, const void *),
                    const void *of)
{
    return driver.captured ? driver.captured(function, mine, of) : 0;
}

bool driver_each_use(void (*visit)(const void *address))
{
    if (driver.each_use)
        driver.each_use(visit);
    return driver.each_use;
}

bool driver_lost(void)
{
    return driver.lost && driver.lost();
}

int driver_device(void)
{
    int device = -1;
    return driver_prepare() && driver.device(&device) == 0 ? device : -1;
}

bool driver_captures(void *stream)
{
    int state = 0;
    return driver.captures(stream, &state) == 0 && state;
}

int driver_to_host(void *to, const void *from, size_t nbytes, void *stream)
{
    return driver.copy ? driver.copy(to, from, nbytes, 2, stream)
                       : driver.to_host(to, from, nbytes, stream);
}

int driver_to_device(void *to, const void *from, size_t nbytes, void *stream)
{
    return driver.copy ? driver.copy(to, from, nbytes, 1, stream)
                       : driver.to_device(to, from, nbytes, stream);
}

int driver_host_function(void *stream, void (*function)(void *), void *data)
{
    return driver.host_function(stream, function, data);
}
