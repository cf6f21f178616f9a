/* gpuglue.hpp: the C++17 interface: owners, typed views of memory, and exceptions. Header only: each function
 * calls one of gpuglue.h, which documents it. Programs link libgpuglue as C programs do.
 *
 * Owners     stream, event, memory, device_module, kernel and scope release what they hold when they are destroyed.
 *            They are moved, not copied; share() adds a reference and returns a second owner. A moved-from or
 *            default-constructed owner is empty (false). The destructor never waits: the device finishes its work.
 * Views      device, stream_ref and device_span own nothing. Devices live as long as the process; the others
 *            must not outlive the owner that they were made from.
 * Streams    A stream_ref parameter that is left out or nullptr is the current stream, with the implicit waits of
 *            gpuglue.h; a given stream is explicit.
 * Errors     A failed call throws gg::error or a class derived from it. Queries and timed waits return false
 *            where C returns GG_NOT_READY.
 * Memory     Nothing here allocates, except the C functions and the exceptions. */
#ifndef GG_GPUGLUE_HPP
#define GG_GPUGLUE_HPP

#include <gpuglue/error.hpp>
#include <gpuglue/kernel.hpp>
#include <gpuglue/memory.hpp>
#include <gpuglue/stream.hpp>

#endif
