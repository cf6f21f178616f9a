/** @file
 *  Device memory shared between processes of one machine.
 *
 *  One process exports memory and sends the handle, which is plain bytes, over any channel. Another process opens it and
 *  sees the same memory on the same device. The exporter must keep its memory until the others have released theirs; memory
 *  that it releases earlier may be reused for its other work.
 *
 *  @par Ordering
 *  Nothing orders the work of the two processes: synchronize before sending the handle, and report completed work to each
 *  other.
 *  @par Threads
 *  Any thread. */
#ifndef GG_IPC_H
#define GG_IPC_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Bytes of the driver's handle in gg_ipc_handle. */
#define GG_IPC_NATIVE_SIZE 64
/** gg_ipc_handle::magic: "GGIP" */
#define GG_IPC_MAGIC 0x50494747u
/** gg_ipc_handle::version */
#define GG_IPC_VERSION 1

/** Sent unchanged between processes. A process opens handles of its own GG_IPC_VERSION. */
struct gg_ipc_handle {
    uint32_t struct_size; /**< sizeof(struct gg_ipc_handle) */
    uint32_t magic;       /**< GG_IPC_MAGIC */
    uint32_t version;     /**< GG_IPC_VERSION of the exporting process */
    uint32_t function; /**< of the device's PCI address: partitions of one GPU may share the UUID */
    char backend[16];  /**< "cuda" */
    uint8_t uuid[16];  /**< of the device */
    uint64_t process;  /**< identifies the exporting process */
    uint64_t offset; /**< of the memory in the driver's allocation, in bytes; the importer maps all of it */
    uint64_t nbytes;                    /**< of the memory */
    uint64_t block;                     /**< bytes of the driver's allocation; 0: unknown */
    uint8_t native[GG_IPC_NATIVE_SIZE]; /**< the driver's handle */
};

/** Export device memory that gpuglue or another library allocated from the driver.
 *
 *  @param memory          device memory; keep it until the others have released theirs
 *  @param[in,out] handle  set its struct_size first
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_UNSUPPORTED       the backend has no IPC handles, the memory is from GPUGLUE_ALLOCATOR=async, or the
 *                                   device has no UUID
 *  @retval GG_ERR_INVALID_ARGUMENT  not device memory, 0 bytes, or memory that was itself opened from a handle */
GG_API gg_status gg_ipc_export(gg_memory *memory, struct gg_ipc_handle *handle);

/** Open the memory of a handle that another process exported. It is closed when it is released and its work is complete.
 *  Handles to parts of one block, and one handle opened twice, share one mapping.
 *
 *  @param handle    as received
 *  @param[out] out  one reference
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  the handle is damaged, has another version, or was exported by this process
 *  @retval GG_ERR_NO_SUCH_DEVICE    the device is not visible here, or several devices here have its UUID and address
 *  @retval GG_ERR_UNSUPPORTED       the backend has no such handles */
GG_API gg_status gg_ipc_open(const struct gg_ipc_handle *handle, gg_memory **out);

GG_END_DECLS
#endif
