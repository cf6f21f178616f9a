/* log.h: log lines. */
#ifndef GPUGLUE_LOG_H
#define GPUGLUE_LOG_H

#include <gpuglue/gpuglue.h>

#include <stdbool.h>

/* @p level: enum gg_log_level; @p backend: what the line is about, or NULL. */
void ggi_log(int32_t level, const char *backend, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool ggi_log_on(int32_t level);

#endif
