/* ended.c: work that its watcher has ended without a result, such as collective operations of which a rank is lost. Waits for
 * streams and events behind that work report it, since the driver does not. */
#include "runtime/call.h"
#include "runtime/stream.h"

#include <stdlib.h>

#define ENDED_MAX 1024u /* the oldest are forgotten */

/* The unfinished work of a stream at that time, by tickets. */
struct ended {
    uint64_t serial, after, last;
    uint64_t watcher; /* its bits */
    bool stays;       /* on the device: only other code can end it there */
    unsigned number;  /* of those before it */
    struct ggi_kept_error error;
};

static pthread_mutex_t ended_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ended *ended[ENDED_MAX];
static _Atomic(unsigned) ended_count; /* so far */

/* A stream that the driver orders may be watched up to its next work; one with other code's graph always is (UINT64_MAX). */
static uint64_t ended_end(const gg_stream *stream)
{
    const uint64_t submitted = atomic_load(&stream->submitted);
    const uint64_t watched = atomic_load(&stream->watched);
    return submitted > watched || watched == UINT64_MAX ? submitted : watched;
}

static gg_status ended_raise_staying(gg_stream *stream);

/* False without memory. */
static bool ended_add(const gg_stream *stream, const struct ggi_watcher *watcher,
                      const struct ggi_kept_error *error)
{
    struct ended *entry = malloc(sizeof *entry);
    if (!entry)
        return false;
    *entry = (struct ended){.serial = stream->serial,
                            .after = atomic_load(&stream->completed),
                            .last = ended_end(stream),
                            .watcher = watcher->bits,
                            .stays = watcher->leaves_work,
                            .error = *error};
    pthread_mutex_lock(&ended_lock);
    entry->number = atomic_load(&ended_count);
    const unsigned at = entry->number % ENDED_MAX;
    free(ended[at]);
    ended[at] = entry;
    atomic_fetch_add(&ended_count, 1);
    if (entry->stays)
        atomic_store(&ggi_raise_staying, ended_raise_staying);
    pthread_mutex_unlock(&ended_lock);
    return true;
}

bool ggi_ended_any(void)
{
    return atomic_load(&ended_count) > 0;
}

static bool ended_has(const struct ended *entry, const struct ggi_ended_use *use)
{
    return entry->serial == use->serial && (entry->watcher & ~use->watchers) == 0 &&
           use->ticket > entry->after && use->ticket <= entry->last;
}

gg_status ggi_ended_report(struct gg_device *device, gg_op op, struct ggi_ended_use use)
{
    gg_status status = GG_OK;
    if (!atomic_load(&ended_count) || ggi_error_record()->suppress_depth)
        return GG_OK;
    pthread_mutex_lock(&ended_lock);
    for (unsigned i = 0; i < ENDED_MAX && ended[i] && !status; i++)
        if (ended_has(ended[i], &use))
            status = ggi_error_restore(&ended[i]->error);
    pthread_mutex_unlock(&ended_lock);
    return status ? ggi_op_failed(device, op, status) : GG_OK;
}

bool ggi_ended_stays(struct ggi_ended_use use)
{
    bool stays = false;
    if (!atomic_load(&ggi_raise_staying))
        return false;
    pthread_mutex_lock(&ended_lock);
    for (unsigned i = 0; i < ENDED_MAX && ended[i] && !stays; i++)
        stays = ended[i]->stays && ended_has(ended[i], &use);
    pthread_mutex_unlock(&ended_lock);
    return stays;
}

/* All that is queued behind such work of the watchers waits for it. */
static gg_status ended_raise_left(gg_stream *stream, uint64_t watchers)
{
    const uint64_t next = atomic_load(&stream->completed) + 1;
    const struct ggi_ended_use use = {stream->serial, next, watchers};
    gg_status status = GG_OK;
    if (!ggi_ended_stays(use) || ggi_stream_is_complete(stream, next, true))
        return GG_OK;
    if (watchers == GGI_ALL_WATCHERS) /* a wait for the stream: what it reports is reported once */
        status = ggi_stream_raise_stashed(stream, GG_OP_stream_wait);
    return status ? status : ggi_ended_report(stream->device, GG_OP_stream_wait, use);
}

/* The driver lets the default stream wait for all blocking streams, and those for what it had before. */
static bool ended_blocks(const gg_stream *stream, gg_stream *const first)
{
    gg_stream *const middle = stream->device->default_stream;
    return ggi_stream_implicitly_ordered(stream, first) ||
           (middle && ggi_stream_implicitly_ordered(stream, middle) &&
            ggi_stream_implicitly_ordered(middle, first) &&
            !ggi_stream_is_complete(middle, atomic_load(&middle->submitted), true));
}

static gg_status ended_raise_before(gg_stream *stream, uint64_t watchers)
{
    struct ggi_use *uses;
    gg_status status = GG_OK;
    const size_t count = ggi_device_pin_streams(stream->device, &uses);
    for (size_t i = 0; i < count; i++) {
        if (!status && uses[i].stream != stream && ended_blocks(stream, uses[i].stream))
            status = ended_raise_left(uses[i].stream, watchers);
        gg_stream_release(uses[i].stream);
    }
    free(uses);
    return status;
}

static gg_status ended_raise_staying(gg_stream *stream)
{
    const gg_status status = ended_raise_left(stream, GGI_ALL_WATCHERS);
    return status ? status : ended_raise_before(stream, GGI_ALL_WATCHERS);
}

gg_status ggi_ended_raise_left(struct gg_device *device, uint64_t serial, uint64_t own,
                               uint64_t before)
{
    struct ggi_use *uses;
    gg_status status = GG_OK;
    if (!atomic_load(&ggi_raise_staying))
        return GG_OK;
    const size_t count = ggi_device_pin_streams(device, &uses);
    for (size_t i = 0; i < count; i++) {
        const bool found = uses[i].stream->serial == serial;
        if (!status && found && own)
            status = ended_raise_left(uses[i].stream, own);
        if (!status && found && before)
            status = ended_raise_before(uses[i].stream, before);
        gg_stream_release(uses[i].stream);
    }
    free(uses);
    return status;
}

_Atomic(uint64_t) ggi_leaving_watchers;

static uint64_t ended_leaving(gg_stream *stream)
{
    const uint64_t watchers = ggi_stream_watchers(stream) & atomic_load(&ggi_leaving_watchers);
    return watchers && !ggi_stream_is_complete(stream, atomic_load(&stream->watched), true)
               ? watchers
               : 0;
}

uint64_t ggi_ended_watchers_before(gg_stream *stream)
{
    gg_stream *const middle = stream->device->default_stream;
    struct ggi_use *uses;
    uint64_t watchers = 0;
    if (!middle || !ggi_stream_implicitly_ordered(stream, middle))
        return 0;
    const size_t count = ggi_device_pin_streams(stream->device, &uses);
    for (size_t i = 0; i < count; i++) {
        const uint64_t leaving = uses[i].stream == stream ? 0 : ended_leaving(uses[i].stream);
        if (leaving && ended_blocks(stream, uses[i].stream))
            watchers |= leaving;
        gg_stream_release(uses[i].stream);
    }
    free(uses);
    return watchers;
}

/* With the lock held: the last of a stream; NULL if it is forgotten. */
static struct ended *ended_last(const gg_stream *stream)
{
    struct ended *last = NULL;
    for (unsigned i = 0; i < ENDED_MAX && ended[i]; i++)
        if (ended[i]->serial == stream->serial &&
            (!last || (int)(ended[i]->number - last->number) > 0))
            last = ended[i];
    return last;
}

/* What was queued behind such work has no result either. Work that is forgotten counts as the stream's first. */
bool ggi_stream_has_ended(const gg_stream *stream, uint64_t ticket)
{
    if (!ggi_stream_ended_unseen(stream))
        return false;
    pthread_mutex_lock(&ended_lock);
    const struct ended *last = ended_last(stream);
    const bool has = !last || ticket > last->after;
    pthread_mutex_unlock(&ended_lock);
    return has;
}

uint64_t ggi_stream_extend_ended(const gg_stream *stream, uint64_t ticket)
{
    pthread_mutex_lock(&ended_lock);
    struct ended *last = ended_last(stream);
    if (last && last->last < ticket)
        last->last = ticket;
    const uint64_t watcher = last ? last->watcher : 0;
    pthread_mutex_unlock(&ended_lock);
    return watcher;
}

bool ggi_stream_end_work(gg_stream *stream, const struct ggi_watcher *watcher,
                         const struct ggi_kept_error *error)
{
    /* Before the stream has the error: a thread that finds it there may query an event next. */
    const bool known = ended_add(stream, watcher, error);
    atomic_fetch_or(&stream->ended_by, watcher->bits);
    ggi_stream_keep_error(stream, error);
    /* An event that another thread recorded between the two is behind the failed work as well. */
    ggi_stream_extend_ended(stream, ended_end(stream));
    return known;
}

void ggi_stream_watch(gg_stream *stream, uint64_t watchers, uint64_t ticket)
{
    pthread_mutex_lock(&stream->lock);
    watchers |= ggi_stream_watchers(stream);
    if (atomic_load(&stream->watched) < ticket)
        atomic_store(&stream->watched, ticket);
    if (atomic_load(&stream->watchers) != watchers)
        atomic_store(&stream->watchers, watchers);
    pthread_mutex_unlock(&stream->lock);
}

/* Whether the stream has the watcher's error of all its watched work, even if a wait has taken it. */
static bool ended_is_known(const gg_stream *stream, uint64_t watcher)
{
    const uint64_t watched = atomic_load(&stream->watched);
    bool known = false;
    pthread_mutex_lock(&ended_lock);
    for (unsigned i = 0; i < ENDED_MAX && ended[i] && !known; i++)
        known = ended[i]->serial == stream->serial && ended[i]->watcher == watcher &&
                (watched == UINT64_MAX || ended[i]->last >= watched);
    pthread_mutex_unlock(&ended_lock);
    return known;
}

/* If a wait still has to report the watcher's error, it is not added again, even if more streams have it than are remembered. */
static bool ended_concerns(const gg_stream *stream, uint64_t watcher)
{
    const bool has = atomic_load(&stream->failed) && !(watcher & ~atomic_load(&stream->ended_by));
    return !(watcher & ~atomic_load(&stream->watchers)) && !has && !ended_is_known(stream, watcher);
}

/* Closed streams, which only their events outlive, can be neither pinned nor queried. */
static bool ended_on_closed(struct gg_device *device, const struct ggi_watcher *watcher,
                            const struct ggi_kept_error *error)
{
    bool any = false;
    pthread_mutex_lock(&device->lock);
    for (gg_stream *stream = device->streams; stream; stream = stream->next)
        if (!atomic_load(&stream->refs) && ended_concerns(stream, watcher->bits) &&
            !ggi_stream_is_complete(stream, atomic_load(&stream->watched), false))
            any = ggi_stream_end_work(stream, watcher, error) || any;
    pthread_mutex_unlock(&device->lock);
    return any;
}

static bool ended_on_device(struct gg_device *device, const struct ggi_watcher *watcher,
                            const struct ggi_kept_error *error)
{
    struct ggi_use *uses;
    bool any = false;
    const size_t count = ggi_device_pin_streams(device, &uses);
    for (size_t i = 0; i < count; i++) {
        gg_stream *stream = uses[i].stream;
        if (ended_concerns(stream, watcher->bits) &&
            !ggi_stream_is_complete(stream, atomic_load(&stream->watched), !watcher->unasked))
            any = ggi_stream_end_work(stream, watcher, error) || any;
        gg_stream_release(stream);
    }
    free(uses);
    return ended_on_closed(device, watcher, error) || any;
}

/* During a pass, another thread may make a stream that was examined wait for one that was not. The next pass finds it. After
 * the last pass, which found none, each wait for a stream with unfinished work finds that stream's error. */
void ggi_streams_end_work(const struct gg_backend *backend, const struct ggi_watcher *watcher,
                          const struct ggi_kept_error *error)
{
    bool any;
    do {
        any = false;
        for (int32_t i = 0; i < backend->device_count; i++)
            any = ended_on_device(&backend->devices[i], watcher, error) || any;
    } while (any);
}
