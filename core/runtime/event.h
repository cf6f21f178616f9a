/* event.h: events. */
#ifndef GPUGLUE_EVENT_H
#define GPUGLUE_EVENT_H

#include "runtime/device.h"
#include "runtime/retire.h"

struct gg_event {
    struct ggi_retired retired;
    _Atomic(int64_t) refs;
    struct gg_device *device;
    struct gg_event_impl *impl;
    uint32_t flags;
    _Atomic(uint64_t) recorded; /* another number for each record; 0: never */
    _Atomic(uint64_t) done;     /* `recorded` when it was last found done */
    _Atomic(bool) captured;     /* recorded in a capture last: it stands for no work that runs */
    _Atomic(uint64_t) capture;  /* the driver's id of that capture; 0 if it is not known */
    _Atomic(uint64_t) watchers; /* who may end the work before it */
    _Atomic(uint64_t) before;   /* who may leave work that the driver orders before it by itself */
    _Atomic(bool) exported;     /* others know its handle, and may record it into a graph */
    void (*release)(void *owner);
    void *owner;
    bool borrowed;
};

/* The error of the work before it, if that was ended without a result. */
gg_status ggi_event_result(const gg_event *event, gg_op op, uint64_t recorded);
/* The error of waiting for an event that was recorded in a capture. */
gg_status ggi_event_fail_captured(void);

/* event_cache.c: a native event from the cache, or a new one. It must be idle when it is recycled. */
gg_status ggi_event_acquire(struct gg_device *device, bool timing, struct gg_event_impl **out);
void ggi_event_recycle(struct gg_device *device, bool timing, struct gg_event_impl *impl);
/* The same without a driver call; false if the cache is full. */
bool ggi_event_keep_spare(struct gg_device *device, bool timing, struct gg_event_impl *impl);
void ggi_event_destroy_spares(struct gg_device *device);

#endif
