/* graphs.h: making graphs, for the suites that launch them. Included once by each. */
#ifndef GPUGLUE_TESTS_GRAPHS_H
#define GPUGLUE_TESTS_GRAPHS_H

#include "kernels.h"

#include <stdatomic.h>

#define NBYTES 4096u

static inline void begin(struct fixture *f, gg_stream *stream)
{
    need(f, GG_OP_capture_begin);
    assert_int_equal(gg_graph_begin_capture(stream), GG_OK);
}

static inline gg_graph *end(gg_stream *stream)
{
    gg_graph *graph = NULL;
    const gg_status status = gg_graph_end_capture(stream, &graph);
    if (status)
        fail_msg("%s", last_error().message);
    return graph;
}

static inline void end_valid(gg_stream *stream)
{
    gg_graph_release(end(stream));
}

/* Make the end of the stream's capture fail. gpuglue does not know where others have recorded an event whose handle they have: CUDA
 * is asked, and invalidates the capture. HIP is not, since it would not capture the wait. There @p joined, which is idle, becomes
 * a stream that has work in the capture and does not join again. */
static inline void invalidate(gg_stream *stream, gg_event *event, gg_stream *joined,
                              gg_memory *memory)
{
    uint64_t handles[4];
    assert_int_equal(gg_event_native(event, handles), GG_OK);
    assert_int_equal(gg_stream_wait_event(stream, event), GG_ERR_UNSUPPORTED);
    assert_message_has("captur");
    if (gg_stream_wait_stream(joined, stream) == GG_OK)
        assert_int_equal(fill_bytes(memory, 7, joined), GG_OK);
}

/* Fills the memory @p times times. */
static inline gg_graph *filling(struct fixture *f, gg_memory *memory, unsigned char value, int times)
{
    begin(f, f->stream);
    for (int i = 0; i < times; i++)
        assert_int_equal(fill_bytes(memory, value, f->stream), GG_OK);
    return end(f->stream);
}

static inline gg_memory *zeroed(struct fixture *f)
{
    gg_memory *memory = new_memory(f, NBYTES);
    assert_int_equal(fill_bytes(memory, 0, f->stream), GG_OK);
    finish(f->stream);
    return memory;
}

/* A second handle of the memory, which counts its release in @p released. */
static inline gg_memory *counted(struct fixture *f, gg_memory *memory, atomic_int *released)
{
    gg_memory *view = NULL;
    need(f, GG_OP_capture_begin); /* a test that skips later would leak */
    atomic_store(released, 0);
    assert_int_equal(gg_memory_wrap(f->device, GG_MEMORY_DEVICE, gg_memory_pointer(memory), NBYTES,
                                    count_release, released, &view),
                     GG_OK);
    return view;
}

static inline void collect(struct fixture *f)
{
    assert_int_equal(gg_device_synchronize(f->device), GG_OK);
    assert_int_equal(gg_device_trim(f->device), GG_OK);
}

#endif
