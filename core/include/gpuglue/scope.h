/** @file
 *  The current device and the current stream of a thread.
 *
 *  @par Ordering
 *  Operations without a stream use the current stream of their device. Entering a scope orders no work.
 *  @par Threads
 *  Each thread has its own current device and streams. A scope is left on the thread that entered it. */
#ifndef GG_SCOPE_H
#define GG_SCOPE_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** The current device of the calling thread. It is determined again at each call, in this order: the innermost scope
 *  (gg_scope_enter), gg_device_set_current, GPUGLUE_DEVICE, the device of the vendor's current context, the first device of
 *  the default backend that is not integrated, its device 0.
 *
 *  @param[out] out  the device, not a reference
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_UNAVAILABLE  no backend; the message lists every reason */
GG_API gg_status gg_current_device(gg_device **out);

/** The current stream of the calling thread on a device: the innermost stream entered on it, else its default stream.
 *
 *  @param device    any device
 *  @param[out] out  not a reference; valid until its scope is left, the default stream always
 *  @return GG_OK, or a common error */
GG_API gg_status gg_current_stream(gg_device *device, gg_stream **out);

/** Make a device the calling thread's current device, for gpuglue and for the vendor's runtime, until another one is set.
 *
 *  @param device  any device
 *  @return GG_OK, or a common error */
GG_API gg_status gg_device_set_current(gg_device *device);

/** Make a device, and possibly one of its streams, current on the calling thread until gg_scope_leave, which restores
 *  exactly what was current before. Scopes may be left out of order, as Python generators do.
 *
 *  @param device    any device
 *  @param stream    of that device; NULL: only the device. The scope holds a reference
 *  @param[out] out  the scope, for gg_scope_leave
 *  @return GG_OK, or a common error
 *  @retval GG_ERR_INVALID_ARGUMENT  a stream of another device */
GG_API gg_status gg_scope_enter(gg_device *device, gg_stream *stream, gg_scope **out);

/** Leave and free a scope, on the thread that entered it.
 *
 *  @param scope  from gg_scope_enter
 *  @return GG_OK
 *  @retval GG_ERR_INVALID_ARGUMENT  called on another thread */
GG_API gg_status gg_scope_leave(gg_scope *scope);

GG_END_DECLS
#endif
