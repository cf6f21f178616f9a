/* word_choice.c: waits for small downloads: the faster of two ways, from their times. */
#include "transfer/word_choice.h"

/* The least time rises with each slower wait by this share, so that times of long ago are forgotten: most waits are longer only
 * because of other work before the download. */
#define RISE_SHARE 32u
/* Queries are chosen if the word takes this share and these nanoseconds longer, which noise rarely does. */
#define LATE_SHARE 4u
#define LATE_NS 1000u

bool ggi_word_choice_next(struct ggi_word_choice *choice)
{
    const uint32_t waits = atomic_load_explicit(&choice->waits, memory_order_relaxed) + 1;
    atomic_store_explicit(&choice->waits, waits, memory_order_relaxed);
    const bool other = waits % GGI_WORD_TRY_EVERY == 0;
    return atomic_load_explicit(&choice->queries, memory_order_relaxed) != other;
}

static uint64_t choice_note(_Atomic(uint64_t) *least, uint64_t ns)
{
    const uint64_t before = atomic_load_explicit(least, memory_order_relaxed),
                   risen = before + before / RISE_SHARE + 1;
    const uint64_t now = !before || ns < risen ? ns : risen;
    atomic_store_explicit(least, now, memory_order_relaxed);
    return now;
}

void ggi_word_choice_learn(struct ggi_word_choice *choice, bool queried, uint64_t ns)
{
    const bool queries = atomic_load_explicit(&choice->queries, memory_order_relaxed);
    const uint64_t own = choice_note(&choice->least[queried], ns),
                   other = atomic_load_explicit(&choice->least[!queried], memory_order_relaxed);
    const uint64_t word = queried ? other : own, query = queried ? own : other;
    if (!other)
        return;
    if (queries ? word < query : word > query + query / LATE_SHARE + LATE_NS)
        atomic_store_explicit(&choice->queries, !queries, memory_order_relaxed);
}
