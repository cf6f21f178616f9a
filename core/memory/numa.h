/* numa.h: the NUMA nodes of the machine. */
#ifndef GGI_MEMORY_NUMA_H
#define GGI_MEMORY_NUMA_H

#include "runtime/device.h"

#include <stdbool.h>

/* Until the restore, this thread's new pages, including those that the driver allocates for it, are on @p node if it has
 * room. False, without a change, if the thread has a memory policy of its own, the system refuses, or the node is -1. */
bool ggi_numa_prefer(int32_t node);
void ggi_numa_restore(bool preferred);

/* The node next to the device; -1: unknown, or the machine has one node only. The first call queries the driver. */
int32_t ggi_numa_of_device(struct gg_device *device);

#endif
