/* word.c: words in shared memory on which processes wait. */
#include "base/process_state.h"
#include "comm/comm.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WORD_SPIN_NS 100000 /* before a rank sleeps */
#define WORD_LOOKS 32       /* before it yields */

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

static void word_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The other rank is often about to arrive, and to wake a rank that sleeps takes longer than most operations. Yielding lets others
 * run where there are more of them than processors. */
bool ggi_comm_word_spin(struct comm_word *word, uint32_t value)
{
    const uint64_t begin = ggi_now_ns();
    do {
        for (int i = 0; i < WORD_LOOKS; i++) {
            if (atomic_load_explicit(&word->value, memory_order_acquire) != value)
                return true;
            word_pause();
        }
        sched_yield();
    } while (ggi_now_ns() - begin < WORD_SPIN_NS);
    return false;
}
