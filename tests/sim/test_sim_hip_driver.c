/* test_sim_hip_driver.c: loads the HIP runtime under test and gives the tests their fixture and
 * gates. */
#include "test_sim_hip.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct hip_driver hip;

static void look_up(void *library, const char *name, void *slot, int needed)
{
    *(void **)slot = dlsym(library, name);
    if (*(void **)slot || !needed)
        return;
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
}

void open_runtime(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
#define CALL(name) look_up(library, #name, (void *)&hip.name, 1);
#define LATER(name) look_up(library, #name, (void *)&hip.name, 0);
#include "test_sim_hip.def"
#undef CALL
#undef LATER
}

int fresh_devices(void **state)
{
    (void)state;
    return (int)hip.hipSetDevice(0);
}

static int left(const char *kind)
{
    int count = hip.sim_alive(kind);
    if (count)
        fprintf(stderr, "%d %s left\n", count, kind);
    return count;
}

int reset_devices(void **state)
{
    (void)state;
    hip.sim_fail(NULL);
    hip.sim_hold(0);
    for (int device = 0; device < 2; device++)
        if (hip.hipSetDevice(device) || hip.hipDeviceReset())
            return -1;
    return left("stream") + left("event") + left("device") + left("pinned") + left("managed") +
           left("registered") + left("context");
}

static void wait_at_gate(hipStream_t stream, hipError_t status, void *data)
{
    struct gate *gate = data;
    (void)stream;
    (void)status;
    atomic_store(&gate->entered, 1);
    while (!atomic_load(&gate->open))
        usleep(200);
}

void close_gate(struct gate *gate, hipStream_t stream)
{
    atomic_store(&gate->entered, 0);
    atomic_store(&gate->open, 0);
    assert_int_equal(hip.hipStreamAddCallback(stream, wait_at_gate, gate, 0), hipSuccess);
    while (!atomic_load(&gate->entered))
        sched_yield();
}

void open_gate(struct gate *gate)
{
    atomic_store(&gate->open, 1);
}

hipStream_t new_stream(unsigned flags)
{
    hipStream_t stream = NULL;
    assert_int_equal(hip.hipStreamCreateWithPriority(&stream, flags, 0), hipSuccess);
    return stream;
}

char *new_memory(size_t size)
{
    void *memory = NULL;
    assert_int_equal(hip.hipMalloc(&memory, size), hipSuccess);
    return memory;
}

char *new_pinned(size_t size)
{
    void *memory = NULL;
    assert_int_equal(hip.hipHostMalloc(&memory, size, 0), hipSuccess);
    return memory;
}

int in_child(const char *variable, const char *value, int (*body)(void))
{
    int status = 0;
    pid_t child = fork();
    if (!child) {
        setenv(variable, value, 1);
        _exit(body() ? 0 : 1);
    }
    waitpid(child, &status, 0);
    return status;
}
