/* device.c: the one Python object of each device; opening a device and waiting for it. */
#include "runtime/device.h"
#include "base/owners.h"
#include "runtime/stream.h"

static struct py_device *device_find(const struct py_state *state, const gg_device *device)
{
    for (Py_ssize_t i = 0; i < state->device_count; i++)
        if (state->devices[i]->device == device)
            return state->devices[i];
    return NULL;
}

static PyObject *device_make(struct py_state *state, gg_device *device)
{
    size_t size = ((size_t)state->device_count + 1) * sizeof *state->devices;
    struct py_device **devices = realloc(state->devices, size);
    if (!devices)
        return PyErr_NoMemory();
    state->devices = devices;
    struct py_device *self = PyObject_New(struct py_device, state->device_type);
    if (!self)
        return NULL;
    self->device = device;
    self->opened = false;
    self->weakrefs = NULL;
    devices[state->device_count++] = self;
    return Py_NewRef((PyObject *)self);
}

PyObject *py_device_wrap(struct py_state *state, gg_device *device)
{
    struct py_device *self = device_find(state, device);
    return self ? Py_NewRef((PyObject *)self) : device_make(state, device);
}

int py_device_open(struct py_state *state, gg_device *device)
{
    gg_stream *stream;
    PyObject *object = py_device_wrap(state, device);
    if (!object)
        return -1;
    struct py_device *self = (struct py_device *)(void *)object;
    Py_DECREF(object); /* the state keeps it */
    gg_status status;
    if (self->opened)
        return 0;
    PY_WITHOUT_GIL(status = gg_device_default_stream(device, &stream)); /* opens the device */
    self->opened = !status;
    return py_check(state, status);
}

PyObject *py_device_synchronize(struct py_state *state, gg_device *device)
{
    gg_status status;
    PY_WITHOUT_GIL(status = gg_device_synchronize(device));
    if (status)
        return py_raise(state, status);
    py_owners_drain();
    if (!state->callback_wait)
        Py_RETURN_NONE;
    PyObject *self = py_device_wrap(state, device);
    const int failed = self ? py_callbacks_run(state, self) : -1;
    Py_XDECREF(self);
    return failed ? NULL : Py_NewRef(Py_None);
}

bool py_is_host_device(const gg_device *device)
{
    return !strcmp(gg_device_backend(device), "host");
}
