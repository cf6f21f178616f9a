/* sim_nccl_work.c: the memory of the operations of the simulated NCCL and RCCL. Copies and graphs use it until the driver has
 * done them, and at the latest until the communicator ends. */
#include "sim_nccl.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t works_lock = PTHREAD_MUTEX_INITIALIZER;
static struct work *works_newest;

static bool work_allocate(struct work *w)
{
    const size_t block = w->count * w->unit, all = (size_t)w->comm->size * block;
    const bool root = w->comm->rank == w->root;
    w->from_size = w->kind == K_RECV || (w->kind == K_BROADCAST && !root) ? 0
                   : w->kind == K_REDUCE_SCATTER                          ? all
                                                                          : block;
    w->to_size = w->kind == K_SEND || (w->kind == K_REDUCE && !root) ? 0
                 : w->kind == K_ALL_GATHER                           ? all
                                                                     : block;
    w->from = w->from_size ? malloc(w->from_size) : NULL;
    w->to = w->to_size ? malloc(w->to_size) : NULL;
    return (w->from || !w->from_size) && (w->to || !w->to_size);
}

static void work_free(struct work *w)
{
    free(w->from);
    free(w->to);
    free(w);
}

struct work *work_new(const struct work *given)
{
    struct work *w = malloc(sizeof *w);
    if (!w)
        return NULL;
    *w = *given;
    if (!work_allocate(w)) {
        work_free(w);
        return NULL;
    }
    pthread_mutex_lock(&works_lock);
    w->older = works_newest;
    works_newest = w;
    pthread_mutex_unlock(&works_lock);
    return w;
}

void work_is_queued(struct work *first)
{
    pthread_mutex_lock(&works_lock);
    for (struct work *w = first; w; w = w->next)
        w->first = first;
    pthread_mutex_unlock(&works_lock);
}

/* With works_lock held. A group is used as a whole. */
static void works_mark(const void *address)
{
    for (struct work *w = works_newest; w; w = w->older)
        if (w->first && (address == w || address == w->from || address == w->to))
            w->first->used = true;
}

void work_free_ended(void)
{
    pthread_mutex_lock(&works_lock);
    for (struct work *w = works_newest; w; w = w->older)
        w->used = false;
    const bool known = driver_each_use(works_mark);
    for (struct work *w = works_newest; w; w = w->older)
        w->used = w->used || !w->first || w->first->used || !atomic_load(&w->comm->ended);
    for (struct work **at = &works_newest; known && *at;) {
        struct work *w = *at;
        if (w->used) {
            at = &w->older;
            continue;
        }
        *at = w->older;
        work_free(w);
    }
    pthread_mutex_unlock(&works_lock);
}
