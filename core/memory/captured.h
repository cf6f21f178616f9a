/* captured.h: what the work of a capture uses. Its graph holds it. */
#ifndef GPUGLUE_CAPTURED_H
#define GPUGLUE_CAPTURED_H

#include "memory/memory.h"

/* What an owner does around each launch of the graph. No other lock than one of its own may be taken. */
struct ggi_captured_hooks {
    void (*release)(void *owner);
    gg_status (*begin)(void *owner, gg_stream *stream);
    /* By 1: the begins of all owners have succeeded, and the launch will be made. By -1: it failed. */
    void (*count)(void *owner, int32_t by);
    /* After a begin that succeeded: the launch has this ticket, and this status; 0: it was not made. Returns its status. */
    gg_status (*end)(void *owner, gg_stream *stream, uint64_t ticket, gg_status status);
};

struct ggi_captured_owner {
    struct ggi_captured_owner *next;
    void (*release)(void *owner);
    void *owner;
    const struct ggi_captured_hooks *hooks; /* or NULL */
};

/* Constant after the capture. */
struct ggi_captured {
    gg_memory *body; /* counts the references, and has the uses by launches: after the last all below is released */
    gg_memory **memories; /* references, each memory once */
    size_t count, room;
    struct ggi_captured_owner *owners; /* of host memory without a handle */
    bool to_host;                      /* there is host memory, which launches may write */
    bool may_end;    /* an owner has hooks: launches may be ended without a result */
    bool incomplete; /* the host's memory was exhausted */
};

/* A capture that gpuglue began. The driver reports its id for every stream that is in it, by any handle. */
struct ggi_capture {
    struct ggi_capture *next;
    uint64_t id;       /* the driver's */
    uint64_t serial;   /* later captures have higher ones */
    pthread_t thread;  /* that began it */
    gg_stream *stream; /* a reference to the one that it began on */
    gg_stream *helper; /* the marker of the work from before the capture was recorded on it; or NULL */
    struct ggi_captured *uses;
    struct ggi_captured_user *users; /* each once */
    size_t user_count, user_room;
};

/* Captured work on a stream uses a memory. Other streams of the capture wait for it. */
struct ggi_captured_user {
    const gg_memory *memory; /* in uses */
    gg_stream *stream;       /* a reference to one of its handles */
    size_t older;            /* number of the user before it of the same memory, from 1; 0: none */
};

/* Work in the driver's capture of this id is in it from now on. */
void ggi_capture_start(struct ggi_capture *capture, uint64_t id);
/* The capture that began on the stream, which is no longer active; or NULL. */
struct ggi_capture *ggi_capture_stop(const gg_stream *stream);
/* Of a capture that is not active. */
void ggi_capture_forget_users(struct ggi_capture *capture);

/* Keep an owner as long as the graph that @p stream is captured into: until the process ends, unless it is gpuglue's. */
gg_status ggi_captured_keep_owner(gg_stream *stream, void (*release)(void *), void *owner);
/* The same of an owner with hooks, unless the graph is other code's: then *kept is false, and the caller keeps the owner. */
gg_status ggi_captured_keep(gg_stream *stream, const struct ggi_captured_hooks *hooks, void *owner,
                            bool *kept);
/* Around a launch. If the begin fails, no end follows. */
gg_status ggi_captured_begin(const struct ggi_captured *uses, gg_stream *stream);
gg_status ggi_captured_end(const struct ggi_captured *uses, gg_stream *stream, uint64_t ticket,
                           gg_status status);

#endif
