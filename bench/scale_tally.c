/* scale_tally.c: how often each time was measured: to the nanosecond up to 65 µs, above that to 1.6 %. So a thread that runs for a second
 * needs no more memory than one that makes a hundred calls. */
#include "scale.h"

#define EXACT_BITS 16
#define EXACT (1 << EXACT_BITS)
#define PARTS_BITS 6 /* of a power of two, above EXACT */
#define BINS (EXACT + ((64 - EXACT_BITS) << PARTS_BITS))

struct tally *tally_new(void)
{
    struct tally *self = calloc(1, sizeof *self + BINS * sizeof self->bins[0]);
    if (!self)
        exit(1);
    return self;
}

static size_t bin_of(uint64_t ns)
{
    if (ns < EXACT)
        return (size_t)ns;
    const unsigned power = 63u - (unsigned)__builtin_clzll(ns);
    const uint64_t part = (ns >> (power - PARTS_BITS)) & ((1u << PARTS_BITS) - 1);
    return EXACT + ((size_t)(power - EXACT_BITS) << PARTS_BITS) + (size_t)part;
}

/* The shortest time of a bin. */
static uint64_t time_of(size_t bin)
{
    if (bin < EXACT)
        return bin;
    const size_t power = ((bin - EXACT) >> PARTS_BITS) + EXACT_BITS;
    const uint64_t part = (bin - EXACT) & ((1u << PARTS_BITS) - 1);
    return ((1u << PARTS_BITS) + part) << (power - PARTS_BITS);
}

void tally_add(struct tally *self, uint64_t ns)
{
    self->sum += (double)ns;
    self->bins[bin_of(ns)]++;
    if (ns > self->worst) {
        self->worst = ns;
        self->worst_at = self->count;
        self->worst_driver = driver_ns;
    }
    self->count++;
}

void tally_merge(struct tally *self, const struct tally *other)
{
    self->sum += other->sum;
    self->count += other->count;
    for (size_t i = 0; i < BINS; i++)
        self->bins[i] += other->bins[i];
    if (other->worst <= self->worst)
        return;
    self->worst = other->worst;
    self->worst_at = other->worst_at;
    self->worst_driver = other->worst_driver;
}

/* The time that so many calls do not exceed. */
static uint64_t time_at(const struct tally *self, long calls_below)
{
    size_t bin = 0;
    for (long below = self->bins[0]; below <= calls_below && bin < BINS - 1;)
        below += self->bins[++bin];
    return time_of(bin);
}

struct figures tally_figures(const struct tally *self)
{
    return (struct figures){.mean = self->sum / (double)self->count,
                            .median = time_at(self, self->count / 2),
                            .most = time_at(self, (long)((double)self->count * 0.999)),
                            .worst = self->worst,
                            .worst_driver = self->worst_driver,
                            .worst_at = self->worst_at};
}
