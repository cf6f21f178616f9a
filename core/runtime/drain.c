/* drain.c: destroys retired objects that have become idle. Calls that may block anyway run it. The usual drain takes a
 * bounded time, however many streams and objects there are: it goes on where the one before has stopped. */
#include "runtime/stream.h"

#include <time.h>

#define EXPORTED_BACKLOG ((uint64_t)1 << 30) /* bytes that may wait for unknown streams */

/* What one drain may still do. Each kind of object has its own budget, so that none holds up another. */
struct drain_budget {
    uint32_t polls;         /* of streams that turn out to be busy, for each purpose */
    uint32_t streams;       /* to visit */
    uint32_t holding;       /* streams that objects wait for */
    uint32_t holding_polls; /* of these, streams that turn out to be busy */
    uint32_t in_use;        /* objects of one queue that turn out to be in use, or fresh ones */
    uint32_t fresh, held, pending, may_wait; /* objects to examine */
    bool later;                              /* leave what may wait for ggi_drain_unlock */
    bool behind;                             /* set if more examinations of `pending` are due */
};

#define DEBT_STEP 16 /* drains with too small a budget, until it is doubled */
#define DEBT_MAX (16 * DEBT_STEP)
#define INTERVAL 64 /* allocations, without debt */
#define INTERVAL_MIN 4
#define ITEMS 1024u
#define IN_USE 64u
/* Of a drain that is due, in an allocation that has a block: it must be short, and the objects may be in no cache any more. At the
 * shortest interval it examines 32 for each allocation, so that many objects that become idle at once need no larger budget. */
#define DUE_ITEMS 128u
#define DUE_STEP 1024 /* drains at that interval with too small a budget, until it is doubled */
#define DUE_MAX (16 * DUE_STEP)

/* How often the budget has to be doubled. */
static uint32_t drain_doublings(const struct gg_device *device)
{
    return atomic_load_explicit(&device->drain_debt, memory_order_relaxed) / DEBT_STEP;
}

uint32_t ggi_drain_interval(const struct gg_device *device)
{
    const uint32_t interval = INTERVAL >> drain_doublings(device);
    return interval < INTERVAL_MIN ? INTERVAL_MIN : interval;
}

static bool drain_is_due(enum ggi_drain_pace pace)
{
    return pace == GGI_PACE_LIGHT || pace == GGI_PACE_DUE;
}

/* Streams that objects wait for, of which each costs a query, even if it is idle. */
static uint32_t drain_holding_most(enum ggi_drain_pace pace)
{
    return pace == GGI_PACE_LIGHT ? 4 : pace == GGI_PACE_FULL || pace == GGI_PACE_DUE ? 32 : 128;
}

/* Work mostly ends in the order in which it was queued, and the streams that have waited longest come first: behind a few that are
 * busy, most are. An allocation that has a block need not find those that are not. */
static uint32_t drain_holding_polls(enum ggi_drain_pace pace)
{
    return drain_is_due(pace) ? 4 : 16;
}

/* The budget grows as long as more is released than drains can examine. With a pace: by allocations, of which each
 * ggi_drain_interval-th drains. These drains first become more frequent, so that a single one takes less time. */
static struct drain_budget drain_budget_of(const struct gg_device *device,
                                           enum ggi_drain_extent extent, enum ggi_drain_pace pace)
{
    const uint32_t all = UINT32_MAX, holding = drain_holding_most(pace);
    const bool due = drain_is_due(pace);
    const uint32_t doublings = due ? device->due_debt / DUE_STEP : drain_doublings(device);
    const uint32_t before = pace && !due ? INTERVAL / ggi_drain_interval(device) : 1;
    const uint32_t items = ((due ? DUE_ITEMS : ITEMS) << doublings) / before,
                   in_use = (IN_USE << doublings) / before;
    if (extent == GGI_DRAIN_SOME)
        return (struct drain_budget){16,     64,    holding, drain_holding_polls(pace),
                                     in_use, items, items,   items,
                                     items,  true,  false};
    const bool later = extent != GGI_DRAIN_FORCE;
    return (struct drain_budget){all, all, all, all, all, all, all, all, all, later, false};
}

/* Where the calls that drain do not become more frequent, it grows at once. Drains that are due, which are short, no longer add to the
 * debt of others once they are as frequent as they can be. */
static void drain_note_debt(struct gg_device *device, const struct drain_budget *left,
                            enum ggi_drain_pace pace)
{
    uint32_t debt = atomic_load(&device->drain_debt);
    if (left->fresh && left->held && left->pending && left->may_wait && !left->behind) {
        debt -= debt < DEBT_STEP ? debt : DEBT_STEP;
        device->due_debt = 0;
    } else if (!drain_is_due(pace) || ggi_drain_interval(device) > INTERVAL_MIN) {
        debt += pace ? 1 : DEBT_STEP;
    } else if (device->due_debt < DUE_MAX) {
        device->due_debt++;
    }
    atomic_store(&device->drain_debt, debt < DEBT_MAX ? debt : DEBT_MAX);
}

/* ---- streams ---- */

/* Whether the stream's work up to @p ticket, as far as it has any, is known to be complete. */
static bool drain_poll_up_to(gg_stream *stream, uint64_t ticket, uint32_t *polls)
{
    const uint64_t submitted = atomic_load(&stream->submitted);
    const uint64_t last = ticket < submitted ? ticket : submitted;
    if (ggi_stream_is_complete(stream, last, false))
        return true;
    if (!*polls)
        return false;
    const bool complete = ggi_stream_poll_locked(stream, last);
    *polls -= !complete;
    return complete;
}

static bool drain_poll(gg_stream *stream, uint32_t *polls)
{
    return drain_poll_up_to(stream, UINT64_MAX, polls);
}

#define VISIT_TURNS 8 /* rounds, in one of which each stream is polled in any case */

/* If many streams stay busy, they would take most of the polls. So half of the polls of a visit are for other streams. */
static bool drain_knows_busy(const gg_stream *stream, const struct drain_budget *budget,
                             uint32_t polls)
{
    return polls <= budget->polls / 2 && stream->found_busy == atomic_load(&stream->submitted) &&
           (stream->serial + stream->device->visit_rounds) % VISIT_TURNS;
}

/* Also closes it, if the user has released it and only blocks still refer to it. */
static void drain_visit(gg_stream *stream, const struct drain_budget *budget, uint32_t *polls)
{
    struct gg_device *device = stream->device;
    const uint64_t ticket = atomic_load(&stream->submitted);
    if (!drain_knows_busy(stream, budget, *polls) && !drain_poll(stream, polls))
        stream->found_busy = ticket;
    if (atomic_load(&stream->deferred)) /* a release may have been added after its ticket had passed */
        ggi_stream_run_releases(stream, false);
    if (!device->closed_rounds || ggi_stream_destroy_closed(stream))
        return;
    device->closed_rounds = 2; /* the current round has missed it */
    *polls -= *polls > 0;
}

/* Whether anything depends on streams for which no object waits. */
static bool drain_must_visit(struct gg_device *device)
{
    if (atomic_exchange(&device->closed, 0) == 1)
        device->closed_rounds = 2;
    return device->closed_rounds || device->pending.first || atomic_load(&device->deferred);
}

/* At most one round. */
static void drain_visit_streams(struct gg_device *device, struct drain_budget *budget)
{
    gg_stream *const start = device->next_visit;
    gg_stream *stream = start ? start : ggi_device_streams(device), *next;
    uint32_t polls = budget->polls;
    bool round = !start;
    for (; budget->streams && polls && stream && !(round && stream == start); budget->streams--) {
        next = stream->next;
        device->next_visit = next; /* which destroying this one does not change */
        drain_visit(stream, budget, &polls);
        if (!next) {
            device->closed_rounds -= device->closed_rounds > 0;
            device->visit_rounds++;
            next = round ? NULL : ggi_device_streams(device);
            round = true;
        }
        stream = next;
    }
    if (device->closed_rounds) /* unless another one was closed in the meantime */
        atomic_compare_exchange_strong(&device->closed, &(int){0}, 2);
}

/* Begins with the stream that was busy the last time. */
bool ggi_device_is_idle(struct gg_device *device)
{
    uint32_t polls = 1;
    if (device->busy && !drain_poll(device->busy, &polls))
        return false;
    for (gg_stream *stream = ggi_device_streams(device); stream; stream = stream->next) {
        device->busy = stream;
        if (!drain_poll(stream, &polls))
            return false;
    }
    device->busy = NULL;
    return true;
}

/* ---- objects ---- */

/* @p polls: also poll the stream that it waits for; or NULL. */
static bool drain_item_is_idle(struct ggi_retired *item, uint32_t *polls)
{
    item->after = NULL;
    item->unknown = item->known = false;
    if (!item->idle || item->idle(item))
        return true;
    if (!polls || !item->after)
        return false;
    drain_poll(item->after, polls);
    item->after = NULL;
    return item->idle(item);
}

/* The queue of the device that it is in now, or NULL. */
static struct ggi_retired_queue *drain_item(struct gg_device *device, struct ggi_retired *item,
                                            uint32_t *polls, bool later)
{
    if (!drain_item_is_idle(item, polls))
        return ggi_retire_keep(device, item);
    if (!later || !item->may_wait || item->locked) {
        item->destroy(item);
    } else {
        item->next = device->ready;
        device->ready = item;
    }
    return NULL;
}

#define POLLS_OF_OTHERS 4 /* see drain_pending */

/* Whether its release has named a ticket that has not passed: then an examination could find nothing more. */
static bool drain_is_early(const struct ggi_retired *item)
{
    return item->known && !ggi_stream_has_passed(item->after, item->ticket);
}

/* If too many objects are in use, those whose examination calls the driver are examined later, after all others. */
static void drain_fresh(struct gg_device *device, struct drain_budget *budget)
{
    struct ggi_retired *item;
    struct ggi_retired_queue *queue;
    uint32_t in_use = budget->in_use;
    for (; budget->fresh && (item = ggi_retire_next(device)); budget->fresh--) {
        const bool later = item->may_wait || (item->polled && !in_use);
        if (drain_is_early(item)) {
            ggi_retire_hold(item);
            continue;
        }
        item->after = NULL;
        item->unknown = false;
        queue =
            later ? ggi_retire_keep(device, item) : drain_item(device, item, NULL, budget->later);
        if (queue != &device->pending)
            continue;
        device->pending_polls += POLLS_OF_OTHERS;
        in_use -= in_use > 0;
    }
}

/* Examine each object of a queue once; move those in use to its end. Returns what is left of @p in_use. */
static uint64_t drain_queue(struct gg_device *device, struct ggi_retired_queue *queue,
                            uint32_t *items, uint32_t *polls, uint64_t in_use, bool later)
{
    struct ggi_retired *item, *const last = queue->last;
    for (bool end = false; *items && in_use && (!polls || *polls) && !end && (item = queue->first);
         --*items) {
        end = item == last;
        queue->first = item->next;
        in_use -= drain_item(device, item, polls, later) == queue;
    }
    return in_use;
}

/* For each object that is added, some others are examined. So idle objects do not accumulate behind those in use: their
 * number stays below a fraction of those, however long the process runs. */
static void drain_pending(struct gg_device *device, struct drain_budget *budget)
{
    const uint64_t most = (uint64_t)POLLS_OF_OTHERS * budget->in_use;
    const uint64_t extra = device->pending_polls < most ? device->pending_polls : most;
    const uint64_t left = drain_queue(device, &device->pending, &budget->pending, NULL,
                                      budget->in_use + extra, budget->later);
    if (left && budget->pending) /* all were examined */
        device->pending_polls = 0;
    else
        device->pending_polls -= left < extra ? extra - left : 0;
    budget->behind = device->pending_polls;
}

/* Whether the first object is idle, or may be once all streams are. Objects that are in use for another reason than a busy
 * stream, such as memory that another device's stream uses, go to the end; one that waits for a busy stream ends the search. */
static bool drain_finds_idle(struct gg_device *device, uint32_t in_use)
{
    struct ggi_retired *item, *const last = device->may_wait.last;
    uint32_t polls = 1;
    for (bool end = false; in_use && !end && (item = device->may_wait.first); in_use--) {
        if (drain_item_is_idle(item, &polls))
            return true;
        if (item->after) {
            device->busy = item->after;
            return drain_poll(item->after, &polls);
        }
        end = item == last;
        device->may_wait.first = item->next;
        ggi_retire_keep(device, item);
    }
    return false;
}

/* Polls all streams, of which there may be many, only if an object waits for nothing else. */
static bool drain_may_free(struct gg_device *device, uint32_t in_use)
{
    uint32_t polls = 1;
    if (device->busy && !drain_poll(device->busy, &polls))
        return false;
    return drain_finds_idle(device, in_use) && ggi_device_is_idle(device);
}

static void drain_may_wait(struct gg_device *device, bool force, struct drain_budget *budget)
{
    uint32_t polls = budget->polls;
    if (device->may_wait.first && (force || drain_may_free(device, budget->in_use)))
        drain_queue(device, &device->may_wait, &budget->may_wait, &polls, budget->in_use,
                    budget->later);
}

/* It was released long ago, so that the processor's cache may not hold it any more. */
static void drain_prefetch(const struct ggi_retired *item)
{
    for (size_t line = 0; item && line < 4; line++)
        __builtin_prefetch((const char *)item + 64 * line);
}

/* The objects whose tickets the stream has passed. Those left wait until it is polled again. */
static void drain_held(gg_stream *stream, struct drain_budget *budget)
{
    struct gg_device *device = stream->device;
    const uint64_t passed = atomic_load(&stream->completed);
    if (!stream->holding)
        return;
    ggi_retire_unlist(stream);
    for (struct ggi_retired *item;
         (item = ggi_retire_first(stream)) && item->ticket <= passed && budget->held;
         budget->held--) {
        ggi_retire_pop(stream);
        drain_prefetch(ggi_retire_first(stream));
        drain_item(device, item, NULL, budget->later);
    }
    if (ggi_retire_first(stream) && !stream->holding) /* an object may have been added again */
        ggi_retire_list(&device->busy_holding, stream);
}

/* Poll each stream of a list once, until @p polls polls have found a busy one; returns how many of these are left. An object
 * that another stream also uses is examined again when that stream is polled. */
static uint32_t drain_holding_list(struct ggi_holding *list, uint32_t polls, uint32_t most,
                                   struct drain_budget *budget)
{
    for (uint32_t left = list->count < most ? list->count : most;
         left && list->first && polls && budget->held; left--, budget->holding--) {
        gg_stream *stream = list->first;
        drain_poll_up_to(stream, stream->held_ticket, &polls);
        drain_held(stream, budget);
    }
    return polls;
}

/* A stream that has just got objects is often idle soon, so it need not wait for its turn behind those that stay busy. */
static void drain_holding(struct gg_device *device, struct drain_budget *budget)
{
    const uint32_t polls = budget->holding_polls, half = polls / 2, most = budget->holding / 2;
    const uint32_t others = device->busy_holding.count < most ? device->busy_holding.count : most;
    const uint32_t left =
        drain_holding_list(&device->holding, half, budget->holding - others, budget);
    drain_holding_list(&device->busy_holding, polls - half + left, budget->holding, budget);
}

/* ---- a drain ---- */

struct drain_rest {
    struct ggi_retired *ready;
    bool wait;
};

static struct drain_rest drain_take(struct gg_device *device)
{
    const struct drain_rest rest = {device->ready, device->epoch.wanted};
    device->ready = NULL;
    device->epoch.wanted = false;
    return rest;
}

static void drain_finish(struct gg_device *device, struct drain_rest rest)
{
    struct ggi_internal_scope own;
    if (!rest.ready && !rest.wait)
        return;
    ggi_internal_begin(device, &own);
    if (rest.wait)
        ggi_epoch_wait(device);
    for (struct ggi_retired *item; (item = rest.ready);) {
        rest.ready = item->next;
        item->destroy(item);
    }
    ggi_internal_end(device, &own);
}

bool ggi_drain_waiting(const struct gg_device *device)
{
    return atomic_load_explicit(&device->retired, memory_order_relaxed) ||
           atomic_load_explicit(&device->waiting, memory_order_relaxed) ||
           atomic_load_explicit(&device->closed, memory_order_relaxed) ||
           atomic_load_explicit(&device->over, memory_order_relaxed) ||
           atomic_load_explicit(&device->deferred, memory_order_relaxed) ||
           atomic_load_explicit(&ggi_unmarked, memory_order_relaxed);
}

static void drain_sweep(struct gg_device *device, enum ggi_drain_extent extent, bool force,
                        struct drain_budget *budget)
{
    do {
        drain_fresh(device, budget);
        drain_holding(device, budget);
        drain_pending(device, budget);
        drain_may_wait(device, force, budget);
    } while (extent != GGI_DRAIN_SOME &&
             atomic_load(&device->retired)); /* destroying memory releases streams */
    drain_fresh(device, budget);
    ggi_retire_note_waiting(device);
}

/* Objects that unknown streams use are examined only if a round of the epoch has ended since. */
static void drain_unknown(struct gg_device *device)
{
    const uint64_t done = atomic_load(&device->epoch.done);
    if (device->unknown_done == done)
        return;
    device->unknown_done = done;
    ggi_retire_examine_unknown(device);
}

/* What another thread wanted while this one drained. */
static enum ggi_drain_extent drain_wanted(struct gg_device *device, enum ggi_drain_extent extent)
{
    const bool all = atomic_exchange(&device->all_wanted, false);
    return all && extent == GGI_DRAIN_SOME ? GGI_DRAIN_ALL : extent;
}

/* @p stream: the caller has waited for it; or NULL. */
static bool drain_locked(struct gg_device *device, enum ggi_drain_extent extent,
                         enum ggi_drain_pace pace, gg_stream *stream)
{
    extent = drain_wanted(device, extent);
    struct drain_budget budget = drain_budget_of(device, extent, pace);
    struct ggi_internal_scope own;
    ggi_internal_begin(device, &own);
    if (atomic_exchange(&device->over, 0))
        ggi_device_parts.before_sweep(device);
    drain_fresh(device, &budget);
    const bool force = extent == GGI_DRAIN_FORCE || ggi_device_parts.must_free(device);
    if (drain_must_visit(device) || force || extent != GGI_DRAIN_SOME)
        drain_visit_streams(device, &budget);
    const bool backlog = atomic_load(&device->epoch.held) > EXPORTED_BACKLOG;
    const bool idle = (backlog || extent != GGI_DRAIN_SOME) && ggi_device_is_idle(device);
    ggi_epoch_poll(device, force || (idle && backlog));
    if (extent == GGI_DRAIN_FORCE)
        drain_finish(device, drain_take(device));
    drain_unknown(device);
    if (stream)
        drain_held(stream, &budget);
    drain_sweep(device, extent, force, &budget);
    ggi_device_parts.after_sweep(device);
    if (extent == GGI_DRAIN_SOME)
        drain_note_debt(device, &budget, pace);
    ggi_internal_end(device, &own);
    return idle;
}

bool ggi_drain_locked(struct gg_device *device, enum ggi_drain_extent extent)
{
    return drain_locked(device, extent, GGI_PACE_NONE, NULL);
}

static void drain_release_lock(struct gg_device *device)
{
    const struct drain_rest rest = drain_take(device);
    pthread_mutex_unlock(&device->drain_lock);
    drain_finish(device, rest);
    ggi_record_markers();
}

void ggi_drain_unlock(struct gg_device *device)
{
    drain_release_lock(device);
    while (atomic_load(&device->all_wanted) && !pthread_mutex_trylock(&device->drain_lock)) {
        if (drain_wanted(device, GGI_DRAIN_SOME) == GGI_DRAIN_ALL && !atomic_load(&ggi_shutting_down))
            drain_locked(device, GGI_DRAIN_ALL, GGI_PACE_NONE, NULL);
        drain_release_lock(device);
    }
}

/* One scope for the drain and for what is done after the unlock. */
static void drain_and_unlock(struct gg_device *device, enum ggi_drain_extent extent,
                             enum ggi_drain_pace pace, gg_stream *stream)
{
    struct ggi_internal_scope own;
    const bool drains = ggi_drain_waiting(device) && !atomic_load(&ggi_shutting_down);
    if (drains) {
        ggi_internal_begin(device, &own);
        drain_locked(device, extent, pace, stream);
    }
    ggi_drain_unlock(device);
    if (drains)
        ggi_internal_end(device, &own);
}

static void drain_some(struct gg_device *device, enum ggi_drain_pace pace, gg_stream *stream)
{
    if (ggi_drain_waiting(device) && !pthread_mutex_trylock(&device->drain_lock))
        drain_and_unlock(device, GGI_DRAIN_SOME, pace, stream);
}

void ggi_drain(struct gg_device *device)
{
    drain_some(device, GGI_PACE_NONE, NULL);
}

#define STREAMS_MANY 128 /* a native one may have megabytes of the device's memory */
#define TRIES 200        /* 10 ms */

/* A single thread drains. Where several create and release streams, it would fall behind without end, so beyond that number they
 * take turns. Not for long: a driver may wait for a host function when a stream is destroyed. */
void ggi_drain_for_stream(struct gg_device *device)
{
    for (int i = 0; i < TRIES && ggi_drain_waiting(device); i++) {
        if (!pthread_mutex_trylock(&device->drain_lock)) {
            drain_and_unlock(device, GGI_DRAIN_SOME, GGI_PACE_NONE, NULL);
            return;
        }
        if (atomic_load_explicit(&device->stream_count, memory_order_relaxed) < STREAMS_MANY)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

void ggi_drain_paced(struct gg_device *device, enum ggi_drain_pace pace)
{
    drain_some(device, pace, NULL);
}

void ggi_drain_after_wait(struct gg_device *device, gg_stream *stream)
{
    drain_some(device, GGI_PACE_NONE, stream);
}

#define OTHERS_INTERVAL 32 /* calls of which one drains, where much waits all the same */

/* After a wait only if something was released since the last drain, or the stream holds something: memory that unknown streams use
 * may wait for long. */
void ggi_drain_others_now(gg_stream *stream, bool waited)
{
    struct gg_device *device = stream->device;
    if (ggi_stream_is_captured(stream))
        return;
    if (!waited) {
        if (atomic_fetch_add(&device->others_passed, 1) % OTHERS_INTERVAL == 0)
            ggi_drain(device);
    } else if (!pthread_mutex_trylock(&device->drain_lock)) {
        if (stream->holding || atomic_load(&device->retired))
            drain_and_unlock(device, GGI_DRAIN_SOME, GGI_PACE_NONE, stream);
        else
            ggi_drain_unlock(device);
    }
}

static void drain_all_and_unlock(struct gg_device *device)
{
    atomic_store(&device->all_wanted, false);
    drain_and_unlock(device, GGI_DRAIN_ALL, GGI_PACE_NONE, NULL);
}

/* Set first: a thread that unlocks after this attempt reads it. */
void ggi_drain_all(struct gg_device *device)
{
    atomic_store(&device->all_wanted, true);
    if (!pthread_mutex_trylock(&device->drain_lock))
        drain_all_and_unlock(device);
}

void ggi_drain_all_now(struct gg_device *device)
{
    pthread_mutex_lock(&device->drain_lock);
    drain_all_and_unlock(device);
}
