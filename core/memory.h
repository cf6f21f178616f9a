/* memory.h: blocks of memory and their uses, and the pinned ring. */
#ifndef GPUGLUE_MEMORY_H
#define GPUGLUE_MEMORY_H

#include "internal.h"

/* ---- memory ---------------------------------------------------------------------------------------- */

struct ggi_use {
    gg_stream *stream; /* a reference */
    uint64_t ticket;
};

#define GGI_UNKNOWN UINT64_MAX
#define GGI_NEWEST 4 /* streams in a row whose uses are noted again without the lock */

struct gg_memory {
    struct ggi_retired retired;
    _Atomic(int64_t) refs;
    /* what a launch looks at stands together */
    struct gg_device *device;
    void *pointer;
    gg_memory *within; /* pinned memory of ours that it is a part of, with a reference: has the uses; or NULL */
    _Atomic(uint64_t) handed; /* ticket of home at which it was given out; 0: nothing to wait for */
    _Atomic(uint64_t) newest[GGI_NEWEST]; /* tickets of uses, by serial; see below */

    enum gg_memory_kind kind; /* as allocated */
    _Atomic(int) captured;
    size_t nbytes;
    void (*release)(void *owner); /* of wrapped memory */
    void *owner;
    bool wrapped;
    struct ggi_import *import; /* of another process's block that it is a part of; or NULL */
    void *registered; /* the first of its pages, room bytes, that were locked for it; or NULL */
    size_t locked; /* bytes of it that the driver was told of: neighbours on its pages are others' */
    /* of memory that gpuglue allocated; pool.h */
    struct ggi_pool *pool; /* that counts it; NULL: of others, or nothing */
    struct ggi_slab *slab; /* that it is a piece of, or NULL */
    gg_memory *next_free;
    size_t room;         /* bytes that it has from the driver */
    uint32_t size_class; /* GGI_NO_CLASS: goes back to the driver */
    gg_stream *home;     /* that it was given out for, with a reference of a use; or NULL */
    uint64_t last;       /* behind all that home had when it was released; 0: not looked at yet */
    _Atomic(uint64_t) fenced;  /* serial of the stream that was last made to wait for `handed` */
    _Atomic(uint64_t) unknown; /* streams that are not known use it: GGI_UNKNOWN, once released its
                                  round in quarantine; 0: none does */
    pthread_mutex_t lock;      /* the uses */
    uint32_t use_count, use_room;
    struct ggi_use few[3];
    struct ggi_use *uses; /* few, or allocated; a ticket in `newest` may be a later one */
};

/* Whose uses they are. */
static inline gg_memory *ggi_memory_whole(gg_memory *memory)
{
    return memory->within ? memory->within : memory;
}

/* The newest ticket of a use is raised without the lock, in a word of the stream's serial and the ticket:
 * one compare-and-swap raises it where that stream is still meant. The use is in the list as long as its
 * word is there: who takes uses away takes the words first. */
#define GGI_TICKET_BITS 40
static inline _Atomic(uint64_t) *ggi_newest_of(gg_memory *memory, const gg_stream *stream)
{
    return &memory->newest[stream->serial % GGI_NEWEST];
}
static inline uint64_t ggi_newest_word(const gg_stream *stream, uint64_t ticket)
{
    return stream->serial << GGI_TICKET_BITS | ticket;
}
/* False: the lock has to be taken. */
static inline bool ggi_newest_raise(gg_memory *memory, const gg_stream *stream, uint64_t ticket)
{
    _Atomic(uint64_t) *newest = ggi_newest_of(memory, stream);
    const uint64_t raised = ggi_newest_word(stream, ticket);
    uint64_t word = atomic_load_explicit(newest, memory_order_relaxed);
    while (word >> GGI_TICKET_BITS == stream->serial && !(ticket >> GGI_TICKET_BITS))
        if (word >= raised || atomic_compare_exchange_weak_explicit(
                                  newest, &word, raised, memory_order_release, memory_order_relaxed))
            return true;
    return false;
}

/* Note that @p stream uses the memory up to @p ticket. Waits for the stream if memory for the note ran
 * out, so it cannot fail. */
void ggi_memory_used_slow(gg_memory *memory, gg_stream *stream, uint64_t ticket);
static inline void ggi_memory_used(gg_memory *memory, gg_stream *stream, uint64_t ticket)
{
    gg_memory *whole = ggi_memory_whole(memory);
    if (!ggi_newest_raise(whole, stream, ticket))
        ggi_memory_used_slow(whole, stream, ticket);
}
/* With the lock held, or nobody else near: one of the uses, with its newest ticket. */
struct ggi_use ggi_memory_use(gg_memory *memory, uint32_t index);
/* The same: put the newest tickets into the uses, before one of them is taken away. */
void ggi_memory_take_newest(gg_memory *memory);
/* Before an operation on a given stream: a block of the pool may still be used by its home stream. */
gg_status ggi_memory_enter_slow(gg_memory *memory, gg_stream *stream);
static inline gg_status ggi_memory_enter(gg_memory *memory, gg_stream *stream)
{
    return atomic_load_explicit(&memory->handed, memory_order_relaxed)
               ? ggi_memory_enter_slow(memory, stream)
               : GG_OK;
}
/* Before one without a stream: make @p stream wait on the device for the unfinished uses on other
 * streams, and for what ggi_memory_enter does. */
gg_status ggi_memory_order(gg_memory *memory, gg_stream *stream);
/* Whether the point at which the block was given out still lies ahead of its home stream; asks the driver. */
bool ggi_memory_handed(gg_memory *memory);
/* How many streams have unfinished uses, as far as is known without asking the driver; the first of them, if
 * any, in @p one with a reference. */
uint32_t ggi_memory_users(gg_memory *memory, gg_stream **one);
/* Forget the uses that are over, asking the driver about all streams (look) or only about those of
 * other devices; whether none is left. */
bool ggi_memory_prune(gg_memory *memory, bool look);
/* quarantine.c. At release: the round that the block has to sit out. */
void ggi_quarantine_enter(gg_memory *memory);
bool ggi_quarantine_passed(const gg_memory *memory);
void ggi_quarantine_leave(gg_memory *memory);
/* With drain_lock held: see how far the device is; @p wait: where nothing else tells, wait for all of it. */
void ggi_quarantine_look(struct gg_device *device, bool wait);
/* Around a wait for all of the device. */
uint64_t ggi_quarantine_begin(struct gg_device *device);
void ggi_quarantine_end(struct gg_device *device, uint64_t round);
void ggi_quarantine_destroy(struct gg_device *device);

/* pinned.c: where pinned memory lies. */
gg_status ggi_pinned_add(gg_memory *memory);
/* The same, refused where pages of it are in the list already. */
gg_status ggi_pinned_add_alone(gg_memory *memory);
void ggi_pinned_remove(gg_memory *memory);
/* False where the driver goes on to take it for locked. */
bool ggi_unregister(gg_memory *memory);      /* managed.c */
bool ggi_result_is(const gg_memory *memory); /* results.c: the lock of a result */
void ggi_import_close(gg_memory *memory);    /* ipc.c */
/* The pinned memory of ours that holds [pointer, pointer + nbytes), with a reference, or NULL. */
gg_memory *ggi_pinned_find(const void *pointer, size_t nbytes, size_t *offset);
/* Whether host memory that ggi_pinned_find does not find shares a page with registered memory. */
bool ggi_pinned_shares_page(const void *pointer, size_t nbytes);
gg_status ggi_check_range(const gg_memory *memory, const char *what, size_t offset, size_t nbytes);

/* ---- the pinned ring: ring.c ----------------------------------------------------------------------- */

struct ggi_slot {
    void *data;              /* GGI_SLOT_SIZE bytes of pinned memory */
    _Atomic(uint64_t) *word; /* pinned too: the device can say there that it has come so far */
    uint64_t word_value;     /* what it said last */
    gg_stream *stream;       /* of the last copy, with a reference; or NULL */
    uint64_t ticket;
    _Atomic(bool) taken; /* under the ring's lock; then all is the taker's until it says false */
};
struct ggi_ring *ggi_ring_new(void); /* an empty one; NULL without memory */
/* A free slot, taken; waits (with the hook) when all are in use. */
gg_status ggi_ring_take(struct gg_device *device, struct ggi_slot **out);
/* Let the device say in the slot's word that all before it is done, and look at that for a moment: it is
 * seen sooner than any query answers. GG_NOT_READY: not seen, or the device has no such words. */
gg_status ggi_ring_watch(struct gg_device *device, struct ggi_slot *slot, gg_stream *stream);
/* The same without waiting: NULL where none is free now. */
struct ggi_slot *ggi_ring_try(struct gg_device *device);
/* Give it back: free once @p stream has passed @p ticket; ticket 0: now. */
void ggi_ring_give(struct gg_device *device, struct ggi_slot *slot, gg_stream *stream,
                   uint64_t ticket);
/* At shutdown, when all is idle; keeps the ring if a thread is still in it. */
void ggi_ring_destroy(struct gg_device *device);

#endif
