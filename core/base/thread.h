/* thread.h: threads that no one joins. */
#ifndef GPUGLUE_BASE_THREAD_H
#define GPUGLUE_BASE_THREAD_H

#include <gpuglue/base.h>

/* It handles no signals. */
gg_status ggi_thread_start(void *(*run)(void *argument), void *argument);

#endif
