/** @file
 *  Devices and their properties.
 *
 *  @par Ordering
 *  Only gg_device_synchronize waits for work: all work that was queued on the device before the call.
 *  @par Threads
 *  Any thread. A gg_device is the same pointer for the same device, and is never freed. */
#ifndef GG_DEVICE_H
#define GG_DEVICE_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Properties of a device, in the flags of struct gg_device_info. */
enum gg_device_flag {
    /** The default stream is the vendor's own (CUDA's legacy default stream), shared by all libraries. */
    GG_DEVICE_SHARED_DEFAULT = 1,
    GG_DEVICE_INTEGRATED = 2, /**< shares physical memory with the host */
    GG_DEVICE_HAS_UUID = 4,   /**< the uuid of struct gg_device_info is valid */
    /** Counting devices initialises nothing: forking before the first use is safe. */
    GG_DEVICE_FORK_SAFE_UNTIL_OPEN = 8,
    GG_DEVICE_FREE_NEVER_WAITS = 16, /**< freeing device memory does not synchronize the device */
    /** Freeing device memory waits for all work that the device has, also in streams unknown to gpuglue. */
    GG_DEVICE_FREE_WAITS = 32
};

/** What gg_device_info returns. */
struct gg_device_info {
    uint32_t struct_size;  /**< sizeof(struct gg_device_info) */
    uint32_t flags;        /**< of enum gg_device_flag */
    char name[128];        /**< as the vendor writes it */
    char arch[32];         /**< "sm_90", "gfx942", … */
    char pci_bus_id[32];   /**< "0000:65:00.0"; "" if there is none */
    uint8_t uuid[16];      /**< valid with GG_DEVICE_HAS_UUID */
    int32_t numa_node;     /**< NUMA node of the host that is nearest; -1: unknown */
    uint32_t reserved;     /**< 0 */
    uint64_t total_memory; /**< bytes */
};

#define GG_ATTRIBUTES(X)                                                                           \
    X(WARP_SIZE, "warp_size")                         /**< threads that run in lockstep */         \
    X(MULTIPROCESSORS, "multiprocessors")             /**< number of multiprocessors */            \
    X(MAX_THREADS_PER_BLOCK, "max_threads_per_block") /**< threads of a block, over all axes */    \
    X(MAX_BLOCK_X, "max_block_x")                     /**< threads of a block on axis x */         \
    X(MAX_BLOCK_Y, "max_block_y")                     /**< threads of a block on axis y */         \
    X(MAX_BLOCK_Z, "max_block_z")                     /**< threads of a block on axis z */         \
    X(MAX_GRID_X, "max_grid_x")                       /**< blocks of a grid on axis x */           \
    X(MAX_GRID_Y, "max_grid_y")                       /**< blocks of a grid on axis y */           \
    X(MAX_GRID_Z, "max_grid_z")                       /**< blocks of a grid on axis z */           \
    X(SHARED_MEMORY_PER_BLOCK, "shared_memory_per_block") /**< bytes of a block, by default */     \
    X(CLOCK_KHZ, "clock_khz")           /**< highest clock of the multiprocessors, in kHz */       \
    X(COMPUTE_MAJOR, "compute_major")   /**< architecture, first number */                         \
    X(COMPUTE_MINOR, "compute_minor")   /**< architecture, second number */                        \
    X(ASYNC_ENGINES, "async_engines")   /**< copies that run beside kernels */                     \
    X(MANAGED_MEMORY, "managed_memory") /**< 1: the device has managed memory */                   \
    X(CONCURRENT_KERNELS, "concurrent_kernels")   /**< 1: kernels can run side by side */          \
    X(SHARED_MEMORY_OPTIN, "shared_memory_optin") /**< bytes of a block, on request */             \
    X(COOPERATIVE_LAUNCH, "cooperative_launch")   /**< 1: GG_LAUNCH_COOPERATIVE works */           \
    X(REGISTERS_PER_BLOCK, "registers_per_block") /**< registers of 32 bits of a block, at most */ \
    X(REGISTERS_PER_MULTIPROCESSOR, "registers_per_multiprocessor") /**< registers of 32 bits */   \
    X(THREADS_PER_MULTIPROCESSOR, "threads_per_multiprocessor")     /**< resident threads */       \
    X(SHARED_MEMORY_PER_MULTIPROCESSOR, "shared_memory_per_multiprocessor") /**< bytes */          \
    X(CONSTANT_MEMORY, "constant_memory")   /**< bytes of constants of a module */                 \
    X(L2_CACHE_SIZE, "l2_cache_size")       /**< bytes */                                          \
    X(MEMORY_CLOCK_KHZ, "memory_clock_khz") /**< highest clock of the memory, in kHz */            \
    X(MEMORY_BUS_WIDTH, "memory_bus_width") /**< bits */                                           \
    X(ECC, "ecc")                           /**< 1: the memory has error correction, and it is on */
#define GG_ATTRIBUTE_ENUM(name, word) GG_ATTR_##name,
/** Numeric attributes of a device. One that a backend does not know is GG_ERR_UNSUPPORTED. */
typedef enum gg_attribute {
    GG_ATTRIBUTES(GG_ATTRIBUTE_ENUM) GG_ATTR_COUNT /**< number of attributes */
} gg_attribute;
#undef GG_ATTRIBUTE_ENUM

/** Number of devices of a backend. Initialises the backend.
 *
 *  @param backend     name, such as "cuda"; NULL: the default backend
 *  @param[out] count  devices that the vendor's library shows to this process
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_UNAVAILABLE  the backend cannot be used; gg_last_error has the reason */
GG_API gg_status gg_device_count(const char *backend, int32_t *count);

/** Device by its ordinal. Creates no context.
 *
 *  @param backend   name, such as "cuda"; NULL: the default backend
 *  @param ordinal   the vendor's own, from 0; it respects the vendor's visibility variable, such as CUDA_VISIBLE_DEVICES
 *  @param[out] out  the device, not a reference
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_UNAVAILABLE     the backend cannot be used
 *  @retval GG_ERR_NO_SUCH_DEVICE  there is no device of that ordinal */
GG_API gg_status gg_device_get(const char *backend, int32_t ordinal, gg_device **out);

/** Device by name.
 *
 *  @param name      "cuda:1", "1" (device 1 of the default backend), "cuda" (its device 0), "pci:0000:65:00.0" or
 *                   "uuid:<16 or 32 hexadecimal digits, dashes and a first "GPU-" or "MIG-" allowed>"
 *  @param[out] out  the device, not a reference
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  not a name of this form
 *  @retval GG_ERR_UNAVAILABLE       the backend cannot be used
 *  @retval GG_ERR_NO_SUCH_DEVICE    no device of that name */
GG_API gg_status gg_device_find(const char *name, gg_device **out);

/** Name of the device's backend.
 *
 *  @param device  any device
 *  @return such as "cuda"; static */
GG_API const char *gg_device_backend(const gg_device *device);

/** Ordinal of the device.
 *
 *  @param device  any device
 *  @return the vendor's ordinal, from 0 */
GG_API int32_t gg_device_ordinal(const gg_device *device);

/** Name, architecture, UUID and so on. Needs no context.
 *
 *  @param device        any device
 *  @param[in,out] info  set its struct_size first
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  struct_size is too small */
GG_API gg_status gg_device_info(gg_device *device, struct gg_device_info *info);

/** One attribute of a device. Needs no context.
 *
 *  @param device      any device
 *  @param attribute   which one
 *  @param[out] value  a count, unless the attribute's name contains a unit (GG_ATTR_CLOCK_KHZ)
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_UNSUPPORTED       the backend does not know it
 *  @retval GG_ERR_INVALID_ARGUMENT  no such attribute */
GG_API gg_status gg_device_attribute(gg_device *device, gg_attribute attribute, int64_t *value);

/** Name of an attribute.
 *
 *  @param attribute  any number
 *  @return such as "warp_size"; "unknown" for an unknown number; static */
GG_API const char *gg_attribute_name(gg_attribute attribute);

/** Free and total device memory, as the driver reports them: free blocks that gpuglue's pools keep are not free here.
 *  Destroys released objects that have become idle first.
 *
 *  @param device      any device
 *  @param[out] free   bytes
 *  @param[out] total  bytes
 *  @return GG_OK, or a common error */
GG_API gg_status gg_device_memory_info(gg_device *device, uint64_t *free, uint64_t *total);

/** Wait for all work on the device, including work on streams that gpuglue does not know. Calls the wait hook.
 *
 *  @param device  any device
 *  @return GG_OK, a common error, or the error of work that failed
 *  @retval GG_ERR_INTERRUPTED  ended by the wait hook; the work continues */
GG_API gg_status gg_device_synchronize(gg_device *device);

/** Whether the device supports an operation: the plugin, the driver and the device must all provide it.
 *
 *  @param device  any device
 *  @param op      which operation
 *  @return 1 or 0 */
GG_API int gg_device_supports(gg_device *device, gg_op op);

/** Whether each of two devices can access the memory of the other, so that a copy between them does not pass through the
 *  host. Opens both. The first copy between the two is verified, whatever the driver reports.
 *
 *  @param device    any device
 *  @param peer      any device
 *  @param[out] out  1 or 0; 1 if both are the same device
 *  @return GG_OK, or a common error */
GG_API gg_status gg_device_can_access(gg_device *device, gg_device *peer, int32_t *out);

/** Native handles of the device.
 *
 *  @param device        any device
 *  @param[out] handles  cuda: CUdevice, CUcontext; hip: the ordinal; ze: ze_device, ze_context, ze_driver; host: 0. Unused
 *                       entries are 0
 *  @return GG_OK, or a common error */
GG_API gg_status gg_device_native(gg_device *device, uint64_t handles[4]);

GG_END_DECLS
#endif
