/* owners.c: Python objects that the core keeps alive for its work, and releases from any thread. A release must
 * neither wait nor take the GIL (a driver's thread may call it while it holds locks): it pushes on a lock-free list,
 * which one pending call of the interpreter empties. */
#include "base/owners.h"

#include <stdatomic.h>

struct owner {
    struct owner *next;
    PyObject *object;
};

static _Atomic(struct owner *) released;
static atomic_bool scheduled; /* a pending call is scheduled */
static atomic_bool stopped;

void py_owners_drain(void)
{
    if (!atomic_load_explicit(&released, memory_order_relaxed))
        return;
    struct owner *owner = atomic_exchange(&released, NULL);
    while (owner) {
        struct owner *next = owner->next;
        Py_DECREF(owner->object);
        free(owner);
        owner = next;
    }
}

static int owners_drain_pending(void *Py_UNUSED(unused))
{
    atomic_store(&scheduled, false);
    py_owners_drain();
    return 0;
}

static _Thread_local struct py_release_scope *innermost_scope;

void py_release_scope_begin(struct py_release_scope *returned)
{
    returned->count = 0;
    returned->innermost = &innermost_scope; /* found once */
    returned->outer = *returned->innermost;
    *returned->innermost = returned;
}

void py_release_scope_end(struct py_release_scope *returned)
{
    *returned->innermost = returned->outer;
    for (int i = 0; i < returned->count; i++)
        Py_DECREF(returned->objects[i]);
}

static bool release_scope_take(PyObject *object)
{
    struct py_release_scope *returned = innermost_scope;
    if (!returned || returned->count == (int)(sizeof returned->objects / sizeof *returned->objects))
        return false;
    returned->objects[returned->count++] = object;
    return true;
}

void py_owner_release(void *object)
{
    if (!object || atomic_load(&stopped) || release_scope_take(object))
        return;
    struct owner *owner = malloc(sizeof *owner);
    if (!owner)
        return; /* there is no way to report this: leak */
    owner->object = object;
    owner->next = atomic_load(&released);
    while (!atomic_compare_exchange_weak(&released, &owner->next, owner))
        ;
    /* The interpreter's queue may be full: then the next gpuglue call drains. */
    if (!atomic_exchange(&scheduled, true) && Py_AddPendingCall(owners_drain_pending, NULL))
        atomic_store(&scheduled, false);
}

void py_owners_stop(void)
{
    atomic_store(&stopped, true);
}

bool py_finalizing(void)
{
    return atomic_load(&stopped) || !Py_IsInitialized();
}
