/* conformance.h: one body of tests for every backend.
 *
 * Each suite is a program that takes the backend's name as its first argument. It exits with 77
 * (skipped) and the probe's reason where this machine has no such backend; GPUGLUE_REQUIRE=<name>
 * makes that a failure. No test knows a backend: it asks the device what it supports. */
#ifndef GPUGLUE_TESTS_CONFORMANCE_H
#define GPUGLUE_TESTS_CONFORMANCE_H

#include <gpuglue/gpuglue.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../support/gate.h"

#define OWNED_ROOM 64
#define MANY_BYTES ((size_t)1 << 20) /* too many for a pinned slot */

/* What each test begins with: made before it, and all of it given back after it, also on failure. */
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

/* Selects argv[1] or ends the program; runs each test with a fixture, unless it
 * has a state of its own. */
int run_suite(int argc, char **argv, const char *name, struct CMUnitTest *tests, size_t count);
void select_backend(int argc, char **argv);
const char *backend_name(void);
/* Skips the test where the device cannot do @p op. */
void need(struct fixture *f, gg_op op);
/* Another device, of this backend or of another one. Skips the test where there is none. */
gg_device *other_device(struct fixture *f);

/* A part of a test that needs a process of its own: main calls @p run with the name when it finds it
 * in argv[2]. */
struct scenario {
    const char *name;
    int (*run)(void); /* 0: well; 77: not possible here */
};
/* The exit status of the scenario called argv[2], or -1 where the program was not started for one. */
int run_scenario(int argc, char **argv, const struct scenario *scenarios, size_t count);
/* Starts this program again for one, with @p variable=@p value set unless it is NULL. Returns what it
 * exited with (128 + signal if it was killed); its output, cut to @p size, goes to @p output. */
int start_scenario(const char *name, const char *variable, const char *value, char *output,
                   size_t size);
void assert_scenario_is_silent(const char *name); /* exit 0, no output */

/* ---- making things that the fixture gives back ---- */

gg_memory *new_memory(struct fixture *f, size_t nbytes); /* device memory, undefined contents */
gg_memory *new_memory_with(struct fixture *f, const void *bytes, size_t nbytes);
gg_memory *new_pinned(struct fixture *f, size_t nbytes, unsigned char value);
gg_stream *new_stream(struct fixture *f);
gg_event *new_event(struct fixture *f, uint32_t flags);

/* Hold a stream: nothing that is queued on it from now on begins before gate_open. Skips the test
 * where the device has no host functions. */
void *hold(struct fixture *f, gg_stream *stream);

/* ---- copying ---- */

struct gg_end at(gg_memory *memory, size_t offset);
struct gg_end host_at(const void *host);
gg_status copy(struct gg_end dst, struct gg_end src, size_t nbytes, gg_stream *stream,
               uint32_t flags);
void read_back(struct fixture *f, gg_memory *memory, void *to, size_t nbytes);
/* The first @p nbytes of @p memory are all @p value. Waits for the work that is known. */
void assert_filled(struct fixture *f, gg_memory *memory, size_t nbytes, unsigned char value);
gg_status fill_bytes(gg_memory *memory, unsigned char value, gg_stream *stream); /* all of it */

/* A release callback that counts its calls in an atomic_int. */
void count_release(void *owner);

/* ---- waiting ---- */

void finish(gg_stream *stream); /* asserts that it succeeds */
bool busy(gg_stream *stream);   /* asserts that it knows */

/* The message of this thread's last error holds @p part. */
void assert_message_has(const char *part);
/* The calling thread's last error. */
struct gg_error last_error(void);
/* A failure: neither success nor "not finished yet". */
void assert_fails(gg_status status);

#endif
