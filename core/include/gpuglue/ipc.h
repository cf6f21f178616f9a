/* ipc.h: device memory that several processes of one machine use. Included by gpuglue.h.
 *
 * One process exports memory and sends the handle, which is plain bytes, by any way it likes; another one
 * opens it and has the same bytes on the same device. Nothing orders the two: synchronize before the handle
 * is sent, and tell each other when work is done. The exporter keeps its memory until the others have closed
 * theirs: what it releases may be given to other work of its own while they still look at it. */
#ifndef GPUGLUE_IPC_H
#define GPUGLUE_IPC_H

#include <gpuglue/gpuglue.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GG_IPC_NATIVE_SIZE 64
#define GG_IPC_MAGIC 0x50494747u /* "GGIP" */

/** Sent as it is, between processes that use the same version of this struct. */
struct gg_ipc_handle {
    uint32_t struct_size;
    uint32_t magic;   /* GG_IPC_MAGIC */
    char backend[16]; /* "cuda" */
    uint8_t uuid[16]; /* of the device */
    uint64_t process; /* of the exporter, unlike any other's */
    uint64_t offset;  /* of the memory, in the driver's block, which the other process maps whole */
    uint64_t nbytes;  /* of the memory */
    uint64_t block;   /* bytes of the driver's block; 0: not known */
    uint8_t native[GG_IPC_NATIVE_SIZE]; /* the driver's */
};

/** A handle to device memory of gpuglue's, or to other device memory whose allocation the driver knows.
 *  Set handle->struct_size first.
 *  Errors  GG_ERR_UNSUPPORTED: the backend has no such handles, memory of GPUGLUE_ALLOCATOR=async, a device
 *          without a UUID; GG_ERR_INVALID_ARGUMENT: no device memory, no bytes, or opened by a handle itself. */
GG_API gg_status gg_ipc_export(gg_memory *memory, struct gg_ipc_handle *handle);

/** The memory of a handle that another process has made. Released as any other: it is closed when its work
 *  is done. Handles to parts of one block, and one handle twice, share one mapping.
 *  Errors  GG_ERR_INVALID_ARGUMENT: damaged, or made by this very process, whose memory needs no handle;
 *          GG_ERR_NO_SUCH_DEVICE: the device is not visible here; GG_ERR_UNSUPPORTED. */
GG_API gg_status gg_ipc_open(const struct gg_ipc_handle *handle, gg_memory **out);

#ifdef __cplusplus
}
#endif
#endif
