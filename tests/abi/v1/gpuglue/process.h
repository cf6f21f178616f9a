/* process.h: versions of the loaded library, interrupts, and shutdown. */
#ifndef GG_PROCESS_H
#define GG_PROCESS_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** ABI version of the loaded library: major in the upper 16 bits, minor in the lower 16. */
GG_API uint32_t gg_abi(void);

/** Version of the loaded library, such as "0.1.0". Static. */
GG_API const char *gg_version(void);

/** Path of the file that this libgpuglue was loaded from. Static; NULL if the loader does not report it. */
GG_API const char *gg_library_path(void);

/** Install a hook that gpuglue calls about every 50 ms while it waits, on the waiting thread and with no
 *  lock held. A nonzero result ends the wait with GG_ERR_INTERRUPTED. NULL removes the hook. */
GG_API void gg_set_wait_hook(int (*hook)(void));

/** Wait at most @p timeout_ns for pending copies to the host on all devices, then run the release
 *  callbacks of completed work. A language binding that defers releases calls this, processes its
 *  deferred releases, and then calls gg_shutdown. */
GG_API void gg_finish_downloads(uint64_t timeout_ns);

/** Shut gpuglue down: refuse new work, wait at most @p timeout_ns for copies to the host, destroy all
 *  idle objects, and make no driver call afterwards. Later releases do nothing. May be called again. */
GG_API void gg_shutdown(uint64_t timeout_ns);

GG_END_DECLS
#endif
