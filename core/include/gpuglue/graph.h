/** @file
 *  Graphs: work that is recorded once and launched many times, by one call each: of the driver or, for a backend without
 *  graphs, of the core, which queues the operations one after the other. There only operations of gpuglue are captured.
 *
 *  gg_graph_begin_capture records what is queued on a stream from then on, instead of running it; gg_graph_end_capture makes
 *  a graph of it. A stream that waits for an event or a stream of the capture takes part in it, and must be joined again: the
 *  captured stream must wait for it before the end. docs/semantics.md lists what can be captured.
 *
 *  @par Ordering
 *  A launch is one operation on its stream. Without a stream it first waits, on the device, for all unfinished uses of the
 *  memory that the graph uses, as every operation does, and later operations wait for it.
 *  @par Memory
 *  The graph holds a reference to all memory that the captured operations use, and the owners of host memory, until it is released and
 *  its launches are done. Memory that is only known by address (work by other libraries) must be kept by the caller.
 *  @par Threads
 *  Any thread; launches and updates of one graph exclude each other. */
#ifndef GG_GRAPH_H
#define GG_GRAPH_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Captured work that can be launched. */
typedef struct gg_graph gg_graph;

/** Begin to capture a stream. Its work and that of streams that join it is recorded until gg_graph_end_capture.
 *
 *  The capture is relaxed: harmless calls of any thread do not invalidate it. gpuglue refuses a query of and a wait for a
 *  captured stream, also by a thread that waited before the capture began, a wait of a captured stream for work outside of
 *  the capture, and a synchronize of the device (GG_ERR_UNSUPPORTED). If other code makes such a call, or work is queued on the
 *  default stream and the captured stream is not nonblocking, the capture is invalidated, and its end fails. Unfinished
 *  work from before the capture is not part of it. If another thread waits for the stream, the call first waits until that
 *  thread polls again, 50 ms at most.
 *
 *  @param stream  not a default stream of the device or the thread, and not captured. No other thread uses it in the call.
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  a default stream, or a stream that is captured
 *  @retval GG_ERR_UNSUPPORTED       the driver captures streams, but has no graphs (GG_OP_capture_begin) */
GG_API gg_status gg_graph_begin_capture(gg_stream *stream);

/** End the capture that gg_graph_begin_capture began, in any thread. After a failure, too, the capture has ended.
 *
 *  @param stream    of gg_graph_begin_capture. No other thread uses it in the call.
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

/** Let later launches of a graph do what another graph has captured: the same operations with other arguments. This is faster
 *  than a new graph. Launches in flight are not affected; @p other stays valid.
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
