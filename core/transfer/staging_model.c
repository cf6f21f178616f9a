/* staging_model.c: chooses the fastest way known, follows changes within a second, and now and then tries a
 * neighbour of its choice, for a small part of the time that copies take. */
#include "transfer/staging_model.h"

#include <stdbool.h>
#include <string.h>

static const int threads_of[GGI_STAGING_CHOICES] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

#define CLASS_MIN 18u /* the first class has less than 2^18 bytes */
#define MS UINT64_C(1000000)
#define RECENT \
    (100 * MS) /* until then only the last copies count, then more and more the usual rate, */
#define OLD \
    (1000 * MS) /* and from then on only that: load, processors and clock may have changed */

/* ---- the guess ---- */

/* Typical of machines with such devices: per copy, and per thread. */
#define LINK_DEFAULT 64.0
#define LINK_SHARE 0.75
#define THREAD_RATE 6.0
#define DRIVER_RATE 9.0
#define DRIVER_NS 5000.0
#define STAGING_NS 12000.0

static double guess(const struct ggi_staging_model *model, int choice, double nbytes)
{
    const double link = LINK_SHARE * (model->link > 0 ? model->link : LINK_DEFAULT);
    double rate = choice ? THREAD_RATE * threads_of[choice] : DRIVER_RATE;
    rate = rate < link ? rate : link;
    return nbytes / ((choice ? STAGING_NS : DRIVER_NS) + nbytes / rate);
}

/* ---- the estimate ---- */

static int class_of(size_t nbytes)
{
    int class = 0;
    while (class + 1 < GGI_STAGING_CLASSES && nbytes >> (CLASS_MIN + (unsigned)class))
        class ++;
    return class;
}

static double estimate(const struct ggi_staging_model *model, int choice, size_t nbytes,
                       uint64_t now)
{
    const struct ggi_staging_estimate *known = &model->of[class_of(nbytes)][choice];
    const uint64_t age = now > known->at ? now - known->at : 0;
    double weight = age <= RECENT ? 1.0 : 0.0;
    if (!known->at)
        return guess(model, choice, (double)nbytes);
    if (age > RECENT && age < OLD)
        weight = (double)(OLD - age) / (double)(OLD - RECENT);
    return weight * known->recent + (1.0 - weight) * known->usual;
}

/* ---- the choice ---- */

#define FEWER_BY 1.05 /* more threads must be faster by so much, */
#define LEAVE_BY 1.10 /* and another choice than the current one by so much */

static bool choice_exists(int choice, int most)
{
    return choice >= 0 && choice < GGI_STAGING_CHOICES && threads_of[choice] <= most;
}

static int choose_best(const struct ggi_staging_model *model, size_t nbytes, int most, uint64_t now)
{
    const int current = model->current[class_of(nbytes)];
    double most_rate = 0;
    int best = 0;
    for (int i = 0; choice_exists(i, most); i++) {
        double rate = estimate(model, i, nbytes, now);
        if (rate > most_rate * FEWER_BY) {
            best = i;
            most_rate = rate;
        }
    }
    if (choice_exists(current, most) && estimate(model, current, nbytes, now) * LEAVE_BY >= most_rate)
        return current;
    return best;
}

/* ---- trials ---- */

#define TRIAL_EVERY (250 * MS)
#define TRIAL_SHARE (1.0 / 64) /* of the time that copies take */
#define TRIAL_DOUBT 0.7        /* a choice may be so much slower than estimated */
#define CREDIT_MAX 5e7

/* What the copy would take longer than by the best choice. */
static double trial_cost(const struct ggi_staging_model *model, int choice, int best, size_t nbytes,
                         uint64_t now)
{
    const double slow = TRIAL_DOUBT * estimate(model, choice, nbytes, now);
    const double cost = (double)nbytes / slow - (double)nbytes / estimate(model, best, nbytes, now);
    return cost > 0 ? cost : 0;
}

/* The driver, or one more or fewer threads: of those that can be afforded, the one tried longest ago. */
static int choose_trial(struct ggi_staging_model *model, size_t nbytes, int most, int best,
                        uint64_t now)
{
    const struct ggi_staging_estimate *known = model->of[class_of(nbytes)];
    const int near[] = {0, best - 1, best + 1};
    int found = best;
    if (now - model->tried_at < TRIAL_EVERY)
        return best;
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++)
        if (near[i] != best && choice_exists(near[i], most) && now - known[near[i]].at >= OLD &&
            (found == best || known[near[i]].at < known[found].at) &&
            trial_cost(model, near[i], best, nbytes, now) <= model->credit)
            found = near[i];
    if (found != best) {
        model->credit -= trial_cost(model, found, best, nbytes, now);
        model->tried_at = now;
    }
    return found;
}

/* ---- the interface ---- */

void ggi_staging_model_start(struct ggi_staging_model *model, double link)
{
    memset(model, 0, sizeof *model);
    model->link = link;
    for (int i = 0; i < GGI_STAGING_CLASSES; i++)
        model->current[i] = -1;
}

int ggi_staging_model_choose(struct ggi_staging_model *model, size_t nbytes, int most, uint64_t now)
{
    const int best = choose_best(model, nbytes, most, now);
    model->current[class_of(nbytes)] = best;
    return threads_of[choose_trial(model, nbytes, most, best, now)];
}

void ggi_staging_model_learn(struct ggi_staging_model *model, size_t nbytes, int threads,
                             uint64_t ns, uint64_t now)
{
    const double rate = (double)nbytes / (double)(ns ? ns : 1);
    int choice = 0;
    while (choice + 1 < GGI_STAGING_CHOICES && threads_of[choice] < threads)
        choice++;
    struct ggi_staging_estimate *known = &model->of[class_of(nbytes)][choice];
    if (!known->at)
        known->recent = known->usual = rate;
    known->recent += (rate - known->recent) / 2;
    known->usual += (rate - known->usual) / 8;
    known->at = now;
    model->credit += (double)ns * TRIAL_SHARE;
    if (model->credit > CREDIT_MAX)
        model->credit = CREDIT_MAX;
}
