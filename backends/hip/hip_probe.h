/* hip_probe.h: what hip.c and hip_probe.c share: the driver's numbers, and the probe's sentences. */
#ifndef GPUGLUE_HIP_PROBE_H
#define GPUGLUE_HIP_PROBE_H

#include "../cuda_hip/driver.h"

enum hip_code {
#define ERROR(name, code, status, text) name = code,
#include "hip_errors.def"
#undef ERROR
};

enum hip_number {
#define NUMBER(name, value) name = value,
#include "hip_numbers.def"
#undef NUMBER
};

/* major·10⁷ + minor·10⁵ + patch */
enum { HIP_MAJOR = 10000000, HIP_MINOR = 100000, HIP_OLDEST = 5, HIP_NEWEST = 7 };

/* Of struct twin: the verdict on a code of hipInit or hipGetDeviceCount (0: it counted no device). */
void hip_explain(int code, struct gg_probe_result *result);
/* Of struct twin: why no search is made where the kernel driver is not there. */
const char *hip_in_vain(void);
/* Of struct twin: notes on masks, the version and the device node. */
void hip_remark(enum gg_probe_level level, int version, const struct gg_probe_result *result);

#endif
