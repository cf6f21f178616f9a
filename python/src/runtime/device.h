/* device.h: Device, and device= arguments. */
#ifndef GPUGLUE_PY_DEVICE_H
#define GPUGLUE_PY_DEVICE_H

#include "base/arguments.h"

struct py_device {
    PyObject_HEAD gg_device *device; /* immortal */
    bool opened;                     /* its context exists, so that calls return quickly */
    PyObject *weakrefs;
};

int py_device_add(PyObject *module, struct py_state *state);
extern PyMethodDef py_current_functions[]; /* current_device(), … */

/* ---- device.c ---- */

/* The Python object of a device (new reference). */
PyObject *py_device_wrap(struct py_state *state, gg_device *device);
/* Open the device's context, without the GIL: the first time takes 0.1 s and more. -1 with an exception. */
int py_device_open(struct py_state *state, gg_device *device);
bool py_is_host_device(const gg_device *device); /* of the host backend */
/* Wait for all work of a device; None. */
PyObject *py_device_synchronize(struct py_state *state, gg_device *device);

/* ---- stats.c ---- */

int py_stats_add(PyObject *module, struct py_state *state);  /* DeviceStats, ProcessStats */
PyObject *py_device_stats(PyObject *self, PyObject *unused); /* a method of Device */

/* ---- current.c ---- */

/* py_device_current where the drivers are not initialised yet, NoDeviceWarning may be due, or the call failed. */
int py_device_current_checked(struct py_state *state, gg_device **out);

/* gg_current_device, after what its first call needs. -1 with an exception. */
static inline int py_device_current(struct py_state *state, gg_device **out)
{
    if (state->drivers_initialised && state->warned && !gg_current_device(out))
        return 0;
    return py_device_current_checked(state, out);
}

/* The current device and its current stream, opened; the stream is a new reference. */
int py_stream_current(struct py_state *state, gg_device *device, gg_stream **out);

/* ---- device_arg.c ---- */

/* device= argument: None or NULL for the current device; a Device, an int or "cuda:0". Devices are immortal, so
 * nothing is to be released. -1 with an exception. Issues NoDeviceWarning when "auto" chose host. */
int py_device_arg_any(struct py_state *state, PyObject *object, gg_device **out);
static inline int py_device_arg(struct py_state *state, PyObject *object, gg_device **out)
{
    if (!object || !Py_IS_TYPE(object, state->device_type))
        return py_device_arg_any(state, object, out);
    *out = ((struct py_device *)(void *)object)->device;
    return 0;
}
/* The device with a "pci" address or a "uuid". */
int py_device_by_address(struct py_state *state, const char *kind, PyObject *object,
                         gg_device **out);
/* The rank among the processes of this node, 0 without a launcher; -1 with an exception. */
long py_local_rank(struct py_state *state);

#endif
