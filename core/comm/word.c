/* word.c: words in shared memory on which processes wait. */
#include "comm/comm.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Not FUTEX_PRIVATE: the word is in memory of several processes. */
void ggi_comm_word_sleep(struct comm_word *word, uint32_t value, uint64_t ns)
{
    const struct timespec limit = {.tv_sec = (time_t)(ns / 1000000000u),
                                   .tv_nsec = (long)(ns % 1000000000u)};
    atomic_fetch_add(&word->waiters, 1);
    syscall(SYS_futex, &word->value, FUTEX_WAIT, value, &limit, NULL, 0);
    atomic_fetch_sub(&word->waiters, 1);
}

void ggi_comm_word_wake(struct comm_word *word)
{
    if (atomic_load(&word->waiters))
        syscall(SYS_futex, &word->value, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* The other rank is often about to arrive; yielding lets it run where there are more ranks than processors. */
bool ggi_comm_word_spin(struct comm_word *word, uint32_t value)
{
    for (int i = 0; i < 2000; i++) {
        if (atomic_load_explicit(&word->value, memory_order_acquire) != value)
            return true;
        if (i % 200 == 199)
            sched_yield();
    }
    return false;
}
