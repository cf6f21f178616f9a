// zero_nanobind.cpp: the same with nanobind.
#include <nanobind/nanobind.h>

#include <string>

#include "zero.h"

namespace nb = nanobind;

static nb::tuple zero(nb::object object)
{
    gg_array_view view = GG_ARRAY_VIEW;
    if (zero_open(object.ptr(), &view))
        throw nb::python_error();
    nb::list shape;
    for (int32_t i = 0; i < view.ndim; i++)
        shape.append(view.shape[i]);
    nb::tuple answer = nb::make_tuple(reinterpret_cast<uintptr_t>(view.data), nb::tuple(shape),
                                      int(view.code), int(view.bits));
    gg_status status;
    {
        nb::gil_scoped_release without_gil;
        status = zero_run(&view);
    }
    if (status)
        throw std::runtime_error("gg_fill failed with status " + std::to_string(status));
    return answer;
}

NB_MODULE(zero_nanobind, module)
{
    module.def("zero", &zero, "Set an array of any library to zero, in place.");
}
