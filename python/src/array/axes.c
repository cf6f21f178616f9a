/* axes.c: views with fewer axes, or with axes in another order. */
#include "base/arguments.h"
#include "numpy/bridge.h"
#include "array/array.h"

PyObject *py_array_permuted(struct py_array *array, const int *order)
{
    Py_ssize_t shape[PY_MAX_DIMS], strides[PY_MAX_DIMS];
    for (int i = 0; i < array->ndim; i++) {
        shape[i] = array->shape[order[i]];
        strides[i] = array->strides[order[i]];
    }
    return py_array_view(array, 0, array->dtype, array->ndim, shape, strides);
}

/* Neither Python's bool nor NumPy's is an axis. */
static int axes_check(PyObject *const *axes, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyBool_Check(axes[i]) || !PyIndex_Check(axes[i]))
            return PY_FAIL(PyExc_TypeError, "axis must be an integer, got %R", axes[i]);
    return 0;
}

static int axes_read_one(const struct py_array *array, PyObject *object, int *out)
{
    Py_ssize_t axis = PyNumber_AsSsize_t(object, PyExc_OverflowError);
    if (axis == -1 && PyErr_Occurred())
        return -1;
    if (axis < -array->ndim || axis >= array->ndim)
        return numpy_raise_axis_error(axis, array->ndim);
    *out = (int)(axis < 0 ? axis + array->ndim : axis);
    return 0;
}

static int squeeze_axis(const struct py_array *array, PyObject *object, bool *dropped)
{
    int axis = 0;
    if (axes_check(&object, 1) || axes_read_one(array, object, &axis))
        return -1;
    if (dropped[axis])
        return PY_FAIL(PyExc_ValueError, "duplicate value in 'axis'");
    if (array->shape[axis] != 1)
        return PY_FAIL(PyExc_ValueError,
                       "cannot select an axis to squeeze out which has size not equal to one");
    dropped[axis] = true;
    return 0;
}

/* For a 0-d array NumPy accepts 0 and -1 too. */
static bool squeeze_names_no_axis(const struct py_array *array, PyObject *object)
{
    const bool number = PyLong_Check(object) && !PyBool_Check(object);
    const long axis = !array->ndim && number ? PyLong_AsLong(object) : 1;
    return axis == 0 || (axis == -1 && !PyErr_Occurred());
}

static int squeeze_choose(const struct py_array *array, PyObject *object, bool *dropped)
{
    if (!py_given(object)) {
        for (int i = 0; i < array->ndim; i++)
            dropped[i] = array->shape[i] == 1;
        return 0;
    }
    if (!PyTuple_Check(object))
        return squeeze_names_no_axis(array, object) ? 0 : squeeze_axis(array, object, dropped);
    for (Py_ssize_t i = 0; i < PyTuple_Size(object); i++)
        if (squeeze_axis(array, PyTuple_GetItem(object, i), dropped))
            return -1;
    return 0;
}

PY_FASTCALL(py_array_squeeze)
{
    static const char *const names[] = {"axis"};
    struct py_array *array = py_array_of(self);
    Py_ssize_t shape[PY_MAX_DIMS], strides[PY_MAX_DIMS];
    bool dropped[PY_MAX_DIMS] = {false};
    PyObject *values[1];
    int ndim = 0;
    if (py_parse("squeeze", names, 1, 1, 0, args, nargs, kwnames, values) ||
        squeeze_choose(array, values[0], dropped))
        return NULL;
    for (int i = 0; i < array->ndim; i++) {
        if (dropped[i])
            continue;
        shape[ndim] = array->shape[i];
        strides[ndim++] = array->strides[i];
    }
    return py_array_view(array, 0, array->dtype, ndim, shape, strides);
}

PyObject *py_array_transposed(PyObject *self, void *Py_UNUSED(closure))
{
    struct py_array *array = py_array_of(self);
    int order[PY_MAX_DIMS];
    for (int i = 0; i < array->ndim; i++)
        order[i] = array->ndim - 1 - i;
    return py_array_permuted(array, order);
}

static PyObject *transpose(struct py_array *array, PyObject *const *axes, Py_ssize_t count)
{
    int order[PY_MAX_DIMS];
    bool used[PY_MAX_DIMS] = {false};
    if (axes_check(axes, count < PY_MAX_DIMS ? count : PY_MAX_DIMS))
        return NULL;
    if (count != array->ndim)
        return PyErr_Format(PyExc_ValueError, "axes don't match array: %zd axes for %d dimensions",
                            count, array->ndim);
    for (int i = 0; i < array->ndim; i++) {
        if (axes_read_one(array, axes[i], &order[i]))
            return NULL;
        if (used[order[i]])
            return PyErr_Format(PyExc_ValueError, "repeated axis in transpose");
        used[order[i]] = true;
    }
    return py_array_permuted(array, order);
}

PY_FASTCALL(py_array_transpose)
{
    PyObject *axes[PY_MAX_DIMS], *tuple, *result;
    if (kwnames && PyTuple_Size(kwnames))
        return PyErr_Format(PyExc_TypeError, "transpose() takes no keyword arguments");
    if (!nargs || (nargs == 1 && args[0] == Py_None))
        return py_array_transposed(self, NULL);
    if (nargs > 1 || py_is_index(args[0]))
        return transpose(py_array_of(self), args, nargs);
    tuple = PySequence_Tuple(args[0]);
    if (!tuple)
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple) && i < PY_MAX_DIMS; i++)
        axes[i] = PyTuple_GetItem(tuple, i); /* borrowed */
    result = transpose(py_array_of(self), axes, PyTuple_Size(tuple));
    Py_DECREF(tuple);
    return result;
}
