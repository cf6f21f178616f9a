// pointers_pybind11.cpp: functions that take raw pointers, called as in PyGPU programs: fn(da.device_data()).
#include <pybind11/pybind11.h>

#include <ptr_wrapper.h>

#include <cstddef>
#include <cstdint>

namespace py = pybind11;

// Stands for a function that launches a kernel on the address. C++ is enough for the host backend, whose device
// memory is host memory.
template <class T> static void twice(ptr_wrapper<T> values, std::size_t count)
{
    for (std::size_t i = 0; i < count; i++)
        values.get()[i] *= 2;
}

template <class T> static ptr_wrapper<T> behind(ptr_wrapper<T> values, std::ptrdiff_t elements)
{
    return ptr_wrapper<T>(values.get() + elements);
}

PYBIND11_MODULE(pointers_pybind11, module)
{
    module.def("fn", &twice<std::int64_t>, py::arg("values"), py::arg("count") = 6,
               py::call_guard<py::gil_scoped_release>(), "Double int64 values in place.");
    module.def("twice", &twice<double>, py::arg("values"), py::arg("count"),
               py::call_guard<py::gil_scoped_release>(), "Double float64 values in place.");
    module.def("behind", &behind<double>, py::arg("values"), py::arg("elements"),
               "The address that many float64 elements further, as an int.");
}
