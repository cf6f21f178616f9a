/* conformance.h: one body of tests for every backend.
 *
 * Each test_*.c is a suite of one program, `conformance BACKEND`, which runs every test in a process
 * of its own (../support/runner.h). It exits with 77 (skipped) and the probe's reason if this
 * machine has no such backend; GPUGLUE_REQUIRE=<name> makes that a failure. No test depends on a backend's
 * name: it queries what the device supports. */
#ifndef GPUGLUE_TESTS_CONFORMANCE_H
#define GPUGLUE_TESTS_CONFORMANCE_H

#include <gpuglue/gpuglue.h>

#include <string.h>

#include "../support/gate.h"
#include "../support/runner.h"

#define OWNED_ROOM 64
#define MANY_BYTES ((size_t)1 << 20) /* too many for a pinned slot */

/* The objects of a test: created before it, released after it, also on failure. */
struct fixture {
    gg_device *device;
    gg_stream *stream, *second; /* idle and new */
    gg_memory *memories[OWNED_ROOM];
    gg_stream *streams[OWNED_ROOM];
    gg_event *events[OWNED_ROOM];
    void *gates[OWNED_ROOM];
    size_t memory_count, stream_count, event_count, gate_count;
};

/* ---- running ---- */

const char *backend_name(void);
/* Skips the test if the device does not support @p op. */
void need(struct fixture *f, gg_op op);
/* Skip unless the driver reports the size of the memory's allocation. */
void need_sizes(struct fixture *f, gg_memory *memory);
/* Whether device memory comes from the driver's own pool: with GPUGLUE_ALLOCATOR=async. */
bool uses_drivers_pool(void);
/* The exit status with which a scenario skips its test where the device does not support @p op;
 * prints the reason. */
int scenario_without(gg_op op);
/* Another device, of this backend or another. Skips the test if there is none. */
gg_device *other_device(struct fixture *f);
/* The same, of this backend. */
gg_device *other_device_of_backend(struct fixture *f);

/* Runs a scenario of this suite in a new process, with @p variable=@p value set unless it is NULL.
 * Returns what it exited with (128 + signal if it was killed); its output, cut to @p size, goes to
 * @p output. Skips the test where the scenario is not possible here. */
int start_scenario(const char *name, const char *variable, const char *value, char *output,
                   size_t size);
/* In a scenario: `return not_here("the device has no …")`. */
int not_here(const char *reason);
void assert_scenario_is_silent(const char *name); /* exit 0, no output */

/* A suite whose tests are its scenarios, which must be silent. */
void run_silently(void **state);
#define SUITE_OF_SCENARIOS(NAME, SCENARIOS)                                                 \
    static struct CMUnitTest tests_of_##NAME[COUNT_OF(SCENARIOS)];                          \
    __attribute__((constructor)) static void name_tests_of_##NAME(void)                     \
    {                                                                                       \
        for (size_t i = 0; i < COUNT_OF(SCENARIOS); i++)                                    \
            tests_of_##NAME[i] =                                                            \
                (struct CMUnitTest){.name = (SCENARIOS)[i].name,                            \
                                    .test_func = run_silently,                              \
                                    .initial_state = (void *)(uintptr_t) & (SCENARIOS)[i]}; \
    }                                                                                       \
    SUITE_AND_SCENARIOS(NAME, tests_of_##NAME, SCENARIOS)

/* ---- objects that the fixture releases ---- */

gg_memory *new_memory(struct fixture *f, size_t nbytes); /* device memory, undefined contents */
gg_memory *new_memory_with(struct fixture *f, const void *bytes, size_t nbytes);
gg_memory *new_pinned(struct fixture *f, size_t nbytes, unsigned char value);
gg_stream *new_stream(struct fixture *f);
gg_event *new_event(struct fixture *f, uint32_t flags);

/* Hold a stream: no work that is queued on it from now on begins before gate_open. Skips the
 * test where the device has no host functions. */
void *hold(struct fixture *f, gg_stream *stream);
/* Returns when the stream is held. For a gate that is opened before those of other streams: some drivers run one host function
 * at a time. */
void *hold_first(struct fixture *f, gg_stream *stream);

/* ---- copying ---- */

struct gg_copy_operand at(gg_memory *memory, size_t offset);
struct gg_copy_operand host_at(const void *host);
gg_status copy(struct gg_copy_operand dst, struct gg_copy_operand src, size_t nbytes,
               gg_stream *stream, uint32_t flags);
void read_back(struct fixture *f, gg_memory *memory, void *to, size_t nbytes);
/* The first @p nbytes of @p memory are all @p value. Waits for the work that gpuglue knows. */
void assert_filled(struct fixture *f, gg_memory *memory, size_t nbytes, unsigned char value);
gg_status fill_bytes(gg_memory *memory, unsigned char value, gg_stream *stream); /* all of it */

/* A release callback that counts its calls in an atomic_int. */
void count_release(void *owner);

/* ---- waiting ---- */

/* Only a safety net against endless loops; no test depends on the machine's speed. */
#define HANG_NS ((uint64_t)60 * 1000000000u)
uint64_t now_ns(void);

void finish(gg_stream *stream); /* asserts that it succeeds */
bool busy(gg_stream *stream);   /* asserts that the query succeeds */

/* The message of this thread's last error contains @p part. */
void assert_message_has(const char *part);
/* The calling thread's last error. */
struct gg_error last_error(void);
/* A failure: neither GG_OK nor GG_NOT_READY. */
void assert_fails(gg_status status);

#endif
