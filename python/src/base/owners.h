/* owners.h: Python objects that the core keeps alive for its work. */
#ifndef GPUGLUE_PY_OWNERS_H
#define GPUGLUE_PY_OWNERS_H

#include "base/py.h"

/* A release callback for the core: drops one reference to @p owner, from any thread, with or without the GIL.
 * It pushes on a lock-free list that a pending call or py_owners_drain empties. After finalisation it leaks on
 * purpose. */
void py_owner_release(void *owner);
/* Between these two calls, which may be nested (a wait runs signal handlers), objects that the core releases on
 * this thread are collected here instead and dropped by the second call, which needs the GIL. */
struct py_release_scope {
    struct py_release_scope *outer, **innermost; /* of this thread */
    PyObject *objects[4];
    int count;
};
void py_release_scope_begin(struct py_release_scope *scope);
void py_release_scope_end(struct py_release_scope *scope);
/* With the GIL held: drop what is on the list. Cheap when it is empty; allocations and copies call it. */
void py_owners_drain(void);
/* From now on owners leak: the interpreter is about to end. */
void py_owners_stop(void);
bool py_finalizing(void);

#endif
