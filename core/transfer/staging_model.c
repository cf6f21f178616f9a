/* staging_model.c: chooses the fastest way known, follows changes within a second, and now and then tries another one,
 * for a small part of the time that copies take. */
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

/* ---- the classes ---- */

/* Of larger copies waking the threads is a small part. */
static int class_of(struct ggi_staging_kind kind)
{
    int class = 0;
    while (class + 1 < GGI_STAGING_CLASSES && kind.nbytes >> (CLASS_MIN + (unsigned)class))
        class ++;
    return kind.spaced && class < GGI_STAGING_SPACED ? GGI_STAGING_CLASSES + class : class;
}

static bool class_is_spaced(int class)
{
    return class >= GGI_STAGING_CLASSES;
}

/* ---- the guess ---- */

/* Typical of machines with such devices: per copy, and per thread. */
#define LINK_DEFAULT 64.0
#define LINK_SHARE 0.75
#define THREAD_RATE 6.0
#define COLD_THREAD_RATE 4.5 /* of spaced copies, */
#define WAKE_NS 60000.0      /* whose first part the caller copies alone */
#define DRIVER_RATE 9.0
#define DRIVER_NS 5000.0
#define STAGING_NS 12000.0

static double least(double one, double other)
{
    return one < other ? one : other;
}

static double guess(const struct ggi_staging_model *model, int choice, struct ggi_staging_kind kind)
{
    const bool spaced = class_is_spaced(class_of(kind));
    const double link = LINK_SHARE * (model->link > 0 ? model->link : LINK_DEFAULT);
    const double thread = spaced ? COLD_THREAD_RATE : THREAD_RATE, nbytes = (double)kind.nbytes;
    if (!choice)
        return nbytes / (DRIVER_NS + nbytes / least(DRIVER_RATE, link));
    const double alone_ns = least(spaced ? WAKE_NS : 0, nbytes / thread);
    const double rest = nbytes - alone_ns * thread;
    return nbytes / (STAGING_NS + alone_ns + rest / least(thread * threads_of[choice], link));
}

/* ---- the estimate ---- */

/* Another thread's copy may have ended after @p now. */
static uint64_t time_since(uint64_t then, uint64_t now)
{
    return now > then ? now - then : 0;
}

static double estimate(const struct ggi_staging_model *model, int choice,
                       struct ggi_staging_kind kind, uint64_t now)
{
    const struct ggi_staging_estimate *known = &model->of[class_of(kind)][choice];
    const uint64_t age = time_since(known->at, now);
    double weight = age <= RECENT ? 1.0 : 0.0;
    if (!known->at)
        return guess(model, choice, kind);
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

/* The first choice that no later one exceeds by much: @p rates of @p count choices. */
static int find_fastest(const double *rates, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (rates[i] > rates[best] * FEWER_BY)
            best = i;
    return best;
}

static int choose_by_guess(const struct ggi_staging_model *model, struct ggi_staging_kind kind,
                           int most)
{
    double rates[GGI_STAGING_CHOICES];
    int count = 0;
    for (; choice_exists(count, most); count++)
        rates[count] = guess(model, count, kind);
    return find_fastest(rates, count);
}

static int choose_best(const struct ggi_staging_model *model, struct ggi_staging_kind kind,
                       int most, uint64_t now)
{
    const int current = model->current[class_of(kind)];
    double rates[GGI_STAGING_CHOICES];
    int count = 0;
    for (; choice_exists(count, most); count++)
        rates[count] = estimate(model, count, kind, now);
    const int best = find_fastest(rates, count);
    const bool stays = choice_exists(current, most) && rates[current] * LEAVE_BY >= rates[best];
    return stays ? current : best;
}

/* ---- trials ---- */

#define TRIAL_EVERY (250 * MS)
#define RETRY_GUESS (OLD / 2)  /* only the guess leads back after a long load */
#define TRIAL_SHARE (1.0 / 64) /* of the time that copies take, and of short pauses, up to */
#define PAUSES_MAX 3.0         /* so many times as long as the copy after them */
#define PAUSE_SHORT (250 * MS)
#define GUESS_CHARGE 0.25 /* the part of its cost that a trial of the guess is charged */
#define TRIAL_DOUBT 0.7   /* a choice never made may be so much slower than guessed */
#define CREDIT_MAX 2.5e8  /* enough for the driver's copy of 1 GiB */

/* A copy that the model is asked about. */
struct request {
    struct ggi_staging_kind kind;
    int most;
    uint64_t now;
    int best; /* the choice known to be fastest */
};

/* What the copy would take longer than by the best choice. */
static double trial_cost(const struct ggi_staging_model *model, const struct request *copy,
                         int choice)
{
    const bool known = model->of[class_of(copy->kind)][choice].at != 0;
    const double best_rate = estimate(model, copy->best, copy->kind, copy->now);
    double rate = estimate(model, choice, copy->kind, copy->now);
    if (!known)
        rate *= TRIAL_DOUBT;
    const double nbytes = (double)copy->kind.nbytes, cost = nbytes / rate - nbytes / best_rate;
    return cost > 0 ? cost : 0;
}

/* Whether a choice was not made for a while, and its trial can be afforded. */
static bool trial_is_due(const struct ggi_staging_model *model, const struct request *copy,
                         int choice, uint64_t age, double charge)
{
    return choice != copy->best && choice_exists(choice, copy->most) &&
           time_since(model->of[class_of(copy->kind)][choice].at, copy->now) >= age &&
           trial_cost(model, copy, choice) * charge <= model->credit;
}

/* The driver, or one more or fewer threads: of those that are due, the one made longest ago. */
static int find_near_trial(const struct ggi_staging_model *model, const struct request *copy)
{
    const struct ggi_staging_estimate *known = model->of[class_of(copy->kind)];
    const int near[] = {0, copy->best - 1, copy->best + 1};
    int found = copy->best;
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++)
        if (trial_is_due(model, copy, near[i], OLD, 1) &&
            (found == copy->best || known[near[i]].at < known[found].at))
            found = near[i];
    return found;
}

/* First the choice that the guess alone would make, which brings most when a load has ended. */
static int choose_trial(struct ggi_staging_model *model, const struct request *copy)
{
    if (time_since(model->tried_at, copy->now) < TRIAL_EVERY)
        return copy->best;
    const int guessed = choose_by_guess(model, copy->kind, copy->most);
    const bool by_guess = trial_is_due(model, copy, guessed, RETRY_GUESS, GUESS_CHARGE);
    const int found = by_guess ? guessed : find_near_trial(model, copy);
    if (found != copy->best) {
        model->credit -= trial_cost(model, copy, found) * (by_guess ? GUESS_CHARGE : 1);
        model->tried_at = copy->now;
    }
    return found;
}

/* A program with long pauses has no hurry to find out. */
static void earn_credit(struct ggi_staging_model *model, uint64_t ns, uint64_t now)
{
    const uint64_t since = time_since(model->learned_at, now), pause = since > ns ? since - ns : 0;
    const double most = PAUSES_MAX * (double)ns;
    double time = (double)ns;
    if (pause <= PAUSE_SHORT)
        time += (double)pause < most ? (double)pause : most;
    model->credit += time * TRIAL_SHARE;
    if (model->credit > CREDIT_MAX)
        model->credit = CREDIT_MAX;
    model->learned_at = now;
}

/* ---- the interface ---- */

void ggi_staging_model_start(struct ggi_staging_model *model, double link)
{
    memset(model, 0, sizeof *model);
    model->link = link;
    for (int i = 0; i < GGI_STAGING_CLASSES + GGI_STAGING_SPACED; i++)
        model->current[i] = -1;
}

int ggi_staging_model_choose(struct ggi_staging_model *model, struct ggi_staging_kind kind,
                             int most, uint64_t now)
{
    const int best = choose_best(model, kind, most, now);
    model->current[class_of(kind)] = best;
    return threads_of[choose_trial(model, &(struct request){kind, most, now, best})];
}

void ggi_staging_model_learn(struct ggi_staging_model *model, struct ggi_staging_kind kind,
                             int threads, uint64_t ns, uint64_t now)
{
    const double rate = (double)kind.nbytes / (double)(ns ? ns : 1);
    int choice = 0;
    while (choice + 1 < GGI_STAGING_CHOICES && threads_of[choice] < threads)
        choice++;
    struct ggi_staging_estimate *known = &model->of[class_of(kind)][choice];
    if (!known->at)
        known->recent = known->usual = rate;
    known->recent += (rate - known->recent) / 2;
    known->usual += (rate - known->usual) / 8;
    known->at = now;
    earn_credit(model, ns, now);
}
