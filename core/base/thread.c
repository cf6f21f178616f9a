/* thread.c: threads that no one joins. */
#include "base/thread.h"
#include "base/error.h"
#include "base/signals.h"

#include <pthread.h>
#include <string.h>

#include "base/small.h"

gg_status ggi_thread_start(void *(*run)(void *argument), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t before;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    ggi_block_signals(&before);
    const int error = pthread_create(&thread, &attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error ? ggi_fail(GG_ERR_OUT_OF_MEMORY, "a thread cannot be started: %s", strerror(error))
                 : GG_OK;
}
