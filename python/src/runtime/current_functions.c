/* current_functions.c: current_device(), current_stream(), synchronize(). */
#include "runtime/device.h"
#include "runtime/stream.h"

static PyObject *current_device(PyObject *module, PyObject *Py_UNUSED(unused))
{
    struct py_state *state = PyModule_GetState(module);
    gg_device *device;
    return py_device_current(state, &device) ? NULL : py_device_wrap(state, device);
}

static PY_FASTCALL(current_stream)
{
    static const char *const names[] = {"device"};
    struct py_state *state = PyModule_GetState(self);
    PyObject *value;
    gg_device *device;
    gg_stream *stream;
    if (py_parse("current_stream", names, 1, 1, 0, args, nargs, kwnames, &value) ||
        py_device_arg(state, value, &device) || py_stream_current(state, device, &stream))
        return NULL;
    return py_stream_wrap(state, stream);
}

static PY_FASTCALL(synchronize)
{
    static const char *const names[] = {"device"};
    struct py_state *state = PyModule_GetState(self);
    PyObject *value;
    gg_device *device;
    if (py_parse("synchronize", names, 1, 1, 0, args, nargs, kwnames, &value) ||
        py_device_arg(state, value, &device))
        return NULL;
    return py_device_synchronize(state, device);
}

PyMethodDef py_current_functions[] = {
    {"current_device", current_device, METH_NOARGS, py_doc_current_device},
    PY_FASTCALL_DEF("current_stream", current_stream, py_doc_current_stream),
    PY_FASTCALL_DEF("synchronize", synchronize, py_doc_synchronize),
    {NULL, NULL, 0, NULL},
};
