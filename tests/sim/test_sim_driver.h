/* test_sim_driver.h: shared by the tests of the simulated driver: its functions, a fixture and a
 * gate. */
#ifndef TEST_SIM_DRIVER_H
#define TEST_SIM_DRIVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include "sim_control.h"

#define DRIVER(name) __typeof__(name) *name;
struct driver {
#include "test_sim_driver.def"
};
#undef DRIVER

extern struct driver cu; /* looked up in the library under test, never linked */

void open_driver(const char *path);
int fresh_context(void **state);    /* device 0's primary context, current */
int release_contexts(void **state); /* fails if an object is still alive */

/* A test with this setup and teardown. */
#define SIM_TEST(test) cmocka_unit_test_setup_teardown(test, fresh_context, release_contexts)

struct gate { /* a host function that blocks its stream until the test opens it */
    atomic_int entered, open;
};

void close_gate(struct gate *gate, CUstream stream); /* queues the gate and waits until it blocks */
void queue_gate(struct gate *gate, CUstream stream);
void open_gate(struct gate *gate);

CUstream new_stream(unsigned flags);
CUdeviceptr new_memory(size_t size);
void *new_pinned(size_t size);

/* Runs body in a child process. Returns 0, the line of its first failed CHECK, or minus the signal
 * that ended it. */
int in_child(int (*body)(void));

int run_process_tests(void);
int run_memory_tests(void);
int run_stream_tests(void);
int run_event_tests(void);
int run_capture_tests(void);
int run_pool_tests(void);
int run_fault_tests(void);

#endif
