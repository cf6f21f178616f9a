/* replay.h: captures and graphs of backends whose streams cannot be captured as they are. While a stream is captured, the
 * core keeps the operations that would go to the backend; a launch of the graph queues them, by one call if the driver
 * records them. */
#ifndef GPUGLUE_REPLAY_H
#define GPUGLUE_REPLAY_H

#include "runtime/call.h"
#include "runtime/stream.h"

/* ---- captures: replay.c ---- */

/* As the slots of the same names, for a device that replays. @p release: gg_stream_release, for the streams that take part. */
struct ggi_commands;
gg_status ggi_replay_capture_begin(gg_stream *stream, void (*release)(gg_stream *stream));
gg_status ggi_replay_capture_end(gg_stream *stream, struct ggi_commands **out);
gg_status ggi_replay_capture_id(gg_stream *stream, uint64_t *id);
/* Whether the stream is in a capture, valid or not. */
bool ggi_replay_is_capturing(const gg_stream *stream);

/* Operations on a captured stream: none of them runs. A failure leaves the capture as it was. */
gg_status ggi_replay_copy(gg_stream *stream, void *dst, const void *src, size_t nbytes,
                          enum gg_copy_kind kind, int32_t pageable);
gg_status ggi_replay_copy_region(gg_stream *stream, void *dst, const void *src,
                                 const struct gg_region *region, enum gg_copy_kind kind);
gg_status ggi_replay_copy_peer(gg_stream *stream, struct gg_device_impl *dst_device, void *dst,
                               struct gg_device_impl *src_device, const void *src, size_t nbytes);
gg_status ggi_replay_fill(gg_stream *stream, void *dst, uint32_t pattern, uint32_t pattern_size,
                          size_t count);
gg_status ggi_replay_kernel_launch(gg_stream *stream, struct gg_kernel_impl *kernel,
                                   const struct gg_launch *launch);
gg_status ggi_replay_stream_host_func(gg_stream *stream, void (*function)(void *), void *argument);
gg_status ggi_replay_event_record(gg_stream *stream, const struct gg_event_impl *event);
/* A stream that waits for an event of a capture joins it. GG_NOT_READY: neither is in a capture. A captured stream must not
 * wait for an event from outside: that invalidates the capture. */
gg_status ggi_replay_wait_event(gg_stream *stream, const struct gg_event_impl *event);
/* The event is destroyed, or was recorded elsewhere. */
void ggi_replay_forget_event(const struct gg_event_impl *event);

/* Costs one load while gpuglue captures nothing. */
static inline bool ggi_stream_is_replayed(const gg_stream *stream)
{
    return atomic_load_explicit(&ggi_captures, memory_order_relaxed) &&
           ggi_replay_is_capturing(stream);
}

/* Queue an operation, whose first argument is the stream: GGI_QUEUE(device, fill, stream, nbytes, dst, 0, 1, nbytes). */
#define GGI_QUEUE_NAMED(device, slot, stream, bytes, name, ...)                         \
    GGI_CALL_AS(device, slot, stream, bytes, name,                                      \
                ggi_stream_is_replayed(stream) ? ggi_replay_##slot(stream, __VA_ARGS__) \
                                               : (device)->ops->slot((stream)->impl, __VA_ARGS__))
#define GGI_QUEUE(device, slot, stream, bytes, ...) \
    GGI_QUEUE_NAMED(device, slot, stream, bytes, NULL, __VA_ARGS__)

static inline gg_status ggi_queue_event_record(gg_stream *stream, struct gg_event_impl *event)
{
    return GGI_CALL_AS(stream->device, event_record, stream, 0, NULL,
                       ggi_stream_is_replayed(stream)
                           ? ggi_replay_event_record(stream, event)
                           : stream->device->ops->event_record(event, stream->impl));
}
static inline gg_status ggi_queue_wait_event(gg_stream *stream, struct gg_event_impl *event)
{
    struct gg_device *device = stream->device;
    gg_status status = GG_NOT_READY;
    ggi_call_begin(device, GG_OP_stream_wait_event, stream, 0);
    if (atomic_load_explicit(&ggi_captures, memory_order_relaxed) && device->replays)
        status = ggi_replay_wait_event(stream, event);
    if (status == GG_NOT_READY)
        status = device->ops->stream_wait_event(stream->impl, event);
    return ggi_call_end(device, GG_OP_stream_wait_event, stream, 0, status);
}

/* ---- what a graph does: its commands, and replay_graph.c ---- */

/* An operation with copies of its arguments. */
struct ggi_command {
    gg_op op;                 /* GG_OP_stream_wait_event: only the order */
    uint32_t after[2];        /* numbers of the commands that it follows, from 1; 0: none */
    struct gg_device *device; /* of its stream */
    union {
        struct {
            void *dst;
            const void *src;
            size_t nbytes;
            struct gg_region region;
            struct gg_device_impl *dst_device, *src_device;
            enum gg_copy_kind kind;
            int32_t pageable;
        } copy;
        struct {
            void *dst;
            size_t count;
            uint32_t pattern, size;
        } fill;
        struct {
            struct gg_kernel_impl *kernel;
            struct gg_launch *call; /* malloc()ed, with the arguments */
        } launch;
        struct {
            void (*function)(void *);
            void *argument;
        } host;
    };
};

/* In the order in which they were captured, so that each follows those that it depends on. Constant after the capture. */
struct ggi_commands {
    _Atomic(int64_t) refs;
    uint32_t count, room;
    struct ggi_command *items;
};

void ggi_commands_release(struct ggi_commands *commands);
/* A graph that launches them, on streams of the device. Takes over the reference, also on failure. */
gg_status ggi_replay_graph_new(const struct gg_device *device, struct ggi_commands *commands,
                               struct gg_graph_impl **out);
/* As the slots of the same names. */
gg_status ggi_replay_graph_launch(gg_stream *stream, struct gg_graph_impl *graph);
gg_status ggi_replay_graph_update(struct gg_graph_impl *graph, struct gg_graph_impl *other);
void ggi_replay_graph_destroy(const struct gg_device *device, struct gg_graph_impl *graph);

#endif
