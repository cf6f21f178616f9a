/* lifecycle.c: signals during a wait, and the end of the process. */
#include "base/owners.h"
#include "runtime/registry.h"

#include <sys/syscall.h>
#include <unistd.h>

/* The core calls this between two slices of a wait, without the GIL. Python handles signals on the main thread only,
 * so other threads return at once. A raised exception stays pending for py_raise. */
static int check_signals(void)
{
    if (syscall(SYS_gettid) != getpid() || py_finalizing())
        return 0;
    PyGILState_STATE gil = PyGILState_Ensure();
    int raised = PyErr_CheckSignals();
    PyGILState_Release(gil);
    return raised;
}

PyDoc_STRVAR(shutdown_doc, "_shutdown()\n--\n\nCalled by atexit: accept no new work, wait up to 2 "
                           "s for copies to the host, then\nmake no more driver calls.");

static PyObject *shut_down(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    gg_set_wait_hook(NULL);
    PY_WITHOUT_GIL(gg_finish_downloads(2000000000u));
    py_owners_drain(); /* what finished copies kept: blocks that a device would wait for */
    py_owners_stop();
    PY_WITHOUT_GIL(gg_shutdown(0));
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_shutdown", shut_down, METH_NOARGS, shutdown_doc},
    {NULL, NULL, 0, NULL},
};

int py_lifecycle_add(PyObject *module, struct py_state *Py_UNUSED(state))
{
    gg_set_wait_hook(check_signals);
    return PyModule_AddFunctions(module, functions);
}
