/* range.h: ranges of the program in profilers. */
#ifndef GPUGLUE_RUNTIME_RANGE_H
#define GPUGLUE_RUNTIME_RANGE_H

#include "runtime/device.h"

/* Query the backend of an open device for its profiler, once per process. */
void ggi_range_find_tool(struct gg_device *device);
/* Begin and end a range in each profiler that was found. */
void ggi_range_push(const char *name);
void ggi_range_pop(void);

#endif
