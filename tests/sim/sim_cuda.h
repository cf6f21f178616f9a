/* sim_cuda.h: CUDA: NVIDIA's cuda.h with old and new prototypes, and the code that every entry
 * point shares. */
#ifndef SIM_CUDA_H
#define SIM_CUDA_H

#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include "sim_engine.h"

/* Every entry point calls one of these, which count the call, inject faults and, on success, take
 * the lock; cuda_leave releases it and maps the engine's status to a CUresult. */
CUresult cuda_enter(const char *name);
CUresult cuda_enter_context(const char *name, struct sim_context **context);
CUresult cuda_enter_stream(const char *name, CUstream handle, struct sim_queue **queue);
CUresult cuda_enter_event(const char *name, CUevent handle, struct sim_event **event);
CUresult cuda_enter_device(const char *name, CUdevice ordinal, struct sim_device **device);
CUresult cuda_leave(int status);
CUresult cuda_code(int status);

/* For entry points that do not need cuInit. It takes no lock. */
CUresult cuda_enter_plain(const char *name);

/* Records that a destroy or free was called, even if it fails. */
void cuda_attempt(struct sim_table *table, const void *handle);
void cuda_attempt_memory(uint64_t address);

struct sim_device *cuda_device(CUdevice ordinal); /* NULL: no such device; needs the lock */
int cuda_find_stream(CUstream handle, struct sim_queue **queue);
int cuda_find_context(CUcontext handle, struct sim_context **context); /* NULL: the current one */

/* The kinds of memory that one side of a copy accepts. */
enum cuda_end { CUDA_HOST_END, CUDA_DEVICE_END, CUDA_ANY_END };
bool cuda_end_valid(uint64_t address, size_t size, enum cuda_end end, bool *tracked);

#endif
