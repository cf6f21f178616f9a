/* sycl_interface.c: dpctl's __sycl_usm_array_interface__, exported and imported by gpuglue/_sycl.py. On ze; other backends lack
 * the attribute. */
#include "interop/sycl_interface.h"
#include "array/array.h"
#include "base/arguments.h"
#include "base/errors.h"

static PyObject *sycl_call(const char *function, PyObject *argument)
{
    PyObject *module = PyImport_ImportModule("gpuglue._sycl"), *result = NULL;
    if (module)
        result = PyObject_CallMethod(module, function, "O", argument);
    Py_XDECREF(module);
    return result;
}

/* The interface has no stream: the reader finds idle memory, and uses it on queues that gpuglue does not track. */
PyObject *py_array_sycl_interface(PyObject *self, void *Py_UNUSED(closure))
{
    gg_memory *memory = py_array_of(self)->memory;
    const char *backend = gg_device_backend(gg_memory_device(memory));
    gg_status status;
    if (strcmp(backend, "ze") != 0)
        return PyErr_Format(
            PyExc_AttributeError,
            "__sycl_usm_array_interface__ exists only for memory of ze, this array is on %s",
            backend);
    PY_WITHOUT_GIL(status = gg_memory_wait(memory));
    if (py_check(py_state_of(self), status))
        return NULL;
    gg_memory_record_use(memory, NULL);
    return sycl_call("interface", self);
}

int py_from_sycl_interface(PyObject *object, PyObject **out)
{
    PyObject *interface;
    const int found = py_optional_attribute(object, "__sycl_usm_array_interface__", &interface);
    if (found < 1)
        return found;
    Py_DECREF(interface);
    *out = sycl_call("asarray", object);
    return *out ? 1 : -1;
}
