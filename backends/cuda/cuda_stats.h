/* cuda_stats.h: statistics from NVML, for struct cuhip_vendor. */
#ifndef GPUGLUE_BACKENDS_CUDA_STATS_H
#define GPUGLUE_BACKENDS_CUDA_STATS_H

#include <gpuglue/backend.h>

#include <stdbool.h>

bool cuda_has_stats(void); /* loads NVML */
gg_status cuda_stats(const struct gg_device_info *facts, struct gg_device_stats *stats);

#endif
