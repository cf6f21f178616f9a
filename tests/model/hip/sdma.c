/* sdma.c: a queue of the copy engine: copies, fills and synchronization. Packets as Linux's amdgpu driver writes them. */
#include "model.h"

#include <string.h>

enum opcode {
    OP_NOP = 0,
    OP_COPY = 1,
    OP_FENCE = 5,
    OP_TRAP = 6,
    OP_POLL = 8,
    OP_ATOMIC = 10,
    OP_FILL = 11,
    OP_TIMESTAMP = 13,
    OP_SRBM_WRITE = 14,
    OP_GCR = 17
};
enum { COPY_LINEAR = 0, COPY_RECT = 4, PACKET_WORDS = 16 };

struct rect_end {
    char *base;
    uint64_t x, y, z, pitch, slice; /* in elements */
};

static uint64_t wide(const uint32_t *words)
{
    return words[0] | (uint64_t)words[1] << 32;
}

/* ---- copies ---- */

static void copy_linear(const struct queue *queue, const uint32_t *packet)
{
    const size_t bytes = (size_t)(packet[1] & 0x3fffffff) + 1;
    MODEL_LOG("queue %p: copy of %zu bytes, %llx to %llx", (const void *)queue, bytes,
              (unsigned long long)wide(packet + 3), (unsigned long long)wide(packet + 5));
    memmove(gpu_memory(queue->gpu, wide(packet + 5)), gpu_memory(queue->gpu, wide(packet + 3)),
            bytes);
}

/* Five words: the base in two, x and y, z and the pitch, the slice. */
static struct rect_end rect_end(const struct queue *queue, const uint32_t *words)
{
    return (struct rect_end){.base = gpu_memory(queue->gpu, wide(words)),
                             .x = words[2] & 0x3fff,
                             .y = words[2] >> 16 & 0x3fff,
                             .z = words[3] & 0x7ff,
                             .pitch = (words[3] >> 13) + 1,
                             .slice = (words[4] & 0xfffffff) + 1};
}

static char *rect_row(const struct rect_end *end, uint64_t y, uint64_t z, size_t element)
{
    return end->base + ((end->z + z) * end->slice + (end->y + y) * end->pitch + end->x) * element;
}

static void copy_rect(const struct queue *queue, const uint32_t *packet)
{
    const size_t element = (size_t)1 << (packet[0] >> 29);
    const struct rect_end source = rect_end(queue, packet + 1);
    const struct rect_end destination = rect_end(queue, packet + 6);
    const uint64_t width = (packet[11] & 0x3fff) + 1, height = (packet[11] >> 16 & 0x3fff) + 1;
    const uint64_t depth = (packet[12] & 0x7ff) + 1;
    MODEL_LOG("queue %p: copy of a box", (const void *)queue);
    for (uint64_t z = 0; z < depth; z++)
        for (uint64_t y = 0; y < height; y++)
            memmove(rect_row(&destination, y, z, element), rect_row(&source, y, z, element),
                    width * element);
}

/* ---- the others ---- */

static void fill(const struct queue *queue, const uint32_t *packet)
{
    uint32_t *to = gpu_memory(queue->gpu, wide(packet + 1));
    const uint64_t words = ((uint64_t)(packet[4] & 0x3fffffff) + 4) / 4;
    MODEL_LOG("queue %p: fill of %llu words", (const void *)queue, (unsigned long long)words);
    for (uint64_t i = 0; i < words; i++)
        to[i] = packet[3];
}

static bool poll_passes(unsigned condition, uint32_t value, uint32_t reference)
{
    switch (condition) {
    case 1:
        return value < reference;
    case 2:
        return value <= reference;
    case 3:
        return value == reference;
    case 4:
        return value != reference;
    case 5:
        return value >= reference;
    case 6:
        return value > reference;
    default:
        return true;
    }
}

static void poll(const struct queue *queue, const uint32_t *packet)
{
    const unsigned condition = packet[0] >> 28 & 7;
    unsigned turns = 0;
    if (!(packet[0] >> 31)) /* not of memory: a flush of the host's writes */
        return;
    const uint32_t *at = gpu_memory(queue->gpu, wide(packet + 1));
    while (!poll_passes(condition, __atomic_load_n(at, __ATOMIC_ACQUIRE) & packet[4], packet[3]) &&
           !atomic_load(&queue->ending))
        model_relax(&turns);
}

static void atomic_add(const struct queue *queue, const uint32_t *packet)
{
    enum { ADD_64 = 47 };
    if (packet[0] >> 25 != ADD_64)
        model_fail("the copy engine's atomic operation %u is not known", packet[0] >> 25);
    uint64_t *at = gpu_memory(queue->gpu, wide(packet + 1));
    __atomic_add_fetch(at, wide(packet + 3), __ATOMIC_SEQ_CST);
}

static void fence(const struct queue *queue, const uint32_t *packet)
{
    uint32_t *at = gpu_memory(queue->gpu, wide(packet + 1));
    __atomic_store_n(at, packet[3], __ATOMIC_SEQ_CST);
}

static void timestamp(const struct queue *queue, const uint32_t *packet)
{
    uint64_t *at = gpu_memory(queue->gpu, wide(packet + 1));
    __atomic_store_n(at, model_clock(), __ATOMIC_SEQ_CST);
}

static void trap(const struct queue *queue, const uint32_t *packet)
{
    queue->gpu->set_event(queue->gpu->event_data, packet[1] & 0xfffffff);
}

/* ---- packets ---- */

static unsigned copy(const struct queue *queue, const uint32_t *packet)
{
    switch (packet[0] >> 8 & 0xff) {
    case COPY_LINEAR:
        copy_linear(queue, packet);
        return 7;
    case COPY_RECT:
        copy_rect(queue, packet);
        return 13;
    default:
        model_fail("the copy engine's packet %08x is not known", packet[0]);
    }
}

/* Runs a packet; returns the number of its words. */
static unsigned packet_run(const struct queue *queue, const uint32_t *packet)
{
    static const struct {
        void (*run)(const struct queue *, const uint32_t *);
        unsigned words;
    } table[] = {
        [OP_FENCE] = {fence, 4},       [OP_TRAP] = {trap, 2}, [OP_POLL] = {poll, 6},
        [OP_ATOMIC] = {atomic_add, 8}, [OP_FILL] = {fill, 5}, [OP_TIMESTAMP] = {timestamp, 3},
        [OP_SRBM_WRITE] = {NULL, 3},   [OP_GCR] = {NULL, 5}};
    const unsigned opcode = packet[0] & 0xff;
    if (opcode == OP_NOP)
        return 1 + (packet[0] >> 16 & 0x3fff);
    if (opcode == OP_COPY)
        return copy(queue, packet);
    if (opcode >= sizeof table / sizeof table[0] || !table[opcode].words)
        model_fail("the copy engine's packet %08x is not known", packet[0]);
    if (table[opcode].run)
        table[opcode].run(queue, packet);
    return table[opcode].words;
}

/* Packets wrap around the ring's end, so each is copied out of it. */
static void packet_read(const struct queue *queue, uint64_t at, uint32_t packet[PACKET_WORDS])
{
    const uint32_t *ring = gpu_memory(queue->gpu, queue->info.ring);
    const uint64_t words = queue->info.ring_bytes / 4;
    for (uint64_t i = 0; i < PACKET_WORDS; i++)
        packet[i] = ring[(at + i) % words];
}

/* The indices are in bytes. */
void sdma_serve(struct queue *queue)
{
    uint64_t *read_index = gpu_memory(queue->gpu, queue->info.read_index);
    const uint64_t *written = gpu_memory(queue->gpu, queue->info.write_index);
    uint64_t at = *read_index / 4;
    unsigned turns = 0;
    while (!atomic_load(&queue->ending)) {
        uint32_t packet[PACKET_WORDS];
        if (at * 4 >= __atomic_load_n(written, __ATOMIC_ACQUIRE)) {
            model_relax(&turns);
            continue;
        }
        turns = 0;
        if (!control_may_advance(queue))
            return;
        packet_read(queue, at, packet);
        at += packet_run(queue, packet);
        __atomic_store_n(read_index, at * 4, __ATOMIC_RELEASE);
    }
}
