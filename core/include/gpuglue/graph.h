/** @file
 *  Graphs: work that is recorded once and launched many times. A launch is one driver call. For a backend without
 *  graphs the core records the operations that gpuglue queues, and a launch queues them one after the other. If the
 *  driver can record them, each launch after the first is one driver call there, too.
 *
 *  gg_graph_begin_capture records the work that is queued on a stream from then on, instead of running it;
 *  gg_graph_end_capture makes a graph of it. A stream that waits for an event or a stream of the capture takes part in it.
 *  The captured stream must wait for it before the capture ends. docs/semantics.md lists what can be captured.
 *
 *  @par Ordering
 *  A launch is one operation on its stream. Without a stream it first waits, on the device, for all unfinished uses of the
 *  memory that the graph uses, as every operation does, and later operations wait for it.
 *  @par Memory
 *  The graph keeps all memory that the captured operations use, and the owners of host memory, until it is released and its
 *  launches are complete. The caller must keep memory that gpuglue does not know, such as that used by other libraries' work.
 *  @par Threads
 *  Any thread. Launches and updates of one graph are serialized. */
#ifndef GG_GRAPH_H
#define GG_GRAPH_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Captured work that can be launched. */
typedef struct gg_graph gg_graph;

/** Begin to capture a stream. Its work and that of streams that join it is recorded until gg_graph_end_capture.
 *
 *  The capture is relaxed: harmless calls of any thread do not invalidate it. gpuglue refuses these calls with
 *  GG_ERR_UNSUPPORTED: querying or waiting for a captured stream, even if the wait began before the capture; making a
 *  captured stream wait for work outside of the capture; and synchronizing the device. If other code makes such a call, the
 *  capture is invalidated and its end fails. The same applies to work on the default stream, unless the captured stream is
 *  nonblocking. Unfinished work from before the capture is not part of it. If another thread waits for the stream, this call
 *  first waits, at most 50 ms, until that thread polls again; if another thread makes a stream wait for this one, until the
 *  driver has queued that, at most 10 s. Calls the wait hook.
 *
 *  @param stream  not a default stream of the device or the thread, and not captured. No other thread may use it during the
 *                 call
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  a default stream, or a stream that is captured
 *  @retval GG_ERR_UNSUPPORTED       the driver captures streams, but has no graphs (GG_OP_capture_begin); or another thread
 *                                   makes a stream wait for this one, whose queue has been full for 10 s
 *  @retval GG_ERR_INTERRUPTED       the wait hook has ended the wait */
GG_API gg_status gg_graph_begin_capture(gg_stream *stream);

/** End a capture that gg_graph_begin_capture began on any thread. The capture has ended even if the call fails.
 *
 *  @param stream    of gg_graph_begin_capture. No other thread may use it during the call
 *  @param[out] out  a graph with one reference; or NULL to drop what was captured
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  no capture of this stream was begun
 *  @retval GG_ERR_UNSUPPORTED       the capture was invalidated, or a stream was not joined */
GG_API gg_status gg_graph_end_capture(gg_stream *stream, gg_graph **out);

/** Queue the captured work on a stream. Launches of one graph do not overlap on the device.
 *
 *  @param graph   a graph
 *  @param stream  as for gg_copy; not one that is captured
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  a stream of another device
 *  @retval GG_ERR_UNSUPPORTED       the stream is captured */
GG_API gg_status gg_graph_launch(gg_graph *graph, gg_stream *stream);

/** Replace the arguments of a graph by those of another graph of the same operations. This is faster than a new graph.
 *  Launches in flight are not affected, and @p other remains valid.
 *
 *  @param graph  changed
 *  @param other  of the same device
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  they differ in more than arguments, or are of two devices; nothing is changed
 *  @retval GG_ERR_UNSUPPORTED       the driver cannot change graphs (GG_OP_graph_update) */
GG_API gg_status gg_graph_update(gg_graph *graph, gg_graph *other);

/** Add a reference.
 *
 *  @param graph  a graph */
GG_API void gg_graph_retain(gg_graph *graph);
/** Drop a reference. The last one destroys the graph and releases its memory, once its launches are done. Never waits.
 *
 *  @param graph  may be NULL */
GG_API void gg_graph_release(gg_graph *graph);
/** The device of the captured stream.
 *
 *  @param graph  a graph
 *  @return the device, not a reference */
GG_API gg_device *gg_graph_device(const gg_graph *graph);

GG_END_DECLS
#endif
