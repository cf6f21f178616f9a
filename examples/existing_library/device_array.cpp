/* device_array.cpp: reads the attributes of a Python array and calls the instance for its dtype. */
#include "device_array.h"
#include "reduce.h"

#include <stdexcept>
#include <string>

namespace
{

struct reference { /* owns a reference */
    PyObject *object;
    explicit reference(PyObject *taken) : object(taken)
    {
        if (object)
            return;
        PyErr_Clear();
        throw std::invalid_argument("expected a device array with ptr, shape, strides and dtype");
    }
    ~reference() { Py_DECREF(object); }
    reference(const reference &) = delete;
    reference &operator=(const reference &) = delete;
};

/* The library reads consecutive elements, so every other layout must be refused. */
std::size_t count_elements(PyObject *object, Py_ssize_t itemsize)
{
    const reference shape(PyObject_GetAttrString(object, "shape"));
    const reference strides(PyObject_GetAttrString(object, "strides"));
    Py_ssize_t count = 1;
    bool contiguous = true;
    for (Py_ssize_t i = PySequence_Size(shape.object) - 1; i >= 0; i--) {
        const reference length(PySequence_GetItem(shape.object, i));
        const reference stride(PySequence_GetItem(strides.object, i));
        const Py_ssize_t n = PyLong_AsSsize_t(length.object);
        contiguous &= n == 1 || PyLong_AsSsize_t(stride.object) == count * itemsize;
        count *= n;
    }
    if (count && !contiguous)
        throw std::invalid_argument("the array must be contiguous in C order: pass array.ravel()");
    return std::size_t(count);
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
    device_array array = {element_type(object), PyLong_AsVoidPtr(address.object), 0};
    array.count = count_elements(object, array.type == device_array::float32 ? 4 : 8);
    if (!PyErr_Occurred())
        return array;
    PyErr_Clear();
    throw std::invalid_argument("ptr, shape and strides must be integers");
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
