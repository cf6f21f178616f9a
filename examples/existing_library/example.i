/* example.i: the SWIG interface of the library: one function, which takes any device array. */
%module example
%{
#include "device_array.h"
#include <exception>
#include <stdexcept>
%}

%include <exception.i>

%exception {
    try {
        $action
    } catch (const std::exception &error) {
        SWIG_exception(SWIG_RuntimeError, error.what());
    }
}

/* No copy and no wrapper class: ptr, shape, strides and dtype are enough. */
%typemap(in) const device_array & (device_array array) {
    try {
        array = device_array_from($input);
    } catch (const std::invalid_argument &error) {
        SWIG_exception_fail(SWIG_TypeError, error.what());
    }
    $1 = &array;
}

%feature("autodoc", "sum(array) -> float: the sum of a float32 or float64 array on the device");
double sum(const device_array &array);
