/* cuda_ranges.h: ranges by NVTX, for struct cuhip_vendor. */
#ifndef GPUGLUE_BACKENDS_CUDA_RANGES_H
#define GPUGLUE_BACKENDS_CUDA_RANGES_H

#include <gpuglue/backend.h>

gg_status cuda_range_tool(struct gg_range_tool *out);

#endif
