/* device_array.cpp: from a Python array to the library: three attributes and a choice of type. */
#include "device_array.h"
#include "reduce.h"

#include <stdexcept>
#include <string>

namespace
{

struct reference { /* owns one reference */
    PyObject *object;
    explicit reference(PyObject *taken) : object(taken)
    {
        if (object)
            return;
        PyErr_Clear();
        throw std::invalid_argument(
            "expected a device array with ptr, shape and dtype, contiguous in C order");
    }
    ~reference() { Py_DECREF(object); }
    reference(const reference &) = delete;
    reference &operator=(const reference &) = delete;
};

std::size_t count_elements(PyObject *object)
{
    const reference shape(PyObject_GetAttrString(object, "shape"));
    std::size_t count = 1;
    for (Py_ssize_t i = 0, n = PySequence_Size(shape.object); i < n; i++) {
        const reference length(PySequence_GetItem(shape.object, i));
        count *= PyLong_AsSize_t(length.object);
    }
    return count;
}

device_array::element element_type(PyObject *object)
{
    const reference dtype(PyObject_GetAttrString(object, "dtype"));
    const reference text(PyObject_Str(dtype.object));
    if (!PyUnicode_CompareWithASCIIString(text.object, "float32"))
        return device_array::float32;
    if (!PyUnicode_CompareWithASCIIString(text.object, "float64"))
        return device_array::float64;
    throw std::invalid_argument("the dtype must be float32 or float64");
}

} // namespace

device_array device_array_from(PyObject *object)
{
    const reference address(PyObject_GetAttrString(object, "ptr"));
    device_array array = {element_type(object), PyLong_AsVoidPtr(address.object),
                          count_elements(object)};
    if (!PyErr_Occurred())
        return array;
    PyErr_Clear();
    throw std::invalid_argument("ptr and shape must be integers");
}

double sum(const device_array &array)
{
    switch (array.type) {
    case device_array::float32:
        return reduce::sum(static_cast<const float *>(array.data), array.count);
    case device_array::float64:
        return reduce::sum(static_cast<const double *>(array.data), array.count);
    }
    throw std::logic_error("unreachable");
}
