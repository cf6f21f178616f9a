/* cuda_probe.h: the driver's numbers, and the functions of cuda_probe.c. */
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
#define ATTRIBUTE(attribute, name, value) NUMBER(name, value)
#include "cuda_numbers.def"
#undef ATTRIBUTE
#undef NUMBER
};

/* For struct cuhip_vendor: the diagnosis of a code of cuInit or cuDeviceGetCount (0: it counted no device). */
void cuda_diagnose(int code, struct gg_probe_result *result);
/* For struct cuhip_vendor: notes on masks, device nodes and the runtime library. */
void cuda_add_notes(enum gg_probe_level level, int version, const struct gg_probe_result *result);

#endif
