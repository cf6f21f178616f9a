/* scope.h: the current device and the current stream of a thread. */
#ifndef GG_SCOPE_H
#define GG_SCOPE_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** The current device of the calling thread. It is determined again at each call, in this order: the
 *  innermost scope (gg_scope_enter), gg_device_set_current, GPUGLUE_DEVICE, the device of the vendor's
 *  current context, the first device of the default backend that is not integrated, its device 0. */
GG_API gg_status gg_current_device(gg_device **out);

/** The current stream of the calling thread on @p device: the innermost stream entered on it, else its
 *  default stream. Returns no reference: the stream is valid while its scope lasts, the default stream
 *  always. */
GG_API gg_status gg_current_stream(gg_device *device, gg_stream **out);

/** Make @p device the calling thread's current device, for gpuglue and for the vendor's runtime, until
 *  the next call. */
GG_API gg_status gg_device_set_current(gg_device *device);

/** Make a device, and one of its streams unless @p stream is NULL, current on the calling thread until
 *  gg_scope_leave, which restores exactly what was current before. The scope holds references. Scopes
 *  may be left out of order, as Python generators do. */
GG_API gg_status gg_scope_enter(gg_device *device, gg_stream *stream, gg_scope **out);

/** Leave and free a scope, on the thread that entered it.
 *  Errors  GG_ERR_INVALID_ARGUMENT: called on another thread. */
GG_API gg_status gg_scope_leave(gg_scope *scope);

GG_END_DECLS
#endif
