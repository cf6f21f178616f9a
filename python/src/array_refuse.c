/* array_refuse.c: the operators. gpuglue does no arithmetic, and says who does. */
#include "array.h"

static PyObject *refuse(const char *what)
{
    return PyErr_Format(
        PyExc_TypeError,
        "GPUArrays are not %s: gpuglue does no arithmetic. Hand the array, without a "
        "copy, to a library that does: cupy.from_dlpack(a), torch.from_dlpack(a), "
        "jax.dlpack.from_dlpack(a) or dpctl.tensor.from_dlpack(a); for NumPy take "
        "a.get()",
        what);
}

PyObject *py_array_refuse_binary(PyObject *left, PyObject *right)
{
    (void)left;
    (void)right;
    return refuse("operands");
}

PyObject *py_array_refuse_power(PyObject *left, PyObject *right, PyObject *modulus)
{
    (void)modulus;
    return py_array_refuse_binary(left, right);
}

PyObject *py_array_refuse_unary(PyObject *self)
{
    (void)self;
    return refuse("operands");
}

PyObject *py_array_refuse_compare(PyObject *self, PyObject *other, int op)
{
    (void)self;
    (void)other;
    (void)op;
    return refuse("compared (use `is` to ask whether two names are one array)");
}
