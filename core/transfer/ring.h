/* ring.h: the pinned ring of a device: a few slots through which small copies of pageable memory go. */
#ifndef GPUGLUE_RING_H
#define GPUGLUE_RING_H

#include "runtime/stream.h"

#define GGI_SLOT_SIZE 65536u

struct ggi_slot {
    void *data;              /* GGI_SLOT_SIZE bytes of pinned memory; NULL before the first use */
    _Atomic(uint64_t) *word; /* pinned as well: the device writes it in stream order */
    uint64_t word_value;     /* what it wrote last */
    gg_stream *stream;       /* of the last copy, as a use (stream.h); or NULL */
    uint64_t ticket;
    bool marks;          /* an event may be due after the copy */
    _Atomic(bool) taken; /* a thread holds the slot; until it leaves it, the other members are its own */
};

struct ggi_ring *ggi_ring_new(void); /* without slots yet; NULL: out of memory */
/* Acquire a free slot; waits, calling the wait hook, while all are in use. */
gg_status ggi_ring_acquire(struct gg_device *device, struct ggi_slot **out);
/* The same without waiting: NULL where none is free now. */
struct ggi_slot *ggi_ring_try_acquire(struct gg_device *device);
/* Wait for all queued work, the last of which is a download of @p nbytes into the slot: until the device has written the slot's
 * word, which the host polls, or by queries of the driver, whichever is faster on this machine. @p hook: the wait can end in
 * GG_ERR_INTERRUPTED. */
gg_status ggi_ring_wait(struct gg_device *device, struct ggi_slot *slot, gg_stream *stream,
                        size_t nbytes, bool hook);
/* The slot is free once @p stream has passed @p ticket; ticket 0: now. */
void ggi_ring_release(struct gg_device *device, struct ggi_slot *slot, gg_stream *stream,
                      uint64_t ticket);
/* At shutdown. Keeps the ring if a thread holds a slot or a copy uses one. A thread that is inside a call may then allocate it again. */
void ggi_ring_destroy(struct gg_device *device);

#endif
