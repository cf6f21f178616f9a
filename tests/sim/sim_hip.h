/* HIP face: AMD's own hip_runtime_api.h, what later versions added to it, and how every entry point
 * begins. SIM_HIP is the major version that is simulated: 5, 6 or 7. */
#ifndef SIM_HIP_H
#define SIM_HIP_H

#define __HIP_PLATFORM_AMD__ 1
#pragma GCC visibility push(default)
#include <hip/hip_runtime_api.h>

/* Not in the headers of 5.2; written after AMD's documentation of later ones. (hipLaunchHostFunc is in
 * the headers and not in the library.) */
#if SIM_HIP >= 6
hipError_t hipDrvGetErrorName(hipError_t error, const char **name);
hipError_t hipDrvGetErrorString(hipError_t error, const char **text);
hipError_t hipGetDevicePropertiesR0600(void *properties, int device);
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device);
hipError_t hipExtGetLastError(void);
#endif
#pragma GCC visibility pop

#include "sim_engine.h"

enum { HIP_FIRST_BUS = 0x40 };

/* Every entry point calls one of these, which initialise at the first call as HIP does, count the
 * call, inject faults and, on success, take the lock; hip_leave gives it back and turns the engine's
 * status into HIP's code. What they answer is what hipGetLastError answers next. */
hipError_t hip_enter(const char *name);
hipError_t hip_enter_context(const char *name, struct sim_context **context); /* of this thread */
hipError_t hip_enter_stream(const char *name, hipStream_t handle, struct sim_queue **queue);
hipError_t hip_enter_event(const char *name, hipEvent_t handle, struct sim_event **event);
hipError_t hip_enter_device(const char *name, int ordinal, struct sim_device **device);
hipError_t hip_leave(int status);

hipError_t hip_code(int status); /* also noted for hipGetLastError */
hipError_t hip_note(hipError_t code);

/* A destroy or free was called, whatever becomes of it. */
void hip_attempt(struct sim_table *table, const void *handle);
void hip_attempt_memory(const void *pointer);

/* These need the lock. */
extern _Thread_local int hip_current_device;
struct sim_device *hip_device(int ordinal); /* NULL: no such device */
int hip_context_of(struct sim_device *device, struct sim_context **context);
int hip_find_stream(hipStream_t handle, struct sim_queue **queue);

/* What one side of a copy may be. */
enum hip_end { HIP_HOST_END, HIP_DEVICE_END, HIP_ANY_END };
bool hip_end_valid(const void *pointer, size_t size, enum hip_end end, bool *tracked);

#endif
