/** @file
 *  Where log lines go.
 *
 *  @par Ordering
 *  Nothing here orders work.
 *  @par Threads
 *  Any thread. The sink runs on the thread that logs. */
#ifndef GG_LOG_H
#define GG_LOG_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

/** Levels of log lines, in GPUGLUE_LOG `error`, `warn`, `info`, `debug` and `trace`. */
enum gg_log_level {
    GG_LOG_ERROR, /**< a failure that no status can report */
    GG_LOG_WARN,  /**< such as a setting that has no effect; the default level */
    GG_LOG_INFO,  /**< the default backend, results of probes, errors */
    GG_LOG_DEBUG, /**< plugins and libraries that were tried */
    GG_LOG_TRACE  /**< every operation */
};

/** Send log lines to a function instead of stderr. GPUGLUE_LOG sets the level, optionally followed by ":" and the absolute
 *  path of a log file.
 *
 *  @param sink  receives enum gg_log_level, a line without its end, and @p user. It may run on any thread and must not call
 *               gpuglue. NULL restores stderr
 *  @param user  passed to the sink */
GG_API void gg_set_log_sink(void (*sink)(int32_t level, const char *line, void *user), void *user);

GG_END_DECLS
#endif
