/* ze_types.h: the structs of Level Zero that this backend uses. The names are the vendor's without "_t". Unused
 * fields are there for the layout. tests/headers compares sizes and offsets. */
#ifndef GPUGLUE_ZE_TYPES_H
#define GPUGLUE_ZE_TYPES_H

#include <stddef.h>
#include <stdint.h>

#define ZE_API(major, minor) ((uint32_t)(major) << 16 | (uint32_t)(minor))

enum ze_number {
#define NUMBER(name, value) name = value,
#define NEWER(name, value) name = value,
#include "ze_numbers.def"
#undef NEWER
#undef NUMBER
};

enum ze_code {
    ZE_RESULT_SUCCESS = 0,
#define ERROR(name, code, status, text) name = code,
#include "ze_errors.def"
#undef ERROR
};

/* Descriptors of which only the flags differ: contexts, host memory, relaxed limits, kinds of drivers, graphs. */
struct ze_plain_desc {
    uint32_t stype;
    const void *next;
    uint32_t flags;
};

struct ze_component_version { /* of the loader and of each layer */
    char name[64];
    uint32_t api;
    int32_t major, minor, patch;
};

struct ze_extension {
    char name[256];
    uint32_t version;
};

struct ze_driver_properties {
    uint32_t stype;
    void *next;
    uint8_t uuid[16];
    uint32_t version;
};

struct ze_ipc_properties {
    uint32_t stype;
    void *next;
    uint32_t flags;
};

struct ze_ipc_handle {
    char data[64];
};

struct ze_device_properties {
    uint32_t stype;
    void *next;
    uint32_t type, vendor_id, device_id, flags, subdevice_id;
    uint32_t clock_mhz;
    uint64_t largest_alloc;
    uint32_t hardware_contexts, queue_priorities;
    uint32_t threads_per_eu, simd_width, eus_per_subslice, subslices_per_slice, slices;
    uint64_t timer_hz; /* with the stype of 1.2 */
    uint32_t timer_bits, kernel_timer_bits;
    uint8_t uuid[16];
    char name[256];
};

struct ze_module_constants { /* specialisation constants */
    uint32_t count;
    const uint32_t *ids;
    const void **values;
};

struct ze_module_desc {
    uint32_t stype;
    const void *next;
    uint32_t format;
    size_t size;
    const void *image;
    const char *flags;
    const struct ze_module_constants *constants;
};

struct ze_program_desc { /* chained to ze_module_desc, in whose place it has several inputs */
    uint32_t stype;
    const void *next;
    uint32_t count;
    const size_t *sizes;
    const uint8_t **images;
    const char **flags;
    const struct ze_module_constants **constants;
};

struct ze_kernel_desc {
    uint32_t stype;
    const void *next;
    uint32_t flags;
    const char *name;
};

struct ze_kernel_properties {
    uint32_t stype;
    void *next;
    uint32_t arguments;
    uint32_t required_x, required_y, required_z;
    uint32_t required_subgroups, required_subgroup_size, max_subgroup_size, max_subgroups;
    uint32_t local_memory, private_memory, spill_memory;
    uint8_t uuid[32];
};

struct ze_kernel_extra { /* chained to ze_kernel_properties: a size of the largest group, or of the register file */
    uint32_t stype;
    void *next;
    uint32_t value;
};

struct ze_group_count {
    uint32_t x, y, z;
};

struct ze_usable_memory { /* chained to ze_device_properties */
    uint32_t stype;
    void *next;
    uint64_t usable;
};

struct ze_compute_properties {
    uint32_t stype;
    void *next;
    uint32_t group_size;
    uint32_t group_x, group_y, group_z;
    uint32_t groups_x, groups_y, groups_z;
    uint32_t shared_memory;
    uint32_t subgroup_sizes;
    uint32_t subgroup_size[8];
};

struct ze_memory_properties {
    uint32_t stype;
    void *next;
    uint32_t flags, clock_mhz, bus_width;
    uint64_t total;
    char name[256];
};

struct ze_access_properties {
    uint32_t stype;
    void *next;
    uint32_t host, device, shared, shared_cross_device, shared_system;
};

struct ze_group_properties {
    uint32_t stype;
    void *next;
    uint32_t flags;
    size_t largest_pattern;
    uint32_t queues;
};

struct ze_pci_properties {
    uint32_t stype;
    void *next;
    uint32_t domain, bus, device, function;
    int32_t generation, width;
    int64_t bandwidth;
};

struct ze_device_memory_desc {
    uint32_t stype;
    const void *next;
    uint32_t flags, ordinal;
};

struct ze_pointer_properties {
    uint32_t stype;
    void *next;
    uint32_t type;
    uint64_t id, page_size;
};

struct ze_queue_desc {
    uint32_t stype;
    const void *next;
    uint32_t ordinal, index, flags, mode, priority;
};

struct ze_copy_region {
    uint32_t x, y, z, width, height, depth; /* depth 0: one slice */
};

struct ze_pool_desc {
    uint32_t stype;
    const void *next;
    uint32_t flags, count;
};

struct ze_event_desc {
    uint32_t stype;
    const void *next;
    uint32_t index, signal, wait;
};

#endif
