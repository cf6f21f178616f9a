/* array_assign.c: a[…] = value. Device arrays are copied on the device, of one dtype only; everything else is
 * cast and broadcast by NumPy on the host. */
#include "array.h"
#include "ends.h"
#include "fill.h"
#include "numpy_bridge.h"

/* ---- from a device array --------------------------------------------------------------------- */

static int refuse_broadcast(const struct py_array *from, const struct py_array *to)
{
    PyObject *source = py_sizes(from->shape, from->ndim), *target = py_sizes(to->shape, to->ndim);
    if (source && target)
        PyErr_Format(PyExc_ValueError,
                     "could not broadcast input array from shape %R into shape %R", source, target);
    Py_XDECREF(source);
    Py_XDECREF(target);
    return -1;
}

/* Strides with which @p from has the shape of @p to: 0 where one element stands for an axis. As in NumPy
 * the source may have more axes if the first ones are of one element. */
static int broadcast(const struct py_array *from, const struct py_array *to, Py_ssize_t *strides)
{
    const int more = from->ndim - to->ndim;
    for (int i = 0; i < more; i++)
        if (from->shape[i] != 1)
            return refuse_broadcast(from, to);
    for (int i = 0; i < to->ndim; i++) {
        const int axis = i + more;
        const Py_ssize_t length = axis < 0 ? 1 : from->shape[axis];
        if (length != 1 && length != to->shape[i])
            return refuse_broadcast(from, to);
        strides[i] = length == 1 ? 0 : from->strides[axis];
    }
    return 0;
}

/* The first byte and the one behind the last, from the start of the memory. */
static void bounds(const struct py_array *array, Py_ssize_t *first, Py_ssize_t *end)
{
    *first = *end = (Py_ssize_t)array->offset;
    for (int i = 0; i < array->ndim; i++) {
        const Py_ssize_t reach = (array->shape[i] - 1) * array->strides[i];
        *(reach < 0 ? first : end) += reach;
    }
    *end += array->itemsize;
}

static bool overlap(const struct py_array *one, const struct py_array *other)
{
    Py_ssize_t first, end, other_first, other_end;
    uintptr_t base = (uintptr_t)gg_memory_pointer(one->memory),
              other_base = (uintptr_t)gg_memory_pointer(other->memory);
    bounds(one, &first, &end);
    bounds(other, &other_first, &other_end);
    return base + (uintptr_t)first < other_base + (uintptr_t)other_end &&
           other_base + (uintptr_t)other_first < base + (uintptr_t)end;
}

static bool identical(const struct py_array *one, const struct py_array *other)
{
    const size_t sizes = (size_t)one->ndim * sizeof *one->shape;
    return one->memory == other->memory && one->offset == other->offset &&
           one->ndim == other->ndim && !memcmp(one->shape, other->shape, sizes) &&
           !memcmp(one->strides, other->strides, sizes);
}

static int copy_broadcast(struct py_state *state, struct py_array *to, struct py_array *from)
{
    Py_ssize_t strides[PY_MAX_DIMS];
    struct py_end dst, src;
    int failed;
    if (broadcast(from, to, strides) || !to->size)
        return PyErr_Occurred() ? -1 : 0;
    py_end_array(&dst, to);
    py_end_array(&src, from);
    failed = py_ends_same_dtype(&dst, &src);
    if (!failed && (from->ndim != to->ndim || from->size != to->size)) {
        src.shape = to->shape;
        src.strides = strides;
        src.ndim = to->ndim;
        dst.c = dst.f = false; /* the layouts differ, whatever they are */
    }
    if (!failed)
        failed = py_transfer(state, &dst, &src, to->nbytes, NULL, 0);
    py_end_close(&src);
    py_end_close(&dst);
    return failed;
}

static int assign_array(struct py_state *state, struct py_array *to, struct py_array *from)
{
    PyObject *apart;
    int failed;
    if (!numpy_same_dtype(to->dtype, from->dtype)) {
        PyErr_Format(PyExc_TypeError,
                     "cannot assign a device array of dtype %S to one of %S: convert it with "
                     "astype(%R) first",
                     from->dtype, to->dtype, to->dtype);
        return -1;
    }
    if (!to->size || !from->size || !overlap(to, from))
        return copy_broadcast(state, to, from);
    if (identical(to, from))
        return 0;
    apart = py_array_copy_in_order(state, from, false);
    if (!apart)
        return -1;
    failed = copy_broadcast(state, to, py_array_of(apart));
    Py_DECREF(apart);
    return failed;
}

/* ---- from the host --------------------------------------------------------------------------- */

static int assign_element(struct py_state *state, struct py_array *to, PyObject *value)
{
    PyObject *element = numpy_element(to->dtype, value);
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
    struct py_end dst, src;
    int failed;
    if (!host)
        return -1;
    if (PyObject_SetItem(host, Py_Ellipsis, value)) {
        Py_DECREF(host);
        return -1;
    }
    py_end_array(&dst, to);
    py_end_host(&src, host);
    failed = py_transfer(state, &dst, &src, to->nbytes, NULL, 0);
    py_end_close(&src);
    py_end_close(&dst);
    Py_DECREF(host);
    return failed;
}

/* As py_foreign_device_array; what NumPy takes for data needs no look. */
static int wrap_foreign(struct py_state *state, PyObject *value, PyObject **out)
{
    const int is_array = numpy_is_array(value);
    if (is_array || PyList_Check(value) || PyTuple_Check(value))
        return is_array < 0 ? -1 : 0;
    return py_foreign_device_array(state, value, out);
}

static int assign_foreign(struct py_state *state, struct py_array *to, PyObject *value)
{
    PyObject *wrapped = NULL;
    const int foreign = wrap_foreign(state, value, &wrapped);
    int failed;
    if (foreign < 1)
        return foreign < 0 ? -1 : assign_host(state, to, value);
    failed = foreign == 1 ? assign_array(state, to, py_array_of(wrapped))
                          : assign_host(state, to, wrapped);
    Py_DECREF(wrapped);
    return failed;
}

static int assign(struct py_state *state, struct py_array *to, PyObject *value, bool element)
{
    if (Py_IS_TYPE(value, state->array_type))
        return assign_array(state, to, py_array_of(value));
    if (PyLong_Check(value) || PyFloat_Check(value) || PyComplex_Check(value) ||
        numpy_is_scalar(value) ||
        (element && (PyList_Check(value) || PyTuple_Check(value) || PyUnicode_Check(value))))
        return assign_element(state, to, value);
    return assign_foreign(state, to, value);
}

/* An index of integers only, one for each axis: what NumPy assigns as an element. */
static bool is_element(const struct py_array *array, PyObject *index)
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
    if (!value) {
        PyErr_SetString(PyExc_ValueError, "cannot delete elements of a GPUArray");
        return -1;
    }
    if (py_array_of(self)->readonly) {
        PyErr_SetString(PyExc_ValueError, "assignment destination is read-only");
        return -1;
    }
    view = py_array_subscript(self, index);
    if (!view)
        return -1;
    failed = assign(state, py_array_of(view), value, is_element(py_array_of(self), index));
    Py_DECREF(view);
    return failed;
}
