/* life.c: the ends of a process: forks, after which what exists is inert, and the shutdown. */
#include "pool.h"
#include "staging.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

#define RESET_ROOM 64

_Atomic(uint32_t) ggi_generation = 1;
_Atomic(int) ggi_down;

static _Atomic(int (*)(void)) wait_hook;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t *resets[RESET_ROOM];
static _Atomic(int) reset_count;
static pthread_mutex_t adopt_lock = PTHREAD_MUTEX_INITIALIZER;

const char *gg_library_path(void)
{
    Dl_info info;
    return dladdr((const void *)&ggi_generation, &info) ? info.dli_fname : NULL;
}

/* Runs in the child alone, so plain stores will do; a lock may have been held by a thread that is
 * no more. */
static void in_child(void)
{
    int count = atomic_load(&reset_count);
    atomic_fetch_add(&ggi_generation, 1);
    for (int i = 0; i < count && i < RESET_ROOM; i++)
        if (resets[i]) /* NULL: the fork came between the count and the store */
            pthread_mutex_init(resets[i], NULL);
}

static void watch(void)
{
    ggi_reset_in_child(&adopt_lock);
    pthread_atfork(NULL, NULL, in_child);
}

void ggi_watch_forks(void)
{
    pthread_once(&watch_once, watch);
}

void ggi_reset_in_child(pthread_mutex_t *lock)
{
    int at = atomic_fetch_add(&reset_count, 1);
    if (at < RESET_ROOM)
        resets[at] = lock;
}

static bool untouched(const struct gg_backend *backend)
{
    for (int32_t i = 0; i < backend->device_count; i++)
        if (!(backend->devices[i].flags & GG_DEVICE_LAZY) || atomic_load(&backend->devices[i].impl))
            return false;
    return true;
}

static void renew(struct gg_backend *backend, uint32_t generation)
{
    for (int32_t i = 0; i < backend->device_count; i++) {
        pthread_mutex_init(&backend->devices[i].lock, NULL);
        atomic_store(&backend->devices[i].generation, generation);
    }
    atomic_store(&backend->generation, generation);
}

bool ggi_backend_adopt(struct gg_backend *backend)
{
    uint32_t now = atomic_load(&ggi_generation);
    pthread_mutex_lock(&adopt_lock);
    bool adopted = atomic_load(&backend->generation) == now;
    if (!adopted && untouched(backend)) {
        renew(backend, now);
        adopted = true;
    }
    pthread_mutex_unlock(&adopt_lock);
    return adopted;
}

gg_status ggi_refuse(struct gg_device *device)
{
    if (atomic_load(&ggi_down))
        return ggi_fail(GG_ERR_SHUT_DOWN, "gpuglue was shut down; no new work is taken");
    if (ggi_backend_adopt(device->backend))
        return GG_OK;
    return ggi_fail(
        GG_ERR_FORKED,
        "this process was forked after backend \"%s\" was initialised in its parent, and "
        "a driver does not survive that: start child processes with \"spawn\" "
        "(multiprocessing.set_start_method(\"spawn\")), or fork before the first use",
        device->backend->name);
}

void gg_set_wait_hook(int (*hook)(void))
{
    atomic_store(&wait_hook, hook);
}

int ggi_interrupted(void)
{
    int (*hook)(void) = atomic_load(&wait_hook);
    return hook ? hook() : 0;
}

uint64_t ggi_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- shutdown ---- */

static bool alive(const struct gg_device *device)
{
    return atomic_load(&device->impl) && device->generation == atomic_load(&ggi_generation);
}

/* Results on their way to the host are worth a wait; a kernel that never ends is not. */
static void wait_for_results(struct gg_device *device, uint64_t deadline)
{
    for (gg_stream *stream = ggi_streams_of(device); stream; stream = stream->next) {
        uint64_t ticket = atomic_load(&stream->to_host);
        while (!ggi_stream_passed(stream, ticket, true) && ggi_now_ns() < deadline) {
            struct timespec pause = {0, 100000};
            nanosleep(&pause, NULL);
        }
    }
}

static bool all_idle(struct gg_device *device)
{
    for (gg_stream *stream = ggi_streams_of(device); stream; stream = stream->next)
        if (!ggi_stream_passed(stream, atomic_load(&stream->submitted), true))
            return false;
    return true;
}

static void destroy_spares(struct gg_device *device)
{
    pthread_mutex_lock(&device->spare_lock);
    for (int timing = 0; timing < 2; timing++)
        while (device->spares[timing] > 0)
            device->ops->event_destroy(device->spare[timing][--device->spares[timing]]);
    pthread_mutex_unlock(&device->spare_lock);
}

/* What the user still holds needs the context: then it is left to the process. */
static bool unheld(struct gg_device *device)
{
    for (int i = 0; i < GGI_POOLS; i++)
        if (ggi_pool_figures(device->pools[i]).held_bytes)
            return false;
    return ggi_streams_of(device) == device->default_stream && !device->default_stream->next;
}

/* What the engine itself holds. Where other threads have used the device, one of them may be inside a
 * call at this moment: then that is left to the process, too. */
static void close_device(struct gg_device *device)
{
    ggi_ring_destroy(device);
    ggi_staging_destroy(device);
    ggi_results_trim(device);
    gg_stream_release(atomic_exchange(&device->meeting, NULL));
    ggi_drain_locked(device, true);
    if (ggi_drain_waiting(device)) /* one question that fails says nothing */
        ggi_drain_locked(device, true);
    ggi_quarantine_destroy(device);
    ggi_stream_strip(device->default_stream); /* gives its events to the spares */
    destroy_spares(device);
    if (unheld(device))
        device->ops->device_close(atomic_load(&device->impl));
}

static void shut_device(struct gg_device *device, uint64_t deadline)
{
    struct ggi_own own;
    ggi_staging_settle(device, deadline);
    ggi_own_begin(device, &own);
    pthread_mutex_lock(&device->drain_lock); /* no stream is destroyed under the walks below */
    wait_for_results(device, deadline);
    bool idle = all_idle(device) || all_idle(device); /* one question that fails says nothing */
    if (idle) {
        ggi_drain_locked(device, true);
        ggi_pools_empty(device);
    }
    bool alone = !atomic_load(&device->shared) && pthread_equal(device->opener, pthread_self());
    if (idle && alone)
        close_device(device);
    else
        ggi_drain_locked(device, idle);
    pthread_mutex_unlock(&device->drain_lock);
    ggi_own_end(device, &own);
}

static uint64_t deadline_in(uint64_t timeout_ns)
{
    uint64_t now = ggi_now_ns();
    return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

static void settle_device(struct gg_device *device, uint64_t deadline)
{
    struct ggi_own own;
    ggi_own_begin(device, &own);
    pthread_mutex_lock(&device->drain_lock);
    wait_for_results(device, deadline);
    ggi_drain_locked(device, false);
    pthread_mutex_unlock(&device->drain_lock);
    ggi_own_end(device, &own);
}

void gg_settle(uint64_t timeout_ns)
{
    uint64_t deadline = deadline_in(timeout_ns);
    if (atomic_load(&ggi_down))
        return;
    for (struct gg_backend *b = ggi_backend_next_open(NULL); b; b = ggi_backend_next_open(b))
        for (int32_t i = 0; i < b->device_count; i++)
            if (alive(&b->devices[i]))
                settle_device(&b->devices[i], deadline);
}

void gg_shutdown(uint64_t timeout_ns)
{
    int expected = 0;
    uint64_t deadline = deadline_in(timeout_ns);
    if (!atomic_compare_exchange_strong(&ggi_down, &expected, 1))
        return;
    for (struct gg_backend *b = ggi_backend_next_open(NULL); b; b = ggi_backend_next_open(b))
        for (int32_t i = 0; i < b->device_count; i++)
            if (alive(&b->devices[i]))
                shut_device(&b->devices[i], deadline);
    atomic_store(&ggi_down, 2);
}
