/* operators.c: the operators, which raise: gpuglue does no arithmetic. The message names libraries that do. */
#include "array/array.h"

static PyObject *operator_raise(const char *what)
{
    return PyErr_Format(
        PyExc_TypeError,
        "GPUArrays are not %s: gpuglue does no arithmetic. Pass the array, without a "
        "copy, to a library that does: cupy.from_dlpack(a), torch.from_dlpack(a), "
        "jax.dlpack.from_dlpack(a) or dpctl.tensor.from_dlpack(a); for NumPy use "
        "a.get()",
        what);
}

PyObject *py_array_binary_operator(PyObject *Py_UNUSED(left), PyObject *Py_UNUSED(right))
{
    return operator_raise("operands");
}

PyObject *py_array_power_operator(PyObject *left, PyObject *right, PyObject *Py_UNUSED(modulus))
{
    return py_array_binary_operator(left, right);
}

PyObject *py_array_unary_operator(PyObject *Py_UNUSED(self))
{
    return operator_raise("operands");
}

PyObject *py_array_compare(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(other), int Py_UNUSED(op))
{
    return operator_raise("compared (use `is` to test whether two names are one array)");
}
