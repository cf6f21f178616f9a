/* trace.c: what gpuglue/_trace.py is made of: recordings and ranges. */
#include "base/arguments.h"
#include "runtime/registry.h"

/* Written without a docstring for users: the classes in _trace.py have them. */
static PyObject *trace_start(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    struct py_state *state = PyModule_GetState(module);
    gg_status status;
    if (nargs != 2)
        return PyErr_Format(PyExc_TypeError, "_trace_start() takes 2 arguments (%zd given)", nargs);
    const char *path = py_utf8(state, args[0], "the path of a trace");
    int device_times = path ? PyObject_IsTrue(args[1]) : -1;
    if (device_times < 0)
        return NULL;
    PY_WITHOUT_GIL(status = gg_trace_start(path, device_times ? GG_TRACE_DEVICE_TIMES : 0));
    return py_none(state, status);
}

static PyObject *trace_stop(PyObject *module, PyObject *Py_UNUSED(unused))
{
    struct py_state *state = PyModule_GetState(module);
    gg_status status;
    PY_WITHOUT_GIL(status = gg_trace_stop());
    return py_none(state, status);
}

static PyObject *range_push(PyObject *module, PyObject *name)
{
    const char *text = py_utf8(PyModule_GetState(module), name, "the name of a range");
    if (!text)
        return NULL;
    gg_range_push(text);
    Py_RETURN_NONE;
}

static PyObject *range_pop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    gg_range_pop();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_trace_start", PY_METHOD(trace_start), METH_FASTCALL, NULL},
    {"_trace_stop", trace_stop, METH_NOARGS, NULL},
    {"_range_push", range_push, METH_O, NULL},
    {"_range_pop", range_pop, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int py_trace_add(PyObject *module, struct py_state *Py_UNUSED(state))
{
    return PyModule_AddFunctions(module, functions);
}
