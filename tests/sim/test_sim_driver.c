/* test_sim_driver.c: loads the library under test and gives the tests their fixture and gates. */
#include "test_sim_driver.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct driver cu;

static void look_up(void *library, const char *name, void *slot)
{
    *(void **)slot = dlsym(library, name);
    if (!*(void **)slot) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
}

void open_driver(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
#define DRIVER(name) look_up(library, #name, (void *)&cu.name);
#include "test_sim_driver.def"
#undef DRIVER
}

int fresh_context(void **state)
{
    CUcontext context;
    (void)state;
    if (cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0))
        return -1;
    return (int)cu.cuCtxSetCurrent(context);
}

static int left(const char *kind)
{
    int count = cu.sim_alive(kind);
    if (count)
        fprintf(stderr, "%d %s left\n", count, kind);
    return count;
}

int release_contexts(void **state)
{
    CUcontext context;
    (void)state;
    cu.sim_fail(NULL);
    cu.sim_hold(0);
    cu.sim_room(0);
    for (int device = 0; device < 2; device++)
        cu.cuDevicePrimaryCtxReset_v2(device);
    while (!cu.cuCtxPopCurrent_v2(&context))
        continue;
    return left("stream") + left("event") + left("device") + left("pinned") + left("managed") +
           left("registered") + left("context");
}

static void wait_at_gate(void *data)
{
    struct gate *gate = data;
    atomic_store(&gate->entered, 1);
    while (!atomic_load(&gate->open))
        usleep(200);
}

void queue_gate(struct gate *gate, CUstream stream)
{
    atomic_store(&gate->entered, 0);
    atomic_store(&gate->open, 0);
    assert_int_equal(cu.cuLaunchHostFunc(stream, wait_at_gate, gate), CUDA_SUCCESS);
}

void close_gate(struct gate *gate, CUstream stream)
{
    queue_gate(gate, stream);
    while (!atomic_load(&gate->entered))
        sched_yield();
}

void open_gate(struct gate *gate)
{
    atomic_store(&gate->open, 1);
}

CUstream new_stream(unsigned flags)
{
    CUstream stream = NULL;
    assert_int_equal(cu.cuStreamCreate(&stream, flags), CUDA_SUCCESS);
    return stream;
}

CUdeviceptr new_memory(size_t size)
{
    CUdeviceptr memory = 0;
    assert_int_equal(cu.cuMemAlloc_v2(&memory, size), CUDA_SUCCESS);
    return memory;
}

void *new_pinned(size_t size)
{
    void *memory = NULL;
    assert_int_equal(cu.cuMemHostAlloc(&memory, size, 0), CUDA_SUCCESS);
    return memory;
}

int in_child(int (*body)(void))
{
    int status = 0;
    pid_t child = fork();
    if (!child)
        _exit(body());
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
