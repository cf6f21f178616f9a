/* env.h: the GPUGLUE_ variables of the environment. */
#ifndef GPUGLUE_ENV_H
#define GPUGLUE_ENV_H

#include <stdint.h>
#include <stdlib.h>

/* NULL if it is unset, and always in a set-user-id process. */
static inline const char *ggi_env_get(const char *name)
{
    return secure_getenv(name);
}

/* Variables whose value is a number or one word of a list. */
enum ggi_env_variable {
    GGI_ENV_ALLOCATOR,
    GGI_ENV_COPY_THREADS,
    GGI_ENV_DEBUG,
    GGI_ENV_RESULT_CACHE,
    GGI_ENV_STAGING,
    GGI_ENV_VALUES
};
enum { GGI_ALLOCATOR_POOL, GGI_ALLOCATOR_ASYNC, GGI_ALLOCATOR_DIRECT };
enum { GGI_DEBUG_OFF = -1, GGI_DEBUG_SYNC };
#define GGI_COPY_THREADS_MAX 64
enum { GGI_STAGING_AUTO, GGI_STAGING_ALWAYS, GGI_STAGING_NEVER };

/* The number, or the word's index in its list; @p fallback if the variable is unset, empty or invalid. Read
 * once; an invalid value logs a warning. */
int64_t ggi_env_value(enum ggi_env_variable variable, int64_t fallback);

/* Log a warning for each GPUGLUE_ variable that gpuglue does not have. Only the first call does. */
void ggi_env_check_names(void);

#endif
