/* device_find.c: from the core's devices to Python objects, and from arguments to devices. */
#include "py.h"

#include <stdio.h>

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
    if (self->opened)
        return 0;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_device_default_stream(device, &stream); /* opens the device */
    PyEval_RestoreThread(thread);
    self->opened = !status;
    return py_check(state, status);
}

static int find_by_ordinal(struct py_state *state, PyObject *object, gg_device **out)
{
    long long ordinal;
    if (py_integer(state, object, "a device's ordinal", 0, INT32_MAX, &ordinal) || py_prepare(state))
        return -1;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_device_get(NULL, (int32_t)ordinal, out);
    PyEval_RestoreThread(thread);
    return py_check(state, status) || py_warn_no_device(state) ? -1 : 0;
}

static int find_by_name(struct py_state *state, const char *name, gg_device **out)
{
    if (py_prepare(state))
        return -1;
    PyThreadState *thread = PyEval_SaveThread();
    gg_status status = gg_device_find(name, out);
    PyEval_RestoreThread(thread);
    return py_check(state, status);
}

int py_device_arg(struct py_state *state, PyObject *object, gg_device **out)
{
    if (!object || object == Py_None)
        return py_device_current(state, out);
    if (Py_IS_TYPE(object, state->device_type)) {
        *out = ((struct py_device *)object)->device;
        return 0;
    }
    if (PyUnicode_Check(object)) {
        const char *name = py_name(state, object, "device");
        return name ? find_by_name(state, name, out) : -1;
    }
    if (PyIndex_Check(object))
        return find_by_ordinal(state, object, out);
    PyErr_Format(PyExc_TypeError,
                 "device must be a Device, a name such as 'cuda:0', an ordinal or None, not %R",
                 object);
    return -1;
}

int py_device_by_address(struct py_state *state, const char *kind, PyObject *object, gg_device **out)
{
    char name[128];
    PyObject *string = PyObject_Str(object);
    const char *address = string ? py_name(state, string, kind) : NULL;
    int failed = -1;
    if (!address)
        goto drop_string;
    if (!strncmp(address, "GPU-", 4)) /* as nvidia-smi and CUDA_VISIBLE_DEVICES write it */
        address += 4;
    if ((size_t)snprintf(name, sizeof name, "%s:%s", kind, address) >= sizeof name)
        py_invalid(state, "%s is too long: %R", kind, string);
    else
        failed = find_by_name(state, name, out);
drop_string:
    Py_XDECREF(string);
    return failed;
}

/* The first of these that is set tells the rank among the processes of this node. */
static const char *const rank_variables[] = {
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "PMI_LOCAL_RANK",
    "PMIX_LOCAL_RANK",
    "FLUX_TASK_LOCAL_ID",
    "JSM_NAMESPACE_LOCAL_RANK",
    "SLURM_LOCALID",
    "LOCAL_RANK",
};

/* The rank, 0 where no launcher says one, or -1 with an exception. */
long py_local_rank(struct py_state *state)
{
    for (size_t i = 0; i < sizeof rank_variables / sizeof rank_variables[0]; i++) {
        const char *value = getenv(rank_variables[i]);
        char *end;
        if (!value || !value[0])
            continue;
        long rank = strtol(value, &end, 10);
        const bool refused = *end || rank < 0 || rank > INT32_MAX;
        if (refused)
            py_invalid(state, "%s is '%s', expected a number from 0 to %d", rank_variables[i],
                       value, INT32_MAX);
        return refused ? -1 : rank;
    }
    return 0;
}
