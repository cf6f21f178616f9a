// zero_cpp.cpp: the same in C++ without a binding tool: gg::array_view releases the array.
#include <gpuglue/python.hpp>

#include "zero.h"

/* Your library would launch a kernel here, on array.stream_handle(). */
static PyObject *zero_of(gg::array_view array)
{
    const auto fill = reinterpret_cast<fill_function>(gg_python_function("gg_fill"));
    const gg_status status =
        fill(array.memory(), array.offset(), "", 1, array.size_bytes(), array.stream());
    if (status)
        return PyErr_Format(PyExc_RuntimeError, "gg_fill failed with status %d", int(status));
    PyObject *shape = PyTuple_New(array.ndim());
    for (int axis = 0; shape && axis < array.ndim(); axis++)
        PyTuple_SetItem(shape, axis, PyLong_FromLongLong(array.shape(axis)));
    return shape ? Py_BuildValue("(KNii)", reinterpret_cast<unsigned long long>(array.data()),
                                 shape, int(array.get().code), int(array.get().bits))
                 : nullptr;
}

static PyObject *zero(PyObject *, PyObject *object)
{
    try {
        return zero_of(
            gg::array_view(object, GG_ARRAY_WRITABLE | GG_ARRAY_C_CONTIGUOUS | GG_ARRAY_HOST));
    } catch (const gg::python_error &) {
        return nullptr; // with Python's exception
    }
}

static PyMethodDef methods[] = {
    {"zero", zero, METH_O, "Set an array of any library to zero, in place."},
    {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "zero_cpp", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit_zero_cpp(void)
{
    return PyModule_Create(&definition);
}
