/* retire.h: objects that are destroyed once the device is done with them. */
#ifndef GPUGLUE_RETIRE_H
#define GPUGLUE_RETIRE_H

#include <gpuglue/backend.h>

#include <stdbool.h>

/* Embedded in each object that is destroyed after its release. */
struct ggi_retired {
    struct ggi_retired *next;
    /* Whether the device has finished with it; never waits. NULL: it was idle when it was retired. If false, it may set
     * `after` and `ticket`: it need not be called again before that stream of the device has passed that ticket. The object
     * holds a use of the stream until then. */
    bool (*idle)(struct ggi_retired *self);
    void (*destroy)(struct ggi_retired *self);
    gg_stream *after; /* NULL: not known */
    uint64_t ticket;
    struct ggi_retired *left; /* in the heap of that stream, where `next` is the right child */
    uint32_t rank;
    bool known;  /* `after` and `ticket` were set before it was retired */
    bool polled; /* idle() calls the driver, unless it is already known to be idle */
    bool may_wait; /* destroying it may wait for the device: done without drain_lock, so that no other thread waits */
    bool locked; /* destroyed with drain_lock held all the same: a call that needs its address finds it whole or destroyed */
    bool unknown; /* idle() sets this: it need not be called again before epoch.done has changed */
    bool never;   /* or this: the object must not be destroyed, as a graph may use it at any time */
};

/* After the shutdown, and in a forked child, retired objects are not destroyed. */
void ggi_retire(struct gg_device *device, struct ggi_retired *item);

/* ---- with drain_lock held: retire.c ---- */

/* The next object that no drain has examined; or NULL. */
struct ggi_retired *ggi_retire_next(struct gg_device *device);
/* Keep the object, to which no other thread has access, in the queue of item->after, until that stream has passed item->ticket. */
void ggi_retire_hold(struct ggi_retired *item);
/* The object is still in use: keep it with item->after (NULL is returned), or in a queue of the device. */
struct ggi_retired_queue *ggi_retire_keep(struct gg_device *device, struct ggi_retired *item);
/* ggi_retire_next then also returns the objects that unknown streams used. */
void ggi_retire_examine_unknown(struct gg_device *device);
struct ggi_holding;
/* Add a stream with such objects, which is in no list, to one of the device. */
void ggi_retire_list(struct ggi_holding *list, gg_stream *stream);
void ggi_retire_unlist(gg_stream *stream);
/* The object with the lowest ticket of those that wait for the stream; or NULL. */
struct ggi_retired *ggi_retire_first(const gg_stream *stream);
/* Remove it. */
struct ggi_retired *ggi_retire_pop(gg_stream *stream);
/* Move the objects that wait for tickets to the list of the others, so that ggi_retire_pick finds them. */
void ggi_retire_flatten(struct gg_device *device);
/* Remove and return the first object that @p want accepts; or NULL. */
struct ggi_retired *ggi_retire_pick(struct gg_device *device,
                                    bool (*want)(const struct ggi_retired *item, const void *what),
                                    const void *what);
void ggi_retire_note_waiting(struct gg_device *device); /* update device->waiting */

/* ---- drain.c ---- */

enum ggi_drain_extent {
    GGI_DRAIN_SOME, /* a bounded number of streams and objects: later drains go on from there */
    GGI_DRAIN_ALL, /* all streams and objects; frees that may wait only while all streams are idle */
    GGI_DRAIN_FORCE, /* all, even if a free may block: for the shutdown */
};
/* Whether an allocation drains, and what for. */
enum ggi_drain_pace {
    GGI_PACE_NONE,   /* another call does */
    GGI_PACE_LIGHT,  /* a drain is due, and little memory waits for it: it polls few streams */
    GGI_PACE_DUE,    /* a drain is due, and much memory waits: it ends at a few busy streams */
    GGI_PACE_FULL,   /* no free block was found */
    GGI_PACE_OTHERS, /* memory of other libraries waits, whose size is not known */
};

/* Destroy idle objects. Call it with no lock held and, in Python, without the GIL. A few loads if there is
 * nothing to do. A driver's free may synchronize the device, so such memory is freed only while all known
 * streams are idle, or if ggi_device_parts.must_free. Only the last waits for another thread that drains. */
void ggi_drain(struct gg_device *device); /* some */
/* Some: for allocations, see ggi_drain_interval. */
void ggi_drain_paced(struct gg_device *device, enum ggi_drain_pace pace);
/* Some, before a stream is created. */
void ggi_drain_for_stream(struct gg_device *device);
/* Drain some objects, first those that waited for @p stream, for which the caller has waited. NULL: it has waited for
 * something else, such as an event. */
void ggi_drain_after_wait(struct gg_device *device, gg_stream *stream);
/* Drain all objects. If another thread is draining, that thread does so, perhaps after the return. */
void ggi_drain_all(struct gg_device *device);
void ggi_drain_all_now(struct gg_device *device); /* the same, complete on return: never from a callback */
/* The same with drain_lock held. Unless only some is drained: true if all known streams were idle. */
bool ggi_drain_locked(struct gg_device *device, enum ggi_drain_extent extent);
/* Unlock drain_lock, then do the work of earlier drains that was deferred because it may wait: destroy objects, record markers. */
void ggi_drain_unlock(struct gg_device *device);
/* With drain_lock held: whether all known streams are idle. */
bool ggi_device_is_idle(struct gg_device *device);
bool ggi_drain_waiting(const struct gg_device *device); /* a drain has something to do */
/* After how many allocations that need no drain one should drain all the same. */
uint32_t ggi_drain_interval(const struct gg_device *device);

#endif
