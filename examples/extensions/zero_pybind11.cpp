// zero_pybind11.cpp: the same with pybind11.
#include <pybind11/pybind11.h>

#include "zero.h"

namespace py = pybind11;

static py::tuple zero(py::object object)
{
    gg_array_view view = GG_ARRAY_VIEW;
    if (zero_open(object.ptr(), &view))
        throw py::error_already_set();
    py::tuple shape(view.ndim);
    for (int32_t i = 0; i < view.ndim; i++)
        shape[i] = view.shape[i];
    py::tuple answer = py::make_tuple(reinterpret_cast<uintptr_t>(view.data), shape, int(view.code),
                                      int(view.bits));
    gg_status status;
    {
        py::gil_scoped_release without_gil;
        status = zero_run(&view);
    }
    if (status)
        throw std::runtime_error("gg_fill failed with status " + std::to_string(status));
    return answer;
}

PYBIND11_MODULE(zero_pybind11, module)
{
    module.def("zero", &zero, "Set an array of any library to zero, in place.");
}
