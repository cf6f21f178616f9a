/* ring.c: pinned slots for small copies of pageable memory. After an upload's memcpy into a slot, the caller may
 * reuse its memory. */
#include "base/error.h"
#include "runtime/call.h"
#include "memory/uses.h"
#include "transfer/ring.h"
#include "transfer/word_choice.h"

#include <sched.h>
#include <stdlib.h>

#define SLOTS 32u
#define WORD_SPACE 64u /* bytes per slot's word: a cache line of its own */
/* The first bytes of the slots, which most copies use, are in different sets of the processor's caches. */
#define SLOT_SPACE (GGI_SLOT_SIZE + 1280u)
#define RING_SIZE ((size_t)SLOTS * (SLOT_SPACE + WORD_SPACE))
#define POLL_NS 30000u   /* a small copy takes 5 to 15 µs; then the stream is waited for instead */
#define LEARN_MOST 4096u /* bytes of a download whose time shows how long the wait takes */
#define MARK_EVERY 16u   /* slots: their events make it cheap to find a free one */

struct ggi_ring {
    pthread_mutex_t lock; /* of the next one */
    char *memory; /* RING_SIZE, pinned: the slots, then their words; NULL before the first use */
    _Atomic(unsigned) next;
    struct ggi_slot slot[SLOTS];
    _Atomic(uint64_t) serial,
        ticket; /* the stream and the ticket at the last slot where an event was due */
    struct ggi_word_choice choice;
};

struct ggi_ring *ggi_ring_new(void)
{
    struct ggi_ring *ring = calloc(1, sizeof *ring);
    if (ring)
        pthread_mutex_init(&ring->lock, NULL);
    return ring;
}

/* ---- slots: the members of one belong to the thread that holds it ---- */

static inline bool slot_hold(struct ggi_slot *slot)
{
    return !atomic_load_explicit(&slot->taken, memory_order_relaxed) &&
           !atomic_exchange_explicit(&slot->taken, true, memory_order_acquire);
}

static inline void slot_leave(struct ggi_slot *slot)
{
    atomic_store_explicit(&slot->taken, false, memory_order_release);
}

/* Hold the slot if its copy is finished. @p poll: query the driver; the caller then records the markers. */
static inline bool slot_take(struct ggi_slot *slot, bool poll)
{
    if (!slot_hold(slot))
        return false;
    if (slot->data && (!slot->stream || ggi_stream_has_passed(slot->stream, slot->ticket) ||
                       (poll && ggi_stream_poll_locked(slot->stream, slot->ticket))))
        return true;
    slot_leave(slot);
    return false;
}

/* With the lock held. */
static gg_status ring_alloc(struct gg_device *device, struct ggi_ring *ring)
{
    void *memory;
    gg_status status =
        GGI_CALL_RELAXED(device, mem_alloc, NULL, RING_SIZE,
                         (atomic_load(&device->impl), GG_MEMORY_PINNED, RING_SIZE, &memory));
    if (status)
        return status;
    ring->memory = memory;
    char *words = ring->memory + (size_t)SLOTS * SLOT_SPACE;
    for (unsigned i = 0; i < SLOTS; i++) {
        struct ggi_slot *slot = &ring->slot[i];
        while (!slot_hold(slot)) /* another thread finds that it has no memory yet */
            sched_yield();
        slot->data = ring->memory + (size_t)i * SLOT_SPACE;
        slot->word = (_Atomic(uint64_t) *)(void *)(words + (size_t)i * WORD_SPACE);
        atomic_init(slot->word, slot->word_value = 0);
        slot_leave(slot);
    }
    return GG_OK;
}

/* The next slot in turn whose copy is finished; or NULL. @p poll: query the driver. Where the last copy is finished, begin with the
 * first slot again, which the caches have. */
static inline struct ggi_slot *ring_free_slot(struct ggi_ring *ring, bool poll)
{
    const unsigned next = atomic_load_explicit(&ring->next, memory_order_relaxed);
    const unsigned last = (next + SLOTS - 1) % SLOTS;
    const bool again = slot_take(&ring->slot[last], false);
    unsigned at = again ? 0 : next;
    bool found = again && last == at;
    if (again && !found)
        slot_leave(&ring->slot[last]);
    for (unsigned i = 0; !found && i < SLOTS; i++) {
        found = slot_take(&ring->slot[at], poll);
        at = found ? at : (at + 1) % SLOTS;
    }
    if (!found)
        return NULL;
    atomic_store_explicit(&ring->next, (at + 1) % SLOTS, memory_order_relaxed);
    ring->slot[at].marks = !again;
    return &ring->slot[at];
}

/* Whether the stream can be waited for, with a reference to it then. */
static bool ring_can_wait(gg_stream *stream)
{
    if (!stream || !ggi_stream_try_pin(stream))
        return false;
    if (ggi_stream_is_ownerless(stream) || !ggi_other_capturing(stream))
        return true;
    gg_stream_release(stream);
    return false;
}

/* A copy in flight that can be waited for, with a reference to its stream; or NULL. */
static struct ggi_use ring_busy_slot(struct ggi_ring *ring)
{
    const unsigned next = atomic_load_explicit(&ring->next, memory_order_relaxed);
    struct ggi_use use = {NULL, 0};
    for (unsigned i = 0; !use.stream && i < SLOTS; i++) {
        struct ggi_slot *slot = &ring->slot[(next + i) % SLOTS];
        if (!slot_hold(slot))
            continue;
        if (ring_can_wait(slot->stream))
            use = (struct ggi_use){slot->stream, slot->ticket};
        slot_leave(slot);
    }
    return use;
}

/* An error of work that has ended without a result stays that of its stream: another one may be waiting. */
static gg_status ring_wait_ticket(const struct ggi_use *use)
{
    struct ggi_kept_error before, found;
    ggi_error_keep(&before);
    const gg_status status = ggi_stream_wait_ticket(use->stream, use->ticket);
    if (status != GG_ERR_COMMUNICATOR)
        return status;
    ggi_error_keep(&found);
    ggi_stream_keep_error(use->stream, &found);
    ggi_error_restore(&before);
    return GG_OK;
}

/* All slots are in flight: wait for the oldest. */
static gg_status ring_wait_oldest(struct gg_device *device, struct ggi_ring *ring)
{
    struct ggi_internal_scope own;
    struct ggi_use use = ring_busy_slot(ring);
    if (!use.stream)
        return ggi_interrupted() ? ggi_fail(GG_ERR_INTERRUPTED, "a copy was interrupted") : GG_OK;
    ggi_capture_relax_begin(device, &own);
    gg_status status = ring_wait_ticket(&use);
    ggi_capture_relax_end(device, &own);
    gg_stream_release(use.stream);
    return status;
}

/* Where no slot is known to be free: allocate the slots, or with @p poll query the driver. */
__attribute__((noinline)) static gg_status ring_take_slow(struct gg_device *device, bool poll,
                                                          struct ggi_slot **out)
{
    struct ggi_ring *ring = device->ring;
    pthread_mutex_lock(&ring->lock);
    const gg_status status = ring->memory ? GG_OK : ring_alloc(device, ring);
    pthread_mutex_unlock(&ring->lock);
    if (!status)
        *out = ring_free_slot(ring, poll);
    if (poll)
        ggi_record_markers();
    return status;
}

/* A free slot, or NULL. With @p poll, the driver is queried if no slot is known to be free. */
static inline gg_status ring_take(struct gg_device *device, bool poll, struct ggi_slot **out)
{
    *out = ring_free_slot(device->ring, false);
    return *out ? GG_OK : ring_take_slow(device, poll, out);
}

__attribute__((noinline)) static gg_status ring_take_later(struct gg_device *device,
                                                           struct ggi_slot **out)
{
    gg_status status = GG_OK;
    while (!status && !*out) {
        status = ring_wait_oldest(device, device->ring);
        if (!status)
            status = ring_take(device, true, out);
    }
    return status;
}

gg_status ggi_ring_acquire(struct gg_device *device, struct ggi_slot **out)
{
    gg_status status = ring_take(device, true, out);
    return status || *out ? status : ring_take_later(device, out);
}

struct ggi_slot *ggi_ring_try_acquire(struct gg_device *device)
{
    struct ggi_slot *slot = NULL;
    ring_take(device, false, &slot);
    return slot;
}

/* Have the device write the slot's word after all queued work, and poll the word briefly. GG_NOT_READY: it was not written in
 * time. @p now: when the wait began; then, when the word was read last. */
static gg_status ring_poll_word(struct gg_device *device, struct ggi_slot *slot, gg_stream *stream,
                                uint64_t *now)
{
    const uint64_t before = atomic_load_explicit(&stream->submitted, memory_order_acquire),
                   start = *now;
    gg_status status = GGI_CALL(device, write_word, stream, sizeof *slot->word,
                                (stream->impl, (void *)slot->word, ++slot->word_value));
    ggi_stream_counted(stream);
    while (!status && atomic_load_explicit(slot->word, memory_order_acquire) != slot->word_value) {
        *now = ggi_now_ns();
        if (*now - start > POLL_NS)
            status = GG_NOT_READY;
    }
    if (status)
        return status;
    ggi_stream_advance(stream, before);
    return ggi_stream_raise_stashed(stream, GG_OP_stream_wait);
}

static gg_status ring_synchronize(gg_stream *stream, bool hook)
{
    return hook ? ggi_stream_synchronize(stream, true)
                : ggi_stream_synchronize_uninterruptible(stream);
}

gg_status ggi_ring_wait(struct gg_device *device, struct ggi_slot *slot, gg_stream *stream,
                        size_t nbytes, bool hook)
{
    struct ggi_word_choice *choice = &device->ring->choice;
    if (!device->writes_words)
        return ring_synchronize(stream, hook);
    const bool query = ggi_word_choice_next(choice);
    const uint64_t start = ggi_now_ns();
    uint64_t now = start;
    gg_status status = query ? GG_NOT_READY : ring_poll_word(device, slot, stream, &now);
    if (status == GG_NOT_READY) {
        status = ring_synchronize(stream, hook);
        now = ggi_now_ns();
    }
    if (!status && nbytes <= LEARN_MOST)
        ggi_word_choice_learn(choice, query, now - start);
    return status;
}

/* Whether the stream needs an event: not where a wait since the last such slot has found that copy done, and later ones. */
static bool ring_mark_is_due(struct ggi_ring *ring, const struct ggi_slot *slot, gg_stream *stream,
                             uint64_t ticket)
{
    if (!ticket || (size_t)(slot - ring->slot) % MARK_EVERY)
        return false;
    const uint64_t serial = atomic_load_explicit(&ring->serial, memory_order_relaxed),
                   before = atomic_load_explicit(&ring->ticket, memory_order_relaxed);
    atomic_store_explicit(&ring->serial, stream->serial, memory_order_relaxed);
    atomic_store_explicit(&ring->ticket, ticket, memory_order_relaxed);
    return slot->marks && (serial != stream->serial ||
                           atomic_load_explicit(&stream->completed, memory_order_relaxed) <= before);
}

/* Takes no lock. A slot that the same stream uses again keeps its use of it. */
void ggi_ring_release(struct gg_device *device, struct ggi_slot *slot, gg_stream *stream,
                      uint64_t ticket)
{
    const bool mark = ring_mark_is_due(device->ring, slot, stream, ticket);
    gg_stream *before = slot->stream, *now = ticket ? stream : NULL;
    if (now && now != before)
        ggi_stream_use_retain(now);
    slot->stream = now;
    slot->ticket = ticket;
    slot_leave(slot);
    if (before && now != before)
        ggi_stream_use_release(before);
    if (mark)
        ggi_stream_mark(stream);
}

/* With the lock, and all slots. */
static void ring_free(struct gg_device *device, struct ggi_ring *ring)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        if (ring->slot[i].stream)
            ggi_stream_use_release(ring->slot[i].stream);
        ring->slot[i].stream = NULL;
        ring->slot[i].data = NULL;
    }
    GGI_CALL(device, mem_free, NULL, RING_SIZE,
             (atomic_load(&device->impl), GG_MEMORY_PINNED, ring->memory));
    ring->memory = NULL;
}

void ggi_ring_destroy(struct gg_device *device)
{
    struct ggi_ring *ring = device->ring;
    unsigned held = 0;
    pthread_mutex_lock(&ring->lock);
    while (ring->memory && held < SLOTS && slot_take(&ring->slot[held], true))
        held++;
    if (held == SLOTS)
        ring_free(device, ring);
    while (held > 0)
        slot_leave(&ring->slot[--held]);
    pthread_mutex_unlock(&ring->lock);
}
