/* prepare.c: passes the plugins and library directories of the Python environment to the core. */
#include "runtime/registry.h"

/* The first search imports Python code, so it is not done at import. _discovery has a lock against concurrent calls. */
int py_registry_prepare(struct py_state *state)
{
    if (state->prepared)
        return 0;
    PyObject *discovery = PyImport_ImportModule("gpuglue._discovery");
    PyObject *done = discovery ? PyObject_CallMethod(discovery, "prepare", NULL) : NULL;
    Py_XDECREF(discovery);
    if (!done)
        return -1;
    Py_DECREF(done);
    state->prepared = true;
    return 0;
}
