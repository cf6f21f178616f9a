/* hip_driver.h: what the files of this directory share: the driver's functions and numbers. */
#ifndef GPUGLUE_HIP_DRIVER_H
#define GPUGLUE_HIP_DRIVER_H

#include "../cuda_hip/driver.h"

enum hip_code {
#define ERROR(name, code, status, text) name = code,
#include "hip_errors.def"
#undef ERROR
};

enum hip_number {
#define NUMBER(name, value) name = value,
#define ATTRIBUTE(attribute, name, value) NUMBER(name, value)
#include "hip_numbers.def"
#undef ATTRIBUTE
#undef NUMBER
};

/* major·10⁷ + minor·10⁵ + patch */
enum { HIP_MAJOR = 10000000, HIP_MINOR = 100000, HIP_OLDEST = 5, HIP_NEWEST = 7 };

extern struct hip_driver {
#define OWN(slot, parameters, symbol, need) int(*slot) parameters;
#include "hip.def"
#undef OWN
} hip;

/* hip_probe.c, for struct cuhip_vendor: the diagnosis of a code of hipInit or hipGetDeviceCount (0: it counted no device). */
void hip_diagnose(int code, struct gg_probe_result *result);
/* Why there is no search if the kernel driver is missing. */
const char *hip_skip_reason(void);
/* Notes on masks, the version and the device node. */
void hip_add_notes(enum gg_probe_level level, int version, const struct gg_probe_result *result);

/* hip_bundle.c, for struct cuhip_vendor */
gg_status hip_check_bundle(const void *bytes);

/* hip_copy.c, for struct cuhip_vendor */
int hip_copy_region(void *dst, const void *src, const struct gg_region *region,
                    enum gg_copy_kind kind, void *stream);
int hip_peer_enable(struct gg_device_impl *peer);
int hip_copy_peer(void *dst, struct gg_device_impl *dst_device, const void *src,
                  struct gg_device_impl *src_device, size_t nbytes, void *stream);

/* hip_stats.c, for struct cuhip_vendor. hip_has_stats loads the management library. */
bool hip_has_stats(void);
gg_status hip_stats(const struct gg_device_info *facts, struct gg_device_stats *stats);
extern const char *const hip_smi_directories[]; /* of both management libraries */

/* The search for a device among those that a management library lists, by its PCI address. In it, or beside it, is the
 * number of a partition (MI300 in the modes DPX to CPX). */
struct hip_search {
    char address[32];           /* "0000:65:00.1" */
    unsigned siblings, matches; /* devices with this address, without and with the function */
};
struct hip_search hip_search_begin(const struct gg_device_info *facts);
/* Whether the listed device has the address, of which its lowest 16 bits are bus, device and function. */
bool hip_search_add(struct hip_search *search, uint64_t domain, uint64_t address);
/* GG_OK if exactly one device can be meant. @p code: what the library returned. */
gg_status hip_search_end(const struct hip_search *search, int code, const char *library);

/* hip_amd_smi.c. hip_amd_smi_open loads the library; GG_OK if it can be used. */
gg_status hip_amd_smi_open(void);
gg_status hip_amd_smi_stats(const struct gg_device_info *facts, struct gg_device_stats *stats);

/* hip_ranges.c, for struct cuhip_vendor */
gg_status hip_range_tool(struct gg_range_tool *out);

#endif
