/* cuda_probe.h: what cuda.c and cuda_probe.c share: the driver's numbers, and the probe's sentences. */
#ifndef GPUGLUE_CUDA_PROBE_H
#define GPUGLUE_CUDA_PROBE_H

#include "../cuda_hip/driver.h"

enum cuda_code {
#define ERROR(name, code, status, text) name = code,
#include "cuda_errors.def"
#undef ERROR
};

enum cuda_number {
#define NUMBER(name, value) name = value,
#include "cuda_numbers.def"
#undef NUMBER
};

/* Of struct twin: the verdict on a code of cuInit or cuDeviceGetCount (0: it counted no device). */
void cuda_explain(int code, struct gg_probe_result *result);
/* Of struct twin: notes on masks, device nodes and the runtime library. */
void cuda_remark(enum gg_probe_level level, int version, const struct gg_probe_result *result);

#endif
