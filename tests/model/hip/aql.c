/* aql.c: a queue of AQL packets: kernels and barriers. */
#include "model.h"

#include <string.h>

static enum packet_type packet_type(union packet *packet)
{
    return __atomic_load_n(&packet->header, __ATOMIC_ACQUIRE) & 0xff;
}

static int64_t signal_value(const struct queue *queue, uint64_t handle)
{
    return __atomic_load_n(&gpu_signal(queue->gpu, handle)->value, __ATOMIC_ACQUIRE);
}

static void signal_complete(const struct queue *queue, uint64_t handle, uint64_t start)
{
    if (!handle)
        return;
    struct signal *signal = gpu_signal(queue->gpu, handle);
    const uint64_t mailbox = signal->mailbox;
    const uint32_t event = signal->event;
    signal->start = start;
    signal->end = model_clock();
    __atomic_sub_fetch(&signal->value, 1, __ATOMIC_SEQ_CST);
    if (mailbox) {
        __atomic_store_n((uint64_t *)gpu_memory(queue->gpu, mailbox), event, __ATOMIC_SEQ_CST);
        queue->gpu->set_event(queue->gpu->event_data, event);
    }
}

/* ---- barriers ---- */

static bool barrier_passes(const struct queue *queue, const struct barrier_packet *barrier, bool any)
{
    int named = 0, done = 0;
    for (int i = 0; i < 5; i++)
        if (barrier->signals[i]) {
            named++;
            done += signal_value(queue, barrier->signals[i]) == 0;
        }
    return any ? done || !named : done == named;
}

static void barrier_wait(struct queue *queue, const struct barrier_packet *barrier, bool any)
{
    unsigned turns = 0;
    while (!barrier_passes(queue, barrier, any) && !atomic_load(&queue->ending))
        model_relax(&turns);
}

static bool value_passes(const struct queue *queue, const struct barrier_value_packet *barrier)
{
    const int64_t value = signal_value(queue, barrier->signal) & barrier->mask;
    switch (barrier->condition) {
    case CONDITION_EQ:
        return value == barrier->value;
    case CONDITION_NE:
        return value != barrier->value;
    case CONDITION_LT:
        return value < barrier->value;
    default:
        return value >= barrier->value;
    }
}

static void vendor_run(struct queue *queue, const struct barrier_value_packet *packet)
{
    unsigned turns = 0;
    if (packet->format == VENDOR_PM4) /* commands for caches, which the model does not have */
        return;
    if (packet->format != VENDOR_BARRIER_VALUE)
        model_fail("a vendor packet of format %u is not known", packet->format);
    while (packet->signal && !value_passes(queue, packet) && !atomic_load(&queue->ending))
        model_relax(&turns);
}

/* ---- packets ---- */

static void packet_run(struct queue *queue, union packet *packet, uint64_t address)
{
    const enum packet_type type = packet_type(packet);
    const uint64_t start = model_clock();
    switch (type) {
    case PACKET_DISPATCH:
        dispatch_run(queue, &packet->dispatch, address);
        break;
    case PACKET_BARRIER_AND:
    case PACKET_BARRIER_OR:
        MODEL_LOG("queue %p: barrier", (void *)queue);
        barrier_wait(queue, &packet->barrier, type == PACKET_BARRIER_OR);
        break;
    case PACKET_VENDOR:
        MODEL_LOG("queue %p: vendor barrier", (void *)queue);
        vendor_run(queue, &packet->barrier_value);
        break;
    default:
        model_fail("a packet of type %d is not known", (int)type);
    }
    if (!atomic_load(&queue->ending))
        signal_complete(queue, packet->barrier.completion, start);
}

/* The next packet; waits until it is written. */
static union packet *packet_next(struct queue *queue, uint64_t index)
{
    const uint64_t *written = gpu_memory(queue->gpu, queue->info.write_index);
    const uint64_t slots = queue->info.ring_bytes / PACKET_BYTES;
    union packet *packet = (union packet *)gpu_memory(queue->gpu, queue->info.ring) + index % slots;
    if (index >= __atomic_load_n(written, __ATOMIC_ACQUIRE))
        return NULL;
    return packet_type(packet) == PACKET_INVALID ? NULL : packet;
}

void aql_serve(struct queue *queue)
{
    uint64_t *read_index = gpu_memory(queue->gpu, queue->info.read_index);
    const char *ring = gpu_memory(queue->gpu, queue->info.ring);
    uint64_t index = *read_index;
    unsigned turns = 0;
    while (!atomic_load(&queue->ending)) {
        union packet *packet = packet_next(queue, index);
        if (!packet) {
            model_relax(&turns);
            continue;
        }
        turns = 0;
        if (!control_may_advance(queue))
            return;
        packet_run(queue, packet, queue->info.ring + (uint64_t)((char *)packet - ring));
        __atomic_store_n(&packet->header, PACKET_INVALID, __ATOMIC_RELEASE);
        __atomic_store_n(read_index, ++index, __ATOMIC_RELEASE);
    }
}
