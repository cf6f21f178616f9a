/* floor.h: copies of pageable memory by several threads (floor_threads.c), for the module floor.c. One thread at a time calls these
 * functions. A number of threads includes the calling thread, which copies as well. */
#ifndef FLOOR_H
#define FLOOR_H

#include "raw.h"

#include <stdbool.h>

#define FLOOR_THREADS 16 /* at most */

/* Start as many threads as are missing. If they spin, the first `threads` do not sleep until floor_rest; else all sleep
 * unless they copy. Returns an errno value. */
int floor_start(int threads, bool spin);

/* How many threads there are. */
int floor_started(void);

/* From now on threads sleep unless they copy. */
void floor_rest(void);

/* End the threads, and wait until they have ended. */
void floor_stop(void);

/* Make and destroy the events of floor_copy_down. This and what follows return the driver's error code, and need its context. */
int floor_make_events(const struct raw_driver *driver);
int floor_destroy_events(const struct raw_driver *driver);

/* Copy between the caller's memory and the device, through pinned memory that is as large: each byte of it is used once. An upload may
 * be queued when this returns. */
int floor_copy_up(const struct raw *raw, const struct raw_driver *driver, const void *host,
                  size_t nbytes, int threads);
int floor_copy_down(const struct raw *raw, const struct raw_driver *driver, void *host,
                    size_t nbytes, int threads);

#endif
