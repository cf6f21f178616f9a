/* signals.h: threads of the library leave signals to the program's own threads. */
#ifndef GPUGLUE_BASE_SIGNALS_H
#define GPUGLUE_BASE_SIGNALS_H

#include <signal.h>
#include <stddef.h>

/* For threads that are created from now on; @p before is the mask to set again. Faults of a thread must still be reported. */
static inline void ggi_block_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

#endif
