/* assign.c: a[…] = value. Device arrays of the same dtype are copied on the device; NumPy casts and broadcasts
 * everything else on the host. */
#include "numpy/bridge.h"
#include "copy/fill.h"
#include "copy/transfer.h"
#include "array/array.h"
#include "interop/asarray.h"

/* ---- from a device array ---- */

static int broadcast_raise(const struct py_array *from, const struct py_array *to)
{
    PyObject *source = py_ssize_tuple(from->shape, from->ndim),
             *target = py_ssize_tuple(to->shape, to->ndim);
    if (source && target)
        PyErr_Format(PyExc_ValueError,
                     "could not broadcast input array from shape %R into shape %R", source, target);
    Py_XDECREF(source);
    Py_XDECREF(target);
    return -1;
}

/* Strides that broadcast @p from to the shape of @p to: 0 for a repeated axis. As in NumPy, the source may have more
 * axes if the first ones have one element. */
static int broadcast_strides(const struct py_array *from, const struct py_array *to,
                             Py_ssize_t *strides)
{
    const int more = from->ndim - to->ndim;
    for (int i = 0; i < more; i++)
        if (from->shape[i] != 1)
            return broadcast_raise(from, to);
    for (int i = 0; i < to->ndim; i++) {
        const int axis = i + more;
        const Py_ssize_t length = axis < 0 ? 1 : from->shape[axis];
        if (length != 1 && length != to->shape[i])
            return broadcast_raise(from, to);
        strides[i] = length == 1 ? 0 : from->strides[axis];
    }
    return 0;
}

/* The range of bytes, from the start of the memory. */
static void array_bounds(const struct py_array *array, Py_ssize_t *first, Py_ssize_t *end)
{
    *first = *end = (Py_ssize_t)array->offset;
    for (int i = 0; i < array->ndim; i++) {
        const Py_ssize_t reach = (array->shape[i] - 1) * array->strides[i];
        *(reach < 0 ? first : end) += reach;
    }
    *end += array->itemsize;
}

static bool arrays_overlap(const struct py_array *one, const struct py_array *other)
{
    Py_ssize_t first, end, other_first, other_end;
    uintptr_t base = (uintptr_t)gg_memory_pointer(one->memory),
              other_base = (uintptr_t)gg_memory_pointer(other->memory);
    array_bounds(one, &first, &end);
    array_bounds(other, &other_first, &other_end);
    return base + (uintptr_t)first < other_base + (uintptr_t)other_end &&
           other_base + (uintptr_t)other_first < base + (uintptr_t)end;
}

static bool arrays_identical(const struct py_array *one, const struct py_array *other)
{
    const size_t sizes = (size_t)one->ndim * sizeof *one->shape;
    return one->memory == other->memory && one->offset == other->offset &&
           one->ndim == other->ndim && !memcmp(one->shape, other->shape, sizes) &&
           !memcmp(one->strides, other->strides, sizes);
}

static int copy_broadcast(struct py_state *state, struct py_array *to, struct py_array *from)
{
    Py_ssize_t strides[PY_MAX_DIMS];
    struct py_operand dst, src;
    int failed;
    if (broadcast_strides(from, to, strides) || !to->size)
        return PyErr_Occurred() ? -1 : 0;
    py_operand_array(&dst, to);
    py_operand_array(&src, from);
    failed = py_operands_same_dtype(&dst, &src);
    if (!failed && (from->ndim != to->ndim || from->size != to->size)) {
        src.shape = to->shape;
        src.strides = strides;
        src.ndim = to->ndim;
        dst.c = dst.f = false; /* the layouts differ, whatever they are */
    }
    if (!failed)
        failed = py_transfer(state, &dst, &src, to->nbytes, NULL, 0);
    py_operands_close(&dst, &src);
    return failed;
}

static int assign_array(struct py_state *state, struct py_array *to, struct py_array *from)
{
    PyObject *copy;
    int failed;
    if (!numpy_same_dtype(to->dtype, from->dtype))
        return PY_FAIL(
            PyExc_TypeError,
            "cannot assign a device array of dtype %S to one of dtype %S: convert it with "
            "astype(%R) first",
            from->dtype, to->dtype, to->dtype);
    if (!to->size || !from->size || !arrays_overlap(to, from))
        return copy_broadcast(state, to, from);
    if (arrays_identical(to, from))
        return 0;
    copy = py_array_copy_in_order(state, from, false);
    if (!copy)
        return -1;
    failed = copy_broadcast(state, to, py_array_of(copy));
    Py_DECREF(copy);
    return failed;
}

/* ---- from the host ---- */

static int assign_element(struct py_state *state, struct py_array *to, PyObject *value)
{
    PyObject *element = numpy_0d(to->dtype, value);
    int failed;
    if (!element)
        return -1;
    failed = py_fill_element(state, to, element, NULL);
    Py_DECREF(element);
    return failed;
}

/* NumPy casts and broadcasts into an array of the view's shape, which is then copied. */
static int assign_host(struct py_state *state, struct py_array *to, PyObject *value)
{
    PyObject *host = numpy_empty(to->dtype, to->ndim, to->shape, to->f && !to->c);
    struct py_operand dst, src;
    int failed;
    if (!host)
        return -1;
    if (PyObject_SetItem(host, Py_Ellipsis, value)) {
        Py_DECREF(host);
        return -1;
    }
    py_operand_array(&dst, to);
    py_operand_ndarray(&src, host);
    failed = py_transfer_and_close(state, &dst, &src, to->nbytes, NULL, 0);
    Py_DECREF(host);
    return failed;
}

/* Like py_external_device_array, but skips what is host data in any case. */
static int external_wrap(struct py_state *state, PyObject *value, PyObject **out)
{
    const int is_array = numpy_is_array(value);
    if (is_array || PyList_Check(value) || PyTuple_Check(value))
        return is_array < 0 ? -1 : 0;
    return py_external_device_array(state, value, out);
}

static int assign_external(struct py_state *state, struct py_array *to, PyObject *value)
{
    PyObject *wrapped = NULL;
    const int external = external_wrap(state, value, &wrapped);
    int failed;
    if (external < 1)
        return external < 0 ? -1 : assign_host(state, to, value);
    failed = external == 1 ? assign_array(state, to, py_array_of(wrapped))
                           : assign_host(state, to, wrapped);
    Py_DECREF(wrapped);
    return failed;
}

static int assign_value(struct py_state *state, struct py_array *to, PyObject *value, bool element)
{
    if (Py_IS_TYPE(value, state->array_type))
        return assign_array(state, to, py_array_of(value));
    if (PyLong_Check(value) || PyFloat_Check(value) || PyComplex_Check(value) ||
        numpy_is_scalar(value) ||
        (element && (PyList_Check(value) || PyTuple_Check(value) || PyUnicode_Check(value))))
        return assign_element(state, to, value);
    return assign_external(state, to, value);
}

/* An index with one integer for each axis, with which NumPy assigns an element. */
static bool index_is_element(const struct py_array *array, PyObject *index)
{
    if (!PyTuple_Check(index))
        return array->ndim == 1 && PyLong_Check(index);
    for (Py_ssize_t i = 0; i < PyTuple_Size(index); i++)
        if (!PyLong_Check(PyTuple_GetItem(index, i)))
            return false;
    return array->ndim && PyTuple_Size(index) == array->ndim;
}

int py_array_assign_subscript(PyObject *self, PyObject *index, PyObject *value)
{
    struct py_state *state = py_state_of(self);
    PyObject *view;
    int failed;
    if (!value)
        return PY_FAIL(PyExc_ValueError, "cannot delete elements of a GPUArray");
    if (py_array_of(self)->readonly)
        return PY_FAIL(PyExc_ValueError, "assignment destination is read-only");
    view = py_array_subscript(self, index);
    if (!view)
        return -1;
    failed =
        assign_value(state, py_array_of(view), value, index_is_element(py_array_of(self), index));
    Py_DECREF(view);
    return failed;
}
