/* sim_ipc.h: device memory shared between processes. */
#ifndef GPUGLUE_SIM_IPC_H
#define GPUGLUE_SIM_IPC_H

#include "sim_engine.h"

/* sim_ipc.c: a 64-byte handle that another process opens. */
struct sim_ipc;
int sim_ipc_export(uint64_t address, void *handle);
int sim_ipc_open(struct sim_context *context, const void *handle, uint64_t *out);
int sim_ipc_close(uint64_t address);
/* Maps whole pages of @p file from @p offset on as memory of the device. The client's memory begins
 * @p inside bytes after the start of the mapping. */
int sim_memory_import(struct sim_context *context, int file, uint64_t offset, size_t size,
                      size_t inside, uint64_t *out);
struct sim_alloc *sim_memory_next(const struct sim_alloc *previous);

#endif
