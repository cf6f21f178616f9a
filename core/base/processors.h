/* processors.h: the processors that the process may use. */
#ifndef GPUGLUE_PROCESSORS_H
#define GPUGLUE_PROCESSORS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* How many: those of the affinity, which may change and is read again every 250 ms, and no more than the quota of the
 * control group, which is read once and rounded up. At least 1. */
int32_t ggi_processor_count(void);
/* That quota: the least of the group and of its parents; 0: none. */
long ggi_processor_quota(void);
extern const char *ggi_processors_root; /* "", or in tests the directory with their /proc and /sys */
/* When the affinity was read last; 0: never. */
uint64_t ggi_processors_read_at(void);
/* The affinity. False on a system with more processors than a cpu_set_t has room for. */
bool ggi_processors_get(cpu_set_t *out);

#endif
