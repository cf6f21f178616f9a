/* sim_hip.h: HIP: AMD's hip_runtime_api.h of the simulated version, or that of 5.2 and the additions of later versions, and
 * the code that every entry point shares. SIM_HIP is the simulated major version: 5, 6 or 7; SIM_HIP_MINOR is the minor one where it matters: 7 for 5.7. */
#ifndef SIM_HIP_H
#define SIM_HIP_H

#define __HIP_PLATFORM_AMD__ 1
#pragma GCC visibility push(default)
#include <hip/hip_runtime_api.h>
#include <hip/hip_version.h>

/* Not in the headers of 5.2; written from AMD's documentation of later versions. hipLaunchHostFunc
 * is in the headers of 5.2, but not in its library. */
#if SIM_HIP >= 6 && HIP_VERSION_MAJOR < 6
hipError_t hipDrvGetErrorName(hipError_t error, const char **name);
hipError_t hipDrvGetErrorString(hipError_t error, const char **text);
hipError_t hipGetDevicePropertiesR0600(void *properties, int device);
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device);
hipError_t hipExtGetLastError(void);
hipError_t hipDeviceSetLimit(enum hipLimit_t limit, size_t value);
#endif
#pragma GCC visibility pop

#include "sim_engine.h"

#ifndef SIM_HIP_MINOR
#define SIM_HIP_MINOR 0
#endif
#define SIM_HIP_57 (SIM_HIP >= 6 || SIM_HIP_MINOR >= 7) /* 5.7 or later */
/* Headers that have the names of 5.7. */
#define HIP_HEADERS_57 \
    (HIP_VERSION_MAJOR >= 6 || (HIP_VERSION_MAJOR == 5 && HIP_VERSION_MINOR >= 7))

/* HIP 7 made the source constant; 6 has hipMemcpyHtoD without it, as 5. */
#if HIP_VERSION_MAJOR >= 7
#define HIP_SOURCE const void
#else
#define HIP_SOURCE void
#endif

#define HIP_ARCH "gfx942:sramecc+:xnack-"
enum { HIP_FIRST_BUS = 0x40 };
int hip_bus(const struct sim_device *device); /* of PCI */

/* Every entry point calls one of these, which initialise at the first call as HIP does, count the
 * call, inject faults and, on success, take the lock; hip_leave releases it and maps the engine's
 * status to a hipError_t. hipGetLastError then returns the same code. */
hipError_t hip_enter(const char *name);
hipError_t hip_enter_context(const char *name, struct sim_context **context); /* of this thread */
hipError_t hip_enter_stream(const char *name, hipStream_t handle, struct sim_queue **queue);
hipError_t hip_enter_event(const char *name, hipEvent_t handle, struct sim_event **event);
hipError_t hip_enter_device(const char *name, int ordinal, struct sim_device **device);
hipError_t hip_leave(int status);

hipError_t hip_code(int status); /* also stored for hipGetLastError */
hipError_t hip_note(hipError_t code);

/* Records that a destroy or free was called, even if it fails. */
void hip_attempt(struct sim_table *table, const void *handle);
void hip_attempt_memory(const void *pointer);

/* Call these with the lock held. */
extern _Thread_local int hip_current_device;
struct sim_device *hip_device(int ordinal); /* NULL: no such device */
int hip_context_of(struct sim_device *device, struct sim_context **context);
int hip_find_stream(hipStream_t handle, struct sim_queue **queue);

/* The kinds of memory that one side of a copy accepts. */
enum hip_end { HIP_HOST_END, HIP_DEVICE_END, HIP_ANY_END };
bool hip_end_valid(const void *pointer, size_t size, enum hip_end end, bool *tracked);

#endif
