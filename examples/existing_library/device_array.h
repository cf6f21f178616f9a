/* device_array.h: the argument of the wrapped functions: any Python object with ptr, shape, strides and dtype. */
#ifndef DEVICE_ARRAY_H
#define DEVICE_ARRAY_H

#include <Python.h>

#include <cstddef>

struct device_array {
    enum element { float32, float64 } type;
    const void *data; /* a device address */
    std::size_t count;
};

/* Read the attributes of @p object, which must be contiguous in C order. Throws std::invalid_argument. */
device_array device_array_from(PyObject *object);

/* example.sum in Python. */
double sum(const device_array &array);

#endif
