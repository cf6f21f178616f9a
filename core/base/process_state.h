/* process_state.h: forks, the shutdown, the wait hook and the clock. */
#ifndef GPUGLUE_PROCESS_STATE_H
#define GPUGLUE_PROCESS_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Incremented in a forked child. Objects of another generation must not be used. */
extern _Atomic(uint32_t) ggi_generation;
extern _Atomic(int) ggi_shutting_down; /* gg_shutdown has begun */
void ggi_watch_forks(void);            /* before the first backend is initialised */
/* Reinitialise a static lock in a forked child: a thread of the parent may have held it. */
void ggi_reset_in_child(pthread_mutex_t *lock);
/* The same for a lock that is defined before this. The linker makes a table of them, so that nothing runs for it. */
#define GGI_RESET_IN_CHILD(lock) \
    static pthread_mutex_t *lock##_reset __attribute__((used, section("ggi_locks"))) = &(lock);
/* From now on a forked child closes its copy of the file. False: there is no memory to remember it. */
bool ggi_close_in_child(int file);
/* Close such a file in this process. */
void ggi_close_file(int file);

#define GGI_SLICE_NS 50000000ull /* a wait polls for an interrupt this often */
int ggi_interrupted(void);       /* calls the wait hook */
uint64_t ggi_now_ns(void);       /* monotonic */

#endif
