/* gate.h: hold a stream until a test lets it go, so that tests compare orders and not durations.
 *
 * Queue gate_wait with gg_stream_host_func and a gate as its argument: what is queued behind it does
 * not begin before gate_open. Also built as libgate.so, for tests in other languages. */
#ifndef GPUGLUE_TESTS_GATE_H
#define GPUGLUE_TESTS_GATE_H

__attribute__((visibility("default"))) void *gate_new(void);       /* closed */
__attribute__((visibility("default"))) void gate_wait(void *gate); /* ends the process after a minute */
__attribute__((visibility("default"))) void gate_open(void *gate);   /* for good */
__attribute__((visibility("default"))) int gate_reached(void *gate); /* somebody has come to it */
__attribute__((visibility("default"))) void gate_free(void *gate);   /* nobody may be waiting */

#endif
