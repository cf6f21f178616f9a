/* log.h: where log lines go. */
#ifndef GG_LOG_H
#define GG_LOG_H

#include <gpuglue/base.h>

GG_BEGIN_DECLS

enum gg_log_level { GG_LOG_ERROR, GG_LOG_WARN, GG_LOG_INFO, GG_LOG_DEBUG, GG_LOG_TRACE };

/** Send log lines to @p sink instead of stderr; NULL restores stderr. GPUGLUE_LOG sets the level:
 *  error, warn (default), info, debug or trace, optionally followed by ":" and the absolute path of a
 *  log file. The sink may run on any thread and must not call gpuglue. */
GG_API void gg_set_log_sink(void (*sink)(int32_t level, const char *line, void *user), void *user);

GG_END_DECLS
#endif
