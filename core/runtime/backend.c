/* backend.c: the opened backends, and which of them a forked child may use. */
#include "base/error.h"
#include "base/list.h"
#include "runtime/device.h"

static _Atomic(struct gg_backend *) opened_backends;

void ggi_backend_publish(struct gg_backend *backend)
{
    if (atomic_load(&backend->opened))
        return;
    atomic_store_explicit(&backend->opened, true, memory_order_release);
    ggi_list_push(&opened_backends, backend);
}

struct gg_backend *ggi_backend_next_opened(struct gg_backend *after)
{
    return after ? after->next : atomic_load(&opened_backends);
}

gg_status ggi_backend_fail_forked(const struct gg_backend *backend)
{
    return ggi_fail(
        GG_ERR_FORKED,
        "this process was forked after backend \"%s\" was initialised in its parent, and "
        "a driver does not survive that: start child processes with \"spawn\" "
        "(multiprocessing.set_start_method(\"spawn\")), or fork before the first use",
        backend->name);
}

/* ---- adoption by a forked child ---- */

static pthread_mutex_t adopt_lock = PTHREAD_MUTEX_INITIALIZER;
GGI_RESET_IN_CHILD(adopt_lock)

static bool backend_is_untouched(const struct gg_backend *backend)
{
    for (int32_t i = 0; i < backend->device_count; i++)
        if (!(backend->devices[i].flags & GG_DEVICE_FORK_SAFE_UNTIL_OPEN) ||
            atomic_load(&backend->devices[i].impl))
            return false;
    return true;
}

static void backend_renew(struct gg_backend *backend, uint32_t generation)
{
    for (int32_t i = 0; i < backend->device_count; i++) {
        pthread_mutex_init(&backend->devices[i].lock, NULL);
        atomic_store(&backend->devices[i].generation, generation);
    }
    atomic_store(&backend->generation, generation);
}

bool ggi_backend_adopt_in_child(struct gg_backend *backend)
{
    uint32_t now = atomic_load(&ggi_generation);
    pthread_mutex_lock(&adopt_lock);
    bool adopted = atomic_load(&backend->generation) == now;
    if (!adopted && backend_is_untouched(backend)) {
        backend_renew(backend, now);
        adopted = true;
    }
    pthread_mutex_unlock(&adopt_lock);
    return adopted;
}
