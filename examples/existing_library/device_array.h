/* device_array.h: what the wrapped functions take: any Python object with ptr, shape and dtype. */
#ifndef DEVICE_ARRAY_H
#define DEVICE_ARRAY_H

#include <Python.h>

#include <cstddef>

struct device_array {
    enum element { float32, float64 } type;
    const void *data; /* a device address */
    std::size_t count;
};

/* Read the attributes of @p object. Throws std::invalid_argument. */
device_array device_array_from(PyObject *object);

/* What Python sees as example.sum. */
double sum(const device_array &array);

#endif
