/* device_arg.c: device= arguments: names, ordinals, addresses, and the rank of this process. */
#include "runtime/device.h"
#include "runtime/registry.h"

#include <stdio.h>

static int device_by_ordinal(struct py_state *state, PyObject *object, gg_device **out)
{
    long long ordinal;
    if (py_integer(state, object, "a device's ordinal", 0, INT32_MAX, &ordinal) ||
        py_registry_prepare(state))
        return -1;
    gg_status status;
    PY_WITHOUT_GIL(status = gg_device_get(NULL, (int32_t)ordinal, out));
    return py_check(state, status) || py_warn_no_device(state) ? -1 : 0;
}

static int device_by_name(struct py_state *state, const char *name, gg_device **out)
{
    if (py_registry_prepare(state))
        return -1;
    gg_status status;
    PY_WITHOUT_GIL(status = gg_device_find(name, out));
    return py_check(state, status);
}

int py_device_arg_any(struct py_state *state, PyObject *object, gg_device **out)
{
    if (!py_given(object))
        return py_device_current(state, out);
    if (PyUnicode_Check(object)) {
        const char *name = py_utf8(state, object, "device");
        return name ? device_by_name(state, name, out) : -1;
    }
    if (PyIndex_Check(object))
        return device_by_ordinal(state, object, out);
    return PY_FAIL(PyExc_TypeError,
                   "device must be a Device, a name such as 'cuda:0', an ordinal or None, got %R",
                   object);
}

int py_device_by_address(struct py_state *state, const char *kind, PyObject *object, gg_device **out)
{
    char name[128];
    PyObject *string = PyObject_Str(object);
    const char *address = string ? py_utf8(state, string, kind) : NULL;
    int failed = -1;
    if (!address)
        goto drop_string;
    if ((size_t)snprintf(name, sizeof name, "%s:%s", kind, address) >= sizeof name)
        py_invalid(state, "%s is too long: %R", kind, string);
    else
        failed = device_by_name(state, name, out);
drop_string:
    Py_XDECREF(string);
    return failed;
}
