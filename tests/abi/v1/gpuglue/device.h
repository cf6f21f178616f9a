/* device.h: devices and their properties. */
#ifndef GG_DEVICE_H
#define GG_DEVICE_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

enum gg_device_flag {
    /* The default stream is the vendor's own (CUDA's legacy default stream), shared by all libraries. */
    GG_DEVICE_SHARED_DEFAULT = 1,
    GG_DEVICE_INTEGRATED = 2, /* shares physical memory with the host */
    GG_DEVICE_HAS_UUID = 4,
    /* Counting devices initialises nothing: forking before the first use is safe. */
    GG_DEVICE_FORK_SAFE_UNTIL_OPEN = 8,
    GG_DEVICE_FREE_NEVER_WAITS = 16 /* freeing device memory does not synchronize the device */
};

struct gg_device_info {
    uint32_t struct_size;
    uint32_t flags; /* enum gg_device_flag */
    char name[128];
    char arch[32];       /* "sm_90", "gfx942", … */
    char pci_bus_id[32]; /* "0000:65:00.0"; "" if there is none */
    uint8_t uuid[16];    /* valid with GG_DEVICE_HAS_UUID */
    int32_t numa_node;   /* -1: unknown */
    uint32_t reserved;
    uint64_t total_memory; /* bytes */
};

/* Numeric attributes of a device. One that a backend does not know is GG_ERR_UNSUPPORTED. */
#define GG_ATTRIBUTES(X)                                  \
    X(WARP_SIZE, "warp_size")                             \
    X(MULTIPROCESSORS, "multiprocessors")                 \
    X(MAX_THREADS_PER_BLOCK, "max_threads_per_block")     \
    X(MAX_BLOCK_X, "max_block_x")                         \
    X(MAX_BLOCK_Y, "max_block_y")                         \
    X(MAX_BLOCK_Z, "max_block_z")                         \
    X(MAX_GRID_X, "max_grid_x")                           \
    X(MAX_GRID_Y, "max_grid_y")                           \
    X(MAX_GRID_Z, "max_grid_z")                           \
    X(SHARED_MEMORY_PER_BLOCK, "shared_memory_per_block") \
    X(CLOCK_KHZ, "clock_khz")                             \
    X(COMPUTE_MAJOR, "compute_major")                     \
    X(COMPUTE_MINOR, "compute_minor")                     \
    X(ASYNC_ENGINES, "async_engines")                     \
    X(MANAGED_MEMORY, "managed_memory")                   \
    X(CONCURRENT_KERNELS, "concurrent_kernels")           \
    X(SHARED_MEMORY_OPTIN, "shared_memory_optin")         \
    X(COOPERATIVE_LAUNCH, "cooperative_launch")
#define GG_ATTRIBUTE_ENUM(name, word) GG_ATTR_##name,
typedef enum gg_attribute { GG_ATTRIBUTES(GG_ATTRIBUTE_ENUM) GG_ATTR_COUNT } gg_attribute;
#undef GG_ATTRIBUTE_ENUM

/** Number of devices of @p backend (NULL: the default backend). Initialises the backend. */
GG_API gg_status gg_device_count(const char *backend, int32_t *count);

/** Device @p ordinal of @p backend (NULL: the default backend). Ordinals are the vendor's own and respect
 *  its visibility variable, such as CUDA_VISIBLE_DEVICES. Creates no context. */
GG_API gg_status gg_device_get(const char *backend, int32_t ordinal, gg_device **out);

/** Device by name: "cuda:1", "1" (device 1 of the default backend), "cuda" (its device 0),
 *  "pci:0000:65:00.0" or "uuid:<16 or 32 hexadecimal digits, dashes allowed>". */
GG_API gg_status gg_device_find(const char *name, gg_device **out);

/** Name of the device's backend, such as "cuda". */
GG_API const char *gg_device_backend(const gg_device *device);

/** The vendor's ordinal, starting at 0. */
GG_API int32_t gg_device_ordinal(const gg_device *device);

/** Name, architecture, UUID and so on. Needs no context.
 *  Errors  GG_ERR_INVALID_ARGUMENT: struct_size is too small. */
GG_API gg_status gg_device_info(gg_device *device, struct gg_device_info *info);

/** One attribute: a count, unless its name contains a unit (clock_khz). Needs no context.
 *  Errors  GG_ERR_UNSUPPORTED: the backend does not know it;
 *          GG_ERR_INVALID_ARGUMENT: no such attribute. */
GG_API gg_status gg_device_attribute(gg_device *device, gg_attribute attribute, int64_t *value);

/** Name of an attribute, such as "warp_size"; "unknown" for an unknown number. */
GG_API const char *gg_attribute_name(gg_attribute attribute);

/** Free and total device memory in bytes, as the driver reports them: free blocks that gpuglue's pools
 *  keep are not free here. Destroys released objects that have become idle first. */
GG_API gg_status gg_device_memory_info(gg_device *device, uint64_t *free, uint64_t *total);

/** Wait for all work on the device, including work on streams that gpuglue does not know. */
GG_API gg_status gg_device_synchronize(gg_device *device);

/** Whether the device supports @p op: the plugin, the driver and the device must all provide it. */
GG_API int gg_device_supports(gg_device *device, gg_op op);

/** Whether each of the two devices can access the memory of the other, so that a copy between them does
 *  not pass through the host; 1 if both are the same device. Opens both. The driver's result is not
 *  trusted: the first copy between the two is verified. */
GG_API gg_status gg_device_can_access(gg_device *device, gg_device *peer, int32_t *out);

/** Native handles of the device. cuda: CUdevice, CUcontext; hip: the ordinal; ze: ze_device, ze_context,
 *  ze_driver; host: 0. Unused entries are 0. */
GG_API gg_status gg_device_native(gg_device *device, uint64_t handles[4]);

GG_END_DECLS
#endif
