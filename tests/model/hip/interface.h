/* interface.h: the interface of a library that libhsa-runtime64 7.2 uses in place of GPUs, and the structs that the runtime
 * and the hardware share. Declared here, because no package has these headers; model.c checks the version. */
#ifndef MODEL_INTERFACE_H
#define MODEL_INTERFACE_H

#include <stdint.h>

/* ---- the model's functions: what get_hsakmt_model_functions returns ---- */

enum { INTERFACE_MAJOR = 0, INTERFACE_MINOR = 4 };
enum { QUEUE_SDMA = 1, QUEUE_AQL = 2, QUEUE_SDMA_XGMI = 3 };

struct gpu;
struct queue;

/* Addresses are GPU addresses. */
struct queue_info {
    uint64_t ring, write_index, read_index;
    uint64_t *doorbell; /* never set by the runtime */
    uint32_t ring_bytes, type;
};

typedef void set_event_function(void *data, unsigned event);

struct model_functions {
    uint32_t major, minor;
    struct gpu *(*create)(void);
    void (*destroy)(struct gpu *);
    void (*set_aperture)(struct gpu *, void *base, uint64_t size);
    void (*memory_allocated)(struct gpu *, void *address, uint64_t size, uint32_t flags);
    void (*memory_freed)(struct gpu *, void *address, uint64_t size);
    void (*set_notify)(struct gpu *, void (*)(void *), void *data);
    void (*set_wait)(struct gpu *, void (*)(void *, uint64_t, uint64_t), void *data);
    struct queue *(*create_queue)(struct gpu *, const struct queue_info *);
    void (*set_event_function)(struct gpu *, set_event_function *, void *data);
    void (*destroy_queue)(struct gpu *, struct queue *);
};

const struct model_functions *get_hsakmt_model_functions(void);

/* ---- AQL: the HSA Platform System Architecture Specification, 2.9 ---- */

enum { PACKET_BYTES = 64 };
enum packet_type {
    PACKET_VENDOR = 0,
    PACKET_INVALID = 1,
    PACKET_DISPATCH = 2,
    PACKET_BARRIER_AND = 3,
    PACKET_BARRIER_OR = 5
};

struct dispatch_packet {
    uint16_t header, setup;
    uint16_t group[3], reserved0;
    uint32_t grid[3];
    uint32_t private_bytes, group_bytes;
    uint64_t kernel, arguments, reserved1, completion;
};

struct barrier_packet {
    uint16_t header, reserved0;
    uint32_t reserved1;
    uint64_t signals[5], reserved2, completion;
};

/* AMD's own: waits until (signal & mask) satisfies the comparison with the value. */
enum { VENDOR_PM4 = 1, VENDOR_BARRIER_VALUE = 2 };
enum { CONDITION_EQ, CONDITION_NE, CONDITION_LT, CONDITION_GTE };

struct barrier_value_packet {
    uint16_t header;
    uint8_t format, reserved0;
    uint32_t reserved1;
    uint64_t signal;
    int64_t value, mask;
    uint32_t condition, reserved2;
    uint64_t reserved3[2], completion;
};

union packet {
    uint16_t header;
    struct dispatch_packet dispatch;
    struct barrier_packet barrier;
    struct barrier_value_packet barrier_value;
};

struct signal {
    int64_t kind;
    int64_t value;
    uint64_t mailbox;
    uint32_t event, reserved;
    uint64_t start, end;
};

/* ---- the mode of floating-point arithmetic ---- */

/* Bits 0 to 3 of the hardware register: how values are rounded, 0 to the nearest even one; bits 4 to 7: which denormals are
 * kept, first of 32 bits. The model rounds to the nearest and keeps all. The kernel that initializes RCCL's code object flushes
 * those of 32 bits, and computes no such values. */
enum { HARDWARE_MODE = 1, MODE_OF_FLOATS = 0xff, MODE_OF_MODEL = 0xf0, MODE_WITHOUT_32 = 0xc0 };

/* ---- the code object's kernel descriptor ---- */

enum { KERNEL_MODE_AT = 12 };                                     /* of resources1 */
enum { KERNEL_WAVE32 = 1 << 10, KERNEL_DYNAMIC_STACK = 1 << 11 }; /* of properties */

struct kernel_descriptor {
    uint32_t group_bytes, private_bytes, argument_bytes, reserved0;
    int64_t entry; /* from the descriptor */
    uint8_t reserved1[20];
    uint32_t resources3, resources1, resources2;
    uint16_t properties, preload;
    uint8_t reserved2[4];
};

/* ---- the queue as the runtime describes it to the hardware: hsa_queue_t is its first member ---- */

enum { QUEUE_WRITE_INDEX_AT = 56 };

_Static_assert(sizeof(union packet) == PACKET_BYTES, "a packet has 64 bytes");
_Static_assert(sizeof(struct kernel_descriptor) == 64, "a descriptor has 64 bytes");

#endif
