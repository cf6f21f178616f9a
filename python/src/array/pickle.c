/* pickle.c: pickle, copy.copy and copy.deepcopy. A pickle holds the elements, not the memory. */
#include "numpy/bridge.h"
#include "runtime/device.h"
#include "array/array.h"

static PyObject *pickle_device_name(gg_device *device)
{
    return PyUnicode_FromFormat("%s:%d", gg_device_backend(device), (int)gg_device_ordinal(device));
}

PyObject *py_array_reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct py_state *state = py_state_of(self);
    struct py_array *array = py_array_of(self);
    PyObject *module = PyImport_ImportModule("gpuglue._core"), *make = NULL, *host = NULL,
             *name = NULL, *result = NULL;
    if (!module)
        return NULL;
    make = PyObject_GetAttrString(module, "_unpickle");
    Py_DECREF(module);
    if (!make)
        return NULL;
    host = py_array_to_host(state, array, NULL);
    name = host ? pickle_device_name(gg_memory_device(array->memory)) : NULL;
    if (name)
        result = Py_BuildValue("O(OO)", make, host, name);
    Py_XDECREF(name);
    Py_XDECREF(host);
    Py_DECREF(make);
    return result;
}

PyObject *py_array_copy_copy(PyObject *self, PyObject *Py_UNUSED(unused))
{
    struct py_array *array = py_array_of(self);
    const struct py_alloc_target target = py_array_target(array);
    return py_array_copy_at(py_state_of(self), array, &target);
}

PyObject *py_array_deepcopy(PyObject *self, PyObject *Py_UNUSED(memo))
{
    return py_array_copy_copy(self, NULL);
}

/* The named device, or the current one in a process without that device. */
static int pickle_device(struct py_state *state, PyObject *name, gg_device **out)
{
    if (!py_device_arg(state, name, out))
        return 0;
    if (!PyErr_ExceptionMatches(state->error))
        return -1;
    PyErr_Clear();
    return py_device_arg(state, NULL, out);
}

static PyObject *unpickle(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    struct py_state *state = PyModule_GetState(module);
    struct py_alloc_target target = {0};
    if (nargs != 2 || numpy_load() || numpy_is_array(args[0]) != 1)
        return PyErr_Occurred() ? NULL
                                : PyErr_Format(PyExc_TypeError,
                                               "_unpickle takes an ndarray and a device's name");
    if (pickle_device(state, args[1], &target.device))
        return NULL;
    return py_array_upload(state, numpy_ensure_contiguous(Py_NewRef(args[0])), &target);
}

PyMethodDef py_pickle_functions[] = {
    {"_unpickle", PY_METHOD(unpickle), METH_FASTCALL,
     "_unpickle(host, device, /)\n--\n\nRestore a pickled GPUArray."},
    {NULL, NULL, 0, NULL},
};
