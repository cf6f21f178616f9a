/* owners.c: Python objects that the core keeps for its work, and gives back from any thread.
 *
 * A release must neither wait nor take the GIL (a driver's thread may call it, with locks of its own
 * held): it pushes on a list without a lock, and one pending call of the interpreter empties that. */
#include "py.h"

#include <stdatomic.h>

struct owner {
    struct owner *next;
    PyObject *object;
};

static _Atomic(struct owner *) released;
static atomic_bool scheduled; /* a pending call is on its way */
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

static int drain_later(void *unused)
{
    (void)unused;
    atomic_store(&scheduled, false);
    py_owners_drain();
    return 0;
}

static _Thread_local struct py_returned *innermost;

void py_returned_begin(struct py_returned *returned)
{
    returned->count = 0;
    returned->outer = innermost;
    innermost = returned;
}

void py_returned_end(struct py_returned *returned)
{
    innermost = returned->outer;
    for (int i = 0; i < returned->count; i++)
        Py_DECREF(returned->objects[i]);
}

static bool keep_for_call(PyObject *object)
{
    struct py_returned *returned = innermost;
    if (!returned || returned->count == (int)(sizeof returned->objects / sizeof *returned->objects))
        return false;
    returned->objects[returned->count++] = object;
    return true;
}

void py_owner_release(void *object)
{
    if (!object || atomic_load(&stopped) || keep_for_call(object))
        return;
    struct owner *owner = malloc(sizeof *owner);
    if (!owner)
        return; /* a leak is better than what else could be done here */
    owner->object = object;
    owner->next = atomic_load(&released);
    while (!atomic_compare_exchange_weak(&released, &owner->next, owner))
        ;
    /* The interpreter's queue may be full: then the next gpuglue call drains. */
    if (!atomic_exchange(&scheduled, true) && Py_AddPendingCall(drain_later, NULL))
        atomic_store(&scheduled, false);
}

void py_owners_stop(void)
{
    atomic_store(&stopped, true);
}

bool py_stopping(void)
{
    return atomic_load(&stopped) || !Py_IsInitialized();
}
