/* word_choice.h: how the host waits for a small download: for the word that the device writes behind it, or by queries of the
 * driver. On most machines the word is faster; on some it arrives microseconds after the driver knows. The choice follows
 * the times of the program's own downloads. It reads no clock and calls no other code. */
#ifndef GPUGLUE_WORD_CHOICE_H
#define GPUGLUE_WORD_CHOICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GGI_WORD_TRY_EVERY 64u /* waits: one of so many is done the other way */

/* All zero at first. Threads may use it at once: what one of them then overwrites is one time of many. */
struct ggi_word_choice {
    _Atomic(uint32_t) waits;
    _Atomic(bool) queries;
    _Atomic(uint64_t)
        least[2]; /* recent nanoseconds of a wait for the word, and of one by queries; 0: none yet */
};

/* Whether the next wait should query the driver. */
bool ggi_word_choice_next(struct ggi_word_choice *choice);
/* A wait of that kind took @p ns nanoseconds. */
void ggi_word_choice_learn(struct ggi_word_choice *choice, bool queried, uint64_t ns);

#endif
