/** @file
 *  One C interface to the GPUs of several vendors. This header is a list of the others.
 *
 *  A program lists the backends (gg_probe), finds a device (gg_device_find), creates streams and events, allocates memory,
 *  copies, launches kernels and synchronizes. Nothing here names a vendor.
 *
 *  @par Status
 *  A function that can fail returns a gg_status; 0 is success. Output parameters come last and are written on success
 *  only. gg_last_error describes the last failure on the calling thread.
 *  @par Common errors
 *  Besides the errors that a function lists, every function that takes a device, or an object of one, may return
 *  GG_ERR_FORKED (in a child of the process that opened the device), GG_ERR_SHUT_DOWN, GG_ERR_UNSUPPORTED (see
 *  gg_device_supports), GG_ERR_OUT_OF_MEMORY, GG_ERR_DEVICE_LOST and GG_ERR_DEVICE for other errors of the driver.
 *  @par Structs
 *  In a struct that begins with struct_size, set it to sizeof before the call. The library reads or writes only the members
 *  that both sides know and stores the number of bytes it wrote in struct_size. A struct shorter than its first version is
 *  GG_ERR_INVALID_ARGUMENT.
 *  @par Handles
 *  Handles are reference counted. create, alloc, borrow and wrap return one reference; retain adds one; release drops one,
 *  accepts NULL and never waits: objects that the device still uses are destroyed later. The caller must hold a reference
 *  during every other call. Devices live as long as the process.
 *  @par Pointers
 *  Arguments must not be NULL unless documented. Returned strings are static.
 *  @par Callbacks
 *  A `release` callback may run on any thread and must not call gpuglue.
 *  @par Ordering
 *  Work on one stream runs in order. Each header describes how its functions order work between streams.
 *  @par Threads
 *  Functions may be called from any thread at any time unless documented otherwise. */
#ifndef GG_GPUGLUE_H
#define GG_GPUGLUE_H

#include <gpuglue/base.h>

#include <gpuglue/error.h>
#include <gpuglue/log.h>
#include <gpuglue/probe.h>
#include <gpuglue/process.h>
#include <gpuglue/trace.h>

#include <gpuglue/device.h>
#include <gpuglue/event.h>
#include <gpuglue/scope.h>
#include <gpuglue/stats.h>
#include <gpuglue/stream.h>

#include <gpuglue/allocator.h>
#include <gpuglue/ipc.h>
#include <gpuglue/managed.h>
#include <gpuglue/memory.h>
#include <gpuglue/pointer.h>
#include <gpuglue/pool.h>

#include <gpuglue/comm.h>
#include <gpuglue/comm_device.h>

#include <gpuglue/copy.h>
#include <gpuglue/fill.h>
#include <gpuglue/readback.h>

#include <gpuglue/graph.h>
#include <gpuglue/image.h>
#include <gpuglue/kernel.h>
#include <gpuglue/module.h>

#endif
