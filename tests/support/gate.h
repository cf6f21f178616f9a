/* gate.h: blocks a stream until the test opens the gate, so that tests check order, not time.
 *
 * Queue gate_wait with gg_stream_host_func and a gate as its argument: work that is queued
 * after it does not start before gate_open. Also built as libgate.so, for tests in other
 * languages. */
#ifndef GPUGLUE_TESTS_GATE_H
#define GPUGLUE_TESTS_GATE_H

__attribute__((visibility("default"))) void *gate_new(void); /* closed */
__attribute__((visibility("default"))) void
gate_wait(void *gate); /* aborts the process after ten minutes, as in a hang; see gates_forced */
__attribute__((visibility("default"))) void gate_open(void *gate); /* the gate stays open */
__attribute__((visibility("default"))) int
gate_reached(void *gate); /* whether a stream has reached it */
/* The number of gates that opened without gate_open, after the seconds in GPUGLUE_TEST_GATE_SECONDS.
 * A tool that makes asynchronous calls wait needs that: the test would wait for itself. */
__attribute__((visibility("default"))) int gates_forced(void);
__attribute__((visibility("default"))) void gate_free(void *gate); /* no thread may be waiting */

#endif
