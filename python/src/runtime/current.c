/* current.c: the current device and stream. */
#include "runtime/device.h"
#include "runtime/registry.h"

/* The first call may initialise drivers, which takes several tenths of a second. */
static int current_first_call(struct py_state *state, gg_device **out)
{
    gg_status status;
    if (py_registry_prepare(state))
        return -1;
    PY_WITHOUT_GIL(status = gg_current_device(out));
    state->drivers_initialised = !status;
    return py_check(state, status);
}

int py_device_current_checked(struct py_state *state, gg_device **out)
{
    if (state->drivers_initialised ? py_check(state, gg_current_device(out))
                                   : current_first_call(state, out))
        return -1;
    return state->warned ? 0 : py_warn_no_device(state);
}

int py_stream_current(struct py_state *state, gg_device *device, gg_stream **out)
{
    if ((!device && py_device_current(state, &device)) || py_device_open(state, device) ||
        py_check(state, gg_current_stream(device, out)))
        return -1;
    gg_stream_retain(*out);
    return 0;
}
