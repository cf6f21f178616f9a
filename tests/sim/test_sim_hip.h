/* test_sim_hip.h: shared by the tests of the simulated HIP runtime: its functions, a fixture and a
 * gate. */
#ifndef TEST_SIM_HIP_H
#define TEST_SIM_HIP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#include "sim_control.h"

#if defined(SIM_HIP_MINOR) || SIM_HIP >= 6
#define FROM_57 1
#else
#define FROM_57 0
#endif

struct hip_driver {
#define CALL(name) __typeof__(name) *name;
#define LATER(name) void *name; /* only tested for presence */
#include "test_sim_hip.def"
#undef CALL
#undef LATER
};

extern struct hip_driver hip; /* looked up in the library under test, never linked */

void open_runtime(const char *path);
int fresh_devices(void **state); /* device 0 current */
int reset_devices(void **state); /* fails if an object is still alive */

/* A test with this setup and teardown. */
#define HIP_TEST(test) cmocka_unit_test_setup_teardown(test, fresh_devices, reset_devices)

struct gate { /* a callback that blocks its stream until the test opens it */
    atomic_int entered, open;
};

void close_gate(struct gate *gate, hipStream_t stream); /* queues it, waits until it blocks */
void open_gate(struct gate *gate);

hipStream_t new_stream(unsigned flags);
char *new_memory(size_t size);
char *new_pinned(size_t size);

/* Runs body in a child that has not called HIP, with an environment variable set. Returns 0 if body
 * returned true. */
int in_child(const char *variable, const char *value, int (*body)(void));

int run_stream_tests(void);

#endif
